"""What README.md shows, taken out of it for the tests that run it."""

from __future__ import annotations

import re

from places import ROOT

README = ROOT / "README.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language, in their order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands() -> list[str]:
    """All lines of the shell blocks."""
    return [line for block in blocks("bash") for line in block.splitlines()]
