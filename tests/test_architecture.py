"""The rules of docs/architecture.md: who may import whom, where files stand, and no solver's name in a condition."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from places import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LOOSE_MODULES = 14
Graph = Mapping[str, Iterable[str]]


class Import(NamedTuple):
    """One import between two modules of the project; ``late`` ones run in a function, or for type checkers only."""

    source: str
    target: str
    late: bool


def modules() -> dict[str, Path]:
    """Every module of the project by its dotted name; formulations under the name it is imported by."""
    found = {}
    for folder, prefix in (("octsvm", ()), ("formulations", ("octsvm",))):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[:2] != ("octsvm", "formulations"):  # the link to the folder
                parts = (*prefix, *parts)
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_late(node: ast.AST) -> bool:
    """Whether what stands in ``node`` is not run while its module is imported."""
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )


def statements(node: ast.AST, late: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All import statements below ``node``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, late
        elif not isinstance(child, ast.expr):  # no statement is in one
            yield from statements(child, late or is_late(child))


def imports_of(name: str, code: ast.AST, is_package: bool, known: Iterable[str]) -> Iterator[Import]:
    """What the module ``name`` imports of the modules ``known``."""
    for node, late in statements(code):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            parts = name.split(".")[: -(node.level - is_package) or None] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            targets = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names
            ]
        yield from (Import(name, target, late) for target in targets if target in known and target != name)


@cache
def all_imports() -> list[Import]:
    """All imports among the project's modules."""
    known = modules()
    return [
        found
        for name, path in known.items()
        for found in imports_of(name, parsed(path), path.name == "__init__.py", known)
    ]


def room(name: str) -> str:
    """The folder right below octsvm that a module is in; a loose module stands for itself."""
    return ".".join(name.split(".")[:2])


def circles(graph: Graph) -> list[list[str]]:
    """A circle for each node that lies on one, the shortest through it."""
    found = []
    for start in sorted(graph):
        ways = {start: [start]}
        queue = [start]
        while queue:
            here = queue.pop(0)
            for there in sorted(graph.get(here, ())):
                if there == start:
                    found.append([*ways[here], start])
                    queue = []
                    break
                if there not in ways:
                    ways[there] = [*ways[here], there]
                    queue.append(there)
    return found


def graph_of(imports: Iterable[Import], by: object = None) -> dict[str, set[str]]:
    """Who imports whom, module by module or ``by`` folder."""
    graph: dict[str, set[str]] = {}
    for one in imports:
        source, target = (room(n) if by is room else n for n in (one.source, one.target))
        if source != target:
            graph.setdefault(source, set()).add(target)
    return graph


def shown(found: list[list[str]]) -> str:
    return "\n".join(" -> ".join(circle) for circle in found)


@pytest.mark.slow
def test_no_module_is_imported_in_a_circle() -> None:
    imports = all_imports()
    assert len(imports) > 300
    found = circles(graph_of(one for one in imports if not one.late))
    assert not found, shown(found)


@pytest.mark.slow
def test_no_folder_is_imported_in_a_circle() -> None:
    # The face of the package names everything and imports it when asked; all else counts, late imports too.
    found = circles(graph_of((one for one in all_imports() if one.source != "octsvm"), room))
    assert not found, shown(found)


@pytest.mark.slow
def test_formulations_import_nothing_of_the_rest() -> None:
    inside = "octsvm.formulations"
    leaving = [f for f in all_imports() if room(f.source) == inside != room(f.target)]
    assert not leaving


