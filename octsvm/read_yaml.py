"""YAML files of the user's: plain values alone, and none whose values outgrow the text that they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .formulations.read_file import read_text_bytes

LARGEST = 1 << 18  # bytes of a file; a table of fifty solvers has a tenth of it
LONGEST_NUMBER = 400  # characters: 1:1:1:... is one to base 60, and takes time with the square of its length
MOST_KEYS = 10_000  # of a mapping: what merges (<<) of merges bring in grows from level to level

# The parser in C, where PyYAML was built with it: with the other one a table takes a noticeable part of a second.
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    def construct_short(self, node: yaml.ScalarNode) -> Any:
        if len(node.value) > LONGEST_NUMBER:
            raise yaml.constructor.ConstructorError(
                None, None, f"a number of {len(node.value)} characters", node.start_mark
            )
        return _Safe.yaml_constructors[node.tag](self, node)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_KEYS:
            raise yaml.constructor.ConstructorError(
                None, None, f"a mapping of {len(node.value)} keys", node.start_mark
            )


for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _Loader.add_constructor(_tag, _Loader.construct_short)


def read_yaml(path: str | Path) -> tuple[Any, yaml.Node | None]:
    """What a file holds, and its nodes, which know their lines; None and None for an empty one.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is no YAML of plain values, or too large, too deep or too intricate to be meant well.
    """
    raw = read_text_bytes(path, LARGEST + 1)
    if len(raw) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes, and no table or protocol is")
    return parse_yaml(raw.decode())


def parse_yaml(text: str) -> tuple[Any, yaml.Node | None]:
    """The same for a text."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
