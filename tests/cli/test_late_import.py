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
print(scipy.stats.rankdata([3, 1]).tolist())
from scipy.stats.mstats import mquantiles
print("scipy.stats._stats_py" in sys.modules)
"""
    assert ended(code) == ["True False", "[2.0, 1.0]", "True"]


@pytest.mark.slow
def test_one_that_is_there_stays() -> None:
    code = """
import sys, scipy.stats
from octsvm.cli.late_import import LateImport
before = scipy.stats
LateImport("scipy.stats").install()
import scipy.stats
print(before is scipy.stats, any(type(f) is LateImport for f in sys.meta_path))
"""
    assert ended(code) == ["True False"]


def test_ctrl_c_waits_for_the_end_of_a_late_import(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    code = f"""
import sys, time
sys.path.insert(0, {str(tmp_path)!r})
from octsvm.cli.late_import import LateImport
LateImport("slow").install()
import slow
try:
    import slow
    time.sleep(200)
except KeyboardInterrupt:
    print(slow.whole)
"""
    assert ended(code) == ["True"]


@pytest.mark.parametrize(("depth", "imported"), [(2, False), (3, True)])
@pytest.mark.slow_cases("3-*")
def test_an_oct_imports_greedy_trees_where_it_wants_them(depth: int, imported: bool) -> None:
    code = f"""
import sys, numpy as np, octsvm
X = np.random.default_rng(0).random((30, 3))
result = octsvm.fit("oct", X, X.sum(axis=1) > 1.5, depth={depth}, time_limit=30)
print("sklearn.tree" in sys.modules, result.status)
"""
    assert ended(code) == [f"{imported} optimal"]
