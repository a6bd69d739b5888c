"""The options of a solve in signatures and docstrings of the API pages, which are read from the source, not imported."""

from __future__ import annotations

from typing import Any

import griffe

from octsvm import options


class SolveOptions(griffe.Extension):
    """Fills in what ``octsvm.options.takes_options`` and the classifiers add when they are imported."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Complete an object whose docstring has a line ``{options}``."""
        if obj.docstring is None or "{options}" not in obj.docstring.value.split():
            return
        who = options.ESTIMATOR
        if isinstance(obj, griffe.Function):
            decorator = next(
                str(d.value) for d in obj.decorators if str(d.value).startswith("takes_options(")
            )
            who = getattr(options, decorator.removeprefix("takes_options(").removesuffix(")"))
            _complete(obj, who)
        obj.docstring.value = options.with_options(obj.docstring.value, who)


def _complete(function: griffe.Function, who: str) -> None:
    there = {p.name for p in function.parameters}
    rest = [p for p in function.parameters if p.kind is not griffe.ParameterKind.var_keyword]
    last = [
        p for p in function.parameters if p.kind is griffe.ParameterKind.var_keyword and p.name != "options"
    ]
    added = [
        griffe.Parameter(
            p.name,
            kind=griffe.ParameterKind.keyword_only,
            default=repr(p.default),
            annotation=str(p.annotation),
        )
        for p in options.parameters(who)
        if p.name not in there
    ]
    function.parameters = griffe.Parameters(*rest, *added, *last)
