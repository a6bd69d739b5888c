"""``octsvm race``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..formulations.replace_file import replace_text
from ..options import RACE
from . import options as shared
from .options import DISAGREEMENT, INTERRUPTED, OK, TERMINATED, say
from .progress import SolveProgress

if TYPE_CHECKING:
    import pandas as pd

    from ..result import Progress

EXIT_CODES = """\b
Exit codes:
    0  done, and no two solvers contradict each other
    1  something unexpected
    2  wrong usage, data that cannot be used, or a target that cannot be written; the message says what to do
    5  two solvers contradict each other; the message says which
  130  interrupted (Ctrl-C): the running solver was ended, and what there is, is shown"""


@click.command(epilog=EXIT_CODES)
@click.argument("table", type=shared.TABLE)
@click.option(
    "--solvers", metavar="A,B,C", help="Names of the solver table; all that are installed by default."
)
@shared.table_options
@shared.formulation_options
@shared.scale_option
@shared.solve_options(
    RACE,
    defaults=True,
    time_limit="For each solver.",
    threads="Threads of each solver.",
    seed="For the generated table toy, and the solvers.",
    start="A saved tree that every solver is handed as its start.",
)
@shared.out_option("RESULTS.csv", "Save the table.")
@shared.json_option
@shared.quiet_option
def race(table: str, **options: Any) -> int:
    """Solve the model of TABLE on many solvers, and put what each came to side by side.

    The model of all rows of TABLE is built once. The solvers run one after the other, so that they do not take each
    other's time; the time to start a process of its own is shown apart. Every tree is checked outside the solver.

    \b
    Examples:
      octsvm race toy --formulation oct --depth 1 --time-limit 20
      octsvm race iris --formulation oct --depth 1 --solvers highs,scip,cbc --out results.csv
      octsvm race measurements.csv --label species --formulation re_svm --json
    """
    with shared.noted_interrupts() as asked:
        data = shared.load(table, options)
        model = shared.build(data, options)
        frame = _raced(model, shared.given_options(RACE, options), options)
        interrupted = bool(asked) or frame.attrs["interrupted"]
    if options["out"] is not None:
        replace_text(options["out"], frame.to_csv(index=False))
    against = frame.attrs["disagreements"]
    if options["as_json"]:
        from ..result import finite

        content = {
            "table": data.name,
            "formulation": options["formulation"],
            "params": model.info.params.model_dump(),
            "interrupted": interrupted,
            "disagreements": list(against),
            "results": finite(frame.to_dict("records")),
        }
        shared.echo_json(content, "race")
    else:
        _print(frame)
    for sentence in against:
        say(f"Error: {sentence}.")
    if interrupted:
        say("Interrupted.")
        return TERMINATED if shared.Terminated in asked else INTERRUPTED
    return DISAGREEMENT if against else OK


def _raced(model: Any, asked_for: Mapping[str, Any], options: Mapping[str, Any]) -> pd.DataFrame:
    """The table of all solvers, with progress on stderr meanwhile."""
    import octsvm

    names = None
    if options["solvers"] is not None:
        names = [name.strip() for name in options["solvers"].split(",") if name.strip()]
    running: list[SolveProgress] = []

    def begin(name: str) -> None:
        running.append(SolveProgress(options["quiet"], f"{name:<14}").__enter__())

    def update(progress: Progress) -> None:
        for shown in running:
            shown.update(progress)

    def close() -> None:
        while running:
            running.pop().__exit__()

    def end(row: Mapping[str, Any]) -> None:
        close()
        if not options["quiet"]:
            text = row["note"] if row["status"] in ("refused", "failed") else f"{row['seconds']:.2f} s"
            say(f"{row['solver']:<14}{row['status']}: {text}")

    with shared.spoken_warnings(), shared.clean_stdout():
        try:
            return octsvm.race(model, solvers=names, on_begin=begin, on_end=end, callback=update, **asked_for)
        finally:
            close()


def _print(frame: pd.DataFrame) -> None:
    from rich.table import Table
    from rich.text import Text

    heads = (
        "solver", "status", "stop", "seconds", "start-up", "objective", "bound", "gap", "nodes", "rounds",
        "certificate", "start",
    )  # fmt: skip
    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(head, style="bold") for head in heads))
    remarks = []
    for row in frame.to_dict("records"):
        if row["status"] in ("refused", "failed"):
            table.add_row(Text(row["solver"]), Text(row["status"], style="yellow"), Text(row["stop"]))
            remarks.append(f"{row['solver']}: {row['note']}")
            continue
        colour = {"optimal": "green", "unverified": "red"}.get(row["status"], "")
        table.add_row(
            Text(row["solver"]),
            Text(row["status"], style=colour),
            Text(row["stop"]),
            f"{row['seconds']:.2f}",
            f"{row['startup']:.2f}",
            f"{row['objective']:.6g}",
            f"{row['bound']:.6g}",
            f"{row['gap']:.2%}" if math.isfinite(row["gap"]) else "-",
            str(row["nodes"]),
            str(row["rounds"]),
            Text(row["certificate"], style="red" if row["certificate"] == "mismatch" else ""),
            row["start"],
        )
    screen = shared.console()
    # A table of figures is of no use broken into pieces: what reads it may scroll, or take --json or --out.
    screen.width = max(screen.width, 150)
    screen.print(table)
    for remark in remarks:
        click.echo(remark)
