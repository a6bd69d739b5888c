"""``octsvm completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import options as shared

SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=shared.EXIT_CODES)
@click.argument("shell", type=click.Choice(SHELLS))
@shared.json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print a script that makes the shell complete commands, options, formulations, solvers and tables.

    \b
    Examples, the line to add to your shell's start-up file:
      eval "$(octsvm completion bash)"        # ~/.bashrc, bash 4.4 or newer
      eval "$(octsvm completion zsh)"         # ~/.zshrc, below compinit
      octsvm completion fish | source         # ~/.config/fish/config.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    # The name that people type: the script must not carry the path that this process was started by.
    script = found(ctx.find_root().command, {}, "octsvm", "_OCTSVM_COMPLETE").source()
    if as_json:
        shared.echo_json({"shell": shell, "script": script}, "completion")
    else:
        click.echo(script)
