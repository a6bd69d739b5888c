"""octsvm: solver-agnostic models of optimal classification trees that survive wrong labels.

Five formulations ("oct", "oct_h", "re_svm", "octsvm", "moctsvm") on Pyomo, assembled from constraint blocks, solved to a
checked tree. Importing this package loads neither Pyomo nor a solver; names are loaded when first used.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import *
from .errors import __all__ as _errors

__version__ = "0.1.0"

# What each other module offers here.
_OFFERED = {
    "api": ("fit", "build", "solve", "embed", "extract", "evaluate"),
    "parameter_grid": ("fit_path",),
    "tuning": ("tune", "Tuning"),
    "formulations.registry": ("register",),
    "formulations.kernels": ("register_kernel",),
    "solving.tightening": ("tighten", "Tightening"),
    "solving.plan": ("plan", "Plan"),
    "diagnostics.race": ("race",),
    "files.write": ("write",),
    "files.read_solution": ("read_solution",),
    "noise": ("flip_labels",),
    "estimators": (
        "OCTClassifier", "OCTHClassifier", "RESVMClassifier", "OCTSVMClassifier", "MOCTSVMClassifier",
        "OCTClassifierCV", "OCTHClassifierCV", "RESVMClassifierCV", "OCTSVMClassifierCV",
        "MOCTSVMClassifierCV",
    ),
    "estimators.from_sklearn": ("from_sklearn",),
    "relabelling": (
        "relabelling_report", "relabelling_scores", "relabelling_path", "suspect_rows",
        "RelabellingScores",
    ),
    "exports": ("export_text", "export_graphviz", "export_dict", "export_source"),
    "plots": ("plot_tree", "plot_regions", "plot_relabelling_path", "plot_trace", "plot_tuning"),
    "result": ("Result", "Progress"),
    "formulations.trees": ("Tree", "AxisTree", "ObliqueTree", "MarginTree", "KernelTree"),
    "formulations.preparation": ("Preparation",),
    "formulations.base": ("Evaluation",),
}  # fmt: skip
_HOME = {name: module for module, names in _OFFERED.items() for name in names}

_SUBPACKAGES = ("datasets",)

__all__ = ["__version__", *_HOME, *_errors]

if TYPE_CHECKING:
    from . import datasets
    from .api import build, embed, evaluate, extract, fit, solve
    from .diagnostics.race import race
    from .estimators import *
    from .estimators.from_sklearn import from_sklearn
    from .exports import export_dict, export_graphviz, export_source, export_text
    from .files.read_solution import read_solution
    from .files.write import write
    from .formulations.base import Evaluation
    from .formulations.kernels import register_kernel
    from .formulations.preparation import Preparation
    from .formulations.registry import register
    from .formulations.trees import AxisTree, KernelTree, MarginTree, ObliqueTree, Tree
    from .noise import flip_labels
    from .parameter_grid import fit_path
    from .plots import plot_regions, plot_relabelling_path, plot_trace, plot_tree, plot_tuning
    from .relabelling import (
        RelabellingScores,
        relabelling_path,
        relabelling_report,
        relabelling_scores,
        suspect_rows,
    )
    from .result import Progress, Result
    from .solving.plan import Plan, plan
    from .solving.tightening import Tightening, tighten
    from .tuning import Tuning, tune


def _share_no_lock() -> None:
    """Give up the lock that Pyomo shares with processes started from here, where this is such a process itself.

    Its name in the system outlives a worker that is killed, as where a limit ends parallel folds, and Python warns of that. It is
    done here because Pyomo makes the lock when it is imported, which a worker does while it unpickles its first task, and because
    pools that others start (scikit-learn's searches, Dask) take no initializer of ours.
    """
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from pyomo.common import dependencies

        dependencies.capture_output_lock = threading.Lock()


_share_no_lock()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_SUBPACKAGES})
