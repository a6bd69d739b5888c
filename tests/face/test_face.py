"""What users and their files depend on is what it was: whatever was recorded is there and equal, additions aside."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from face import record  # type: ignore[import-not-found,unused-ignore]
from waiting import PATIENCE

import octsvm

HERE = Path(__file__).resolve().parent / "recorded"
SAVED = HERE / "saved"
CLASSIFIERS = {
    "oct": "OCTClassifier",
    "oct_h": "OCTHClassifier",
    "re_svm": "RESVMClassifier",
    "octsvm": "OCTSVMClassifier",
}


@cache
def recorded(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


# What was changed on purpose, by how the difference begins, and why nobody who used it is left behind.
ON_PURPOSE = {
    "octsvm.bridges.Bridge": "was a protocol without code; a bridge is a subclass now, and is written in two methods",
    "octsvm.formulations.base.Formulation": "was a record of functions; a formulation is a subclass of it now",
    "octsvm.formulations.base.ModelInfo: parameter structure": "a fingerprint that only its own function makes",
    "octsvm.formulations.base.ModelInfo, field structure": "the same",
    "octsvm plan --solver: default": "a plan is that of octsvm fit without --solver; --solver auto says what it said",
    "octsvm plan: the help": "the same",
    "octsvm predict: the help": "the class against the rest is that of the fit, unless another is given",
    "octsvm show: the help": "branches of the picture say what holds there, such as < 4.5, instead of yes and no",
    **{
        place: "None is no solver named, as where octsvm.fit is called without one"
        for formulation, name in CLASSIFIERS.items()
        for place in (f"octsvm.{name}: parameter solver", f"estimator {formulation}: .params.solver")
    },
    "octsvm.experiments.Store: method beat": "a run holds a lock while it lives; nobody else had to call it",
}


def none(problems: list[str]) -> None:
    left = [p for p in problems if not p.startswith(tuple(ON_PURPOSE))]
    assert not left, "\n" + "\n".join(left)


# -- comparisons: each says in words what is missing or different -------------------------------------------------


def of_values(place: str, old: Any, new: Any) -> list[str]:
    """Objects may have more keys and lists more elements behind; anything else is equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        out = [f"{place}: {key} is missing" for key in old if key not in new]
        return out + [
            p for key in old if key in new for p in of_values(f"{place}: {key}", old[key], new[key])
        ]
    return [] if old == new else [f"{place}: was {old!r}, is {new!r}"]


def of_members(place: str, old: list[Any], new: list[Any]) -> list[str]:
    return [f"{place}: {one} is missing" for one in old if one not in new]


def of_signatures(place: str, old: list[Any] | None, new: list[Any] | None) -> list[str]:
    """Every call of before is possible: same names, kinds and defaults, and what is new has a default."""
    if old is None:
        return []
    if new is None:
        return [f"{place}: has no signature any more"]
    out = []
    before, now = ({p["name"]: p for p in some} for some in (old, new))
    for name, p in before.items():
        if name not in now:
            out.append(f"{place}: parameter {name} is missing")
        elif p != now[name]:
            out.append(f"{place}: parameter {name} was {p}, is {now[name]}")
    optional = ("VAR_POSITIONAL", "VAR_KEYWORD")
    for name, p in now.items():
        if name not in before and "default" not in p and p["kind"] not in optional:
            out.append(f"{place}: the new parameter {name} has no default")
    by_place = [[p["name"] for p in some if p["kind"].startswith("POSITIONAL")] for some in (old, new)]
    if not out and by_place[1][: len(by_place[0])] != by_place[0]:
        out.append(f"{place}: parameters by position were {by_place[0]}, are {by_place[1]}")
    return out


