"""The eight data sets of the paper's experiments, from a folder of yours or from UCI: ``octsvm.datasets.load("heart")``."""

from .catalogue import DatasetInfo, info, names
from .loading import Dataset, load

__all__ = ["Dataset", "DatasetInfo", "info", "load", "names"]
