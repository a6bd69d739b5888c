"""Known traps of these models: places where a model, its tree and predict are easily at odds."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from instances import CASES, Case
from long_cases import long

import octsvm
from octsvm import solvers


def cases(file: str, model: str) -> list[Any]:
    found = [c for c in CASES if c.file == file and c.model == model]
    ids = [f"{file}-{'-'.join(map(str, c.params.values()))}" for c in found]
    if not found:
        skip = pytest.mark.skip(reason="the shared cases are not here")
        return [pytest.param(None, marks=skip, id=file)]
    return [pytest.param(c, id=i) for c, i in zip(found, ids, strict=True)]


def z_path(m: pyo.ConcreteModel) -> list[int]:
    """The node of the last level that the model's own variables put each row in."""
    leaf = list(m.topology.tree.leaf)
    n = m.info.data.n
    return [max(leaf, key=lambda t: m.assignment.z[i, t].value) for i in range(n)]


def errors_by_hand(X: np.ndarray, y: np.ndarray, depth: int, alpha: float, n_min: int = 1) -> float:
    """Best errors + alpha·splits over all axis-parallel trees, by recursion over subsets of rows."""

    def best(rows: np.ndarray, levels: int) -> float:
        labels = y[rows]
        here = float(len(rows) - max(np.unique(labels, return_counts=True)[1]))
        if levels == 0:
            return here
        for j in range(X.shape[1]):
            for value in np.unique(X[rows, j])[1:]:
                left = X[rows, j] < value
                if min(left.sum(), (~left).sum()) < n_min:
                    continue
                here = min(here, alpha + best(rows[left], levels - 1) + best(rows[~left], levels - 1))
        return here

    return best(np.arange(len(y)), depth)


# --------------------------------------------------------------------------------------------- unsplit nodes


@pytest.mark.parametrize("variant", ["flow", "rank", "bd"])
@pytest.mark.parametrize("case", cases("unsplit_node.csv", "oct"))
def test_unsplit_nodes_send_every_row_right_shared_case(case: Case, variant: str) -> None:
    result = octsvm.fit("oct", case.X, case.y, variant=variant, **case.params)
    assert result.objective == pytest.approx(case.objective, abs=1e-9)
    assert result.status == "optimal"


