"""The classifiers with parameters that choose themselves, by :func:`octsvm.tune` inside ``fit``."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..errors import InvalidParameter
from ..formulations.base import FloatArray
from ..formulations.checks import listed
from ..formulations.registry import formulation as find_formulation
from ..options import LEAST_SECONDS, SolveOptions
from ..tuning import Tuning, tune
from ..tuning.run import FOLDS_SHARE
from ._base import NAMES, OUR_NAMES, Begin, TreeClassifier, meant
from ._warn import warn_once_a_line
from .leaf_labelled import MOCTSVMClassifier, OCTClassifier, OCTHClassifier
from .margin import OCTSVMClassifier, RESVMClassifier

FOLDS = {
    "grid": None,
    "relative": None,
    "rule": "one_standard_error",
    "prior_rows": None,
    "folds": 5,
    "repeats": None,
    "n_jobs": None,
}


class TunedClassifier(TreeClassifier):
    """What the classifiers share that choose their parameters.

    Parameters of the default grid are None: chosen. Those that are given are not chosen. ``kernel="auto"`` chooses between
    no kernel and "rbf". Everything else is as in the classifier of the same name without CV, which the fit with the choice is.
    Folds are drawn of the rows as given: a row of weight 2 is in one fold, two equal rows may be in two.

    Parameters
    ----------
    grid : dict or list of dict, optional
        Values to choose from, e.g. ``{"max_depth": [0, 1], "c1": [1, 10]}``. None is a grid of relative costs and depths,
        of which it chooses those parameters that are None; what is given beside it is kept.
    relative : bool, optional
        Whether costs in ``grid`` are relative; None: only those of the default grid are.
    rule : "one_standard_error" or "best"
        The smallest depth within one standard error of the best score, or the best score.
    prior_rows : float, optional
        How many rows the prior towards usual settings counts; None is 20 for each column with relative costs, else 0.
    folds : int
        2 or more.
    repeats : int, optional
        How often folds are drawn; None: until 400 rows are judged, twice at most.
    n_jobs : int, optional
        Processes that fit folds, -1 for all processors. More of each in :func:`octsvm.tune`.

    Attributes
    ----------
    tuning_ : Tuning
        The choice and the accuracies behind it. With more than two classes in one of the margin models each of
        ``estimators_`` has its own.
    best_params_ : dict
        The chosen parameters, costs as the classifier without CV takes them on this table.
    best_score_ : float
        Accuracy of the choice over the folds.
    """

    tuning_: Tuning

    def __init_subclass__(cls, **more: Any) -> None:
        """Give a classifier the parameters of a tuning besides its own."""
        if "formulation" in vars(cls):
            cls.own_parameters = cls.own_parameters | FOLDS
            tried = find_formulation(cls.formulation).tried
            parts = tried.grid + tried.kernels if tried else ()
            cls.chosen = frozenset(name for part in parts for name in part) - {"kernel"}
        super().__init_subclass__(**more)

    def _fit(self, X: Any, y: Any, sample_weight: Any, begin: Begin) -> None:
        self.__dict__.pop("tuning_", None)
        known = [OUR_NAMES.get(name, name) for name in find_formulation(self.formulation).Params.model_fields]
        for name in map(str, _named(self.grid)):  # type: ignore[attr-defined]
            if name not in known:
                raise InvalidParameter(
                    f"grid has {name!r}, which is no parameter to choose.{meant([name], known)} There are {listed(known)}."
                )
        super()._fit(X, y, sample_weight, begin)

    def _choose(self, X: Any, y: NDArray[Any], weights: FloatArray) -> None:
        """Choose on the rows as they were given, as :func:`octsvm.tune` does: equal ones are judged one by one."""
        clock = SolveOptions(time_limit=self.time_limit).clock  # type: ignore[attr-defined]
        kernel = {"kernel": "auto"} if getattr(self, "kernel", None) == "auto" else {}
        fields = find_formulation(self.formulation).Params.model_fields
        grid = _renamed(self.grid)  # type: ignore[attr-defined]
        given = {  # a default is nothing that was given beside the grid
            name: value
            for name, value in self._model_parameters().items()
            if name in self.chosen or name not in _named(grid) or value != fields[name].default
        }
        labels = y.tolist()
        class_weight = self.class_weight  # type: ignore[attr-defined]
        if isinstance(class_weight, dict):  # a class may have rows of weight zero only
            class_weight = {label: class_weight[label] for label in set(labels) & set(class_weight)}
        self.tuning_ = tune(
            self.formulation,
            X,
            labels,
            grid,
            **{name: getattr(self, name) for name in ("relative", "rule", "prior_rows", "folds", "repeats")},
            jobs=self.n_jobs,  # type: ignore[attr-defined]
            seed=self._seed(),
            weights=weights,
            class_weight=class_weight,
            time_limit=FOLDS_SHARE * clock.limit,
            progress=self.verbose == "progress",  # type: ignore[attr-defined]
            refit=False,
            **given | kernel,
        )

    def _warn_of_costs(self, fitted: list[Any], X: Any) -> None:
        """Say so, once, where the time limit left folds out: costs were chosen by fewer, or by none."""
        missed = next((one.tuning_.folds_missed for one in fitted if one.tuning_.folds_missed), "")
        if missed:
            warn_once_a_line(
                f"{missed} Half of time_limit={self.time_limit!r} is for folds; tuning_ has what they said.",  # type: ignore[attr-defined]
                ConvergenceWarning,
                stacklevel=3,
            )

    @property
    def best_params_(self) -> dict[str, Any]:
        """What was chosen, by the classifier's names."""
        choice, grid = self.tuning_.choice, self.tuning_.scores.columns
        return {OUR_NAMES.get(name, name): value for name, value in choice.items() if name in grid}

    @property
    def best_score_(self) -> float:
        """Accuracy of the choice over the folds."""
        return self.tuning_.accuracy

    def _seconds(self) -> Any:
        """What choosing left of the time limit."""
        return max(LEAST_SECONDS, super()._seconds() - self.tuning_.seconds)

    def _model_parameters(self) -> dict[str, Any]:
        given = super()._model_parameters()
        for name, value in given.items():
            if name in self.chosen and isinstance(value, (list, tuple)):
                raise InvalidParameter(
                    f"{name}={value!r} should be one value, which is kept. Values to choose from go into the grid: "
                    f"grid={{{name!r}: {list(value)!r}}}."
                )
        given = {name: value for name, value in given.items() if value is not None or name not in self.chosen}
        if given.get("kernel") == "auto":
            given["kernel"] = None  # until there is a choice
        return given | (self.tuning_.choice if "tuning_" in self.__dict__ else {})


