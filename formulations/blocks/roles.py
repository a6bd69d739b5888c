"""What the variables of a block are about: the sample, the node and the feature that stand in their index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..base import IntArray


@dataclass(frozen=True)
class Role:
    """Where the index of a variable holds its sample, its node and its feature; None where it has none.

    Attributes
    ----------
    sample, node, feature : int, optional
        Positions in the index, from 0; an index that is no tuple has position 0 only.
    groups : tuple of tuple of int, optional
        The samples of each group, where groups of equal samples stand in the place of samples.
    open_if_absent : bool
        Whether the variable may take any value where its sample does not come to its node.
    """

    sample: int | None = None
    node: int | None = None
    feature: int | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    open_if_absent: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Role:
        return self  # never changed, so the clone of a model can share it


class Subject(NamedTuple):
    """What one variable is about: its samples (none, one, or a group), its node and its feature."""

    samples: tuple[int, ...]
    node: int | None
    feature: int | None


def describe(
    *variables: Any,
    sample: int | None = None,
    node: int | None = None,
    feature: int | None = None,
    groups: tuple[tuple[int, ...], ...] | None = None,
    open_if_absent: bool = False,
) -> None:
    """Declare what ``variables`` (Pyomo Vars with equal indices) are about; clones and pickles keep it.

    Parameters
    ----------
    *variables : pyo.Var
    sample, node, feature : int, optional
        Positions in their index. A variable that is about none of them is declared without.
    groups : tuple of tuple of int, optional
        As in :func:`groups_of`, where position ``sample`` holds a group of samples.
    open_if_absent : bool
        Whether any value will do where the sample does not come to the node.
    """
    role = Role(sample, node, feature, groups, open_if_absent)
    for variable in variables:
        variable.role = role


def role_of(variable: Any) -> Role | None:
    """The role declared for a Pyomo Var, or for the Var that a variable data object belongs to; None where there is none."""
    found: Role | None = getattr(variable.parent_component(), "role", None)
    return found


def subject(variable: Any) -> Subject:
    """What the variable data object ``variable`` is about; nothing where no role was declared."""
    role, index = role_of(variable) or Role(), variable.index()
    keys = index if isinstance(index, tuple) else (index,)
    at = [None if place is None else int(keys[place]) for place in (role.sample, role.node, role.feature)]
    samples: tuple[int, ...] = () if at[0] is None else (at[0],)
    if role.groups is not None and at[0] is not None:
        samples = role.groups[at[0]]
    return Subject(samples, at[1], at[2])


def groups_of(of_row: IntArray) -> tuple[tuple[int, ...], ...]:
    """The samples of each group, from the group of each sample ``of_row (n,)``."""
    out: list[list[int]] = [[] for _ in range(int(of_row.max(initial=-1)) + 1)]
    for i, g in enumerate(of_row.tolist()):
        out[g].append(i)
    return tuple(tuple(samples) for samples in out)


def groups_in(variable: Any) -> tuple[tuple[int, ...], ...] | None:
    """The groups that ``variable`` was declared with, for variables on the same groups."""
    role = role_of(variable)
    return None if role is None else role.groups
