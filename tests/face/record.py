"""Records what users and their files depend on: `python tests/face/record.py FOLDER`.

Everything is found by public means: documented imports, the command line, and files that the package writes. What was
recorded of an earlier state lies in ``recorded/``; ``test_face.py`` compares the present with it. Files that are
there already are written over, so record into ``recorded/`` only where the face is meant to change.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.resources
import inspect
import io
import json
import pickle
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import octsvm

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
RECORDED = Path(__file__).resolve().parent / "recorded"

NAMES = ["width", "height"]
X = np.array([[1, 8], [2, 3], [3, 9], [4, 1], [5, 6], [6, 2], [7, 7], [8, 4], [9, 5], [10, 10]], dtype=float)
Y = np.array(["low", "low", "low", "high", "low", "high", "high", "low", "high", "high"])
FRESH = np.column_stack([np.linspace(0, 11, 40), (np.arange(40) * 7 % 40) / 4])
TABLE = (
    ",".join([*NAMES, "kind"]) + "\n" + "".join(f"{a:g},{b:g},{c}\n" for (a, b), c in zip(X, Y, strict=True))
)

# What each formulation is fitted with: small enough for a proof at once, and no constant tree.
FITS: dict[str, dict[str, Any]] = {
    "oct": {"depth": 2, "alpha": 0.1},
    "oct_h": {"depth": 1, "alpha": 0.1},
    "re_svm": {"c1": 20.0, "c2": 8.0},
    "octsvm": {"depth": 1, "c1": 10.0, "c2": 1.0, "c3": 0.1},
}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oct": lambda: octsvm.OCTClassifier(max_depth=2, alpha=0.1),
    "oct_h": lambda: octsvm.OCTHClassifier(max_depth=1, alpha=0.1, class_weight={"low": 2.0, "high": 1.0}),
    "re_svm": lambda: octsvm.RESVMClassifier(c1=20.0, c2=8.0),
    "octsvm": lambda: octsvm.OCTSVMClassifier(max_depth=1, c1=10.0, c2=1.0, c3=0.1),
}
# Every formulation with each variant and norm that it has.
MODELS: list[tuple[str, dict[str, Any]]] = [
    *(("oct", {"depth": 2, "variant": v}) for v in ("flow", "rank", "bd")),
    *(("oct_h", {"depth": 2, "variant": "bd", "complexity": c}) for c in ("splits", "features")),
    *(("re_svm", {"variant": v, "norm": n}) for v in ("compact", "paper") for n in ("l2", "l1")),
    *(("octsvm", {"depth": 2, "variant": v, "norm": n}) for v in ("compact", "paper") for n in ("l2", "l1")),
]
# Paths that pages tell of in words, or whose members they do.
TOLD = ["octsvm.cli", "octsvm.datasets", "octsvm.experiments", "octsvm.formulations.blocks", "octsvm.bridges"]


# -- names and signatures -----------------------------------------------------------------------------------------


def found(path: str) -> Any:
    """What a dotted name stands for."""
    parts = path.split(".")
    thing = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 2):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(".".join(parts[:k]))
    return thing


def documented() -> list[str]:
    """Dotted names in the pages and the README that can be imported, and those of the packages in ``TOLD``."""
    wanted = {f"octsvm.{name}" for name in octsvm.__all__} | set(TOLD)
    for path in [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "docs").rglob("*.py")),
    ]:
        text = path.read_text(encoding="utf-8")
        wanted |= set(re.findall(r"\boctsvm(?:\.[A-Za-z_]\w*)+", text))
        for module, names in re.findall(r"from (octsvm[\w.]*) import (\([^)]*\)|[^\n]*)", text):
            wanted |= {f"{module}.{name.split(' as ')[0].strip()}" for name in names.strip("()").split(",")}
        for module, names in re.findall(
            r"::: (octsvm[\w.]*)\n\s+options:.*?\bmembers: \[([^\]]*)\]", text, re.DOTALL
        ):
            wanted |= {f"{module}.{name.strip()}" for name in names.split(",")}
    for package in TOLD:
        wanted |= {f"{package}.{name}" for name in getattr(found(package), "__all__", [])}
    there = []
    for name in sorted(wanted):
        try:
            found(name)
        except (ImportError, AttributeError):  # a page's own name, such as octsvm.md
            continue
        there.append(name)
    return there


def plain(value: Any) -> str:
    """A default as text, without what differs from process to process."""
    text = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in text or text.startswith("<") else text


def signature(thing: Any) -> list[dict[str, str]] | None:
    """Names, kinds and defaults; annotations may be written otherwise and mean the same."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        {"name": p.name, "kind": p.kind.name}
        | ({} if p.default is inspect.Parameter.empty else {"default": plain(p.default)})
        for p in parameters
    ]


