"""The command line: ``octsvm fit`` and ``octsvm predict``.

Everything heavy is imported inside the commands, so that ``octsvm --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import io
import json
import math
import os
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from . import __version__

if TYPE_CHECKING:
    from .formulations.trees import Tree
    from .result import Progress, Result
    from .tables import Table

OK, UNEXPECTED, WRONG_INPUT, NO_TREE, UNVERIFIED, INTERRUPTED = 0, 1, 2, 3, 4, 130
HELD_OUT = 0.25  # share of a built-in data set that is kept for testing
PARAMETERS = (
    "depth",
    "alpha",
    "n_min",
    "complexity",
    "error_scale",
    "mu",
    "c1",
    "c2",
    "c3",
    "mu_svm",
    "norm",
    "variant",
    "big_m",
)

EXIT_CODES = """\b
Exit codes:
    0  done (also when Ctrl-C ended the solve early: the best tree is shown, its stop is "interrupted")
    1  something unexpected
    2  wrong usage, or data that cannot be used; the message says what to do
    3  no tree: the model has no solution
    4  a tree, but unverified: the solver's answer did not hold outside the solver
  130  interrupted (Ctrl-C) outside the solve"""


class _Commands(click.Group):
    """Turns every way a command can end into an exit code and at most one line on stderr."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a letter of a column's name is no reason to fail.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = run(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            _say("Interrupted.")
            code = INTERRUPTED
        except Exception as error:
            code = _failed(error)
        _leave(code if isinstance(code, int) else OK)


def _leave(code: int) -> NoReturn:
    if sys.stdout is sys.__stdout__ and any(t.daemon for t in threading.enumerate()):
        # A solver that did not listen still runs in its thread, and an orderly end under it aborts the process.
        with contextlib.suppress(Exception):
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        os._exit(code)
    sys.exit(code)


def _failed(error: Exception) -> int:
    from .errors import OctsvmError

    if isinstance(error, OctsvmError):
        _say(f"Error: {error}")
        return WRONG_INPUT
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    _say(
        f"Error: unexpected {type(error).__name__}{place}: {text}. This is a fault in octsvm; please report it."
    )
    return UNEXPECTED


def _say(text: str) -> None:
    click.echo(text, err=True)


class _CountOrShare(click.ParamType):
    name = "count|share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        if isinstance(value, (int, float)):
            return value
        try:
            return int(value) if re.fullmatch(r"[+-]?\d+", value.strip()) else float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a count of rows (5) nor a share of them (0.05).", param, ctx)


class _WorkLimit(click.ParamType):
    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        out: dict[str, int] = {}
        for part in value.split(","):
            name, _, number = part.strip().rpartition("=")
            if name not in ("", "nodes", "rounds") or not re.fullmatch(r"\d+", number.strip()):
                self.fail(f"{value!r} should be a number of nodes (500), or nodes=500,rounds=3.", param, ctx)
            out[name or "nodes"] = int(number)
        return out


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="octsvm")
def main() -> None:
    """Optimal classification trees that survive wrong labels: exact models, checked answers.

    \b
    Examples:
      octsvm fit breast_cancer --depth 1 --time-limit 30
      octsvm fit measurements.csv --label species --formulation oct --out tree.json
      octsvm predict tree.json new.csv --out predictions.csv
    """


