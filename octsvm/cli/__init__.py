"""The command line: one module a command."""

from .main import main
from .options import DISAGREEMENT, INTERRUPTED, NO_TREE, OK, UNEXPECTED, UNVERIFIED, WRONG_INPUT

__all__ = ["DISAGREEMENT", "INTERRUPTED", "NO_TREE", "OK", "UNEXPECTED", "UNVERIFIED", "WRONG_INPUT", "main"]
