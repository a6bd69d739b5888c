"""The documentation builds as a site, strictly and without the network, and its API pages show the public names."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import octsvm
from octsvm.formulations import blocks

TOOLS = ("mkdocs", "material", "mkdocstrings")
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?https?:|<link[^>]*\shref=\"?https?:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = ROOT
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the site needs {', '.join(missing)}: pip install -e '.[docs]'")
    place = tmp_path_factory.mktemp("site")
    nowhere = "http://127.0.0.1:9"
    environment = os.environ | {"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def pages(site: Path, folder: str = ".") -> dict[str, str]:
    return {p.name: p.read_text(encoding="utf-8") for p in (site / folder).glob("*.html")}


def test_every_public_name_is_on_an_api_page(site: Path) -> None:
    text = "".join(pages(site, "api").values())
    names = [f"octsvm.{n}" for n in octsvm.__all__ if n != "__version__"]
    former = {n for n in blocks.__all__ if getattr(getattr(blocks, n), "__name__", n) != n}
    names += [f"octsvm.formulations.blocks.{n}" for n in blocks.__all__ if n not in former]
    missing = [n for n in names if f'id="{n}"' not in text]
    assert not missing


def test_docstrings_are_shown_as_text(site: Path) -> None:
    for name, text in pages(site, "api").items():
        plain = re.sub(r"<[^>]+>", "", text)
        assert not re.search(r":(func|class|meth|data|mod):", plain), name
        assert "::: octsvm" not in plain, name


def test_marks_of_blocks_are_not_shown(site: Path) -> None:
    text = pages(site)["real-data.html"]
    assert "real_data" in text
    assert "```" not in text


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not FETCHED.search(text), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:", sheet.read_text(encoding="utf-8")), sheet.name


def test_only_pages_and_what_they_show_are_published(site: Path) -> None:
    assert not list(site.rglob("hooks.py"))
    assert (site / "examples" / "compose_your_own.py").is_file()
