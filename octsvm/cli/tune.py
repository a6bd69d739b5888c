"""``octsvm tune``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..errors import OutputNotWritable, unhidden_interrupts
from ..options import FIT
from . import options as shared
from .fit import UNHELD, Partition, finish
from .progress import signs_of_life
from .table_preparation import row_weights

if TYPE_CHECKING:
    import pandas as pd

    from ..tuning import Tuning
    from .csv_tables import CsvTable

SHOWN = 5  # settings in the summary


@click.command(epilog=shared.FIT_EXIT_CODES)
@click.argument("table", default="toy", type=shared.TABLE)
@shared.table_options
@shared.formulation_options
@click.option(
    "--rule",
    type=click.Choice(["one_standard_error", "best"]),
    default="one_standard_error",
    show_default=True,
    help="The smallest depth within one standard error of the best, or the best.",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds of a repetition.")
@click.option(
    "--repeats", type=click.IntRange(1), help="Repetitions; so many that 400 rows are judged, twice at most."
)
@click.option(
    "--prior-rows", type=click.FloatRange(0), help="How many rows the prior counts; 20 for each column."
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 for all processors.")
@click.option("--store", metavar="FOLDS.jsonl", help="Keep finished folds here, and go on from them.")
@shared.scale_option
@shared.solve_options(FIT, "start")
@shared.out_option("TREE.json", "Save the tree.")
@shared.json_option
@shared.quiet_option
def tune(table: str, **options: Any) -> int:
    """Choose costs and depth for TABLE by repeated folds, fit all of its rows with them, and show the tree.

    A parameter that is given, such as --depth 1 or --alpha 2, is kept, in the folds as in the last fit; a cost means what it
    means for octsvm fit. The time limit holds for everything: half of it, at most, is for the folds. Other limits are
    those of the last fit. Missing values are filled
    and categories read as for fit, on all rows, before there are folds; labels play no part in that.

    \b
    Examples:
      octsvm tune measurements.csv --label species --jobs 2 --out tree.json
      octsvm tune breast_cancer --formulation re_svm --store folds.jsonl
      octsvm tune toy --depth 0 --c2 100 --folds 2 --repeats 1 --time-limit 20
    """
    import octsvm

    out, store = options["out"], options["store"]
    if out is not None and store is not None and os.path.realpath(out) == os.path.realpath(store):
        raise OutputNotWritable(
            f"{out}: --store and --out name one file, and the tree would replace the folds. Name two."
        )
    data = shared.load(table, options)
    weights = row_weights(data.y, options["class_weight"])
    # On a terminal there is a bar from the beginning.
    still = signs_of_life("fitting folds, then all rows", options["quiet"] or sys.stderr.isatty())
    try:
        with (
            unhidden_interrupts(),
            still,
            shared.spoken_warnings(),
            shared.clean_stdout(),
            shared.named_table(data, data.y),
        ):
            found = octsvm.tune(
                options["formulation"],
                data.X,
                data.y,
                weights=weights,
                scale=not options["no_scale"],
                progress=not options["quiet"],
                on_mismatch="ignore",
                **{
                    name: options[name]
                    for name in ("rule", "folds", "repeats", "prior_rows", "jobs", "store")
                },
                **shared.params_of(options),
                **shared.given_options(FIT, options),
            )
    except KeyboardInterrupt:
        shared.say(_kept(store))
        raise
    notes = (note.replace("octsvm.suspect_rows", "octsvm suspects TREE.json --over") for note in found.notes)
    return _tell(data, replace(found, notes=tuple(notes)), options)


def _kept(store: str | None) -> str:
    """What is left of the folds of a tuning that was interrupted."""
    if store is None:
        return "Finished folds are lost; --store FOLDS.jsonl keeps them."
    if os.path.exists(store) and os.path.getsize(store):
        return f"Finished folds are in {store}: the same command goes on from there."
    return f"No fold was finished, so there is none in {store}."


def _tell(data: CsvTable, found: Tuning, options: Mapping[str, Any]) -> int:
    import numpy as np

    from .fitted_file import FoldAccuracy

    assert found.result is not None
    judged = None
    error = None if np.isnan(found.accuracy_error) else found.accuracy_error
    if not np.isnan(found.accuracy):
        judged = FoldAccuracy(accuracy=found.accuracy, standard_error=error, rule=found.rule)
    settings = found.frame()
    if not options["as_json"]:
        click.echo(f"{found}\n" if judged is None else f"{found}\n\n{_table(settings)}\n")
    tuning = {
        "choice": found.choice,
        "rule": found.rule,
        "accuracy": None if judged is None else found.accuracy,
        "accuracy_error": error,
        "settings": json.loads(settings.to_json(orient="records")),
    }
    unheld = UNHELD if judged is None else str(judged)
    return finish(found.result, data, Partition.of_all(data), options, unheld, judged, {"tuning": tuning})


def _table(settings: pd.DataFrame) -> str:
    """The best settings and the chosen one: plain costs, as octsvm fit takes them, then relative ones in brackets."""
    import numpy as np

    best = settings.sort_values("score", ascending=False, kind="stable")
    best = best[best["chosen"] | (np.arange(len(best)) < SHOWN)]
    plain = [name for name in map(str, best) if name.startswith("plain_")]
    relative = [name.removeprefix("plain_") for name in plain]
    others = [name for name in best if name not in (*plain, *relative)]
    first = [*(["depth"] if "depth" in others else []), *plain, *relative]
    shown = best[[*first, *(name for name in others if name not in first)]].rename(
        columns={
            "accuracy_error": "\u00b1",
            "standard_error": "\u00b1 of difference",
            **{f"plain_{name}": name for name in relative},
            **{name: f"({name})" for name in relative},
        }
    )
    said = "best scores" + ("; in brackets relative costs" if plain else "")
    return f"{said}\n{shown.to_string(index=False, float_format=lambda v: f'{v:.4g}')}"
