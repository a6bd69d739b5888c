"""What every formulation is handed (Data), what it carries on its model (ModelInfo), and what it offers (Formulation)."""

from __future__ import annotations

import hashlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from .checks import listed
from .errors import InvalidData, NoValues
from .params import Params

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
OwnParams = TypeVar("OwnParams", bound=Params)

# What solvers accept as satisfied; a tree off by no more than that is a point of the model.
FEASIBILITY = 1e-6


@dataclass(frozen=True)
class Scaling:
    """The affine map to [0, 1] learned on the training rows: ``(x - low) / span``.

    A constant column has ``span`` 0 and is mapped to 0, whatever its value.

    Attributes
    ----------
    low, span : ndarray of shape (p,)
        In the units of the caller's table.
    """

    complete = True  # whether every score over the table is one over the rows that it leads to

    low: FloatArray
    span: FloatArray

    @classmethod
    def learn(cls, X: FloatArray) -> Scaling:
        """Learn minimum and range of each column of ``X (n, p)``."""
        low = X.min(axis=0)
        return cls(low, X.max(axis=0) - low)

    @classmethod
    def identity(cls, p: int) -> Scaling:
        """Leave all ``p`` columns as they are."""
        return cls(np.zeros(p), np.ones(p))

    def transform(self, X: FloatArray) -> FloatArray:
        """Return ``X (m, p)`` in scaled units; the argument is not changed."""
        safe = np.where(self.span > 0, self.span, 1.0)
        return np.ascontiguousarray(np.where(self.span > 0, (X - self.low) / safe, 0.0))


def table_digest(matrix: FloatArray, classes: tuple[Any, ...], index: IntArray) -> str:
    """A short hash of a table ``(n, p)`` and its labels, to know the table of a fit again whatever its weights."""
    return _digest(classes, matrix + 0.0, index)  # -0.0 is 0.0


