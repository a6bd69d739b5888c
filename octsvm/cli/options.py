"""What the commands share: exit codes, the ends of a run, options, files, and what goes to the terminal."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import io
import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from .. import options as declared
from ..errors import EngineFailed, InvalidData, OctsvmError, OutputNotWritable, unhidden_interrupts
from ..formulations.replace_file import require_writable
from . import csv_form, table_preparation
from .built_in_tables import BUILT_IN
from .late_import import LateImport

if TYPE_CHECKING:
    from rich.console import Console

    from ..formulations.trees import Tree
    from .csv_tables import CsvTable
    from .fitted_file import FitRecord

OK, UNEXPECTED, WRONG_INPUT, NO_TREE, UNVERIFIED, DISAGREEMENT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
TERMINATED = 143

FIT_EXIT_CODES = """\b
Exit codes:
    0  done (also when Ctrl-C ended the solve early: the best tree is shown, its stop is "interrupted")
    1  something unexpected; or the solver broke down without an answer
    2  wrong usage, data that cannot be used, a target that cannot be written, or a solver that is not here, does not
       take this model, or has a licence too small for it; the message says what to do
    3  no tree: the model has no solution
    4  a tree, but unverified: the solver's answer did not hold outside the solver
  130  interrupted (Ctrl-C) outside the solve"""

EXIT_CODES = """\b
Exit codes:
    0  done
    1  something unexpected
    2  wrong usage, data that cannot be used, or a target that cannot be written; the message says what to do
  130  interrupted (Ctrl-C)"""

SOLVER_EXIT_CODES = """\b
Exit codes:
    0  done
    1  something unexpected
    2  wrong usage, data that cannot be used, or a solver that is not here, does not take this model, or has a licence
       too small for it; the message says what to do
  130  interrupted (Ctrl-C)"""

# -- the ends of a run --------------------------------------------------------------------------------------------


class Commands(click.Group):
    """Turns every way a command can end into an exit code and at most one line on stderr."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run, and leave the process with the exit code."""
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        _open_closed_streams()
        for name in ("scipy.stats", "scipy.integrate", "scipy.spatial"):
            LateImport(name).install()
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a letter of a column's name is no reason to fail.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            with unhidden_interrupts():
                code = run(*args, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            with _shown():
                error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt) as error:
            say("Interrupted.")
            code = TERMINATED if isinstance(error.__cause__ or error, Terminated) else INTERRUPTED
        except BrokenPipeError:
            code = _nobody_reads()
        except Exception as error:
            code = _failed(error)
        if sys.stdout is sys.__stdout__:
            # Python may still wait for a solver's thread; Ctrl-C then ends the process, without a traceback.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            if "highspy" in sys.modules:
                # Taking an interrupted engine's threads apart at the end may abort the process.
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(OSError, ValueError, AttributeError):
                        stream.flush()  # type: ignore[union-attr]
                _end_workers()
                os._exit(code if isinstance(code, int) else OK)
        sys.exit(code if isinstance(code, int) else OK)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would make a failure of a closed pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _nobody_reads()
        except OctsvmError as error:
            error.args = (in_options(str(error), self.commands[ctx.invoked_subcommand or ""]),)
            raise


def in_options(message: str, command: click.Command) -> str:
    """A message that names options of ``command`` (``--kind 'x'``) where it named arguments of Python (``kind='x'``, ``kind=``)."""
    flags = {
        flag[2:].replace("-", "_"): flag for p in command.params for flag in p.opts if flag.startswith("--")
    }
    if "jobs" in flags:
        flags["n_jobs"] = flags["jobs"]
    if "no_scale" in flags:
        message = message.replace("Leave scale=True", "Leave it out").replace("scale=False", "--no-scale")
    message = message.replace(", or None.", ".")  # an option is left out for that

    def said(found: re.Match[str]) -> str:
        elsewhere, name, true = found.groups()
        # --impute kind=median is of a column, and octsvm.solve(model, solver='scip') a call of Python.
        if elsewhere:
            return found[0]
        value_follows = not true and message[found.end() : found.end() + 1].strip(" .,;)")
        return flags[name] + (" " if value_follows else "")

    return re.sub(rf"(--[\w-]+ |\w\(|model, |\.\.\., |')?\b({'|'.join(flags)})=(True\b)?", said, message)


