"""Linear rows and expressions in the form that Pyomo builds, holds and writes fastest."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from ..errors import InvalidParameter


class Abandoned(BaseException):
    """The model is not to be made to its end."""


class _Beat(threading.local):
    """What is called between the rows that this thread makes, and how many it made."""

    call: Callable[[], None] | None = None
    rows = 0


_beat = _Beat()
ROWS_PER_BEAT = 200
PYOMO = logging.getLogger("pyomo.core")


@contextmanager
def between_rows(call: Callable[[], None]) -> Iterator[None]:
    """Call ``call`` now and then while this thread makes rows, which takes seconds in large models.

    It may raise :class:`Abandoned`, and nothing else.
    """
    before, _beat.call = _beat.call, call
    try:
        yield
    finally:
        _beat.call = before
        PYOMO.removeFilter(_not_abandoned)


def _not_abandoned(record: logging.LogRecord) -> bool:
    """Whether a record of Pyomo's is about anything else than a model that was abandoned: it takes that for an error."""
    return not (isinstance(record.args, tuple) and Abandoned.__name__ in record.args)


def _count_row() -> None:
    if _beat.call is not None:
        _beat.rows += 1
        if _beat.rows % ROWS_PER_BEAT == 0:
            try:
                _beat.call()
            except Abandoned:
                PYOMO.addFilter(_not_abandoned)  # until the caller has it
                raise


def linear(coefs: list[float], variables: list) -> LinearExpression:
    """Σ coefs·variables as one flat expression (the fastest form that Pyomo builds and compiles)."""
    _count_row()
    return LinearExpression(constant=0.0, linear_coefs=coefs, linear_vars=variables)


def term(coef: float, variable: Any) -> MonomialTermExpression:
    """coef·variable, to stand in any number of rows: Pyomo never changes an expression, so rows can share its parts."""
    return MonomialTermExpression((coef, variable))


def sum_of(*terms: MonomialTermExpression) -> LinearExpression:
    """The sum of ``terms`` as one flat expression; for rows that share their terms with others."""
    _count_row()
    return LinearExpression(list(terms))


def forget_rules(model: Any) -> None:
    """Drop the functions that rows and bounds were made by: they are done, and a model that holds them cannot be pickled."""
    for component in model.component_objects():
        for name in ("_rule", "_rule_bounds"):
            rule = getattr(component, name, None)
            if rule is not None and not rule.constant():
                setattr(component, name, None)


def own_block(model: pyo.ConcreteModel, name: str, doc: str) -> pyo.Block:
    """``model.<name>``, a block that a user adds to a model; one of that name is not replaced unasked.

    Raises
    ------
    InvalidParameter
    """
    if model.component(name) is not None:
        raise InvalidParameter(
            f"The model has a block {name!r} already, and a second one would take its place. Take it out first: "
            f"model.del_component({name!r})."
        )
    block = pyo.Block(doc=doc)
    model.add_component(name, block)
    return block


def part_of(block: pyo.Block, name: str, what: str) -> Any:
    """The variables ``name`` of a block that is ``what``.

    Raises
    ------
    InvalidParameter
    """
    found = block.component(name) if hasattr(block, "component") else None
    if found is None:
        raise InvalidParameter(
            f"{getattr(block, 'name', block)!r} is no {what} block: it has no variables {name!r}."
        )
    return found


class _Pause:
    """How many calls want no garbage collection, in all threads, and whether there was one before the first of them."""

    def __init__(self) -> None:
        self.lock, self.calls, self.before = threading.Lock(), 0, False

    def begin(self) -> None:
        with self.lock:
            if not self.calls:
                self.before = gc.isenabled()
                gc.disable()
            self.calls += 1

    def end(self) -> None:
        with self.lock:
            self.calls -= 1
            if not self.calls and self.before:
                gc.enable()


_pause = _Pause()


def uncollected(build: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: no garbage collection while ``build`` runs.

    A model is made of many small objects that all stay. The collector would look through them again and again, which
    takes longer than making them.
    """

    @wraps(build)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _pause.begin()
        try:
            return build(*args, **kwargs)
        finally:
            _pause.end()

    return wrapped


def model_builder(build: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: :func:`uncollected`, and none of the functions of ``build`` stays on its model."""

    @wraps(build)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        model = build(*args, **kwargs)
        forget_rules(model)
        return model

    return uncollected(wrapped)


@contextmanager
def collected() -> Iterator[None]:
    """Within an uncollected call: collection as ever, but of what was made before, which is set aside meanwhile."""
    aside = _pause.calls > 0 and not gc.get_freeze_count()
    if aside:
        gc.freeze()
    resumed = _pause.calls > 0 and _pause.before
    if resumed:
        gc.enable()
    try:
        yield
    finally:
        if resumed and _pause.calls:
            gc.disable()
        if aside:
            gc.unfreeze()
