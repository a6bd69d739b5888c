"""``octsvm plot``."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidParameter, MissingPackage
from ..formulations.replace_file import replace_bytes
from . import options as shared
from .findings import weights_of
from .progress import signs_of_life

FORMATS = ("svg", "png", "pdf")


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@shared.out_option("TREE.svg|.png|.pdf", "The picture; its ending is the format.", required=True)
@shared.weights_option(3, "How many of an oblique split's weights to show, those with most effect first.")
@click.option("--dark", is_flag=True, help="Colours for a dark background.")
@shared.json_option
@shared.quiet_option
def plot(tree: str, out: str, units: Any, most: int, dark: bool, as_json: bool, quiet: bool) -> None:
    """Draw a tree that "octsvm fit --out" saved: splits, classes, and the training rows that come by each node.

    It is drawn by matplotlib: pip install 'octsvm[plot]'.

    \b
    Examples:
      octsvm plot tree.json --out tree.svg
      octsvm plot tree.json --out tree.png --units scaled --dark
    """
    ending = Path(out).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InvalidParameter(
            f"--out {out}: pictures are written as {', '.join(FORMATS)}. Give one of these endings."
        )

    with signs_of_life("drawing", quiet):
        from ..plots import plot_tree
        from .fitted_file import classifier_of

        fitted, record = shared.read_fitted(tree)
        shown = fitted if record is None else classifier_of(fitted, record)
        try:
            picture = as_file(lambda: plot_tree(shown, units=units, most=most, dark=dark), ending, dark)
        except MissingPackage as error:
            known = "export_text and export_graphviz show a tree without it."
            raise MissingPackage(str(error).replace(known, "octsvm show does without.")) from None
    replace_bytes(out, picture)
    if as_json:
        shared.echo_json({"file": out}, "picture")
    else:
        full = max((len(features) for _, features in weights_of(fitted)), default=0)
        hint = f"; splits have up to {full} weights, --weights {full} shows all" if full > most else ""
        click.echo(f"written    {out}{hint}")


def as_file(draw: Callable[[], Any], ending: str, dark: bool) -> bytes:
    """The figure of the axes that ``draw`` makes, in the format ``ending``: the same bytes each time."""
    from ..plots._style import BEHIND, DARK, LIGHT, matplotlib

    looks = {"svg.hashsalt": "octsvm", "text.usetex": False, "text.parse_math": False}
    with matplotlib("").rc_context(looks):
        buffer = io.BytesIO()
        plain = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}.get(ending)
        ground = BEHIND[DARK if dark else LIGHT]
        draw().figure.savefig(
            buffer, format=ending, dpi=150, metadata=plain, facecolor=ground, bbox_inches="tight"
        )
    return buffer.getvalue()
