"""What the parameter classes of the formulations share: validation with messages that teach."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .checks import nearest
from .errors import InvalidParameter

MAX_DEPTH = 10  # 2**11 - 1 nodes: far beyond what any exact model of a tree can prove


def doc_section(thing: Any, name: str) -> str:
    """The lines of a section of a docstring in numpydoc's form; empty where there is none."""
    section = rf"^{name}\n-+\n(.*?)(?=\n\n\S+\n-+\n|\Z)"
    found = re.search(section, inspect.cleandoc(thing.__doc__ or ""), re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


class Params(BaseModel):
    """Validated, immutable parameters of a formulation.

    Raises
    ------
    InvalidParameter
        From :meth:`make`, naming the parameter, what was given and what is allowed.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def make(cls, formulation: str, /, **given: Any) -> Self:
        """Validate ``given`` and return the parameters of ``formulation``."""
        known = list(cls.model_fields)
        for name in given:
            if name not in known:
                hint = nearest(name, known, 0.5)
                raise InvalidParameter(
                    f"{name!r} is not a parameter of {formulation!r}.{hint} It takes: {', '.join(known)}."
                )
        if "depth" in known and given.get("depth", 0) is None:
            default = cls.model_fields["depth"].default
            raise InvalidParameter(
                f"depth=None is not allowed for {formulation!r}: its model has rows and variables for every node of a full tree "
                f"of that depth, about twice as many with each level, so it needs a number. Start with depth={default} (the "
                f"default) and raise it while fits end with a proof; what a split costs keeps a tree from splitting further."
            )
        plain = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()
        }
        try:
            return cls(**plain)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else "parameters"
            what = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            if not first["loc"]:  # of two parameters, which the message names
                raise InvalidParameter(f"{formulation!r} does not take this: {what}.") from None
            raise InvalidParameter(
                f"{name}={first['input']!r} is not allowed for {formulation!r}: it should be {what}."
                if not first["msg"].startswith("Value error")
                else f"{name}={first['input']!r} is not allowed for {formulation!r}: {what}."
            ) from None


class TreeParams(Params):
    """``depth``, the first parameter of a tree."""

    depth: int = Field(2, ge=0, le=MAX_DEPTH)


class LeafLabelledParams(TreeParams):
    """Parameters of OCT and OCT-H.

    Attributes
    ----------
    depth : int
        D, levels of splits.
    alpha : float
        α, the cost of a split (or of a used feature) in errors.
    n_min : int or float
        N_min, rows in every leaf in use: a count, or a share of n (rounded up).
    complexity : "splits" or "features"
        What alpha is paid for: α Σ_t d_t (Blanco, Japón, Puerto) or α Σ_t Σ_j s_jt (Bertsimas & Dunn); the same for
        splits by one feature.
    error_scale : "count" or "baseline"
        Errors as counted (Blanco, Japón, Puerto) or divided by those of the majority class (Bertsimas & Dunn).
    """

    alpha: float = Field(1.0, ge=0)
    n_min: int | float = 1
    complexity: Literal["splits", "features"] = "splits"
    error_scale: Literal["count", "baseline"] = "count"

    @field_validator("n_min")
    @classmethod
    def _count_or_share(cls, value: int | float) -> int | float:
        if isinstance(value, bool) or (isinstance(value, int) and value < 1):
            raise ValueError(
                "give a count of rows (an integer, 1 or more) or a share of them (a float between 0 and 1)"
            )
        if isinstance(value, float) and not 0.0 < value < 1.0:
            raise ValueError(
                "a float is a share of the rows and lies between 0 and 1; for a count write an integer"
            )
        return value

    def leaf_size(self, n: int) -> int:
        """N_min as a number of rows, for ``n`` training rows (a share is rounded up).

        Raises
        ------
        InvalidParameter
            If no leaf can hold that many rows.
        """
        # ceil(share * n) with a guard against 0.05 * 20 = 1.0000000000000002
        count = self.n_min if isinstance(self.n_min, int) else math.ceil(self.n_min * n - 1e-9)
        count = max(1, count)
        if count > n:
            raise InvalidParameter(
                f"n_min={self.n_min!r} asks for {count} rows in every leaf, and there are {n} rows. Give at most {n}."
            )
        return count


Norm = Literal["l2", "l1"]
