"""What a solve in a process of its own is handed and what it sends back; numpy alone, so that the process starts fast."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SIZE = struct.Struct("<Q")


@dataclass
class Job:
    """One solve: min cost'x + offset + quadratic, rows, bounds, integers; or an .nl file.

    Attributes
    ----------
    matrix : tuple
        indptr, indices, data of the rows, in compressed form.
    quadratic_cost : tuple or None
        first, second, coef.
    quadratic_rows : list of tuple
        first, second, coef, at, value, low, high.
    nl : str
        Path of an .nl file that holds the model in place of the arrays; empty where there is none.
    settings : dict
        The solver's own options.
    deadline : float
        On the clock of ``time.monotonic``.
    time_option : str
        Name of the option that limits seconds; set as late as possible.
    """

    cost: Array
    offset: float
    low: Array
    high: Array
    integer: NDArray[np.bool_]
    matrix: tuple[NDArray[Any], NDArray[Any], Array]
    row_low: Array
    row_high: Array
    quadratic_cost: tuple[NDArray[Any], NDArray[Any], Array] | None
    quadratic_rows: list[tuple[Any, ...]]
    nl: str
    settings: dict[str, Any]
    own_options: tuple[str, ...]
    deadline: float
    time_option: str
    start: Array | None = None

    @property
    def n(self) -> int:
        """Number of columns."""
        return len(self.cost)


class Answer(NamedTuple):
    """What an adapter came to; ``stop`` is one of :data:`octsvm.result.STOPS`."""

    stop: str
    x: Array | None
    bound: float
    nodes: int
    native: str


class Refused(Exception):
    """The engine does not take the job: ``kind`` is "licence", "option" or "unsupported"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


_SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def fitting(value: Any, kind: type | None) -> Any:
    """The value of an option as one of this kind (bool, int, float, str; None: whatever it is), where it is one.

    A text that reads as what is wanted is taken for it: the command line and files know texts only.

    Raises
    ------
    ValueError
        It is of another kind, with what it should be.
    """
    value = value.item() if isinstance(value, np.generic) else value
    text = isinstance(value, str)
    if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and value != value):
        raise ValueError("should be a number, a text, True or False")
    if kind is None:
        return value
    if kind is str:
        if not text:
            raise ValueError("should be a text")
    elif kind is bool:
        if not isinstance(value, bool):
            value = _SWITCHES.get(str(value).lower())
        if value is None:
            raise ValueError("should be True or False")
    else:
        value = _number(value, kind)
    return value


def _number(value: Any, kind: type) -> Any:
    wanted = "a whole number" if kind is int else "a number"
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = float("nan")
    whole = number.is_integer()
    if number != number or (kind is int and not whole) or (kind is float and isinstance(value, bool)):
        raise ValueError(f"should be {wanted}")
    return int(value if isinstance(value, int) else number) if kind is int else number


def set_options(
    settings: Mapping[str, Any], kind: Callable[[str], type | None], put: Callable[[str, Any], Any]
) -> None:
    """Hand the solver's own options to ``put`` by name, each as a value of its ``kind``.

    Raises
    ------
    Refused
        Naming the first one that does not fit, or that ``put`` returns False for or raises something at.
    """
    for name, value in settings.items():
        why = ""
        try:
            if put(name, fitting(value, kind(name))) is not False:
                continue
        except Refused:
            raise
        except Exception as error:
            why = f" ({' '.join(str(error).split())})"
        raise Refused("option", f"{name} = {value!r}{why}")


@dataclass
class Reporter:
    """An adapter's line to the parent.

    ``point`` and ``bound`` report while the engine runs; ``on_stop`` registers what ends the solve early.
    """

    send: Callable[[tuple[Any, ...]], None]
    stopping: bool = False
    _stoppers: list[Callable[[], None]] = field(default_factory=list)

    def point(self, x: Any) -> None:
        """A feasible point that the engine found."""
        self.send(("point", np.asarray(x, dtype=float)))

    def bound(self, value: float, nodes: int) -> None:
        """The engine's bound, and the nodes that it has looked at."""
        self.send(("bound", float(value), int(nodes)))

    def on_stop(self, stopper: Callable[[], None]) -> None:
        """Register what ends the solve early; called at once where the end was asked for already."""
        self._stoppers.append(stopper)
        if self.stopping:
            stopper()

    def stop(self) -> None:
        """End the solve."""
        self.stopping = True
        for stopper in self._stoppers:
            stopper()


def write_message(stream: IO[bytes], content: Any) -> None:
    """One message, with its length before it."""
    body = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_SIZE.pack(len(body)) + body)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """The next message.

    Raises
    ------
    EOFError
        At the end, also in the middle of a message.
    """
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (length,) = _SIZE.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        raise EOFError
    return pickle.loads(body)