def _end_workers() -> None:
    """End what os._exit leaves behind: idle workers, who hold pipes open for minutes, and locks, whose leak Python warns of."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if (workers := getattr(loky, "_executor", None)) is not None:
        workers.terminate(kill_workers=True)
    if "multiprocessing.util" in sys.modules:
        sys.modules["multiprocessing.util"]._exit_function()


def _open_closed_streams() -> None:
    """Where a stream was closed before the start (``>&-``), what is printed there is dropped.

    Its number would be given to the next file that is opened, and what C libraries print would go into that.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (to the end of the process)


def _drop(stream: Any) -> None:
    """Send the rest to nowhere: Python would fail on it again at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _shown() -> Iterator[None]:
    """Show what nothing depends on: where stderr is full, broken or closed, it is dropped."""
    try:
        yield
    except (OSError, ValueError):
        _drop(sys.stderr)


def _nobody_reads() -> int:
    """Who read the output wants no more of it: no fault, as files are written before anything is printed."""
    _drop(sys.stdout)
    return OK


OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF)


def _failed(error: Exception) -> int:
    if isinstance(error, OctsvmError):
        say(f"Error: {error}")
        return UNEXPECTED if isinstance(error, EngineFailed) else WRONG_INPUT
    if isinstance(error, MemoryError):
        say(
            "Error: there is not enough memory for this model. Take a lower --depth or fewer rows; octsvm size tells "
            "how large a model gets before it is built."
        )
        return UNEXPECTED
    if isinstance(error, OSError) and error.filename is None and error.errno in OUTPUT_ERRORS:
        # Files are written by functions that say which; this is stdout.
        _drop(sys.stdout)
        say(f"Error: the output cannot be written: {error.strerror}. Send it elsewhere, or free some space.")
        return WRONG_INPUT
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        say(
            f"Error: {error.object[max(0, error.start - 20) : error.end + 20]!a} holds half of a character, which cannot be "
            "written. Correct it in the file that it comes from."
        )
        return WRONG_INPUT
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    say(
        f"Error: unexpected {type(error).__name__}{place}: {text}. This is a fault in octsvm; please report it."
    )
    return UNEXPECTED


# -- the terminal -------------------------------------------------------------------------------------------------


def say(text: str, nl: bool = True) -> None:
    """One line on stderr."""
    kind = re.match(r"(Error|Warning):", text)
    if kind is not None and coloured(sys.stderr):
        colour = "red" if kind[1] == "Error" else "yellow"
        text = click.style(kind[0], fg=colour, bold=True) + text[kind.end() :]
    with _shown():
        click.echo(text, err=True, nl=nl)


def echo_json(content: Mapping[str, Any], schema: str = "") -> None:
    """One JSON object on stdout; ``schema`` names what it is, where it does not say so itself."""
    head = {"schema": f"octsvm.{schema}", "version": 1} if schema else {}
    click.echo(json.dumps(head | dict(content), indent=1, allow_nan=False))


def coloured(stream: Any) -> bool:
    """Whether colours are wanted: on a terminal that can show them, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def console() -> Console:
    """Stdout for tables and pictures; no escape codes where no colours are wanted."""
    from rich.console import Console

    system: Any = "auto" if coloured(sys.stdout) else None
    return Console(
        file=sys.stdout, color_system=system, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


@contextlib.contextmanager
def spoken_warnings() -> Iterator[None]:
    """Warnings as one line each, without the place in the code."""
    command = click.get_current_context().command
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            say(f"Warning: {in_options(str(message), command)}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextlib.contextmanager
def clean_stdout() -> Iterator[None]:
    """Drop what libraries print on the C level's stdout (HiGHS greets there): ours holds the result only."""
    try:
        redirect = sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        redirect = False
    if not redirect:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).fflush(None)  # what C buffered must not come out behind our back later
        os.dup2(kept, 1)
        os.close(kept)


class Terminated(KeyboardInterrupt):
    """SIGTERM came, as from ``kill``, ``timeout`` or a queue whose time is over: a run ends as after Ctrl-C."""


@contextlib.contextmanager
def noted_interrupts() -> Iterator[list[type[KeyboardInterrupt]]]:
    """A list of how often Ctrl-C was pressed or SIGTERM came: where a library swallowed the exception, it still says so."""
    asked: list[type[KeyboardInterrupt]] = []
    raised = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}

    def note(number: int, _: Any) -> NoReturn:
        asked.append(raised[signal.Signals(number)])
        raise asked[-1]

    try:
        before = {number: signal.signal(number, note) for number in raised}
    except ValueError:  # signals belong to the main thread, and this is another one
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in before.items():
            if handler is not None:  # of the program that Python runs in
                signal.signal(number, handler)


