"""``octsvm suspects``, and the rows of a saved tree's table, which the report shows as well."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidData, InvalidParameter
from ..formulations.checks import plural
from ..formulations.replace_file import replace_text
from . import options as shared
from .csv_form import form_given
from .findings import Judged, judged
from .progress import signs_of_life

if TYPE_CHECKING:
    import pandas as pd

    from ..formulations.trees import Tree
    from .csv_tables import CsvTable
    from .fitted_file import FitRecord


def _values(given: str) -> tuple[str, list[Any]]:
    """``c1=1,3,10``: the name of a parameter and values of it."""
    read = shared.name_value("the name of a parameter")
    name, _, texts = given.partition("=")
    return name.strip(), [read(f"{name}={text}")[1] for text in texts.split(",")]


COST = "cost of giving up"
rows_options = shared.all_of(
    [
        click.option("--label", metavar="NAME", help="Column of the labels; that of the fit by default."),
        shared.form_options,
        click.option(
            "--keep", multiple=True, metavar="NAME|all",
            help="Column of the table to show beside each suspect, such as an identifier; once for each.",
        ),
    ]
)  # fmt: skip


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@click.argument("table", required=False, metavar="[DATA.csv]")
@shared.out_option("SUSPECTS.csv", "Write them there instead of to stdout.")
@rows_options
@click.option(
    "--over",
    multiple=True,
    type=shared.Suggested("name=values", read=_values),
    metavar="NAME=A,B,...",
    help="Fit a tree for each of these values of a parameter, in all combinations, and list the training rows that any of them "
    "predicts otherwise, those that most are against first.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --over: of each of the trees.",
)
@click.option(
    "--jobs", type=int, default=1, show_default=True, help="With --over: processes; -1 for all processors."
)
@shared.json_option
@shared.quiet_option
def suspects(tree: str, table: str | None, **options: Any) -> None:
    """List the rows whose labels a tree that "octsvm fit --out" saved gave up or predicts otherwise, as CSV.

    The least supported come first, each with the line of its file, the label given, the label believed, and the one predicted: a
    label may be given up at a split, and predicted in the end all the same. Support is how far
    a row lies on its given label's side of the split that decides, in margins (re_svm, octsvm), or the share of its label among
    the training rows of its leaf. DATA.csv is the table that the tree was fitted to; it is read from where it was then if it is
    left out.

    One tree at one price may err; --over asks trees at several, whose other parameters are those of the saved tree. Then "against"
    counts the trees that predict another label than the given one, and "trees" all that do not predict one class for all rows.

    \b
    Examples:
      octsvm suspects tree.json
      octsvm suspects tree.json --over c1=1,3,10 --over c2=2,6,20 --out suspects.csv
      octsvm suspects tree.json measurements.csv --keep plant --out suspects.csv
    """
    out = options["out"]
    with signs_of_life("reading the table", options["quiet"]):
        rows = rows_of(tree, table, options)
    against = _against(rows, options) if options["over"] else None
    if against is not None:
        # Those that most trees are against first, then those that the saved tree supports least.
        counts = against["against"]
        found = [rows.judged[i] for i in rows.trained if counts[i] > 0]
        found.sort(key=lambda s: (-counts[s.row], s.support))
        rows = replace(rows, suspects=found)
    text = form_given(options, rows.record).text_of(suspects_frame(rows, against).round(6))
    if out is not None:
        replace_text(out, text)
    if options["as_json"]:
        shared.echo_json({"suspects": listed_suspects(rows, against)}, "suspects")
    elif out is None:
        click.echo(text, nl=False)
    else:
        click.echo(
            f"written    {out}: {plural(len(rows.suspects), 'suspect')} among {plural(len(rows.y), 'row')}"
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """A tree, the record of its fit, and the table that it was fitted to; ``y`` are the labels that it was trained on."""

    tree: Tree
    record: FitRecord
    data: CsvTable
    X: Any
    y: list[Any]
    kept: pd.DataFrame
    trained: list[int]
    judged: list[Judged]
    suspects: list[Judged]

    @property
    def result(self) -> Mapping[str, Any]:
        """What is known of the fit."""
        return self.record.result

    @property
    def class_weight(self) -> dict[Any, float]:
        """Weight of each training row's errors, by its label."""
        y = [self.y[i] for i in self.trained]
        totals = self.record.node_weights[0]
        return {c: w / max(1, y.count(c)) for c, w in zip(self.tree.classes, totals, strict=False)}


