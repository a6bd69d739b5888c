"""``octsvm read``."""

from __future__ import annotations

from typing import Any

import click

from . import options as shared
from .fit import Partition, finish

KINDS = ("asl", "cbc", "cplex", "glpk", "gurobi", "highs", "scip", "xpress")


@click.command(epilog=shared.FIT_EXIT_CODES)
@click.argument("table", type=shared.TABLE)
@click.argument("solution")
@shared.model_options
@shared.start_option("The --start that the model was written with.")
@click.option(
    "--kind",
    type=shared.Suggested("kind", KINDS),
    metavar="NAME",
    help=f"Who wrote SOLUTION: {', '.join(KINDS)}; found out by default.",
)
@click.option("--sidecar", metavar="MODEL.lp.json", help="The sidecar, where it is not beside SOLUTION.")
@click.option(
    "--bound", type=float, help="A lower bound on the objective that you trust, e.g. of the solver's log."
)
@click.option("--bound-source", metavar="TEXT", help="Whose bound that is; shown with the status.")
@shared.out_option("TREE.json", "Save the tree.")
@shared.json_option
def read(table: str, solution: str, **options: Any) -> int:
    """Read a solver's SOLUTION of a model that "octsvm write" wrote, check the tree in it, and show it.

    TABLE and the parameters are those of "octsvm write"; the sidecar that it left beside the model tells whether they
    are. Read are the solution files of AMPL solvers (Bonmin, Couenne, ...), SCIP, Gurobi, HiGHS, CPLEX, CBC, GLPK and
    Xpress. What a file says of its quality is no proof here.

    \b
    Examples:
      octsvm write iris --formulation oct --depth 1 --out iris.mps
      highs iris.mps --solution_file iris.sol
      octsvm read iris iris.sol --formulation oct --depth 1
    """
    import octsvm

    data = shared.load(table, options)
    with shared.spoken_warnings(), shared.clean_stdout():
        model = shared.build(data, options)
        result = octsvm.read_solution(
            model,
            solution,
            kind=options["kind"],
            sidecar=options["sidecar"],
            on_mismatch="ignore",
            bound=options["bound"],
            bound_source=options["bound_source"],
        )
    return finish(result, data, Partition.of_all(data), options)
