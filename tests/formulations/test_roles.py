"""What the variables of every model are about: declared by the block that makes them, and kept by copies."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from test_blocks import BLOCKS

import octsvm
from octsvm.bridges import leading_to
from octsvm.formulations import blocks
from octsvm.formulations.blocks.roles import describe, groups_of, role_of, subject
from octsvm.formulations.registry import NAMES, formulation
from octsvm.problem_class import classify
from octsvm.solving.compile import compile_program

rng = np.random.default_rng(3)
X = np.round(rng.random((9, 3)), 1)
X[-1] = X[0]  # two equal samples are one group
N, P = X.shape


def models() -> list[tuple[str, dict[str, Any]]]:
    out = []
    for name in NAMES:
        fields = formulation(name).Params.model_fields
        axes: dict[str, list[Any]] = {"variant": list(formulation(name).variants)}
        for field, choices in (
            ("norm", ["l1", "l2"]),
            ("depth", [0, 1, 2]),
            ("complexity", ["splits", "features"]),
        ):
            if field in fields:
                axes[field] = choices
        out += [(name, dict(zip(axes, chosen, strict=True))) for chosen in itertools.product(*axes.values())]
    return out


MODELS = models()
IDS = ["-".join([name, *map(str, params.values())]) for name, params in MODELS]


def build(name: str, params: dict[str, Any]) -> pyo.ConcreteModel:
    return octsvm.build(name, X, np.arange(N) % (2 if formulation(name).binary_only else 3), **params)


def undeclared(block: Any) -> list[str]:
    found = block.component_objects(pyo.Var, descend_into=True)
    return [v.name for v in found if role_of(v) is None]


@pytest.mark.parametrize(("name", "params"), MODELS, ids=IDS)
@pytest.mark.slow_cases("*-[01]", "*-[01]-*")  # models of fewer nodes
def test_every_integer_column_has_a_sample_or_a_node(name: str, params: dict[str, Any]) -> None:
    model = build(name, params)
    assert undeclared(model) == []
    nodes = model.topology.tree.nodes
    for var in model.component_data_objects(pyo.Var):
        about = subject(var)
        assert all(0 <= i < N for i in about.samples), var.name
        assert about.node is None or about.node in nodes, var.name
        assert about.feature is None or about.feature in range(P), var.name
    problem = classify(model)
    bridge = leading_to(problem, ("LP", "MILP"))
    program = compile_program(model, problem, bridge)
    integer = [program.columns[k] for k in np.flatnonzero(program.integer)]
    assert [v.name for v in integer if not subject(v).samples and subject(v).node is None] == []
    assert integer


@pytest.mark.parametrize(("name", "params"), MODELS, ids=IDS)
@pytest.mark.slow_cases("*-[01]", "*-[01]-*")  # models of fewer nodes
def test_clones_keep_the_roles(name: str, params: dict[str, Any]) -> None:
    model = build(name, params)
    copy = model.clone()
    pairs = zip(model.component_data_objects(pyo.Var), copy.component_data_objects(pyo.Var), strict=True)
    assert all(ours is not theirs and subject(ours) == subject(theirs) for ours, theirs in pairs)
    assert undeclared(copy) == []


def test_pickles_keep_the_roles() -> None:
    model = pyo.ConcreteModel()
    model.f = pyo.Var([0, 1], [1, 2, 3])
    describe(model.f, sample=0, node=1, groups=((0, 2), (1,)))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.f is not model.f
    assert subject(copy.f[0, 3]) == ((0, 2), 3, None)


@pytest.mark.parametrize("add", [add for add, _ in BLOCKS.values()], ids=BLOCKS)
def test_every_block_declares_its_variables(add: Callable[[Any], Any]) -> None:
    model = pyo.ConcreteModel()
    add(model)
    assert undeclared(model) == []


def test_the_samples_of_a_group_are_its_equal_rows() -> None:
    model = build("oct", {"depth": 1})
    f, z = model.assignment.f, model.assignment.z
    for (i, t), var in z.items():
        assert i in subject(var).samples
        assert subject(var).node == t
    of_two = [subject(v).samples for v in f.values() if len(subject(v).samples) > 1]
    assert set(of_two) == {(0, N - 1)}
    assert groups_of(np.array([1, 0, 1])) == ((1,), (0, 2))


def test_a_block_of_ones_own_declares_in_the_same_way() -> None:
    model = build("octsvm", {"depth": 1})
    model.mine = pyo.Block()
    model.mine.w = pyo.Var(range(P), range(N), model.topology.tree.nodes, domain=pyo.Binary)
    assert undeclared(model) == ["mine.w"]
    assert subject(model.mine.w[1, 4, 2]) == ((), None, None)
    describe(model.mine.w, feature=0, sample=1, node=2)
    assert undeclared(model) == []
    assert subject(model.mine.w[1, 4, 2]) == ((4,), 2, 1)
    assert {"describe", "subject"} <= set(blocks.__all__)
