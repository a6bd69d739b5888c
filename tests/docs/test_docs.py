"""Every example and command in docs/ runs, prints what the page shows, and every link leads somewhere.

A block marked ``long`` (```` ```bash long ````) runs in its quick form: with reduced limits, on made-up data. One marked
``online`` needs the network and is not run.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from places import ROOT
from waiting import PATIENCE

from benchmarks.__main__ import main
from benchmarks.cases import SETS
from benchmarks.studies import relabelling
from octsvm import cli

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

DATA = ROOT.parent / "shared" / "data"
FEW_CELLS = ROOT / "tests" / "face" / "recorded" / "saved" / "cells.csv.gz"
BLOCK = re.compile(r"^```(\w+)(?: (long|online))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    mark: str
    text: str
    line: int


def fenced(page: Path) -> list[Block]:
    """Every fenced block."""
    text = page.read_text(encoding="utf-8")
    found = [Block(m[1], m[2] or "", m[3], text[: m.start()].count("\n") + 1) for m in BLOCK.finditer(text)]
    assert len(FENCE.findall(text)) == 2 * len(found), f"{page.name} has a fence that no test understands"
    return found


def test_all_pages_are_there() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"([\w-]+)\.md$", re.sub(r".* api/.*", "", nav), re.MULTILINE)) == [
        page.stem for page in PAGES
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
@pytest.mark.slow_cases(
    "gallery",
    "estimators",
    "solvers",
    "wrong-labels",
    "tuning",
    "strategies",
    "operations-research",
    "compose",
)
def test_the_examples_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy_tables(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    found = fenced(page)
    for k, block in enumerate(found):
        if block.language != "python" or block.mark == "online":
            continue
        assert not block.mark, "a long example has no quick form; make it shorter"
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * block.line + block.text, str(page), "exec"), space)
        if k + 1 < len(found) and found[k + 1].language == "text":
            assert out.getvalue() == found[k + 1].text, f"{page.name}, line {found[k + 1].line}"


def test_shown_output_stands_behind_the_code_that_prints_it() -> None:
    for page in PAGES:
        languages = [block.language for block in fenced(page)]
        for before, language in zip([None, *languages], languages, strict=False):
            assert language in ("python", "text", "bash", "bibtex"), page
            assert language != "text" or before in ("python", "bash"), page


def lines(block: Block) -> list[str]:
    """Command lines of a block, in their order."""
    return [line for line in block.text.splitlines() if line and not line.startswith("#")]


def copy_tables(folder: Path) -> None:
    """Put the tables and protocols that pages read where their examples run."""
    for example in (DOCS / "examples").glob("*.[cy]*"):
        shutil.copy(example, folder)


def quick(words: list[str], made_up: Path) -> list[str]:
    """The command with limits of a second or so, some cells of a study, and ``DIR`` filled with small tables.

    The study of the paper knows its own data sets only, and is cut down to one of them and two methods; one of one's own is
    cut down to these methods, and a report is made of few cells.
    """
    if words[:2] == ["table2", "report"]:
        return [str(FEW_CELLS) if word.endswith(".csv.gz") else word for word in words]
    if words[0] == "table2":
        few = ["--methods", "cart,svm", "--repetitions", "1", "--jobs", "1"]
        if "DIR" not in words:
            return [*words, *few]
        if not DATA.is_dir():
            pytest.skip(f"the data sets are not here ({DATA})")
        return [*(str(DATA) if word == "DIR" else word for word in words), "--sets", "sonar", *few]
    words = [str(made_up) if word == "DIR" else word for word in words]
    for limit in ("--limit", "--time-limit"):
        if limit in words:
            words[words.index(limit) + 1] = "1"
    if words[:3] == ["-m", "benchmarks", "run"] and "--only" not in words:
        words.append("--quick")  # some cells of many
    return words


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """A folder with one small table for each of the benchmark's sets."""
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, name in enumerate(SETS):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.random((24, 2)).round(3), columns=["a", "b"])
        frame["label"] = np.where(frame["a"] > frame["a"].median(), 1, -1)
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.language == "bash" for b in fenced(p))], ids=lambda p: p.stem
)
@pytest.mark.slow_cases(
    "table2", "cli", "strategies", "real-data", "limits", "wrong-labels", "tutorial", "troubleshooting"
)
def test_the_commands_run(page: Path, tmp_path: Path, made_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Reports of experiments without their pictures, which take most of the time: their own tests look at them.
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    copy_tables(tmp_path)
    found = fenced(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language != "bash" or block.mark == "online":
            continue
        out = "".join(run(line, block.mark, tmp_path, made_up) for line in lines(block))
        # Of what a command prints, a page shows some lines.
        for line in after.text.splitlines() if after is not None and after.language == "text" else ():
            assert any(same_line(line, printed) for printed in out.splitlines()), (
                f"{page.name}: {line}\n{out}"
            )


NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def same_line(shown: str, printed: str) -> bool:
    """Whether two lines say the same; fractions may differ by what a gap leaves open, words and counts may not."""
    numbers = [[float(number) for number in NUMBER.findall(line)] for line in (shown, printed)]
    return NUMBER.sub("#", shown) == NUMBER.sub("#", printed) and numbers[0] == pytest.approx(
        numbers[1], rel=1e-2
    )


def command(*words: str) -> str:
    """What ``octsvm`` prints; it has to end with the code 0."""
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, f"{words}\n{result.output}"
    return result.stdout


# What solves a model with every engine takes seconds: run once, by tests/cli/test_cli.py and tests/diagnostics/test_installed.py.
ELSEWHERE = ("octsvm doctor", "octsvm solvers")


def run(line: str, mark: str, folder: Path, made_up: Path) -> str:
    """What a command prints; it has to end with the code 0."""
    if line in ELSEWHERE:
        return ""
    program, *words = shlex.split(line)
    words = [str(ROOT / word) if word.startswith("benchmarks/results/") else word for word in words]
    if mark == "long":
        words = quick(words, made_up)
    if program == "octsvm":
        return command(*words)
    if program == "python" and words[:2] == ["-m", "benchmarks"]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(words[2:]) == 0, f"{line}\n{out.getvalue()}"
        return out.getvalue()
    if program == "glpsol" and shutil.which(program) is None:
        pytest.skip("glpsol is not installed: the rest of the page was not run")
    assert program == "glpsol", f"no test knows how to run {line}"
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return done.stdout


def test_every_command_is_on_the_page_about_them() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(cli.main.commands)


def test_exit_codes_are_those_of_the_code() -> None:
    table = (DOCS / "cli.md").read_text(encoding="utf-8").split("| exit code | meaning |")[1]
    codes = [cli.OK, cli.UNEXPECTED, cli.WRONG_INPUT, cli.NO_TREE, cli.UNVERIFIED, cli.DISAGREEMENT]
    codes.append(cli.INTERRUPTED)
    assert [int(c) for c in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == codes


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.rglob("*.md")), ROOT / "CONTRIBUTING.md"], ids=lambda p: p.stem
)
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


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm", "moctsvm"])
def test_every_parameter_is_documented_with_its_default(formulation: str) -> None:
    from octsvm.formulations.registry import formulation as find

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
    builders = {getattr(blocks, name).__name__ for name in blocks.__all__ if name.startswith("add_")}
    assert [name for name in builders if f"`{name}`" not in text] == []


