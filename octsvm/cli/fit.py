"""``octsvm fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ..formulations.checks import plural
from ..formulations.replace_file import replace_text
from ..options import FIT
from . import options as shared
from .findings import supports, weights_of, words_of
from .options import NO_TREE, OK, UNVERIFIED, say
from .progress import SolveProgress
from .table_preparation import prepared, row_weights

if TYPE_CHECKING:
    from ..formulations.trees import Tree
    from ..result import Progress, Result
    from .csv_tables import CsvTable
    from .fitted_file import FoldAccuracy

HELD_OUT = 0.25  # share of a built-in data set that is kept for testing
UNHELD = "no rows are held out, so nothing says how the tree does on others"


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
@shared.out_option("TREE.json", "Save the tree.")
@shared.json_option
@shared.quiet_option
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

    A line of progress has what the best tree so far costs, and the bound: no tree costs less. A gap of 0 % is a proof.
    """
    from .csv_tables import BUILT_IN

    with shared.noted_interrupts() as asked:
        data = shared.load(table, options, prepare=False)
        share = options["test_size"]
        if share is None:
            share = HELD_OUT if table in BUILT_IN else 0.0
        rows = _partition(data, share, options)
        return _fit(prepared(data, options, rows.train), rows, options, asked)


@dataclass(frozen=True, eq=False)
class Partition:
    """Which rows of a table a tree is trained and tested on."""

    train: Any  # positions in the table's order, as test
    test: Any
    y: Any  # the labels to train on
    clean: Any  # those before any was flipped

    @classmethod
    def of_all(cls, data: CsvTable) -> Partition:
        """All rows to train on, with the labels that they have."""
        import numpy as np

        rows = np.arange(len(data.y))
        return cls(rows, rows[:0], data.y, data.y)

    @property
    def flipped(self) -> Any:
        """Positions in the table of the training rows whose labels were flipped."""
        return self.train[(self.y != self.clean).astype(bool)]


def _partition(data: CsvTable, share: float, options: Mapping[str, Any]) -> Partition:
    """The rows, both parts in the table's order, with so many training labels flipped as was asked for."""
    import numpy as np

    from ..noise import flip_labels

    train = np.arange(len(data.y))
    test = train[:0]
    if share:
        from sklearn.model_selection import train_test_split

        seed = options["seed"] % 2**32
        try:
            parts = train_test_split(train, test_size=share, random_state=seed, stratify=data.y.astype(str))
        except ValueError as error:
            raise click.UsageError(
                f"{data.name}: a share of {share:g} of the {len(train)} rows cannot be held out with every class on both "
                f"sides ({str(error).split('. ')[0]}). Use --test-size 0 to train on all rows, or another share."
            ) from None
        train, test = map(np.sort, parts)
    y = clean = data.y[train]
    if options["flip"]:
        y = flip_labels(clean, options["flip"], options["seed"]).astype(object)
    return Partition(train, test, y, clean)


def _fit(
    data: CsvTable, rows: Partition, options: Mapping[str, Any], asked: list[type[KeyboardInterrupt]]
) -> int:
    import octsvm

    shown = SolveProgress(quiet=options["quiet"])
    arguments = {
        "formulation": options["formulation"],
        **shared.params_of(options),
        **shared.given_options(FIT, options),
        "scale": not options["no_scale"],
        "on_mismatch": "ignore",
        "weights": row_weights(rows.y, options["class_weight"]),
    }
    about = (
        f"{options['formulation']} on {data.name}: {plural(len(rows.train), 'row')} to train on, {len(rows.test)} to test on, "
        + plural(data.X.shape[1], "feature")
        + (f", {plural(len(rows.flipped), 'label')} flipped" if options["flip"] else "")
    )
    if not options["quiet"]:
        say(about)

    def watch(progress: Progress) -> bool:
        shown.update(progress)
        return bool(asked)

    if asked:
        raise asked[-1]
    with shared.spoken_warnings(), shared.clean_stdout(), shown, shared.named_table(data, rows.y):
        try:
            result = octsvm.fit(X=data.X.iloc[rows.train], y=rows.y, **arguments | {"callback": watch})
        except octsvm.CertificateMismatch as error:
            if error.result is None:
                raise
            result = error.result
    return finish(result, data, rows, options, f"{UNHELD} (--test-size {HELD_OUT} holds some out)")


def finish(
    result: Result,
    data: CsvTable,
    rows: Partition,
    options: Mapping[str, Any],
    unheld: str = UNHELD,
    folds: FoldAccuracy | None = None,
    more: Mapping[str, Any] | None = None,
) -> int:
    """Save the tree and show it, as text or as JSON with ``more`` in it; the exit code.

    ``unheld`` is said where no rows are held out; ``folds`` is kept in the file.
    """
    if result.tree is not None and data.preparation is not None:
        # The tree then takes the table's columns as they are in the file.
        result = replace(result, tree=result.tree.prepared_by(data.preparation))
    if result.tree is not None and options["out"] is not None:
        from . import fitted_file

        replace_text(options["out"], fitted_file.as_json(result, data, rows, options, folds))
    report = _report_of(data, result, rows)
    if options["as_json"]:
        shared.echo_json(result.to_dict() | report | dict(more or {}))
    else:
        click.echo(_text_of(result, report, unheld))
    return _verdict(result)


def _verdict(result: Result) -> int:
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


