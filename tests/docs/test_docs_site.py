"""The documentation builds as a site, strictly and without the network, and its API pages show the public names."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from places import ROOT
from waiting import PATIENCE

import octsvm
from octsvm.formulations import blocks

pytestmark = pytest.mark.slow

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
        timeout=PATIENCE,
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
    assert "octsvm_proofs" in text
    assert "```" not in text


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not FETCHED.search(text), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:", sheet.read_text(encoding="utf-8")), sheet.name


def test_code_and_output_in_fences_stay_as_they_are(site: Path) -> None:
    shown = pages(site)
    for page in sorted((ROOT / "docs").glob("*.md")):
        fences = re.findall(r"^(?:```|~~~)(\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        found = re.findall(r'<div class="language-(\w+) highlight">', shown[f"{page.stem}.html"])
        assert found == fences, page.name
    plain = html.unescape(re.sub(r"<[^>]+>", "", shown["index.html"]))
    assert 'result = octsvm.fit("octsvm", X, y, depth=0, c1=10, c2=12, c3=0.1)\n' in plain
    assert "octsvm.fit(name, X, y, ...)" in shown["architecture.html"]


def test_examples_that_go_on_from_each_other_can_be_had_in_one_file(site: Path) -> None:
    for page in sorted((ROOT / "docs").glob("*.md")):
        code = re.findall(
            r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        file = site / "code" / f"{page.stem}.py"
        assert file.is_file() == (len(code) > 1), page.name
        if file.is_file():
            assert file.read_text(encoding="utf-8") == "\n".join(code)
            assert f'href="code/{page.stem}.py"' in pages(site)[f"{page.stem}.html"]


def test_search_works_in_pages_that_are_opened_as_files(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = {")
    assert "relabelling" in index
    for page, script in (
        ("index.html", "vendored/"),
        ("api/blocks.html", "../vendored/"),
        ("404.html", "vendored/"),
    ):
        assert f'src="{script}iframe-worker.js"' in (site / page).read_text(encoding="utf-8")
    assert (site / "vendored" / "iframe-worker.js").is_file()


def test_only_pages_and_what_they_show_are_published(site: Path) -> None:
    assert not [*site.rglob("hooks.py"), *site.rglob("*.pyc")]
    assert (site / "examples" / "compose_your_own.py").is_file()


def test_links_and_anchors_of_the_built_pages_lead_somewhere(site: Path) -> None:
    """Those of the navigation, of the API pages and of pictures too, which no Markdown file holds."""
    text = {
        page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"
    }
    names = {page: set(re.findall(r'\sid="([^"]+)"', content)) for page, content in text.items()}
    wrong, seen = set(), 0
    for page, content in text.items():
        for target in re.findall(r'\s(?:href|src)="([^"]*)"', content):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = html.unescape(target).partition("#")
            file = (page.parent / unquote(path)).resolve() if path else page
            file = file / "index.html" if file.is_dir() else file
            seen += 1
            known = file.is_file() and (not anchor or file not in names or unquote(anchor) in names[file])
            if not known:
                wrong.add((page.name, target))
    assert not wrong
    assert seen > 1000


def equations_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("equations", ROOT / "docs" / "equations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spoken(math: str) -> str:
    """A formula's MathML with its structure in brackets: msub as x[i], munder as x[[i]], mfrac as (a/b), msup as x^[2]."""

    def visit(node: ElementTree.Element) -> str:
        inside = [visit(child) for child in node]
        if node.tag in ("msub", "munder", "msup", "mfrac"):
            return {"msub": "{}[{}]", "munder": "{}[[{}]]", "msup": "{}^[{}]", "mfrac": "({}/{})"}[
                node.tag
            ].format(*inside)
        own = (node.text or "").replace("\u00a0", " ")
        return own + "".join(inside)

    return visit(ElementTree.fromstring(math))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("e_it >= 0", "e[it]≥0"),
        ("-y_i s_it >= 1 - e_it - (1 + M_i)", "−y[i]s[it]≥1−e[it]−(1+M[i])"),
        ("1/2 ||omega_t|| <= delta", "(1/2)‖ω[t]‖≤δ"),
        ("½‖ω_t‖ <= δ", "(1/2)‖ω[t]‖≤δ"),
        (
            "sum_{t in level u} z_it = 1,   z_it <= z_i,parent(t)",
            "∑[[t in level u]]z[it]=1,z[it]≤z[i,parent(t)]",
        ),
        ("z_it - z_i,2t+1 <= 1 - theta_it", "z[it]−z[i,2t+1]≤1−θ[it]"),
        ("q_gm = sum_j u_mj,pos_gj+1", "q[gm]=∑[[j]]u[mj,pos[gj]+1]"),
        ("r_it <= c_{y_i,t}, sum_k c_kt = l_t", "r[it]≤c[y[i],t],∑[[k]]c[kt]=l[t]"),
        ("c1 sum_i e_i + 1/2 ||omega||^2", "c[1]∑[[i]]e[i]+(1/2)‖ω‖^[2]"),
        ("a_m'x_i, M'_i = max(0, 1)", "a[m]′x[i],M′[i]=max(0,1)"),
        ("(8) s_it >= ω_t'(x_i - x\u0304)", " (8) s[it]≥ω[t]′(x[i]−x\u0304)"),
        ("theta, xi, d binary; t = 1..T", "θ,ξ,d binary;t=1…T"),
        ("cost left of the root >= C_0", " cost left of the root ≥C[0]"),
    ],
)
def test_equations_are_read_as_they_are_meant(text: str, wanted: str) -> None:
    assert spoken(equations_module().formula(text)) == wanted


def test_columns_of_equations() -> None:
    table = equations_module()._table(
        "min   total\n1/2 ||w|| <= delta      (1, 2)    margin, at a node\n    <= b      routing (= at the root)"
    )
    rows = re.findall(r"<td[^>]*>(.*?)</td>", table)
    assert [re.sub(r"<math.*</math>", "M", cell) for cell in rows] == [
        *("M", "", ""),
        *("M", "(1, 2)", "margin, at a node"),
        *("M", "", "routing (= at the root)"),
    ]


def test_equations_are_typeset_on_the_pages_and_in_docstrings(site: Path) -> None:
    """Every indented block of the sources is a table of MathML, and no other symbol of the prose is left as typed."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for formula in re.findall(r"<math.*?</math>", text):
            ElementTree.fromstring(formula)
        assert "language-output" not in text, f"{page.name}: an indented block"
    for name, least in (("oct", 18), ("oct_h", 5), ("re_svm", 4), ("octsvm", 10), ("moctsvm", 8)):
        assert len(re.findall(r'<math display="block"', pages(site)[f"{name}.html"])) >= least, name
    assert len(re.findall(r'<math display="block"', pages(site, "api")["blocks.html"])) >= 40
    hinge = pages(site, "api")["blocks.html"].split('id="octsvm.formulations.blocks.add_hinge"')[1]
    first = re.search(r'<math display="block".*?</math>', hinge)
    assert first is not None
    assert spoken(first[0]) == "y[i]s[it]≥1−e[it]−(1+M[i])(1−z[it]+ξ[it])"
    prose = re.sub(
        r"<(pre|code|math|script|style|head)\b.*?</\1>|<[^>]+>", " ", pages(site)["octsvm.html"], flags=re.S
    )
    assert not re.search(r"\b[a-zω]_(?:i|t|it)\b", prose)
