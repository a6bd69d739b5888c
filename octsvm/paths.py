"""Trees along a grid of parameters: what is found once serves every setting.

Fitting every point of a grid anew repeats most of the work: whether c2 is 1 or 10, the same few hundred trees come
into question. Here a pool of trees is grown first, from the table and a coarse part of the grid; then every setting
charges all of them, takes the cheapest and improves it. Bounds stay open (0), as with ``strategy="heuristic"``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .api import unmodelled
from .data import prepare
from .errors import InvalidParameter
from .formulations._svm import norms
from .formulations.base import Data, FloatArray, Formulation
from .formulations.trees import MarginTree, Tree
from .registry import formulation as find_formulation
from .result import Result
from .starts import Budget, find
from .starts.structure_search import Search
from .starts.svm_tree import Planes, Workshop, as_margin_tree

COARSE = 20  # settings from which the pool is grown, spread over the grid
POOL_STEPS = 60  # of the search for each of them
IMPROVED = 1  # trees of the pool that are improved for a setting
STEPS = 12  # of the search that improves them
LEAST_RATIO, LARGEST_RATIO = 0.05, 20.0  # of c2 to c1: beyond, trees are those at the ends
WORTH = 1.2  # a tree of the pool that costs more than this many constant trees is not improved
TREE_STEPS = 40  # of the search of OCT and OCT-H for each setting

__all__ = ["fit_path"]


def fit_path(
    formulation: str,
    X: Any,
    y: Any,
    settings: Sequence[Mapping[str, Any]],
    *,
    work_limit: int | None = None,
    seed: int = 0,
    skip: Collection[int] = (),
    scale: bool = True,
    weights: Any = None,
    **params: Any,
) -> Iterator[tuple[int, Result]]:
    """Fit a formulation at every setting of a grid by heuristics that share their trees; one result as soon as it is there.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm" or "octsvm".
    X : array-like of shape (n, p)
        As for :func:`octsvm.fit`.
    y : array-like of shape (n,)
        As for :func:`octsvm.fit`.
    settings : sequence of mappings
        Parameters of the formulation, e.g. ``[{"c1": 1, "c2": 1}, {"c1": 10, "c2": 1}]``.
    work_limit : int, optional
        Steps of the search for each setting (a dozen). There is no other limit: the trees depend on the arguments only.
    seed : int
        Of the heuristics' random choices.
    skip : collection of int
        Positions in ``settings`` that are not wanted, e.g. known from a run before; the others come out the same.
    scale, weights
        As for :func:`octsvm.fit`.
    **params
        Parameters that all settings share.

    Yields
    ------
    (int, Result)
        Position in ``settings``, and the checked tree: status "feasible", or "fallback" for the constant tree.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        Before the first result.
    """
    form = find_formulation(formulation)
    data = prepare(form, X, y, scale=scale, weights=weights)
    both = [sorted(set(params) & set(setting)) for setting in settings]
    if any(both):
        raise InvalidParameter(f"{max(both)[0]!r} is in the settings and an argument as well; name it once.")
    checked = [form.Params.make(form.name, **params, **setting) for setting in settings]
    if work_limit is not None and (isinstance(work_limit, bool) or int(work_limit) < 1):
        raise InvalidParameter(f"work_limit={work_limit!r} should be a number of steps, 1 or more.")
    wanted = [k for k in range(len(checked)) if k not in skip]
    if form.name in ("re_svm", "octsvm"):
        return _margin_path(form, data, checked, wanted, work_limit or STEPS, seed)
    return _tree_path(form, data, checked, wanted, work_limit or TREE_STEPS, seed)


def _result(form: Formulation, data: Data, params: Any, tree: Tree | None, began: float) -> Result:
    return unmodelled(
        form,
        data,
        params,
        tree,
        stop="work_limit",
        began=began,
        solver="none",
        note="no model was built: the tree was found along a grid, and checked without one",
    )


# -- OCT and OCT-H ----------------------------------------------------------------------------------------------------


def _tree_path(
    form: Formulation, data: Data, checked: list[Any], wanted: list[int], steps: int, seed: int
) -> Iterator[tuple[int, Result]]:
    """Every setting's own search, and the cheapest of what all of them found."""
    if not wanted:
        return
    began = time.monotonic()
    pool: list[Tree] = []
    for params in checked:
        tree, interrupted = find(form, data, params, math.inf, steps=steps, seed=seed)
        if interrupted:
            raise KeyboardInterrupt
        if tree is not None:
            pool.append(tree)
    share = (time.monotonic() - began) / len(checked)
    for k in wanted:
        began = time.monotonic() - share
        params = checked[k]

        def cost(tree: Tree, params: Any = params) -> float:
            return form.evaluate(tree, data.X_original, data.y, params, data.weights).objective

        best = min(pool, key=cost, default=None)
        if best is not None and cost(best) >= cost(form.constant_tree(data, params)) * (1 - 1e-9) - 1e-12:
            best = None
        yield k, _result(form, data, params, best, began)


# -- RE-SVM and OCTSVM ------------------------------------------------------------------------------------------------


