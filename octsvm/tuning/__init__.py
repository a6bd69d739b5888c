"""Parameters chosen by folds: relative costs, fits of a grid, rules of choice, and the result."""

from .run import tune
from .tuning import Tuning

__all__ = ["Tuning", "tune"]
