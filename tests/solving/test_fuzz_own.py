"""Small models with rows and terms of a user's own, at random: no wrong verdict, no bound above a known tree, nothing raw.

The first ten are quick, and those after forty long. ``OCTSVM_FUZZ`` is the number of instances, and
``OCTSVM_FUZZ_SEED`` the first seed; ``python -m benchmarks run own_fuzz`` runs more.
"""

from __future__ import annotations

import os
from typing import Any

import own_fuzz
import pytest
from long_cases import long

from octsvm import solvers

INSTANCES = int(os.environ.get("OCTSVM_FUZZ", "1000"))
FIRST = int(os.environ.get("OCTSVM_FUZZ_SEED", "0"))
CHUNK = 10
CHUNKS = range(FIRST, FIRST + INSTANCES, CHUNK)
ENGINES = [name for name in own_fuzz.ENGINES if solvers.installed(name) is not None]


@pytest.mark.parametrize(
    "first",
    [pytest.param(FIRST, marks=pytest.mark.slow), *long(CHUNKS[1:])],
)
def test_models_with_parts_of_ones_own(first: int) -> None:
    assert own_fuzz.run(range(first, first + CHUNK), ENGINES) == []


WRONG_ONCE = {
    "a tree that costs nothing": (202118, 202278, 210706, 211160, 215943),
    "infeasible and unbounded in one word": (201383, 215640),
    "prices below a dual tolerance": (210383,),
    "credits above the price of an error": (204323,),
    "rows on an approximated margin": (205818, 215433, 215459),
    "light weights": (307002,),
    "units of cost that make large numbers": (302859,),
    "cuts without columns": (309174,),
    "values that are not the tree's": (306413,),
    "a label given up where its row is not": (310729,),
}


@pytest.mark.parametrize("kind", WRONG_ONCE)
def test_what_was_wrong_once(kind: str) -> None:
    """Instances of a longer run that led to a rule; without those of engines that are not here."""
    here = [seed for seed in WRONG_ONCE[kind] if own_fuzz.Instance(seed, own_fuzz.ENGINES).engine in ENGINES]
    assert own_fuzz.run(here, own_fuzz.ENGINES) == []


def test_the_instances_reach_what_there_is() -> None:
    """Every formulation, variant, norm, scale and engine is among the instances of one run."""
    drawn = [own_fuzz.Instance(seed, own_fuzz.ENGINES) for seed in range(1000)]

    def values(get: Any) -> set[Any]:
        return {get(one) for one in drawn}

    assert values(lambda i: (i.name, i.params["variant"])) == {
        (name, variant) for name, variants in own_fuzz.VARIANTS.items() for variant in variants
    }
    assert values(lambda i: i.params.get("norm")) == {None, "l1", "l2"}
    assert values(lambda i: i.unit) == set(own_fuzz.SCALES)
    assert values(lambda i: i.labels) == set(own_fuzz.LABELS)
    assert values(lambda i: i.engine) == set(own_fuzz.ENGINES)
    assert values(lambda i: i.additions) == {0, 1, 2, 3}


@pytest.mark.slow
def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks themselves: a result whose verdict, bound, time or values are wrong is said to be."""
    import dataclasses
    import math

    import octsvm

    solve = octsvm.solve
    wrong = {
        "not optimal": lambda r: {"objective": r.objective + 1, "status": "optimal"},
        "bound too high": lambda r: {"bound": r.objective + 1, "status": "feasible"},
        "not infeasible": lambda r: {"status": "infeasible", "tree": None, "objective": math.inf},
        "unverified": lambda _: {"status": "unverified", "notes": ("x",)},
        "bound below 0": lambda _: {"bound": -1.0, "status": "feasible", "stop": "time_limit"},
        "the model's values cost": lambda r: {"objective": r.objective - 1, "status": "feasible"},
    }
    seed = next(s for s in range(100) if (i := own_fuzz.Instance(s)).name == "oct" and not i.additions)
    assert own_fuzz.examine(seed).failures == []
    for said, change in wrong.items():

        def spoilt(model: Any, change: Any = change, **options: Any) -> octsvm.Result:
            result = solve(model, **options)
            return dataclasses.replace(result, **change(result)) if options else result

        monkeypatch.setattr(octsvm, "solve", spoilt)
        assert any(said in text for text in own_fuzz.examine(seed).failures), said

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("No value for uninitialized")

    monkeypatch.setattr(octsvm, "solve", broken)
    assert any("raw ValueError" in text for text in own_fuzz.examine(seed).failures)
