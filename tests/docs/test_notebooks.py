"""The notebooks run from the first cell to the last, and are stored without outputs that could be out of date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def code(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.slow
def test_notebooks_run(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    for k, cell in enumerate(code(notebook)):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {k}", "exec"), space)
    assert "optimal flipped: [ 1 21]" in capsys.readouterr().out


def test_notebooks_are_stored_without_outputs() -> None:
    assert NOTEBOOKS
    for notebook in NOTEBOOKS:
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code(notebook))
