"""Readers of the files in which solvers leave their solutions. Plain parsing: neither Pyomo nor a solver is needed."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSolutionFile
from ..formulations.read_file import read_text_bytes

# Values of this size are a solver's infinity, not a point.
INFINITE = 1e19
SPARSE = ("scip", "gurobi", "cbc")  # columns at 0 may be missing
RARELY_SPARSE = ("gurobi",)  # as a rule they are not, so that a missing one is worth a note

ASL_STOPS = ((100, "optimal"), (200, "numeric"), (300, "infeasible"), (400, "unbounded"), (500, "time_limit"))
ASL_INTERRUPTED = 422

WRITTEN_BY = {
    "asl": "the .sol of AMPL solvers (Bonmin, Couenne, SCIP or CBC called with -AMPL)",
    "highs": "HiGHS --solution_file",
    "scip": "SCIP's `write solution`",
    "gurobi": "Gurobi's .sol",
    "cplex": "CPLEX's XML .sol",
    "cbc": "CBC's `solution FILE`",
    "glpk": "glpsol -w (or -o)",
    "xpress": "Xpress' .slx",
}


@dataclass(frozen=True, eq=False)
class SolutionFile:
    """What a solution file says, as it says it.

    Attributes
    ----------
    kind : str
        A key of :data:`WRITTEN_BY`.
    values : dict or None
        Name of the column -> value, for the kinds that write names.
    ordered : ndarray of shape (columns,) or None
        Values in the order of the columns, for the kinds that write no names ("asl", "glpk -w").
    status : str
        The file's own words; empty where it has none.
    code : int or None
        Solve code of AMPL solvers: 0 to 99 solved, 100 solved?, 200 infeasible, 300 unbounded, 400 limit, 500 failure.
    objective : float or None
        As the file claims it.
    has_point : bool
        Whether the file holds a point that its solver takes for feasible.
    why : str
        Where it holds none: the reason.
    sparse : bool
        Whether columns at 0 may be missing in ``values``.
    """

    kind: str
    values: dict[str, float] | None = None
    ordered: NDArray[np.float64] | None = None
    status: str = ""
    code: int | None = None
    objective: float | None = None
    has_point: bool = False
    why: str = ""
    sparse: bool = False

    @property
    def stop(self) -> str:
        """What the solve code of an AMPL solver says, one of :data:`octsvm.result.STOPS`; "error" without a code."""
        if self.code == ASL_INTERRUPTED:
            return "interrupted"
        if self.code is None:
            return "error"
        return next((stop for below, stop in ASL_STOPS if self.code < below), "error")


def read(path: str | Path, kind: str | None = None) -> SolutionFile:
    """Read the solution file of a solver.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str, optional
        Who wrote it, a key of :data:`WRITTEN_BY`; found out from the content by default, as half of all solvers use
        the ending .sol.

    Returns
    -------
    SolutionFile
        Also for a file that says that there is no solution (``has_point`` is False then).

    Raises
    ------
    InvalidSolutionFile
        The file is missing, empty, cut off, or no solution file of a kind that is known here.
    """
    name = Path(path).name
    text = _text(path)
    if kind is None:
        kind = detect(text)
        if kind is None:
            first = next((line for line in text.splitlines() if line.strip()), "")
            raise InvalidSolutionFile(
                f"{name!r} is no solution file that can be recognised; it begins with {first.strip()[:60]!r}. Read are "
                f"{'; '.join(WRITTEN_BY.values())}. If it is one of them, say which with kind={', '.join(map(repr, WRITTEN_BY))}."
            )
    if kind not in READERS:
        raise InvalidSolutionFile(
            f"kind={kind!r} is no kind of solution file. Choose one of {', '.join(map(repr, READERS))}, or leave it out."
        )
    try:
        return READERS[kind](text)
    except (_Broken, ValueError, OverflowError) as error:  # the others: counts beyond any number of columns
        raise InvalidSolutionFile(
            f"{name!r} cannot be read as {WRITTEN_BY[kind]}: {error}. Let the solver write it again"
            " (a run that was killed leaves half a file), or name another kind=."
        ) from None


def detect(text: str) -> str | None:
    """The kind of solution file that ``text`` is the content of; None where nothing fits."""
    lines = [line.strip() for line in text.lstrip("\ufeff").split("\n", 400)[:400]]
    filled = [line for line in lines if line]
    if not filled:
        return None
    first = filled[0]
    if first.startswith(("<?xml", "<CPLEXSolution")):
        return "cplex" if "<CPLEXSolution" in text else None
    if first == "Model status" or (
        first == "Columns" and len(filled) > 1 and filled[1].startswith("Index Status")
    ):
        return "highs"
    if first.startswith(("solution status:", "objective value:", "no solution available")):
        return "scip"
    if any(re.match(r"# (Solution for model|Objective value)", line) for line in filled[:3]):
        return "gurobi"
    if any(re.match(r"s (mip|bas|ipt) \d", line) for line in filled[:40]) or (
        first.startswith("Problem:") and any(line.startswith("Non-zeros:") for line in filled[:5])
    ):
        return "glpk"
    if re.search(r" - objective value\s+\S+$", first):
        return "cbc"
    if first.split()[0] in ("NAME", "ENDATA"):
        return "xpress"
    if "Options" in lines or "\nOptions\n" in text:
        return "asl"
    return None


# -- parts ------------------------------------------------------------------------------------------------------------


class _Broken(Exception):
    """What is wrong with the file, in words."""


def _text(path: str | Path) -> str:
    name = Path(path).name
    try:
        raw = read_text_bytes(path)
    except FileNotFoundError:
        raise InvalidSolutionFile(
            f"There is no file {str(path)!r}. A solver that found nothing often writes none: look at its log."
        ) from None
    except OSError as error:
        raise InvalidSolutionFile(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    if not raw.strip():
        raise InvalidSolutionFile(
            f"{name!r} is empty. A solver that found nothing, or was stopped while writing, leaves such a file: look at its log."
        )
    if raw[4:10] == b"binary":
        raise InvalidSolutionFile(
            f"{name!r} is the binary form of an AMPL .sol. Give the solver the .nl that octsvm.write made, which is text:"
            " it then answers in text."
        )
    if b"\0" in raw:
        raise InvalidSolutionFile(
            f"{name!r} is no text file (zero byte at {raw.index(0)}). Unpack it if it is packed."
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSolutionFile(
            f"{name!r} is no text file: byte 0x{raw[error.start]:02x} at {error.start} is not UTF-8. Unpack it if it is packed."
        ) from None


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _Broken(f"{where} holds {text[:40]!r} where a number is due") from None


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, without their ends, with their numbers."""
    for k, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield k, line.rstrip()


