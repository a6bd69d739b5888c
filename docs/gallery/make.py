"""Makes the pictures of README.md and docs/gallery.md: runs their examples, on a light and on a dark background.

    python docs/gallery/make.py [NAME.svg ...]

Each picture carries the fingerprint of the example that made it; a test compares them, so that no picture is left behind
when its example changes. With names, a page's examples are run up to the last of them, and only those pictures replaced.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGES = (HERE.parents[1] / "README.md", HERE.parent / "gallery.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"savefig\(\"([\w-]+\.svg)\"\)")


def examples(page: Path) -> list[tuple[str, str, str]]:
    """Name of the picture, code, and fingerprint of each example of a page: of its own code and all before it."""
    out, before = [], hashlib.sha256()
    for code in BLOCK.findall(page.read_text(encoding="utf-8")):
        before.update(code.encode())
        out += [(name, code, before.hexdigest()[:16]) for name in SAVED.findall(code)]
    return out


def fingerprint(picture: Path) -> str | None:
    """What a picture says of the code that made it."""
    found = re.search(r"example ([0-9a-f]{16})", picture.read_text(encoding="utf-8"))
    return found[1] if found else None


def run(page: Path, ending: str, wanted: set[str]) -> None:
    """Run the examples of a page and put the pictures that are ``wanted`` next to this file."""
    from matplotlib.figure import Figure

    marks = {name: mark for name, _, mark in examples(page)}
    save = Figure.savefig

    def saved(self: Figure, name: str) -> None:
        if not wanted or name in wanted:
            said = {"Date": None, "Creator": None, "Description": f"example {marks[name]}"}
            save(self, HERE / name.replace(".svg", f"{ending}.svg"), bbox_inches="tight", metadata=said)

    Figure.savefig = saved  # type: ignore[assignment, method-assign]
    try:
        space: dict[str, Any] = {"__name__": "__main__"}
        left = set(marks) & wanted if wanted else set(marks)
        for name, code, _ in examples(page):
            if left:
                print(name, ending or "-light", flush=True)
                exec(compile(code, name, "exec"), space)
                left.discard(name)
    finally:
        Figure.savefig = save  # type: ignore[method-assign]


def main() -> None:
    """Run the examples of all pages."""
    import matplotlib
    import matplotlib.pyplot as plt

    from octsvm.plots._style import BEHIND, DARK, LIGHT

    matplotlib.use("Agg")
    wanted = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for ending, style, name in (("", LIGHT, "default"), ("-dark", DARK, "dark_background")):
            look = {
                "figure.facecolor": BEHIND[style],
                "savefig.facecolor": "auto",
                "axes.facecolor": BEHIND[style],
                "svg.hashsalt": "octsvm",
                "font.size": 9.0,
            }
            with plt.style.context(name), plt.rc_context(look):
                for page in PAGES:
                    if not wanted or wanted & {picture for picture, _, _ in examples(page)}:
                        run(page, ending, wanted)
                plt.close("all")
    print(sum(p.stat().st_size for p in HERE.glob("*.svg")) // 1024, "KiB")


if __name__ == "__main__":
    main()
