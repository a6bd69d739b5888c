"""Random small models with parts of a user's own, and what is wrong with the results: the fuzz of tests and benchmarks.

An :class:`Instance` follows from its seed alone: formulation, variant, norm, table and its scale, labels, weights and their
unit, rows, terms, variables and fixings of the user's own, and an engine. It is solved twice, by that engine as it is built,
and as by default with big-M from a bound that no tree worth having exceeds. :func:`examine` compares what is said with all trees
known: those of both, every axis tree (OCT), and brute force where nothing was added.
"""

from __future__ import annotations

import enum
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import oracles
import pyomo.environ as pyo
from waiting import busy

import octsvm
from octsvm.errors import InvalidData, OctsvmError, TreeNotAdmitted
from octsvm.formulations.registry import formulation as find_formulation
from octsvm.formulations.trees import AxisTree
from octsvm.solving import certificate as checks
from octsvm.solving.own_terms import complete

ENGINES = ("highs", "scip", "gurobi", "cplex", "xpress", "cbc", "glpk", "shot", "bonmin")
SECONDS = 5.0  # limit of a solve
LATE = 2.0  # seconds of a processor past it that are an overrun
GAP, BOUND = (
    2e-4,
    2e-6,
)  # relative: what an optimum may be dearer, and a bound higher, than the best tree known
SCALES = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12)
VARIANTS: dict[str, tuple[str | None, ...]] = {
    "oct": (None, "rank", "bd"),
    "oct_h": (None,),
    "re_svm": (None, "paper"),
    "octsvm": (None, "paper"),
}
GROUPS = (
    *("split.d", "pruning.d", "split.a", "split.b", "split.omega", "relabelling.xi", "hinge.e"),
    *("leaf_label.c", "assignment.z", "margin.delta"),
)


class Colour(enum.Enum):
    """Labels that are no numbers."""

    RED = 1
    BLUE = 2
    GREEN = 3


LABELS: tuple[Sequence[Any], ...] = (
    (0, 1, 2),
    ("a", "b", "c"),
    ("01", "1", "001"),
    (2**60, 2**60 + 1, 2**60 + 2),
    tuple(Colour),
    (-1.5, 0.25, 1e300),
)


