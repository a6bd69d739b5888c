"""What all tests share: which of them are slow, and the folder of shared cases and data next to the checkout."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from places import ROOT, SHARED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the slow tests: all there is")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow cases of a test as slow, and skip what is slow unless all is asked for."""
    skip = pytest.mark.skip(reason="slow: run with --slow")
    without = {item.nodeid.partition("[")[0] for item in items if item.get_closest_marker("quick_cases")}
    for item in items:
        if is_slow_case(item):
            item.add_marker("slow")
        else:
            without.discard(item.nodeid.partition("[")[0])
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(skip)
    if without and not any("::" in asked for asked in config.args):
        raise pytest.UsageError(f"quick_cases names no case of {', '.join(sorted(without))}")


def is_slow_case(item: pytest.Item) -> bool:
    """Whether ``slow_cases`` of its test names this case, or ``quick_cases`` names others only."""

    def named(mark: pytest.Mark) -> bool:
        return any(fnmatchcase(item.callspec.id, pattern) for pattern in mark.args)  # type: ignore[attr-defined]

    slow, quick = item.get_closest_marker("slow_cases"), item.get_closest_marker("quick_cases")
    return (slow is not None and named(slow)) or (quick is not None and not named(quick))


@pytest.fixture
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    from octsvm.formulations import registry

    monkeypatch.setattr(
        registry, "_registered", {name: registry.formulation(name) for name in registry.NAMES}
    )


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
