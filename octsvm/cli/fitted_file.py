"""What "octsvm fit --out" saves beside the tree: where its table is, and what is known of the fit, for later commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..errors import InvalidData, InvalidParameter
from .csv_form import form_given
from .table_preparation import row_weights

if TYPE_CHECKING:
    from ..formulations.trees import Tree
    from ..result import Result
    from .csv_tables import CsvTable
    from .fit import Partition

LEFT_OUT = ("tree", "trace", "seconds", "engine")  # what differs from run to run
Label = str | bool | int | float
Row = Annotated[int, Field(ge=0)]


class FoldAccuracy(BaseModel):
    """How well trees with the chosen parameters did on rows that they were not fitted to, in ``octsvm tune``."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)
    accuracy: float
    standard_error: float | None  # none with one fold
    rule: str

    def __str__(self) -> str:
        error = (
            "(of one fold)"
            if self.standard_error is None
            else f"\u00b1 {self.standard_error:.4f} (standard error)"
        )
        return (
            f"accuracy over folds, on rows not trained on: {self.accuracy:.4f} {error}; "
            f"the parameters were chosen by it (rule {self.rule}), so it flatters a little"
        )


class _Told(BaseModel):
    """What later commands read of a result; there is more in it."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    formulation: str
    status: str
    stop: str
    solver: str | None = None
    solver_version: str | None = None
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    notes: list[str] = []
    terms: dict[str, float] = {}
    params: dict[str, Any] = {}


class FitRecord(BaseModel):
    """How a tree was fitted: options as they were given, or found, and what came of it."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)
    version: Literal[1]
    table: str
    label: str | None
    separator: str
    decimal: str
    thousands: str = ""
    strip: tuple[str, ...] = Field(default=(), strict=False)
    against_rest: str | None
    seed: int = 0
    encoding: str | None = None
    missing: tuple[str, ...] = Field(default=(), strict=False)
    skip_unlabelled: bool = False
    scale: bool = True
    test_rows: list[Row]  # rows of the table that were held out, from 0
    flipped_rows: list[Row]  # those that were trained on with another label on purpose
    flipped_labels: list[Label]  # that label
    node_weights: list[list[Annotated[float, Field(ge=0)]]]  # of the training rows of each class at each node
    result: dict[str, Any]  # without its tree
    folds: FoldAccuracy | None = None  # where the parameters were chosen by folds

    @field_validator("result")
    @classmethod
    def _is_told(cls, value: dict[str, Any]) -> dict[str, Any]:
        _Told.model_validate(value)
        return value

    @field_validator("node_weights")
    @classmethod
    def _is_a_matrix(cls, value: list[list[float]]) -> list[list[float]]:
        if len({len(row) for row in value}) > 1:
            raise ValueError("the rows have different lengths")
        return value


def as_json(
    result: Result,
    data: CsvTable,
    rows: Partition,
    options: Mapping[str, Any],
    folds: FoldAccuracy | None,
) -> str:
    """The tree of ``result`` as JSON text, with the record of its fit."""
    import numpy as np

    from ..exports._decision_paths import weights_at_nodes

    tree = result.tree
    assert tree is not None
    position = np.array([tree.classes.index(v) for v in rows.y.tolist()], dtype=np.int64)
    given = row_weights(rows.y, options["class_weight"])
    weights = np.ones(len(position)) if given is None else np.asarray(given, dtype=float)
    known = result.to_dict()
    record = FitRecord(
        version=1,
        table=data.name,
        label=data.label,
        **asdict(form_given(options)),
        **{name: options[name] for name in ("against_rest", "seed", "missing", "skip_unlabelled")},
        scale=not options["no_scale"],
        test_rows=rows.test.tolist(),
        flipped_rows=rows.flipped.tolist(),
        flipped_labels=rows.y[rows.y != rows.clean].tolist(),
        node_weights=weights_at_nodes(
            tree, data.features(rows.train), position, weights, len(tree.classes)
        ).tolist(),
        result={k: v for k, v in known.items() if k not in LEFT_OUT} | {"table_digest": result.table_digest},
        folds=folds,
    )
    return (
        json.dumps(tree.to_dict() | {"fit": record.model_dump(mode="json")}, indent=1, allow_nan=False) + "\n"
    )


def record_of(content: Any) -> FitRecord | None:
    """The record in the content of a saved tree, checked; None where it has none."""
    found = content.get("fit") if isinstance(content, Mapping) else None
    if found is None:
        return None
    try:
        return FitRecord.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidData(
            f"What the saved tree says of its fit is damaged, or of a newer octsvm: {where}: {first['msg']}."
        ) from None


def estimator_of(record: FitRecord) -> Any:
    """An unfitted classifier with the parameters of a fit."""
    from .. import estimators
    from ..estimators._base import OUR_NAMES

    formulation = record.result.get("formulation")
    kinds = [getattr(estimators, name) for name in estimators.__all__ if not name.endswith("CV")]
    kind = next((k for k in kinds if getattr(k, "formulation", None) == formulation), None)
    if kind is None:
        raise InvalidParameter(
            f"The tree is of {formulation!r}, which is no formulation of a classifier of octsvm."
        )
    params: Mapping[str, Any] = record.result.get("params") or {}
    given = {OUR_NAMES.get(k, k): v for k, v in params.items()}
    model = kind()
    return model.set_params(**{k: v for k, v in given.items() if k in model.get_params()})


def classifier_of(tree: Tree, record: FitRecord) -> Any:
    """A classifier that holds the tree and the weights of its training rows, for probabilities and pictures."""
    from .. import estimators
    from ..formulations.trees import label_array

    kinds = {"axis": estimators.OCTClassifier, "oblique": estimators.OCTHClassifier}
    found = kinds.get(tree.kind, estimators.OCTSVMClassifier)()
    if not found._hold(tree, label_array(tree.classes), record.node_weights):
        raise InvalidData(
            "What the saved tree says of its fit is damaged: node_weights do not fit its nodes."
        )
    return found
