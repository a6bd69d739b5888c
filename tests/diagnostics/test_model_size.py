"""The size of a model from formulas, against models that are built."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import numpy as np
import pytest
from command_line import run
from model_counts import counted

import octsvm
from octsvm.diagnostics import model_size as size
from octsvm.formulations.octsvm import MOST_SETS
from octsvm.formulations.registry import formulation as find_formulation

CHOICES: dict[str, dict[str, list[Any]]] = {
    "oct": {"variant": [None, "flow", "rank", "bd"], "complexity": ["splits", "features"]},
    "oct_h": {"complexity": ["splits", "features"]},
    "re_svm": {"norm": ["l1", "l2"], "variant": [None, "compact", "paper"]},
    "octsvm": {"norm": ["l1", "l2"], "variant": [None, "compact", "paper"], "mu_svm": [None, 0.01]},
    "moctsvm": {"norm": ["l1", "l2"], "variant": [None, "compact", "levels"]},
}
SIZES = [(7, 2, 2, 3), (12, 4, 3, 2), (9, 1, 2, 1), (5, 3, 4, 0)]
# Every choice of a formulation on one of the sizes; on the others it is slow.
MODELS = [
    pytest.param(
        name,
        shape,
        {k: v for k, v in zip(choices, chosen, strict=True) if v is not None},
        marks=() if j == i % len(SIZES) else pytest.mark.slow,
    )
    for name, choices in CHOICES.items()
    for i, chosen in enumerate(itertools.product(*choices.values()))
    for j, shape in enumerate(SIZES)
]


def table(n: int, p: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """With zeros, equal values and, from three columns on, a constant one."""
    rng = np.random.default_rng(n)
    X = rng.random((n, p))
    if p > 2:
        X[:, 2] = 0.5
    if p > 3:
        X[:, 3] = np.round(3 * X[:, 3])
    return X, np.arange(n) % k


@pytest.mark.parametrize(("formulation", "shape", "params"), MODELS)
def test_counts_are_those_of_the_built_model(
    formulation: str, shape: tuple[int, int, int, int], params: dict[str, Any]
) -> None:
    n, p, k, depth = shape
    if formulation != "re_svm":
        params = params | {"depth": depth}
    k = 2 if find_formulation(formulation).binary_only else k
    X, y = table(n, p, k)
    found = size.of_table(formulation, X, y, **params)
    model = octsvm.build(formulation, X, y, **params)
    assert {name: getattr(found, name) for name in counted(model)} == counted(model)
    assert found.continuous == found.variables - found.binaries
    expected = "MILP"
    if params.get("norm", "l2") == "l2" and formulation in ("re_svm", "octsvm", "moctsvm"):
        expected = (
            "MIQP" if formulation == "re_svm" else "MISOCP" if depth or formulation == "octsvm" else "MILP"
        )
    assert found.problem == expected


@pytest.mark.parametrize(("n", "p", "k", "depth"), [(6, 2, 2, 1), (11, 3, 4, 2), (20, 5, 3, 3)])
@pytest.mark.parametrize("formulation", list(CHOICES))
def test_counts_from_the_shape_alone(formulation: str, n: int, p: int, k: int, depth: int) -> None:
    params = {} if formulation == "re_svm" else {"depth": depth}
    k = 2 if find_formulation(formulation).binary_only else k
    X = np.random.default_rng(1).random((n, p))
    shape = size.of_shape(formulation, n, p, k, **params)
    built = counted(octsvm.build(formulation, X, np.arange(n) % k, **params))
    # Scaled and ranked columns have one zero each; equal gaps of ranks leave their correction empty.
    B = 2**depth - 1
    taken_off = {"oct_h": p * B}.get(formulation, 0)
    if formulation == "oct":  # bounds on subtrees have a nonzero only where they change
        assert shape.nonzeros - 2 * p * (n - 1) <= built["nonzeros"] <= shape.nonzeros
    elif formulation == "octsvm":  # sets of three and four rows depend on the table
        more = built.pop("rows") - shape.rows
        assert 0 <= more <= MOST_SETS * max(1, B)
        assert shape.nonzeros + 7 * more <= built["nonzeros"] <= shape.nonzeros + 13 * more
        built["rows"] = shape.rows
    else:
        assert shape.nonzeros - taken_off == built["nonzeros"]
    for name in ("variables", "binaries", "rows", "cones"):
        assert getattr(shape, name) == built[name]
    assert not shape.exact


@pytest.mark.parametrize("formulation", ["oct_h", "re_svm", "octsvm"])
def test_a_formulation_that_states_no_size_is_built_and_counted(
    formulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {} if formulation == "re_svm" else {"depth": 1}
    X, y = table(8, 3, 2)
    stated, shape = size.of_table(formulation, X, y, **params), size.of_shape(formulation, 8, 3, **params)
    kind = type(find_formulation(formulation))
    monkeypatch.delattr(kind, "size")
    monkeypatch.delattr(kind, "proved_rows")
    assert size.of_table(formulation, X, y, **params) == stated
    built = size.of_shape(formulation, 8, 3, **params)
    assert (built.variables, built.binaries, built.exact) == (shape.variables, shape.binaries, False)
    assert size.expectation(built, params)["provable"] == "unknown"


def test_what_has_no_size_is_refused() -> None:
    with pytest.raises(octsvm.InvalidData, match="one class only"):
        size.of_table("oct", [[1.0], [2.0]], ["a", "a"])
    with pytest.raises(octsvm.InvalidParameter, match="n_min=99"):
        size.of_table("oct", [[1.0], [2.0]], ["a", "b"], n_min=99)


def test_expectations_follow_the_measurements() -> None:
    proved = [
        (name, norm, measured)
        for name in CHOICES
        for norm, measured in sys.modules[f"octsvm.formulations.{name}"].PROVED_ROWS.items()
    ]
    assert len(proved) == 8
    for name, norm, measured in proved:
        for depth, rows in measured.items():
            params: dict[str, Any] = {"norm": norm} if norm else {}
            if name != "re_svm":
                params["depth"] = depth
            fits = size.of_shape(name, rows, 5, **params)
            assert size.expectation(fits, params)["provable"] == "likely"
            between = size.of_shape(name, rows + 1, 5, **params)
            assert size.expectation(between, params)["provable"] == "unknown"
            more = size.of_shape(name, 2 * rows, 5, **params)
            found = size.expectation(more, params)
            assert found["provable"] == "unlikely"
            assert "In our measurements" in found["advice"]
            assert found["proved_rows"] == rows
    wide = size.expectation(size.of_shape("oct", 10, 500, depth=1), {"depth": 1})
    assert wide["provable"] == "unknown"
    assert "500 features" in wide["advice"]
    deep = size.expectation(size.of_shape("oct", 10, 2, depth=6), {"depth": 6})
    assert deep["provable"] == "unlikely"
    none = size.expectation(size.of_shape("oct", 1000, 2, depth=0), {"depth": 0})
    assert none["provable"] == "likely"
    huge = size.expectation(size.of_shape("octsvm", 2000, 60, depth=3), {"depth": 3})
    assert " GB" in huge["advice"]


def test_size_command() -> None:
    result = run("size", "--n", "100", "--p", "10", "--depth", "1")
    assert result.exit_code == 0
    for part in ("MISOCP", "1,238 (403 binary", "2,417, 3 of them second-order cones", "advice"):
        assert part in result.stdout
    found = json.loads(run("size", "--n", "100", "--p", "10", "--depth", "1", "--json").stdout)
    assert (found["schema"], found["rows"], found["binaries"]) == ("octsvm.size", 2417, 403)


def test_size_of_a_table_is_what_is_written(tmp_path: Any) -> None:
    args = ["iris", "--formulation", "oct_h", "--depth", "1", "--json"]
    told = json.loads(run("size", *args).stdout)
    path = str(tmp_path / "model.lp")
    written = json.loads(run("write", *args, "--out", path).stdout)
    assert [told[k] for k in ("variables", "binaries", "rows")] == [
        written[k] for k in ("variables", "binaries", "rows")
    ]
    assert (told["n"], told["p"], told["k"], told["exact"]) == (150, 4, 3, True)