@dataclass
class _Pool:
    """Trees with their scores (K, n, D + 1), largest norms (K,) and numbers of splits (K,)."""

    planes: list[Planes]
    margins: FloatArray
    sizes: FloatArray
    splits: FloatArray

    @classmethod
    def of(cls, shop: Workshop, planes: list[Planes]) -> _Pool:
        """Route all rows through all trees."""
        margins = np.empty((len(planes), len(shop.X), shop.depth + 1))
        for k, one in enumerate(planes):
            margins[k] = shop.sign[:, None] * shop.route(one)[1]
        return cls(
            planes,
            margins,
            np.array([float(norms(one.omega, shop.norm).max()) for one in planes]),
            np.array([float(one.split.sum()) for one in planes]),
        )

    def costs(self, shop: Workshop) -> FloatArray:
        """Objective of every tree (K,)."""
        paid = np.einsum("n,kns->k", shop.weights, shop.loss(self.margins))
        delta = np.array([shop.margin(float(size)) for size in self.sizes])
        total: FloatArray = delta + shop.c3 * self.splits + paid
        return total


def _margin_path(
    form: Formulation, data: Data, checked: list[Any], wanted: list[int], steps: int, seed: int
) -> Iterator[tuple[int, Result]]:
    """One pool for all settings that share what trees look like: depth, norm and boundary."""
    paths: dict[Any, tuple[_Path, list[int]]] = {}
    for k in wanted:
        key = _shape(checked[k])
        began = time.monotonic()
        if key not in paths:
            members = [m for m, other in enumerate(checked) if _shape(other) == key]
            paths[key] = _Path(data, [checked[m] for m in members], steps, seed), members
        path, members = paths[key]
        yield k, _result(form, data, checked[k], path.tree(members.index(k)), began)


def _shape(params: Any) -> Any:
    return getattr(params, "depth", 0), params.norm, getattr(params, "boundary", None)


class _Path:
    """The pool of a grid, and the tree of every setting once it was asked for."""

    def __init__(self, data: Data, checked: list[Any], steps: int, seed: int) -> None:
        self.data, self.checked, self.steps, self.seed = data, checked, steps, seed
        self._known: dict[int, tuple[Planes | None, float]] = {}
        self.pool = _Pool.of(self.shop(checked[0]), self._grown())

    def shop(self, params: Any, steps: int | None = None) -> Workshop:
        """A workshop of the training rows at one setting."""
        data = self.data
        return Workshop(data.X, data.sign, data.weights, params, Budget(math.inf, steps), self.seed)

    def _grown(self) -> list[Planes]:
        """Trees of a coarse part of the grid, and these without one of their subtrees."""
        least = min((getattr(p, "c3", 0.0) for p in self.checked), default=0.0)
        coarse = [
            p
            for p in self.checked
            if getattr(p, "c3", 0.0) == least
            and LEAST_RATIO <= p.c2 / max(p.c1, 1e-300) <= LARGEST_RATIO
            and not self._trivial(p)
        ]
        picked = (
            np.unique(np.linspace(0, len(coarse) - 1, COARSE).round().astype(int))
            if coarse
            else np.empty(0, int)
        )
        found: list[Planes] = []
        for k in picked:
            shop = self.shop(coarse[k], POOL_STEPS)
            found += [planes.copy() for planes in shop.run()]
            best = shop.best
            if best is not None and best.split.any():
                found.append(best.copy())
                found += [shop.without(best, int(t)) for t in np.flatnonzero(best.split)[1:] + 1]
        return found

    def _trivial(self, params: Any) -> bool:
        """Whether no tree with a split can be better than the constant one."""
        shop = self.shop(params)
        return params.c1 == 0 or shop.value(shop.unsplit()) <= shop.c3

    def tree(self, k: int) -> MarginTree | None:
        """The tree of a setting; None where nothing beats the constant tree."""
        planes, _ = self._planes(k)
        if planes is None:
            return None
        return as_margin_tree(planes, self.data, self.checked[k])

    def _planes(self, k: int) -> tuple[Planes | None, float]:
        """The planes of a setting, and how many labels they give up."""
        if k not in self._known:
            self._known[k] = self._found(k)
        return self._known[k]

    def _found(self, k: int) -> tuple[Planes | None, float]:
        params = self.checked[k]
        if self._trivial(params) or not self.pool.planes:
            return None, 0.0
        below = self._cheaper_relabelling(k)
        if below is not None:
            # A best tree that gives up no label stays one where giving up costs more: no tree becomes cheaper.
            planes, given_up = self._planes(below)
            if planes is not None and given_up == 0:
                return planes, 0.0
        shop = self.shop(params)
        constant = shop.unsplit()
        constant.cost = shop.value(constant)
        costs = self.pool.costs(shop)
        best = constant
        lowest: list[float] = []
        for place in np.argsort(costs, kind="stable"):
            if len(lowest) == IMPROVED or costs[place] > constant.cost * WORTH:
                break
            if any(abs(costs[place] - other) <= 1e-6 * other for other in lowest):
                continue
            lowest.append(float(costs[place]))
            shop.best = self.pool.planes[place].copy()
            shop.best.cost = shop.value(shop.best)
            search = Search(shop)
            search.settle_best()
            for _ in range(self.steps):
                if not search.step():
                    break
            shop.prune()
            if shop.best.cost < best.cost * (1 - 1e-9) - 1e-12:
                best = shop.best
        if not best.split.any():
            return None, 0.0
        given_up = float((shop.believed(shop.route(best)[1]) != shop.sign[:, None]).sum())
        return best, given_up

    def _cheaper_relabelling(self, k: int) -> int | None:
        """The setting with the next smaller c2 and all else the same."""
        this = self.checked[k]
        rest = this.model_dump(exclude={"c2"})
        smaller = [
            (other.c2, j)
            for j, other in enumerate(self.checked)
            if other.c2 < this.c2 and other.model_dump(exclude={"c2"}) == rest
        ]
        return max(smaller)[1] if smaller else None
