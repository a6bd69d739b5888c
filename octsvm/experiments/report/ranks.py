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

ALPHA = 0.05  # level of Nemenyi's test


@dataclass(frozen=True)
class Ranks:
    """How methods rank over blocks, here the sets under each noise.

    Attributes
    ----------
    table : pandas.DataFrame
        What is ranked: one row for each block, one column for each method, nothing missing.
    mean : pandas.Series
        Mean rank of each method, 1 is best, sorted; ties share their mean rank.
    statistic, p : float
        Friedman's chi-square, corrected for ties, and its p-value; NaN for less than three methods.
    critical_difference : float
        Nemenyi: mean ranks that are further apart differ at level :data:`ALPHA`.
    pairs : pandas.DataFrame
        For each pair ``first``, ``second``: ``won``, ``tied``, ``lost`` blocks, the ``median`` difference of the
        accuracies, Wilcoxon's ``p`` (two-sided), and ``p_holm``, corrected after Holm for the number of pairs.
    """

    table: pd.DataFrame
    mean: pd.Series
    statistic: float
    p: float
    critical_difference: float
    pairs: pd.DataFrame

    @property
    def blocks(self) -> int:
        """How many rows were ranked."""
        return len(self.table)


def critical_difference(methods: int, blocks: int) -> float:
    """Nemenyi's critical difference of the mean ranks of k ``methods`` (2 or more) over N ``blocks``.

    It is q sqrt(k (k + 1) / (6 N)), after Demšar, Section 3.2.2.
    """
    q = stats.studentized_range.ppf(1 - ALPHA, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def rank(accuracy: pd.DataFrame) -> Ranks | None:
    """Compare methods, the columns of ``accuracy``, over blocks, its rows that lack no value; None without two of each."""
    from statsmodels.stats.multitest import multipletests

    table = accuracy.dropna().round(10)
    if table.shape[0] < 2 or table.shape[1] < 2:
        return None
    mean = table.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    statistic = p = np.nan
    if table.shape[1] > 2:
        with np.errstate(invalid="ignore"):
            statistic, p = map(float, stats.friedmanchisquare(*(table[c] for c in table)))
    pairs = []
    for first, second in combinations(mean.index, 2):
        gain = (table[first] - table[second]).round(10)
        won, tied, lost = (int((np.sign(gain) == sign).sum()) for sign in (1, 0, -1))
        alike = np.nan if tied == len(gain) else float(stats.wilcoxon(gain).pvalue)
        pairs.append((first, second, won, tied, lost, gain.median(), alike))
    listed = pd.DataFrame(pairs, columns=["first", "second", "won", "tied", "lost", "median", "p"])
    tested = listed["p"].dropna()
    corrected = multipletests(tested, method="holm")[1] if len(tested) else []
    listed["p_holm"] = pd.Series(corrected, index=tested.index, dtype=float)
    difference = critical_difference(table.shape[1], len(table))
    return Ranks(table, mean, statistic, p, difference, listed)
