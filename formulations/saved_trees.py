"""JSON of fitted trees: what a saved tree holds, and every check that a file passes before it is a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .base import FloatArray, Scaling
from .errors import InvalidData
from .params import MAX_DEPTH
from .preparation import Preparation
from .read_file import damaged, require_version
from .read_matrix import MadeUpNames, UndecidedNames

SCHEMA = "octsvm.tree"
VERSION = 1


class _SavedScaling(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    low: list[float]
    span: list[Annotated[float, Field(ge=0)]]


class _Saved(BaseModel):
    """What every saved tree holds; only these types are accepted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)]
    classes: Annotated[list[str | bool | int | float], Field(min_length=1)]
    feature_names: list[str]
    named_features: bool | None = None  # files of earlier versions do not say
    scaling: _SavedScaling
    preparation: dict[str, Any] | None = None

    @field_validator("classes", "feature_names")
    @classmethod
    def _distinct(cls, values: list[Any]) -> list[Any]:
        if len(set(values)) < len(values):
            raise ValueError("names must differ")
        return values


# JSON has no tuples.
_Record = Annotated[
    tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)], float], Field(strict=False)
]


class _SavedAxis(_Saved):
    feature: list[int]
    threshold: list[float]
    label: list[int]


class _SavedOblique(_Saved):
    a: list[list[float]]
    b: list[float]
    split: list[bool]
    label: list[int]


class _SavedMargin(_Saved):
    omega: list[list[float]]
    omega0: list[float]
    split: list[bool]
    relabelled: list[_Record]


class _SavedKernel(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")
    name: str
    gamma: Annotated[float, Field(gt=0)]
    degree: Annotated[int, Field(ge=1)]
    coef0: float


class _SavedKernelMargin(_SavedMargin):
    kernel: _SavedKernel
    support: list[list[float]]


# A kind's own fields, in the order they are written in, are those that its model adds to _Saved.
_SAVED: dict[str, type[_Saved]] = {
    "axis": _SavedAxis,
    "oblique": _SavedOblique,
    "margin": _SavedMargin,
    "kernel_margin": _SavedKernelMargin,
}
_MATRICES = ("a", "omega", "support")
_TYPES: dict[str, type] = {"feature": np.int64, "label": np.int64, "split": np.bool_}


def _own_fields(kind: str) -> list[str]:
    return [name for name in _SAVED[kind].model_fields if name not in _Saved.model_fields]


def plain_labels(labels: Iterable[Any]) -> list[Any]:
    """Labels that JSON and source code give back as they are; others, such as members of an Enum, are refused."""
    found = list(labels)
    for label in found:
        if type(label) not in (str, bool, int, float):
            plain = "label.name" if isinstance(label, Enum) else "str(label)"
            raise InvalidData(
                f"The label {label!r} ({type(label).__name__}) does not come back as it is from JSON or source code, which "
                f"hold text, numbers and true/false. Fit with [{plain} for label in y], or pickle the tree."
            )
    return found


def to_dict(tree: Any) -> dict[str, Any]:
    """A fitted ``tree`` as plain Python data, fit for JSON."""

    def plain(values: Any) -> Any:
        if hasattr(values, "to_dict"):
            return values.to_dict()
        return values.tolist() if isinstance(values, np.ndarray) else [list(record) for record in values]

    return {
        "schema": SCHEMA,
        "version": VERSION,
        "kind": tree.kind,
        "depth": tree.depth,
        "classes": plain_labels(tree.classes),
        "feature_names": list(tree.feature_names),
        **_origin(tree.feature_names),
        "scaling": {"low": tree.scaling.low.tolist(), "span": tree.scaling.span.tolist()},
        **({} if tree.preparation is None else {"preparation": tree.preparation.to_dict()}),
    } | {name: plain(getattr(tree, name)) for name in _own_fields(tree.kind)}


def from_dict(data: Any) -> tuple[str, dict[str, Any]]:
    """Kind of the tree that :func:`to_dict` wrote, and the values of its fields; nothing of the file is executed."""
    if isinstance(data, Mapping) and data.get("schema") == "octsvm.result":
        data = data.get("tree") or {}  # a saved result holds its tree
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise InvalidData(f'This is not a saved tree: it lacks "schema": "{SCHEMA}".')
    require_version(data.get("version"), "saved tree", VERSION)
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in _SAVED:
        raise InvalidData(f"The saved tree is of the unknown kind {kind!r}; known: {', '.join(_SAVED)}.")
    try:
        saved = _SAVED[kind].model_validate(dict(data))
    except ValidationError as error:
        raise damaged("saved tree", error) from None
    values: dict[str, Any] = {
        "depth": saved.depth,
        "classes": tuple(saved.classes),
        "feature_names": _names(saved.feature_names, saved.named_features),
        "scaling": Scaling(np.array(saved.scaling.low), np.array(saved.scaling.span)),
    }
    if saved.preparation is not None:
        values["preparation"] = Preparation.from_dict(saved.preparation)
    for name in _own_fields(kind):
        try:
            p = len(saved.feature_names)
            columns = len(saved.support) if name == "omega" and isinstance(saved, _SavedKernelMargin) else p
            values[name] = _field(name, getattr(saved, name), columns)
        except OverflowError:
            raise InvalidData(f"The saved tree is damaged: {name}: a number is too large.") from None
    return kind, values


def to_json(tree: Any) -> str:
    """``tree`` as JSON text."""
    return json.dumps(tree.to_dict(), indent=1, allow_nan=False)


def _origin(names: tuple[str, ...]) -> dict[str, bool]:
    """Whether the names were given, where they do not say it themselves: x1, x2, ... only."""
    if isinstance(names, UndecidedNames) or tuple(names) != MadeUpNames.of(len(names)):
        return {}
    return {"named_features": not isinstance(names, MadeUpNames)}


def _names(names: list[str], named: bool | None) -> tuple[str, ...]:
    if tuple(names) != MadeUpNames.of(len(names)) or named:
        return tuple(names)
    return UndecidedNames(names) if named is None else MadeUpNames(names)


def _field(name: str, values: Any, p: int) -> Any:
    if name in _MATRICES:
        return _matrix(values, p)
    if name == "kernel":
        return values.model_dump()
    if name == "relabelled":
        return tuple(values)
    return np.array(values, dtype=_TYPES.get(name, float))


def _matrix(rows: list[list[float]], p: int) -> FloatArray:
    if any(len(row) != p for row in rows):
        raise InvalidData(f"The tree's arrays do not fit together: rows of {p} weights were expected.")
    return np.array(rows, dtype=float).reshape(len(rows), p)