def _digest(classes: tuple[Any, ...], *arrays: NDArray[Any]) -> str:
    h = hashlib.sha256()
    for array in arrays:
        h.update(np.ascontiguousarray(array).tobytes())
    h.update(repr(classes).encode())
    return h.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Data:
    """A checked training table.

    Attributes
    ----------
    X_original : ndarray of shape (n, p)
        As the caller gave it.
    X : ndarray of shape (n, p)
        The rows that the models are built on: ``scaling.transform(X_original)``, that is scaled to [0, 1] (or unchanged, with
        the identity), and with a kernel their coordinates in its feature space (:mod:`octsvm.formulations.kernels`).
    y : ndarray of int, shape (n,)
        Index into ``classes``.
    classes : tuple
        The caller's labels, sorted. With two classes the second one is +1 in the SVM models.
    feature_names : tuple of str
    scaling : Scaling
    weights : ndarray of shape (n,)
        Weight of each row's errors in the objective; ones by default.
    index : tuple, optional
        The index of the caller's DataFrame.
    """

    X_original: FloatArray
    X: FloatArray
    y: IntArray
    classes: tuple[Any, ...]
    feature_names: tuple[str, ...]
    scaling: Scaling
    weights: FloatArray
    index: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        """Let nobody change the arrays: rows of a model that were made of them would not follow."""
        for name in ("X_original", "X", "y", "weights"):
            found = getattr(self, name)
            if not found.flags.writeable:
                continue  # the same array, by which what was computed of it is known
            view = found.view()  # an array of the caller's stays as it is
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __deepcopy__(self, memo: dict[int, Any]) -> Data:
        return self  # never changed after it was made, so the clone of a model can share it

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Number of columns of ``X``: of features, or with a kernel of coordinates."""
        return self.X.shape[1]

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def sign(self) -> FloatArray:
        """The labels as -1 and +1 (n,); two classes only."""
        return np.asarray(2.0 * self.y - 1.0, dtype=np.float64)

    def require_two_classes(self, formulation: str) -> None:
        """Refuse data with more than two classes.

        Raises
        ------
        InvalidData
        """
        if self.K > 2:
            shown = listed(self.classes, 6)
            raise InvalidData(
                f"{formulation!r} separates two classes, and y holds {self.K}: {shown}. "
                "Choose 'oct', 'oct_h' or 'moctsvm', or fit one class against the rest."
            )

    @property
    def digest(self) -> str:
        """A short hash of the table and its labels, to tie files and results to their data."""
        return _digest(self.classes, self.X_original, self.y, self.weights)

    @property
    def table_digest(self) -> str:
        """A short hash of the table and its labels alone."""
        return table_digest(self.X_original, self.classes, self.y)


class Structure(NamedTuple):
    """What a model was built of: its top-level components, and fingerprints of its rows, variables and cost."""

    components: frozenset[str]
    inside: dict[str, int]  # by component
    fixed: frozenset[str]  # names of variables


@dataclass(frozen=True, eq=False)
class ModelInfo:
    """What a built model remembers of its origin; stands on the model as ``model.info``.

    Attributes
    ----------
    formulation : str
    params : Params
    data : Data
    upper_bound : float
        Objective of the tree that the big-M constants were built from (UB of their proofs); infinite where
        the formulation needs none.
    big_m : dict
        The largest big-M of each family of rows, for reports.
    tree : Tree, optional
        The best tree met while the model was built.
    least : float
        A bound found while the model was built: no tree of the model costs less. No formulation has negative costs.
    structure : Structure, optional
        What :func:`structure` says of the model as it was built.
    """

    formulation: str
    params: Params
    data: Data
    upper_bound: float = np.inf
    big_m: Mapping[str, float] = field(default_factory=dict)
    structure: Structure | None = None
    tree: Any = None
    least: float = 0.0

    def __repr__(self) -> str:
        data = self.data  # the table itself is long
        return (
            f"ModelInfo({self.formulation!r}, {data.n} rows, {data.p} features, {data.K} classes, "
            f"{self.params!r}, upper_bound={self.upper_bound:.6g})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelInfo:
        return self


@dataclass(frozen=True)
class Evaluation:
    """The objective of a tree, recomputed in plain numpy.

    Attributes
    ----------
    objective : float
    terms : dict
        Name of the term -> its value in the objective (costs included); they sum up to ``objective``.
    counts : dict
        Figures behind the terms without their costs: errors, relabelled rows, splits, the largest norm.
    relabelled : ndarray of bool, shape (n, T), optional
        SVM models: which row is relabelled at which node.
    """

    objective: float
    terms: Mapping[str, float]
    counts: Mapping[str, float]
    relabelled: BoolArray | None = None

    def __str__(self) -> str:
        return f"{self.objective:.8g} = " + " + ".join(f"{v:.6g} {k}" for k, v in self.terms.items())


def imported(path: str) -> Any:
    """What stands at ``"module:name"``; the module is imported when it is asked for."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    return getattr(found, name) if name else found


class Tried(NamedTuple):
    """What ``octsvm.tune`` tries. Costs are relative ones: see :mod:`octsvm.tuning.grids`.

    Attributes
    ----------
    grid : tuple of dict
        Parameters with their values, as scikit-learn's ParameterGrid reads them.
    usual : dict
        What is best on average: where the prior is highest.
    steps : int
        Of the search in a fold, for all settings together, where each is searched by itself; 0 where a pool of trees serves
        all of them. What a step is, and how long it takes, differs between formulations.
    kernels : tuple of dict
        What ``kernel="auto"`` tries besides ``grid``.
    """

    grid: tuple[dict[str, list[Any]], ...]
    usual: dict[str, Any]
    steps: int = 0
    kernels: tuple[dict[str, list[Any]], ...] = ()


