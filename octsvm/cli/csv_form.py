"""How a CSV file is written: what separates columns, how its numbers look, its encoding. Kept with a tree for later files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InvalidData

if TYPE_CHECKING:
    import pandas as pd

    from ..formulations.written_numbers import Writing
    from .fitted_file import FitRecord


def options(file: str) -> tuple[Any, ...]:
    """The options, for a ``file`` as a command calls it."""
    return (
        click.option("--separator", default=",", show_default=True, help=f"What separates the columns of {file}."),
        click.option("--decimal", default=".", show_default=True, help=f"The decimal sign of {file}: '.' or ','."),
        click.option(
            "--thousands", default="", metavar="SIGN",
            help="What separates thousands, such as , in 1,234.5. With --decimal , points do where nothing is said.",
        ),
        click.option(
            "--strip", multiple=True, metavar="TEXT",
            help="What stands beside numbers and is left out, such as €, % or kg (45 % is 45); once for each.",
        ),
        click.option("--encoding", metavar="NAME", help="Of a CSV file that is not in UTF-8, such as cp1252 (Excel in Western Europe)."),
    )  # fmt: skip


@dataclass(frozen=True)
class CsvForm:
    """The options of the same names; what is no sign, or contradicts another one, is refused."""

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    strip: tuple[str, ...] = ()
    encoding: str | None = None

    def __post_init__(self) -> None:
        sign = {"\\t": "\t", "tab": "\t"}.get(self.separator, self.separator)  # as shells and people write it
        object.__setattr__(self, "separator", sign)
        object.__setattr__(self, "strip", tuple(s.strip() for s in self.strip if s.strip()))
        if len(sign) != 1 or sign in '"\r\n':
            raise InvalidData(f"The separator {sign!r} should be one character, such as ',' or ';', or tab.")
        if self.decimal not in (".", ","):
            raise InvalidData(f"The decimal sign {self.decimal!r} should be '.' or ','.")
        if self.thousands == self.decimal or len(self.thousands) > 1 or self.thousands.isalnum():
            raise InvalidData(
                f"What separates thousands, {self.thousands!r}, should be one sign that is not the decimal sign {self.decimal!r}; "
                "' ' and \"'\" are others."
            )

    @property
    def writing(self) -> Writing:
        """How its numbers are written."""
        from ..formulations.written_numbers import Writing

        return Writing(self.decimal, self.thousands or ("." if self.decimal == "," else ""), self.strip)

    def text_of(self, frame: pd.DataFrame) -> str:
        """CSV of a ``frame``, written so."""
        text: str = frame.to_csv(index=False, lineterminator="\n", sep=self.separator, decimal=self.decimal)
        return text

    def numbers(self, column: pd.Series) -> pd.Series:
        """Numbers of a column in which some are text, where all of its texts are numbers.

        Else the column as it is; where most are numbers and the others are of no known form, with numbers in their places,
        so that those few are seen.
        """
        import pandas as pd

        from ..formulations.written_numbers import form_of

        text = column.map(lambda value: isinstance(value, str))
        if not text.any() or not all(isinstance(v, (int, float)) for v in column[~text]):
            return column
        read = self.writing.numbers(column[text])
        if read is not None:
            numbers = pd.Series(read, index=column.index[text])
            return pd.concat([column[~text].astype(float), numbers]).reindex(column.index)
        good = text & column.map(
            lambda value: isinstance(value, str) and self.writing.numbers([value]) is not None
        )
        read = self.writing.numbers(column[good])
        if read is None or good.sum() <= text.sum() / 2 or form_of(column[text]) is not None:
            return column
        return column.astype(object).where(~good, pd.Series(read, index=column.index[good], dtype=object))


PLAIN = CsvForm()


def form_given(options: Mapping[str, Any], record: FitRecord | None = None) -> CsvForm:
    """As the options say; where one was not given, as the training table of a saved tree's ``record`` was written."""
    known = {name: options[name] for name in CsvForm.__dataclass_fields__ if name in options}
    if record is not None:
        source = click.get_current_context().get_parameter_source
        kept = {name: getattr(record, name) for name in known if source(name) is ParameterSource.DEFAULT}
        known |= kept
        if kept.get("thousands") and known["thousands"] == known["decimal"]:
            known["thousands"] = ""  # of the training table, where that sign was another one
    return CsvForm(**known)
