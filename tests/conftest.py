"""What all tests share: the --slow option, and the folder of shared cases and data next to the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT, SHARED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="takes minutes; run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared cases and data."""
    if not (SHARED / "cases" / "cases.json").is_file():
        pytest.skip("the folder of shared cases is not next to this checkout")
    return SHARED