# -- options ------------------------------------------------------------------------------------------------------


class Suggested(click.ParamType):
    """A text that the shell completes by ``names``; whether it is one is for the toolkit to say, which knows the nearest name.

    The value is what ``read`` makes of it; a ValueError of that says what is wrong.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str] | Callable[[], Sequence[str]] = (),
        files: bool = False,
        read: Callable[[str], Any] | None = None,
    ) -> None:
        self.name, self.names, self.files, self.read = name, names, files, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What was read."""
        try:
            return value if self.read is None else self.read(value)
        except OctsvmError:
            raise
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin so; where files are possible too, those of this folder or the shell's own completion."""
        known = self.names() if callable(self.names) else self.names
        names = [n for n in known if n.startswith(incomplete)]
        if self.files and not incomplete:
            names += sorted(p.name for p in Path().glob("*.csv"))
        elif self.files and not names:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(n) for n in names]


def _formulation(text: str) -> str:
    """A formulation's name, or ``FILE.py:CLASS`` for one of the user's own, which is registered."""
    if ":" not in text:
        return text
    from ..formulations.registry import register_from

    return register_from(text).name


def _number_or_name(text: str) -> float | str:
    with contextlib.suppress(ValueError):
        return float(text)
    return text


def _count_or_share(text: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a count of rows (5) nor a share of them (0.05).") from None


def _work_limit(text: str) -> dict[str, int]:
    """``500`` nodes, or ``nodes=500,rounds=3``."""
    out: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition("=")
        if name not in ("", "nodes", "rounds") or not re.fullmatch(r"0*[1-9]\d*", number.strip()):
            raise ValueError(f"{text!r} should be a number of nodes (500), or nodes=500,rounds=3.")
        out[name or "nodes"] = int(number)
    return out


def name_value(whose: str) -> Callable[[str], tuple[str, Any]]:
    """``name=value``, the value an int, a float, a bool or a text; ``whose`` says whose name it is."""

    def read(given: str) -> tuple[str, Any]:
        name, sign, text = (part.strip() for part in given.partition("="))
        if not sign or not name:
            raise ValueError(f"{given!r} should be {whose}, =, and a value.")
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return name, kind(text)
        return name, {"true": True, "false": False}.get(text.lower(), text)

    return read


def formulation_names() -> Sequence[str]:
    """What --formulation takes by name."""
    from ..formulations.registry import names

    return names()


def solver_names() -> Sequence[str]:
    """What --solver takes: "auto", and the names of the solver table as far as it can be read."""
    from .. import solvers

    try:
        return (solvers.AUTO, *solvers.table())
    except Exception:  # a completion has nowhere to complain
        return ()


Function = TypeVar("Function", bound=Callable[..., Any])


def all_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[Function], Function]:
    """One decorator that adds all ``options``, in their order."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


TABLE = Suggested("table", BUILT_IN, files=True)

table_options = all_of(
    [
        click.option("--label", metavar="NAME", help="Column of the labels in a CSV file; the last one by default."),
        *csv_form.options("a CSV file"),
        *table_preparation.options,
        click.option(
            "--against-rest", metavar="CLASS", help='Make two classes of many: CLASS, and all others as "not CLASS".'
        ),
    ]
)  # fmt: skip


NUMBER = "NUMBER"  # among names to choose from: a number will do as well
# Parameters of the formulations: what their values are, a tuple of names to choose from or a type, and a line of help.
PARAMETERS: dict[str, tuple[Any, str]] = {
    "depth": (int, "Levels of splits (oct, oct_h, moctsvm); levels above the last one (octsvm)."),
    "alpha": (float, "Cost of a split, in errors (oct, oct_h)."),
    "n_min": (
        Suggested("count|share", read=_count_or_share),
        "Rows in every leaf in use: a count or a share (oct, oct_h).",
    ),
    "complexity": (("splits", "features"), "What alpha charges (oct, oct_h)."),
    "error_scale": (("count", "baseline"), "Unit of the errors (oct, oct_h)."),
    "mu": (float, "Separation of an oblique split (oct_h)."),
    "c1": (float, "Cost of a unit of error (re_svm, octsvm, moctsvm)."),
    "c2": (
        float,
        "Cost of giving up a label (re_svm, octsvm), or of a row in a leaf of another class (moctsvm).",
    ),
    "c3": (float, "Cost of a split (octsvm, moctsvm)."),
    "mu_svm": (float, "How far below 0 a row that goes left must be (octsvm, moctsvm)."),
    "norm": (("l2", "l1"), "Norm of the margin (re_svm, octsvm, moctsvm)."),
    "variant": (
        ("flow", "rank", "bd", "compact", "paper", "levels"),
        "Another exact model: rank or bd (oct), compact or paper, levels (moctsvm).",
    ),
    "big_m": (float, "In place of the bound from the data (re_svm, octsvm)."),
    "kernel": (
        ("linear", "poly", "rbf", "auto"),
        "Splits in the feature space of a kernel (re_svm, octsvm); with auto, octsvm tune tries rbf beside none.",
    ),
    "gamma": ((NUMBER, "scale", "auto"), "Of the kernels poly and rbf."),
    "degree": (int, "Of the kernel poly."),
    "coef0": (float, "Of the kernel poly."),
}


def _parameter(name: str, kind: Any, line: str) -> Callable[[Any], Any]:
    metavar = None
    if isinstance(kind, tuple):
        metavar = "|".join(kind) if len(kind) < 4 else "NAME"
        names = [k for k in kind if k != NUMBER]
        kind = Suggested(name.rpartition("_")[2], names, read=_number_or_name if NUMBER in kind else None)
    return click.option("--" + name.replace("_", "-"), type=kind, metavar=metavar, help=line)


formulation_options = all_of(
    [
        click.option(
            "--formulation", "-f", metavar="NAME", default="octsvm", show_default=True,
            type=Suggested("formulation", formulation_names, read=_formulation),
            help="oct, oct_h and moctsvm (any number of classes), re_svm and octsvm (two classes).",
        ),
        *(_parameter(name, *about) for name, about in PARAMETERS.items()),
        click.option(
            "--param", "own", multiple=True, metavar="NAME=VALUE",
            type=Suggested("name=value", read=name_value("the name of a parameter")),
            help="Any parameter of the formulation, by its own name; may be repeated. Of use where --formulation is FILE.py:CLASS, "
            "a formulation of your own.",
        ),
    ]
)  # fmt: skip

SOLVER = Suggested("solver", solver_names)


START = "octsvm.start"  # where a context keeps the path of the tree that was read
INPUTS = ("tree", "table", "solution", "sidecar", "store")  # parameters that name files to be read


def _read_start(ctx: click.Context, _: click.Parameter, path: str | None) -> Tree | None:
    ctx.meta[START] = path
    return None if path is None or ctx.resilient_parsing else read_tree(path)


def _check_target(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Refuse a target that cannot be written: better now than after the work."""
    if path is not None and not ctx.resilient_parsing:
        require_writable(path)
    return path


