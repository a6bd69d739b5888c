"""Linear support vector machines for the inner loops of the start heuristics, by scikit-learn or an active-set method.

With a large penalty of errors and on small tables the active-set method is tried first (:mod:`.active_set`).
On tables of a hundred rows scikit-learn spends most of its time on checks. Where its binding of LIBSVM solves a small
problem, it is called directly; otherwise the public class is.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import OrderedDict
from functools import cache
from hashlib import blake2b
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from ..formulations.base import BoolArray, FloatArray, IntArray
from ..formulations.margin_trees import LARGE
from . import active_set

BINDING = "sklearn.svm._libsvm"

LARGE_PENALTY = 10.0  # of an error: from here on SMO converges slowly, and the active-set method is tried
FEW, NARROW = 500, 100  # rows and features up to which it is
# Of errors, beside which ½‖ω‖² does not count, and what the active-set method takes.
HARD_PENALTY, HARD_ITERATIONS = 1e5, 600
LARGEST_PROGRAM = 100_000  # rows times features, whose linear program takes a second
REMEMBERED = 1000  # fits, each a hyperplane
MOST_POLISHED = 400  # support vectors, of which a dense linear system is solved
TUBE = 4096.0  # half the width of the tube of a regression, so wide that one of its sides is never reached
Effort = tuple[float, int]  # tolerance and iterations of LIBSVM
REGRESSION: Effort = (1e-2, 2_000)
LOOSE: Effort = (1e-3, 5_000)
PATIENT: Effort = (1e-3, 20_000)
TIGHT: Effort = (1e-7, 40_000)


def fit_linear_svm(
    X: FloatArray,
    sign: FloatArray,
    weights: FloatArray,
    C: float,
    careful: bool = False,
    patient: bool = False,
) -> tuple[FloatArray, float]:
    """Soft-margin SVM: ω (p,) and ω_0; a constant classifier where only one class is left.

    The searches of a grid's settings, and of one tree's nodes, ask for the same ones again: the latest are remembered.
    """
    used = weights > 0
    if not used.any() or (sign[used] == sign[used][0]).all():
        return np.zeros(X.shape[1]), float(sign[used][0]) if used.any() else 1.0
    if not used.all():
        X, sign, weights = X[used], sign[used], weights[used]
    digest = blake2b(repr((X.shape, C, careful, patient)).encode(), digest_size=16)
    for part in (X, sign, weights):
        digest.update(np.ascontiguousarray(part, dtype=float).data)
    key = digest.digest()
    found = _remembered.get(key)
    if found is None:
        found = _remembered[key] = _fit(X, sign, weights, C, careful, patient)
        if len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    return found[0].copy(), found[1]


_remembered: OrderedDict[bytes, tuple[FloatArray, float]] = OrderedDict()


def _fit(
    X: FloatArray, sign: FloatArray, weights: FloatArray, C: float, careful: bool, patient: bool
) -> tuple[FloatArray, float]:
    if len(X) > LARGE:
        return _public(X, sign, weights, C, None)
    if C >= LARGE_PENALTY and _is_small(X):
        found = active_set.least_violation(X, sign > 0, sign, C * weights)
        if found is not None:
            return found[1:]
    effort = TIGHT if careful else PATIENT if patient else LOOSE
    direct = binding()
    if direct is not None:
        return _direct(direct, X, sign, weights, C, effort)
    return _public(X, sign, weights, C, effort)


def least_slack(X: FloatArray, sign: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """ω and ω_0 with the least Σ w max(0, 1 - y s) + ‖ω‖_1/1000, a linear program; zeros where it is too large or has no answer.

    Unlike an SVM with a large C it is exact whatever the norm of ω is.
    """
    from scipy.optimize import linprog

    used = weights > 0
    n, p = int(used.sum()), X.shape[1]
    if n and _is_small(X[used]):
        y = sign[used]
        hard = active_set.least_violation(X[used], y > 0, y, HARD_PENALTY * weights[used], HARD_ITERATIONS)
        if hard is not None:
            return hard[1:]
    if n * p > LARGEST_PROGRAM:
        return np.zeros(p), 0.0
    A = sign[used, None] * np.column_stack([X[used], np.ones(n)])
    cost = np.concatenate([np.full(p, 1e-3), [0.0]])
    found = linprog(
        np.concatenate([cost, cost, weights[used]]),
        A_ub=-np.hstack([A, -A, np.eye(n)]),
        b_ub=-np.ones(n),
    )
    if found.x is None:
        return np.zeros(p), 0.0
    hyperplane = found.x[: p + 1] - found.x[p + 1 : 2 * p + 2]
    return hyperplane[:p], float(hyperplane[p])


def least_violation(X: FloatArray, over: BoolArray, bound: FloatArray, penalty: FloatArray) -> float:
    """About the least ½‖ω‖² + Σ penalty·violation of ω'x + ω_0 ≥ bound where ``over``, and ≤ bound elsewhere.

    With large penalties it is the optimum of the active-set method. Elsewhere it is the dual objective, a lower bound, that
    LIBSVM ends with, for support vector regression with a tube so wide that of the two sides of every row one is never
    reached. Little precision is needed for it to be of use.
    """
    used = penalty > 0
    if not used.any():
        return 0.0
    X, over, bound, penalty = X[used], over[used], bound[used], penalty[used]
    if penalty.min() >= LARGE_PENALTY and _is_small(X):
        exact = active_set.least_violation(X, over, bound, penalty)
        if exact is not None:
            return exact[0]
    target = np.where(over, bound + TUBE, bound - TUBE)
    direct = binding()
    if direct is None:
        support, dual = _public_regression(X, target, penalty)
    else:
        found = _libsvm(direct, X, target, penalty, REGRESSION, svm_type=3, C=1.0, epsilon=TUBE)
        support, dual = np.asarray(found[0]), np.asarray(found[3])[0]
    omega = dual @ X[support]
    return float(dual @ bound[support] - omega @ omega / 2)


def _is_small(X: FloatArray) -> bool:
    return len(X) <= FEW and X.shape[1] <= NARROW


def _fitted(model: Any, X: FloatArray, target: FloatArray, weights: FloatArray) -> Any:
    """A model of scikit-learn's, fitted, however loosely: a hyperplane of some precision is a start as good."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, target, sample_weight=weights)


