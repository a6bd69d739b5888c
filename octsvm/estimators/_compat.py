"""What scikit-learn's releases from 1.4 on call differently."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6 it was a method

    def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Check ``X (m, p)`` and ``y (m,)``, and keep or compare the features' number and names."""
        return estimator._validate_data(X, y, **options)


__all__ = ["validate_data"]