def test_formulations_import_pyomo_numpy_and_pydantic_only() -> None:
    found = set()
    for name, path in modules().items():
        if room(name) == "octsvm.formulations":
            for node, _ in statements(parsed(path)):
                named = (
                    [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                )
                found |= {one.partition(".")[0] for one in named if not getattr(node, "level", 0)}
    assert found - set(sys.stdlib_module_names) == {"numpy", "pyomo", "pydantic"}


def test_circles_and_late_imports_are_seen() -> None:
    known = ["octsvm", "octsvm.a", "octsvm.b", "octsvm.b.c"]
    text = "from . import a\nfrom .. import fit\ndef f():\n    from ..a import x\nif TYPE_CHECKING:\n    import octsvm.a"
    assert list(imports_of("octsvm.b.c", ast.parse(text), False, known)) == [
        Import("octsvm.b.c", "octsvm.b", False),
        Import("octsvm.b.c", "octsvm", False),
        Import("octsvm.b.c", "octsvm.a", True),
        Import("octsvm.b.c", "octsvm.a", True),
    ]
    assert list(imports_of("octsvm.b", ast.parse("from .c import x"), True, known)) == [
        Import("octsvm.b", "octsvm.b.c", False)
    ]
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"]}) == [["b", "c", "b"], ["c", "b", "c"]]
    assert room("octsvm.b.c") == "octsvm.b"


def test_loose_modules_are_few_and_on_the_page() -> None:
    loose = sorted(p.stem for p in (ROOT / "octsvm").glob("*.py") if not p.stem.startswith("__"))
    assert 5 < len(loose) <= LOOSE_MODULES
    assert not [name for name in loose if f"`{name}`" not in PAGE]


def test_every_folder_is_on_the_page() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix() for name, path in modules().items() if name != "octsvm"
    } - {"octsvm"}
    assert len(folders) > 15
    assert not [folder for folder in sorted(folders) if f"| `{folder}` |" not in PAGE]


def test_tests_on_the_page_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_files_in_the_glossary_are_there() -> None:
    page = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:octsvm|formulations)/[\w/.]+|solvers\.yaml)`", page)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]


# -- solvers' names ---------------------------------------------------------------------------------------------


def conditions(tree: ast.AST) -> Iterator[ast.AST]:
    """Whatever decides which way a program goes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            yield node.test
        elif isinstance(node, (ast.Compare, ast.BoolOp, ast.match_case)):
            yield node.pattern if isinstance(node, ast.match_case) else node
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def is_of_a_kind(condition: ast.AST) -> bool:
    """Whether a comparison is about a backend or a file's format, which may be called as a solver is."""
    left = condition.left if isinstance(condition, ast.Compare) else None
    return getattr(left, "attr", getattr(left, "id", "")) in ("backend", "kind")


def strings_of(condition: ast.AST) -> Iterator[str]:
    """Strings of a condition, without comparisons of kinds."""
    if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
        yield condition.value
    if not is_of_a_kind(condition):
        for part in ast.iter_child_nodes(condition):
            yield from strings_of(part)


def names_in_conditions(code: ast.AST, names: set[str]) -> set[str]:
    """Those of ``names`` that stand as a string in a condition."""
    found = {string for condition in conditions(code) for string in strings_of(condition)}
    return {string for string in found if string.lower() in names}


def solver_names() -> set[str]:
    table = yaml.safe_load((ROOT / "solvers.yaml").read_text(encoding="utf-8"))
    return {name.lower() for name in table.get("solvers", table)}


def test_no_solvers_name_stands_in_a_condition() -> None:
    names = solver_names()
    assert {"highs", "gurobi", "scip"} <= names
    found = {
        name: strings
        for name, path in modules().items()
        if (strings := names_in_conditions(parsed(path), names))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        'if solver == "gurobi": pass',
        'x = 1 if name in ("scip", "Gurobi") else 2',
        '[s for s in found if s.startswith("gurobi")]',
        'match solver:\n    case "gurobi": pass',
        'fast = ready and solver != "gurobi"',
    ],
)
def test_a_name_in_a_condition_is_seen(text: str) -> None:
    assert names_in_conditions(ast.parse(text), {"gurobi"})
    for fine in ('start = table["gurobi"] if known else "gurobi"', 'if found.kind == "gurobi": pass'):
        assert not names_in_conditions(ast.parse(fine), {"gurobi"})


def test_every_dependency_and_extra_has_its_reason_on_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = PAGE.partition("## Dependencies\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    told = {name for cell in cells for name in re.findall(r"`(.+?)`", cell)}
    needed = {re.split(r"[<>=;]", wanted)[0] for wanted in project["dependencies"]}
    assert told == needed | set(project["optional-dependencies"]) - {"solvers"}


if __name__ == "__main__":
    print("Modules that import each other, one of them late (in a function, or for type checkers):")
    print(shown(circles(graph_of(all_imports()))))
