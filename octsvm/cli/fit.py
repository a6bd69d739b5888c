"""``octsvm fit``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ..options import FIT
from . import options as shared
from .options import NO_TREE, OK, UNVERIFIED, say
from .progress import SolveProgress
from .table_preparation import prepared, row_weights

if TYPE_CHECKING:
    from ..formulations.trees import Tree
    from ..result import Progress, Result
    from .csv_tables import CsvTable

HELD_OUT = 0.25  # share of a built-in data set that is kept for testing


@click.command(epilog=shared.FIT_EXIT_CODES)
@click.argument("table", default="toy", type=shared.TABLE)
@shared.table_options
@shared.formulation_options
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
@shared.scale_option
@shared.solve_options(FIT)
@click.option("--out", metavar="TREE.json", help="Save the tree.")
@shared.json_option
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
      octsvm fit iris --against-rest versicolor --depth 1 --solver auto
      octsvm fit iris --formulation oct --depth 1 --options mip_heuristic_effort=0.2
      octsvm fit measurements.csv --label species --test-size 0.3 --flip 0.1 --out tree.json

    Progress goes to stderr. The summary, or with --json one JSON object, goes to stdout; row numbers in it count the
    table's rows from 0. In a saved tree they count the training rows.
    """
    from .csv_tables import BUILT_IN

    for wanted in ("out", "log"):
        if options[wanted] is not None:
            shared.require_writable(options[wanted])
    with shared.noted_interrupts() as asked:
        data = shared.load(table, options, prepare=False)
        share = options["test_size"]
        if share is None:
            share = HELD_OUT if table in BUILT_IN else 0.0
        rows = _partition(data, share, options)
        return _fit(prepared(data, options, rows.train), rows, options, asked)


@dataclass(frozen=True, eq=False)
class Partition:
    """Which rows of a table a tree is trained and tested on.

    ``train`` and ``test`` are positions in the table's order, ``y`` the labels to train on, ``clean`` those before any
    was flipped.
    """

    train: Any
    test: Any
    y: Any
    clean: Any

    @property
    def flipped(self) -> Any:
        """Positions in the table of the training rows whose labels were flipped."""
        return self.train[(self.y != self.clean).astype(bool)]


def _partition(data: CsvTable, share: float, options: Mapping[str, Any]) -> Partition:
    from ..noise import flip_labels

    train, test = _split(data, share, options["seed"])
    y = clean = data.y[train]
    if options["flip"]:
        y = flip_labels(clean, options["flip"], options["seed"]).astype(object)
    return Partition(train, test, y, clean)


def _split(data: CsvTable, share: float, seed: int) -> tuple[Any, Any]:
    """Positions of the training and of the test rows, both in the table's order."""
    import numpy as np

    rows = np.arange(len(data.y))
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


def _fit(
    data: CsvTable, rows: Partition, options: Mapping[str, Any], asked: list[type[KeyboardInterrupt]]
) -> int:
    shown = SolveProgress(quiet=options["quiet"])
    weights = row_weights(rows.y, options["class_weight"])
    arguments = _arguments(options) | {"weights": weights}
    shown.line(
        f"{options['formulation']} on {data.name}: {len(rows.train)} rows to train on, {len(rows.test)} to test on, "
        f"{data.X.shape[1]} features" + (f", {len(rows.flipped)} labels flipped" if options["flip"] else "")
    )

    def watch(progress: Progress) -> bool:
        shown.update(progress)
        return bool(asked)

    if asked:
        raise asked[-1]
    with shared.spoken_warnings(), shared.clean_stdout(), shown:
        result = with_preparation(_solved(data, rows, arguments | {"callback": watch}), data)
    if result.tree is not None and options["out"] is not None:
        from . import fitted_file

        shared.write_text(options["out"], fitted_file.as_json(result, data, rows, weights, options))
    report = report_of(data, result, rows)
    if options["as_json"]:
        click.echo(json.dumps(result.to_dict() | report, indent=1, allow_nan=False))
    else:
        click.echo(text_of(data, result, report))
    return verdict(result)


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`octsvm.fit` is called with besides the table; what was not given stays its default."""
    out = {
        "formulation": options["formulation"],
        **shared.params_of(options),
        **shared.given_options(FIT, options),
    }
    return out | {"scale": not options["no_scale"], "on_mismatch": "ignore"}


def _solved(data: CsvTable, rows: Partition, arguments: dict[str, Any]) -> Result:
    import octsvm

    try:
        return octsvm.fit(X=data.X.iloc[rows.train], y=rows.y, **arguments)
    except octsvm.InvalidData as error:
        raise octsvm.InvalidData(shared.advice(data, str(error), rows.y)) from None
    except octsvm.CertificateMismatch as error:
        if error.result is None:
            raise
        found: Result = error.result
        return found


def with_preparation(result: Result, data: CsvTable) -> Result:
    """The result whose tree takes the table's columns as they are in the file."""
    if result.tree is None or data.preparation is None:
        return result
    return replace(result, tree=result.tree.prepared_by(data.preparation))


def verdict(result: Result) -> int:
    """The exit code; what is wrong with the tree is said on stderr."""
    if result.tree is None:
        say(
            "Error: there is no tree: the model with these parameters has no solution. Loosen n_min, depth or big_m."
            if result.status == "infeasible"
            else f"Error: no tree is known: the solve ended ({result.stop}) before it found one. Give it more --time-limit, or "
            "a tree with --start."
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
        say(
            f"Warning: the solver's answer does not hold outside the solver: {reason}. What is shown is the best tree "
            f"that was found, with its objective recomputed.{hint}"
        )
        return UNVERIFIED
    return OK


# -- reports ------------------------------------------------------------------------------------------------------


def _accuracy(tree: Tree, X: Any, y: Any) -> float | None:
    return float((tree.predict(X) == y).mean()) if len(y) else None


def report_of(data: CsvTable, result: Result, rows: Partition) -> dict[str, Any]:
    """What the summary says of the table: rows, accuracies, relabelled rows."""
    tree, train, test, flipped = result.tree, rows.train, rows.test, rows.flipped
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
    out["train_accuracy"] = _accuracy(tree, data.X.iloc[train], rows.y)
    if len(flipped):
        out["train_accuracy_before_flips"] = _accuracy(tree, data.X.iloc[train], rows.clean)
    out["test_accuracy"] = _accuracy(tree, data.X.iloc[test], data.y[test])
    out["relabelled"] = [
        {"row": int(train[r.row]), "node": int(r.node), "cost": float(r.cost)}
        for r in getattr(tree, "relabelled", ())
    ]
    return out


def text_of(data: CsvTable, result: Result, report: Mapping[str, Any]) -> str:
    """The summary."""
    parts = [result.summary()]
    if result.tree is None:
        return parts[0]
    accuracy = f"train {report['train_accuracy']:.4f} ({report['train_rows']} rows)"
    if report["train_accuracy_before_flips"] is not None:
        accuracy += f", {report['train_accuracy_before_flips']:.4f} of the labels before flipping"
    if report["test_accuracy"] is not None:
        accuracy += f", test {report['test_accuracy']:.4f} ({report['test_rows']} rows)"
    parts.append(f"accuracy   {accuracy}")
    if hasattr(result.tree, "relabelled"):
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
