"""Formulations by name: built-in ones, registered ones, and those of installed packages."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from instances import FORMULATIONS
from places import ROOT

import octsvm
from octsvm.cli import main
from octsvm.data import prepare
from octsvm.formulations import registry
from octsvm.formulations.base import Evaluation, Formulation
from octsvm.formulations.params import Params

pytestmark = pytest.mark.usefixtures("only_built_in")


def made(**changes: Any) -> type[Formulation]:
    """A formulation of constant trees; ``changes`` are parts of its class, None for one that is left out."""

    def constant_tree(self: Any, data: Any, params: Any) -> octsvm.AxisTree:
        none = np.zeros(0, dtype=np.int64)
        return octsvm.AxisTree(
            0, data.classes, data.feature_names, data.scaling, none, none.astype(float), np.array([1])
        )

    def evaluate(
        self: Any, tree: Any, X: Any, y: Any, params: Any, weights: Any, relabelled: Any = None
    ) -> Any:
        return Evaluation(0.0, {"nothing": 0.0}, {})

    parts = {
        "name": "still",
        "Params": Params,
        "Tree": octsvm.AxisTree,
        "build": lambda self, data, params, upper_bound=np.inf: None,
        "extract": lambda self, model: model.tree,
        "embed": lambda self, model, tree, relabelled=None: tree,
        "evaluate": evaluate,
        "constant_tree": constant_tree,
    }
    parts = {k: v for k, v in (parts | changes).items() if v is not None}
    return type(parts.pop("__qualname__", "Still"), (Formulation,), parts)  # type: ignore[call-overload, no-any-return]


# -- built in ---------------------------------------------------------------------------------------------


def test_names_are_known_without_loading_anything() -> None:
    code = (
        "import sys, octsvm.formulations.registry as r; "
        "assert set(r.names()) >= {'moctsvm', 'oct', 'oct_h', 'octsvm', 're_svm'}, r.names(); "
        "assert 'pyomo' not in sys.modules; assert 'importlib.metadata' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_command_line_looks_for_no_packages_before_it_is_asked_to() -> None:
    code = "import sys, octsvm.cli.main; assert not {'pyomo', 'importlib.metadata'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", registry.NAMES)
def test_built_in(name: str) -> None:
    form = registry.formulation(name)
    assert isinstance(form, Formulation)
    assert form.name == name
    assert registry.formulation(name) is form
    assert form.binary_only == form.two_classes_only
    assert form.title
    assert "variant" not in form.Params.model_fields or form.variants
    form.load_libraries()
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["a", "a", "b", "b"])
    data = prepare(form, X, y)
    from octsvm.heuristics import Budget

    params = form.Params(**({"c1": 10.0, "c2": 10.0} if form.uses_upper_bound else {}))
    tree = next(form.candidates(data, params, Budget(10), 0))
    assert isinstance(tree, form.Tree)
    assert form.path(data, [], [], None, 0) is None or form.grid


def test_a_name_stands_in_its_own_file_and_in_its_classifier_only() -> None:
    places: dict[str, set[str]] = {
        name: set() for name in registry.NAMES if name != "octsvm"
    }  # the package too
    quoted = re.compile(rf"""["']({"|".join(places)})["']""")
    for file in (f for folder in ("octsvm", "formulations") for f in sorted((ROOT / folder).rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        if not quoted.search(text):
            continue
        words = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
        place = file.relative_to(ROOT).as_posix()
        if not place.startswith(("octsvm/estimators/", "octsvm/formulations/")):
            for name in words & set(places):
                places[name].add(place)
    assert places == {name: {f"formulations/{name}.py"} for name in places}


# -- registered -------------------------------------------------------------------------------------------


def test_register_returns_the_class_and_makes_it_known() -> None:
    cls = made()
    assert octsvm.register(cls) is cls
    assert type(registry.formulation("still")) is cls
    assert "still" in registry.names()
    assert "still" not in registry.NAMES
    assert octsvm.register(cls) is cls  # once more is no mistake
    with pytest.raises(octsvm.UnknownFormulation, match=r"Did you mean 'still'\? There are: .*still"):
        octsvm.build("stil", [[0], [1]], [0, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embed": None, "extract": None}, "Still lacks embed, extract"),
        ({"name": None}, r"Still\.name is None"),
        ({"name": "a b"}, r"Still\.name is 'a b'"),
        ({"Params": None}, r"Still\.Params should be a subclass"),
        ({"Params": dict}, r"Still\.Params should be a subclass"),
        ({"Tree": None}, r"Still\.Tree should be the class of its trees"),
        ({"name": "oct"}, r"'oct' of .*Still is taken by octsvm\.formulations\.oct"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    before = registry.names()
    with pytest.raises(octsvm.InvalidParameter, match=message):
        octsvm.register(made(**changes))
    assert registry.names() == before


@pytest.mark.parametrize("thing", ["stump", dict, made])
def test_what_is_no_formulation_is_refused(thing: Any) -> None:
    with pytest.raises(octsvm.InvalidParameter, match="is not a formulation"):
        octsvm.register(thing)


def test_a_name_belongs_to_one_class_and_a_class_can_be_defined_anew() -> None:
    octsvm.register(made())
    with pytest.raises(octsvm.InvalidParameter, match=r"'still' of .*Other is taken by .*Still"):
        octsvm.register(made(__qualname__="Other"))
    again = octsvm.register(made(title="as in a notebook's cell that is run again"))
    assert type(registry.formulation("still")) is again


# -- defaults ---------------------------------------------------------------------------------------------


def test_what_is_left_out_has_a_default() -> None:
    octsvm.register(made())
    form = registry.formulation("still")
    data, params = prepare(form, [[0.0], [5.0], [2.0]], ["a", "b", "c"]), form.Params()
    tree = form.constant_tree(data, params)
    assert (form.binary_only, form.uses_scaling, form.searches, form.variants) == (False, False, False, ())
    assert form.normalise(tree, data, params) is tree
    assert form.improve(tree, data, params) is tree
    form.require(tree, data, params)
    assert list(form.candidates(data, params, None, 0)) == []
    assert form.path(data, [params], [0], None, 0) is None
    form.load_libraries()

    class Model:
        pass

    model: Any = Model()
    model.tree, model.info = tree, Model()
    model.info.data = data
    assert form.assigned_path(model).tolist() == [[1], [1], [1]]


def test_a_heuristic_and_a_grid_are_found_by_their_place() -> None:
    class Named(made()):  # type: ignore[misc]
        name = "named"
        heuristic = f"{__name__}:_one"
        libraries = ("json", f"{__name__}:_prepare")
        grid = f"{__name__}:_shared"

    form = Named()
    assert list(form.candidates(1, 2, 3, 4)) == [(1, 2, 3, 4)]
    assert form.path(1, [2], [3], 4, 5) == (form, 1, [2], [3], 4, 5)
    before = len(_prepared)
    form.load_libraries()
    assert len(_prepared) == before + 1


_prepared: list[int] = []


def _prepare() -> None:
    _prepared.append(1)


def _one(*args: Any) -> Any:
    yield args


def _shared(*args: Any) -> Any:
    return args


# -- of packages ------------------------------------------------------------------------------------------

MODULE = """
from dataclasses import replace
from octsvm.formulations.oct import OCT

class Theirs(OCT):
    name = "{name}"

    def build(self, *args, **more):
        model = super().build(*args, **more)
        model.info = replace(model.info, formulation=self.name)
        return model
"""


def install(folder: Path, package: str, name: str, called: str = "", code: str | None = None) -> None:
    """A distribution with one module and an entry point ``name``."""
    module = package.replace("-", "_")
    text = MODULE.format(name=called or name) if code is None else code
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        f"[octsvm.formulations]\n{name} = {module}:Theirs\n", encoding="utf-8"
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_makes_its_formulation_known(site: Path) -> None:
    install(site, "grove-one", "grove_one")
    assert "grove_one" in registry.names()
    assert "grove_one" not in sys.modules
    form = registry.formulation("grove_one")
    assert type(form).__module__ == "grove_one"
    assert registry.formulation("grove_one") is form
    found = octsvm.fit("grove_one", [[0], [1], [2], [3]], list("aabb"), depth=1, alpha=0.1)
    assert found.formulation == "grove_one"
    assert found.objective == pytest.approx(0.1)


def test_a_broken_package_is_named_and_breaks_no_other(site: Path) -> None:
    install(site, "grove-two", "grove_two")
    install(site, "rotten-wood", "rotten", code="raise RuntimeError('no roots')")
    install(site, "hollow-wood", "hollow", code="import octsvm")
    install(site, "false-wood", "wrongly_called", called="falsely")
    assert {"grove_two", "rotten", "hollow"} <= set(registry.names())
    with pytest.raises(
        octsvm.UnknownFormulation, match="package rotten-wood cannot be loaded: RuntimeError: no roots"
    ):
        registry.formulation("rotten")
    with pytest.raises(
        octsvm.UnknownFormulation, match="package hollow-wood cannot be loaded: AttributeError"
    ):
        registry.formulation("hollow")
    with pytest.raises(octsvm.UnknownFormulation, match="package false-wood calls itself 'falsely'"):
        registry.formulation("wrongly_called")
    assert registry.formulation("grove_two").name == "grove_two"


def test_two_packages_with_one_name_are_refused(site: Path) -> None:
    install(site, "elm", "twice")
    install(site, "oak", "twice")
    with pytest.raises(octsvm.UnknownFormulation, match="package elm and oak is offered more than once"):
        registry.formulation("twice")


def test_a_package_cannot_take_the_name_of_a_built_in_one(site: Path) -> None:
    install(site, "usurper", "oct")
    assert registry.formulation("oct").__class__.__module__ == "octsvm.formulations.oct"
    assert "usurper" not in sys.modules


def test_the_command_line_takes_the_formulation_of_a_package(site: Path) -> None:
    install(site, "grove-three", "grove_three")
    words = ["fit", "toy", "-f", "grove_three", "--depth", "1", "--alpha", "2", "--quiet"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("grove_three on 24 rows")


def own_kernel(left: Any, right: Any) -> Any:
    """A kernel of a user's own."""
    return (1.0 + left @ right.T) ** 2


MODELS: list[dict[str, Any]] = [
    {"name": name} | found
    for name in FORMULATIONS
    for found in [
        {"variant": variant, "norm": norm}
        for variant in registry.formulation(name).variants or (None,)
        for norm in (("l1", "l2") if "norm" in registry.formulation(name).Params.model_fields else (None,))
    ]
    + [
        {"kernel": kernel}
        for kernel in ("linear", "poly", "rbf", own_kernel)
        if "kernel" in registry.formulation(name).Params.model_fields
    ]
]


def words(asked: dict[str, Any]) -> str:
    return "-".join(str(getattr(value, "__name__", value)) for value in asked.values() if value is not None)


@pytest.mark.parametrize("asked", MODELS, ids=words)
@pytest.mark.quick_cases("oct-*")
def test_a_built_model_is_pickled_and_solved_alike_afterwards(asked: dict[str, Any]) -> None:
    name = asked["name"]
    X = np.random.default_rng(0).random((7, 2))
    y = ["b" if row[0] > 0.5 else "a" for row in X]
    params = {"depth": None if name == "re_svm" else 1} | {k: v for k, v in asked.items() if k != "name"}
    model = octsvm.build(name, X, y, **{k: v for k, v in params.items() if v is not None})
    copy = pickle.loads(pickle.dumps(model))
    assert copy.info.params == model.info.params
    objective = octsvm.solve(model).objective
    assert octsvm.solve(copy).objective == objective
    again = pickle.loads(pickle.dumps(model))  # solved by now
    assert str(octsvm.extract(again)) == str(octsvm.extract(model))
    again.own = pyo.Var(bounds=(0, 1))
    again.row = pyo.Constraint(expr=again.own <= 1)
    assert octsvm.solve(pickle.loads(pickle.dumps(again))).objective == pytest.approx(objective)
