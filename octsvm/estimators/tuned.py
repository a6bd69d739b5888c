"""The classifiers with parameters that choose themselves, by :func:`octsvm.tune` inside ``fit``."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..formulations.base import FloatArray
from ..options import LEAST_SECONDS, SolveOptions
from ..tuning import Tuning, tune
from ..tuning.grids import GRIDS
from ..tuning.run import FOLDS_SHARE
from ._base import NAMES, TreeClassifier
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

    Parameters of the default grid are None: chosen. Those that are given are not chosen. Everything else is as in the
    classifier of the same name without CV, which the fit with the choice is.

    Parameters
    ----------
    grid, relative, rule, prior_rows, folds, repeats
        As for :func:`octsvm.tune`; ``grid`` may say ``max_depth`` and ``min_samples_leaf``.
    n_jobs : int, optional
        Processes, as ``jobs`` there.

    Attributes
    ----------
    tuning_ : Tuning
        The choice and the accuracies behind it. With more than two classes in one of the margin models each of
        ``estimators_`` has its own.
    """

    tuning_: Tuning

    def __init_subclass__(cls, **more: Any) -> None:
        """Give a classifier the parameters of a tuning besides its own."""
        if "formulation" in vars(cls):
            cls.own_parameters = cls.own_parameters | FOLDS
            cls.chosen = frozenset(name for part in GRIDS[cls.formulation] for name in part)
        super().__init_subclass__(**more)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.__dict__.pop("tuning_", None)
        super()._fit(X, y, sample_weight)

    def _choose(self, X: Any, y: NDArray[Any], weights: FloatArray) -> None:
        """Choose on the rows that the model is fitted to: equal ones once, with their weights added up."""
        clock = SolveOptions(time_limit=self.time_limit).clock  # type: ignore[attr-defined]
        self.tuning_ = tune(
            self.formulation,
            X,
            y.tolist(),
            _renamed(self.grid),  # type: ignore[attr-defined]
            relative=self.relative,  # type: ignore[attr-defined]
            rule=self.rule,  # type: ignore[attr-defined]
            prior_rows=self.prior_rows,  # type: ignore[attr-defined]
            folds=self.folds,  # type: ignore[attr-defined]
            repeats=self.repeats,  # type: ignore[attr-defined]
            jobs=self.n_jobs,  # type: ignore[attr-defined]
            seed=self._seed(),
            weights=weights,
            time_limit=FOLDS_SHARE * clock.limit,
            progress=self.verbose == "progress",  # type: ignore[attr-defined]
            refit=False,
            **self._model_parameters(),
        )

    def _seconds(self) -> Any:
        """What choosing left of the time limit."""
        return max(LEAST_SECONDS, super()._seconds() - self.tuning_.seconds)

    def _model_parameters(self) -> dict[str, Any]:
        given = super()._model_parameters()
        given = {name: value for name, value in given.items() if value is not None or name not in self.chosen}
        return given | (self.tuning_.choice if "tuning_" in self.__dict__ else {})


def _renamed(grid: Any) -> Any:
    """A grid with the parameters' names of the models."""
    if isinstance(grid, dict):
        return {NAMES.get(name, name): values for name, values in grid.items()}
    return [_renamed(part) for part in grid] if isinstance(grid, (list, tuple)) else grid


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
