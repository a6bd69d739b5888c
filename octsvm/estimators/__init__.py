"""The five models as scikit-learn classifiers; no mathematics of its own stands here."""

from .leaf_labelled import MOCTSVMClassifier, OCTClassifier, OCTHClassifier
from .margin import OCTSVMClassifier, RESVMClassifier

__all__ = ["MOCTSVMClassifier", "OCTClassifier", "OCTHClassifier", "OCTSVMClassifier", "RESVMClassifier"]