class Formulation(ABC):
    """One formulation; :func:`octsvm.register` makes a subclass known under its ``name``.

    Five methods are needed: :meth:`build`, :meth:`extract`, :meth:`embed`, :meth:`evaluate` and :meth:`constant_tree`.
    The others have defaults. ``params`` is an object of the formulation's ``Params`` everywhere.

    Attributes
    ----------
    name : str
        What ``octsvm.fit(name, ...)`` takes.
    title : str
        One line on it.
    Params : type
        Subclass of :class:`~octsvm.formulations.params.Params`, with the range of each parameter.
    Tree : type
        Class of its trees.
    two_classes_only : bool
        Labels of more than two classes are refused.
    uses_scaling : bool
        The model needs features in [0, 1]: with ``scale=False`` others are refused.
    variants : tuple of str
        Values of the parameter ``variant``.
    searches : bool
        :meth:`build` looks for bounds, and takes ``stop=``, which it asks in between whether to end that; so does :meth:`size`
        where it counts what the search finds.
    heuristic : str
        ``"module:function"`` that :meth:`candidates` calls.
    converter : str
        ``"module:function"`` that :meth:`start_of` calls.
    libraries : tuple of str
        Modules that the heuristic imports, and ``"module:function"`` for what it prepares once in a process.
    grid : str
        ``"module:function"`` that :meth:`path` calls.
    tried : Tried, optional
        What ``octsvm.tune`` tries where no grid is given.
    proved_rows : dict
        By norm ("" without one) and depth, the samples of the largest table that was proved optimal; empty if not measured.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    Params: ClassVar[type[Params]]
    Tree: ClassVar[type[Any]]
    two_classes_only: ClassVar[bool] = False
    uses_scaling: ClassVar[bool] = False
    variants: ClassVar[tuple[str, ...]] = ()
    searches: ClassVar[bool] = False
    heuristic: ClassVar[str] = ""
    converter: ClassVar[str] = ""
    libraries: ClassVar[tuple[str, ...]] = ()
    grid: ClassVar[str] = ""
    tried: ClassVar[Tried | None] = None
    proved_rows: ClassVar[Mapping[str, dict[int, int]]] = {}

    @property
    def binary_only(self) -> bool:
        """``two_classes_only``."""
        return self.two_classes_only

    @property
    def uses_upper_bound(self) -> bool:
        """Whether big-M in :meth:`build` depends on ``upper_bound``. Default: where two classes only are taken."""
        return self.two_classes_only

    @abstractmethod
    def build(self, data: Data, params: Any, upper_bound: float = np.inf) -> pyo.ConcreteModel:
        """The model on ``data``, with ``cost``, ``objective`` and ``info`` (a :class:`ModelInfo`).

        ``upper_bound`` is the objective of a known tree; trees that cost more need not be in the model.

        Raises
        ------
        InvalidData, InvalidParameter
            The model needs other data, or the table has too few rows for a parameter; so does :meth:`size`.
        """

    @abstractmethod
    def extract(self, model: pyo.ConcreteModel) -> Any:
        """The tree in the values of the model's variables; it routes the training samples as the model does."""

    def model_rows(self, data: Data, params: Any, late: Callable[[], bool] | None = None) -> Data:
        """``data`` with ``X`` as the rows that :meth:`build` builds on, and the ``scaling`` that leads there. Default: as it is.

        Once ``late`` says so, the scaling may be one that is not ``complete``.
        """
        return data

    @abstractmethod
    def embed(self, model: pyo.ConcreteModel, tree: Any, relabelled: BoolArray | None = None) -> Any:
        """Set every variable of the model to the values that ``tree`` has there, and return the tree as embedded.

        The objective never rises. ``relabelled (n, T)`` prescribes which labels are given up, where a formulation does that.

        Raises
        ------
        TreeNotAdmitted
            The tree is no point of the model; the message gives the reason.
        """

    def extract_as_it_stands(self, model: pyo.ConcreteModel) -> Any:
        """As :meth:`extract`, at the scale that the values have: rows of a user's own may depend on it.

        Default: the extracted tree.
        """
        return self.extract(model)

    def embed_as_it_stands(
        self, model: pyo.ConcreteModel, tree: Any, relabelled: BoolArray | None = None
    ) -> Any:
        """As :meth:`embed`, at the scale that the tree has. Default: as :meth:`embed`.

        Raises
        ------
        TreeNotAdmitted
        """
        return self.embed(model, tree, relabelled)

    @abstractmethod
    def evaluate(
        self,
        tree: Any,
        X: FloatArray,
        y: IntArray,
        params: Any,
        weights: FloatArray,
        relabelled: BoolArray | None = None,
    ) -> Evaluation:
        """The objective of ``tree`` on samples ``X (m, p)`` in original units, in numpy alone.

        ``y (m,)`` holds indices into the tree's classes, ``weights (m,)`` the weight of each sample's errors.
        """

    def evaluate_on(
        self, tree: Any, data: Data, params: Any, relabelled: BoolArray | None = None
    ) -> Evaluation:
        """As :meth:`evaluate`, on a training table."""
        return self.evaluate(tree, data.X_original, data.y, params, data.weights, relabelled)

    @abstractmethod
    def constant_tree(self, data: Data, params: Any) -> Any:
        """The best tree without a split."""

    def normalise(self, tree: Any, data: Data, params: Any) -> Any:
        """The tree for the model's depth, classes and scaling, at no higher objective. Default: as it is.

        Raises
        ------
        TreeNotAdmitted
            Of another kind or on other features, too deep, or a leaf in use predicts a class that the data lacks.
        """
        return tree

    def require(self, tree: Any, data: Data, params: Any) -> None:
        """Refuse a normalised tree that the model does not admit, whatever its cost. Default: every tree is admitted.

        Raises
        ------
        TreeNotAdmitted
        """
        return

    def improve(self, tree: Any, data: Data, params: Any) -> Any:
        """Better what routing leaves free, such as the classes of the leaves. Default: the tree as it is."""
        return tree

    def assigned_path(self, model: pyo.ConcreteModel) -> IntArray:
        """The node of each level that the values of the model put each training sample in (n, D + 1).

        Answers of solvers are compared with it. Default: the routing of the extracted tree, which checks nothing; a
        formulation whose variables say where a sample goes reads it from them.
        """
        path: IntArray = self.extract(model).nodes(model.info.data.X_original)
        return path

    def scores(self, model: pyo.ConcreteModel) -> Any:
        """The model, as it was built, as a :class:`~.bounds.scores.ScoreProblem` of one hyperplane. Default: None, it is none."""
        return None

    def top_level(self, data: Data, params: Any, upper_bound: float) -> Any:
        """Cases of what the top level of a tree that splits costs, as :class:`~.bounds.scores.ScoreProblem`.

        No tree that splits and costs less than ``upper_bound`` costs less than the least of their optima. Default: None, nothing
        is known of it.
        """
        return None

    def in_case(self, model: pyo.ConcreteModel, case: Any) -> list[tuple[Any, float, float]] | None:
        """Variables of ``model`` with the least and the greatest value that they have in some best tree of a case of :meth:`top_level`.

        The case's intervals are those of its scores. Default: None, the model is solved as a whole.
        """
        return None

    def candidates(self, data: Data, params: Any, budget: Any, seed: int) -> Iterator[Any]:
        """Trees of a start heuristic, until ``budget.tick()``. Default: those of ``heuristic``; none without one."""
        if self.heuristic:
            yield from imported(self.heuristic)(data, params, budget, seed)

    def start_of(self, tree: Any, data: Data, params: Any, budget: Any, seed: int) -> Any:
        """A start for a fit from a tree of another kind. Default: what ``converter`` makes of it; the tree itself without one.

        Raises
        ------
        TreeNotAdmitted
        """
        if isinstance(tree, self.Tree) or not self.converter:
            return tree
        return imported(self.converter)(tree, data, params, budget, seed)

    def libraries_for(self, data: Data, params: Any) -> tuple[str, ...]:
        """Those of ``libraries`` that the heuristic wants on this table. Default: all."""
        return self.libraries

    def load_libraries(self, data: Data | None = None, params: Any = None) -> None:
        """Import what the heuristic uses, on a table or on any, which can take seconds the first time in a process."""
        wanted = self.libraries if data is None else self.libraries_for(data, params)
        for path in filter(None, (self.heuristic, *wanted)):
            found = imported(path)
            if ":" in path and path != self.heuristic:
                found()

    def unit_cost(self, data: Data, params: Any) -> float:
        """The c1 that a relative cost of 1 stands for on a table, whatever its rows, columns and units. Default: 1."""
        return 1.0

    def size(self, params: Any, table: Any) -> Any:
        """What :meth:`build` builds on ``table`` (:class:`Data` or a ``Shape``), as a :class:`~.blocks.sizes.BlockSize`.

        Default: None, and then a model is built and counted.
        """
        return None

    def path(
        self, data: Data, checked: list[Any], wanted: list[int], steps: int | None, seed: int, **more: Any
    ) -> Iterator[tuple[int, Any]] | None:
        """Results of :func:`octsvm.fit_path` at the ``wanted`` ones of the parameters ``checked``, that share work.

        With a time limit ``more`` holds a ``clock``. Default: those of ``grid``; None without one, and then every setting is
        searched by itself.
        """
        return imported(self.grid)(self, data, checked, wanted, steps, seed, **more) if self.grid else None