CALLBACKS: dict[str, Callable[..., Any]] = {"start": _read_start, "log": _check_target}


def start_option(line: str) -> Callable[[Function], Function]:
    """A saved tree, which the command is handed; ``line`` is its line of help."""
    return click.option("--start", metavar="TREE.json", help=line, callback=_read_start)


# Endings of files that are no text: programs go by them.
NO_TEXT = (".docx", ".feather", ".gz", ".ods", ".orc", ".parquet", ".pdf", ".xls", ".xlsx", ".zip")


def out_option(metavar: str, line: str, **more: Any) -> Callable[[Function], Function]:
    """A file to be written, refused at once where that cannot be, where the command reads it, or where it would be no ``metavar``."""
    name, _, form = metavar.partition(".")

    def add(function: Function) -> Function:
        @functools.wraps(function)
        def checked(**options: Any) -> Any:
            read = [options.get(name) for name in INPUTS]
            out = options["out"]
            if out is not None and "|" not in form and out.lower().endswith(NO_TEXT):
                raise OutputNotWritable(
                    f"--out {out}: what is written is {form.upper()}, and programs expect something else in a file of that "
                    f"name. End it in .{form}, as in {name.lower()}.{form}."
                )
            for target in filter(None, (out, options.get("log"))):
                require_no_input(target, *read, click.get_current_context().meta.get(START))
            return function(**options)

        return click.option("--out", metavar=metavar, help=line, callback=_check_target, **more)(checked)  # type: ignore[return-value]

    return add