def _claim(text: str) -> float | None:
    """A claimed objective; what stands for "none" or "infinite" is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < INFINITE else None


def _made(
    kind: str, *, ordered: list[float] | None = None, why: str = "", sparse: bool = False, **said: Any
) -> SolutionFile:
    """Finish a reader's work: a point needs columns, and numbers at all of them."""
    if not why:
        numbers = list((said.get("values") or {}).items()) if ordered is None else list(enumerate(ordered))
        bad = next(((c, v) for c, v in numbers if not abs(v) < INFINITE), None)  # also true of nan
        if bad is not None:
            where = f"column {bad[0]}" if ordered is None else f"column number {bad[0]} (from 0)"
            value = "nan" if math.isnan(bad[1]) else f"{bad[1]:g}, a solver's infinity"
            why = f"{where} stands at {value}"
        # The others leave out what stands at 0, here everything.
        elif not numbers and (kind not in SPARSE or kind in RARELY_SPARSE):
            why = "it holds no values of columns"
    given = None if ordered is None else np.array(ordered, dtype=np.float64)
    sparse = sparse or kind in SPARSE
    return SolutionFile(kind, ordered=given, has_point=not why, why=why, sparse=sparse, **said)


def _put(values: dict[str, float], name: str, value: float, line: int) -> None:
    if name in values:
        raise _Broken(f"line {line} gives column {name!r} a second value")
    values[name] = value


def _name_values(lines: Iterable[tuple[int, str]]) -> dict[str, float]:
    """Lines of a name and a number; what follows on the line is left aside."""
    values: dict[str, float] = {}
    for k, line in lines:
        parts = line.split()
        if parts[0].startswith("#"):
            continue
        if len(parts) < 2:
            raise _Broken(f"line {k} ends after {parts[0][:40]!r}, without a value")
        _put(values, parts[0], _number(parts[1], f"line {k}"), k)
    return values


# -- a reader for each kind -------------------------------------------------------------------------------------------