def structure(model: pyo.ConcreteModel) -> Structure:
    """A fingerprint of the rows and variables, to notice later what a user added, or changed inside the blocks.

    It is the same in every process: what is hashed are numbers.
    """
    components = frozenset(c.local_name for c in model.component_objects(descend_into=False))
    # Pyomo's values() would look up every index anew.
    inside = {
        rows.name: hash(tuple([_shape(row) for row in rows._data.values() if row.active]))
        for rows in model.component_objects(pyo.Constraint, active=True)
    }
    fixed: list[str] = []
    for variables in model.component_objects(pyo.Var):
        parts = [
            (_end(v._lb), _end(v._ub), v._fixed, _end(v.value) if v._fixed else 0.0, v.domain is pyo.Reals)
            for v in variables._data.values()
        ]
        inside[variables.name] = hash(tuple(parts))
        fixed += [v.name for v in variables._data.values() if v._fixed]
    inside["cost"] = len(getattr(model.cost.expr, "args", ()))
    return Structure(components, inside, frozenset(fixed))


def _end(bound: Any) -> float:
    """A bound, or the value of what is fixed, as a number; one that is an expression is no formulation's."""
    return bound if isinstance(bound, (int, float)) else np.inf if bound is None else float(id(bound))


def _shape(row: Any) -> tuple[float, ...]:
    """The sides of a row, and how many terms it has."""
    return tuple([part if type(part) is float else len(getattr(part, "args", ())) for part in row.expr.args])


