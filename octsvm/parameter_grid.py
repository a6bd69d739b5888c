"""Trees along a grid of parameters: what is found once serves every setting.

Fitting every point of a grid anew repeats most of the work: whether c2 is 1 or 10, the same few hundred trees come
into question. Here a pool of trees is grown first, from the table and a coarse part of the grid; then every setting
charges all of them, takes the cheapest and improves it. Bounds stay open (0), as with ``strategy="heuristic"``.
"""

from __future__ import annotations

import math
import time
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import prepare
from .errors import InvalidParameter, TreeNotAdmitted
from .formulations.base import Data, FloatArray, Formulation, ModelInfo
from .formulations.checks import whole
from .formulations.margin_trees import norms
from .formulations.registry import formulation as find_formulation
from .formulations.trees import MarginTree, Tree
from .heuristics import Budget, find
from .heuristics.margin_tree import TreeSearch, as_margin_tree
from .heuristics.tree_builder import Hyperplanes
from .options import MAPPING_SHARE, PATH, Clock, limited, takes_options
from .result import Result
from .solving.outcome import one_class, one_class_note, unmodelled

COARSE = 20  # settings from which the pool is grown, spread over the grid
POOL_STEPS = 400  # of the search, for all of them together and each step of a setting
MOST_STEPS = 200  # for one of them
LEAST_RATIO, LARGEST_RATIO = 0.05, 20.0  # of c2 to c1: beyond, trees are those at the ends
STEPS = 3  # of the search that improves the cheapest tree of the pool for a setting
WORTH = 1.2  # it is left alone where it costs more than this many constant trees
POOL_SHARE = 0.5  # of a time limit, for what all settings share
TREE_STEPS = 40  # of the search for each setting, where settings share nothing

__all__ = ["fit_path"]


@takes_options(PATH)
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
    """Fit a formulation at every setting of a grid by heuristics that share their trees.

    Results come one by one, each as soon as it is there; the first one waits for the pool of trees. All rows are
    searched: the method suits tables of up to some thousand rows.

    Parameters
    ----------
    formulation : str
        "oct", "oct_h", "re_svm", "octsvm" or "moctsvm".
    X : array-like of shape (n, p)
        As for :func:`octsvm.fit`.
    y : array-like of shape (n,)
        As for :func:`octsvm.fit`.
    settings : sequence of mappings
        Parameters of the formulation, e.g. ``[{"c1": 1, "c2": 1}, {"c1": 10, "c2": 1}]``.
    work_limit : int, optional
        Steps of the search for each setting: a dozen for "re_svm" and "octsvm", where a step tries three changes of the
        pool's cheapest tree, and 40 for the others. Without a time limit the trees depend on the arguments only.
    seed : int
        Of the heuristics' random choices.
    skip : collection of int
        Positions in ``settings`` that are not wanted, e.g. known from a run before; the others come out the same.
    scale : bool
        As for :func:`octsvm.fit`.
    weights : array-like of shape (n,), optional
        As for :func:`octsvm.fit`.
    {options}
        Half of it, at most, goes to the common work; when it is over no further setting comes, but always one.
    **params
        Parameters that all settings share.

    Returns
    -------
    iterator of (int, Result)
        Position in ``settings``, and the checked tree: status "feasible", or "fallback" for the constant tree. Its
        ``seconds`` hold its share of the common work.

    Raises
    ------
    InvalidData, InvalidParameter, UnknownFormulation
        When called, before the first result.

    Warns
    -----
    UserWarning
        Where y holds one class only, as :func:`octsvm.fit`.
    """
    clock = limited(params)
    form = find_formulation(formulation)
    checked = check_settings(form, settings, params)
    steps = None if work_limit is None else whole("work_limit", work_limit, 1)
    seed = whole("seed", seed, 0)
    if not isinstance(skip, Collection):
        raise InvalidParameter(
            f"skip={skip!r} should be a collection of positions in settings, e.g. {{0, 3}}."
        )
    data = prepare(form, X, y, scale=scale, weights=weights)
    for one in checked:
        if hasattr(one, "leaf_size"):
            one.leaf_size(data.n)
    wanted = [k for k in range(len(checked)) if k not in skip]
    if data.K == 1:
        infos = {k: ModelInfo(form.name, checked[k], data) for k in wanted}
        warnings.warn(one_class_note(data), stacklevel=2)
        return ((k, one_class(form, infos[k], 0.0)) for k in wanted)
    began = time.monotonic()
    form.load_libraries()
    clock.exclude(time.monotonic() - began)
    more = {} if clock.limit == math.inf else {"clock": clock}
    shared = form.path(data, checked, wanted, steps, seed, **more)
    if shared is None:
        shared = _tree_path(form, data, checked, wanted, steps or TREE_STEPS, seed, clock)
    return _until(clock, shared)


