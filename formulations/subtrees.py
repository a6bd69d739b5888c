"""The documented path of :mod:`octsvm.formulations.bounds.subtrees`."""

from .bounds.subtrees import *  # noqa: F403
