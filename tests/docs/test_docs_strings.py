"""Docstrings say what goes in, with shapes, what comes out, and what is raised."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from typing import Any

import pytest

import octsvm
from octsvm import bridges
from octsvm.formulations import blocks
from octsvm.formulations.base import Data, ModelInfo, Scaling
from octsvm.formulations.blocks import big_m
from octsvm.formulations.registry import NAMES, formulation

PUBLIC = [n for n in octsvm.__all__ if n != "__version__"]
FUNCTIONS = [n for n in PUBLIC if inspect.isfunction(getattr(octsvm, n))]
CLASSES = [n for n in PUBLIC if inspect.isclass(getattr(octsvm, n))]
BLOCKS = [n for n in blocks.__all__ if n.startswith("add_")]


def doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def section(text: str, name: str) -> dict[str, tuple[str, str]]:
    """Entries of a numpydoc section: name -> (type, description). Entries without a type have an empty one."""
    lines = text.splitlines()
    heads = [k for k in range(len(lines) - 1) if re.fullmatch(r"-{3,}", lines[k + 1])]
    found: dict[str, tuple[str, str]] = {}
    for k, nxt in zip(heads, [*heads[1:], len(lines)], strict=False):
        if lines[k] != name:
            continue
        current: list[str] = []
        for line in lines[k + 2 : nxt]:
            if line and not line.startswith(" "):
                names, _, kind = line.partition(" : ")
                current = [part.strip() for part in names.split(",")]
                for part in current:
                    found[part] = (kind, "")
            else:
                for part in current:
                    found[part] = (found[part][0], (found[part][1] + " " + line.strip()).strip())
    return found


def test_the_reader_of_sections() -> None:
    text = "A.\n\nParameters\n----------\na, b : int\n    Two.\n**c\n    More.\n\nReturns\n-------\nint\n    One."
    assert section(text, "Parameters") == {"a": ("int", "Two."), "b": ("int", "Two."), "**c": ("", "More.")}
    assert section(text, "Returns") == {"int": ("", "One.")}
    assert section(text, "Raises") == {}


def test_there_is_something_to_check() -> None:
    assert set(FUNCTIONS) >= {
        "fit",
        "build",
        "solve",
        "embed",
        "extract",
        "evaluate",
        "write",
        "read_solution",
        "flip_labels",
    }
    assert set(FUNCTIONS) | set(CLASSES) == set(PUBLIC)
    assert len(BLOCKS) >= 20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions(name: str) -> None:
    function = getattr(octsvm, name)
    text = doc(function)
    assert re.match(r"[A-Z][^\n]*[.:]\n\n", text), "a first line that is a sentence"
    stars = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    wanted = [stars.get(p.kind, "") + p.name for p in inspect.signature(function).parameters.values()]
    found = section(text, "Parameters")
    assert sorted(found) == sorted(wanted)
    for parameter, (kind, description) in found.items():
        assert description, parameter
        assert kind or parameter.startswith("*"), parameter
        assert "array" not in kind or re.search(r"of shape \(\w+,", kind), f"{parameter}: {kind} has no shape"
    for parameter in {"X", "y", "weights"} & set(wanted):
        assert "array-like" in found[parameter][0]
    returned = section(text, "Returns")
    assert returned
    assert all(description for _, description in returned.values())
    raised = section(text, "Raises")
    assert raised
    for error, (_, description) in raised.items():
        assert description, error
        assert issubclass(getattr(octsvm, error), octsvm.OctsvmError)


def fields_of(cls: type) -> list[str]:
    return [f.name for f in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []


@pytest.mark.parametrize(
    "cls", [*(getattr(octsvm, n) for n in CLASSES), Data, ModelInfo, Scaling], ids=lambda c: c.__name__
)
def test_public_classes(cls: type) -> None:
    assert cls.__doc__, "no docstring of its own"
    known: dict[str, tuple[str, str]] = {}
    for base in cls.__mro__:
        if base.__doc__ and base is not object:
            known |= section(doc(base), "Attributes")
    fields = fields_of(cls)
    assert set(fields) <= set(known)
    for name, (kind, _) in known.items():
        assert "array" not in kind or re.search(r"shape \(|\(\w[^)]*,[^)]*\)", kind), (
            f"{name}: {kind} has no shape"
        )
    for name, member in vars(cls).items():
        if (
            not name.startswith("_")
            and name not in fields
            and (callable(member) or isinstance(member, property))
        ):
            assert doc(member), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_the_formulations(name: str) -> None:
    params = formulation(name).Params
    texts = [inspect.cleandoc(base.__doc__ or "") for base in params.__mro__]
    described = [name for text in texts for name in section(text, "Attributes")]
    assert sorted(described) == sorted(params.model_fields)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    function = getattr(blocks, name)
    text = " ".join(doc(function).split())
    assert re.match(r"Add ``model\.\w+``", text), "the first line says which block is added"
    parts = ["Needs", "Source: ", "**differs:** ", "Size: "]
    positions = [text.find(part) for part in parts]
    assert -1 not in positions, f"it lacks {parts[positions.index(-1)]!r}"
    assert positions == sorted(positions)
    # "as :func:`add_hinge`" stands for what is said there.
    told = text + "".join(
        " ".join(doc(getattr(blocks, other)).split()) for other in re.findall(r":func:`(add_\w+)`", text)
    )
    source = inspect.unwrap(function)
    for parameter in list(inspect.signature(source).parameters.values())[1:]:
        if "Block" in str(parameter.annotation):
            continue  # "Needs" names it by its role
        assert re.search(rf"``{parameter.name}\b|\b{parameter.name}\b", told), parameter.name
        if "Array" in str(parameter.annotation):
            assert re.search(rf"``{parameter.name} \([\w, ]+\)``", told), f"{parameter.name} has no shape"
    assert ("raise " in inspect.getsource(source)) == bool(section(doc(function), "Raises"))


@pytest.mark.parametrize(
    "function",
    [f for _, f in inspect.getmembers(big_m, inspect.isfunction) if f.__module__ == big_m.__name__],
    ids=lambda f: f.__name__,
)
def test_big_m(function: Any) -> None:
    text = doc(function)
    assert text
    if "Array" in str(typing.get_type_hints(function).get("return", "")) and "proved" not in text:
        assert re.search(r"\(n,\)|M_i|e_it", text)


@pytest.mark.parametrize("name", bridges.names())
def test_bridges(name: str) -> None:
    kind = type(bridges.bridge(name))
    assert kind.exactness in ("exact", "converges", "relaxes")
    module = inspect.getdoc(inspect.getmodule(kind)) or ""
    said = {"exact": "Exact.", "converges": "Converges.", "relaxes": "A relaxation"}[kind.exactness]
    for part in ("**Takes**", "**Gives**", "**Back**", said):
        assert part in module
    for part, member in inspect.getmembers(kind):
        if not part.startswith("_") and callable(member):
            assert doc(member), part
