"""``octsvm show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..formulations.checks import plural
from . import options as shared

if TYPE_CHECKING:
    from rich.tree import Tree as Picture

    from ..formulations.outline import Leaf, Split
    from ..formulations.trees import Tree


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json", type=click.Path())
@shared.weights_option(
    6, "How many of an oblique split's weights to print, the largest first; --json has all of them."
)
@click.option("--text", "as_text", is_flag=True, help="Indented plain text, one line a branch.")
@shared.json_option
def show(tree: str, units: Any, most: int, as_text: bool, as_json: bool) -> None:
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
        shared.echo_json(_content(fitted, units), "shown_tree")
        return
    click.echo(_header(fitted, units) + "\n")
    if as_text:
        click.echo(fitted.to_text(units, most))
        return
    from ..formulations.outline import outline

    shared.console().print(_picture(fitted, outline(fitted, units), most))


def _header(tree: Tree, units: str) -> str:
    from ..formulations.trees import KernelTree

    kind = {"axis": "axis-parallel", "kernel_margin": "margin"}.get(tree.kind, tree.kind)
    levels = tree.depth + tree.kind.endswith("margin")
    count = int(tree.splits.sum())
    parts = [f"kernel {tree.kernel.describe()}"] if isinstance(tree, KernelTree) else []
    space = ", ".join([*parts, f"{units} units"] if tree.weighs_features else parts)
    lines = [
        f"{kind} tree, {plural(levels, 'level')} of splits, {plural(count, 'split')}, "
        f"{plural(len(tree.feature_names), 'feature')}, {space}",
        "classes: " + ", ".join(repr(c) for c in tree.classes),
    ]
    relabelled = getattr(tree, "relabelled", ())
    if relabelled:
        rows = sorted({r.row for r in relabelled})
        shown = ", ".join(map(str, rows[:12])) + (", ..." if len(rows) > 12 else "")
        lines.append(
            f"relabelled rows ({len(rows)}, counted among the training rows from 0, not in the table; octsvm suspects has the lines): {shown}"
        )
    return "\n".join(lines)


def _picture(tree: Tree, part: Split | Leaf, most: int, way: str = "") -> Picture:
    from rich.text import Text
    from rich.tree import Tree as Picture

    from ..formulations.outline import Leaf, question

    label = Text(way, style="dim")
    if isinstance(part, Leaf):
        label.append(f"class {tree.classes[part.label]!r}", style="bold green")
        return Picture(label)
    label.append(f"[{part.node}] ", style="cyan")
    asked, *sides = question(*tree._condition(part, most))
    label.append(asked)
    picture = Picture(label, guide_style="dim")
    for below, holds in zip((part.left, part.right), sides, strict=True):
        picture.children.append(_picture(tree, below, most, f"{holds}: "))
    return picture


def _content(tree: Tree, units: Any) -> dict[str, Any]:
    """The tree's rules, node by node from the left."""
    from ..exports import export_dict

    rules = export_dict(tree, units=units)
    rules.pop("scaling", None)
    nodes: list[dict[str, Any]] = []

    def visit(part: dict[str, Any]) -> None:
        sides = [part.pop(side) for side in ("left", "right") if side in part]
        nodes.append(part | {answer: one["node"] for answer, one in zip(("yes", "no"), sides, strict=False)})
        for one in sides:
            visit(one)

    visit(rules.pop("root"))
    return {
        "kind": tree.kind,
        "depth": tree.depth,
        **rules,
        "nodes": nodes,
        "relabelled": [r._asdict() for r in getattr(tree, "relabelled", ())],
    }