def test_every_status_is_explained() -> None:
    from octsvm.result import STATUSES

    text = (DOCS / "certificate.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE)) - {"status"} == set(STATUSES)


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm", "moctsvm"])
def test_the_sizes_on_the_pages_are_those_of_the_models(formulation: str) -> None:
    import octsvm
    from octsvm.problem_class import classify

    text = " ".join((DOCS / f"{formulation}.md").read_text(encoding="utf-8").split())
    shown = re.search(r"For 100 rows,? (?:and )?10 features[^:]*: (\d+) binaries, ([\d,]+) rows", text)
    assert shown is not None
    X = np.random.default_rng(0).random((100, 10))
    params = {} if formulation == "re_svm" else {"depth": 1}
    problem = classify(octsvm.build(formulation, X, np.arange(100) % 2, **params))
    assert problem.binaries == int(shown[1])
    assert problem.rows == int(shown[2].replace(",", ""))


@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm", "moctsvm"])
def test_the_pages_of_the_models_have_the_same_parts(formulation: str) -> None:
    text = (DOCS / f"{formulation}.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Model",
        "Where it differs from its source, and why",
        "Parameters",
        "Example",
        "Size",
    ]
    assert "\nSource: " in text.split("## Model")[0]


def test_papers_and_data_are_cited_as_elsewhere() -> None:
    import octsvm

    text = (DOCS / "citing.md").read_text(encoding="utf-8")
    for name in ("README.md", "CITATION.cff"):
        dois = re.findall(r"10\.\d{4,}/[\w.()-]*\w", (ROOT / name).read_text(encoding="utf-8"))
        assert dois
        for doi in dois:
            assert f"doi = {{{doi}}}" in text, f"{name} cites {doi}"
    assert f"version = {{{octsvm.__version__}}}" in text
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(SETS)
    entries = re.findall(r"^@misc\{uci_(\w+),$", text, re.MULTILINE)
    assert entries == list(SETS)


def test_the_page_on_wrong_labels_states_the_setting_of_the_benchmark() -> None:
    text = (DOCS / "wrong-labels.md").read_text(encoding="utf-8")
    assert relabelling.SHARE == 0.2, "the page states it"
    assert relabelling.MODELS == {"OCTSVMClassifier": {"max_depth": 1}, "RESVMClassifier": {}}
    assert "--limit 10" in text
    assert "ten seconds a fit" in text
    head, *cells = re.findall(r"^\| (\w+) \|.*\| (OCTSVM|RESVM|model) \|", text, re.MULTILINE)
    assert head == ("set", "model")
    assert cells == [(name, model) for name in SETS for model in ("OCTSVM", "RESVM")]