@pytest.mark.parametrize("variant", ["flow", "rank", "bd"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.quick_cases("1-*", "2-rank")
def test_where_no_split_pays_rows_cannot_be_sorted_for_free(depth: int, variant: str) -> None:
    X = np.array([[0.0], [0.2], [0.4], [0.6], [0.8], [1.0]])
    y = np.array(
        [0, 0, 0, 1, 1, 1]
    )  # one split sorts them; a left turn at an unsplit node would do it for nothing
    m = octsvm.build("oct", X, y, depth=depth, alpha=10.0, variant=variant)
    result = octsvm.solve(m)
    assert result.objective == 3
    assert not result.tree.splits.any()
    assert result.tree.nodes(X)[:, -1].tolist() == [2 ** (depth + 1) - 1] * 6
    assert octsvm.fit("oct", X, y, depth=depth, alpha=0.5, variant=variant).objective == 0.5
    # The model itself forbids the cheat: a row in the left half needs a split above it.
    m.cheat = pyo.Constraint(expr=m.assignment.z[0, m.topology.tree.leaf[0]] >= 1)
    m.unsplit = pyo.Constraint(expr=sum(m.split.d.values()) <= 0)
    assert octsvm.solve(m).status == "infeasible"


@pytest.mark.parametrize(
    ("formulation", "alpha"),
    [
        *(("oct", alpha) for alpha in (0.0, 0.4, 1.0, 2.5, 10.0)),
        *(("oct_h", alpha) for alpha in (0.4, 2.5, 10.0)),
    ],
)
@pytest.mark.slow_cases("oct_h-?.?")
def test_large_costs_of_splits_against_enumeration(formulation: str, alpha: float) -> None:
    # One feature: OCT-H is OCT where all gaps are wide.
    X = np.array([[0.05], [0.13], [0.22], [0.29], [0.38], [0.41], [0.52], [0.66], [0.81]])
    y = np.array([0, 1, 1, 0, 2, 1, 0, 2, 1])
    result = octsvm.fit(formulation, X, y, depth=2, alpha=alpha, scale=False)
    assert result.objective == pytest.approx(errors_by_hand(X, y, 2, alpha), abs=1e-9)


# ---------------------------------------------------------------------------------------- values close together


def neighbours(start: float, count: int) -> list[float]:
    out = [start]
    while len(out) < count:
        out.append(float(np.nextafter(out[-1], np.inf)))
    return out


CLOSE: dict[str, list[float]] = {
    "1e-7 apart": [0.0, 1e-7, 2e-7, 1.0],
    "1e-7 apart, far from zero": [1e3, 1e3 + 1e-7, 1e3 + 2e-7, 2e3],
    "1e-12 apart": [0.5, 0.5 + 1e-12, 0.5 + 2e-12, 0.5 + 3e-12],
    "next doubles": neighbours(0.3, 4),
    "next doubles around zero": [-5e-324, 0.0, 5e-324, 1e-323],
    "next doubles at 1e5": neighbours(1e5, 4),
    "next doubles, negative": neighbours(-7.3, 4),
    "one gap tiny, one huge": [-1e9, 0.0, 1e-9, 1e9],
}


@pytest.mark.parametrize("values", CLOSE.values(), ids=CLOSE)
@pytest.mark.parametrize("y", [[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 2]])
@pytest.mark.quick_cases("y0-*", "*-1e-12 apart")
def test_two_doubles_are_two_values(values: list[float], y: list[int]) -> None:
    X = np.array(values)[:, None]
    m = octsvm.build("oct", X, y, depth=2, alpha=0.0)
    result = octsvm.solve(m)
    assert result.objective == 0  # four values, two levels: every row can have a leaf of its own
    assert result.tree.predict(X).tolist() == y
    assert result.tree.nodes(X)[:, -1].tolist() == z_path(m)
    reloaded = octsvm.Tree.from_json(result.tree.to_json())
    assert reloaded.predict(X).tolist() == y


def test_thresholds_lie_in_the_middle_of_the_gap() -> None:
    X = np.array([[1.0], [2.0], [10.0], [12.0]])
    tree = octsvm.fit("oct", X, [0, 0, 1, 1], depth=1, alpha=0).tree
    assert tree.threshold.tolist() == [6.0]
    # Between two neighbouring doubles there is no middle: the upper one it is, and it goes right.
    low, high = neighbours(0.1, 2)
    tree = octsvm.fit("oct", [[low], [high]], [0, 1], depth=1, alpha=0).tree
    assert tree.threshold.tolist() == [high]
    # Only the rows that reach a node count for its gap.
    X = np.random.default_rng(2).random((12, 2))
    tree = octsvm.fit("oct", X, [0, 1, 2] * 4, depth=2, alpha=0).tree
    path = tree.nodes(X)
    assert tree.splits.all()
    for t in (1, 2, 3):
        here = path[:, t.bit_length() - 1] == t
        left = here & (path[:, t.bit_length()] == 2 * t)
        value = X[:, tree.feature[t - 1]]
        assert tree.threshold[t - 1] == pytest.approx((value[left].max() + value[here & ~left].min()) / 2)


def test_zero_and_negative_zero_cannot_be_separated() -> None:
    X = np.array([[0.0], [-0.0], [1.0], [2.0]])
    result = octsvm.fit("oct", X, [0, 1, 1, 1], depth=2, alpha=0)
    assert result.objective == 1
    assert result.tree.predict(X)[0] == result.tree.predict(X)[1]
    for formulation in ("oct_h", "re_svm", "octsvm"):
        tree = octsvm.fit(formulation, X, [0, 1, 1, 1]).tree
        assert tree.predict(X)[0] == tree.predict(X)[1]


def test_the_printed_rows_refuse_gaps_that_a_solver_cannot_see() -> None:
    X = np.array([[0.0], [1e-6], [1.0]])
    with pytest.raises(octsvm.InvalidData, match=r"'x1'.*1e-05"):
        octsvm.fit("oct", X, [0, 1, 0], variant="bd")
    assert octsvm.fit("oct", X, [0, 1, 0], depth=2, alpha=0).objective == 0


# ------------------------------------------------------------------------------------------- tiny weights, OCT-H


@pytest.mark.parametrize("gap", [0.0051, 0.006, 0.02])
@pytest.mark.parametrize("complexity", ["splits", "features"])
def test_tiny_oblique_weights_predict_what_the_model_says(gap: float, complexity: str) -> None:
    X = np.array([[0.0, 0.3], [0.5 - gap / 2, 0.9], [0.5 + gap / 2, 0.1], [1.0, 0.7]])
    y = np.array([0, 0, 1, 1])
    m = octsvm.build("oct_h", X, y, depth=1, alpha=0.01, scale=False, complexity=complexity)
    result = octsvm.solve(m)
    assert result.status == "optimal"
    assert result.counts["errors"] == 0
    assert (result.tree.predict(X) != y).sum() == 0
    assert result.differing_rows == ()
    # Bare Pyomo leaves the weights as small as the model allows; reading the tree makes up for it.
    pyo.SolverFactory("appsi_highs").solve(m)
    tree = octsvm.extract(m)
    assert (tree.predict(X) != y).sum() == 0
    assert tree.nodes(X)[:, -1].tolist() == z_path(m)
    np.testing.assert_allclose(np.abs(tree.a[0]).sum(), 1.0)


def test_a_separation_below_mu_is_not_in_the_model() -> None:
    X, y = np.array([[0.0], [0.499], [0.501], [1.0]]), [0, 0, 1, 1]
    assert octsvm.fit("oct_h", X, y, depth=1, alpha=0, scale=False).objective == 1
    assert octsvm.fit("oct_h", X, y, depth=1, alpha=0, scale=False, mu=0.001).objective == 0
    narrow = octsvm.ObliqueTree(
        1, (0, 1), ("x1",), octsvm.formulations.base.Scaling.identity(1), np.array([[1.0]]), np.array([0.5]),
        np.array([True]), np.array([0, 1]),
    )  # fmt: skip
    with pytest.raises(octsvm.TreeNotAdmitted, match=r"0\.002.*mu=0\.005"):
        octsvm.embed(octsvm.build("oct_h", X, y, depth=1, scale=False), narrow)


@pytest.mark.parametrize("seed", [*range(3), *long(range(3, 6))])
@pytest.mark.parametrize("formulation", ["oct", "oct_h", "re_svm", "octsvm"])
def test_predict_is_the_routing_that_was_certified(formulation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((9, 2)), 1)  # a grid: many rows on boundaries, some of them equal
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    y[rng.integers(9)] ^= 1
    params = {
        "oct": {"depth": 2, "alpha": 0.2}, "oct_h": {"depth": 1, "alpha": 0.2},
        "re_svm": {"c1": 5.0, "c2": 8.0}, "octsvm": {"depth": 1, "c1": 5.0, "c2": 8.0, "c3": 0.1},
    }[formulation]  # fmt: skip
    m = octsvm.build(formulation, X, y, **params)
    result = octsvm.solve(m)
    assert result.status == "optimal"
    assert result.differing_rows == ()
    if formulation != "re_svm":
        assert result.tree.nodes(X)[:, -1].tolist() == z_path(m)
    assert (result.tree.predict(X) != y).sum() == result.counts["wrong_rows"]
    again = octsvm.evaluate(formulation, result.tree, X, y, **params)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    assert result.bound <= result.objective


# -------------------------------------------------------------------------------------- rows on the hyperplane

PROOFS: dict[str, tuple[Any, ...]] = {
    # rows, labels, (c1, c2, c3), printed optimum, best tree
    "A": ([[0.1, 0.9], [0.9, 0.1], [0.2, 0.2], [0.8, 0.8]], [1, 1, -1, -1], (0.01, 10.0, 10.0), 0.04, 0.08),
    "B": ([[0.1, 0.1], [0.5, 0.5], [0.5, 0.5], [0.9, 0.9]], [-1, 1, -1, 1], (1.0, 10.0, 0.01), 2.89388, 4.89388),
}  # fmt: skip


@pytest.mark.parametrize("proof", PROOFS)
def test_rows_on_the_hyperplane_have_one_side_by_default(proof: str) -> None:
    X, y, (c1, c2, c3), _, tree_value = PROOFS[proof]
    params = {"depth": 1, "c1": c1, "c2": c2, "c3": c3}
    result = octsvm.fit("octsvm", X, y, scale=False, **params)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(tree_value, rel=2e-4)
    assert octsvm.evaluate("octsvm", result.tree, X, y, **params).objective == pytest.approx(result.objective)
    with_mu = octsvm.fit("octsvm", X, y, scale=False, variant="paper", mu_svm=1e-3, **params)
    assert with_mu.status == "optimal"
    assert with_mu.objective == pytest.approx(result.objective, rel=2e-4)


@pytest.mark.parametrize("proof", PROOFS)
def test_the_printed_rows_claim_more_than_any_tree_has(proof: str) -> None:
    X, y, (c1, c2, c3), printed, tree_value = PROOFS[proof]
    params = {"depth": 1, "c1": c1, "c2": c2, "c3": c3}
    with pytest.raises(octsvm.CertificateMismatch) as caught:
        octsvm.fit("octsvm", X, y, scale=False, variant="paper", **params)
    result = caught.value.result
    assert result.status == "unverified"
    assert result.stop == "numeric"
    assert result.model_objective == pytest.approx(printed, rel=2e-4)
    assert result.bound <= printed * (1 + 1e-4)
    assert result.objective == pytest.approx(tree_value, rel=2e-4)
    true = octsvm.evaluate("octsvm", result.tree, X, y, **params).objective
    assert result.objective == pytest.approx(true, rel=1e-9)
    assert result.differing_rows
    message = str(caught.value)
    assert "on_mismatch='ignore'" in message
    assert "variant='paper'" in message

    ignored = octsvm.fit("octsvm", X, y, scale=False, variant="paper", on_mismatch="ignore", **params)
    assert ignored.status == "unverified"
    assert ignored.objective == pytest.approx(result.objective)
    assert (
        ignored.tree.predict(X) == result.tree.predict(X)
    ).all()  # how wide, heuristics refine while there is time
    with pytest.warns(UserWarning, match="does not hold outside the solver"):
        octsvm.fit("octsvm", X, y, scale=False, variant="paper", on_mismatch="warn", **params)


def test_a_tree_that_reaches_the_printed_optimum_is_optimal() -> None:
    """Errors cost nothing here: whatever side rows on the hyperplane took, the tree's cost meets the bound."""
    X = np.random.default_rng(0).random((8, 2))
    y = [-1, 1, -1, 1, 1, -1, 1, -1]
    params = {"depth": 1, "c1": 0.0, "c2": 1.0, "c3": 1.0}
    result = octsvm.fit("octsvm", X, y, variant="paper", **params)
    assert result.objective == result.bound == 0
    assert result.status == "optimal"


# ------------------------------------------------------------------ unsplit nodes: what is charged, what is read

SIGN_X = np.array([0.5029, 0.1992, 0.1808, 0.5379, 0.0885, 0.9525])[:, None]
SIGN_Y = np.array([1, -1, -1, -1, 1, 1])
SIGN_COSTS = {"depth": 1, "c1": 10.0, "c2": 30.0, "c3": 9.0}


def test_an_unsplit_node_is_charged_by_its_intercept_and_read_at_the_last_split() -> None:
    result = octsvm.fit("octsvm", SIGN_X, SIGN_Y, scale=False, gap=1e-6, **SIGN_COSTS)
    assert result.objective == pytest.approx(92.1448, abs=2e-4)
    tree = result.tree
    assert tree.split.tolist() == [True, False, True]
    assert tree.nodes(SIGN_X)[:, 1].tolist().count(2) == 1
    assert tree.nodes(SIGN_X)[4, 1] == 2  # .0885 alone goes left,
    assert tree.omega0[1] > 0  # is charged as +1 there, which it is,
    assert tree.predict(SIGN_X)[4] == -1  # and predicted as the side taken at the root says
    assert result.counts["charged_otherwise"] == 1
    assert result.counts["wrong_rows"] == (tree.predict(SIGN_X) != SIGN_Y).sum()
    again = octsvm.evaluate("octsvm", tree, SIGN_X, SIGN_Y, **SIGN_COSTS)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    assert again.counts["charged_otherwise"] == 1


def test_the_sign_of_an_unsplit_node_survives_saving_and_embedding() -> None:
    result = octsvm.fit("octsvm", SIGN_X, SIGN_Y, scale=False, **SIGN_COSTS)
    back = octsvm.Tree.from_json(result.tree.to_json())
    assert back.omega0.tolist() == result.tree.omega0.tolist()
    m = octsvm.build("octsvm", SIGN_X, SIGN_Y, scale=False, **SIGN_COSTS)
    octsvm.embed(m, back)
    assert pyo.value(m.objective) == pytest.approx(result.objective, rel=1e-9)
    assert octsvm.extract(m).predict(SIGN_X).tolist() == result.tree.predict(SIGN_X).tolist()


def test_no_row_is_counted_where_charge_and_class_agree() -> None:
    X, y = [[0.0], [0.1], [0.9], [1.0]], [-1, -1, 1, 1]
    result = octsvm.fit("octsvm", X, y, depth=1, c1=10.0, c2=30.0, c3=0.1)
    assert result.counts["charged_otherwise"] == 0
    assert result.tree.predict(X).tolist() == y


# ---------------------------------------------------------------------------------------------- costs at the edge

EDGE_X = np.array(
    [[0.64, 0.27], [0.04, 0.02], [0.81, 0.91], [0.61, 0.73], [0.54, 0.94], [0.82, 0.0], [0.86, 0.03]]
)
EDGE_Y = np.array([-1, -1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("costs", [1e5, 1e7])
@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
def test_huge_costs_hold_or_are_named(formulation: str, costs: float) -> None:
    """A big-M of 1e6 and more leaves slack. What is reported must be true all the same."""
    depth = {"depth": 1, "c3": 0.1} if formulation == "octsvm" else {}
    params = {"c1": costs, "c2": costs, **depth}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = octsvm.fit(formulation, EDGE_X, EDGE_Y, on_mismatch="ignore", gap=1e-5, **params)
    again = octsvm.evaluate(formulation, result.tree, EDGE_X, EDGE_Y, **params)
    assert again.objective == pytest.approx(result.objective, rel=1e-9)
    constant = min((EDGE_Y > 0).sum(), (EDGE_Y < 0).sum()) * costs * (2 if depth else 1)
    assert result.bound <= result.objective <= constant * (1 + 1e-9)
    # A search over scores has no integers to bend; which one answers, and from which tree's big-M, the moment decides.
    tolerance = solvers.require(result.solver).tolerances.integrality
    if result.big_m["hinge"] * tolerance > 0.01:
        assert any("big-M" in note and "integrality" in note for note in result.notes)
    moderate = octsvm.fit(formulation, EDGE_X, EDGE_Y, gap=1e-5, **(params | {"c1": 1e3, "c2": 1e3}))
    # Dearer errors never make the best tree cheaper, and the bound is a bound on the best tree.
    assert result.objective >= moderate.bound * (1 - 1e-6)
    if (
        not any("errors" in k and v > 1e-6 for k, v in moderate.terms.items())
        and not moderate.counts["relabelled"]
    ):
        # No error and no relabelling at 1e3: the same tree is the best one at any higher cost.
        assert result.bound <= moderate.objective * (1 + 2e-5)


@pytest.mark.parametrize(("mu", "blurred"), [(1e-3, True), (0.1, False), (None, False)])
def test_big_m_times_the_tolerance_above_mu_is_named(mu: float | None, blurred: bool) -> None:
    """Below a hundredth of the margin, and more than what keeps rows on the left off their hyperplane."""
    printed = {"variant": "paper"} if mu is None else {"mu_svm": mu}
    model = octsvm.build("octsvm", EDGE_X, EDGE_Y, depth=1, c1=1e6, c2=200.0, c3=0.1, **printed)
    plan = octsvm.plan(model, solver="highs")
    assert 1e-3 < plan.slack < 0.01
    assert (f"mu_svm={mu}" in str(plan)) is blurred
    assert ("larger mu_svm=" in plan.slack_advice) is blurred
    result = octsvm.solve(model, solver="highs", time_limit=5, on_mismatch="ignore", work_limit={"nodes": 1})
    assert any("larger mu_svm=" in note for note in result.notes) is blurred


@pytest.mark.parametrize("variant", [None, "paper"])
@pytest.mark.parametrize(
    "zero", [c for k in (1, 2, 3) for c in itertools.combinations(("c1", "c2", "c3"), k)]
)
@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
@pytest.mark.slow_cases("octsvm-*-paper")
def test_costs_of_zero(formulation: str, zero: tuple[str, ...], variant: str | None) -> None:
    params: dict[str, Any] = {"c1": 2.0, "c2": 3.0, "c3": 0.5, "depth": 1} | dict.fromkeys(zero, 0.0)
    if formulation == "re_svm":
        params = {k: v for k, v in params.items() if k in ("c1", "c2")}
    result = octsvm.fit(formulation, EDGE_X, EDGE_Y, variant=variant, on_mismatch="ignore", **params)
    if "c1" in zero or "c2" in zero:
        # Errors for nothing, or every label given up for nothing: the constant tree, and a bound of zero.
        assert result.objective == pytest.approx(0, abs=1e-9)
        assert result.bound == pytest.approx(0, abs=1e-9)
    again = octsvm.evaluate(formulation, result.tree, EDGE_X, EDGE_Y, **params)
    assert again.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-12)
    if variant is None:
        assert result.status == "optimal"
    assert result.tree.predict(EDGE_X).shape == (7,)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("formulation", ["re_svm", "octsvm"])
def test_a_known_tree_of_cost_zero_leaves_a_model_that_works(formulation: str, norm: str) -> None:
    """One class only: the constant tree costs 0, so every big-M is at its smallest."""
    m = octsvm.build(formulation, EDGE_X, ["same"] * 7, norm=norm)
    assert m.info.upper_bound == 0
    result = octsvm.solve(m)
    assert result.objective == result.bound == 0
    assert result.status == "optimal"
    assert result.tree.predict(EDGE_X).tolist() == ["same"] * 7


def test_weights_of_zero_give_rows_without_a_say() -> None:
    X, y = [[0.0], [0.2], [0.8], [1.0]], [-1, 1, 1, 1]
    for formulation in ("oct", "oct_h", "re_svm", "octsvm"):
        result = octsvm.fit(formulation, X, y, weights=[0.0, 1.0, 1.0, 1.0])
        assert result.status == "optimal"
        assert result.objective == pytest.approx(0, abs=1e-9)


# ------------------------------------------------------------------------------------- what should not matter