def _until(clock: Clock, results: Iterator[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
    """The results while there is time, and the first one in any case."""
    for found in results:
        yield found
        if clock.late():
            return


def combinations(name: str, grid: Any) -> list[dict[str, Any]]:
    """All settings of a ``grid`` as scikit-learn's ParameterGrid reads it; ``name`` is that of the argument."""
    from sklearn.model_selection import ParameterGrid

    try:
        found = [dict(setting) for setting in ParameterGrid(grid)]
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{name}={grid!r} should map parameters to lists of values, or be a list of such mappings: {error}"
        ) from None
    if not found:
        raise InvalidParameter(f"{name} is empty. Give at least one parameter with its values.")
    return found


def check_settings(form: Formulation, settings: Any, params: Mapping[str, Any]) -> list[Any]:
    """The parameters of every setting, checked."""
    if isinstance(settings, (str, Mapping)) or not isinstance(settings, Iterable):
        raise InvalidParameter(
            f"settings={settings!r} should be a list of mappings, e.g. [{{'c1': 1.0}}, {{'c1': 10.0}}]; "
            "sklearn.model_selection.ParameterGrid makes one of a grid."
        )
    known = list(settings)
    if not known:
        raise InvalidParameter("settings is empty. Give at least one, e.g. [{}] for the defaults.")
    checked = []
    for k, setting in enumerate(known):
        if not isinstance(setting, Mapping) or not all(isinstance(name, str) for name in setting):
            raise InvalidParameter(
                f"settings[{k}] is {setting!r}; it should be a mapping of parameters, e.g. {{'c1': 1.0}}."
            )
        both = sorted(set(params) & set(setting))
        if both:
            raise InvalidParameter(
                f"{both[0]!r} is in settings[{k}] and an argument of its own as well; name it once."
            )
        checked.append(form.Params.make(form.name, **params, **setting))
    return checked


def _result(form: Formulation, data: Data, params: Any, trees: Iterable[Tree], began: float) -> Result:
    """The cheapest of the trees that the model admits, or the constant tree where none is cheaper than that."""

    def cost(tree: Tree) -> float:
        return form.evaluate_on(tree, data, params).objective

    best: Tree | None = None
    lowest = cost(form.constant_tree(data, params)) * (1 - 1e-9) - 1e-12
    for tree in trees:
        try:
            known = form.normalise(tree, data, params)
            form.require(known, data, params)
        except TreeNotAdmitted:
            continue  # grown for a greater depth, for smaller leaves
        found = cost(known)
        if found < lowest:
            best, lowest = known, found
    return unmodelled(
        form,
        ModelInfo(form.name, params, data),
        best,
        stop="work_limit",
        seconds=time.monotonic() - began,
        note="no model was built: the tree was found along a grid, and checked without one",
    )


# -- each setting by itself ----------------------------------------------------------------------------------------------


def _tree_path(
    form: Formulation,
    data: Data,
    checked: list[Any],
    wanted: list[int],
    steps: int,
    seed: int,
    clock: Clock,
) -> Iterator[tuple[int, Result]]:
    """Every setting's own search, and the cheapest of what all of them found."""
    if not wanted:
        return
    began = time.monotonic()
    pool: list[Tree] = []
    for params in checked:
        if pool and clock.late(POOL_SHARE):
            break
        left = POOL_SHARE * clock.limit - clock.seconds()
        tree, interrupted = find(form, data, params, left, steps=steps, seed=seed)
        if interrupted:
            raise KeyboardInterrupt
        if tree is not None:
            pool.append(tree)
    share = (time.monotonic() - began) / len(checked)
    for k in wanted:
        yield k, _result(form, data, checked[k], pool, time.monotonic() - share)


# -- margin trees ------------------------------------------------------------------------------------------------------


@dataclass
class _Pool:
    """Trees with their scores (K, n, D + 1), largest norms (K,) and numbers of splits (K,)."""

    planes: list[Hyperplanes]
    margins: FloatArray
    sizes: FloatArray
    splits: FloatArray

    @classmethod
    def of(cls, builder: TreeSearch, planes: list[Hyperplanes]) -> _Pool:
        """Route all rows through all trees."""
        margins = np.empty((len(planes), len(builder.X), builder.depth + 1))
        for k, one in enumerate(planes):
            margins[k] = builder.sign[:, None] * builder.route(one)[1]
        sizes = np.array([float(norms(one.omega, builder.norm).max()) for one in planes])
        return cls(planes, margins, sizes, np.array([float(one.split.sum()) for one in planes]))

    def costs(self, builder: TreeSearch) -> FloatArray:
        """Objective of every tree (K,)."""
        paid = np.einsum("n,kns->k", builder.weights, builder.loss(self.margins))
        delta = np.array([builder.margin(float(size)) for size in self.sizes])
        return np.asarray(delta + builder.c3 * self.splits + paid)


def margin_path(
    form: Formulation,
    data: Data,
    checked: list[Any],
    wanted: list[int],
    steps: int | None,
    seed: int,
    clock: Clock | None = None,
) -> Iterator[tuple[int, Result]]:
    """One pool for all settings that share what trees look like: depth, norm, boundary and kernel."""
    alike: defaultdict[Any, list[int]] = defaultdict(list)
    for k, params in enumerate(checked):
        alike[_shape(params)].append(k)
    paths: dict[Any, _Path] = {}
    for k in wanted:
        shape = _shape(checked[k])
        members = alike[shape]
        if shape not in paths:
            late = None if clock is None else clock.part(MAPPING_SHARE * clock.left()).late
            rows = form.model_rows(data, checked[k], late)
            paths[shape] = _Path(rows, [checked[m] for m in members], steps or STEPS, seed, clock or Clock())
        path = paths[shape]
        began = time.monotonic() - path.share
        tree = path.tree(members.index(k))
        yield k, _result(form, path.data, checked[k], [] if tree is None else [tree], began)


def _shape(params: Any) -> Any:
    kernel = (params.kernel, params.gamma, params.degree, params.coef0) if params.kernel is not None else ()
    return getattr(params, "depth", 0), params.norm, getattr(params, "boundary", None), kernel


class _Path:
    """The pool of a grid, and the tree of every setting once it was asked for."""

    def __init__(self, data: Data, checked: list[Any], steps: int, seed: int, clock: Clock) -> None:
        began, self.clock = time.monotonic(), clock
        self.data, self.checked, self.steps, self.seed = data, checked, steps, seed
        self._known: dict[int, tuple[Hyperplanes | None, bool]] = {}
        self._below = _cheaper_relabelling(checked)
        self.pool = _Pool.of(self.builder(checked[0]), self._grow_pool())
        self.share = (time.monotonic() - began) / len(checked)  # seconds of the pool for each setting

    def builder(self, params: Any, steps: int | None = None, share: float = 1.0) -> TreeSearch:
        """A tree builder of the training rows at one setting, which ends when this share of the limit is over."""
        data = self.data
        budget = Budget(share * self.clock.limit - self.clock.seconds(), steps)
        return TreeSearch(data.X, data.sign, data.weights, params, budget, self.seed)

    def _grow_pool(self) -> list[Hyperplanes]:
        """Trees of a coarse part of the grid, and these without one of their subtrees."""
        coarse = self._coarse()
        found: list[Hyperplanes] = []
        for params in coarse:
            if found and self.clock.late(POOL_SHARE):
                break
            builder = self.builder(
                params, min(MOST_STEPS, self.steps * POOL_STEPS // len(coarse)), POOL_SHARE
            )
            found += [planes.copy() for planes in builder.run()]
            best = builder.best
            if best.split.any():
                found.append(best.copy())
                found += [builder.without(best, int(t)) for t in np.flatnonzero(best.split)[1:] + 1]
        return found

    def _coarse(self) -> list[Any]:
        """Settings to grow trees from: of a large grid those with cheap splits where c1 and c2 are of a size."""
        worth = [p for p in self.checked if not self._trivial(p)]
        if len(worth) <= COARSE:
            return worth
        least = min(getattr(p, "c3", 0.0) for p in worth)
        worth = [p for p in worth if getattr(p, "c3", 0.0) == least]
        worth = [p for p in worth if LEAST_RATIO <= p.c2 / p.c1 <= LARGEST_RATIO] or worth
        return [worth[k] for k in np.unique(np.linspace(0, len(worth) - 1, COARSE).round().astype(int))]

    def _trivial(self, params: Any) -> bool:
        """Whether no tree with a split can be better than the constant one."""
        builder = self.builder(params)
        return bool(params.c1 == 0 or builder.value(builder.unsplit()) <= builder.c3)

    def tree(self, k: int) -> MarginTree | None:
        """The tree of a setting; None where nothing beats the constant tree."""
        chain: list[int] = []
        at: int | None = k
        while at is not None and at not in self._known:
            chain.append(at)
            at = self._below[at]
        for j in reversed(chain):
            self._known[j] = self._found(j)
        planes, _ = self._known[k]
        return None if planes is None else as_margin_tree(planes, self.data, self.checked[k])

    def _found(self, k: int) -> tuple[Hyperplanes | None, bool]:
        """The planes of a setting, and whether they keep all labels. What is cheaper in c2 is known already."""
        params = self.checked[k]
        if self._trivial(params) or not self.pool.planes:
            return None, False
        below = self._below[k]
        if below is not None:
            # A best tree that gives up no label stays one where giving up costs more: no tree becomes cheaper.
            planes, keeps = self._known[below]
            if planes is not None and keeps:
                return planes, True
        builder = self.builder(params)
        constant = builder.value(builder.unsplit())
        costs = self.pool.costs(builder)
        cheapest = int(np.argmin(costs))
        if costs[cheapest] > constant * WORTH:
            return None, False
        builder.best = self.pool.planes[cheapest].copy()
        builder.best.cost = builder.value(builder.best)
        builder.search.optimise_best()
        for _ in range(self.steps):
            if self.clock.late() or not builder.search.try_moves():
                break
        builder.prune()
        best = builder.best
        if not best.split.any() or best.cost >= constant * (1 - 1e-9) - 1e-12:
            return None, False
        return best, bool((builder.cheaper_labels(builder.route(best)[1]) == builder.sign[:, None]).all())


def _cheaper_relabelling(checked: list[Any]) -> list[int | None]:
    """For every setting the one with the next smaller c2 and all else the same."""
    alike: defaultdict[Any, list[tuple[float, int]]] = defaultdict(list)
    for k, params in enumerate(checked):
        alike[tuple(params.model_dump(exclude={"c2"}).values())].append((params.c2, k))
    below: list[int | None] = [None] * len(checked)
    for same in map(sorted, alike.values()):
        for c2, k in same:
            smaller = bisect_left(same, (c2, -1))
            below[k] = same[smaller - 1][1] if smaller else None
    return below