def described(thing: Any) -> dict[str, Any]:
    if inspect.ismodule(thing):
        return {"is": "module", "all": sorted(getattr(thing, "__all__", []))}
    if inspect.isclass(thing):
        return _class(thing)
    if callable(thing):
        return {"is": "function", "signature": signature(thing)}
    return {"is": type(thing).__name__}


def _known(base: type) -> bool:
    """Whether users may ask for it: what is public, built in, or another package's."""
    return base.__name__ in octsvm.__all__ or base.__module__.partition(".")[0] != "octsvm"


def _class(cls: type) -> dict[str, Any]:
    out: dict[str, Any] = {
        "is": "class",
        "bases": [c.__name__ for c in cls.__mro__[1:] if c is not object and _known(c)],
        "signature": signature(cls),
    }
    if hasattr(cls, "model_json_schema"):
        schema = cls.model_json_schema()["properties"]
        unsaid = ("title", "description")
        out["fields"] = {n: {k: v for k, v in f.items() if k not in unsaid} for n, f in schema.items()}
    elif dataclasses.is_dataclass(cls):
        out["fields"] = {f.name: {} for f in dataclasses.fields(cls)}
    elif hasattr(cls, "_fields"):
        out["fields"] = {name: {} for name in cls._fields}
    members = {}
    for name in dir(cls):
        owner = next((c for c in cls.__mro__ if name in vars(c)), None)
        if name.startswith("_") or owner is None or owner.__module__.partition(".")[0] != "octsvm":
            continue
        if name in out.get("fields", {}):
            continue
        member = inspect.getattr_static(cls, name)
        if isinstance(member, (staticmethod, classmethod)) or inspect.isroutine(member):
            members[name] = {"is": "method", "signature": signature(getattr(cls, name))}
        else:
            members[name] = {"is": "attribute"}
    out["members"] = members
    return out


def names() -> dict[str, Any]:
    return {"all": list(octsvm.__all__), "paths": {path: described(found(path)) for path in documented()}}


# -- the command line ---------------------------------------------------------------------------------------------


def called(*args: Any, **settings: Any) -> Any:
    from click.testing import CliRunner

    from octsvm.cli import main

    return CliRunner().invoke(main, [str(a) for a in args], prog_name="octsvm", **settings)


