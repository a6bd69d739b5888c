"""Tables that need no file: data sets that scikit-learn brings along, and a generated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

BUILT_IN = ("iris", "wine", "breast_cancer", "toy")
TOY_ROWS = 32
TOY_WRONG = 0.1  # share of the toy's labels that are wrong on purpose


def built_in(name: str, seed: int) -> tuple[pd.DataFrame, Any]:
    """Features (n, p) and labels (n,) of one of :data:`BUILT_IN`; ``seed`` is that of the toy."""
    if name == "toy":
        return _toy(seed)
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    y = bunch.target_names[bunch.target.to_numpy()].astype(object)
    return bunch.data, y


def _toy(seed: int) -> tuple[pd.DataFrame, Any]:
    """Two classes with a wide gap between them, and a tenth of the labels wrong."""
    import numpy as np
    import pandas as pd

    from ..noise import flip_labels

    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, size=(10 * TOY_ROWS, 2)).round(2)
    X = X[np.abs(X.sum(axis=1) - 10.0) > 2.0][:TOY_ROWS]
    y = np.where(X.sum(axis=1) > 10.0, "blue", "red").astype(object)
    frame = pd.DataFrame(X, columns=["width", "height"])
    return frame, flip_labels(y, TOY_WRONG, seed).astype(object)
