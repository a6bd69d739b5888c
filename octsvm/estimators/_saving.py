"""Fitted classifiers as JSON: plain data with a version, checked on the way in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidData
from ..formulations.kernels import kernel_name
from ..formulations.read_file import read_json, require_version
from ..formulations.replace_file import replace_text
from ..formulations.trees import Tree, label_array
from ..relabelling import COLUMNS, NUMBERS
from ..result import finite

SCHEMA = "octsvm.estimator"
VERSION = 1


def write(estimator: Any, path: str | Path | None) -> str:
    """The fitted ``estimator`` as JSON text.

    Raises
    ------
    InvalidData
        A parameter that JSON does not hold, e.g. a RandomState.
    """
    params = estimator.get_params(deep=False)
    if callable(params.get("kernel")):  # the tree refuses to be saved where its kernel has no name
        params["kernel"] = kernel_name(params["kernel"])
    weight = params.get("class_weight")
    if isinstance(weight, Mapping):  # keys of JSON objects are strings, labels need not be
        params["class_weight"] = {"labels": list(weight), "weights": list(weight.values())}
    report = estimator.relabelled_
    data = {
        "schema": SCHEMA,
        "version": VERSION,
        "class": type(estimator).__name__,
        "params": params,
        "classes": estimator.classes_.tolist(),
        "named_features": hasattr(estimator, "feature_names_in_"),
        "tree": estimator.tree_.to_dict(),
        "node_weights": estimator.node_weights_.tolist(),
        "bound": finite(float(estimator.bound_)),
        "gap": finite(float(estimator.gap_)),
        "relabelled": [[_plain(v) for v in row] for row in report.itertuples(index=False)],
        "result": estimator.result_.to_dict() if hasattr(estimator, "result_") else None,
    }
    try:
        text = json.dumps(data, indent=1, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{type(estimator).__name__} cannot be saved as JSON: {error}. Parameters have to be plain values, e.g. a "
            "whole number for random_state; estimator.tree_.to_json() saves the tree alone."
        ) from None
    if path is not None:
        replace_text(path, text + "\n")
    return text


def read(cls: Any, source: str | Path) -> Any:
    """The classifier in a JSON text or file."""
    data = read_json(source, "saved classifier")
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise InvalidData(
            f'This is not a saved classifier: it lacks "schema": "{SCHEMA}". Trees are read by octsvm.Tree.from_json.'
        )
    require_version(data.get("version"), "saved classifier", VERSION)
    if data.get("class") != cls.__name__:
        raise InvalidData(
            f"The file holds a {str(data.get('class'))[:40]!r}; read it with that class, not with {cls.__name__}."
        )
    try:
        return _restored(cls, data)
    except InvalidData:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InvalidData(f"The saved classifier is damaged: {type(error).__name__}: {error}.") from None


def _restored(cls: Any, data: Mapping[str, Any]) -> Any:
    import pandas as pd

    params = dict(data["params"])
    weight = params.get("class_weight")
    if isinstance(weight, Mapping):
        params["class_weight"] = dict(zip(weight["labels"], weight["weights"], strict=True))
    estimator = cls(**params)
    tree = Tree.from_dict(data["tree"])
    if not isinstance(tree, estimator.tree_class()):
        raise InvalidData(f"The saved classifier is damaged: its tree is of the kind {tree.kind!r}.")
    classes = label_array(list(data["classes"]))
    if not set(tree.classes) <= set(classes.tolist()):
        raise InvalidData("The saved classifier is damaged: its tree predicts classes that it does not list.")
    if not estimator._hold(tree, classes, data["node_weights"]):
        raise InvalidData("The saved classifier is damaged: its node_weights do not fit its tree.")
    if data["named_features"]:
        estimator.feature_names_in_ = np.array(tree.feature_names, dtype=object)
    estimator.bound_ = -math.inf if data["bound"] is None else float(data["bound"])
    estimator.gap_ = math.inf if data["gap"] is None else float(data["gap"])
    report = pd.DataFrame(data["relabelled"], columns=COLUMNS)
    estimator.relabelled_ = report if len(report) else report.astype(NUMBERS)
    return estimator


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    raise TypeError(f"{type(value).__name__} is no plain value")