def rows_of(path: str, table: str | None, options: Mapping[str, Any]) -> Rows:
    """The saved tree of the file ``path``, and its table: ``table``, or where it was read from then. Another one is refused."""
    from ..data import read_labels
    from ..formulations.base import table_digest
    from . import csv_tables as tables
    from .fitted_file import classifier_of
    from .predict import kept_columns, read_for

    tree, record = shared.read_fitted(path)
    if record is None:
        raise InvalidData(
            f"{path}: the file holds the tree alone, and nothing of its fit and table. Fit it again with --out."
        )
    name, label = table or record.table, options["label"] or record.label
    form = form_given(options, record)
    if options["out"] is not None:
        shared.require_no_input(options["out"], name)
    if name in tables.BUILT_IN:
        data = tables.load(name, seed=record.seed)
        if record.against_rest is not None:
            data = tables.against_rest(data, record.against_rest)
        kept = data.X[[]]
    elif table is None and not os.path.exists(name):
        raise InvalidData(
            f"{name}: the table that the tree was fitted to is not there, seen from this directory. Say where it is, behind {path}."
        )
    else:
        data = read_for(tree, record, name, form, label, record.against_rest, record.skip_unlabelled)
        kept = kept_columns(data, name, form, options["keep"]).loc[data.X.index]
    with data.located():
        X = tree.features_of(data.X)
    y = data.labels_like(tree.classes)
    out = set(record.test_rows)
    trained = [i for i in range(len(y)) if i not in out]
    for i, flipped in zip(record.flipped_rows, record.flipped_labels, strict=False):
        if i < len(y):
            y[i] = flipped
    classes, index = read_labels([y[i] for i in trained], len(trained))
    if table_digest(X[trained], classes, index) != record.result.get("table_digest"):
        raise InvalidData(
            f"{data.name}: this is not the table that the tree was fitted to, or it was changed since. Give that one: "
            "suspects are rows of it."
        )
    weights = classifier_of(tree, record).node_weights_
    every = judged(tree, X, y, weights, dict(enumerate(trained)))
    found = sorted((one for one in every if one.suspect), key=lambda s: s.support)
    return Rows(tree, record, data, X, y, kept, trained, every, found)


def _against(rows: Rows, options: Mapping[str, Any]) -> pd.DataFrame:
    """For each training row, how many ``trees`` over the grid there are, and how many are ``against`` its given label."""
    from sklearn.exceptions import ConvergenceWarning

    from ..estimators._base import OUR_NAMES
    from ..relabelling import suspect_rows
    from .fitted_file import estimator_of

    model = estimator_of(rows.record).set_params(
        time_limit=options["time_limit"], random_state=rows.record.seed, class_weight=rows.class_weight
    )
    known = list(rows.result.get("params") or {})
    strange = next((name for name, _ in options["over"] if name not in known), None)
    if strange is not None:
        raise InvalidParameter(
            f"--over {strange}: {rows.result.get('formulation')} has no such parameter; it has {', '.join(known)}."
        )
    if not rows.record.scale:
        raise InvalidParameter(
            "--over fits trees to scaled features, and this tree was fitted with --no-scale: its costs mean something else there. "
            "Fit it again without --no-scale, or leave --over out."
        )
    grid: dict[str, list[Any]] = {}
    for name, values in options["over"]:
        known_values = grid.setdefault(OUR_NAMES.get(name, name), [])
        known_values += [v for v in values if v not in known_values]
    trees = math.prod(map(len, grid.values()))
    if not options["quiet"]:
        shared.say(f"{plural(trees, 'tree')}, up to {options['time_limit']:g} s each")
    still = signs_of_life(f"fitting {plural(trees, 'tree')}", options["quiet"])
    with still, shared.spoken_warnings(), shared.clean_stdout():
        warnings.simplefilter("ignore", ConvergenceWarning)  # proofs are not what is asked for
        found = suspect_rows(
            model, grid, rows.X[rows.trained], [rows.y[i] for i in rows.trained], n_jobs=options["jobs"]
        )
    found.index = rows.trained
    return found


def suspects_frame(rows: Rows, against: pd.DataFrame | None = None) -> pd.DataFrame:
    """The suspects, one a row: where each stands, the columns kept, labels given and believed, support, and its part.

    ``against`` has columns to show besides, by row.
    """
    import pandas as pd

    from .predict import require_distinct

    held = set(rows.record.test_rows)
    places = [s.row for s in rows.suspects]
    columns = {
        "given": [s.given for s in rows.suspects],
        "believed": [s.believed for s in rows.suspects],
        "predicted": [s.predicted for s in rows.suspects],
        "support": [s.support for s in rows.suspects],
        COST: [s.cost for s in rows.suspects],
        "part": ["held out" if i in held else "training" for i in places],
    }
    if all(cost is None for cost in columns[COST]):
        del columns[COST]
    if against is not None:
        columns |= {name: against.loc[places, name].tolist() for name in ("against", "trees")}
    lines = rows.data.lines
    where = {"row": places} if lines is None else {"line": [lines[i] for i in places]}
    require_distinct(rows.data.name, rows.kept, (*where, *columns))
    kept = rows.kept.iloc[places].reset_index(drop=True)
    return pd.concat([pd.DataFrame(where), kept, pd.DataFrame(columns)], axis=1)


def listed_suspects(rows: Rows, against: pd.DataFrame | None = None) -> list[dict[str, Any]]:
    """The suspects for JSON: ``row`` counts the table's rows from 0, ``line`` is that of its file."""
    lines, out = rows.data.lines, []
    for s in rows.suspects:
        more = {} if against is None else {name: int(against[name][s.row]) for name in ("against", "trees")}
        out.append(s._asdict() | {"line": None if lines is None else lines[s.row]} | more)
    return out
