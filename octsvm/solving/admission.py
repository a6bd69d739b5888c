"""Whether a tree is a point of a model, rows and variables of the user's own included."""

from __future__ import annotations

import pyomo.environ as pyo

from ..errors import TreeNotAdmitted
from ..formulations.base import Formulation
from ..formulations.trees import Tree
from . import certificate as checks
from .conflicts import rows_without_values
from .own_terms import complete

NAMED = 6  # of the rows that leave no values, at most


def embed(model: pyo.ConcreteModel, formulation: Formulation, tree: Tree, retry: bool = True) -> Tree:
    """As :func:`octsvm.solving.certificate.embed`, and variables of the user's own get the best values that the tree leaves them.

    Where nobody knows (rows that are not linear, no time) they have none: :func:`embed_wholly` goes on from there.

    Raises
    ------
    TreeNotAdmitted
        Also where rows of the user's own leave their variables no value; it names them.
    """
    return checks.embed(model, formulation, tree, retry=retry, refusal=_refusal)


def embed_wholly(model: pyo.ConcreteModel, formulation: Formulation, tree: Tree) -> Tree:
    """As :func:`embed`; where it leaves variables of the user's own open they keep the values from before, if all rows hold.

    Raises
    ------
    TreeNotAdmitted
    """
    before = [(v, v.value) for c in checks.user_components(model) for v in checks.variables_of(c)]
    embedded = embed(model, formulation, tree)
    lacking = checks.without_value(model)
    for var, value in before:
        if var.value is None:
            var.set_value(value, skip_validation=True)
    reason = checks.broken_row(model) if lacking else None
    still = [var.name for var in lacking if var.value is None]
    if reason or still:
        raise TreeNotAdmitted(
            f"No values were found for variables of your own beside the tree ({', '.join(v.name for v in lacking)}): "
            "their rows are not linear, or there was no time. Give them values that hold with the tree, and embed it again."
            + (f" With those that they have, {reason}." if reason else "")
        )
    return embedded


def _refusal(model: pyo.ConcreteModel) -> str | None:
    """Why the formulation's values are no point of the model; the user's variables get the best values beside them."""
    checks.forget_own_values(model)
    reason = checks.broken_row(model)
    if reason is not None or complete(model):
        return reason
    rows = rows_without_values(model)
    if not rows:
        return None
    names = ", ".join(rows[:NAMED]) + (f" and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
    return f"your {names} leave{'s' if len(rows) == 1 else ''} no values for variables of your own beside it"
