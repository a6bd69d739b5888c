"""What is known of the sets: catalogue.yaml, validated."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from ..errors import InvalidParameter
from ..formulations.checks import nearest

PAGE = "https://archive.ics.uci.edu/dataset/{}"

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Original(_Strict):
    """The archive that UCI publishes, and how its members are read.

    Members are read one after the other. ``columns`` names what the members hold, where they have no header.
    Rows with a field ``missing`` are left out. ``member_column`` adds the member's number, from 1, as a column.
    """

    archive: str
    members: dict[str, Sha256] = Field(min_length=1)
    any_line_ends: bool = False
    separator: Literal["comma", "blanks"]
    columns: tuple[str, ...] | None = None
    label: str
    label_1: str
    label_minus_1: str
    missing: str | None = None
    member_column: str | None = None


class DatasetInfo(_Strict):
    """What is known of a set.

    Attributes
    ----------
    title : str
        Its name at UCI.
    n, p : int
        Rows and features.
    positive, negative : int
        Rows with label 1 and with label -1.
    label_1, label_minus_1 : str
        What the labels stand for.
    licence : str
        Empty where none was found.
    citation : str
        How to cite the set.
    doi : str
        Empty where it has none.
    uci_id : int
        Its number at UCI.
    changed : tuple of str
        What differs from the original.
    notes : tuple of str
        What is good to know before using it.
    sha256 : str
        Of the table as a CSV file with line ends ``\\n``.
    features : tuple of str
        Names of the columns, in their order.
    original : Original
        Where it comes from.
    """

    title: str
    n: int = Field(ge=1)
    p: int = Field(ge=1)
    positive: int = Field(ge=1)
    negative: int = Field(ge=1)
    label_1: str
    label_minus_1: str
    licence: str
    citation: str
    doi: str
    uci_id: int
    changed: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sha256: Sha256
    features: tuple[str, ...]
    original: Original

    @property
    def page(self) -> str:
        """Address of the set's page at UCI."""
        return PAGE.format(self.uci_id)

    @model_validator(mode="after")
    def _consistent(self) -> DatasetInfo:
        if self.positive + self.negative != self.n:
            raise ValueError(f"{self.positive} and {self.negative} rows are not {self.n}")
        if len(set(self.features)) != self.p:
            raise ValueError(f"{len(set(self.features))} features are named, and p is {self.p}")
        held = self.original.columns
        if held is not None:
            missing = {*self.features, self.original.label} - {*held, self.original.member_column}
            if missing:
                raise ValueError(f"the original has no column {', '.join(sorted(missing))}")
        return self


@lru_cache(maxsize=1)
def catalogue() -> dict[str, DatasetInfo]:
    """All sets by name."""
    text = (files(__package__) / "catalogue.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, DatasetInfo]).validate_python(yaml.safe_load(text))


def names() -> tuple[str, ...]:
    """Names of the sets.

    Returns
    -------
    tuple of str
        In alphabetical order.
    """
    return tuple(catalogue())


def info(name: str) -> DatasetInfo:
    """Facts on a set: size, counts, licence, citation, and what was changed. Nothing is read or fetched.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    DatasetInfo
        Its entry in the catalogue.

    Raises
    ------
    InvalidParameter
        There is no set of that name.
    """
    known = catalogue()
    if not isinstance(name, str) or name not in known:
        hint = nearest(str(name).lower(), known)
        raise InvalidParameter(f"There is no data set {name!r}; there are {', '.join(known)}.{hint}")
    return known[name]
