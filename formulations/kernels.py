"""Kernels of RE-SVM and OCTSVM: rows on which a linear model is the model in the kernel's feature space.

An optimal ω_t lies in the span of the mapped samples φ(x_i): its projection on that span has the same scores and no larger
norm. With coordinates F_i of φ(x_i) in an orthonormal basis of the span, K = F F', s_i = ω'F_i + ω_0 and ‖ω‖ is the norm
in feature space, so that the model on the rows of F is the kernel model: no row, bridge or search knows of it.

The basis is that of a pivoted Cholesky factor: K ≈ F F' with the pivots' samples S, K_SS = L L' and F = k(X, S) L⁻'. A new
row is mapped by the same formula. What is left of ‖φ(x_i)‖² outside the span of the pivots is at most ``TOLERANCE`` times
the largest k(x_i, x_i). The scores of the model are exact; ω is what is limited, to the span of S. By duality, an optimum with
multipliers α_i <= c1 w_i for a fixed choice of labels rises by at most ½(Σ_i α_i r_i)² with r_i² the left-over of row i.

Source: the kernel trick for SVMs (Boser, Guyon, Vapnik 1992); Fine and Scheinberg 2001 for the factor. Names, parameters and
defaults are those of scikit-learn's SVC.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, PlainSerializer

from .base import Data, FloatArray, IntArray, Scaling
from .errors import InvalidData, InvalidParameter

Function = Callable[[FloatArray, FloatArray], Any]

TOLERANCE = 1e-10  # of the largest k(x, x): squared lengths below that count as none
DISAGREEMENT = 1e-7  # of the largest k(x, x): more, and the function is no kernel
CHUNK = 2**17  # numbers of the rows that are mapped at a time: what a processor keeps at hand
CHECKED = 200  # rows on which a kernel is checked
ASKED_EVERY = 64  # pivots between two looks at the clock
MOST = 4_000_000  # rows times coordinates: more take minutes before anything is solved
BUILT_IN = ("linear", "poly", "rbf")

_own: dict[str, Function] = {}


def register_kernel(name: str, function: Function) -> Function:
    """Make ``kernel=name`` stand for a function of your own, in fits and in saved trees.

    Parameters
    ----------
    name : str
        Not one of "linear", "poly", "rbf".
    function : callable
        Of ``A (n, p)`` and ``B (m, p)``, rows scaled to [0, 1], to the kernel's values ``(n, m)``: symmetric and positive
        semidefinite. A file holds the name alone, so register the function again before you load it.

    Returns
    -------
    callable
        The function as it is.

    Raises
    ------
    InvalidParameter
        The name is taken, or the function cannot be called.
    """
    if not isinstance(name, str) or not name or name in BUILT_IN:
        raise InvalidParameter(
            f"{name!r} cannot name a kernel: give text other than {', '.join(map(repr, BUILT_IN))}."
        )
    if not callable(function):
        raise InvalidParameter(f"The kernel {name!r} should be a function of two tables, not {function!r}.")
    _own[name] = function
    return function


def _registered(function: Function) -> str | None:
    return next((name for name, known in _own.items() if known is function), None)


# -- parameters ---------------------------------------------------------------------------------------------------------


def _known_kernel(kernel: Any) -> Any:
    if isinstance(kernel, str) and kernel not in BUILT_IN and kernel not in _own:
        known = ", ".join(map(repr, [*BUILT_IN, *_own]))
        raise ValueError(
            f"the kernels are {known}; pass a function k(A, B) -> (n, m), or name one with octsvm.register_kernel"
            + (
                "; octsvm.tune, the command tune and the classifiers named ...CV take 'auto'"
                * (kernel == "auto")
            )
        )
    return kernel


def _known_gamma(gamma: Any) -> Any:
    if isinstance(gamma, str) and gamma not in ("scale", "auto"):
        raise ValueError("give a positive number, 'scale' or 'auto'")
    if not isinstance(gamma, str) and not gamma > 0:
        raise ValueError("a number has to be positive")
    return gamma


def kernel_name(kernel: Any) -> str | None:
    """The kernel as text, of a function its registered name or where it was defined."""
    if kernel is None or isinstance(kernel, str):
        return kernel
    where = f"{getattr(kernel, '__module__', '')}.{getattr(kernel, '__qualname__', type(kernel).__name__)}"
    return _registered(kernel) or where


KernelChoice = Annotated[
    str | Callable[..., Any] | None,
    AfterValidator(_known_kernel),
    PlainSerializer(kernel_name, return_type=str | None),
]
Gamma = Annotated[float | str, AfterValidator(_known_gamma)]


# -- a kernel, and the map of a table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters settled.

    Attributes
    ----------
    name : str
        "linear": x'z, "poly": (gamma x'z + coef0)^degree, "rbf": exp(-gamma ‖x - z‖²), or that of a function.
    gamma, coef0 : float
    degree : int
    function : callable, optional
        One of the caller's own; the three parameters play no role then.
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Function | None = None

    def values(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """k(a, b) (n, m) of the rows of ``A (n, p)`` and ``B (m, p)``; a row's values do not depend on the other rows.

        Raises
        ------
        InvalidParameter
            A function of the caller's own returns something else.
        InvalidData
            A value is not a finite number.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._own_values(A, B) if self.function is not None else self._values(A, B)
        if not np.isfinite(found).all():
            i = int(np.argmin(np.isfinite(found).all(axis=1)))
            raise InvalidData(
                f"The {self.name} kernel of row {i} is not a finite number. Give a smaller degree, or rows nearer to "
                "the training table."
            )
        return found

    def _values(self, A: FloatArray, B: FloatArray) -> FloatArray:
        # Feature by feature: a BLAS product's rounding depends on the rows that a row comes with.
        out = np.zeros((len(A), len(B)))
        for a, b in zip(A.T, B.T, strict=True):
            out += (a[:, None] - b) ** 2 if self.name == "rbf" else a[:, None] * b
        if self.name == "rbf":
            return np.exp(-self.gamma * out)
        return out if self.name == "linear" else (self.gamma * out + self.coef0) ** self.degree

    def _own_values(self, A: FloatArray, B: FloatArray) -> FloatArray:
        assert self.function is not None
        found = np.asarray(self.function(A.copy(), B.copy()))
        if found.shape != (len(A), len(B)) or found.dtype.kind not in "biuf":
            raise InvalidParameter(
                f"The kernel {self.name} returned {found.dtype} values of shape {found.shape} for tables of {len(A)} and "
                f"{len(B)} rows; it should return numbers of shape ({len(A)}, {len(B)})."
            )
        return np.ascontiguousarray(found, dtype=np.float64)

    def describe(self) -> str:
        """The kernel in a few words, with the parameters that it uses."""
        if self.function is not None or self.name == "linear":
            return self.name
        more = f", degree={self.degree}, coef0={self.coef0:g}" if self.name == "poly" else ""
        return f"{self.name}, gamma={self.gamma:.6g}{more}"

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters for JSON.

        Raises
        ------
        InvalidData
            A function without a name.
        """
        name = self.name if self.function is None else _registered(self.function)
        if name is None:
            raise InvalidData(
                f"The tree's kernel is the function {self.name}, which JSON does not hold. Name it first: "
                "octsvm.register_kernel('mine', function) here and where the file is read; or pickle the tree."
            )
        return {"name": name, "gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Kernel:
        """The kernel that :meth:`to_dict` wrote.

        Raises
        ------
        InvalidData
            A name that nothing is registered under.
        """
        name = saved["name"]
        if name not in BUILT_IN and name not in _own:
            raise InvalidData(
                f"The saved tree's kernel {name!r} is not known here. Register its function first: "
                f"octsvm.register_kernel({name!r}, function)."
            )
        return cls(**saved, function=_own.get(name))

    @classmethod
    def of(cls, params: Any, data: Data) -> Kernel:
        """The kernel that ``params`` ask for; gamma "scale" is that of :func:`scale_gamma`, "auto" 1/p."""
        chosen, gamma = params.kernel, params.gamma
        if isinstance(gamma, str):
            gamma = 1.0 / data.p if gamma == "auto" else scale_gamma(data)
        function = _own.get(chosen) if isinstance(chosen, str) else chosen
        return cls(str(kernel_name(chosen)), gamma, params.degree, params.coef0, function)


def scale_gamma(data: Data) -> float:
    """gamma "scale", 1/(p · variance of the scaled values): a row of weight 2 counts like two equal rows."""
    share = data.weights / data.weights.sum()
    variance = float((share @ (data.X - (share @ data.X).mean()) ** 2).mean())
    return 1.0 / (data.p * variance) if variance > 0 else 1.0


@dataclass(frozen=True, eq=False)
class KernelMap(Scaling):
    """The scaling to [0, 1] and then the coordinates of φ(x) in the span of ``support``: rows that a model is built on.

    Attributes
    ----------
    low, span : ndarray of shape (p,)
        Of the features, in the units of the caller's table.
    kernel : Kernel
    support : ndarray of shape (r, p)
        Training samples in scaled units, whose images span the space.
    basis : ndarray of shape (r, r)
        L⁻' of K_SS = L L', upper triangular: column k holds the coefficients of the k-th basis vector.
    complete : bool
        Whether the images of all training rows lie in the span; not where the clock ended the search for pivots.
    """

    kernel: Kernel
    support: FloatArray
    basis: FloatArray
    complete: bool = True

    @classmethod
    def spanned_by(cls, scaling: Scaling, kernel: Kernel, support: FloatArray) -> KernelMap:
        """The map of ``support (r, p)`` in scaled units.

        Raises
        ------
        InvalidData
            The images of the samples are not linearly independent, or there are none.
        """
        try:
            K = kernel.values(support, support)
            if len(K) == 1 and K[0, 0] == 0:  # φ is zero on the table: one coordinate, always zero
                basis = np.zeros((1, 1))
            else:
                basis = np.triu(np.linalg.inv(np.linalg.cholesky(K)).T)
        except np.linalg.LinAlgError:
            basis = np.empty((0, 0))
        if not len(basis):
            raise InvalidData(
                "The support samples do not fit the kernel: their images should be linearly independent."
            )
        return cls(scaling.low, scaling.span, kernel, support, basis)

    @classmethod
    def learn_from(
        cls, scaling: Scaling, kernel: Kernel, X: FloatArray, late: Callable[[], bool] | None = None
    ) -> KernelMap:
        """The map of the table ``X (n, p)`` in scaled units, on the pivots that are found before it is ``late``.

        Raises
        ------
        InvalidParameter
            A function that is no kernel on these rows: not symmetric, or not positive semidefinite.
        InvalidData
            A value that is not a finite number, or a space of too many dimensions.
        """
        some = X[np.unique(np.linspace(0, len(X) - 1, CHECKED).astype(int))]
        K = kernel.values(some, some)
        most = DISAGREEMENT * float(np.abs(K).max(initial=0.0))
        if np.abs(K - K.T).max(initial=0.0) <= most:
            chosen, complete = pivots(kernel, X, late)
            found = replace(cls.spanned_by(scaling, kernel, X[chosen]), complete=complete)
            F = found.coordinates(some)
            if not complete or np.abs(K - F @ F.T).max(initial=0.0) <= most:
                return found
        raise InvalidParameter(
            f"kernel={kernel.describe()} is no kernel on this table: its values are not symmetric and positive "
            "semidefinite, so that they are no inner products. For 'poly' coef0 should not be negative."
        )

    def scaled(self, X: FloatArray) -> FloatArray:
        """``X (m, p)`` in scaled units."""
        return super().transform(X)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Coordinates (m, r) of rows ``X (m, p)`` in scaled units."""
        out = np.zeros((len(X), len(self.basis)))
        step = max(16, CHUNK // len(self.basis))
        for first in range(0, len(X), step):
            K = self.kernel.values(X[first : first + step], self.support)
            # In no BLAS, whose rounding of a row depends on the rows that it comes with.
            np.einsum("ij,jk->ik", K, self.basis, out=out[first : first + step], optimize=False)
        return out

    def transform(self, X: FloatArray) -> FloatArray:
        """Coordinates (m, r) of rows ``X (m, p)`` in original units, not to be written to.

        Those of the last array are kept while it is there: all trees of a fit are judged on the same one.
        """
        of, found = self.__dict__.get("_kept", (None, None))
        if of is None or of() is not X:
            found = self.coordinates(self.scaled(X))
            found.setflags(write=False)
            if found.size <= MOST:
                self.__dict__["_kept"] = (weakref.ref(X), found)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def same_space(self, other: Scaling) -> bool:
        """Whether ``other`` maps with the same kernel on the same scaling, be it to another basis."""
        return (
            isinstance(other, KernelMap)
            and self.kernel == other.kernel
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.span, other.span)
        )