CODES = {2: "infeasible", 3: "unbounded", 5: "a failure"}


def _asl(text: str) -> SolutionFile:
    # Message, the line "Options", how many options, the options, four counts (rows, duals, columns, values), duals,
    # values, "objno 0 CODE", suffixes. Duals and values are all there or none.
    lines = text.splitlines()
    at = next((k for k, line in enumerate(lines) if line.strip() == "Options"), None)
    if at is None:
        raise _Broken("there is no line 'Options', after which the counts of rows and columns stand")
    status = " ".join(line.strip() for line in lines[:at] if line.strip())
    rest = iter([line.strip() for line in lines[at + 1 :]])
    place = at + 1

    def next_line(what: str) -> str:
        nonlocal place
        place += 1
        for line in rest:
            if line:
                return line
            place += 1
        raise _Broken(f"it ends at line {len(lines)}, where {what} is due: it was cut off")

    def whole(what: str) -> int:
        found = next_line(what)
        try:
            return int(found)
        except ValueError:
            raise _Broken(f"line {place} holds {found[:40]!r}, where {what} is due") from None

    count = whole("the number of options")
    if not 0 <= count <= 20:
        raise _Broken(f"line {place} says {count} options")
    options = [whole("an option") for _ in range(min(2, count))]
    # With 3 as the second option two more are counted than stand there, and a tolerance follows the counts.
    tolerance = len(options) == 2 and options[1] == 3
    options += [whole("an option") for _ in range(count - len(options) - 2 * tolerance)]
    rows, duals, columns, given = (
        whole(what)
        for what in ("the number of rows", "of their duals", "the number of columns", "of their values")
    )
    if duals not in (0, rows) or given not in (0, columns):
        raise _Broken(f"it has {given} values for {columns} columns and {duals} duals for {rows} rows")
    if tolerance:
        next_line("a tolerance")
    for _ in range(duals):
        _number(next_line("a dual value"), f"line {place}")
    ordered = [_number(next_line("a column's value"), f"line {place}") for _ in range(given)]
    last = next_line("'objno'").split()
    if last[0] != "objno":
        raise _Broken(f"line {place} holds {' '.join(last)[:40]!r}, where 'objno' is due")
    code = int(_number(last[2], f"line {place}")) if len(last) > 2 else None
    why = ""
    if not given:
        why = f"it says {status!r} and has no values" if status else "it has no values of columns"
    elif code is not None and code // 100 in CODES:
        why = f"its solve code {code} says {CODES[code // 100]}"
    return _made("asl", ordered=ordered, status=status, code=code, why=why)


def _highs(text: str) -> SolutionFile:
    lines = text.lstrip().splitlines()
    if lines[0].strip() == "Columns":
        return _highs_pretty(lines)
    filled = [line.strip() for line in lines if line.strip()]
    if filled[0] != "Model status":
        raise _Broken("the first line is not 'Model status'")
    status = filled[1] if len(filled) > 1 else ""
    at = next((k for k, line in enumerate(lines) if line.strip() == "# Primal solution values"), None)
    if at is None:
        raise _Broken("there are no 'Primal solution values': it was cut off")
    state = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if state == "None":
        return _made("highs", status=status, why=f"it says {status!r} and has no values")
    # Then its objective, in newer versions bound and gap, and the columns.
    facts: dict[str, str] = {}
    start = count = 0
    for k, line in enumerate(lines[at + 2 : at + 20], at + 2):
        size = re.fullmatch(r"# Columns (-?\d+)( sparse)?", line.strip())
        if size is not None:
            start, count = k + 1, int(size[1])  # negative in the sparse style: so many columns are not 0
            break
        if len(line.split()) == 2:
            name, value = line.split()
            facts[name] = value
    if not start or "Objective" not in facts:
        raise _Broken("after 'Primal solution values' its objective and its columns are due: it was cut off")
    rows = [(k, line) for k, line in enumerate(lines[start:], start + 1) if line.strip()][: abs(count)]
    values = _name_values(takewhile(lambda row: not row[1].startswith("#"), rows))
    if len(values) != abs(count):
        raise _Broken(f"it announces {abs(count)} columns and has {len(values)}: it was cut off")
    why = "" if state == "Feasible" else f"it calls its own point {state.lower()!r}"
    return _made(
        "highs",
        values=values,
        status=status,
        objective=_claim(facts["Objective"]),
        why=why,
        sparse=count < 0,
    )


