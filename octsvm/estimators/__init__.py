"""The four models as scikit-learn classifiers; no mathematics of its own stands here."""

from .leaf_labelled import OCTClassifier, OCTHClassifier
from .margin import OCTSVMClassifier, RESVMClassifier

__all__ = ["OCTClassifier", "OCTHClassifier", "OCTSVMClassifier", "RESVMClassifier"]
