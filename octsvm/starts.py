"""The documented path of :mod:`octsvm.heuristics`."""

from .heuristics import Budget, find, load

__all__ = ["Budget", "find", "load"]
