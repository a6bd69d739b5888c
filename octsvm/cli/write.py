"""``octsvm write``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from . import options as shared


@click.command(epilog=shared.EXIT_CODES)
@click.argument("table", type=shared.TABLE)
@shared.out_option("MODEL.lp|.nl|.mps", "The file; its ending is the format.", required=True)
@shared.model_options
@shared.lowering_start
@click.option(
    "--compact", is_flag=True, help="Generic names (x1, c1, ...): smaller files, written in less time."
)
@click.option(
    "--no-sidecar", is_flag=True, help="Leave out MODEL.json, which says which variable each column is."
)
@click.option(
    "--solver", metavar="NAME", help="Which solver the file is for: a warning says where it does not take it."
)
@shared.json_option
def write(table: str, **options: Any) -> None:
    """Build the model of TABLE and write it to a file for a solver elsewhere; nothing is solved.

    All rows of TABLE are used. Names in the file are those of the model, as in split_a(1_0) for split.a[1,0]: node 1, feature 0.
    Classes and features appear as numbers from 0; the list of both is printed. An .nl file holds no names: they go
    to MODEL.row and MODEL.col beside it, unless --compact is given. MODEL.lp.json, beside MODEL.lp, says which variable
    each column is and where the model came from: "octsvm read" takes a solver's answer back with it.

    MODEL.mst hands the tree of --start to the solver (an .nl file holds it itself).

    \b
    Examples:
      octsvm write iris --formulation oct --depth 2 --out iris.lp
      octsvm write measurements.csv --label species --formulation oct_h --out model.nl
      octsvm write toy --norm l1 --depth 1 --compact --out toy.mps
    """
    import octsvm

    from ..files import write as export
    from ..problem_class import classify

    out = options["out"]
    export.format_of(out)
    data = shared.load(table, options)
    model = shared.build(data, options)
    problem = classify(model)
    with shared.spoken_warnings():
        written = octsvm.write(
            model,
            out,
            compact=options["compact"],
            sidecar=not options["no_sidecar"],
            solver=options["solver"],
            start=options["start"],
        )
    files = [str(p) for p in export.files_of(written)]
    classes, features = list(model.info.data.classes), list(model.info.data.feature_names)
    if options["as_json"]:
        content = {
            "files": files,
            "formulation": options["formulation"],
            "params": model.info.params.model_dump(),
            "class": problem.name,
            "variables": problem.variables,
            "binaries": problem.binaries,
            "rows": problem.rows,
            "classes": classes,
            "features": features,
            "names": "generic" if options["compact"] else "readable",
        }
        shared.echo_json(content, "written")
        return
    click.echo(f"written    {', '.join(files)}")
    click.echo(f"model      {options['formulation']}: {problem}")
    click.echo(f"classes    {_numbered(classes)}")
    click.echo(f"features   {_numbered(features)}")


def _numbered(names: Sequence[Any], most: int = 20) -> str:
    shown = ", ".join(f"{k} = {name!r}" for k, name in enumerate(names[:most]))
    return shown + (f", ... ({len(names)} in all; --json lists them)" if len(names) > most else "")