def _report_of(data: CsvTable, result: Result, rows: Partition) -> dict[str, Any]:
    """What the summary says of the table: rows, accuracies, relabelled rows."""
    tree, train, test = result.tree, rows.train, rows.test
    out: dict[str, Any] = {
        "table": data.name,
        "label": data.label,
        "train_rows": len(train),
        "test_rows": len(test),
        "flipped_rows": [int(i) for i in rows.flipped],
        "train_accuracy": None,
        "train_accuracy_before_flips": None,
        "test_accuracy": None,
        "most_frequent": None,
        "relabelled": [],
    }
    if tree is None:
        return out
    X, given = data.features(train), rows.y.tolist()  # labels that JSON takes, as numpy's own are not
    predicted = tree.predict(X)
    out["train_accuracy"] = float((predicted == rows.y).mean())
    if out["flipped_rows"]:
        out["train_accuracy_before_flips"] = float((predicted == rows.clean).mean())
    if len(test):
        out["test_accuracy"] = float((tree.predict(data.features(test)) == data.y[test]).mean())
    out["most_frequent"] = max(given.count(c) for c in tree.classes) / len(train)
    support, labels = supports(tree, X, given), predicted.tolist()
    out["relabelled"] = [
        {
            "row": int(train[r.row]),
            "node": int(r.node),
            "cost": float(r.cost),
            "support": float(support[r.row]),
            "line": None if data.lines is None else data.lines[train[r.row]],
            "given": given[r.row],
            "believed": next((c for c in tree.classes if c != given[r.row]), given[r.row]),
            "predicted": labels[r.row],
        }
        for r in getattr(tree, "relabelled", ())
    ]
    return out


def _text_of(result: Result, report: Mapping[str, Any], unheld: str) -> str:
    """The summary; ``unheld`` is said where no rows are held out."""
    from ..result import shown_cost

    said = result.summary().splitlines()
    tree = result.tree
    if tree is None:
        return "\n".join(said)
    notes = [line for line in said if line.startswith("note ")]
    lines = [line for line in said if not line.startswith(("note ", "counts "))]
    lines.insert(1, _label(tree, report))
    width = max(map(len, result.terms), default=0)
    lines += [
        f"{'' if k else 'costs':11}{shown_cost(value):<11} {name:{width}}  {words_of(result.terms, name)}".rstrip()
        for k, (name, value) in enumerate(result.terms.items())
    ]
    lines += [
        _counts(result, report),
        *notes,
        _accuracies(report, unheld),
        *_relabelled(tree, report),
        "",
        str(tree),
    ]
    return "\n".join([*lines, *_weights(tree)])


def _label(tree: Tree, report: Mapping[str, Any]) -> str:
    """The label's column, and what it holds."""
    few = len(tree.classes) <= 4
    return f"label      {report['label']}: " + (
        ", ".join(map(repr, tree.classes)) if few else f"{len(tree.classes)} different values"
    )


def _counts(result: Result, report: Mapping[str, Any]) -> str:
    splits, counts = int(result.tree.splits.sum()) if result.tree else 0, result.counts
    text = f"counts     {plural(splits, 'split')}"
    if "wrong_rows" in counts:
        text += f", {counts['wrong_rows']:.0f} of {plural(report['train_rows'], 'training row')} predicted otherwise than given"
    if counts.get("charged_otherwise"):
        text += f"; {counts['charged_otherwise']:.0f} of them charged for the side of a split that does not decide"
    return text


def _accuracies(report: Mapping[str, Any], unheld: str) -> str:
    text = f"accuracy   train {report['train_accuracy']:.4f} ({plural(report['train_rows'], 'row')})"
    if report["train_accuracy_before_flips"] is not None:
        text += f", {report['train_accuracy_before_flips']:.4f} of the labels before flipping"
    if report["test_accuracy"] is not None:
        text += f", test {report['test_accuracy']:.4f} ({plural(report['test_rows'], 'row')})"
    text += f"; the most frequent label alone {report['most_frequent']:.4f}"
    if report["test_accuracy"] is None:
        text += f"\n           {unheld}"
    return text


def _relabelled(tree: Tree, report: Mapping[str, Any], most: int = 12) -> list[str]:
    """The rows whose labels were given up, in the order of the report: the least supported first."""
    if not hasattr(tree, "relabelled"):
        return []
    cost: dict[int, float] = {}
    for r in report["relabelled"]:
        cost[r["row"]] = cost.get(r["row"], 0.0) + r["cost"]
    text = f"relabelled {plural(len(cost), 'row')}"
    flipped = set(report["flipped_rows"])
    if flipped:
        text += f" ({len(flipped & set(cost))} of the {len(flipped)} flipped ones among them)"
    one = {r["row"]: r for r in report["relabelled"]}
    lines = [text + (", whose labels look wrong to the model; the least supported first:" if cost else "")]
    for row in sorted(cost, key=lambda i: one[i]["support"])[:most]:
        r = one[row]
        where = f"row {row}" if r["line"] is None else f"line {r['line']}"
        lines.append(
            f"           {where}: given {r['given']!r}, believed {r['believed']!r}, support {r['support']:.2f}, cost {cost[row]:.4g}"
            + ("; given up at a split, and predicted as given" if r["predicted"] == r["given"] else "")
        )
    if len(cost) > most:
        lines.append(
            f"           and {len(cost) - most} more: octsvm suspects lists those of a saved tree, --json all"
        )
    return lines


def _weights(tree: Tree, most: int = 10) -> list[str]:
    """Weights of the splits in order of their effect."""
    from ..formulations.trees import printable

    lines = []
    for node, features in weights_of(tree):
        shown = ", ".join(f"{printable(name)} {scaled:.4g}" for name, scaled, _ in features[:most])
        rest = f", and {len(features) - most} smaller" if len(features) > most else ""
        lines.append(f"  split {node}: {shown}{rest}")
    return ["", "weights by effect, each over the feature's own range in training:", *lines] if lines else []
