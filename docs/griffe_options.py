"""What is added to signatures and docstrings on import, for the API pages, which are read from the source, not imported."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from typing import Any

import griffe

import octsvm
from octsvm import options


class SolveOptions(griffe.Extension):
    """Fills in what ``octsvm.options.takes_options`` and the classifiers add when they are imported."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Complete a classifier, and an object whose docstring has a line ``{options}``."""
        words = [] if obj.docstring is None else obj.docstring.value.split()
        kind = getattr(octsvm, obj.name, None) if isinstance(obj, griffe.Class) else None
        if getattr(kind, "formulation", "") and obj.docstring is not None:
            signature = inspect.signature(kind.__init__)
            initialiser = griffe.Function("__init__", parameters=_parameters(signature.parameters.values()))
            obj.set_member("__init__", initialiser)
            obj.docstring.value = inspect.getdoc(kind)
        elif isinstance(obj, griffe.Function) and "{options}" in words:
            said = (str(d.value) for d in obj.decorators)
            decorator = next((d for d in said if d.startswith("takes_options(")), None)
            if decorator is None:
                return
            own = {p.name for p in obj.parameters}
            who = getattr(options, decorator.removeprefix("takes_options(").removesuffix(")"))
            module = importlib.import_module(obj.module.path)
            signature = inspect.signature(getattr(module, obj.name))
            obj.parameters = _parameters(signature.parameters.values())
            obj.docstring.value = options.with_options(obj.docstring.value, who, own)


def _parameters(found: Iterable[inspect.Parameter]) -> griffe.Parameters:
    kinds = {
        inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
        inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
        inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
    }
    return griffe.Parameters(
        *(
            griffe.Parameter(
                p.name,
                kind=kinds[p.kind],
                default=None if p.default is inspect.Parameter.empty else repr(p.default),
                annotation=None
                if p.annotation is inspect.Parameter.empty
                else inspect.formatannotation(p.annotation).strip("'"),
            )
            for p in found
        )
    )
