"""Puts the stand-ins of programs on PATH."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import engines
import pytest


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return engines.make_stand_ins(tmp_path_factory.mktemp("programs"))


@pytest.fixture(autouse=True)
def _there(request: pytest.FixtureRequest, stand_ins: Path) -> Iterator[None]:
    entry = request.node.callspec.params.get("entry") if hasattr(request.node, "callspec") else None
    if entry is None:
        yield
        return
    if entry.stand_in:
        with engines.on_path(stand_ins):
            yield
    else:
        yield
