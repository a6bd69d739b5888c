"""octsvm: solver-agnostic models of optimal classification trees that survive wrong labels.

Five formulations ("oct", "oct_h", "re_svm", "octsvm", "moctsvm") on Pyomo, assembled from constraint blocks, solved to a
checked tree. Importing this package loads neither Pyomo nor a solver; names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "fit": "api",
    "build": "api",
    "solve": "api",
    "fit_path": "parameter_grid",
    "tune": "tuning",
    "Tuning": "tuning",
    "register": "formulations.registry",
    "register_kernel": "formulations.kernels",
    "tighten": "solving.tightening",
    "Tightening": "solving.tightening",
    "plan": "solving.plan",
    "Plan": "solving.plan",
    "race": "diagnostics.race",
    "embed": "api",
    "extract": "api",
    "evaluate": "api",
    "write": "files.write",
    "read_solution": "files.read_solution",
    "flip_labels": "noise",
    "OCTClassifier": "estimators",
    "OCTHClassifier": "estimators",
    "RESVMClassifier": "estimators",
    "OCTSVMClassifier": "estimators",
    "MOCTSVMClassifier": "estimators",
    "OCTClassifierCV": "estimators",
    "OCTHClassifierCV": "estimators",
    "RESVMClassifierCV": "estimators",
    "OCTSVMClassifierCV": "estimators",
    "MOCTSVMClassifierCV": "estimators",
    "from_sklearn": "estimators.from_sklearn",
    "relabelling_report": "relabelling",
    "relabelling_scores": "relabelling",
    "relabelling_path": "relabelling",
    "suspect_rows": "relabelling",
    "RelabellingScores": "relabelling",
    "export_text": "exports",
    "export_graphviz": "exports",
    "export_dict": "exports",
    "export_source": "exports",
    "plot_tree": "plots",
    "plot_regions": "plots",
    "plot_relabelling_path": "plots",
    "plot_trace": "plots",
    "plot_tuning": "plots",
    "Result": "result",
    "Progress": "result",
    "Tree": "formulations.trees",
    "AxisTree": "formulations.trees",
    "ObliqueTree": "formulations.trees",
    "MarginTree": "formulations.trees",
    "KernelTree": "formulations.trees",
    "Preparation": "formulations.preparation",
    "Evaluation": "formulations.base",
    "CertificateMismatch": "errors",
    "DatasetUnavailable": "errors",
    "EngineFailed": "errors",
    "InvalidData": "errors",
    "InvalidParameter": "errors",
    "InvalidSolutionFile": "errors",
    "InvalidSolverTable": "errors",
    "InvalidStore": "errors",
    "LicenseTooSmall": "errors",
    "MissingPackage": "errors",
    "NoValues": "errors",
    "OctsvmError": "errors",
    "OutputNotWritable": "errors",
    "ProtocolMismatch": "errors",
    "SchedulerLost": "errors",
    "TimeLimitReached": "errors",
    "SolverUnavailable": "errors",
    "TreeNotAdmitted": "errors",
    "UnknownFormulation": "errors",
    "UnknownSolver": "errors",
    "UnsupportedProblem": "errors",
}

_SUBPACKAGES = ("datasets",)

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from . import datasets
    from .api import build, embed, evaluate, extract, fit, solve
    from .diagnostics.race import race
    from .errors import (
        CertificateMismatch,
        DatasetUnavailable,
        EngineFailed,
        InvalidData,
        InvalidParameter,
        InvalidSolutionFile,
        InvalidSolverTable,
        InvalidStore,
        LicenseTooSmall,
        MissingPackage,
        NoValues,
        OctsvmError,
        OutputNotWritable,
        ProtocolMismatch,
        SchedulerLost,
        SolverUnavailable,
        TimeLimitReached,
        TreeNotAdmitted,
        UnknownFormulation,
        UnknownSolver,
        UnsupportedProblem,
    )
    from .estimators import (
        MOCTSVMClassifier,
        MOCTSVMClassifierCV,
        OCTClassifier,
        OCTClassifierCV,
        OCTHClassifier,
        OCTHClassifierCV,
        OCTSVMClassifier,
        OCTSVMClassifierCV,
        RESVMClassifier,
        RESVMClassifierCV,
    )
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
