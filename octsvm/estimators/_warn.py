"""Warnings that a search over parameters would repeat."""

from __future__ import annotations

import re
import sys
import warnings

_shown: set[tuple[str, int, str]] = set()  # file, line, words


def warn_once_a_line(text: str, category: type[Warning], stacklevel: int) -> None:
    """Warn as the filters say; where they want a warning once, the same words come once for each calling line.

    Python forgets what it has shown whenever a filter changes, and scikit-learn and others change some during a fit:
    left to Python, every fit of a search would warn. ``stacklevel`` counts as for :func:`warnings.warn`.
    """
    frame = sys._getframe(stacklevel)
    module = str(frame.f_globals.get("__name__", ""))
    key = frame.f_code.co_filename, frame.f_lineno, text
    if _action(text, category, module, frame.f_lineno) in ("default", "module", "once"):
        if key in _shown:
            return
        _shown.add(key)
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def _action(text: str, category: type[Warning], module: str, line: int) -> str:
    """What the first filter that matches does with a warning."""

    def fits(wanted: re.Pattern[str] | str | None, given: str) -> bool:
        return wanted is None or (wanted == given if isinstance(wanted, str) else bool(wanted.match(given)))

    for action, message, kind, where, number in warnings.filters:
        if issubclass(category, kind) and number in (0, line) and fits(message, text) and fits(where, module):
            return action
    return "default"