def _highs_pretty(lines: list[str]) -> SolutionFile:
    head = lines[1] if len(lines) > 1 else ""
    if not {"Upper", "Primal", "Name"} <= set(head.split()):
        raise _Broken("the second line does not name the columns Upper, Primal and Name")
    low, high, name_at = head.index("Upper") + 5, head.index("Primal") + 6, head.index("Name")
    values: dict[str, float] = {}
    blank = 0
    found: dict[str, str] = {}
    for k, line in enumerate(lines[2:], 3):
        if line.strip() == "Rows":
            found = dict(
                part.split(":", 1) for part in lines[k:] if re.match(r"(Model status|Objective value):", part)
            )
            break
        cell, name = line[low:high].strip(), line[name_at:].strip()
        if not name:
            raise _Broken(f"line {k} has no name at its end")
        if cell:
            _put(values, name, _number(cell, f"line {k}"), k)
        else:
            blank += 1
    if "Model status" not in found:
        raise _Broken("there is no 'Model status' at its end: it was cut off")
    status = found["Model status"].strip()
    if blank and values:
        raise _Broken(f"{blank} columns have no value")
    objective = _claim(found.get("Objective value", ""))
    bad = status.lower() in ("infeasible", "unbounded", "primal infeasible or unbounded")
    return _made(
        "highs",
        values=values or None,
        status=status,
        objective=objective,
        why=f"it says {status!r}" if blank or bad else "",
    )


def _scip(text: str) -> SolutionFile:
    status, objective, why, claimed = "", None, "", False
    body: list[tuple[int, str]] = []
    for k, line in _numbered(text):
        if line.startswith("solution status:"):
            status = line.split(":", 1)[1].strip()
        elif line.startswith("objective value:"):
            objective, claimed = _claim(line.split(":", 1)[1]), True
        elif line.strip() == "no solution available":
            why = "it says 'no solution available'" + (f" ({status})" if status else "")
        else:
            body.append((k, line))
    if why:
        return _made("scip", status=status, why=why)
    if not claimed:
        raise _Broken("there is no line 'objective value:'")
    return _made("scip", values=_name_values(body), status=status, objective=objective)


def _gurobi(text: str) -> SolutionFile:
    claimed = re.search(r"^# Objective value\s*=?\s*(\S+)", text, re.MULTILINE)
    values = _name_values(_numbered(text))
    return _made("gurobi", values=values, objective=_claim(claimed[1]) if claimed else None)


def _cplex(text: str) -> SolutionFile:
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise _Broken(f"its XML is not well formed ({error}): it was cut off") from None
    found = root if root.tag == "CPLEXSolution" else root.find("CPLEXSolution")  # a pool: its first
    if found is None:
        raise _Broken("it holds no <CPLEXSolution>")
    header = found.find("header")
    facts = {} if header is None else header.attrib
    values: dict[str, float] = {}
    for k, entry in enumerate(found.iterfind("variables/variable")):
        name, value = entry.get("name"), entry.get("value")
        if name is None or value is None:
            raise _Broken(f"its variable number {k} has no name or no value")
        _put(values, name, _number(value, f"variable {name!r}"), k)
    why = "it says primalFeasible=0" if facts.get("primalFeasible", "1") == "0" else ""
    return _made(
        "cplex",
        values=values,
        status=facts.get("solutionStatusString", ""),
        objective=_claim(facts.get("objectiveValue", "")),
        why=why,
    )


def _cbc(text: str) -> SolutionFile:
    lines = list(_numbered(text))
    parts = re.fullmatch(r"\s*(.*?) - objective value\s+(\S+)", lines[0][1])
    if parts is None:
        raise _Broken("its first line says no '... - objective value ...'")
    status = parts[1]
    values: dict[str, float] = {}
    last = -1
    for k, line in lines[1:]:
        cells = line.removeprefix("**").split()
        if len(cells) < 3 or not cells[0].isdigit():
            raise _Broken(f"line {k} is not an index, a name and a value")
        index = int(cells[0])
        if index <= last:
            values = {}  # with printingOptions all the rows stand before the columns, and both count from 0
        last = index
        _put(values, cells[1], _number(cells[2], f"line {k}"), k)
    words = status.lower()
    none = "infeasible" in words or "unbounded" in words or "continuous used" in words
    why = f"it says {status!r}" if none else ""
    return _made("cbc", values=values, status=status, objective=None if why else _claim(parts[2]), why=why)


