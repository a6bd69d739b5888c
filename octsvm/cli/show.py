"""``octsvm show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import options as shared
from .options import OK

if TYPE_CHECKING:
    from rich.tree import Tree as Picture

    from ..formulations.trees import Tree


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json", type=click.Path())
@shared.weights_option(
    6, "How many of an oblique split's weights to print, the largest first; --json has all of them."
)
@click.option("--text", "as_text", is_flag=True, help="Indented plain text, one line a branch.")
@shared.json_option
def show(tree: str, units: Any, most: int, as_text: bool, as_json: bool) -> int:
    """Show a tree that "octsvm fit --out" saved: a picture, indented text, or JSON.

    Branches say what holds there of the sum or the feature of their node. Long ones are wrapped to the width of the
    terminal (of COLUMNS elsewhere, 80 by default).

    \b
    Examples:
      octsvm show tree.json
      octsvm show tree.json --units scaled --weights 3
      octsvm show tree.json --text > tree.txt
      octsvm show tree.json --json
    """
    if as_text and as_json:
        raise click.UsageError("--text and --json exclude each other: leave one of them out.")
    fitted = shared.read_tree(tree)
    if as_json:
        shared.echo_json(_content(fitted, units))
        return OK
    click.echo(_header(fitted, units) + "\n")
    if as_text:
        click.echo(fitted.to_text(units, most))
        return OK
    console = shared.console()
    console.print(_picture(fitted, 1, units, most, None, ""))
    return OK


def _header(tree: Tree, units: str) -> str:
    kind = {"axis": "axis-parallel", "kernel_margin": "margin"}.get(tree.kind, tree.kind)
    levels = tree.depth + tree.kind.endswith("margin")
    count = int(tree.splits.sum())
    lines = [
        f"{kind} tree, {levels} level{'' if levels == 1 else 's'} of splits, {count} split{'' if count == 1 else 's'}, "
        f"{len(tree.feature_names)} features, {_space(tree, units)}",
        "classes: " + ", ".join(repr(c) for c in tree.classes),
    ]
    relabelled = getattr(tree, "relabelled", ())
    if relabelled:
        rows = sorted({r.row for r in relabelled})
        shown = ", ".join(map(str, rows[:12])) + (", ..." if len(rows) > 12 else "")
        lines.append(
            f"relabelled rows ({len(rows)}, counted among the training rows, not the table's): {shown}"
        )
    return "\n".join(lines)


def _space(tree: Tree, units: str) -> str:
    """What the splits are made in."""
    from ..formulations.trees import KernelTree

    return f"kernel {tree.kernel.describe()}" if isinstance(tree, KernelTree) else f"{units} units"


def _picture(tree: Tree, t: int, units: Any, most: int, side: int | None, way: str) -> Picture:
    from rich.text import Text
    from rich.tree import Tree as Picture

    from ..exports._outline import question
    from ..formulations.heap import children

    label = Text(way, style="dim")
    if not tree._splits_at(t):
        label.append(f"class {tree.classes[tree._class_below(t, side)]!r}", style="bold green")
        return Picture(label)
    label.append(f"[{t}] ", style="cyan")
    asked, *sides = question(*tree._condition(t, units, most))
    label.append(asked)
    picture = Picture(label, guide_style="dim")
    for side, (child, holds) in enumerate(zip(children(t), sides, strict=True)):
        picture.children.append(_picture(tree, child, units, most, side, f"{holds}: "))
    return picture


def _content(tree: Tree, units: Any) -> dict[str, Any]:
    from ..formulations.heap import children
    from ..formulations.trees import KernelTree, MarginTree

    kernel = isinstance(tree, KernelTree)
    W, b = (tree.alpha, tree.omega0) if kernel else tree.weights(units)  # type: ignore[attr-defined]
    nodes: list[dict[str, Any]] = []

    def named(row: Any) -> dict[str, float]:
        return {n: float(w) for n, w in zip(tree.feature_names, row, strict=True) if w != 0}

    def visit(t: int, side: int | None) -> None:
        if not tree._splits_at(t):
            nodes.append({"node": t, "class": tree.classes[tree._class_below(t, side)]})
            return
        rule: dict[str, Any] = {"alpha": W[t - 1].tolist()} if kernel else {"weights": named(W[t - 1])}
        # A margin tree's rule is score = weights + intercept < 0; one form for all kinds is easier to use.
        threshold = float(-b[t - 1] if isinstance(tree, MarginTree) else b[t - 1])
        left, right = children(t)
        nodes.append({"node": t, **rule, "below": threshold, "yes": left, "no": right})
        visit(left, 0)
        visit(right, 1)

    visit(1, None)
    return {
        "schema": "octsvm.shown_tree",
        "version": 1,
        "kind": tree.kind,
        "depth": tree.depth,
        "units": "scaled" if kernel else units,
        "classes": list(tree.classes),
        "features": list(tree.feature_names),
        **({} if tree.preparation is None else {"preparation": tree.preparation.to_dict()}),
        **({"kernel": tree.kernel.to_dict(), "support": tree.support.tolist()} if kernel else {}),  # type: ignore[attr-defined]
        "nodes": nodes,
        "relabelled": [
            {"row": r.row, "node": r.node, "cost": r.cost} for r in getattr(tree, "relabelled", ())
        ],
    }
