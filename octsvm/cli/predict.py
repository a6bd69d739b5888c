"""``octsvm predict``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidData
from ..formulations.checks import listed, nearest, plural
from ..formulations.replace_file import replace_text
from . import options as shared
from . import table_remarks
from .csv_form import CsvForm, form_given
from .options import say
from .progress import signs_of_life
from .table_preparation import ALL, named

if TYPE_CHECKING:
    import pandas as pd

    from ..formulations.trees import Tree
    from .csv_tables import CsvTable
    from .fitted_file import FitRecord


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@click.argument("table", metavar="DATA.csv")
@click.option("--label", metavar="NAME", help="Column of known labels: the accuracy is shown as well.")
@shared.form_options
@click.option(
    "--against-rest",
    metavar="CLASS",
    help="Known labels other than CLASS are its rest; as in the fit by default.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar=f"NAME|{ALL}",
    help="Column of DATA.csv to write in front of the prediction, such as an identifier; once for each.",
)
@click.option(
    "--proba",
    is_flag=True,
    help="A column for each class besides: its share of the training weight in the row's leaf; of re_svm and octsvm "
    "1/(1 + exp(-score)), which orders the rows and is no frequency.",
)
@shared.out_option("PREDICTIONS.csv", "Write the predictions there instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@shared.quiet_option
def predict(tree: str, table: str, **options: Any) -> None:
    """Predict the class of every row of DATA.csv with a tree that "octsvm fit --out" saved.

    Columns are picked by their names, in any order; others are ignored. The predictions are a CSV column called
    "prediction", one line a row.

    Categories, dates and missing values are read as in the training table; and so is how numbers are
    written (separator, decimal sign, thousands, signs beside numbers), where that is not given.

    \b
    Examples:
      octsvm predict tree.json new.csv
      octsvm predict tree.json measurements.csv --label species --out predictions.csv
      octsvm predict tree.json new.csv --keep customer --proba --out predictions.csv
    """
    out, as_json = options["out"], options["as_json"]
    with signs_of_life(f"reading {table}", options["quiet"]):
        fitted, record = shared.read_fitted(tree)
        form = form_given(options, record)
        rest = options["against_rest"] or (record.against_rest if record else None)
        data = read_for(fitted, record, table, form, options["label"], rest)
        predictions, shares = _predicted(fitted, record, data, form, options["proba"], tree)
    accuracy, judged = (None, 0) if data.y is None else share_right(data, predictions, fitted.classes)
    if out is not None or not as_json:
        frame = kept_columns(data, table, form, options["keep"])
        columns = {"prediction": predictions}
        if shares is not None:
            columns |= {f"probability of {c}": shares[:, k].round(6) for k, c in enumerate(fitted.classes)}
        require_distinct(data.name, frame, columns)
        text = form.text_of(frame.assign(**columns))
        if out is not None:
            replace_text(out, text)
            if not as_json:
                click.echo(f"written    {out}: {plural(len(predictions), 'row')}{_filled(fitted, data)}")
        else:
            click.echo(text, nl=False)
    if as_json:
        content = {"rows": len(predictions), "accuracy": accuracy, "predictions": predictions}
        if shares is not None:
            content |= {"classes": list(fitted.classes), "probabilities": shares.tolist()}
        shared.echo_json(content, "predictions")
    elif accuracy is not None:
        # Beside the predictions, stdout has no room for anything else.
        click.echo(f"accuracy {accuracy:.4f} on {plural(judged, 'row')}", err=out is None)


def read_for(
    fitted: Tree,
    record: FitRecord | None,
    table: str,
    form: CsvForm,
    label: str | None,
    rest: str | None,
    skip_unlabelled: bool = False,
) -> CsvTable:
    """The file ``table`` with the columns that a tree needs, and its labels where ``label`` names their column."""
    from . import csv_tables as tables

    known = fitted.preparation
    if known is None:
        numbers = gaps = fitted.feature_names
    else:
        numbers = tuple(c.name for c in known.columns if c.kind == "number")
        gaps = tuple(c.name for c in known.columns if c.fill is None)
    data = tables.read_table(
        table,
        label=label,
        labelled=False,
        as_text=[] if known is None else [c.name for c in known.columns if c.kind != "number"],
        missing=(*(known.missing if known else ()), *(record.missing if record else ())),
        form=form,
    )
    if skip_unlabelled:
        data = tables.labelled_only(data)
    if rest is not None and data.y is not None:
        data = tables.against_rest(data, rest)
    _require_columns(fitted, data, form)
    data.check_needed(numbers, gaps)
    return data


def _require_columns(fitted: Tree, data: CsvTable, form: CsvForm) -> None:
    """Refuse a table without the columns that a tree was trained on; one of its features, made elsewhere, will do as well."""
    from ..formulations.read_matrix import MadeUpNames, UndecidedNames
    from .table_columns import other_separator

    names, header = fitted.feature_names, list(data.X.columns)
    wanted = names if fitted.preparation is None else [c.name for c in fitted.preparation.columns]
    missing = [c for c in wanted if c not in header]
    if not missing or set(names) <= set(header) or isinstance(names, (MadeUpNames, UndecidedNames)):
        return
    if data.label in missing:
        raise InvalidData(
            f"{data.name}: the tree was trained on the column {data.label!r}, and --label takes it for the labels. Leave that out."
        )
    raise InvalidData(
        f"{data.name}, line 1: there is no column {missing[0]!r}, which the tree was trained on"
        + (f", nor {len(missing) - 1} more of its columns." if len(missing) > 1 else ".")
        + (other_separator(header, form.separator) or table_remarks.nearest(missing[0], header))
        + f" Its columns are: {listed(header)}."
    )


def _predicted(
    fitted: Tree, record: FitRecord | None, data: CsvTable, form: CsvForm, proba: bool, path: str
) -> tuple[list[Any], Any]:
    """The labels, and where they are asked for the probabilities (m, K)."""
    if proba and record is None:
        raise InvalidData(
            f"{path}: the file holds the tree alone, and --proba needs what its training rows were. Fit it again with --out."
        )
    with shared.spoken_warnings(), data.located():
        X = fitted.features_of(data.X)
    _warn_of_far_values(fitted, data, X, form)
    if not proba or record is None:
        return fitted.predict(X).tolist(), None
    from .fitted_file import classifier_of

    return fitted.predict(X).tolist(), classifier_of(fitted, record).predict_proba(X)


def _warn_of_far_values(fitted: Tree, data: CsvTable, X: Any, form: CsvForm) -> None:
    """Say which numbers lie farther from the training rows' than those are from each other: they may be read wrongly."""
    import numpy as np

    low, span = fitted.scaling.low, fitted.scaling.span
    if not low.any() and (span == 1).all():
        return  # features were taken as they are, and nothing says of which size they were
    columns = () if fitted.preparation is None else fitted.preparation.columns
    numbers = [c.kind == "number" for c in columns for _ in c.features] or [True] * len(low)
    far = (np.abs(X - low - span / 2) > 1.5 * span) & (span > 0) & numbers
    if not far.any():
        return
    j, *others = np.flatnonzero(far.any(axis=0))
    i = int(far[:, j].argmax())
    line, sign = "" if data.lines is None else f", line {data.lines[i]}", form.writing.thousands
    also = [fitted.feature_names[k] for k in others]
    say(
        f"Warning: {data.name}{line}: column {fitted.feature_names[j]!r} holds {X[i, j]:.6g} ({plural(far[:, j].sum(), 'such row')}), far "
        f"outside the {low[j]:.6g} to {low[j] + span[j]:.6g} of training"
        + (f"; so does {listed(also)}. " if also else ". ")
        + (
            f"{sign!r} is read as what separates thousands: if it is the decimal sign here, give that (--decimal {sign})."
            if sign in (".", ",")
            else "Is it in the same unit there?"
        )
    )