def solve_options(
    who: str, *but: str, defaults: bool = False, **lines: str
) -> Callable[[Function], Function]:
    """The options of a solve that ``who`` takes and the command line can say, but for some; each is declared once.

    ``lines`` replace lines of help. A number that is not given stays None, so that the toolkit's own default holds,
    unless ``defaults`` are wanted.
    """
    fields = declared.SolveOptions.__dataclass_fields__
    added = []
    for name, known in declared.declarations(who).items():
        if name in but or declared.COMMAND not in known.where:
            continue
        default: Any = fields[name].default
        flag = "--" + name.replace("_", "-")
        line = lines.get(name, known.help)
        more: dict[str, Any] = {"metavar": known.metavar, "type": _click_type(name, fields[name].type)}
        if known.choices:
            more["type"] = click.Choice(known.choices)
        if isinstance(default, str) or name == "seed" or (defaults and default is not None):
            more |= {"default": default, "show_default": True}
        elif default is False:
            more = {"is_flag": True, "default": None}
        elif default is not None:
            text = f"{default:g}" if default >= 1e-3 else f"{default:.0e}".replace("e-0", "e-")
            line += f"  [default: {text}]"
        if name in CALLBACKS:
            more["callback"] = CALLBACKS[name]
        if name == "options":
            more["multiple"] = True
        added.append(click.option(flag, "native" if name == "options" else name, help=line, **more))
    return all_of(added)


def _click_type(name: str, annotation: Any) -> Any:
    special = {
        "solver": SOLVER,
        "work_limit": Suggested("nodes", read=_work_limit),
        "options": Suggested("name=value", read=name_value("the solver's own name of an option")),
    }
    return special.get(name) or {"float": float, "int": int}.get(str(annotation).split(" |")[0], str)


