"""What all tests share: which of them are slow or long, and the folder of shared cases and data next to the checkout."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from places import ROOT, SHARED

# Hundreds of processes that tests start import the project: what is compiled is kept, whatever the caller's setting.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What a shell starts in the background ignores Ctrl-C, and what nohup starts SIGHUP, and so would all that tests start and end.
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the slow tests")
    parser.addoption("--long", action="store_true", help="also run the slow and the long tests: all there is")


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.getoption("--long"):
        return None
    if config.getoption("--slow"):
        return "long tests are left out: --long runs them"
    return "slow tests are left out: --slow runs them; long ones too: --long"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow and the long cases of a test as such, and leave out what is not asked for."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if is_slow_case(item) or marked(item, "long"):
            item.add_marker("slow")
    without = [name for name, found in cases.items() if marked(found[0], "quick_cases") and not quick(found)]
    named = any("::" in asked for asked in config.args)
    if without and not named:
        raise pytest.UsageError(f"quick_cases names no case of {', '.join(without)}")
    for found in cases.values():
        if marked(found[0], "every_value"):
            slow = [i for i in found if marked(i, "slow") and not marked(i, "skip") and not marked(i, "long")]
            for item in set(slow) - showing_every_value(slow):
                item.add_marker("long")
    if config.getoption("--long"):
        return
    above = "long" if config.getoption("--slow") else "slow"
    left_out = [item for item in items if marked(item, above)]
    if named:  # who asked for it is told why it does not run
        for item in left_out:
            kind = "long" if marked(item, "long") else "slow"
            item.add_marker(pytest.mark.skip(reason=f"{kind}: run with --{kind}"))
    elif left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not marked(item, above)]


def marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


def quick(cases: list[pytest.Item]) -> bool:
    return not all(marked(item, "slow") for item in cases)


def is_slow_case(item: pytest.Item) -> bool:
    """Whether ``slow_cases`` of its test names this case, or ``quick_cases`` names others only."""

    def named(mark: pytest.Mark) -> bool:
        return any(fnmatchcase(item.callspec.id, pattern) for pattern in mark.args)  # type: ignore[attr-defined]

    slow, quick = item.get_closest_marker("slow_cases"), item.get_closest_marker("quick_cases")
    return (slow is not None and named(slow)) or (quick is not None and not named(quick))


def showing_every_value(cases: list[pytest.Item]) -> set[pytest.Item]:
    """Few of these cases of a test, among which every value of each of its arguments is."""
    values = {item: frozenset(map(value_of, item.callspec.params.items())) for item in cases}  # type: ignore[attr-defined]
    shown: Counter[tuple[str, int]] = Counter()
    chosen: set[pytest.Item] = set()
    while any(value not in shown for of_case in values.values() for value in of_case):
        # The most new values; then what was shown least.
        item = max(
            values,
            key=lambda i: (sum(v not in shown for v in values[i]), -sum(shown[v] for v in values[i])),
        )
        chosen.add(item)
        shown.update(values.pop(item))
    return chosen


def value_of(argument: tuple[str, Any]) -> tuple[str, int]:
    """What tells a value of an argument from its others; scikit-learn's checks are partial functions."""
    name, value = argument
    return name, id(getattr(value, "func", value))


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