def pivots(kernel: Kernel, X: FloatArray, late: Callable[[], bool] | None = None) -> tuple[IntArray, bool]:
    """Rows of ``X (n, p)`` whose images span all others up to ``TOLERANCE``: pivots of the kernel's Cholesky factor.

    The second value says whether they do, or whether it was ``late`` before.

    Raises
    ------
    InvalidData
        They are too many for a table of that size.
    """
    n = len(X)
    left = np.concatenate([kernel.values(x[None], x[None])[0] for x in X])
    least = TOLERANCE * float(left.max(initial=0.0))
    L = np.zeros((n, min(n, MOST // n)), order="F")
    chosen: list[int] = []
    while len(chosen) < n:
        k, r = int(np.argmax(left)), len(chosen)
        if not left[k] > least:
            break
        if late is not None and r % ASKED_EVERY == ASKED_EVERY - 1 and late():
            return np.array(chosen, dtype=np.int64), False
        if r == L.shape[1]:
            raise InvalidData(
                f"The kernel ({kernel.describe()}) needs more than {r} coordinates for the {n} rows of this table, which would "
                "take minutes before anything is solved. Fit to a sample of the rows, or give a kernel of fewer dimensions: a "
                "smaller gamma or degree."
            )
        L[:, r] = (kernel.values(X, X[k : k + 1])[:, 0] - L[:, :r] @ L[k, :r]) / math.sqrt(left[k])
        chosen.append(k)
        left -= L[:, r] ** 2
        left[chosen] = 0.0
    return np.array(chosen or [0], dtype=np.int64), True


def model_rows(data: Data, params: Any, late: Callable[[], bool] | None = None) -> Data:
    """``data`` with ``X`` as the rows that the model is built on: with a kernel, coordinates (n, r) in feature space.

    What was mapped already stays as it is. Once it is ``late``, they are coordinates in a part of that space.
    """
    if params.kernel is None or isinstance(data.scaling, KernelMap):
        return data
    found = KernelMap.learn_from(data.scaling, Kernel.of(params, data), data.X, late)
    return replace(data, X=found.transform(data.X_original), scaling=found)