def given_options(who: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a solve that were given on the command line, as the toolkit takes them."""
    found = {name: options[name] for name in declared.declarations(who) if options.get(name) is not None}
    if options.get("native"):
        found["options"] = dict(options["native"])
    return found


form_options = all_of(csv_form.options("DATA.csv"))
scale_option = click.option(
    "--no-scale", is_flag=True, help="Take the features as they are (in [0, 1], except for oct)."
)
seed_of_toy = click.option(
    "--seed", type=int, default=0, show_default=True, help="For the generated table toy."
)
model_options = all_of([table_options, formulation_options, scale_option, seed_of_toy])
lowering_start = start_option("A saved tree that the model admits; it lowers the big-M constants.")


def weights_option(default: int, line: str) -> Callable[[Function], Function]:
    """How many weights of a split are shown, in which units."""
    return all_of(
        [
            click.option(
                "--units", type=click.Choice(["original", "scaled"]), default="original", show_default=True,
                help="Of weights and thresholds: the table's own, or [0, 1] on the training rows.",
            ),
            click.option(
                "--weights", "most", type=click.IntRange(min=1), default=default, show_default=True, metavar="COUNT",
                help=line,
            ),
        ]
    )  # fmt: skip


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text."
)

quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def params_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The formulation's parameters that were given."""
    given = {name: options[name] for name in PARAMETERS if options[name] is not None}
    for name, value in options["own"]:
        if name in given:
            raise click.UsageError(f"{name} is given more than once. Give it once.")
        given[name] = value
    return given


# -- tables and files ---------------------------------------------------------------------------------------------


def build(data: CsvTable, options: Mapping[str, Any]) -> Any:
    """The model of a table; what the toolkit says about the data is said with the table's name."""
    import octsvm

    with spoken_warnings(), named_table(data, data.y):
        return octsvm.build(
            options["formulation"],
            data.X,
            data.y,
            scale=not options["no_scale"],
            start=options["start"],
            weights=table_preparation.row_weights(data.y, options["class_weight"]),
            **params_of(options),
        )


def load(name: str, options: Mapping[str, Any], *, prepare: bool = True) -> CsvTable:
    """The table called ``name``, checked, in two classes where that was asked for.

    With ``prepare`` its features are made of all rows; else they are its columns, for :func:`table_preparation.prepared`.
    """
    from . import csv_tables as tables
    from . import table_remarks

    if options["seed"] < 0:
        raise click.BadParameter(f"{options['seed']} should be 0 or more.", param_hint="'--seed'")
    data = tables.load(
        name,
        label=options["label"],
        form=csv_form.form_given(options),
        features=options["features"],
        drop=options["drop"],
        as_text=[part.strip() for text in options["encode"] for part in (text, *text.split(","))],
        missing=options["missing"],
        seed=options["seed"],
    )
    if options["skip_unlabelled"]:
        data = tables.labelled_only(data)
    for remark in data.remarks:
        say(f"Warning: {remark}")
    asked = table_preparation.wanted(data, options)
    for name in asked.get("encode", ()):
        for remark in table_remarks.on_encoded(data.X[name], name, csv_form.form_given(options).writing):
            say(f"Warning: {data.name}: {remark}")
    data.check(asked)
    if options["against_rest"] is not None:
        data = tables.against_rest(data, options["against_rest"])
    return table_preparation.prepared(data, options) if prepare else data


@contextlib.contextmanager
def named_table(data: CsvTable, y: Any) -> Iterator[None]:
    """What the toolkit says about the data is said with their name, and with what it means on the command line."""
    try:
        yield
    except InvalidData as error:
        message, classes = str(error), sorted({str(v) for v in y})
        if "separates two classes" in message and len(classes) > 2:
            named = classes[len(classes) // 2]
            quoted = f"'{named}'" if re.search(r"[^\w.-]", named) else named
            message += f" Here: --formulation oct, or --against-rest {quoted}."
        raise InvalidData(f"{data.name}: {message}") from None


def read_tree(path: str) -> Tree:
    """A saved tree; what is wrong with the file is said with its name."""
    return read_fitted(path)[0]


def read_fitted(path: str) -> tuple[Tree, FitRecord | None]:
    """A saved tree, and what its file says of the fit; what is wrong with the file is said with its name."""
    from ..formulations.read_file import read_json
    from ..formulations.trees import Tree
    from .fitted_file import record_of

    hint = 'Give a file that "octsvm fit --out" saved.'
    if not os.path.exists(path):
        raise InvalidData(f"{path}: there is no such file. {hint}")
    try:
        content = read_json(Path(path), "saved tree")
        return Tree.from_dict(content), record_of(content)
    except InvalidData as error:
        raise InvalidData(f"{path}: {error} {hint}") from None


def require_no_input(out: str, *inputs: str | None) -> None:
    """Refuse a target that is one of the files which the command reads."""
    # A terminal or a pipe may well be both.
    if os.path.isfile(out) and any(os.path.exists(i) and os.path.samefile(i, out) for i in inputs if i):
        raise OutputNotWritable(
            f"{out}: this command reads that file, and what it writes would replace it. Give another name."
        )
