"""What a small fit does not import, so that its first answer comes soon."""

import subprocess
import sys
from pathlib import Path

import pytest


def ended(code: str) -> list[str]:
    """The lines that a fresh process prints."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout.splitlines()


@pytest.mark.slow
def test_a_module_is_executed_when_something_of_it_is_used() -> None:
    code = """
import sys
from octsvm.cli.late_import import LateImport
LateImport("scipy.stats").install()
import pyomo.environ
import scipy.sparse
print("scipy.stats" in sys.modules, "scipy.stats._stats_py" in sys.modules)
import scipy.stats
import scipy.stats
print("scipy.stats._stats_py" in sys.modules, hasattr(scipy.stats, "no_such_name"), scipy.stats.rankdata([3, 1]).tolist())
from scipy.stats.mstats import mquantiles
print("scipy.stats._stats_py" in sys.modules)
before = scipy.stats
LateImport("scipy.stats").install()  # there already: it stays
import scipy.stats
print(before is scipy.stats, any(type(f) is LateImport for f in sys.meta_path))
"""
    assert ended(code) == ["True False", "False False [2.0, 1.0]", "True", "True False"]


def test_one_that_is_asked_for_twice_is_executed(tmp_path: Path) -> None:
    package = tmp_path / "late"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\n")
    (package / "part.py").write_text("value = 3\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from octsvm.cli.late_import import LateImport
for _ in range(2):
    LateImport("late").install()
from late import part
print(part.value)
"""
    assert ended(code) == ["3"]


def test_ctrl_c_within_a_late_import_leaves_it_to_be_executed_again(tmp_path: Path) -> None:
    package = tmp_path / "slow"
    package.mkdir()
    (package / "part.py").write_text("value = 3\n")
    (package / "__init__.py").write_text(
        "import signal, sys\nif not hasattr(sys, 'asked'):\n    sys.asked = True\n    signal.raise_signal(signal.SIGINT)\n"
        "from . import part\nwhole = True\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from octsvm.cli.late_import import LateImport
LateImport("slow").install()
import slow
for _ in range(2):
    try:
        import slow.part
        print(slow.whole, slow.part.value, slow.__spec__.name)
    except KeyboardInterrupt:
        print("interrupted")
"""
    assert ended(code) == ["interrupted", "True 3 slow"]


def test_threads_that_import_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "late_a.py").write_text(
        "import threading\nthreading.in_common.wait(60)\nthreading.in_a.set()\nimport common\nvalue = common.value\n"
    )
    (tmp_path / "late_b.py").write_text("value = 2\n")
    (tmp_path / "common.py").write_text(
        "import threading, late_b\nthreading.in_common.set()\nthreading.in_a.wait(60)\nvalue = late_b.value\n"
    )
    code = f"""
import sys, threading
sys.path.insert(0, {str(tmp_path)!r})
from octsvm.cli.late_import import LateImport
threading.in_common, threading.in_a = threading.Event(), threading.Event()
for name in ("late_a", "late_b"):
    LateImport(name).install()
import late_a
other = threading.Thread(target=__import__, args=("common",))
other.start()
print(late_a.value)
other.join()
"""
    assert ended(code) == ["2"]


@pytest.mark.slow
def test_a_fit_on_a_small_table_imports_the_binding_alone(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = [f"{i % 7},{i % 5},{'a' if i % 7 + i % 5 > 4 else 'b'}" for i in range(35)]
    table.write_text("\n".join(["u,v,kind", *rows]))
    command = ["octsvm", "fit", str(table), "--depth", "1", "--work-limit", "nodes=1,rounds=1"]
    code = f"import sys; sys.argv = {command}; from octsvm.cli import main; main()"
    fit = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, timeout=300
    )
    lines = fit.stderr.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert {"sklearn", "scipy.stats"} <= imported
    assert not {"sklearn.svm", "sklearn.metrics", "scipy.stats._stats_py"} & imported


@pytest.mark.slow
def test_an_oct_imports_greedy_trees_where_it_wants_them() -> None:
    code = """
import sys, numpy as np, octsvm
X = np.random.default_rng(0).random((30, 3))
for depth in (2, 3):
    result = octsvm.fit("oct", X, X.sum(axis=1) > 1.5, depth=depth, time_limit=30)
    print(depth, "sklearn.tree" in sys.modules, result.status)
"""
    assert ended(code) == ["2 False optimal", "3 True optimal"]
