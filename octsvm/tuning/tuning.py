"""What a tuning came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from ..result import Result


@dataclass(frozen=True, eq=False)
class Tuning:
    """Settings with their accuracies over the folds, the chosen one, and the tree that was fitted with it.

    Attributes
    ----------
    formulation : str
    choice : dict
        The chosen parameters, as :func:`octsvm.fit` takes them on the whole table.
    result : Result or None
        The fit to all rows with them; None where none was wanted.
    accuracy : float
        Of the chosen setting over the folds. It was chosen for being large, so it flatters: to judge a tuning, tune inside
        the folds of another cross-validation, as ``cross_val_score(OCTSVMClassifierCV(), X, y)`` does.
    rule : str
        By which it was chosen.
    chosen : int
        Its line in :meth:`frame`.
    folds_wanted, folds_judged : int
        How many there are, and how many the time limit left time for: the others do not count.
    notes : tuple of str
        What was decided otherwise than asked.
    seconds : float
        Of everything.
    scores : pandas.DataFrame
        What :meth:`frame` copies.
    """

    formulation: str
    choice: dict[str, Any]
    result: Result | None
    accuracy: float
    rule: str
    chosen: int
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    scores: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    folds_wanted: int = 0
    folds_judged: int = 0

    @property
    def folds_missed(self) -> str:
        """What to know where the time limit ended folds; "" where all were judged."""
        if self.folds_judged >= self.folds_wanted:
            return ""
        came = f"{self.folds_judged} of {self.folds_wanted} folds"
        if not self.folds_judged:
            came = f"none of {self.folds_wanted} folds, and the usual setting was taken"
        return f"The time limit left time for {came}. A longer one, a smaller grid or more processes judge by all of them."

    @property
    def accuracy_error(self) -> float:
        """Standard error of ``accuracy`` over the folds."""
        return float(self.scores["accuracy_error"].iloc[self.chosen])

    @property
    def tree(self) -> Any:
        """The tree of ``result``; None without one."""
        return None if self.result is None else self.result.tree

    def frame(self) -> pd.DataFrame:
        """One line for each setting of the grid.

        Returns
        -------
        pandas.DataFrame
            The parameters as they stand in the grid (relative costs, where it has those), the same as plain costs
            of the whole table (``plain_c1`` and so on), ``accuracy`` over the folds, ``accuracy_error`` (its standard error),
            ``score`` (the accuracy with the prior), ``standard_error`` of its difference from the best score, mean number of
            ``splits`` and of ``relabelled`` rows of the trees, and ``chosen``.
        """
        return self.scores.copy()

    def plot(self, **options: Any) -> Any:
        """Draw the accuracies: :func:`octsvm.plots.plot_tuning`."""
        from ..plots import plot_tuning

        return plot_tuning(self, **options)

    def __str__(self) -> str:
        shown = ", ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.choice.items()
        )
        error = (
            "of one fold ("
            if np.isnan(self.accuracy_error)
            else f"\u00b1 {self.accuracy_error:.4f} (standard error; "
        )
        judged = f"accuracy over the folds {self.accuracy:.4f} {error}rule {self.rule})"
        if np.isnan(self.accuracy):
            judged = "no fold was judged: the usual setting"
        return "\n".join([f"{self.formulation}: {shown}", judged, *self.notes])
