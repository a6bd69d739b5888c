"""The commands of the command line, one module each; nothing heavy is imported before a command runs."""
