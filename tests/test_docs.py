"""Every example in docs/ runs, prints what the page shows, and every link leads somewhere."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXPECTED = {"index", "notation", "oct", "oct_h", "re_svm", "octsvm", "certificate", "compose", "solvers"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fenced(page: Path) -> list[tuple[str, str, int]]:
    """Language, text and line of every fenced block."""
    text = page.read_text(encoding="utf-8")
    return [(m[1], m[2], text[: m.start()].count("\n") + 1) for m in BLOCK.finditer(text)]


def test_all_pages_are_there() -> None:
    assert {p.stem for p in PAGES} >= EXPECTED


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_examples_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    found = fenced(page)
    for k, (language, code, line) in enumerate(found):
        if language != "python":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * line + code, str(page), "exec"), space)
        if k + 1 < len(found) and found[k + 1][0] == "text":
            assert out.getvalue() == found[k + 1][1], f"{page.name}, line {found[k + 1][2]}"


def test_shown_output_stands_behind_the_code_that_prints_it() -> None:
    for page in PAGES:
        languages = [language for language, _, _ in fenced(page)]
        for before, language in zip([None, *languages], languages, strict=False):
            assert language in ("python", "text", "bash"), page
            assert language != "text" or before == "python", page


def commands() -> list[Any]:
    found = [
        (page, line, text)
        for page in PAGES
        for language, block, line in fenced(page)
        if language == "bash"
        for text in block.splitlines()
        if text.startswith("octsvm ")
    ]
    return [pytest.param(text, id=f"{page.stem}-{line}-{k}") for k, (page, line, text) in enumerate(found)]


@pytest.mark.parametrize("command", commands())
def test_the_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = pytest.importorskip("octsvm.cli", reason="the command line does not import")
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.is_file(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}"


def documented(page: str) -> set[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    section = text.split("## Parameters")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
def test_every_parameter_is_documented_with_its_default(formulation: str) -> None:
    from octsvm.registry import formulation as find

    fields = find(formulation).Params.model_fields
    known = documented(formulation) | (documented("oct") if formulation == "oct_h" else set())
    assert known == set(fields)
    text = (DOCS / f"{formulation}.md").read_text(encoding="utf-8")
    for name in documented(formulation):
        shown = re.search(rf"^\| `{name}` \| ([^|]*) \|", text, re.MULTILINE)
        assert shown is not None
        default = fields[name].default
        assert shown[1].split(" ")[0].strip('"') == str(default).replace("0.001", "1e-3")


def test_every_block_is_named_on_the_page_about_blocks() -> None:
    from octsvm.formulations import blocks

    text = (DOCS / "compose.md").read_text(encoding="utf-8")
    for name in blocks.__all__:
        if name.startswith("add_"):
            assert f"`{name}`" in text


def test_every_status_is_explained() -> None:
    from octsvm.result import STATUSES

    text = (DOCS / "certificate.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE)) - {"status"} == set(STATUSES)


def test_the_sizes_on_the_page_about_octsvm_are_those_of_the_model() -> None:
    import numpy as np

    import octsvm
    from octsvm.problem_class import classify

    text = (DOCS / "octsvm.md").read_text(encoding="utf-8")
    shown = re.search(r"For 100 rows, 10 features and D = 1: (\d+) binaries, ([\d,]+) rows", text)
    assert shown is not None
    X = np.random.default_rng(0).random((100, 10))
    problem = classify(octsvm.build("octsvm", X, np.arange(100) % 2, depth=1))
    assert problem.binaries == int(shown[1])
    assert problem.rows == int(shown[2].replace(",", ""))
