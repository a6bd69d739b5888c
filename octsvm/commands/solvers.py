"""``octsvm solvers``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from . import _shared as shared
from ._shared import OK

if TYPE_CHECKING:
    from rich.text import Text

    from ..installed import Installed

MARKS = {"ok": "green", "untried": "yellow", "missing": "yellow", "failed": "red"}
INTERFACES = {"highs": "in process", "child": "own process", "executable": "program", "neos": "server"}


class _Located(click.Command):
    """Names the user's configuration folder in the help, where it is asked for."""

    def get_help(self, ctx: click.Context) -> str:
        """The help text."""
        from platformdirs import user_config_path

        folder = user_config_path("octsvm", appauthor=False)
        self.help = (self.help or "").replace("FOLDER", str(folder))
        return super().get_help(ctx)


@click.command(cls=_Located, epilog=shared.EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...", type=shared.Suggested("solver", shared.solver_names))
@click.option("--no-trial", is_flag=True, help="Solve nothing: only say what is here.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="For all trials together.  [default: 8]",
)
@shared.json_option
def solvers(names: tuple[str, ...], no_trial: bool, time_limit: float | None, as_json: bool) -> int:
    """List the solver table: what is installed, in which version and under which licence, and whether it works.

    On each solver that is here a model of two variables is solved, on all of them at the same time, and a solver with
    a size-limited licence is asked whether the limit is in force. NAMEs restrict the list.

    A table of your own is merged over ours, key by key: an entry under a known name changes what you write of it, a
    new name adds a solver. It is the file that the environment variable OCTSVM_SOLVERS names, else solvers.yaml in your
    configuration folder (FOLDER). A program that reads a model's file needs one entry and no code:

    \b
      solvers:
        highs_program:
          title: HiGHS (program)
          backend: executable
          executable: [highs, "python:highsbox.highs_bin_path"]
          format: mps
          answer: highs
          argv: ["{model}", "--options_file", "{options}", "--solution_file", "{solution}"]
          option_file: {name: highs.opt, line: "{key} = {value}"}
          classes: [LP, MILP]
          options: {time_limit: time_limit, gap: mip_rel_gap, threads: threads}
          install: pip install highsbox

    The first lines of the shipped solvers.yaml explain every key; a mistake is reported with its line.

    \b
    Examples:
      octsvm solvers
      octsvm solvers highs scip --json
      octsvm solvers --no-trial
    """
    from .. import installed

    with shared.clean_stdout():
        found = installed.look(not no_trial, names or None, time_limit or installed.SECONDS)
    if as_json:
        content = {"schema": "octsvm.solvers", "version": 1, "solvers": [one.to_dict() for one in found]}
        click.echo(json.dumps(content, indent=1, allow_nan=False))
        return OK
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    heads = ("", "solver", "version", "as", "licence", "start", "solves")
    table.add_row(*(Text(head, style="bold") for head in heads))
    for one in found:
        table.add_row(
            Text(one.state, style=MARKS[one.state]),
            Text(one.name),
            Text(one.version),
            Text(short_interface(one)),
            Text(_licence(one)),
            Text(one.starts),
            _rest(one),
        )
    shared.console().print(table)
    return OK


def short_interface(one: Installed) -> str:
    """How the solver is talked to, in two words."""
    from .. import solvers as table

    return INTERFACES[table.get(one.by).backend]


def _licence(one: Installed) -> str:
    """The state of the licence, with its ceilings where they count."""
    if one.state == "missing" and not one.ceilings:
        return "" if one.licence == "none needed" else "needed"
    if one.licence not in ("size-limited", "unknown") or not one.ceilings:
        return one.licence
    parts = []
    for kind, most in one.ceilings.items():
        sizes = [f"{n} {what}" if what != "total" else f"{n} rows + variables" for what, n in most.items()]
        parts.append(f"{', '.join(sizes)} if {kind}")
    return f"{'up to' if one.licence == 'size-limited' else 'without one up to'} {'; '.join(parts)}"


def _rest(one: Installed) -> Text:
    from rich.text import Text

    proof = {"global": "", "convex": "; proves convex models only", "none": "; proves nothing"}[one.claim]
    out = Text(" ".join(one.classes) + proof)
    if one.by != one.name and one.state != "missing":
        out.append(f"\nnot installed itself: {one.by} stands in")
    if not one.tested:
        out.append("\nuntested: written from its manual, never run by us", style="yellow")
    if one.detail:
        out.append(f"\n{one.detail}", style="red" if one.state == "failed" else "")
    if one.state == "missing":
        out.append(f"\n{one.install}", style="bold")
    return out