def values(var: Any, keys: list[Any]) -> FloatArray:
    """Values of an indexed Pyomo Var at ``keys``.

    Raises
    ------
    NoValues
        If a variable has no value.
    """
    out = np.empty(len(keys))
    for k, key in enumerate(keys):
        value = var[key].value
        if value is None:
            raise NoValues(
                f"{var[key].name} has no value, so there is no tree to read. Solve the model first "
                "(octsvm.solve, or any Pyomo solver), or set a start with octsvm.embed(model, tree)."
            )
        out[k] = value
    return out


def table(var: Any, rows: Sequence[int], columns: Sequence[int]) -> FloatArray:
    """Values (len(rows), len(columns)) of a Pyomo Var with two indices; raises as :func:`values` does."""
    keys = [(i, t) for i in rows for t in columns]
    return values(var, keys).reshape(len(rows), len(columns))


def origin(model: pyo.ConcreteModel, kind: type[OwnParams]) -> tuple[Data, OwnParams]:
    """Data and parameters that a model of one's own formulation was built of."""
    info: ModelInfo = model.info
    assert isinstance(info.params, kind)
    return info.data, info.params


def set_values(var: Any, rule: Callable[..., Any]) -> None:
    """Set each variable of an indexed Pyomo Var to ``rule(*index)``, whatever its domain."""
    for index, data in var.items():
        key = index if isinstance(index, tuple) else (index,)
        data.set_value(float(rule(*key)), skip_validation=True)
