"""``octsvm plan``."""

from __future__ import annotations

from typing import Any

import click

from ..options import PLAN
from . import options as shared


@click.command(epilog=shared.SOLVER_EXIT_CODES)
@click.argument("table", type=shared.TABLE)
@shared.solve_options(PLAN)
@shared.model_options
@shared.lowering_start
@shared.json_option
def plan(table: str, **options: Any) -> None:
    """Say how the model of TABLE would be solved, and why: which solver, what is rewritten, which limits bind.

    The model of all rows of TABLE is built, and nothing is solved. Without --solver it is what "octsvm fit" does without one:
    HiGHS, or our own search where that takes the model. With --solver auto it is the first of the table's
    preferences that is installed, proves this class of model, and whose licence takes its size.

    \b
    Examples:
      octsvm plan iris --formulation oct --depth 2
      octsvm plan toy --depth 1 --solver auto
      octsvm plan measurements.csv --label species --formulation re_svm --json
    """
    import octsvm

    data = shared.load(table, options)
    found = octsvm.plan(shared.build(data, options), **shared.given_options(PLAN, options))
    if options["as_json"]:
        shared.echo_json(found.to_dict())
    else:
        click.echo(str(found))
