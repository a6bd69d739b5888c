"""Values of a test's argument that only ``--long`` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def long(values: Iterable[Any]) -> list[Any]:
    """Values for ``pytest.mark.parametrize``, after those that are always run."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
