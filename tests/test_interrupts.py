"""Ctrl-C that comes while a class is made, as in the middle of an import."""

from __future__ import annotations

from typing import Any

import pytest

from octsvm.cli.options import Terminated
from octsvm.errors import unhidden_interrupts


class Interrupted:
    """Raises an error while the class that it stands in is made."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __set_name__(self, owner: Any, name: str) -> None:
        raise self.error


def make(error: type[BaseException]) -> None:
    type("Made", (), {"part": Interrupted(error)})


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Terminated])
def test_the_interrupt_itself_is_raised(kind: type[KeyboardInterrupt]) -> None:
    with pytest.raises(KeyboardInterrupt) as raised, unhidden_interrupts():
        make(kind)
    assert type(raised.value) is kind


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises((RuntimeError, ValueError)) as raised:
        make(ValueError)
    with pytest.raises(type(raised.value)) as again, unhidden_interrupts():
        make(ValueError)
    assert isinstance(again.value.__cause__ or again.value, ValueError)
