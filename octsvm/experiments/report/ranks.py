"""Do methods differ over many data sets? Friedman's test, Nemenyi's critical difference, Wilcoxon's signed ranks.

Source: J. Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine Learning Research 7
(2006), 1-30.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats


@dataclass(frozen=True)
class Ranks:
    """How methods rank over blocks, here the sets under each noise.

    Attributes
    ----------
    mean : pandas.Series
        Mean rank of each method, 1 is best, sorted; ties share their mean rank.
    blocks : int
        How many rows were ranked.
    statistic, p : float
        Friedman's chi-square, corrected for ties, and its p-value; NaN for less than three methods.
    critical_difference : float
        Nemenyi: mean ranks that are further apart differ at level ``alpha``.
    alpha : float
        The level.
    pairs : pandas.DataFrame
        For each pair ``first``, ``second``: ``won``, ``tied``, ``lost`` blocks, the ``median`` difference of the
        accuracies, Wilcoxon's ``p`` (two-sided), and ``p_holm``, corrected after Holm for the number of pairs.
    """

    mean: pd.Series
    blocks: int
    statistic: float
    p: float
    critical_difference: float
    alpha: float
    pairs: pd.DataFrame


def critical_difference(methods: int, blocks: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of mean ranks: q sqrt(k (k + 1) / (6 N)), after Demšar, Section 3.2.2.

    Parameters
    ----------
    methods : int
        k, at least 2.
    blocks : int
        N.
    alpha : float
        The level.
    """
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def holm(p: list[float]) -> list[float]:
    """p-values corrected after Holm; NaN stays and does not count."""
    out = np.full(len(p), np.nan)
    known = [k for k in np.argsort(p) if np.isfinite(p[k])]
    least = 0.0
    for step, k in enumerate(known):
        least = max(least, min(1.0, (len(known) - step) * p[k]))
        out[k] = least
    return out.tolist()


def rank(accuracy: pd.DataFrame, alpha: float = 0.05) -> Ranks | None:
    """Compare the columns of ``accuracy`` over its rows; None without two columns and two rows.

    Parameters
    ----------
    accuracy : pandas.DataFrame
        One row for each block, one column for each method; rows that lack a value are left out.
    alpha : float
        Level of the critical difference.
    """
    table = accuracy.dropna().round(10)
    if table.shape[0] < 2 or table.shape[1] < 2:
        return None
    mean = table.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    statistic = p = np.nan
    if table.shape[1] > 2:
        with np.errstate(invalid="ignore"):
            statistic, p = (float(v) for v in stats.friedmanchisquare(*(table[c] for c in table.columns)))
    pairs = []
    for first, second in combinations(mean.index, 2):
        gain = (table[first] - table[second]).round(10)
        moved = bool((gain != 0).any())
        pairs.append(
            {
                "first": first,
                "second": second,
                "won": int((gain > 0).sum()),
                "tied": int((gain == 0).sum()),
                "lost": int((gain < 0).sum()),
                "median": float(gain.median()),
                "p": float(stats.wilcoxon(gain, method="auto").pvalue) if moved else np.nan,
            }
        )
    listed = pd.DataFrame(pairs)
    listed["p_holm"] = holm(listed["p"].tolist())
    difference = critical_difference(table.shape[1], table.shape[0], alpha)
    return Ranks(mean, len(table), statistic, p, difference, alpha, listed)


def cliques(mean: pd.Series, difference: float) -> list[tuple[int, int]]:
    """First and last position of each largest run of sorted mean ranks that lie within ``difference``, two at least."""
    values = mean.to_numpy(float)
    found: list[tuple[int, int]] = []
    for k in range(len(values)):
        last = int(np.searchsorted(values, values[k] + difference, side="right")) - 1
        if last > k and (not found or last > found[-1][1]):
            found.append((k, last))
    return found