@dataclass
class Instance:
    """A table, parameters, and what is added to the model; everything follows from the seed."""

    seed: int
    engines: Sequence[str] = ("highs",)
    rng: np.random.Generator = field(init=False)
    name: str = field(init=False)
    params: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.name = str(rng.choice(list(VARIANTS)))
        most = 6 if self.name == "octsvm" else 7  # its proofs take the longest
        n, p = int(rng.integers(3, most + 1)), int(rng.integers(1, 3))
        grid = rng.random((n, p)) if rng.random() < 0.5 else rng.integers(0, 4, (n, p)) / 3.0
        self.X = grid * float(rng.choice(SCALES))
        classes = 3 if self.name in ("oct", "oct_h") and rng.random() < 0.3 else 2
        self.code = rng.integers(0, classes, n)
        self.code[:2] = 0, 1
        self.labels = LABELS[int(rng.choice(len(LABELS), p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]))]
        self.weights = self._weights(n)
        self._params()
        self.additions = int(rng.integers(0, 4))
        self.choices = int(rng.integers(2**31))
        self.engine = "highs" if rng.random() < 0.9 else str(rng.choice(list(self.engines)))

    def _weights(self, n: int) -> np.ndarray | None:
        """None, or weights in a unit of their own, some of them 0."""
        rng = self.rng
        self.unit = float(rng.choice(SCALES)) if rng.random() < 0.25 else 1.0
        kind = int(rng.choice(3, p=[0.6, 0.25, 0.15]))
        if kind == 0:
            return None if self.unit == 1.0 else np.full(n, self.unit)
        return self.unit * (rng.random(n) + 0.1 if kind == 1 else np.where(rng.random(n) < 0.3, 0.0, 1.0))

    def _params(self) -> None:
        """Costs; where the weights have a unit, half the time in that unit, so that the trees are those without it."""
        rng = self.rng
        unit = self.unit if rng.random() < 0.5 else 1.0
        self.params = {"variant": VARIANTS[self.name][int(rng.integers(len(VARIANTS[self.name])))]}
        if self.name != "re_svm":
            self.params["depth"] = int(rng.integers(0, 2))
        if self.name in ("oct", "oct_h"):
            self.params["alpha"] = float(rng.choice([0.0, 0.1, 0.5, 1.0])) * unit
            if rng.random() < 0.3:
                self.params["complexity"] = "features"
            return
        self.params |= {key: float(rng.choice([0.1, 1.0, 5.0])) / unit for key in ("c1", "c2")}
        self.params["norm"] = str(rng.choice(["l1", "l2"]))
        if self.name == "octsvm":
            self.params["c3"] = float(rng.choice([0.0, 1.0]))
            self.params["mu_svm"] = 1e-3

    @property
    def y(self) -> list[Any]:
        """The labels, as given to a fit."""
        return [self.labels[k] for k in self.code.tolist()]

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.name} {self.params}, unit {self.unit:g}, {self.additions} additions"

    def model(self, upper_bound: float | None = None) -> pyo.ConcreteModel:
        """The model with what is added to it; with ``upper_bound`` that is what big-M comes from."""
        more = {} if upper_bound is None or self.name in ("oct", "oct_h") else {"upper_bound": upper_bound}
        model = octsvm.build(self.name, self.X, self.y, weights=self.weights, **self.params, **more)
        add_parts(model, self.additions, self.choices)
        return model

    def generous(self) -> float:
        """An objective that no tree worth having comes to."""
        weights = np.ones(len(self.code)) if self.weights is None else self.weights
        price = max(self.params.get("c1", 0.0), self.params.get("c2", 0.0))
        return 300.0 + 10.0 * price * float(weights.sum())


def add_parts(model: pyo.ConcreteModel, additions: int, choices: int) -> None:
    """Rows, terms, variables and fixings by the same choices, whatever the bounds of the model are."""
    rng = np.random.default_rng(choices)
    found = [model.find_component(path) for path in GROUPS]
    groups = [g for c in found if c is not None and (g := [v for v in c.values() if not v.fixed])]
    terms: Any = 0.0
    for k in range(additions if groups else 0):
        group = groups[int(rng.integers(len(groups)))]
        some = [group[int(i)] for i in rng.choice(len(group), min(len(group), 2), replace=False)]
        coefs = [float(c) for c in rng.choice([-3.0, -1.0, -0.3, 0.3, 1.0, 10.0], len(some))]
        body = sum(c * v for c, v in zip(coefs, some, strict=True))
        kind = str(rng.choice(["term", "row", "equal", "fixed", "bounded", "open", "integer", "unused"]))
        side = float(rng.choice([-0.5, 0.0, 0.3, 1.0]))
        if kind == "term":
            terms = terms + body
        elif kind == "row":
            model.add_component(f"own_row{k}", pyo.Constraint(expr=body <= side))
        elif kind == "equal":
            model.add_component(f"own_row{k}", pyo.Constraint(expr=some[0] == (side if k else abs(side))))
        elif kind == "fixed":
            if some[0].is_integer():
                some[0].fix(int(side > 0))
        elif kind == "unused":
            model.add_component(f"own{k}", pyo.Var(domain=pyo.Integers))
        else:
            bounds = {"bounded": (0, 5), "open": (None, None), "integer": (-2, 40)}[kind]
            own = pyo.Var(bounds=bounds, domain=pyo.Integers if kind == "integer" else pyo.Reals)
            model.add_component(f"own{k}", own)
            model.add_component(f"own_row{k}", pyo.Constraint(expr=own >= body + side))
            terms = terms + float(rng.choice([0.2, 1.0])) * own
    if not isinstance(terms, float):
        model.objective.set_value(model.cost + terms)


