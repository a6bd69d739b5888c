"""The five models as scikit-learn classifiers; no mathematics of its own stands here."""

from .leaf_labelled import MOCTSVMClassifier, OCTClassifier, OCTHClassifier
from .margin import OCTSVMClassifier, RESVMClassifier
from .tuned import (
    MOCTSVMClassifierCV,
    OCTClassifierCV,
    OCTHClassifierCV,
    OCTSVMClassifierCV,
    RESVMClassifierCV,
)

__all__ = [
    "MOCTSVMClassifier",
    "MOCTSVMClassifierCV",
    "OCTClassifier",
    "OCTClassifierCV",
    "OCTHClassifier",
    "OCTHClassifierCV",
    "OCTSVMClassifier",
    "OCTSVMClassifierCV",
    "RESVMClassifier",
    "RESVMClassifierCV",
]
