"""Which labels does a tree think wrong? The rows it gave up, how well they match known flips, and lasting suspects."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .data import label_list, read_labels, require_same_rows
from .errors import InvalidData, InvalidParameter
from .exports import tree_of
from .formulations.base import BoolArray, FloatArray, table_digest
from .formulations.checks import is_number, plural, require_jobs
from .formulations.trees import MarginTree, Relabelled, Tree, label_array
from .parameter_grid import combinations
from .result import Result

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["row", "node", "given", "believed", "predicted", "cost", "margin_before", "margin_after"]
SHOWN = 3  # settings in a warning
CONSTANT = "A tree of this fit predicts one class"  # how the classifiers' warning begins
# Types of a report without rows.
FIGURES = ("cost", "margin_before", "margin_after")
NUMBERS: Any = dict.fromkeys(("row", "node"), "int64") | dict.fromkeys(FIGURES, float)


class RelabellingScores(NamedTuple):
    """How well given-up labels match known flips.

    Attributes
    ----------
    precision : float
        Share of the rows given up that were flipped; nan where none was given up.
    recall : float
        Share of the flipped rows that were given up; nan where none was flipped.
    found, relabelled, flipped : int
        Rows that are both, given up, flipped.
    """

    precision: float
    recall: float
    found: int
    relabelled: int
    flipped: int


def relabelling_report(fitted: Any, X: Any, y: Any) -> pd.DataFrame:
    """Every label that a tree gave up in training, node by node.

    A row pays on each level of an OCTSVM and may be given up on one and kept on the next, where the tree classifies
    it after all: compare ``predicted`` with ``given``.

    Parameters
    ----------
    fitted : Result, Tree or classifier
        Of any model; OCT and OCT-H give up no label.
    X : array-like of shape (n, p)
        The table the tree was fitted to.
    y : array-like of shape (n,)
        The labels it was fitted to.

    Returns
    -------
    pandas.DataFrame
        ``row`` (position in X), ``node`` (heap number), ``given`` and ``believed`` label at that node, ``predicted``
        (the tree's label for the row in the end), ``cost`` (c2 and the error left, weighted), ``margin_before`` and
        ``margin_after``: the score times the sign of the given and of the believed label, in margins. Below 0 a row
        is on the wrong side, from 1 on it costs nothing. The index is that of the training frame, if it was one.

    Raises
    ------
    InvalidData
        X and y are not those of the fit.
    """
    import pandas as pd

    tree = tree_of(fitted)
    matrix = tree.features_of(X)
    require_same_rows(X=X, y=y)
    classes, index_y = read_labels(y, len(matrix))
    records = tree.relabelled if isinstance(tree, MarginTree) else ()
    result = fitted if isinstance(fitted, Result) else getattr(fitted, "result_", None)
    _require_training_table(tree, result, matrix, classes, records)
    known = getattr(result, "table_digest", "")
    if known and table_digest(matrix, classes, index_y) != known:
        raise InvalidData(
            "X and y are not the rows and labels that the tree was fitted to, or not in their order, and the tree knows "
            "its rows by their positions. Pass the training table."
        )
    rows = []
    predicted = tree.predict_index(matrix)
    for record in records:
        i, t = record.row, record.node
        given = tree.classes.index(classes[index_y[i]])
        sign = 2.0 * given - 1.0
        score = float(tree.node_score(t, tree._matrix(matrix[i : i + 1]))[0])  # type: ignore[attr-defined]
        labels = tree.classes[given], tree.classes[1 - given], tree.classes[predicted[i]]
        rows.append((i, t, *labels, record.cost, sign * score, -sign * score))
    index = getattr(result, "index", None)
    names = None if index is None else [index[r.row] for r in records]
    if not rows:
        return pd.DataFrame(columns=COLUMNS, index=names).astype(NUMBERS)
    columns: dict[str, Any] = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    for name in ("given", "believed", "predicted"):
        columns[name] = _column(label_array(columns[name]))
    frame = pd.DataFrame(columns)
    return frame if names is None else frame.set_index(pd.Index(names))


def _column(labels: np.ndarray) -> pd.Series:
    """Labels as a column; pandas would make text of members of a StrEnum, and integers of those of an IntEnum."""
    import pandas as pd

    try:
        return pd.Series(labels, dtype=object if labels.dtype == object else None)
    except UnicodeEncodeError:  # half of a letter, which Arrow, where pandas keeps text, has no bytes for
        return pd.Series(labels, dtype=object)


def _require_training_table(
    tree: Tree, result: Any, matrix: FloatArray, classes: Sequence[Any], records: Sequence[Relabelled]
) -> None:
    if result is not None and result.n != len(matrix):
        raise InvalidData(
            f"The tree was fitted to {plural(result.n, 'row')}, and X has {len(matrix)}. Pass the training table."
        )
    if any(r.row >= len(matrix) for r in records):
        raise InvalidData(
            f"The tree gave up the label of row {max(r.row for r in records)}, and X has {plural(len(matrix), 'row')}. "
            "Pass the training table."
        )
    if any(c not in tree.classes for c in classes) and records:
        raise InvalidData(f"y holds labels other than {tree.classes!r}. Pass the labels of the fit.")


def relabelling_scores(report: Any, flipped: Any) -> RelabellingScores:
    """Precision and recall of a relabelling report where the flipped rows are known.

    Parameters
    ----------
    report : pandas.DataFrame
        From :func:`relabelling_report`, or a part of it, e.g. ``report[report.predicted == report.believed]``.
    flipped : array-like of shape (n,) or (k,)
        A mask of the rows (booleans), or the positions of those that were flipped.

    Returns
    -------
    RelabellingScores
        Precision, recall and the counts behind them; each row counts once.

    Raises
    ------
    InvalidData
        ``flipped`` is neither, or names a row twice or below 0.
    """
    wanted = _flipped_rows(flipped)
    named = {int(i) for i in report["row"]}
    found = len(named & wanted)
    return RelabellingScores(
        found / len(named) if named else float("nan"),
        found / len(wanted) if wanted else float("nan"),
        found,
        len(named),
        len(wanted),
    )


def _flipped_rows(flipped: Any, n: int | None = None) -> set[int]:
    """Positions of the rows that a mask or a list of positions names, of ``n`` rows where that is known."""
    marks = np.asarray(flipped)
    if marks.ndim == 1 and marks.dtype == bool:
        if n is not None and len(marks) != n:
            raise InvalidData(
                f"flipped marks {plural(len(marks), 'row')}, and X has {n}. Give one mark a row."
            )
        return set(np.flatnonzero(marks).tolist())
    if marks.ndim != 1 or not (marks.dtype.kind in "iu" or marks.size == 0):
        raise InvalidData(
            f"flipped has shape {marks.shape} and dtype {marks.dtype}; give a boolean mask of the rows or the "
            "positions of the flipped ones, e.g. noisy != y."
        )
    wanted = {int(i) for i in marks}
    if len(wanted) < len(marks):
        raise InvalidData(
            "flipped names a row twice. Positions differ; a mask holds booleans: np.asarray(flipped, dtype=bool)."
        )
    outside = [i for i in wanted if i < 0 or (n is not None and i >= n)]
    if outside:
        raise InvalidData(
            f"flipped names row {outside[0]}, and positions are "
            + ("0 or more." if n is None else f"those of the {n} rows of X, from 0 to {n - 1}.")
        )
    return wanted


def suspect_rows(
    estimator: Any,
    param_grid: Mapping[str, Any] | list[Mapping[str, Any]],
    X: Any,
    y: Any,
    *,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """The training rows that trees disagree with, over a grid of parameters.

    Each combination of parameters is fitted to the whole table. A row that no tree of the grid agrees with is at odds
    with the data, not with one choice of costs. Trees that predict one class for all rows say nothing of single ones, and
    are left out.

    Parameters
    ----------
    estimator : classifier
        One of the five, unfitted; it is cloned.
    param_grid : dict or list of dict
        As for scikit-learn's ParameterGrid.
    X : array-like of shape (n, p)
        The table.
    y : array-like of shape (n,)
        The given labels.
    n_jobs : int, optional
        Fits side by side, as in joblib.

    Returns
    -------
    pandas.DataFrame
        One line a row: ``given`` label, ``trees`` (how many count), ``against`` (how many of them predict another
        label), ``relabelled`` (how many gave its label up at some node), ``always`` (all are against). The index is
        the frame's, or the rows' positions. ``sort_values("against", ascending=False)`` puts the best suspects first.

    Raises
    ------
    InvalidParameter
        The grid is empty or none, the estimator is none of ours, or ``n_jobs`` is no number of processes.
    InvalidData
        X or y cannot be used, or y holds more than two classes for RE-SVM or OCTSVM.

    Warns
    -----
    UserWarning
        Where trees were left out, with their parameters.
    """
    import pandas as pd
    from sklearn.base import clone
    from sklearn.utils.parallel import Parallel, delayed

    require_same_rows(X=X, y=y)
    y = label_list(y)
    classes, position = read_labels(y, len(y))
    _require_one_tree(estimator, len(classes))
    grid = combinations("param_grid", param_grid)
    require_jobs("n_jobs", n_jobs)
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_disagreement)(clone(estimator).set_params(**params), X, y) for params in grid
    )
    counted = [fit for fit in fits if fit is not None]
    if len(counted) < len(grid):
        left_out = [params for params, fit in zip(grid, fits, strict=True) if fit is None]
        warnings.warn(
            f"{len(left_out)} of {len(grid)} trees predict one class for all rows, and are left out: "
            f"{', '.join(map(str, left_out[:SHOWN]))}{', ...' * (len(left_out) > SHOWN)}. Dearer rows "
            "(larger c1 and c2), or cheaper splits, make others.",
            stacklevel=2,
        )
    none = np.zeros(len(y), dtype=np.int64)
    against = np.sum([none, *(fit[0] for fit in counted)], axis=0)
    frame = pd.DataFrame(
        {
            "given": _column(label_array(classes)[position]),
            "trees": len(counted),
            "against": against,
            "relabelled": np.sum([none, *(fit[1] for fit in counted)], axis=0),
            "always": (against == len(counted)) & (len(counted) > 0),
        }
    )
    if hasattr(X, "iloc"):
        frame.index = X.index
    return frame


def _require_one_tree(estimator: Any, n_classes: int, call: str = "suspect_rows") -> None:
    """Refuse estimators that leave no ``relabelled_``, before anything is fitted; ``call`` is the function that was asked."""
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        raise InvalidParameter(
            f"{call} takes a classifier of ours, not a {name}. Transform X first, and pass the last step: "
            f"{call}(pipe[-1], param_grid, pipe[:-1].fit_transform(X), y), with the names of its parameters in param_grid."
        )
    if not hasattr(estimator, "tree_class"):
        raise InvalidParameter(
            f"{call} takes a classifier of ours, such as RESVMClassifier or OCTSVMClassifier, not {name}: others do "
            "not say which labels they gave up."
        )
    if n_classes > 2 and getattr(estimator, "multi_class", None) is not None:
        raise InvalidData(
            f"y holds {n_classes} classes, and {name} with multi_class={estimator.multi_class!r} has no single tree. Ask for one class "
            f"against the rest, {call}(..., X, y == c), or take MOCTSVMClassifier or OCTClassifier."
        )


def _against(estimator: Any, X: Any, y: Any) -> BoolArray:
    """Which rows the fitted ``estimator`` predicts otherwise than ``y``."""
    return np.array(
        [p != g for p, g in zip(estimator.predict(X).tolist(), label_list(y), strict=True)], dtype=bool
    )


def is_constant(estimator: Any, X: Any) -> bool:
    """Whether the fitted ``estimator`` predicts one class for all rows of ``X (n, p)``."""
    return len(set(estimator.predict(X).tolist())) == 1


def _disagreement(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Which rows (n,) a fit predicts otherwise, and of which (n,) it gave up the label; None where it predicts one class."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=CONSTANT)
        estimator.fit(X, y)
    if estimator.result_.stop == "interrupted":
        raise KeyboardInterrupt  # it ends all fits: a tree that was cut short says nothing
    if is_constant(estimator, X):
        return None
    relabelled = np.zeros(len(y), dtype=np.int64)
    relabelled[estimator.relabelled_["row"].unique()] = 1
    return _against(estimator, X, y).astype(np.int64), relabelled


def relabelling_path(
    estimator: Any, X: Any, y: Any, *, c2: Any = (0.5, 1, 2, 4, 8, 16), flipped: Any = None
) -> pd.DataFrame:
    """How many labels a tree gives up, over the price of giving one up.

    One fit for each price, the lowest first; each starts from the tree before, so that under a limit the path does not
    jump for want of luck. At proved optima the number of labels given up never rises with the price.

    Parameters
    ----------
    estimator : RESVMClassifier or OCTSVMClassifier
        With its other parameters set; it is cloned and not changed.
    X : array-like of shape (n, p)
        The table.
    y : array-like of shape (n,)
        The given labels.
    c2 : array-like of shape (k,)
        Prices, each above 0.
    flipped : array-like of shape (n,), optional
        A mask of the rows, or the positions of those whose labels are known to be wrong.

    Returns
    -------
    pandas.DataFrame
        One line a price: ``c2``, ``relabelled`` (rows with a label given up at some node), ``against`` (rows that the
        tree predicts otherwise), ``splits``, ``objective``, ``bound``, ``gap``, ``status``; with ``flipped`` also
        ``found`` (rows given up that are flipped) and ``flipped`` (how many are).

    Raises
    ------
    InvalidParameter
        No prices, or one that is no number above 0; a classifier without c2.
    InvalidData
        X, y or ``flipped`` cannot be used, or y holds more than two classes.
    """
    import pandas as pd
    from sklearn.base import clone

    prices = _prices(estimator, c2)
    labels = label_list(y)
    classes, _ = read_labels(labels, len(labels))
    _require_one_tree(estimator, len(classes), "relabelling_path")
    if flipped is not None:
        flipped = sorted(_flipped_rows(flipped, len(labels)))
    model = clone(estimator).set_params(warm_start=True)
    return pd.DataFrame([_at_price(model, price, X, y, flipped) for price in prices])


def _prices(estimator: Any, c2: Any) -> list[float]:
    """The prices in order, each once."""
    if not hasattr(estimator, "get_params") or "c2" not in estimator.get_params(deep=False):
        raise InvalidParameter(
            f"A path over c2 needs a model that has it, RESVMClassifier or OCTSVMClassifier, not this "
            f"{type(estimator).__name__}."
        )
    prices = list(c2) if hasattr(c2, "__iter__") else []
    if not prices or not all(is_number(v) and v > 0 for v in prices):
        raise InvalidParameter(f"c2={c2!r} should be a list of numbers above 0, e.g. (0.5, 1, 2, 4).")
    return sorted({float(v) for v in prices})


def _at_price(model: Any, price: float, X: Any, y: Any, flipped: Any) -> dict[str, Any]:
    """One line of the path; ``model`` is fitted, from the tree that it has."""
    with warnings.catch_warnings():
        # A dearer label can make the former tree inadmissible: then the fit goes without a start.
        warnings.filterwarnings("ignore", message="warm_start: ")
        warnings.filterwarnings("ignore", message=CONSTANT)  # the line says so
        model.set_params(c2=price).fit(X, y)
    result = model.result_
    line = {
        "c2": price,
        "relabelled": model.relabelled_["row"].nunique(),
        "against": int(_against(model, X, y).sum()),
        "splits": int(model.tree_.splits.sum()),
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "status": result.status,
    }
    if flipped is not None:
        scores = relabelling_scores(model.relabelled_, flipped)
        line |= {"found": scores.found, "flipped": scores.flipped}
    return line
