"""Computational experiments: protocols as data, a runner that can be killed, and reports whose numbers can be traced."""

from __future__ import annotations

from .cells import Cell, Fit, Part, PartData
from .parts import part_data
from .protocol import MethodSpec, Protocol, load_protocol
from .runner import Summary, run
from .store import Store, read_cells

__all__ = [
    "Cell",
    "Fit",
    "MethodSpec",
    "Part",
    "PartData",
    "Protocol",
    "Store",
    "Summary",
    "load_protocol",
    "part_data",
    "read_cells",
    "run",
]