MIP_STATES = {
    "o": "optimal",
    "f": "feasible",
    "n": "no feasible solution",
    "i": "infeasible",
    "u": "undefined",
}


def _glpk(text: str) -> SolutionFile:
    lines = list(_numbered(text))
    if lines[0][1].startswith("Problem:"):
        return _glpk_printed(lines)
    status, complete = "", False
    ordered: list[float] = []
    facts: list[str] = []
    for k, line in lines:
        cells = line.split()
        if cells[0] == "c":
            said = re.match(r"c Status:\s+(.*)", line)
            status = said[1].strip() if said else status
        elif cells[0] == "s":
            facts = cells
        elif cells[0] == "j":
            # j column value, or j column state value dual for a basic solution
            at = 3 if facts[1:2] == ["bas"] else 2
            if len(cells) <= at or cells[1] != str(len(ordered) + 1):
                raise _Broken(f"line {k} is not the value of column {len(ordered) + 1}")
            ordered.append(_number(cells[at], f"line {k}"))
        elif cells[0] == "e":
            complete = True
        elif cells[0] != "i":
            raise _Broken(f"line {k} begins with {cells[0][:20]!r}")
    if len(facts) < 6:
        raise _Broken("there is no line 's mip ROWS COLUMNS STATE OBJECTIVE'")
    if not complete or len(ordered) != int(_number(facts[3], "the line 's'")):
        raise _Broken(f"it announces {facts[3]} columns and has {len(ordered)}: it was cut off")
    state = facts[4]
    status = status or MIP_STATES.get(state, state)
    why = "" if state in ("o", "f") else f"it says {status!r}"
    return _made(
        "glpk", ordered=ordered, status=status, objective=None if why else _claim(facts[-1]), why=why
    )


def _glpk_printed(lines: list[tuple[int, str]]) -> SolutionFile:
    status, objective, place, open_name, complete = "", None, "", "", False
    values: dict[str, float] = {}
    for k, line in lines:
        cells = line.split()
        if line.startswith("Status:"):
            status = line.split(":", 1)[1].strip()
        elif line.startswith("Objective:"):
            said = re.search(r"= (\S+)", line)
            objective = _claim(said[1]) if said else None
        elif cells[:3] in (["No.", "Row", "name"], ["No.", "Column", "name"]):
            place = cells[1]
        elif cells[0] in ("Integer", "Karush-Kuhn-Tucker"):
            place = ""
        elif line.startswith("End of output"):
            complete = True
        elif place == "Column" and not line.startswith("--"):
            if not open_name:  # a long name has its line to itself
                open_name, cells = cells[1] if len(cells) > 1 else "", cells[2:]
            if cells[:1] and cells[0] in ("*", "B", "NL", "NU", "NF", "NS"):
                cells = cells[1:]
            if cells:
                _put(values, open_name, _number(cells[0], f"line {k}"), k)
                open_name = ""
    if not complete:
        raise _Broken("there is no 'End of output': it was cut off")
    found = status.split()[-1:] in (["OPTIMAL"], ["FEASIBLE"], ["NON-OPTIMAL"])  # the last: at a limit
    why = "" if found else f"it says {status!r}"
    return _made("glpk", values=values, status=status, objective=None if why else objective, why=why)


def _xpress(text: str) -> SolutionFile:
    values: dict[str, float] = {}
    for k, line in _numbered(text):
        cells = line.split()
        if cells[0] == "ENDATA" or (cells[0] == "NAME" and values):
            break  # of several solutions the first
        if cells[0] == "NAME":
            continue
        if len(cells) != 3 or cells[0] not in ("C", "B", "D", "I"):
            raise _Broken(f"line {k} is not 'C', a column's name and a value")
        _put(values, cells[1], _number(cells[2], f"line {k}"), k)
    else:
        raise _Broken("there is no ENDATA at its end: it was cut off")
    return _made("xpress", values=values)


READERS: dict[str, Callable[[str], SolutionFile]] = {
    "asl": _asl,
    "highs": _highs,
    "scip": _scip,
    "gurobi": _gurobi,
    "cplex": _cplex,
    "cbc": _cbc,
    "glpk": _glpk,
    "xpress": _xpress,
}
