"""``octsvm solvers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options as shared

if TYPE_CHECKING:
    from rich.text import Text

    from ..diagnostics.installed import Installed

MARKS = {"ok": "green", "untried": "yellow", "missing": "yellow", "failed": "red"}
INTERFACES = {
    "highs": "in process",
    "own": "in process",
    "child": "own process",
    "executable": "program",
    "neos": "server",
}


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
def solvers(names: tuple[str, ...], no_trial: bool, time_limit: float | None, as_json: bool) -> None:
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
    from ..diagnostics import installed

    with shared.clean_stdout():
        found = installed.look(not no_trial, names or None, time_limit or installed.SECONDS)
    if as_json:
        shared.echo_json({"solvers": [one.to_dict() for one in found]}, "solvers")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for one in found:
        table.add_row(
            Text(one.state, style=MARKS[one.state]), Text(one.name), Text(one.version), _description(one)
        )
    shared.console().print(table)


def _description(one: Installed) -> Text:
    from rich.text import Text

    from .. import solvers as known

    proof = {"global": "", "convex": " (proves convex models only)", "none": " (proves nothing)"}[one.claim]
    starts = {"all": "takes starts", "integers": "takes the integers of starts", "none": "takes no start"}
    how = INTERFACES[known.get(one.by).backend]
    out = Text(f"{' '.join(one.classes)}{proof}\n{how}, {starts[one.starts]}, {_licence(one)}")
    if one.by != one.name and one.state != "missing":
        out.append(f"\nnot installed itself; {one.by} stands in for it")
    if not one.tested:
        out.append("\nuntested: written from its manual, never run by us", style="yellow")
    if one.detail:
        out.append(f"\n{one.detail}", style="red" if one.state == "failed" else "")
    if one.state in ("missing", "failed"):
        out.append(f"\n{one.install}", style="bold")
    return out


def _licence(one: Installed) -> str:
    """The state of the licence, with its ceilings where they count."""
    parts = []
    for kind, most in one.ceilings.items():
        sizes = [f"{n} {'rows + variables' if what == 'total' else what}" for what, n in most.items()]
        parts.append(f"{', '.join(sizes)} ({kind})")
    ceilings = "; ".join(parts)
    return {
        "none needed": "no licence needed",
        "full": "full licence",
        "size-limited": f"size-limited licence: up to {ceilings}",
        "unlicensed": "no licence found",
        "unknown": f"without a licence up to {ceilings}" if ceilings else "needs a licence",
    }[one.licence]