# -- trees that are known without the model ------------------------------------------------------------------------------


def axis_trees(model: pyo.ConcreteModel) -> list[AxisTree]:
    """Every tree of an OCT model of at most one level: by features, cuts and classes."""
    data, depth = model.info.data, model.info.params.depth
    labels = list(itertools.product(range(data.K), repeat=2**depth))

    def tree(feature: list[int], threshold: list[float], label: tuple[int, ...]) -> AxisTree:
        return AxisTree(
            depth, data.classes, data.feature_names, data.scaling,
            np.array(feature, dtype=np.int64), np.array(threshold), np.array(label, dtype=np.int64),
        )  # fmt: skip

    found = [tree([-1] * depth, [0.0] * depth, label) for label in labels]
    if depth:
        for j in range(data.p):
            value = np.unique(data.X_original[:, j])
            found += [tree([j], [b], label) for b in (value[1:] + value[:-1]) / 2 for label in labels]
    return found


def least_of_all(model: pyo.ConcreteModel) -> float:
    """What the best tree of an OCT model costs, its own rows and terms included, by trying all of them."""
    form, best = find_formulation("oct"), math.inf
    for tree in axis_trees(model):
        checks.forget_own_values(model)
        try:
            checks.embed(model, form, tree)
        except TreeNotAdmitted:
            continue
        if complete(model):
            best = min(best, float(pyo.value(model.objective)))
    return best


def brute_force(instance: Instance) -> float:
    """The optimum of a model as it was built; infinite (nothing known) where its prices are beyond what is enumerated."""
    X = instance.X
    span = X.max(axis=0) - X.min(axis=0)
    scaled = np.where(span > 0, (X - X.min(axis=0)) / np.where(span > 0, span, 1.0), 0.0)
    params = {k: v for k, v in instance.params.items() if k != "variant"}
    y = instance.code if instance.name == "oct_h" else 2 * instance.code - 1
    weights, unit = instance.weights, instance.unit
    if weights is not None:  # the same trees, with weights about 1
        weights = weights / unit
        params |= {key: params[key] * unit for key in ("c1", "c2") if key in params}
        params |= {"alpha": params["alpha"] / unit} if "alpha" in params else {}
    if not all(1e-3 <= params.get(key, 1.0) <= 1e3 for key in ("c1", "c2")):
        return math.inf
    scale = unit if weights is not None and "alpha" in params else 1.0
    return scale * oracles.optimum(instance.name, scaled, y, params, weights=weights)


# -- what is wrong -------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of an instance: what is wrong with it, and the results behind that."""

    instance: Instance
    failures: list[str] = field(default_factory=list)
    results: list[octsvm.Result] = field(default_factory=list)
    refused: str = ""  # the class of the error with which it was refused, which is no failure


