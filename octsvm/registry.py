"""The documented path of :mod:`octsvm.formulations.registry`."""

from .formulations.registry import NAMES, formulation, names, register

__all__ = ["NAMES", "formulation", "names", "register"]
