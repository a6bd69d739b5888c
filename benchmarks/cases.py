"""What is measured: tables and models by name, the phases each goes through, and quarters of the data sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .study import SkippedError

SEED = 0
MODEL = ("build", "write_lp", "write_nl", "write_mps", "hand_off", "embed", "certify")
PEER_PHASES = ("build", "pyoptree", "odtlearn")
PHASES = (*MODEL, "solve", "limit", "pyoptree", "odtlearn")


@dataclass(frozen=True)
class Case:
    """One model on one table; ``iris`` is the table of that name, otherwise ``n × p`` uniform numbers, two classes."""

    name: str
    group: str
    formulation: str
    n: int
    p: int
    params: dict[str, Any] = field(default_factory=dict)
    phases: tuple[str, ...] = MODEL
    iris: bool = False

    def table(self, seed: int = SEED) -> tuple[NDArray[Any], NDArray[Any]]:
        """``X (n, p)`` and labels; one label in ten is wrong."""
        if self.iris:
            from sklearn.datasets import load_iris

            X, y = load_iris(return_X_y=True)
            return X, y
        rng = np.random.default_rng([seed, self.n, self.p])
        X = rng.random((self.n, self.p))
        y = (X[:, 0] + X[:, -1] > 1).astype(int)
        wrong = rng.random(self.n) < 0.1
        y[wrong] = 1 - y[wrong]
        y[:2] = 0, 1
        return X, y

    def small(self) -> Case:
        """The same case in the size of a test."""
        params = dict(self.params)
        if "depth" in params:
            params["depth"] = min(params["depth"], 1)
        return self if self.iris else replace(self, n=min(self.n, 6), p=min(self.p, 2), params=params)


def _cases() -> list[Case]:
    octsvm, D2 = "octsvm", {"depth": 2}
    cases = [
        Case("octsvm", "reference", octsvm, 172, 60, D2, (*MODEL, "limit")),
        Case("octsvm-l1", "reference", octsvm, 172, 60, {**D2, "norm": "l1"}),
        Case("octsvm-paper", "reference", octsvm, 172, 60, {**D2, "variant": "paper"}),
        Case("iris", "peers", "oct", 150, 4, {**D2, "variant": "rank"}, PEER_PHASES, iris=True),
    ]
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"oct-{variant}": ("oct", {**D2, "variant": variant}) for variant in ("flow", "rank", "bd")},
        "oct_h-splits": ("oct_h", D2),
        "oct_h-features": ("oct_h", {**D2, "complexity": "features"}),
    }
    for name, variant in (("re_svm", "paper"), (octsvm, "paper"), ("moctsvm", "levels")):
        for kind, norm in product(("compact", variant), ("l2", "l1")):
            of_depth = {} if name == "re_svm" else D2
            kinds[f"{name}-{kind}-{norm}"] = (name, {**of_depth, "variant": kind, "norm": norm})
    for name, (formulation, params) in kinds.items():
        cases.append(Case(f"{name}-60x10", "variants", formulation, 60, 10, params))
        tiny = {**params, "depth": 1} if "depth" in params else params
        cases.append(Case(f"{name}-12x2", "solve", formulation, 12, 2, tiny, ("solve",)))
    growth = ("build", "write_lp", "write_nl", "hand_off")
    for n in (50, 100, 200, 400, 800):
        cases.append(Case(f"octsvm-n{n}", "growth in n", octsvm, n, 20, D2, growth))
    for p in (10, 20, 40, 80, 160):
        cases.append(Case(f"octsvm-p{p}", "growth in p", octsvm, 100, p, D2, growth))
    for depth in (0, 1, 2, 3, 4):
        cases.append(Case(f"octsvm-D{depth}", "growth in D", octsvm, 100, 20, {"depth": depth}, growth))
    return cases


CASES: dict[str, Case] = {case.name: case for case in _cases()}


# -- proofs of optimality -----------------------------------------------------------------------------------

PROOF_ROWS = (16, 14, 12, 15, 13, 11, 16, 14, 10, 15, 12, 8)
PROOF_COSTS = ((1.0, 1.0, 0.1), (10.0, 5.0, 1.0), (2.0, 3.0, 0.5), (100.0, 50.0, 10.0))
N_PROOFS = 24
WRONG_SHARE = 0.15


@dataclass(frozen=True)
class Proof:
    """The table and the costs of OCTSVM of one index; nothing but the index chooses them.

    Labels are the sides of a hyperplane or, for every other pair of indices, opposite quadrants (XOR); the share
    ``WRONG_SHARE`` of them is then turned around.
    """

    index: int

    @property
    def n(self) -> int:
        """Rows."""
        return PROOF_ROWS[self.index % len(PROOF_ROWS)]

    @property
    def p(self) -> int:
        """Features."""
        return 2 + (self.index + self.index // 4) % 4

    @property
    def labels(self) -> str:
        """ "plane" or "xor"."""
        return ("plane", "xor")[self.index // 2 % 2]

    @property
    def params(self) -> dict[str, Any]:
        """Depth and costs."""
        c1, c2, c3 = PROOF_COSTS[self.index // 3 % len(PROOF_COSTS)]
        return {"depth": 2 if self.index % 3 else 1, "c1": c1, "c2": c2, "c3": c3}

    def table(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """``X (n, p)`` uniform in [0, 1], and labels."""
        rng = np.random.default_rng([2022, self.index])
        X = rng.random((self.n, self.p))
        side = X[:, 0] + X[:, 1] - 1 if self.labels == "plane" else (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
        y = np.where(side >= 0, 1, -1)
        y[rng.permutation(self.n)[: max(1, round(WRONG_SHARE * self.n))]] *= -1
        return X, y


PROOFS = [Proof(index) for index in range(N_PROOFS)]
# No choice was made by looking at these.
FURTHER_PROOFS = [Proof(index) for index in range(N_PROOFS, 2 * N_PROOFS)]


# -- data sets -------------------------------------------------------------------------------------------------

SETS = ("australian", "breastcancer", "heart", "ionosphere", "monks", "parkinson", "sonar", "wholesale")


def whole(folder: Path | None, name: str) -> tuple[Any, Any]:
    """All rows of ``folder/name.csv``, the label last: X, y."""
    import pandas as pd

    if folder is None:
        raise SkippedError("it needs --data DIR, the folder of the data sets")
    if not (folder / f"{name}.csv").is_file():
        raise SkippedError(f"{name} is not in {folder}")
    frame = pd.read_csv(folder / f"{name}.csv")
    return frame.drop(columns="label"), frame["label"]


def quarter(folder: Path | None, name: str, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """A quarter of the rows of a set (stratified) to train, and the rest to test: X, y, X_test, y_test."""
    from sklearn.model_selection import train_test_split

    X, y = whole(folder, name)
    train, test, y_train, y_test = train_test_split(X, y, train_size=0.25, stratify=y, random_state=seed)
    return train, y_train, test, y_test