def _renamed(grid: Any) -> Any:
    """A grid with the parameters' names of the models."""
    if isinstance(grid, dict):
        return {NAMES.get(name, name): values for name, values in grid.items()}
    return [_renamed(part) for part in grid] if isinstance(grid, (list, tuple)) else grid


def _named(grid: Any) -> list[Any]:
    """The names in a grid; none in what is no grid."""
    parts = grid if isinstance(grid, (list, tuple)) else [grid]
    return [name for part in parts if isinstance(part, dict) for name in part]


class OCTClassifierCV(TunedClassifier, OCTClassifier):
    """:class:`OCTClassifier` that chooses ``max_depth`` and ``alpha`` by repeated folds of its training rows."""

    formulation = "oct"


class OCTHClassifierCV(TunedClassifier, OCTHClassifier):
    """:class:`OCTHClassifier` that chooses ``max_depth`` and ``alpha`` by repeated folds of its training rows."""

    formulation = "oct_h"


class RESVMClassifierCV(TunedClassifier, RESVMClassifier):
    """:class:`RESVMClassifier` that chooses ``c1`` and ``c2`` by repeated folds of its training rows."""

    formulation = "re_svm"


class OCTSVMClassifierCV(TunedClassifier, OCTSVMClassifier):
    """:class:`OCTSVMClassifier` that chooses ``max_depth``, ``c1``, ``c2``, ``c3`` by repeated folds of its training rows.

    Examples
    --------
    >>> from octsvm import OCTSVMClassifierCV
    >>> model = OCTSVMClassifierCV(folds=2, repeats=1, max_depth=0)
    >>> X, y = [[0], [1], [2], [3], [7], [8], [9], [10]], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model.fit(X, y).predict([[1.5], [8.5]]).tolist()
    [0, 1]
    """

    formulation = "octsvm"


class MOCTSVMClassifierCV(TunedClassifier, MOCTSVMClassifier):
    """:class:`MOCTSVMClassifier` that chooses ``max_depth``, ``c1``, ``c2``, ``c3`` by repeated folds of its training rows."""

    formulation = "moctsvm"
