"""Which setting is chosen, from how many judged rows each one has right in each fold.

1. The accuracy of a setting is that of all judged rows together.
2. A *prior* takes part like ``prior_rows`` rows more: on those the usual setting is as good as on the table, and
   others lose what :func:`octsvm.tuning.grids.prior` says. Of 50 rows it is a good part, of 5,000 next to nothing.
3. ``"best"`` takes the largest score. ``"one_standard_error"`` looks at the settings within one standard error of that: without a
   kernel if there are such, of the smallest depth among them, and takes the one with the largest score.

The standard error is that of the difference from the best setting over the folds; that of an accuracy itself is told beside
it. Folds share training rows, so both are corrected as Nadeau and Bengio do (Inference for the generalization error, Mach. Learn. 52, 2003): the variance over
the folds times 1/folds + judged rows / training rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from .grids import Setting, has_kernel

Rule = Literal["best", "one_standard_error"]
RULES: tuple[Rule, ...] = get_args(Rule)
DIGITS = 12  # scores that agree in these are tied


def scores(
    settings: Sequence[Setting],
    lines: Sequence[Mapping[str, Any]],
    expected: Sequence[float],
    rows: int,
    prior_rows: float,
) -> pd.DataFrame:
    """One line for each setting, in their order.

    Parameters
    ----------
    settings : sequence of dict
    lines : sequence of mappings
        Of the folds, from :func:`octsvm.tuning.folds.fit_fold`; none where the prior alone decides.
    expected : sequence of float
        The prior: accuracy lost against the usual setting, 0 or less.
    rows : int
        Rows of the table.
    prior_rows : float
        How many rows the prior counts.

    Returns
    -------
    pandas.DataFrame
        The parameters, ``accuracy`` (a share of the judged weight), ``accuracy_error`` (its own standard error), ``score``
        (with the prior), ``standard_error`` (of the score's difference from the best one), and means over the folds: ``splits``
        of the trees, ``relabelled`` rows. The errors are nan with one fold.
    """
    frame = pd.DataFrame(list(settings))
    loss = np.asarray(expected, dtype=float)
    if not lines:
        empty = dict.fromkeys(
            ("accuracy", "accuracy_error", "standard_error", "splits", "relabelled"), np.nan
        )
        return frame.assign(**empty, score=loss)
    right, splits, relabelled = (
        np.array([one[k] for one in lines]) for k in ("right", "splits", "relabelled")
    )
    weight, judged, trained = (np.array([one[k] for one in lines]) for k in ("weight", "judged", "trained"))
    accuracy = right.sum(axis=0) / weight.sum()
    share = rows / (rows + prior_rows)
    score = np.round(share * accuracy + (1 - share) * (accuracy[int(np.argmax(loss))] + loss), DIGITS)
    by_fold = right / weight[:, None]
    differences = by_fold[:, [int(np.argmax(score))]] - by_fold
    variance, own = (
        (values.var(axis=0, ddof=1) if len(lines) > 1 else np.full(len(frame), np.nan))
        * (1 / len(lines) + judged.sum() / trained.sum())
        for values in (differences, by_fold)
    )
    return frame.assign(
        accuracy=accuracy,
        accuracy_error=np.sqrt(own),
        score=score,
        standard_error=share * np.sqrt(variance),
        splits=splits.mean(axis=0),
        relabelled=relabelled.mean(axis=0),
    )


def choose(frame: pd.DataFrame, rule: Rule) -> int:
    """Position of the setting that a rule chooses; of equal ones that with fewer splits, then the first in the grid."""
    score = frame["score"].to_numpy()
    open_ = np.ones(len(frame), dtype=bool)
    if rule == "one_standard_error":
        open_ = score.max() - score <= frame["standard_error"].fillna(0.0).to_numpy()
        kernels = [has_kernel(kernel) for kernel in frame.get("kernel", pd.Series(None, frame.index))]
        depths = frame.get("depth", pd.Series(0, frame.index))
        for plainer in map(np.asarray, (kernels, depths)):
            open_ &= plainer == plainer[open_].min()
    order = np.lexsort((frame["splits"].to_numpy(), -np.where(open_, score, -np.inf)))
    return int(order[0])