def _public_regression(X: FloatArray, target: FloatArray, penalty: FloatArray) -> tuple[IntArray, FloatArray]:
    from sklearn.svm import SVR

    model: Any = SVR(
        kernel="linear", C=1.0, epsilon=TUBE, tol=REGRESSION[0], max_iter=REGRESSION[1], cache_size=50
    )
    # No argument of it, and without one a number of the caller's global generator is drawn.
    model.random_state = 0
    _fitted(model, X, target, penalty)
    return np.asarray(model.support_), np.asarray(model.dual_coef_)[0]


def fit_sparse_linear_svm(X: FloatArray, sign: FloatArray, weights: FloatArray, C: float) -> FloatArray:
    """Normal vector (p,) of an SVM with the sum of absolute weights and squared errors; zero where one class is left."""
    used = weights > 0
    if not used.any() or (sign[used] == sign[used][0]).all():
        return np.zeros(X.shape[1])
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=C, penalty="l1", dual=False, intercept_scaling=10.0, max_iter=200, random_state=0)
    return np.asarray(_fitted(model, X[used], sign[used], weights[used]).coef_[0], dtype=float)


def _public(
    X: FloatArray, sign: FloatArray, weights: FloatArray, C: float, effort: Effort | None
) -> tuple[FloatArray, float]:
    """By scikit-learn's public classes: the dual problem, or without an ``effort`` the primal one."""
    from sklearn.svm import SVC, LinearSVC

    if effort is None:
        model = LinearSVC(C=C, loss="hinge", intercept_scaling=10.0, max_iter=200, random_state=0)
    else:
        model = SVC(kernel="linear", C=C, cache_size=50, tol=effort[0], max_iter=effort[1], random_state=0)
    _fitted(model, X, sign, weights)
    return np.asarray(model.coef_[0], dtype=float), float(model.intercept_[0])


