"""The documented path of :mod:`octsvm.formulations.registry`."""

from .formulations.registry import NAMES, formulation

__all__ = ["NAMES", "formulation"]