def _filled(fitted: Tree, data: CsvTable) -> str:
    """How many rows had a missing value that the tree's rules filled in; "" where none had."""
    import numpy as np

    known = fitted.preparation
    gaps = [known.gaps(data.X[c.name]) for c in known.columns if c.name in data.X] if known else []
    count = int(np.any(gaps, axis=0).sum())
    return f", {count} of them with missing values filled in" if count else ""


def share_right(data: CsvTable, predictions: Sequence[Any], classes: Sequence[Any]) -> tuple[float, int]:
    """Share of the rows with a label whose label is predicted, and how many have one; refused where none is of the ``classes``."""
    labels = data.labels_like(classes)
    pairs = [(p, k) for p, k in zip(predictions, labels, strict=True) if k is not None]
    known = [k for _, k in pairs]
    if not known:
        raise InvalidData(
            f"{data.name}: no row has a label in {data.label!r}. Name another column (--label), or leave --label out."
        )
    if len(known) < len(labels):
        say(
            f"Warning: {data.name}: {len(labels) - len(known)} of the {len(labels)} rows have no label; the accuracy leaves them out."
        )
    strange = [v for v in known if v not in classes]
    if len(strange) == len(known):
        raise InvalidData(
            f"{data.name}: the column {data.label!r} holds labels such as {strange[0]!r}, and the tree knows "
            f"{', '.join(map(repr, classes))}."
            + (nearest(strange[0], classes) or " Is it the column of the labels?")
        )
    if strange:
        say(
            f"Warning: {data.name}: labels that the tree does not know, such as {strange[0]!r}, count as wrong "
            f"({plural(len(strange), 'row')})."
        )
    return sum(p == k for p, k in pairs) / len(known), len(known)


def kept_columns(data: CsvTable, table: str, form: CsvForm, names: Sequence[str]) -> pd.DataFrame:
    """The columns to keep, as they are written in the file."""
    from . import csv_tables as tables

    if not names:
        return data.X[[]]
    header = list(tables.read_table(table, labelled=False, form=form).X.columns)
    every = ALL in names and ALL not in header
    wanted = header if every else named(data.name, header, names, "keep")
    return tables.read_table(table, labelled=False, as_text=wanted, form=form).X[wanted]


def require_distinct(name: str, kept: pd.DataFrame, written: Iterable[str]) -> None:
    """Refuse columns to keep that are named like one that is ``written`` beside them."""
    twice = next((c for c in written if c in kept.columns), None)
    if twice is not None:
        raise InvalidData(
            f"{name}: there is a column {twice!r} already, and --keep would write two of them. Name others."
        )
