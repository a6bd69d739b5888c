"""``octsvm race``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from . import options as shared
from .options import DISAGREEMENT, INTERRUPTED, OK, say
from .progress import Shown

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
@click.option(
    "--time-limit", type=float, default=60, show_default=True, metavar="SECONDS", help="For each solver."
)
@click.option(
    "--gap", type=float, default=1e-4, show_default=True, help="Relative gap that counts as optimal."
)
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of each solver.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For the generated table toy, and the solvers."
)
@click.option("--start", metavar="TREE.json", help="A saved tree that every solver is handed as its start.")
@click.option("--out", metavar="RESULTS.csv", help="Save the table.")
@shared.json_option
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
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
    import octsvm

    if options["out"] is not None:
        shared.require_writable(options["out"])
    names = None
    if options["solvers"] is not None:
        names = [name.strip() for name in options["solvers"].split(",") if name.strip()]
    with shared.noted_interrupts() as asked:
        data = shared.load(table, options)
        start = None if options["start"] is None else shared.read_tree(options["start"])
        model = shared.build(data, options, start)
        live = _Live(options["quiet"])

        def watch(progress: Progress) -> bool:
            live.update(progress)
            return False

        with shared.spoken_warnings(), shared.clean_stdout():
            try:
                frame = octsvm.race(
                    model,
                    solvers=names,
                    time_limit=options["time_limit"],
                    gap=options["gap"],
                    threads=options["threads"],
                    seed=options["seed"],
                    start=start,
                    on_begin=live.begin,
                    on_end=live.end,
                    callback=watch,
                )
            finally:
                live.close()
        interrupted = bool(asked) or frame.attrs["interrupted"]
    if options["out"] is not None:
        shared.write_text(options["out"], frame.to_csv(index=False))
    against = frame.attrs["disagreements"]
    if options["as_json"]:
        content = {
            "schema": "octsvm.race",
            "version": 1,
            "table": data.name,
            "formulation": options["formulation"],
            "params": model.info.params.model_dump(),
            "interrupted": interrupted,
            "disagreements": list(against),
            "results": [_plain(row) for row in frame.to_dict("records")],
        }
        click.echo(json.dumps(content, indent=1, allow_nan=False))
    else:
        _print(frame)
    for sentence in against:
        say(f"Error: {sentence}.")
    if interrupted:
        say("Interrupted.")
        return INTERRUPTED
    return DISAGREEMENT if against else OK


class _Live:
    """The progress of the solver that runs, and a line for each that is done."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._shown: Shown | None = None

    def begin(self, name: str) -> None:
        """A solver begins."""
        self._shown = Shown(self._quiet, f"{name:<14}").__enter__()

    def update(self, progress: Progress) -> None:
        """News from the solver that runs."""
        if self._shown is not None:
            self._shown.update(progress)

    def end(self, row: Mapping[str, Any]) -> None:
        """A solver is done."""
        self.close()
        if not self._quiet:
            text = row["note"] if row["status"] in ("refused", "failed") else f"{row['seconds']:.2f} s"
            say(f"{row['solver']:<14}{row['status']}: {text}")

    def close(self) -> None:
        """No solver runs any more."""
        if self._shown is not None:
            self._shown.__exit__()
            self._shown = None


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(k): None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


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
