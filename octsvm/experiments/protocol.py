"""A computational experiment as data: methods with their grids, sets, noise, folds, repetitions, limits, rules, seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import InvalidParameter
from ..read_yaml import parse_yaml, read_yaml
from .cells import Part

OWN = ("table2", "quick")  # protocols that come with the package

Rule = Literal["oracle_mean", "oracle_fold", "honest"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MethodSpec(_Strict):
    """One column of the table: what is fitted, over which grid, within which limits.

    ``grid`` is a product; its last name varies fastest. ``fixed`` goes to every fit. ``work`` limits a fit in
    steps of the method's own (the same tree on every machine). ``time_limit`` and ``solver`` are for functions of your own.
    """

    title: str
    kind: str
    grid: dict[str, tuple[float, ...]] = {}
    fixed: dict[str, Any] = {}
    work: int | None = Field(default=None, ge=1)
    time_limit: float | None = Field(default=None, gt=0)
    solver: str = "highs"

    def settings(self) -> list[dict[str, float]]:
        """All points of the grid, in its order."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


class TableSpec(_Strict):
    """A table of one's own: its file, and what the options of ``octsvm fit`` of the same names say of it.

    ``positive`` is the label that counts as 1, all others as -1; where it is left out there have to be two labels, and the second
    in order is 1. What fills missing values is learned on all rows.
    """

    file: str
    label: str | None = None
    positive: str | None = None
    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    strip: tuple[str, ...] = ()
    encoding: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    encode: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    impute: tuple[str, ...] = ()
    skip_unlabelled: bool = False


class Protocol(_Strict):
    """An experiment. One fold of ``folds`` trains, the others test (Blanco, Japón, Puerto, Section 4).

    ``noise`` are shares of the training labels that are flipped, ``min_samples_leaf`` the share of training rows
    that a leaf of CART, OCT and OCT-H holds at least, ``inner_share`` the share of the noisy training rows on which
    the honest rule fits (it scores on the others). ``tables`` are those of the ``sets`` that are files of one's own.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    noise: tuple[float, ...] = (0.0, 0.2, 0.3, 0.4)
    folds: int = Field(default=4, ge=2)
    repetitions: int = Field(default=4, ge=1)
    min_samples_leaf: float = Field(default=0.05, ge=0, lt=1)
    inner_share: float = Field(default=0.7, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)
    rules: tuple[Rule, ...] = ("oracle_mean", "oracle_fold", "honest")
    methods: dict[str, MethodSpec]
    tables: dict[str, TableSpec] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Protocol:
        for share in self.noise:
            if not 0 <= share <= 1:
                raise ValueError(f"noise: {share} is no share between 0 and 1")
        for what in ("sets", "noise", "rules", "methods"):
            if not getattr(self, what):
                raise ValueError(f"{what}: is empty")
        strange = [name for name in self.tables if name not in self.sets]
        if strange:
            raise ValueError(f"tables: {strange[0]!r} is none of the sets {', '.join(self.sets)}")
        return self

    @property
    def inner(self) -> bool:
        """Whether a rule needs fits on the inner split."""
        return "honest" in self.rules

    def parts(self) -> Iterator[Part]:
        """All training parts: repetitions outside, so that what is done first is one complete repetition."""
        for repetition in range(self.repetitions):
            for name in self.sets:
                for fold in range(self.folds):
                    for noise in self.noise:
                        yield Part(name, noise, repetition, fold, False)
                        if self.inner:
                            yield Part(name, noise, repetition, fold, True)


def load_protocol(source: str | Path | Mapping[str, Any]) -> Protocol:
    """Return a protocol: one that comes with the package (``"table2"``, ``"quick"``), a YAML file, or a mapping.

    Raises
    ------
    InvalidParameter
        With every key that is wrong.
    """
    if isinstance(source, Mapping):
        raw: Any = dict(source)
        where = "the protocol"
    else:
        where = str(source)
        try:
            if str(source) in OWN:
                text = (files(__package__) / "protocols" / f"{source}.yaml").read_text(encoding="utf-8")
                raw, _ = parse_yaml(text)
            else:
                raw, _ = read_yaml(source)
        except OSError:
            raise InvalidParameter(
                f"protocol={str(source)!r} is neither a file nor one of {', '.join(OWN)}."
            ) from None
        except ValueError as error:
            raise InvalidParameter(f"{where} cannot be read as YAML: {error}") from None
    try:
        return Protocol.model_validate(raw)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'protocol'}: {e['msg']}" for e in error.errors())
        raise InvalidParameter(f"{where}: {wrong}") from None
