"""The former path of :mod:`octsvm.estimators.leaf_labelled`: classifiers that were pickled before name it."""

from .leaf_labelled import OCTClassifier, OCTHClassifier

__all__ = ["OCTClassifier", "OCTHClassifier"]
