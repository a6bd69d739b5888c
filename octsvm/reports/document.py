"""Tables and pictures of a page, and the templates that make one HTML page, or Markdown with files, of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from numbers import Integral, Real
from typing import Any


class Cell(str):
    """What stands in a table: text, and how it is marked.

    ``number``: it is one, and so is all of its column; ``link``: an anchor of the page; ``hint``: shows on pointing at
    it; ``anchor``: where a link leads.
    """

    number: bool = False
    bold: bool = False
    link: str = ""
    hint: str = ""
    anchor: str = ""

    def __new__(cls, text: str, **marks: Any) -> Cell:
        """Make one of text and its marks by their names."""
        cell = super().__new__(cls, text)
        cell.__dict__.update(marks)
        return cell


def number(value: float, form: str = ".2f", **marks: Any) -> Cell:
    """A number with a true minus sign; a dash for none."""
    text = "–" if value != value else format(value, form)
    if value == value and float(text) == 0:
        text = text.lstrip("+-")
    return Cell(text.replace("-", "\u2212"), number=True, **marks)


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, Real):
        return number(float(value), ".0f" if isinstance(value, Integral) else ".2f")
    return Cell(str(value))


@dataclass(frozen=True)
class Table:
    """A table; its values are text, numbers or cells.

    ``heads`` name the columns: a pair is the heading of a group and the column's own. ``strong`` are the numbers of
    the rows that stand out. A ``folded`` one opens on a click.
    """

    heads: Sequence[str | tuple[str, str]]
    values: Sequence[Sequence[Any]]
    caption: str = ""
    strong: Collection[int] = ()
    folded: bool = False

    @cached_property
    def rows(self) -> list[list[Cell]]:
        """The values as cells."""
        return [[_cell(value) for value in row] for row in self.values]

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """Group ("" for none) and heading of each column."""
        return [("", head) if isinstance(head, str) else head for head in self.heads]

    @cached_property
    def groups(self) -> list[tuple[str, int]]:
        """Groups and how many columns they span; empty where there are none."""
        found = [(group, len(list(members))) for group, members in groupby(self.columns, lambda c: c[0])]
        return found if any(group for group, _ in found) else []

    @cached_property
    def kinds(self) -> list[str]:
        """CSS classes of each column: "n" for numbers, "g" where a group begins."""
        first = self.rows[0] if self.rows else [Cell("")] * len(self.columns)
        before = ["", *(group for group, _ in self.columns)]
        return [
            " ".join(kind for kind, so in (("n", cell.number), ("g", group and group != last)) if so)
            for cell, (group, _), last in zip(first, self.columns, before, strict=False)
        ]


@dataclass(frozen=True)
class Picture:
    """An SVG on light and on dark ground, saved as ``name.svg`` and ``name-dark.svg``."""

    name: str
    alt: str
    light: bytes
    dark: bytes


def _embedded(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", " ".join(text.split()))


def _slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def render(
    layout: str, content: Mapping[str, Any], template: str = "tree.j2", package: str = __package__
) -> str:
    """The page that a ``template`` of a ``package`` makes of ``content``, laid out as "html" or "markdown"."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, __package__))]),
        autoescape=layout == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"embedded": _embedded, "plain": _plain, "slug": _slug}
    text = environment.get_template(template).render(layout=layout, contents=[], **content)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
