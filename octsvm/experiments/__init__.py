"""Computational experiments: protocols as data, a runner that can be killed, and reports whose numbers can be traced."""

from __future__ import annotations

from .cells import Cell, Fit, Part, PartData
from .protocol import MethodSpec, Protocol, load_protocol

__all__ = ["Cell", "Fit", "MethodSpec", "Part", "PartData", "Protocol", "load_protocol"]