def commands() -> Iterator[tuple[list[str], Any]]:
    """Every command with the words that call it, the whole first."""
    from octsvm.cli import main

    def below(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
        yield words, command
        for name, inner in sorted(getattr(command, "commands", {}).items()):
            yield from below([*words, name], inner)

    yield from below([], main)


def help_text(words: list[str]) -> str:
    """The help on lines as long as they need be, so that a longer new option wraps none of the others anew."""
    from platformdirs import user_config_path

    result = called(*words, "--help", terminal_width=10_000, max_content_width=10_000)
    assert result.exit_code == 0, result.output
    return str(result.stdout).replace(str(user_config_path("octsvm", appauthor=False)), "CONFIG")


def parameter(param: Any) -> dict[str, Any]:
    default, choices = param.default, getattr(param.type, "choices", ())
    if callable(default) or type(default).__name__ == "Sentinel":  # click's word for none
        default = None
    return {
        "is": param.param_type_name,
        "flags": [*param.opts, *param.secondary_opts],
        "type": param.type.name,
        "choices": [str(c) for c in choices] if isinstance(choices, (list, tuple)) else [],
        "range": [getattr(param.type, name, None) for name in ("min", "max")],
        "default": None if default is None else plain(default),
        "is_flag": bool(getattr(param, "is_flag", False)),
        "required": param.required,
        "multiple": param.multiple,
        "nargs": param.nargs,
        "metavar": param.metavar,
    }


def exit_codes() -> dict[str, Any]:
    """The constants, and what some calls end with."""
    from octsvm import cli

    with tempfile.TemporaryDirectory() as folder:
        calls = {
            "version": ["--version"],
            "help": ["-h"],
            "no command": ["no-such-command"],
            "wrong option": ["fit", "toy", "--no-such-option"],
            "wrong value": ["fit", "toy", "--depth", "many"],
            "wrong parameter": ["fit", "toy", "--formulation", "re_svm", "--depth", "1"],
            "no formulation": ["size", "toy", "--formulation", "none"],
            "no file": ["fit", f"{folder}/none.csv"],
            "no tree": ["show", f"{folder}/none.json"],
            "no solver": ["plan", "toy", "--depth", "0", "--solver", "none"],
            "no folder": ["write", "toy", "--depth", "0", "--out", f"{folder}/none/model.lp"],
            "no store": ["table2", "status", f"{folder}/none.sqlite"],
            "size": ["size", "--n", "20", "--p", "2"],
        }
        ended = {name: called(*args).exit_code for name, args in calls.items()}
    constants = {name: getattr(cli, name) for name in cli.__all__ if name.isupper()}
    return {"constants": constants, "calls": ended}


def command_line() -> dict[str, Any]:
    out = {}
    for words, command in commands():
        out[" ".join(["octsvm", *words])] = {
            "help": help_text(words).splitlines(),
            "commands": sorted(getattr(command, "commands", {})),
            "parameters": {p.name: parameter(p) for p in command.params},
        }
    return {"commands": out, "exit_codes": exit_codes()}


# -- JSON and tables ----------------------------------------------------------------------------------------------


def shape(value: Any) -> dict[str, list[str]]:
    """Every place of a JSON value with the types that stand there; all elements of an array are one place."""
    types: dict[str, set[str]] = defaultdict(set)

    def walk(place: str, at: Any) -> None:
        if isinstance(at, dict):
            types[place].add("object")
            for key, inner in at.items():
                walk(f"{place}.{key}", inner)
        elif isinstance(at, (list, tuple)):
            types[place].add("array")
            for inner in at:
                walk(f"{place}[]", inner)
        elif isinstance(at, bool):
            types[place].add("boolean")
        elif at is None:
            types[place].add("null")
        else:
            types[place].add("string" if isinstance(at, str) else "number")

    walk("", value)
    return {place or ".": sorted(kinds) for place, kinds in types.items()}


def content(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = json.loads(value)
    return {"schema": value.get("schema"), "version": value.get("version"), "keys": shape(value)}


def json_of_commands(store: Path) -> dict[str, Any]:
    import highspy

    out: dict[str, Any] = {}

    def note(name: str, *args: Any) -> None:
        result = called(*args)
        assert result.exit_code == 0, f"octsvm {' '.join(map(str, args))}: {result.output}"
        out[name] = content(result.stdout)

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        table, tree, model, answer = (place / n for n in ("t.csv", "tree.json", "model.lp", "model.sol"))
        table.write_text(TABLE)
        for form, params in FITS.items():
            of: list[Any] = ["--formulation", form]
            for name, value in params.items():
                of += [f"--{name}", value]
            note(f"fit {form}", "fit", table, *of, "--test-size", 0.2, "--flip", 0.2, "--out", tree, "--json")
            note(f"show {form}", "show", tree, "--json")
            note(f"predict {form}", "predict", tree, table, "--label", "kind", "--json")
            note(f"size {form}", "size", table, *of, "--json")
            note(f"plan {form}", "plan", table, *of, "--solver", "highs", "--json")
            note(f"race {form}", "race", table, *of, "--solvers", "highs", "--json")
        of = ["--formulation", "oct", "--depth", 1]
        assert called("write", table, *of, "--out", model).exit_code == 0
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(str(model))
        solver.run()
        solver.writeSolution(str(answer), 0)
        note("read", "read", table, answer, *of, "--json")
        note("solvers", "solvers", "highs", "--json")
        note("solvers untried", "solvers", "highs", "--no-trial", "--json")
        note("completion", "completion", "bash", "--json")
        note("doctor", "doctor", "--json")
        copy, protocol = place / "cells.sqlite", place / "protocol.yaml"
        shutil.copy(store, copy)
        protocol.write_text(json.dumps(small_protocol()[0].model_dump(mode="json")))  # JSON is YAML
        note("table2 status", "table2", "status", copy, "--json")
        note(
            "table2 run",
            "table2",
            "run",
            "-p",
            protocol,
            "--store",
            copy,
            "--jobs",
            1,
            "--keep-trees",
            "--json",
            "-q",
        )
    return out


def columns(frame: pd.DataFrame) -> list[str]:
    return [str(c) for c in frame.columns]


def json_of_objects() -> dict[str, Any]:
    """Of what the functions return; and the columns of the tables."""
    out: dict[str, Any] = {}
    frame = pd.DataFrame(X, columns=NAMES)
    with tempfile.TemporaryDirectory() as folder:
        for form, params in FITS.items():
            model = octsvm.build(form, frame, Y, **params)
            result: Any = octsvm.solve(model)
            out[f"plan {form}"] = content(octsvm.plan(model, solver="highs").to_dict())
            out[f"result {form}"] = content(result.to_json())
            out[f"tree {form}"] = content(result.tree.to_json())
            out[f"export_dict {form}"] = content(octsvm.export_dict(result.tree))
            for ending in ("lp", "mps", "nl"):
                path = octsvm.write(model, Path(folder) / f"{form}.{ending}")
                out[f"sidecar {form}.{ending}"] = content(Path(f"{path}.json").read_text(encoding="utf-8"))
            out[f"columns {form}"] = {
                "to_frame": columns(result.to_frame()),
                "relabelled": columns(result.relabelled()),
                "race": columns(octsvm.race(model, solvers=["highs"])),
            }
            estimator = ESTIMATORS[form]().fit(frame, Y)
            out[f"estimator {form}"] = content(estimator.to_json())
            out[f"fitted {form}"] = {
                "attributes": [n for n in dir(estimator) if re.fullmatch(r"[a-z]\w*_", n)]
            }
    return out


# -- models -------------------------------------------------------------------------------------------------------


def groups(members: list[str]) -> dict[str, list[Any]]:
    """Of each component: how many members, and a hash of their sorted names."""
    parts: dict[str, list[str]] = defaultdict(list)
    for name in members:
        parts[name.partition("(")[0]].append(name)
    return {
        part: [len(inside), hashlib.sha256("\n".join(sorted(inside)).encode()).hexdigest()[:16]]
        for part, inside in sorted(parts.items())
    }


def model(form: str, params: dict[str, Any]) -> dict[str, Any]:
    """Names of the rows and columns in the .lp file."""
    with tempfile.TemporaryDirectory() as folder:
        path = octsvm.write(octsvm.build(form, X[:8], Y[:8], **params), Path(folder) / "model.lp")
        text = path.read_text(encoding="utf-8")
        beside = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    rows = re.findall(r"^(c_\S+|qc\S+|q_\S+):", text, re.MULTILINE)
    return {
        "formulation": form,
        "params": params,
        "rows": groups(rows),
        "columns": groups([column for column, _ in beside["columns"]]),
        "variables": groups([str(v).replace("[", "(") for _, v in beside["columns"]]),
    }


# -- the solver table ---------------------------------------------------------------------------------------------


def solver_table() -> dict[str, list[str]]:
    import yaml

    shipped = [ROOT / "solvers.yaml", Path(str(importlib.resources.files("octsvm"))) / "solvers.yaml"]
    path = next(p for p in shipped if p.is_file())
    return shape(yaml.safe_load(path.read_text(encoding="utf-8")))


def solver_keys() -> list[str]:
    """All keys that an entry of a table of one's own may have, used in ours or not: a wrong one is told them."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "solvers.yaml"
        own.write_text("solvers:\n  highs:\n    no_such_key: 1\n")
        result = called("solvers", "highs", "--no-trial", env={"OCTSVM_SOLVERS": str(own)})
    told = re.search(r"The keys of an entry are ([\w, ]+?)(?: and (\w+))?\.", squeezed(result.output))
    assert told, result.output
    return [key for part in told.groups() if part for key in part.split(", ")]


def squeezed(text: str) -> str:
    return " ".join(text.split())


# -- saved things -------------------------------------------------------------------------------------------------


def referred(data: bytes) -> list[str]:
    """The names that a pickle imports when it is loaded."""
    names: set[str] = set()

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            names.add(f"{module}.{name}")
            return super().find_class(module, name)

    Reader(io.BytesIO(data)).load()
    return sorted(names)


def small_protocol() -> Any:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    import small_runs  # type: ignore[import-not-found,unused-ignore]

    cart = {"title": "CART", "kind": "cart", "grid": {"alpha": [1e-3, 1.0]}, "fixed": {"depth": 2}}
    svm = {"title": "SVM", "kind": "svm", "grid": {"C": [1e-2, 1.0]}}
    oct_ = {"title": "OCT", "kind": "oct", "grid": {"alpha": [1.0, 10.0]}, "fixed": {"depth": 1}, "work": 5}
    return small_runs.protocol(methods={"cart": cart, "svm": svm, "oct": oct_}), small_runs.load


def study(store: Path) -> dict[str, Any]:
    """What the toolkit reads from a store or an export of it."""
    from octsvm.experiments import read_cells
    from octsvm.experiments.selection import select

    cells = read_cells(store)
    table = select(cells).table
    keys = cells[["set", "noise", "repetition", "fold", "inner", "method", "params", "score"]].round(9)
    return {
        "columns": columns(cells),
        "about": sorted(cells.attrs),
        "rows": len(cells),
        "cells": hashlib.sha256(
            keys.astype(str).to_csv(index=False, lineterminator="\n").encode()
        ).hexdigest(),
        "index": [str(n) for n in table.index.names],
        "selection": columns(table),
        "accuracy": [round(float(a), 9) for a in table["accuracy"]],
    }


def saved(out: Path) -> None:
    """Writes what users keep: JSON, pickles and the store of a small run; with what is read from each."""
    from octsvm.experiments import Store, run

    out.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(X, columns=NAMES)
    fresh = pd.DataFrame(FRESH, columns=NAMES)
    record: dict[str, Any] = {
        "pandas": pd.__version__,
        "fresh": FRESH.tolist(),
        "labels": {},
        "refers": {},
        "results": {},
        "relabelled": {},
    }
    for form, params in FITS.items():
        result: Any = octsvm.fit(form, frame, Y, **params)
        estimator = ESTIMATORS[form]().fit(frame, Y)
        result.tree.to_json(out / f"{form}_tree.json")
        result.to_json(out / f"{form}_result.json")
        estimator.to_json(out / f"{form}_estimator.json")
        for what, thing in (("tree", result.tree), ("result", result), ("estimator", estimator)):
            data = pickle.dumps(thing, protocol=4)
            (out / f"{form}_{what}.pickle").write_bytes(data)
            record["refers"][f"{form}_{what}.pickle"] = referred(data)
            labels = estimator.predict(fresh) if what == "estimator" else result.tree.predict(FRESH)
            record["labels"][f"{form}_{what}"] = labels.tolist()
        record["results"][form] = json.loads(result.to_json())
        record["relabelled"][form] = json.loads(result.relabelled().to_json(orient="split"))
    store = out / "cells.sqlite"
    store.unlink(missing_ok=True)
    protocol, load = small_protocol()
    assert run(protocol, store, load=load, keep_trees=True).complete
    export = out / "cells.csv.gz"
    with Store.open(store) as opened:
        opened.export(export)
    record["study"] = {path.name: study(path) for path in (store, export)}
    written(out / "expected.json", record)


# -- all of it ----------------------------------------------------------------------------------------------------


def written(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(folder: str) -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    written(out / "names.json", names())
    written(out / "command_line.json", command_line())
    written(out / "models.json", [model(*case) for case in MODELS])
    written(out / "solvers.json", {"entries": solver_table(), "keys": solver_keys()})
    saved(out / "saved")
    store = out / "saved" / "cells.sqlite"
    written(out / "json.json", {"commands": json_of_commands(store), "objects": json_of_objects()})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python tests/face/record.py FOLDER")
    main(sys.argv[1])
