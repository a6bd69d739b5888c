"""Errors that concern the data, the parameters or a tree. Each says what was asked, what is so, what can be done."""

from __future__ import annotations


class OctsvmError(Exception):
    """Base of every error that this toolkit raises on purpose."""


class InvalidData(OctsvmError, ValueError):
    """The table or the labels cannot be used as they are; the message names the column or the row."""


class InvalidParameter(OctsvmError, ValueError):
    """A parameter is unknown, of the wrong type or out of its range."""


class TreeNotAdmitted(OctsvmError, ValueError):
    """A tree is not a feasible point of the model; the message gives the reason."""


class NoValues(OctsvmError, ValueError):
    """A model holds no solution yet: its variables have no values."""


class OutputNotWritable(OctsvmError, OSError):
    """A file could not be written; nothing is left half-written."""


class UnknownFormulation(OctsvmError, ValueError):
    """No formulation of that name."""
