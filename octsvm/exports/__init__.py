"""A fitted tree for other eyes and other programs: text, Graphviz, plain data, and numpy source."""

from ._outline import tree_of
from .graphviz import export_graphviz
from .plain import export_dict
from .source import export_source
from .text import export_text

__all__ = ["export_dict", "export_graphviz", "export_source", "export_text", "tree_of"]
