"""A plain document: headings, sentences, tables and pictures, written as one HTML file or as Markdown with files."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #d5d9de; --soft: #f3f5f7; --link: #00626b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eceff4; --paper: #1e2129; --line: #464c58; --soft: #2a2f39; --link: #6fc7d1; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
p { max-width: 50rem; }
a { color: var(--link); }
td a { color: inherit; text-decoration: none; }
td a:hover, td a:focus { text-decoration: underline; }
.wide { overflow-x: auto; margin: 1rem 0 2rem; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.4rem; }
th, td { padding: 0.15rem 0.6rem; text-align: left; vertical-align: top; }
.n { text-align: right; white-space: nowrap; }
.g { border-left: 1px solid var(--line); }
th.g[colspan] { text-align: center; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tr.strong td { background: var(--soft); border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); }
img { max-width: 100%; height: auto; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
summary { cursor: pointer; }
nav ul { columns: 2; }
"""


@dataclass(frozen=True)
class Heading:
    """A heading; ``anchor`` is where links lead."""

    text: str
    level: int = 2
    anchor: str = ""

    @property
    def target(self) -> str:
        """Its anchor, made of its text where none is given."""
        return self.anchor or re.sub(r"[^\w -]", "", self.text.lower()).replace(" ", "-")


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class TableCell:
    """What stands in a table.

    ``link`` is an anchor of the document, ``title`` a hint that shows on pointing at it; ``group`` begins a group of
    columns.
    """

    text: str
    bold: bool = False
    number: bool = False
    link: str = ""
    title: str = ""
    anchor: str = ""
    span: int = 1
    group: bool = False


@dataclass(frozen=True)
class TableRow:
    """A line of a table; ``strong`` for averages."""

    cells: tuple[TableCell, ...]
    strong: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table. ``heads`` are its lines of headings; where there is more than one, Markdown joins them.

    A ``folded`` one opens on a click. ``html_only`` is for what Markdown readers find in a file.
    """

    heads: tuple[tuple[TableCell, ...], ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    folded: bool = False
    html_only: bool = False


@dataclass(frozen=True)
class Picture:
    """An SVG on light and on dark ground, saved as ``name.svg`` and ``name-dark.svg``."""

    name: str
    alt: str
    light: bytes
    dark: bytes


Block = Heading | Text | ReportTable | Picture


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """A number with a true minus sign; a dash for none."""
    if value != value:
        return "–"
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "\u2212")


# -------------------------------------------------------------------------------------------------------- HTML


def _cell(cell: TableCell, tag: str) -> str:
    text = escape(cell.text)
    if cell.bold:
        text = f"<strong>{text}</strong>"
    if cell.link:
        text = f'<a href="#{escape(cell.link)}">{text}</a>'
    kinds = [k for k, is_so in (("n", cell.number), ("g", cell.group)) if is_so]
    looks = f' class="{" ".join(kinds)}"' if kinds else ""
    if cell.title:
        looks += f' title="{escape(cell.title)}"'
    if cell.anchor:
        looks += f' id="{escape(cell.anchor)}"'
    if cell.span > 1:
        looks += f' colspan="{cell.span}"'
    return f"<{tag}{looks}>{text}</{tag}>"


STRONG = ' class="strong"'


def _table(table: ReportTable) -> str:
    head = "".join(f"<tr>{''.join(_cell(c, 'th') for c in line)}</tr>" for line in table.heads)
    body = "\n".join(
        f"<tr{STRONG if row.strong else ''}>{''.join(_cell(c, 'td') for c in row.cells)}</tr>"
        for row in table.rows
    )
    inner = f"<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    if table.folded:
        return (
            f'<details><summary>{escape(table.caption)}</summary><div class="wide"><table>{inner}</details>'
        )
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f'<div class="wide"><table>{caption}{inner}'


def _embedded(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """One self-contained page: no script, nothing fetched; it follows the reader's light or dark setting."""
    entries = [b for b in blocks if isinstance(b, Heading) and b.level == 2]
    out = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"/><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<style>{STYLE}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        "<nav><ul>",
        *(f'<li><a href="#{escape(h.target)}">{escape(h.text)}</a></li>' for h in entries),
        "</ul></nav>",
    ]
    for block in blocks:
        match block:
            case Heading():
                tag = f"h{block.level}"
                out.append(f'<{tag} id="{escape(block.target)}">{escape(block.text)}</{tag}>')
            case Text():
                out.append(f"<p>{escape(block.text)}</p>")
            case ReportTable():
                out.append(_table(block))
            case Picture():
                out.append(
                    f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_embedded(block.dark)}"/>'
                    f'<img src="{_embedded(block.light)}" alt="{escape(block.alt)}"/></picture></figure>'
                )
    out.append("</main></body></html>\n")
    return "\n".join(out)


# ---------------------------------------------------------------------------------------------------- Markdown


def _plain(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", " ".join(text.split()))


def _markdown_table(table: ReportTable) -> str:
    columns: list[list[str]] = []
    for line in table.heads:
        spread = [c.text for c in line for _ in range(c.span)]
        columns = [[*had, new] for had, new in zip(columns or [[] for _ in spread], spread, strict=True)]
    heads = [_plain(" ".join(part for part in parts if part)) for parts in columns]
    first = table.rows[0].cells if table.rows else ()
    kinds = ["--:" if k < len(first) and first[k].number else "---" for k in range(len(heads))]
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(kinds)}|"]
    for row in table.rows:
        texts = []
        for cell in row.cells:
            text = _plain(cell.text)
            strong = cell.bold or (row.strong and not cell.number)
            texts.append(f"**{text}**" if text and strong else text)
        lines.append(f"| {' | '.join(texts)} |")
    return (f"{_plain(table.caption)}\n\n" if table.caption else "") + "\n".join(lines)


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """The same as Markdown; its pictures are the files ``name.svg`` and ``name-dark.svg`` beside it."""
    out = [f"# {_plain(title)}"]
    for block in blocks:
        match block:
            case Heading():
                out.append(f"{'#' * block.level} {_plain(block.text)}")
            case Text():
                out.append(_plain(block.text))
            case ReportTable():
                if not block.html_only:
                    out.append(_markdown_table(block))
            case Picture():
                out.append(
                    f'<picture><source media="(prefers-color-scheme: dark)" srcset="{block.name}-dark.svg">'
                    f'<img src="{block.name}.svg" alt="{escape(block.alt)}"></picture>'
                )
    return "\n\n".join(out) + "\n"