def _libsvm(
    binding: Any, X: FloatArray, target: FloatArray, weights: FloatArray, effort: Effort, **problem: Any
) -> Any:
    """What scikit-learn's binding of LIBSVM answers: indices, vectors, their number in each class, dual values, intercept."""
    binding.set_verbosity_wrap(0)
    return binding.fit(
        *(np.ascontiguousarray(part, dtype=np.float64) for part in (X, target)),
        kernel="linear",
        tol=effort[0],
        max_iter=effort[1],
        cache_size=50.0,
        sample_weight=np.ascontiguousarray(weights, dtype=np.float64),
        **problem,
    )


def _direct(
    binding: Any, X: FloatArray, sign: FloatArray, weights: FloatArray, C: float, effort: Effort
) -> tuple[FloatArray, float]:
    found = _libsvm(binding, X, (sign > 0).astype(float), weights, effort, svm_type=0, C=float(C))
    support, vectors = np.asarray(found[0]), np.asarray(found[1])
    dual, intercept = -np.asarray(found[3])[0], -float(np.asarray(found[4])[0])
    omega = dual @ vectors
    if effort[0] < LOOSE[0] and len(support) <= MOST_POLISHED:
        return _polished(vectors, sign[support], dual, C * weights[support], omega, intercept)
    return omega, intercept


def _polished(
    vectors: FloatArray,
    sign: FloatArray,
    dual: FloatArray,
    penalty: FloatArray,
    omega: FloatArray,
    intercept: float,
) -> tuple[FloatArray, float]:
    """The linear SVM whose free support vectors have a margin of exactly 1; LIBSVM's kernel is in single precision.

    ``dual`` holds α_i y_i of the support vectors, ``penalty`` their largest possible α_i.
    """
    free = np.abs(dual) < penalty * (1 - 1e-6)
    if not free.any():
        return omega, intercept
    F, y = vectors[free], sign[free]
    bound = dual[~free] @ vectors[~free]
    # ω = Σ_F a_i x_i + bound,  ω'x_i + ω_0 = y_i on F,  Σ_F a_i = -Σ of the others
    m = len(F)
    matrix = np.ones((m + 1, m + 1))
    matrix[:m, :m], matrix[m, m] = F @ F.T, 0.0
    right = np.append(y - F @ bound, -dual[~free].sum())
    try:
        solved = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return omega, intercept
    exact = solved[:m] @ F + bound
    close = np.abs(exact - omega).max() <= 1e-2 * np.abs(omega).max()
    return (exact, float(solved[m])) if close else (omega, intercept)


@cache
def binding() -> Any:
    """scikit-learn's binding of LIBSVM, or None where it does not solve a small problem."""
    try:
        module = _extension(BINDING)
        rng = np.random.default_rng(0)
        X = rng.random((30, 3))
        sign, weights = np.where(X[:, 0] + 0.3 * rng.random(30) > 0.6, 1.0, -1.0), rng.random(30) + 0.5
        wanted = active_set.least_violation(X, sign > 0, sign, 3.0 * weights)
        omega, omega0 = _direct(module, X, sign, weights, 3.0, (1e-4, 10_000))
    except Exception:  # it is no public function: any change of it may end in any error
        wanted = None
    if wanted is not None and np.allclose([*omega, omega0], [*wanted[1], wanted[2]], rtol=1e-3, atol=1e-3):
        return module
    import sklearn.svm  # noqa: F401  # now, as what is asked of it instead

    return None


def _extension(name: str) -> Any:
    """A compiled module of scikit-learn's without the package it is in, whose import takes a second for what is not used here."""
    if name not in sys.modules:
        top, *inner, _ = name.split(".")
        package = importlib.util.find_spec(top)
        assert package is not None
        assert package.origin is not None
        spec = PathFinder.find_spec(name, [str(Path(package.origin).parent.joinpath(*inner))])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.setdefault(name, module)  # where the package finds it
    return sys.modules[name]
