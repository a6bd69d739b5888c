"""Pictures, drawn with matplotlib where it is installed: ``pip install 'octsvm[plot]'``."""

from .path import plot_relabelling_path
from .regions import plot_regions
from .trace import plot_trace
from .tree import plot_tree
from .tuning import plot_tuning

__all__ = ["plot_regions", "plot_relabelling_path", "plot_trace", "plot_tree", "plot_tuning"]
