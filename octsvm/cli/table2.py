"""``octsvm table2``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidData, OutputNotWritable
from ..formulations.replace_file import require_writable
from . import options as shared
from .options import INTERRUPTED, OK, UNEXPECTED, say

if TYPE_CHECKING:
    from ..experiments import Protocol

EXIT_CODES = """\b
Exit codes:
    0  done (also where single fits failed: they are counted, and "octsvm table2 status" names them)
    1  something unexpected; or cells are left, because their workers died again and again
    1  every fit of a method failed
    2  wrong usage, a store of another protocol, data that cannot be had, or a target that cannot be written; the
       message says what to do
  130  interrupted (Ctrl-C): what is finished is kept, and the same command goes on"""

# What a run is handed as it was given.
PASSED_ON = ("data_dir", "scheduler", "methods", "sets", "repetitions", "keep_trees", "retry_failed")


def names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """``a,b,c`` as names."""
    return None if value is None else tuple(n.strip() for n in value.split(",") if n.strip())


# What is run, and on what.
run_options = shared.all_of(
    [
        click.option("--quick", is_flag=True, help="Two sets and small grids: --protocol quick."),
        click.option(
            "--protocol", "-p", metavar="NAME|FILE",
            type=shared.Suggested("protocol", ("table2", "quick"), files=True),
            help="table2, quick, or a YAML file of your own.  [default: table2]",
        ),
        click.option("--store", metavar="FILE", help="Where finished cells are kept.  [default: OUT/cells.sqlite]"),
        click.option("--data-dir", metavar="DIR", help="Folder with the data sets as CSV files."),
        click.option(
            "--jobs", "-j", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a CPU]"
        ),
        click.option("--scheduler", metavar="ADDRESS", help='A Dask scheduler, tcp://host:8786, or "local".'),
        click.option("--sets", metavar="A,B", callback=names, help="Only these data sets."),
        click.option("--methods", metavar="A,B", callback=names, help="Only these methods."),
        click.option("--repetitions", type=click.IntRange(1), metavar="N", help="In place of the protocol's number."),
        click.option("--retry-failed", is_flag=True, help="Fit again what failed."),
        click.option("--keep-trees", is_flag=True, help="Keep the fitted trees in the store."),
        click.option("--out", metavar="DIR", help="For the report.  [default: named after the protocol]"),
        shared.json_option,
        shared.quiet_option,
    ]
)  # fmt: skip


@click.group(invoke_without_command=True, epilog=EXIT_CODES)
@run_options
@click.pass_context
def table2(ctx: click.Context, **options: Any) -> int:
    """Repeat the computational study of the paper (its Table 2), or one of your own: run, then report.

    Every finished fit is kept in the store. A run that was stopped or killed is gone on with by the same command; two
    of them on one store share the work. Without a command, octsvm table2 runs and then writes the report to OUT.

    \b
    Examples:
      octsvm table2 --quick
      octsvm table2 --data-dir data --jobs 8 --out table2
      octsvm table2 run --methods cart,octsvm --repetitions 1
      octsvm table2 run --scheduler tcp://10.0.0.1:8786
      octsvm table2 status table2/cells.sqlite
      octsvm table2 export table2/cells.sqlite cells.csv.gz
      octsvm table2 report cells.csv.gz --out report
    """
    if ctx.invoked_subcommand is not None:
        given = [k for k in options if ctx.get_parameter_source(k) is not click.core.ParameterSource.DEFAULT]
        if given:
            name = f"--{given[0].removeprefix('as_').replace('_', '-')}"
            raise click.UsageError(
                f"{name} stands before {ctx.invoked_subcommand}. Put it behind: octsvm table2 {ctx.invoked_subcommand} {name}."
            )
        return OK
    from ..experiments.report import require_packages

    require_packages()  # before the run, not after it
    code, store, out, content = _run(options)
    if code != OK:
        return code
    files = _report(store, out)
    if options["as_json"]:
        shared.echo_json(content | {"report": files}, "run")
    else:
        click.echo("\n".join(files))
    return code


@table2.command(epilog=EXIT_CODES)
@run_options
def run(**options: Any) -> int:
    """Fit what is not in the store yet; no report.

    \b
    Examples:
      octsvm table2 run --quick
      octsvm table2 run --store cells.sqlite --jobs 8 --sets heart,sonar
    """
    code, _, _, content = _run(options)
    if options["as_json"] and code != INTERRUPTED:
        shared.echo_json(content, "run")
    return code


@table2.command(epilog=shared.EXIT_CODES)
@click.argument("store", metavar="STORE")
@shared.json_option
def status(store: str, as_json: bool) -> None:
    """Count the cells of STORE that are done, left, failed.

    They are listed by method; of what failed, the messages.

    \b
    Examples:
      octsvm table2 status table2/cells.sqlite
      octsvm table2 status table2/cells.sqlite --json
    """
    from ..experiments.store import Store

    with Store.open(store) as opened:
        counts, failures, protocol = opened.counts(), opened.failures(), opened.protocol
        digest = opened.hash
    if as_json:
        content = {
            "protocol": protocol.name,
            "hash": digest,
            "methods": json.loads(counts.to_json(orient="index")),
            "failures": failures.to_dict("records"),
        }
        shared.echo_json(content, "experiment")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(h, style="bold") for h in ("method", "done", "left", "failed", "seconds of fits")))
    total = counts.sum()
    for name, row in [*counts.iterrows(), ("all", total)]:
        failed = Text(f"{row['failed']:,.0f}", style="red" if row["failed"] else "")
        left = row["total"] - row["done"]
        table.add_row(str(name), f"{row['done']:,.0f}", f"{left:,.0f}", failed, f"{row['seconds']:,.1f}")
    click.echo(f"{protocol.name} ({digest}): {protocol.title}")
    shared.console().print(table)
    for one in failures.to_dict("records"):
        click.echo(f"{one['method']}: {one['cells']} failed, such as {one['example']}: {one['error']}")


@table2.command(epilog=shared.EXIT_CODES)
@click.argument("store", metavar="STORE")
@click.argument("out", metavar="OUT.csv.gz")
def export(store: str, out: str) -> None:
    """Write all cells of STORE to one compact file.

    It is a gzipped CSV, that "octsvm table2 report" takes as well; its first line is a comment with the protocol and the versions in JSON.

    \b
    Examples:
      octsvm table2 export table2/cells.sqlite cells.csv.gz
    """
    from ..experiments.store import Store

    require_writable(out)
    shared.require_no_input(out, store)
    with Store.open(store) as opened:
        path = opened.export(out)
    say(f"{path.stat().st_size:,} bytes in {out}")


@table2.command(epilog=shared.EXIT_CODES)
@click.argument("cells", metavar="STORE|EXPORT")
@click.option("--out", metavar="DIR", required=True, help="Folder for the report; made if it is not there.")
def report(cells: str, out: str) -> None:
    """Write the report of a store or an export.

    What is not finished is marked.

    \b
    Examples:
      octsvm table2 report table2/cells.sqlite --out report
    """
    click.echo("\n".join(_report(cells, out)))


# -- the work -----------------------------------------------------------------------------------------------------


def _report(cells: str | Path, out: str | Path) -> list[str]:
    """Write the report; its files to read."""
    from ..experiments.report import write_report

    return [str(path) for path in write_report(cells, out) if path.suffix in (".html", ".md")]


def _run(options: Mapping[str, Any]) -> tuple[int, Path, Path, dict[str, Any]]:
    """Run; the exit code, the store, the folder of the report, and the summary as plain data."""
    from ..experiments.progress import RunProgress
    from ..experiments.protocol import load_protocol
    from ..experiments.runner import run as run_protocol
    from ..experiments.store import cpus

    if options["quick"] and options["protocol"] not in (None, "quick"):
        raise click.UsageError("--quick is a protocol, and so is --protocol. Leave one of them out.")
    protocol = load_protocol("quick" if options["quick"] else options["protocol"] or "table2")
    out = Path(options["out"] or protocol.name)
    if options["store"] is not None:
        store = Path(options["store"])
    else:
        store = out / "cells.sqlite"
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputNotWritable(
                f"{str(out)!r} cannot be made: {error.strerror or error}. Choose another place."
            ) from None
    try:
        with shared.clean_stdout(), RunProgress(sys.stderr, quiet=options["quiet"]) as shown, _logged():
            found = run_protocol(
                protocol,
                store,
                jobs=options["jobs"] or cpus(),
                progress=shown,
                load=partial(_load, protocol, options["data_dir"]),
                **{name: options[name] for name in PASSED_ON},
            )
    except KeyboardInterrupt:
        say(f"Interrupted. What is finished is kept in {store}; the same command goes on from there.")
        return INTERRUPTED, store, out, {}
    if not options["quiet"]:
        say(
            f"{found.done:,} of {found.total:,} cells are in {store}; {found.fitted:,} of them were fitted now, in "
            f"{found.seconds:.0f} s"
        )
    if found.failed:
        say(f"Warning: {found.failed:,} fits failed; octsvm table2 status {store} names them.")
    if found.given_up:
        say(
            f"Error: workers died {len(found.given_up)} times too often, first on {found.given_up[0]}. Run again."
        )
    if found.useless:
        say(f"Error: every fit of {', '.join(found.useless)} failed.")
    content = {"protocol": protocol.name, "store": str(store), **asdict(found)}
    return UNEXPECTED if found.given_up or found.useless else OK, store, out, content


def _load(protocol: Protocol, data_dir: str | None, name: str) -> Any:
    """Features and labels of -1 and 1: a table of one's own from its file, another set as :func:`octsvm.datasets.load` does."""
    import numpy as np

    from .. import datasets

    if name not in protocol.tables:
        return datasets.load(name, data_dir=data_dir)
    spec = protocol.tables[name]
    asked = spec.model_dump(exclude={"file", "positive"})
    data = shared.load(
        str(Path(data_dir or ".") / spec.file), asked | {"seed": 0, "against_rest": spec.positive}
    )
    labels = sorted(set(data.y.tolist()))
    if len(labels) != 2:
        raise InvalidData(
            f"{data.name}: an experiment is on two classes, and {data.label!r} has {len(labels)}. Say in the protocol which of "
            "them is to be told from all others (positive)."
        )
    second = labels[1] if spec.positive is None else spec.positive
    return SimpleNamespace(X=data.X, y=np.where(data.y == second, 1, -1))


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """What the runner warns of, as lines of ours."""
    import logging

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"Warning: {record.getMessage()}")

    log, handler = logging.getLogger("octsvm.experiments"), Said(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
