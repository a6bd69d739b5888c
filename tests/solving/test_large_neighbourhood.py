"""What a neighbourhood fixes, by what the blocks declare of their variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import octsvm
from octsvm.formulations.blocks.roles import subject
from octsvm.options import SolveOptions
from octsvm.solving import dispatch, large_neighbourhood


def searched(monkeypatch: pytest.MonkeyPatch, *, depth: int, rounds: int) -> tuple[list[Any], Any]:
    """The neighbourhoods of the default OCT from the constant tree: each search and its restricted program; the result."""
    rng = np.random.default_rng(0)
    X = rng.random((20, 2))
    y = octsvm.flip_labels((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.1, seed=0)
    model = octsvm.build("oct", X, y, depth=depth, alpha=0.5)
    seen: list[Any] = []
    plain = large_neighbourhood.Search.restricted

    def look(self: Any, cells: Any, nodes: Any) -> Any:
        sub = plain(self, cells, nodes)
        seen.append((self.program, nodes.copy(), sub))
        return sub

    monkeypatch.setattr(large_neighbourhood.Search, "restricted", look)
    constant = octsvm.fit("oct", X, y, depth=depth, alpha=1e3).tree
    result = dispatch.solve_with(
        model, SolveOptions(start=constant, work_limit={"rounds": rounds}), neighbourhoods=True
    )  # fmt: skip
    return seen, result


@pytest.mark.slow
def test_integers_of_the_default_oct_are_free_in_the_nodes_of_a_neighbourhood_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, result = searched(monkeypatch, depth=2, rounds=8)
    assert len(seen) == 8
    names = set()
    for program, nodes, sub in seen:
        integer = np.flatnonzero(program.integer)
        free = {int(k) for k in integer if sub.low[k] < sub.high[k]}
        allowed = {int(k) for k in integer if nodes[subject(program.columns[k]).node - 1]}
        assert free <= allowed
        assert {k for k in allowed if program.low[k] < program.high[k]} <= free
        names |= {program.columns[k].parent_component().local_name for k in set(integer.tolist()) - free}
    assert names == {"a", "u", "d", "l", "c"}
    assert result.tree.splits.any()
    assert result.objective == pytest.approx(2.5)  # the optimum
