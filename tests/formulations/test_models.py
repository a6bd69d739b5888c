"""Every model against brute force, which shares no code with it."""

from __future__ import annotations

from typing import Any

import instances
import numpy as np
import oracles
import pytest

import octsvm
from benchmarks.studies import agreement


def compared(formulation: str, count: int, seed: int) -> list[dict[str, Any]]:
    asked = agreement.STUDY.asked(count=count, seed=seed)
    cells = [cell for cell in agreement.cells(asked) if cell["formulation"] == formulation]
    return [agreement.measure(cell, asked) for cell in cells]


@pytest.mark.parametrize("formulation", instances.FORMULATIONS)
@pytest.mark.parametrize(
    ("count", "seed"),
    [(4, 7), pytest.param(60, 0, marks=pytest.mark.long)],  # four have every depth and norm
)
@pytest.mark.slow_cases("4-7-octsvm", "4-7-moctsvm", "4-7-oct")
def test_default_and_paper_variants_reach_the_enumerated_optimum(
    formulation: str, count: int, seed: int
) -> None:
    """More of them: ``python -m benchmarks run agreement``."""
    lines = compared(formulation, count, seed)
    refused = sum("refused" in line for line in lines)
    assert [line for line in lines if line["faults"]] == []
    assert len(lines) - refused >= count


@pytest.mark.skipif(not instances.CASES, reason="the shared cases are not here")
@pytest.mark.parametrize("case", instances.CASES, ids=lambda c: f"{c.file}-{c.model}-{c.params}")
def test_shared_cases(case: instances.Case) -> None:
    result = octsvm.fit(case.model, case.X, case.y, scale=case.model == "oct", time_limit=100, **case.params)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(case.objective, rel=1e-4, abs=1e-9)
    assert result.bound <= case.objective * (1 + 2e-6) + 1e-9
    assert result.differing_rows == ()
    if case.relabelled is not None:
        assert sorted({r.row for r in result.tree.relabelled}) == list(case.relabelled)


# -- the printed rows of OCTSVM -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_printed_rows_are_never_above_the_default() -> None:
    lower = 0
    for instance in instances.tiny("octsvm", 8, seed=3)[4:]:
        params = {k: v for k, v in instance.params.items() if k != "mu_svm"}
        printed = octsvm.fit(
            "octsvm", instance.X, instance.y, scale=False, variant="paper", on_mismatch="ignore", **params
        )
        strict = oracles.optimum("octsvm", instance.X, instance.y, instance.params)
        closed = oracles.optimum("octsvm", instance.X, instance.y, instance.params, boundary="printed")
        assert printed.bound <= closed * (1 + 2e-6) + 1e-9
        if printed.status == "unverified":
            assert printed.model_objective == pytest.approx(closed, rel=1e-4, abs=1e-6)
            assert printed.objective > closed
        assert closed <= strict * (1 + 1e-6)
        lower += closed < strict * (1 - 1e-3)
    assert lower > 0  # the instances must hold some where the printed rows cheat


# -- links between the models -------------------------------------------------------------------------------------


def _two_classes(seed: int, n: int = 9, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.where(X @ rng.normal(size=p) > rng.normal() * 0.2, 1, -1)
    y[:2] = [1, -1]
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_re_svm_without_relabelling_is_the_soft_margin_svm(seed: int) -> None:
    from sklearn.svm import SVC

    X, y = _two_classes(seed, 20)
    svc = SVC(kernel="linear", C=2.0, tol=1e-10).fit(X, y)
    w, b = svc.coef_[0], svc.intercept_[0]
    exact = 0.5 * w @ w + 2.0 * np.maximum(0, 1 - y * (X @ w + b)).sum()
    result = octsvm.fit("re_svm", X, y, scale=False, c1=2.0, c2=1e4, gap=1e-6)
    assert result.objective == pytest.approx(exact, rel=1e-5)
    assert result.tree.relabelled == ()


@pytest.mark.parametrize("seed", range(3))
def test_oct_h_on_one_feature_is_oct(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.permutation(np.linspace(0, 1, 10))[:, None]
    y = rng.integers(0, 3, 10)
    params = {"depth": 2, "alpha": 0.3}
    assert octsvm.fit("oct_h", x, y, **params).objective == pytest.approx(
        octsvm.fit("oct", x, y, **params).objective
    )


@pytest.mark.parametrize(
    ("formulation", "params"),
    [
        ("oct", {"depth": 2, "alpha": 0.4}),
        ("oct_h", {"depth": 1, "alpha": 0.4}),
        ("re_svm", {"c1": 3.0, "c2": 2.0}),
        ("octsvm", {"depth": 1, "c1": 3.0, "c2": 2.0, "c3": 0.2}),
    ],
)
def test_permutation_and_duplication(formulation: str, params: dict) -> None:
    X, y = _two_classes(11, 7)
    base = octsvm.fit(formulation, X, y, scale=False, **params).objective
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    permuted = octsvm.fit(formulation, X[rows][:, columns], y[rows], scale=False, **params).objective
    assert permuted == pytest.approx(base, rel=2e-4)
    twice = octsvm.fit(
        formulation, np.vstack([X, X]), np.concatenate([y, y]), scale=False, **params
    ).objective
    weighted = octsvm.fit(formulation, X, y, scale=False, weights=np.full(len(y), 2.0), **params).objective
    assert twice == pytest.approx(weighted, rel=2e-4)
    if formulation in ("oct", "re_svm"):  # the others send s = 0, or a'x = b, to one side
        mirrored = octsvm.fit(formulation, X, -y, scale=False, **params).objective
        assert mirrored == pytest.approx(base, rel=2e-4)
    if "c2" in params:
        doubled = params | {cost: 2 * params[cost] for cost in ("c1", "c2")}
        assert octsvm.fit(formulation, X, y, scale=False, **doubled).objective == pytest.approx(
            weighted, rel=2e-4
        )


@pytest.mark.slow
def test_weights_agree_with_brute_force() -> None:
    rng = np.random.default_rng(5)
    for formulation in instances.FORMULATIONS:
        for instance in instances.tiny(formulation, 2, seed=21):
            weights = rng.integers(0, 4, len(instance.y)).astype(float)
            weights[0] = 1.0
            optimum = oracles.optimum(formulation, instance.X, instance.y, instance.params, weights=weights)
            result = octsvm.fit(
                formulation,
                instance.X,
                instance.y,
                scale=formulation == "oct",
                weights=weights,
                **instance.params,
            )
            assert result.objective == pytest.approx(optimum, rel=1e-4, abs=1e-8)


# -- a second solver ----------------------------------------------------------------------------------------------
