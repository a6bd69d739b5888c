"""What all exports ask first: which tree, and whether their options are right."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidParameter
from ..formulations.checks import whole
from ..formulations.trees import Tree, Units, printable


def tree_of(fitted: Any) -> Tree:
    """The tree of a classifier or a result, or the tree itself.

    Raises
    ------
    InvalidParameter
        There is none.
    """
    for found in (fitted, getattr(fitted, "tree_", None), getattr(fitted, "tree", None)):
        if isinstance(found, Tree):
            return found
    many = getattr(fitted, "estimators_", None)
    if many is not None:
        raise InvalidParameter(
            f"This {type(fitted).__name__} holds {len(many)} trees, one in each of its estimators_. Pass one of those."
        )
    if hasattr(fitted, "steps"):
        raise InvalidParameter(
            f"A tree was expected, and this is a {type(fitted).__name__}. Pass its last step, pipe[-1]: its tree knows the table that "
            "the steps before it hand on."
        )
    raise InvalidParameter(
        f"A tree was expected, a Result, or a fitted classifier, not this {type(fitted).__name__}. "
        "Fit it first where it is a classifier."
    )


def exact_units(tree: Tree) -> Units:
    """The units that the tree routes in, where its rules hold to the last bit."""
    return "scaled" if tree.routes_on_scaled else "original"


def shown_names(tree: Tree) -> list[str]:
    """The features' names, each on one line."""
    return [printable(" ".join(name.split())) or repr(name) for name in tree.feature_names]


def number_format(digits: int | None) -> str:
    """The format of so many significant digits; of None, that of the shortest number that reads back the same."""
    return "" if digits is None else f".{digits}g"


def require_count(**counts: Any) -> None:
    """Refuse what is neither None nor a whole number from 1 on."""
    for name, value in counts.items():
        if value is not None:
            whole(name, value, 1, ", or None for all")
