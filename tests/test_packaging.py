"""The built wheel, installed elsewhere, holds everything; so does the source distribution."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
import readme

BUILD_TOOLS = ("build", "setuptools")
pytestmark = pytest.mark.slow


def tool(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The source distribution of this checkout, and the wheel built from it."""
    missing = [name for name in BUILD_TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"building needs {' and '.join(missing)}: pip install -e '.[test]'")
    place = tmp_path_factory.mktemp("packaging")
    copy = place / "source"
    # Built from a copy: a build leaves files behind, and must not find those of an earlier one.
    unwanted = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(root, copy, symlinks=True, ignore=unwanted)
    tool(sys.executable, "-m", "build", "--no-isolation", "--outdir", place, copy, cwd=place)
    (wheel,) = place.glob("*.whl")
    (sdist,) = place.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def elsewhere(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a fresh environment with the wheel in it, and this environment's dependencies."""
    place = tmp_path_factory.mktemp("elsewhere")
    tool(sys.executable, "-m", "venv", "--without-pip", place / "venv", cwd=place)
    python = place / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = Path(
        tool(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip()
    )
    # A folder in a .pth file comes last on the path and its own .pth files are not read: no editable install leaks in.
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "dependencies.pth").write_text("\n".join(sorted(dependencies)) + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index"]
    tool(*pip, built["wheel"], cwd=place)
    return python


def modules(root: Path) -> set[str]:
    """Modules, and the data files that lie beside them."""
    found = {
        f"octsvm/{p.relative_to(root / 'octsvm').as_posix()}"
        for pattern in ("*.py", "*.yaml", "*.j2")
        for p in (root / "octsvm").rglob(pattern)
    }
    found |= {
        f"octsvm/formulations/{p.relative_to(root / 'formulations').as_posix()}"
        for p in (root / "formulations").rglob("*.py")
    }
    return found


def test_wheel_holds_every_module_and_the_solver_table(root: Path, built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = wheel.namelist()
    assert len(names) == len(set(names))
    expected = modules(root) | {"octsvm/solvers.yaml", "octsvm/py.typed", "octsvm/formulations/py.typed"}
    held = {n for n in names if ".dist-info/" not in n}
    assert held == expected
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_source_distribution_holds_what_tests_and_builds_need(root: Path, built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    needed = [
        "pyproject.toml",
        "setup.py",
        "solvers.yaml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
    ]
    needed += [p.relative_to(root).as_posix() for p in (root / "formulations").rglob("*.py")]
    needed += [p.relative_to(root).as_posix() for p in (root / "tests").rglob("*.*") if p.suffix != ".pyc"]
    assert sorted(set(needed) - names) == []


def test_installed_wheel_runs_the_readme(elsewhere: Path, tmp_path: Path) -> None:
    where = tool(elsewhere, "-c", "import octsvm.formulations as f; print(f.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(elsewhere.parents[1])
    out = tool(elsewhere, "-c", readme.blocks("python")[0], cwd=tmp_path)
    assert out.startswith("optimal | given up: ")
    assert "right: 1.0" in out


def test_installed_command(elsewhere: Path, tmp_path: Path) -> None:
    command = elsewhere.with_name("octsvm.exe" if os.name == "nt" else "octsvm")
    assert tool(command, "--version", cwd=tmp_path).startswith("octsvm, version ")
    out = tool(command, "fit", "iris", "-f", "oct", "--depth", "1", "--out", "tree.json", cwd=tmp_path)
    assert "optimal" in out
    assert (tmp_path / "tree.json").is_file()


def test_installed_package_is_typed_for_its_users(elsewhere: Path, tmp_path: Path) -> None:
    code = "import importlib.resources as r; print((r.files('octsvm') / 'py.typed').is_file())"
    assert tool(elsewhere, "-c", code, cwd=tmp_path) == "True\n"


def test_formulations_have_one_name_only(elsewhere: Path, tmp_path: Path) -> None:
    code = "import importlib.util; print(importlib.util.find_spec('formulations'))"
    assert tool(elsewhere, "-c", code, cwd=tmp_path) == "None\n"
