"""Makes the gallery's pictures: runs the examples of docs/gallery.md, on white and for a dark background.

    python docs/gallery/make.py

Each picture carries the fingerprint of the example that made it; a test compares them, so that no picture is left behind
when its example changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "gallery.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"savefig\(\"([\w-]+\.svg)\"\)")


def examples() -> list[tuple[str, str, str]]:
    """Name of the picture, code, and fingerprint of each example: of its own code and all before it."""
    out, before = [], hashlib.sha256()
    for code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        before.update(code.encode())
        (name,) = SAVED.findall(code)
        out.append((name, code, before.hexdigest()[:16]))
    return out


def fingerprint(picture: Path) -> str | None:
    """What a picture says of the code that made it."""
    found = re.search(r"example ([0-9a-f]{16})", picture.read_text(encoding="utf-8"))
    return found[1] if found else None


def main() -> None:
    """Run the examples and put their pictures next to this file."""
    import matplotlib
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    save = Figure.savefig
    marks = {name: mark for name, _, mark in examples()}
    looks = {
        "": {"savefig.facecolor": "white"},  # opaque, for readers of the plain files with a dark background
        "-dark": {"savefig.transparent": True},
    }
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for ending, look in looks.items():
            space: dict[str, Any] = {"__name__": "__main__"}
            with plt.style.context("dark_background" if ending else "default"), plt.rc_context(look):
                plt.rcParams.update({"svg.hashsalt": "octsvm", "font.size": 9.0})

                def saved(self: Figure, name: str, ending: str = ending) -> None:
                    target = HERE / name.replace(".svg", f"{ending}.svg")
                    said = {"Date": None, "Creator": None, "Description": f"example {marks[name]}"}
                    save(self, target, bbox_inches="tight", metadata=said)

                Figure.savefig = saved  # type: ignore[assignment]
                try:
                    for name, code, _ in examples():
                        print(name, ending or "-light", flush=True)
                        exec(compile(code, name, "exec"), space)
                finally:
                    Figure.savefig = save  # type: ignore[method-assign]
                    plt.close("all")
    print(sum(p.stat().st_size for p in HERE.glob("*.svg")) // 1024, "KiB")


if __name__ == "__main__":
    main()
