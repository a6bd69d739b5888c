"""What the five classifiers share: fit through octsvm.fit, and predictions through the fitted tree."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import api
from ..data import class_weights, label_list, read_labels, read_weights, require_same_rows
from ..errors import InvalidData, InvalidParameter, NoValues, TreeNotAdmitted
from ..exports._decision_paths import decision_paths, levels, weights_at_nodes
from ..formulations.base import BoolArray, FloatArray, IntArray, table_digest
from ..formulations.checks import nearest
from ..formulations.heap import children
from ..formulations.params import Params, doc_section
from ..formulations.registry import formulation as find_formulation
from ..formulations.trees import KernelTree, Tree
from ..options import ESTIMATOR, declarations, parameters, with_options
from ..relabelling import CONSTANT, is_constant, relabelling_report
from ..result import Progress, Result
from ._progress import ProgressLine
from ._rows import condense, for_given_rows
from ._tables import read_rows, read_training
from ._warn import warn_once_a_line

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Parameters of the models under the names that scikit-learn's users know.
NAMES = {"max_depth": "depth", "min_samples_leaf": "n_min"}
OUR_NAMES = {theirs: ours for ours, theirs in NAMES.items()}
# Names of scikit-learn's searches and SVMs, and of octsvm.fit.
BROUGHT = {"cv": "folds", "param_grid": "grid", "C": "c1", "seed": "random_state", **OUR_NAMES}
OPTIONAL = ("variant", "big_m", "mu_svm")  # None leaves the choice to the model
# Why a solve may end without a proof, and the parameter that says so.
LIMITS = {
    "time_limit": "time_limit",
    "node_limit": "work_limit",
    "work_limit": "work_limit",
    "solution_limit": "options",
    "memory_limit": "options",
}
OURS = {"random_state": None, "warm_start": False, "verbose": False, "class_weight": None}


class Begin(NamedTuple):
    """What a fit begins with, and whom it tells how far it is: no parameters of a classifier, as scikit-learn copies those."""

    start: Tree | None = None
    callback: Callable[[Progress], object] | None = None

    def told(self, line: Callable[[Progress], object] | None) -> Callable[[Progress], bool] | None:
        """One callback for both; None where there is none."""
        known = [f for f in (line, self.callback) if f is not None]
        return (lambda progress: sum(bool(f(progress)) for f in known) > 0) if known else None


class TreeClassifier(ClassifierMixin, BaseEstimator):
    """A classifier around one formulation. What is said here of parameters and attributes, the five classes say too.

    Parameters
    ----------
    {options}
    random_state : int, RandomState or None
        Seed of the solver and the heuristic; None is 0, so that fits can be repeated.
    warm_start : bool
        Hand the former tree to the next fit as its start: the new one is never worse. Where it is no start, a
        warning says why.
    verbose : bool or "progress"
        Show the solver's log, or what is known so far in one line on stderr that changes, in terminals and notebooks.
    class_weight : None, "balanced" or dict
        Weight of what the rows of each class cost: their errors, and labels given up; "balanced" gives all classes
        the same total.

    Attributes
    ----------
    result_ : Result
        How it was found: status, objective, bound, notes.
    bound_, gap_ : float
        No tree of the model is better than the bound; the relative gap to it.
    classes_ : ndarray of shape (K,)
        The labels in order; with two, a positive score stands for the second one.
    n_features_in_ : int
        p.
    feature_names_in_ : ndarray of shape (p,)
        Only where X had names.
    node_weights_ : ndarray of shape (nodes, K)
        Training weight of each given label at each node, in heap order.
    feature_importances_ : ndarray of shape (p,)
        Share of each feature in what the splits do; none with a kernel.
    relabelled_ : DataFrame
        Training rows whose label was given up, by node; see :func:`octsvm.relabelling_report`. Empty where the model
        gives up none.
    """

    formulation: ClassVar[str] = ""
    # Parameters of the model that are chosen where they are None, and those that are neither its nor options of a solve.
    chosen: ClassVar[frozenset[str]] = frozenset()
    own_parameters: ClassVar[dict[str, Any]] = OURS

    tree_: Any
    result_: Any
    classes_: Any
    node_weights_: Any

    def __init_subclass__(cls, **more: Any) -> None:
        """Give a classifier the parameters of its formulation and the options of a solve, each declared once."""
        super().__init_subclass__(**more)
        if "formulation" not in vars(cls):
            return
        if "__init__" not in vars(cls):
            cls.__init__ = _initialiser(cls)  # type: ignore[method-assign]
            cls.__doc__ = with_options(_with_shared(cls), ESTIMATOR)
        # For classifiers that were pickled before there was the parameter.
        for name, parameter in inspect.signature(cls.__init__).parameters.items():
            if parameter.default is not inspect.Parameter.empty and name not in vars(cls):
                setattr(cls, name, parameter.default)

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn.

        Raises
        ------
        InvalidParameter
            There is no such parameter; the message names the one that may be meant.
        """
        known = self.get_params(deep=False)
        try:
            return super().set_params(**params)
        except ValueError as error:
            raise InvalidParameter(f"{error}{meant(params, known)}") from None

    # -- fitting --------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        start: Tree | None = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Build the model on the table, solve it within the limits, and keep the checked tree.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Finite numbers in any units; they are scaled to [0, 1] on these rows, and the scaling is kept. Of a sparse
            table the zeros are written out, up to 1 GiB.
        y : array-like of shape (n,)
            Labels: text, integers, booleans, or whatever else can be hashed and is of one kind.
        sample_weight : array-like of shape (n,), optional
            Weight of each row's errors. A row of weight zero is left out; a whole number counts like that many
            equal rows (but for ``min_samples_leaf``, which counts rows).
        start : Tree, optional
            A tree to begin with, such as ``octsvm.from_sklearn(cart)`` or another classifier's ``tree_``; as for
            :func:`octsvm.fit`. It replaces that of ``warm_start``.
        callback : callable, optional
            Called with a :class:`octsvm.Progress` now and then; where it returns True the fit ends with the best tree. Of a
            classifier that chooses its parameters, during the last fit.

        Returns
        -------
        self

        Raises
        ------
        InvalidData, InvalidParameter, UnknownSolver, SolverUnavailable
            What was given cannot be used; the message says why. All are ValueErrors but for the last one.
        TreeNotAdmitted
            ``start`` is no start for this fit.

        Warns
        -----
        ConvergenceWarning
            Of scikit-learn's: where a limit ended the fit before its tree was proved to be the best (not with
            ``strategy="heuristic"``, which proves nothing), or folds that were to choose the parameters.
        UserWarning
            Where y holds one class only (nothing is solved), where a tree predicts one class for all rows although y holds more (at
            its costs no other pays), where a former tree is no start (``warm_start``), and
            where the solver's answer does not hold outside the solver: then ``result_.status`` is "unverified".
        """
        self._fit(X, y, sample_weight, Begin(start, callback))
        fitted = self.__dict__.get("estimators_", [self])
        self._warn_without_proof([one.result_ for one in fitted])
        self._warn_of_costs(fitted, X)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, begin: Begin) -> None:
        """As :meth:`fit`, without a word on limits."""
        index = tuple(X.index) if hasattr(X, "iloc") else None
        require_same_rows(X=X, y=y, sample_weight=sample_weight)
        matrix, labels, classes, position = read_training(self, X, y)
        if self._fit_many(matrix, classes, position, sample_weight, begin):
            return
        form = find_formulation(self.formulation)
        try:
            params = form.Params.make(self.formulation, **self._model_parameters())
            given = self._read_weights(sample_weight, len(labels))
            weights = class_weights(self.class_weight, given, classes, position)  # type: ignore[attr-defined]
            kept = np.flatnonzero(weights > 0)
            # Folds learn the weights of classes.
            self._choose(self._table(matrix[kept]), classes[position[kept]], given[kept])
            params = form.Params.make(self.formulation, **self._model_parameters())
            # The printed rows let equal rows on a hyperplane take different sides, and N_min counts rows.
            least = params.leaf_size(len(labels)) if hasattr(params, "leaf_size") else 1
            merge = getattr(params, "variant", None) != "paper" and least == 1
            rows = condense(matrix, position, weights, merge)
            result = self._solve(self._table(rows.X), classes[rows.y], rows.weights, begin)
        except InvalidParameter as error:
            raise InvalidParameter(_in_our_names(str(error))) from None
        if result.tree is None:
            why = "has no solution" if result.status == "infeasible" else f"was not solved ({result.stop})"
            raise NoValues(f"The model {why}, so there is no tree: {'; '.join(result.notes)}")
        digest = table_digest(matrix, *read_labels(labels, len(labels)))
        result = for_given_rows(replace(result, index=index, table_digest=digest), rows)
        if not rows.as_given:
            again = form.evaluate(
                result.tree,
                matrix[rows.kept],
                self._tree_index(result.tree, classes)[position[rows.kept]],
                params,
                weights[rows.kept],
            )
            result = replace(result, terms=again.terms, counts=again.counts)
        self.classes_ = classes
        self.result_, self.tree_ = result, result.tree
        self.bound_, self.gap_ = result.bound, result.gap
        self.node_weights_ = weights_at_nodes(self.tree_, matrix, position, weights, len(self.classes_))
        self.relabelled_ = relabelling_report(result, matrix, labels)
        self.__dict__.pop("estimators_", None)  # of a fit to more classes

    def _warn_without_proof(self, results: list[Result]) -> None:
        """Say so, once, where a limit ended a fit that was to prove its tree; all fits of a search use the same words."""
        stops = {r.stop for r in results if r.status in ("feasible", "fallback")} & set(LIMITS)
        if not stops or self.strategy == "heuristic":  # type: ignore[attr-defined]
            return
        said = sorted({f"{name}={getattr(self, name)!r}" for name in (LIMITS[stop] for stop in stops)})
        warn_once_a_line(
            f"A limit ended this fit before there was a proof ({', '.join(said)}): the tree is the best one found, and gap_ says "
            "how far it may be from the best there is. A higher limit, a smaller tree or fewer rows end with a proof; "
            "strategy='heuristic' asks for none (it searches on to the limit: give it a short time_limit, or a work_limit).",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _warn_of_costs(self, fitted: list[Self], X: Any) -> None:
        """Say so, once, where a tree that could split predicts one class for all rows of ``X (n, p)``."""
        if not any(len(one.classes_) > 1 and one.tree_.splits.size and is_constant(one, X) for one in fitted):
            return
        known = self.get_params(deep=False)
        dearer, cheaper = (
            " and ".join(name for name in names if name in known) for names in (("c1", "c2"), ("c3", "alpha"))
        )
        change = " or ".join(
            f"a {size} {names}" for size, names in (("larger", dearer), ("smaller", cheaper)) if names
        )
        warn_once_a_line(
            f"{CONSTANT} for all training rows: at its costs no other tree pays, or none was found within the limits. "
            f"Try {change}; {type(self).__name__}CV chooses them by folds.",
            UserWarning,
            stacklevel=3,
        )

    def _solve(self, X: Any, y: NDArray[Any], weights: FloatArray, begin: Begin) -> Any:
        options: dict[str, Any] = {name: getattr(self, name) for name in declarations(ESTIMATOR)}
        if options["solver"] is None:
            del options["solver"]
        options |= {"time_limit": self._seconds()} | self._model_parameters()
        verbose = self.verbose  # type: ignore[attr-defined]
        options |= {"seed": self._seed(), "weights": weights}
        former = getattr(self, "tree_", None) if self.warm_start else None  # type: ignore[attr-defined]
        start = former if begin.start is None else begin.start
        labels = y.tolist()
        with ProgressLine(verbose) as line:
            options |= {"callback": begin.told(line if line.wanted else None)}
            options |= {"log": True if verbose and not line.wanted else None}
            try:
                return api.fit(self.formulation, X, labels, start=start, on_mismatch="warn", **options)
            except TreeNotAdmitted as error:
                if former is None or begin.start is not None:
                    raise
                warnings.warn(f"warm_start: the former tree is no start for this fit. {error}", stacklevel=4)
            return api.fit(self.formulation, X, labels, on_mismatch="warn", **options)

    def _seconds(self) -> Any:
        """The time limit of the fit with all parameters given."""
        return self.time_limit  # type: ignore[attr-defined]

    def _choose(self, X: Any, y: NDArray[Any], weights: FloatArray) -> None:
        """Choose parameters that are left to the fit; here all are given."""

    def _fit_many(
        self,
        matrix: FloatArray,
        classes: NDArray[Any],
        position: IntArray,
        sample_weight: Any,
        begin: Begin,
    ) -> bool:
        """Refuse labels that the model does not take, or fit several trees to them; whether that was done."""
        return False

    def _hold(self, tree: Tree, classes: NDArray[Any], node_weights: Any) -> bool:
        """Keep a tree that was saved, the classes (K,) and the training weight of each at each node; whether these fit together."""
        weights = np.array(node_weights, dtype=float)
        if weights.shape != (2 ** levels(tree) - 1, len(classes)) or not np.isfinite(weights).all():
            return False
        self.classes_, self.tree_, self.node_weights_ = classes, tree, weights
        self.n_features_in_ = len(tree.feature_names)
        return bool((weights >= 0).all() and weights[0].any())

    def _require_one_tree(self) -> None:
        """Refuse to go on without a fitted tree."""
        check_is_fitted(self, "tree_")

    def _table(self, matrix: FloatArray) -> Any:
        """The rows with the names of their columns, where they have some."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return matrix
        import pandas as pd

        return pd.DataFrame(matrix, columns=pd.Index(names, dtype=object))  # any text, as objects

    def _model_parameters(self) -> dict[str, Any]:
        """Parameters of the formulation under its own names."""
        shared = {*declarations(ESTIMATOR), *self.own_parameters}
        given = {NAMES.get(k, k): v for k, v in self.get_params(deep=False).items() if k not in shared}
        return {k: v for k, v in given.items() if v is not None or k not in OPTIONAL}

    def _seed(self) -> int:
        state = self.random_state  # type: ignore[attr-defined]
        if state is None:
            return 0
        if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
            return int(state)
        try:
            return int(check_random_state(state).randint(2**31 - 1))
        except ValueError:
            raise InvalidParameter(
                f"random_state={state!r} should be None, a whole number or a numpy.random.RandomState."
            ) from None

    @staticmethod
    def _read_weights(sample_weight: Any, n: int) -> FloatArray:
        try:
            return read_weights(sample_weight, n)
        except InvalidData as error:
            raise InvalidData(
                re.sub(r"^weights\b|\bweights(?= has| must|=)", "sample_weight", str(error))
            ) from None

    @staticmethod
    def _tree_index(tree: Any, classes: NDArray[Any]) -> IntArray:
        """Index into the tree's classes of each of ``classes``; 0 where no weighted row has the class."""
        known = {label: k for k, label in enumerate(tree.classes)}
        return np.array([known.get(label, 0) for label in classes.tolist()], dtype=np.int64)

    # -- predicting -----------------------------------------------------------------------------------------

    def _rows_of(self, X: Any) -> FloatArray:
        self._require_one_tree()
        return read_rows(self, X)

    def _positions(self) -> IntArray:
        """Index into ``classes_`` of each of the tree's classes."""
        known = {label: k for k, label in enumerate(self.classes_.tolist())}
        return np.array([known[label] for label in self.tree_.classes], dtype=np.int64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (m,) of the rows of ``X (m, p)``: those of the leaves that :meth:`apply` names."""
        M = self._rows_of(X)
        return np.asarray(self.classes_[self._positions()[self.tree_.predict_index(M)]])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms (m, K) of what ``predict_proba`` says; -inf for 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows of ``X (m, p)``, weighted by ``sample_weight (m,)``, whose label in ``y (m,)`` is predicted.

        Raises
        ------
        InvalidData
            X, y or the weights cannot be used, or do not fit together; labels of another kind than those of the fit.
        """
        require_same_rows(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X).tolist()
        values = label_list(y)
        given, index = read_labels(values, len(predicted))
        known = set(self.classes_.tolist())
        if not known & set(given) and isinstance(given[0], str) != isinstance(next(iter(known)), str):
            raise InvalidData(
                f"y holds labels such as {given[0]!r}, and the classifier knows {', '.join(map(repr, self.classes_.tolist()))}. "
                "Pass the labels in the form they had when it was fitted."
            )
        right = [p == given[k] for p, k in zip(predicted, index, strict=True)]
        return float(np.average(right, weights=self._read_weights(sample_weight, len(right))))

    def apply(self, X: Any) -> IntArray:
        """The leaf (m,) of each row of ``X (m, p)``, by its heap number.

        The root is 1, the children of t are 2t and 2t + 1, and a leaf is where nothing splits any more. In RE-SVM and
        OCTSVM the two sides of a split on the last level are leaves.
        """
        M = self._rows_of(X)
        return np.asarray(decision_paths(self.tree_, M).max(axis=1))

    def decision_path(self, X: Any) -> csr_matrix:
        """Sparse indicator (m, nodes) of the nodes on each row's way, leaf included; column k belongs to node k + 1."""
        from scipy.sparse import csr_matrix

        M = self._rows_of(X)
        path = decision_paths(self.tree_, M)
        row, level = np.nonzero(path)
        marks: BoolArray = np.ones(len(row), dtype=bool)
        shape = (len(path), 2 ** path.shape[1] - 1)
        return csr_matrix((marks, (row, path[row, level] - 1)), shape=shape)

    # -- the tree -------------------------------------------------------------------------------------------

    def get_depth(self) -> int:
        """Splits on the longest way from the root to a leaf; at most ``max_depth``, or one more in OCTSVM."""
        self._require_one_tree()
        return int(np.flatnonzero(self.tree_.splits).max(initial=-1) + 1).bit_length()

    def get_n_leaves(self) -> int:
        """Leaves of the tree as it is drawn: one more than it has splits."""
        self._require_one_tree()
        return int(self.tree_.splits.sum()) + 1

    @property
    def feature_importances_(self) -> FloatArray:
        """Share (p,) of each feature in what the splits do for the given labels: 1 in all, or 0 without a useful split.

        A split counts by how far it lowers the Gini impurity of its training weight, as in scikit-learn's trees. Of an
        oblique one each feature gets a part in proportion to its absolute weight on the features scaled to [0, 1], so
        that its unit does not matter. What a feature could have done in another tree it does not say. With several trees
        (``multi_class``) the mean of those that split.

        Raises
        ------
        AttributeError
            The tree has a kernel other than "linear": no feature has a weight of its own.
        """
        check_is_fitted(self, "classes_")
        many = getattr(self, "estimators_", None)
        if many is not None:
            total: FloatArray = np.sum([one.feature_importances_ for one in many], axis=0)
            return total / max(1.0, total.sum())  # machines that do not split have none
        return _feature_importances(self.tree_, self.node_weights_)

    @classmethod
    def tree_class(cls) -> type[Any]:
        """The class of the fitted ``tree_``."""
        return find_formulation(cls.formulation).Tree

    # -- saving ---------------------------------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str:
        """The fitted classifier as JSON text, also written to ``path`` if one is given.

        It holds the parameters, the tree and what predictions need; ``result_`` goes along for the record.
        """
        from . import _saving

        self._require_one_tree()
        return _saving.write(self, path)

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """A fitted classifier from :meth:`to_json`'s text or file; nothing in it is executed.

        It has all fitted attributes but ``result_`` and, of a classifier that chose its parameters, ``tuning_`` with
        ``best_params_`` and ``best_score_``. The rows of ``relabelled_`` are known by their positions only.

        Raises
        ------
        InvalidData
            No saved classifier of this class, a newer format, or a damaged file.
        """
        from . import _saving

        return _saving.read(cls, source)


def _with_shared(cls: type[TreeClassifier]) -> str:
    """The class's docstring with its parameters and attributes: those of the formulation, and what its bases say of theirs."""
    said, mark, examples = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n")
    classes = [b for b in cls.__mro__[1:] if issubclass(b, TreeClassifier)]
    complete = next(k for k, b in enumerate(classes) if "formulation" in vars(b))  # has what its bases say
    bases = classes[: complete + 1]
    form = find_formulation(cls.formulation)
    parameters = [doc_section(b, "Parameters") for b in bases]
    attributes = [doc_section(b, "Attributes") for b in bases]
    if bases[-1] is TreeClassifier:
        parameters.insert(0, _parameters_of_the_model(form.Params))
        attributes.insert(0, f"tree_ : {form.Tree.__name__}\n    The fitted tree.")
    sections = [
        f"{name}\n{'-' * len(name)}\n" + "\n".join(filter(None, parts))
        for name, parts in (("Parameters", parameters), ("Attributes", attributes))
    ]
    return "\n\n".join([said, *sections]) + mark + examples


def _parameters_of_the_model(params: type[Params]) -> str:
    """What the formulation says of its parameters, by the names of the classifiers."""
    said = {}
    for base in params.__mro__:
        for paragraph in re.split(r"\n(?=\S)", doc_section(base, "Attributes")):
            name, _, text = paragraph.partition(" : ")
            said[name] = text
    for name in OPTIONAL:
        if name in said and params.model_fields[name].default is not None:
            said[name] = said[name].replace("\n", ", optional\n", 1)
    return "\n".join(
        f"{OUR_NAMES.get(name, name)} : {said[name]}" for name in params.model_fields if name in said
    )


def _initialiser(cls: type[TreeClassifier]) -> Callable[..., None]:
    """An ``__init__`` that keeps its arguments, as scikit-learn wants it: the parameters of the formulation, and the options."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    known = [
        inspect.Parameter(
            OUR_NAMES.get(name, name),
            keyword,
            default=None if name in OPTIONAL or name in cls.chosen else field.default,
            annotation=field.annotation,
        )
        for name, field in find_formulation(cls.formulation).Params.model_fields.items()
    ]
    known += parameters(ESTIMATOR)
    known += [
        inspect.Parameter(name, keyword, default=default, annotation=Any)
        for name, default in cls.own_parameters.items()
    ]
    signature = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *known]
    )

    def initialise(self: Any, *misplaced: Any, **given: Any) -> None:
        try:
            bound = signature.bind(self, *misplaced, **given)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}.{meant(given, signature.parameters)}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)

    initialise.__signature__ = signature  # type: ignore[attr-defined]
    initialise.__name__, initialise.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return initialise


def _feature_importances(tree: Tree, node_weights: FloatArray) -> FloatArray:
    """Mean decrease of Gini impurity (p,), each split's shared out by the absolute weights of the scaled features.

    ``node_weights (nodes, K)`` is the training weight of each class at each node, in heap order.
    """
    if isinstance(tree, KernelTree) and not tree.weighs_features:
        raise AttributeError(
            f"feature_importances_: the splits of this tree have no weights of features, only of samples (kernel "
            f"{tree.kernel.describe()}). sklearn.inspection.permutation_importance asks any classifier."
        )
    weights = np.abs(tree.weights("scaled")[0])  # type: ignore[attr-defined]
    found = np.zeros(weights.shape[1])
    for t in (np.flatnonzero(tree.splits) + 1).tolist():
        gain = _impurity(node_weights[t - 1]) - sum(_impurity(node_weights[c - 1]) for c in children(t))
        if gain > 0 and weights[t - 1].any():
            found += gain * weights[t - 1] / weights[t - 1].sum()
    total = found.sum()
    return found / total if total > 0 else found


def _impurity(weights: FloatArray) -> float:
    """Gini impurity of a node with these ``weights (K,)``, times its weight."""
    total = float(weights.sum())
    return total - float(weights @ weights) / total if total > 0 else 0.0


def meant(given: Iterable[str], known: Collection[str]) -> str:
    """What to say instead of those of the ``given`` names that are not ``known``."""
    strange = [name for name in given if name not in known]
    return "".join(
        f" Say {BROUGHT[name]}= instead of {name}=." if BROUGHT.get(name) in known else nearest(name, known)
        for name in strange
    )


def _in_our_names(message: str) -> str:
    """The message with the parameters' names of the classifiers."""
    names = OUR_NAMES | {"seed": "random_state", "jobs": "n_jobs"}
    return re.sub(rf"\b({'|'.join(names)})\b", lambda m: names[m[1]], message)
