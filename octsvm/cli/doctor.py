"""``octsvm doctor``."""

from __future__ import annotations

import click

from . import options as shared
from .options import OK, UNEXPECTED

EXIT_CODES = """\b
Exit codes:
    0  everything that octsvm needs is there and works; further solvers may be missing
    1  something that it needs is missing, too old or broken; the report says what to do
    2  wrong usage
  130  interrupted (Ctrl-C)"""

MARKS = {"ok": ("ok", "green"), "missing": ("missing", "yellow"), "failed": ("failed", "red")}


@click.command(epilog=EXIT_CODES)
@shared.json_option
def doctor(as_json: bool) -> int:
    """Check the installation: versions, dependencies, solvers, and whether each installed solver solves a model.

    \b
    Examples:
      octsvm doctor
      octsvm doctor --json
    """
    from ..diagnostics import doctor as diagnosis

    with shared.clean_stdout():
        checks = diagnosis.examine()
    good = diagnosis.well(checks)
    code = OK if good else UNEXPECTED
    if as_json:
        shared.echo_json({"ok": good, "checks": [c.to_dict() for c in checks]}, "doctor")
        return code
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for check in checks:
        word, colour = MARKS[check.state]
        if check.needed and check.state == "missing":
            colour = "red"
        detail = Text(check.detail)
        if check.cure:
            detail.append(f"\n{check.cure}", style="bold")
        table.add_row(Text(word, style=colour), Text(check.name), detail)
    shared.console().print(table)
    click.echo(
        "\nEverything that octsvm needs is there and works."
        if good
        else "\nSomething that octsvm needs is missing or does not work; see above."
    )
    return code