def of_descriptions(place: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    if old["is"] != new["is"]:
        return [f"{place}: was a {old['is']}, is a {new['is']}"]
    out = of_members(f"{place}, __all__", old.get("all", []), new.get("all", []))
    out += of_members(f"{place}, bases", old.get("bases", []), new.get("bases", []))
    out += of_signatures(place, old.get("signature"), new.get("signature"))
    for name, field in old.get("fields", {}).items():
        if name not in new.get("fields", {}):
            out.append(f"{place}: field {name} is missing")
        else:
            out += of_values(f"{place}, field {name}", field, new["fields"][name])
    for name, member in old.get("members", {}).items():
        if name not in new.get("members", {}):
            out.append(f"{place}: {member['is']} {name} is missing")
        else:
            out += of_descriptions(f"{place}.{name}", member, new["members"][name])
    return out


def of_shapes(place: str, old: dict[str, list[str]], new: dict[str, list[str]]) -> list[str]:
    """Every place of before is there with the same types. Null says nothing of the type."""
    out = []
    for key, types in old.items():
        before, now = set(types) - {"null"}, set(new.get(key, ())) - {"null"}
        if key not in new:
            out.append(f"{place}: {key} ({', '.join(types)}) is missing")
        elif before and before != now:
            out.append(f"{place}: {key} was {', '.join(types)}, is {', '.join(new[key])}")
    return out


def of_contents(place: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    if "keys" not in old:  # columns of tables, attributes
        return [p for key in old for p in of_members(f"{place}, {key}", old[key], new.get(key, []))]
    named = {k: old[k] for k in ("schema", "version")}
    return of_values(place, named, new) + of_shapes(place, old["keys"], new["keys"])


def parts_of_help(lines: list[str]) -> tuple[list[str], list[str]]:
    """The text in its order, and the entries of the options; without how they are set."""
    text: list[str] = []
    options: list[str] = []
    section = ""
    for line in lines:
        if line in ("Options:", "Commands:"):
            section = line
        elif line and section and line[:2] == "  " and not re.match(r"\s*Exit codes:", line):
            if section == "Options:":
                if line[2] == " ":  # its text, where the name is too long to stand beside it
                    options[-1] += f" {line}"
                else:
                    options.append(line)
        else:
            section = section if not line else ""
            text.append(line)
    return [t for t in map(record.squeezed, text) if t], [record.squeezed(o) for o in options]


def of_helps(place: str, old: list[str], new: list[str]) -> list[str]:
    (text, options), (text_now, options_now) = parts_of_help(old), parts_of_help(new)
    out = [
        f"{place}: the help has no option any more that reads {o!r}" for o in options if o not in options_now
    ]
    at = 0
    for line in text:
        try:
            at = text_now.index(line, at) + 1
        except ValueError:
            out.append(f"{place}: the help does not say any more, or not in this order, {line!r}")
    return out


# -- names --------------------------------------------------------------------------------------------------------


def test_public_names_are_all_there() -> None:
    none(of_members("octsvm.__all__", recorded("names")["all"], octsvm.__all__))


def test_documented_names_are_what_they_were() -> None:
    problems = []
    for path, old in recorded("names")["paths"].items():
        try:
            thing = record.found(path)
        except (ImportError, AttributeError) as error:
            problems.append(f"{path} cannot be imported: {error}")
            continue
        problems += of_descriptions(path, old, record.described(thing))
    none(problems)


# -- the command line ---------------------------------------------------------------------------------------------


def test_commands_and_options_are_what_they_were() -> None:
    now = {" ".join(["octsvm", *words]): (words, command) for words, command in record.commands()}
    problems = []
    for name, old in recorded("command_line")["commands"].items():
        if name not in now:
            problems.append(f"{name} is missing")
            continue
        words, command = now[name]
        # By what is typed: the name of an option inside is nobody's business.
        options = {flag: p for p in map(record.parameter, command.params) for flag in p["flags"]}
        for p in old["parameters"].values():
            there = [flag for flag in p["flags"] if flag in options]
            problems += of_members(f"{name}: {p['is']}", p["flags"], there)
            if there:
                problems += of_option(f"{name} {there[0]}", p, options[there[0]])
        before, after = (
            [p["metavar"] or p["flags"][0] for p in some if p["is"] == "argument"]
            for some in (old["parameters"].values(), map(record.parameter, command.params))
        )
        if before != after[: len(before)]:
            problems.append(f"{name}: arguments were {before}, are {after}")
        problems += of_helps(name, old["help"], record.help_text(words).splitlines())
    none(problems)


def of_option(place: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    rest = [{k: v for k, v in p.items() if k not in ("flags", "choices")} for p in (old, new)]
    return of_members(f"{place}, choices", old["choices"], new["choices"]) + of_values(place, *rest)


def test_exit_codes_are_what_they_were() -> None:
    none(of_values("exit codes", recorded("command_line")["exit_codes"], record.exit_codes()))


def test_the_command_line_is_a_module_too() -> None:
    for args, code in ((["--version"], 0), (["--no-such-option"], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "octsvm", *args], capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == code, done.stderr


# -- JSON, models, the solver table -------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["commands", "objects"])
@pytest.mark.slow
def test_json_has_the_keys_that_it_had(of: str) -> None:
    now = record.json_of_commands(SAVED / "cells.sqlite") if of == "commands" else record.json_of_objects()
    problems = []
    for name, old in recorded("json")[of].items():
        problems += of_contents(name, old, now[name]) if name in now else [f"{name} is missing"]
    none(problems)


@pytest.mark.parametrize(
    "old", recorded("models"), ids=lambda m: "-".join([m["formulation"], *map(str, m["params"].values())])
)
def test_rows_and_columns_of_models_have_their_names(old: dict[str, Any]) -> None:
    now = record.model(old["formulation"], old["params"])
    problems = []
    for what in ("rows", "columns", "variables"):
        for part, (count, digest) in old[what].items():
            if part not in now[what]:
                problems.append(f"{what}: all {count} of {part} are missing")
            elif now[what][part][0] != count:
                problems.append(f"{what}: there were {count} of {part}, there are {now[what][part][0]}")
            elif now[what][part][1] != digest:
                problems.append(f"{what}: the {count} of {part} have other indices")
        # More rows or columns are another model, not an addition.
        problems += [f"{what}: {part} is new" for part in now[what] if part not in old[what]]
    none(problems)


def test_the_solver_table_has_its_keys() -> None:
    none(of_shapes("solvers.yaml", recorded("solvers")["entries"], record.solver_table()))
    none(of_members("keys of an entry", recorded("solvers")["keys"], record.solver_keys()))


# -- saved things -------------------------------------------------------------------------------------------------


def labels(thing: Any) -> list[Any]:
    fresh = np.array(recorded("saved/expected")["fresh"])
    tree = isinstance(thing, octsvm.Tree)
    return list(thing.predict(fresh if tree else pd.DataFrame(fresh, columns=record.NAMES)).tolist())


@pytest.mark.parametrize("form", CLASSIFIERS)
def test_saved_json_is_read_and_predicts_as_it_did(form: str) -> None:
    expected = recorded("saved/expected")["labels"]
    tree = octsvm.Tree.from_json(SAVED / f"{form}_tree.json")
    assert labels(tree) == expected[f"{form}_tree"]
    assert len(set(expected[f"{form}_tree"])) == 2, "a constant tree would show nothing"
    assert labels(octsvm.Tree.from_json(SAVED / f"{form}_result.json")) == expected[f"{form}_result"]
    estimator = getattr(octsvm, CLASSIFIERS[form]).from_json(SAVED / f"{form}_estimator.json")
    assert labels(estimator) == expected[f"{form}_estimator"]
    for thing, what in ((tree, "tree"), (estimator, "estimator")):  # what is read is written as it was
        old, new = (
            json.loads((SAVED / f"{form}_{what}.json").read_text(encoding="utf-8")),
            json.loads(thing.to_json()),
        )
        none(of_values(f"{form}_{what}.json", old | {"result": None}, new | {"result": None}))


@pytest.mark.parametrize("name", sorted(recorded("saved/expected")["refers"]))
def test_pickles_are_loaded_and_predict_as_they_did(name: str) -> None:
    problems = []
    refers = recorded("saved/expected")["refers"][name]
    for path in refers:
        try:
            record.found(path)
        except (ImportError, AttributeError):
            if path.startswith("octsvm."):
                problems.append(f"{name} refers to {path}, which cannot be imported any more")
    none(problems)
    written_by, here = (int(v.split(".")[0]) for v in (recorded("saved/expected")["pandas"], pd.__version__))
    if any(path.startswith("pandas.") for path in refers) and here < written_by:
        pytest.skip(f"a table of pandas {written_by} is in it, which this one does not read")
    thing = pickle.loads((SAVED / name).read_bytes())
    form, _, what = name.removesuffix(".pickle").rpartition("_")
    if what == "result":
        none(of_values(name, recorded("saved/expected")["results"][form], json.loads(thing.to_json())))
        given_up = json.loads(thing.relabelled().to_json(orient="split"))
        none(of_values(name, recorded("saved/expected")["relabelled"][form], given_up))
        assert "status" in thing.summary()
        thing = thing.tree
    assert labels(thing) == recorded("saved/expected")["labels"][f"{form}_{what}"]


@pytest.mark.parametrize("name", sorted(recorded("saved/expected")["study"]))
def test_cells_of_a_study_are_read_as_they_were(name: str, tmp_path: Path) -> None:
    old, new = (
        recorded("saved/expected")["study"][name],
        record.study(Path(shutil.copy(SAVED / name, tmp_path))),
    )
    for key in ("columns", "about", "selection"):
        none(of_members(f"{name}, {key}", old.pop(key), new.pop(key)))
    none(of_values(name, old, new))


def test_a_study_is_gone_on_with(tmp_path: Path) -> None:
    from octsvm.experiments import Part, Store, run

    store = Path(shutil.copy(SAVED / "cells.sqlite", tmp_path))
    protocol, load = record.small_protocol()
    found = run(protocol, store, load=load, keep_trees=True)
    assert (found.complete, found.fitted) == (True, 0)
    with Store.open(store) as opened:
        kept = [opened.tree(Part("one", 0.0, 0, fold, True), "oct", 0) for fold in range(protocol.folds)]
        kept += [opened.tree(Part("one", 0.0, 0, fold, False), "oct", 0) for fold in range(protocol.folds)]
    assert any(isinstance(octsvm.Tree.from_json(text), octsvm.AxisTree) for text in kept if text)