def examine(seed: int, engines: Sequence[str] = ("highs",)) -> Found:
    """Solve an instance twice, and say what is wrong with the results."""
    instance = Instance(seed, engines)
    found = Found(instance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, wide = instance.model(), instance.model(instance.generous())
        except InvalidData as error:  # values too close for variant="bd", or for any split
            found.refused = type(error).__name__
            return found
        except Exception as error:  # whatever it is, it is what we look for
            found.failures.append(f"{instance}, build: {type(error).__name__}: {error}")
            return found
        for which, solver in ((model, {"solver": instance.engine}), (wide, {})):
            _solve(found, which, solver)
        if len(found.results) == 2:
            known = _known(found, model)
            for which, result in zip((model, wide), found.results, strict=True):
                found.failures += _wrong(instance, which, result, known)
    return found


def _solve(found: Found, model: pyo.ConcreteModel, asked: dict[str, str]) -> None:
    """Solve with the engine that is ``asked`` for, if any, and keep the result or what is wrong."""
    began, solver = busy(), asked.get("solver", "default")
    try:
        result = octsvm.solve(model, time_limit=SECONDS, on_mismatch="ignore", **asked)
    except (octsvm.errors.UnsupportedProblem, octsvm.errors.LicenseTooSmall) as error:
        found.refused = type(error).__name__
        return
    except Exception as error:  # whatever it is, it is what we look for
        kind = "" if isinstance(error, OctsvmError) else "raw "
        found.failures.append(f"{found.instance}, {solver}: {kind}{type(error).__name__}: {error}")
        return
    seconds = busy() - began
    if seconds > SECONDS + LATE:
        found.failures.append(f"{found.instance}, {solver}: {seconds:.1f} s of {SECONDS:g}")
    found.results.append(result)


def _known(found: Found, model: pyo.ConcreteModel) -> float:
    """The cheapest tree known of the instance."""
    known = [r.objective for r in found.results if r.tree is not None and r.status != "unverified"]
    if found.instance.name == "oct":
        known.append(least_of_all(found.instance.model()))
    elif checks.is_own(model):
        known.append(brute_force(found.instance))
    return min(known, default=math.inf)


def _wrong(instance: Instance, model: pyo.ConcreteModel, result: octsvm.Result, best: float) -> list[str]:
    """What is wrong with a result, where the best tree known costs ``best``."""
    at = (
        f"{instance}, {result.solver}: {result.status}/{result.stop} {result.objective:.9g} bound {result.bound:.9g} "
        f"best {best:.9g}: "
    )
    heaviest = 1.0 if instance.weights is None else min(1.0, float(instance.weights.max()))
    size = max(1e-3 * heaviest, abs(best)) if math.isfinite(best) else 0.0
    # What "meet" means in a result: within 2e-9 of about how large objectives are, 1 at most.
    meet = 2e-9 * min(1.0, model.info.upper_bound)
    found = []
    if result.status == "unverified":
        found.append(f"unverified, {result.notes[-1]}")
    elif result.status == "optimal" and result.objective > best + GAP * size + meet:
        found.append("not optimal")
    elif result.status == "infeasible" and best < math.inf:
        found.append("not infeasible")
    if result.status != "infeasible" and result.bound > best + BOUND * size + meet:
        found.append("bound too high")
    if result.bound < 0 and checks.has_own_objective(model) and result.stop != "numeric":
        found.append("bound below 0")
    if result.tree is not None and result.status != "unverified":
        found += _wrong_values(instance, model, result)
    return [at + text for text in found]


def _wrong_values(instance: Instance, model: pyo.ConcreteModel, result: octsvm.Result) -> list[str]:
    """What is wrong with the values that the model was left with, and with the labels that the tree says."""
    found = []
    outside = ("the model holds the engine's answer", "the engine's tree is worse than the bound")
    if not any(note.startswith(outside) for note in result.notes):
        largest = max(abs(v.value or 0.0) for v in model.component_data_objects(pyo.Var))
        broken = checks.broken_row(model, 1e-6 * max(1.0, largest))
        if broken is not None:
            found.append(f"the model's values break a row: {broken}")
        cost = float(pyo.value(model.objective))
        if abs(cost - result.objective) > 1e-5 * max(1.0, abs(cost)):
            found.append(f"the model's values cost {cost:.9g}")
    said = result.tree.predict(instance.X)
    if not {type(v) for v in np.asarray(said).tolist()} <= {type(v) for v in instance.labels}:
        found.append(f"labels {said!r}")
    return found


def run(
    seeds: Sequence[int], engines: Sequence[str] = ("highs",), told: Callable[[Found], None] | None = None
) -> list[str]:
    """What is wrong with the instances of ``seeds``; ``told`` is handed what came of each."""
    out = []
    for seed in seeds:
        found = examine(seed, engines)
        out += found.failures
        if told is not None:
            told(found)
    return out