@main.command(epilog=EXIT_CODES)
@click.argument("table", default="toy")
@click.option("--label", metavar="NAME", help="Column of the labels in a CSV file; the last one by default.")
@click.option("--separator", default=",", show_default=True, help="What separates the columns of a CSV file.")
@click.option(
    "--against-rest",
    metavar="CLASS",
    help='Make two classes of many: CLASS, and all others as "not CLASS".',
)
@click.option(
    "--formulation",
    "-f",
    metavar="NAME",
    default="octsvm",
    show_default=True,
    help="oct and oct_h (any number of classes), re_svm and octsvm (two classes).",
)
@click.option("--depth", type=int, help="Levels of splits (oct, oct_h); levels above the last one (octsvm).")
@click.option("--alpha", type=float, help="Cost of a split, in errors (oct, oct_h).")
@click.option(
    "--n-min", type=_CountOrShare(), help="Rows in every leaf in use: a count or a share (oct, oct_h)."
)
@click.option("--complexity", metavar="splits|features", help="What alpha charges (oct, oct_h).")
@click.option("--error-scale", metavar="count|baseline", help="Unit of the errors (oct, oct_h).")
@click.option("--mu", type=float, help="Separation of an oblique split (oct_h).")
@click.option("--c1", type=float, help="Cost of a unit of error (re_svm, octsvm).")
@click.option("--c2", type=float, help="Cost of giving up a label (re_svm, octsvm).")
@click.option("--c3", type=float, help="Cost of a split (octsvm).")
@click.option("--mu-svm", type=float, help="How far below 0 a row that goes left must be (octsvm).")
@click.option("--norm", metavar="l2|l1", help="Norm of the margin (re_svm, octsvm).")
@click.option("--variant", metavar="NAME", help="Another exact model: rank or bd (oct), compact or paper.")
@click.option("--big-m", type=float, help="In place of the bound from the data (re_svm, octsvm).")
@click.option(
    "--test-size",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help=f"Share of the rows held out for testing, stratified; {HELD_OUT} for built-in data, 0 for a CSV file.",
)
@click.option(
    "--flip",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Change the labels of so many training rows on purpose.",
)
@click.option("--no-scale", is_flag=True, help="Take the features as they are (in [0, 1], except for oct).")
@click.option(
    "--solver", default="highs", show_default=True, metavar="NAME", help="A name of the solver table."
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="Wall-clock limit.  [default: 60]")
@click.option(
    "--work-limit",
    type=_WorkLimit(),
    metavar="NODES",
    help="Reproducible limit: 500 nodes, or nodes=500,rounds=3.",
)
@click.option("--gap", type=float, help="Relative gap that counts as optimal.  [default: 1e-4]")
@click.option("--threads", type=int, help="Threads of the solver.  [default: 1]")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For the split, the flipped labels and the solver."
)
@click.option("--start", metavar="TREE.json", help="A saved tree to start from; the result is never worse.")
@click.option("--log", metavar="PATH", help="Append the solver's log to this file.")
@click.option("--out", metavar="TREE.json", help="Save the tree.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the summary.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def fit(table: str, **options: Any) -> int:
    """Fit a tree to TABLE and show it with its checked objective, its bound and its accuracy.

    TABLE is a CSV file with a header line, or built-in data: iris, wine, breast_cancer (scikit-learn's), or toy, a
    generated table of two classes in which one label in ten is wrong (the default). Write ./iris for a file that
    is called iris.

    \b
    Examples:
      octsvm fit breast_cancer --depth 1 --time-limit 30
      octsvm fit iris --formulation oct --alpha 0.5
      octsvm fit iris --against-rest versicolor --depth 1
      octsvm fit measurements.csv --label species --test-size 0.3 --flip 0.1 --out tree.json

    Progress goes to stderr. The summary, or with --json one JSON object, goes to stdout; row numbers in it count the
    table's rows from 0. In a saved tree they count the training rows.
    """
    from .tables import BUILT_IN

    for wanted in ("out", "log"):
        if options[wanted] is not None:
            _require_writable(options[wanted])
    data = _load(table, options)
    share = options["test_size"]
    if share is None:
        share = HELD_OUT if table in BUILT_IN else 0.0
    return _fit(data, _split(data, share, options["seed"]), options)


def _load(name: str, options: Mapping[str, Any]) -> Table:
    from . import tables

    data = tables.load(
        name, label=options["label"], separator=options["separator"], seed=max(0, options["seed"])
    )
    for remark in data.remarks:
        _say(f"Warning: {remark}")
    data.check()
    if options["against_rest"] is not None:
        data = tables.against_rest(data, options["against_rest"])
    return data


def _split(data: Table, share: float, seed: int) -> tuple[Any, Any]:
    """Positions of the training and of the test rows, both in the table's order."""
    import numpy as np

    rows = np.arange(len(data.y))
    if seed < 0:
        raise click.BadParameter(f"{seed} should be 0 or more.", param_hint="'--seed'")
    if share == 0:
        return rows, rows[:0]
    from sklearn.model_selection import train_test_split

    try:
        train, test = train_test_split(
            rows, test_size=share, random_state=seed % 2**32, stratify=data.y.astype(str)
        )
    except ValueError as error:
        raise click.UsageError(
            f"{data.name}: a share of {share:g} of the {len(rows)} rows cannot be held out with every class on both "
            f"sides ({str(error).split('.')[0]}). Use --test-size 0 to train on all rows, or another share."
        ) from None
    return np.sort(train), np.sort(test)


def _fit(data: Table, rows: tuple[Any, Any], options: Mapping[str, Any]) -> int:
    import numpy as np

    import octsvm

    train, test = rows
    X, clean = data.X.iloc[train], data.y[train]
    y = clean
    if options["flip"]:
        y = octsvm.flip_labels(clean, options["flip"], options["seed"]).astype(object)
    flipped = train[np.asarray(y != clean)]
    params = {name: options[name] for name in PARAMETERS if options[name] is not None}
    limits = {
        name: options[name]
        for name in ("time_limit", "work_limit", "gap", "threads", "log")
        if options[name] is not None
    }
    if options["start"] is not None:
        limits["start"] = _read_tree(options["start"])
    shown = _Shown(quiet=options["quiet"])
    shown.line(
        f"{options['formulation']} on {data.name}: {len(train)} rows to train on, {len(test)} to test on, "
        f"{X.shape[1]} features" + (f", {len(flipped)} labels flipped" if options["flip"] else "")
    )
    with _spoken_warnings(), _clean_stdout(), shown:
        try:
            result = octsvm.fit(
                options["formulation"],
                X,
                y,
                solver=options["solver"],
                seed=options["seed"],
                callback=shown.update,
                scale=not options["no_scale"],
                on_mismatch="ignore",
                **limits,
                **params,
            )
        except octsvm.InvalidData as error:
            raise octsvm.InvalidData(_advice(data, str(error), y)) from None
        except octsvm.CertificateMismatch as error:
            if error.result is None:
                raise
            result = error.result
    if result.tree is not None and options["out"] is not None:
        _write(options["out"], result.tree.to_json() + "\n")
    report = _report(data, result, train, test, clean, y, flipped)
    if options["as_json"]:
        click.echo(json.dumps(result.to_dict() | report, indent=1, allow_nan=False))
    else:
        click.echo(_text(data, result, report))
    return _verdict(result)


def _advice(data: Table, message: str, y: Any) -> str:
    """What the toolkit says about the data, and what that means on the command line."""
    classes = sorted({str(v) for v in y})
    if "separates two classes" in message and len(classes) > 2:
        named = classes[len(classes) // 2]
        quoted = f"'{named}'" if re.search(r"[^\w.-]", named) else named
        message += f" Here: --formulation oct, or --against-rest {quoted}."
    return f"{data.name}: {message}"


def _verdict(result: Result) -> int:
    if result.tree is None:
        _say(
            "Error: there is no tree: the model with these parameters has no solution. Loosen n_min, depth or big_m."
        )
        return NO_TREE
    if result.status == "unverified":
        reason = result.notes[-1] if result.notes else "it was not confirmed"
        hint = (
            " The model as printed (variant paper) lets rows on a hyperplane choose their side; the default variant, or "
            "a value for --mu-svm, does not."
            if result.params.get("variant") == "paper"
            else " Try another --seed, or a tighter --gap."
        )
        _say(
            f"Warning: the solver's answer does not hold outside the solver: {reason}. What is shown is the best tree "
            f"that was found, with its objective recomputed.{hint}"
        )
        return UNVERIFIED
    return OK


# -- reports ------------------------------------------------------------------------------------------------------


def _accuracy(tree: Tree, X: Any, y: Any) -> float | None:
    return float((tree.predict(X) == y).mean()) if len(y) else None


def _report(
    data: Table, result: Result, train: Any, test: Any, clean: Any, y: Any, flipped: Any
) -> dict[str, Any]:
    tree = result.tree
    out: dict[str, Any] = {
        "table": data.name,
        "label": data.label,
        "train_rows": len(train),
        "test_rows": len(test),
        "flipped_rows": [int(i) for i in flipped],
        "train_accuracy": None,
        "train_accuracy_before_flips": None,
        "test_accuracy": None,
        "relabelled": [],
    }
    if tree is None:
        return out
    out["train_accuracy"] = _accuracy(tree, data.X.iloc[train], y)
    if len(flipped):
        out["train_accuracy_before_flips"] = _accuracy(tree, data.X.iloc[train], clean)
    out["test_accuracy"] = _accuracy(tree, data.X.iloc[test], data.y[test])
    out["relabelled"] = [
        {"row": int(train[r.row]), "node": int(r.node), "cost": float(r.cost)}
        for r in getattr(tree, "relabelled", ())
    ]
    return out


def _text(data: Table, result: Result, report: Mapping[str, Any]) -> str:
    parts = [result.summary()]
    if result.tree is None:
        return parts[0]
    accuracy = f"train {report['train_accuracy']:.4f} ({report['train_rows']} rows)"
    if report["train_accuracy_before_flips"] is not None:
        accuracy += f", {report['train_accuracy_before_flips']:.4f} of the labels before flipping"
    if report["test_accuracy"] is not None:
        accuracy += f", test {report['test_accuracy']:.4f} ({report['test_rows']} rows)"
    parts.append(f"accuracy   {accuracy}")
    if result.formulation in ("re_svm", "octsvm"):
        rows = sorted({r["row"] for r in report["relabelled"]})
        text = f"relabelled {len(rows)} row{'' if len(rows) == 1 else 's'}"
        if rows:
            text += ": " + ", ".join(map(str, rows[:12])) + (", ..." if len(rows) > 12 else "")
        flipped = set(report["flipped_rows"])
        if flipped:
            text += f" ({len(flipped & set(rows))} of the {len(flipped)} flipped ones among them)"
        parts.append(text)
    parts += ["", str(result.tree)]
    return "\n".join(parts)


class _Shown:
    """Progress on stderr: one line that changes on a terminal, else a new line when there is news."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self.began = time.monotonic()
        self.last: Progress | None = None
        self.written = -math.inf
        self.said: tuple[float, float] | None = None
        self.width = 0
        self._done = threading.Event()
        self._ticker: threading.Thread | None = None

    def line(self, text: str) -> None:
        """One line of its own."""
        if not self.quiet:
            _say(text)

    def update(self, progress: Progress) -> None:
        """Take news from the solve; never asks it to stop."""
        self.last = progress
        if self.quiet or self.terminal:
            return
        now = time.monotonic()
        news = (progress.incumbent, progress.bound)
        if news != self.said and now - self.written >= 1.0:
            self.said, self.written = news, now
            _say(self._state())

    def _state(self) -> str:
        seconds = time.monotonic() - self.began
        p = self.last
        if p is None:
            return f"{seconds:7.1f} s  building the model"
        from .bridges import relative_gap

        if math.isfinite(p.incumbent):
            tree = f"incumbent {p.incumbent:.6g}"
            gap = f"{relative_gap(p.incumbent, p.bound):.2%}"
        else:
            tree, gap = "no tree yet", "-"
        return f"{seconds:7.1f} s  {tree}  bound {p.bound:.6g}  gap {gap}  rounds {p.rounds}  nodes {p.nodes}"

    def _tick(self) -> None:
        while not self._done.wait(0.3):
            text = self._state()
            click.echo("\r" + text.ljust(self.width), err=True, nl=False)
            self.width = len(text)

    def __enter__(self) -> _Shown:
        if self.terminal:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._ticker is not None:
            self._ticker.join()
            if self.width:
                _say("")


@contextlib.contextmanager
def _spoken_warnings() -> Iterator[None]:
    """Warnings as one line each, without the place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            _say(f"Warning: {message}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextlib.contextmanager
def _clean_stdout() -> Iterator[None]:
    """Drop what libraries print on the C level's stdout (HiGHS greets there): ours holds the result only."""
    try:
        redirect = sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        redirect = False
    if not redirect:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).fflush(None)  # what C buffered must not come out behind our back later
        os.dup2(kept, 1)
        os.close(kept)


# -- files --------------------------------------------------------------------------------------------------------


def _read_tree(path: str) -> Tree:
    from .formulations.trees import Tree

    return Tree.from_json(Path(path))


def _require_writable(path: str) -> None:
    """Better now than after the solve."""
    from .errors import OutputNotWritable

    target = Path(os.path.realpath(path))
    reason = ""
    if target.is_dir():
        reason = "it is a directory"
    elif not target.parent.is_dir():
        reason = f"there is no directory {str(target.parent)!r}"
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        reason = "permission denied"
    if reason:
        raise OutputNotWritable(f"{path!r} cannot be written: {reason}. Choose another place.")


def _write(path: str, text: str) -> None:
    """Write a file that appears complete or not at all."""
    from .errors import OutputNotWritable

    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")  # a device or a pipe is written to, never replaced
            return
        try:
            part.write_text(text, encoding="utf-8")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputNotWritable(
            f"{path!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None


# -- predict ------------------------------------------------------------------------------------------------------


@main.command(epilog=EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@click.argument("table", metavar="DATA.csv")
@click.option("--label", metavar="NAME", help="Column of known labels: the accuracy is shown as well.")
@click.option("--separator", default=",", show_default=True, help="What separates the columns of DATA.csv.")
@click.option(
    "--against-rest", metavar="CLASS", help="As for fit: known labels other than CLASS are its rest."
)
@click.option("--out", metavar="PREDICTIONS.csv", help="Write the predictions there instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def predict(
    tree: str,
    table: str,
    label: str | None,
    separator: str,
    against_rest: str | None,
    out: str | None,
    as_json: bool,
) -> int:
    """Predict the class of every row of DATA.csv with a tree that "octsvm fit --out" saved.

    Columns are picked by their names, in any order; others are ignored. The predictions are a CSV column called
    "prediction", one line a row.

    \b
    Examples:
      octsvm predict tree.json new.csv
      octsvm predict tree.json measurements.csv --label species --out predictions.csv
    """
    from . import tables
    from .errors import InvalidData

    if out is not None:
        _require_writable(out)
    fitted = _read_tree(tree)
    data = tables.read_csv(table, label=label, separator=separator, labelled=False)
    if against_rest is not None and data.y is not None:
        data = tables.against_rest(data, against_rest)
    data.check_cells(fitted.feature_names)
    try:
        predictions = fitted.predict(data.X).tolist()
    except InvalidData as error:
        raise InvalidData(data.located(str(error))) from None
    accuracy = None
    if data.y is not None:
        accuracy = _share_right(data, predictions, fitted.classes)
    if out is not None or not as_json:
        csv_text = _as_csv(predictions)
        if out is not None:
            _write(out, csv_text)
        else:
            click.echo(csv_text, nl=False)
    if as_json:
        content = {
            "schema": "octsvm.predictions",
            "version": 1,
            "rows": len(predictions),
            "accuracy": accuracy,
            "predictions": predictions,
        }
        click.echo(json.dumps(content, indent=1, allow_nan=False))
    elif accuracy is not None:
        # Beside the predictions, stdout has no room for anything else.
        click.echo(f"accuracy {accuracy:.4f} on {len(predictions)} rows", err=out is None)
    return OK


def _share_right(data: Table, predictions: Sequence[Any], classes: Sequence[Any]) -> float:
    from .errors import InvalidData

    known = data.y.tolist()
    strange = [v for v in known if v not in classes]
    if len(strange) == len(known):
        close = difflib.get_close_matches(str(strange[0]), [str(c) for c in classes], n=1)
        raise InvalidData(
            f"{data.name}: the column {data.label!r} holds labels such as {strange[0]!r}, and the tree knows "
            f"{', '.join(map(repr, classes))}."
            + (f" Did you mean {close[0]!r}?" if close else " Is it the column of the labels?")
        )
    if strange:
        _say(
            f"Warning: {data.name}: {len(strange)} rows have labels that the tree does not know, such as {strange[0]!r}; "
            "they count as wrong."
        )
    return sum(p == k for p, k in zip(predictions, known, strict=True)) / len(known)


def _as_csv(predictions: Sequence[Any]) -> str:
    import pandas as pd

    return str(pd.DataFrame({"prediction": predictions}).to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
