"""``octsvm size``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..formulations.checks import plural
from . import options as shared

if TYPE_CHECKING:
    from ..diagnostics.model_size import Size


@click.command(epilog=shared.EXIT_CODES)
@click.argument("table", required=False, type=shared.TABLE)
@click.option("--n", type=int, metavar="ROWS", help="Rows, in place of a table.")
@click.option("--p", type=int, metavar="FEATURES", help="Features, in place of a table.")
@click.option("--k", type=int, metavar="CLASSES", help="Classes, in place of a table.  [default: 2]")
@shared.model_options
@shared.json_option
def size(table: str | None, **options: Any) -> None:
    """Tell how large a model gets, without building it, and whether to expect a proof.

    Give a TABLE, or --n and --p (and --k). Variables that are fixed are not counted. From --n and --p every value of
    the table counts as a nonzero; from a TABLE its zeros are taken off.

    \b
    Examples:
      octsvm size --n 200 --p 10 --depth 2
      octsvm size --n 150 --p 4 --k 3 --formulation oct --depth 3
      octsvm size iris --formulation oct_h --depth 2 --json
    """
    from ..diagnostics import model_size as sizes

    form, params = options["formulation"], shared.params_of(options)
    shape = {name: options[name] for name in ("n", "p", "k") if options[name] is not None}
    if table is None:
        missing = [f"--{name}" for name in ("n", "p") if name not in shape]
        if missing:
            raise click.UsageError(
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Give a table, or --n and --p "
                "(and --k, 2 by default)."
            )
        found = sizes.of_shape(form, **shape, **params)
    else:
        if shape:
            raise click.UsageError(
                f"--{next(iter(shape))} and the table {table} exclude each other: the table has its own counts. "
                "Leave one of them out."
            )
        data = shared.load(table, options)
        with shared.named_table(data, data.y):
            found = sizes.of_table(form, data.X, data.y, scale=not options["no_scale"], **params)
    expect = sizes.expectation(found, params)
    if options["as_json"]:
        shared.echo_json(found.to_dict() | {"params": params} | expect, "size")
    else:
        _print(found, params, expect["advice"])


def _print(found: Size, params: dict[str, Any], advice: str) -> None:
    import textwrap

    given = "".join(f", {k}={v}" for k, v in params.items())
    cones = f", {found.cones} of them second-order cones" if found.cones else ""
    about = "" if found.exact else ", every value of the table counted as one"
    lines = [
        f"{found.formulation}{given} on {plural(found.n, 'row', ',')}, {plural(found.p, 'feature', ',')}, {found.k} classes",
        f"class      {found.problem}",
        f"variables  {found.variables:,} ({found.binaries:,} binary, {found.continuous:,} continuous)",
        f"rows       {found.rows:,}{cones}",
        f"nonzeros   {found.nonzeros:,}{about}",
    ]
    wrapped = textwrap.wrap(advice, 100, initial_indent="advice     ", subsequent_indent=" " * 11)
    click.echo("\n".join([*lines, *wrapped]))
