"""``octsvm predict``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from . import options as shared
from .options import OK, say

if TYPE_CHECKING:
    from .csv_tables import CsvTable


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@click.argument("table", metavar="DATA.csv")
@click.option("--label", metavar="NAME", help="Column of known labels: the accuracy is shown as well.")
@click.option("--separator", default=",", show_default=True, help="What separates the columns of DATA.csv.")
@click.option("--decimal", default=".", show_default=True, help="The decimal sign of DATA.csv: '.' or ','.")
@click.option(
    "--against-rest", metavar="CLASS", help="As for fit: known labels other than CLASS are its rest."
)
@click.option("--out", metavar="PREDICTIONS.csv", help="Write the predictions there instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def predict(tree: str, table: str, **options: Any) -> int:
    """Predict the class of every row of DATA.csv with a tree that "octsvm fit --out" saved.

    Columns are picked by their names, in any order; others are ignored. The predictions are a CSV column called
    "prediction", one line a row.

    \b
    Examples:
      octsvm predict tree.json new.csv
      octsvm predict tree.json measurements.csv --label species --out predictions.csv
    """
    from ..errors import InvalidData
    from . import csv_tables as tables

    out, as_json, rest = options["out"], options["as_json"], options["against_rest"]
    if out is not None:
        shared.require_writable(out)
    fitted = shared.read_tree(tree)
    form = {name: options[name] for name in ("label", "separator", "decimal")}
    known = fitted.preparation
    columns = [] if known is None else [c for c in known.columns if c.kind != "number"]
    data = tables.read_table(
        table,
        labelled=False,
        as_text=[c.name for c in columns],
        missing=() if known is None else known.missing,
        **form,
    )
    if rest is not None and data.y is not None:
        data = tables.against_rest(data, rest)
    if known is None:
        numbers = gaps = fitted.feature_names
    else:
        numbers = tuple(c.name for c in known.columns if c.kind == "number")
        gaps = tuple(c.name for c in known.columns if c.fill is None)
    data.check_cells(numbers, needed=True)
    data.check_gaps(gaps, needed=True)
    try:
        with shared.spoken_warnings():
            predictions = fitted.predict(data.X).tolist()
    except InvalidData as error:
        raise InvalidData(data.located(str(error))) from None
    accuracy = None
    if data.y is not None:
        accuracy = _share_right(data, predictions, fitted.classes)
    if out is not None or not as_json:
        csv_text = _as_csv(predictions)
        if out is not None:
            shared.write_text(out, csv_text)
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


def _share_right(data: CsvTable, predictions: Sequence[Any], classes: Sequence[Any]) -> float:
    from ..errors import InvalidData

    known = data.labels_like(classes)
    strange = [v for v in known if v not in classes]
    if len(strange) == len(known):
        close = difflib.get_close_matches(str(strange[0]), [str(c) for c in classes], n=1)
        raise InvalidData(
            f"{data.name}: the column {data.label!r} holds labels such as {strange[0]!r}, and the tree knows "
            f"{', '.join(map(repr, classes))}."
            + (f" Did you mean {close[0]!r}?" if close else " Is it the column of the labels?")
        )
    if strange:
        say(
            f"Warning: {data.name}: {len(strange)} rows have labels that the tree does not know, such as {strange[0]!r}; "
            "they count as wrong."
        )
    return sum(p == k for p, k in zip(predictions, known, strict=True)) / len(known)


def _as_csv(predictions: Sequence[Any]) -> str:
    import pandas as pd

    return str(pd.DataFrame({"prediction": predictions}).to_csv(index=False, lineterminator="\n"))
