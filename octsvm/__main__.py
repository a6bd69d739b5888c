"""``python -m octsvm`` is the command line."""

from .cli import main

main(prog_name="octsvm")
