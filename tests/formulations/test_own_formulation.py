"""A formulation in one file of a user's goes all the ways that a built-in one goes."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from places import FIXTURES, ROOT

import octsvm
from octsvm import solvers
from octsvm.cli import main
from octsvm.diagnostics import model_size
from octsvm.experiments import methods
from octsvm.formulations import registry

FILE = FIXTURES / "toy_formulation.py"
MISS, SPLIT = 3.0, 0.5


@pytest.fixture(autouse=True)
def _stump(only_built_in: None) -> None:
    assert registry.register_from(f"{FILE}:Stump").name == "stump"


def table(n: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    return X, np.where((X[:, 1] > 2) ^ (rng.random(n) < 0.15), "no", "yes")


def cheapest(X: np.ndarray, y: np.ndarray) -> float:
    """The optimum by trying every split and both classes of both leaves."""
    price = np.where(y == "yes", MISS, 1.0)
    best = min(float(price[y != label].sum()) for label in ("no", "yes"))
    for column in X.T:
        for value in np.unique(column)[1:]:
            left = column < value
            for a in ("no", "yes"):
                for b in ("no", "yes"):
                    wrong = y != np.where(left, a, b)
                    best = min(best, SPLIT + float(price[wrong].sum()))
    return best


def built(**more: Any) -> pyo.ConcreteModel:
    X, y = table()
    return octsvm.build("stump", X, y, miss=MISS, split=SPLIT, **more)


@pytest.mark.parametrize("seed", range(4))
def test_fit_finds_and_proves_the_optimum(seed: int) -> None:
    X, y = table(seed=seed)
    result = octsvm.fit("stump", X, y, miss=MISS, split=SPLIT)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(cheapest(X, y))
    assert 0 < result.bound == pytest.approx(result.objective)
    assert result.formulation == "stump"
    assert result.tree is not None
    known = octsvm.evaluate("stump", result.tree, X, y, miss=MISS, split=SPLIT)
    assert known.objective == pytest.approx(result.objective)


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi", "cbc"])
def test_every_engine_proves_the_same(solver: str) -> None:
    if solvers.get(solver).version is None:
        pytest.skip(f"{solver} is not installed")
    result = octsvm.solve(built(), solver=solver)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(cheapest(*table()))
    assert (1 - 1e-4) * result.objective <= result.bound <= result.objective + 1e-6  # the gap asked for


def test_its_own_blocks_are_no_additions_of_a_user() -> None:
    result = octsvm.solve(built())
    assert not [note for note in result.notes if "parts of your own" in note]


def test_rows_of_a_user_are_kept() -> None:
    model = built()
    free = octsvm.solve(model)
    assert free.tree is not None
    model.no_split = pyo.Constraint(expr=sum(model.stump.cut.values()) == 0)
    limited = octsvm.solve(model)
    assert limited.tree is not None
    assert (int(free.tree.splits.sum()), int(limited.tree.splits.sum())) == (1, 0)
    assert limited.objective > free.objective
    assert limited.status == "optimal"


def test_embed_undoes_extract() -> None:
    model = built()
    with pytest.raises(octsvm.NoValues):
        octsvm.extract(model)
    tree = octsvm.solve(model).tree
    assert tree is not None
    again = built()
    octsvm.embed(again, tree)
    assert octsvm.extract(again).to_dict() == tree.to_dict()
    assert pyo.value(again.objective) == pytest.approx(cheapest(*table()))
    with pytest.raises(octsvm.TreeNotAdmitted):
        octsvm.embed(again, octsvm.fit("oct", *table(), depth=2, alpha=0.1).tree)


def test_a_start_is_taken() -> None:
    X, y = table()
    first = octsvm.fit("stump", X, y, miss=MISS, split=SPLIT)
    again = octsvm.fit("stump", X, y, miss=MISS, split=SPLIT, start=first.tree, strategy="exact")
    assert again.objective == pytest.approx(first.objective)


@pytest.mark.slow
def test_neighbourhoods_of_its_model_are_searched() -> None:
    X, y = table(60)
    result = octsvm.fit("stump", X, y, miss=MISS, split=SPLIT, strategy="heuristic", time_limit=20)
    assert result.status == "feasible"  # it began at the constant tree, which a result calls "fallback"
    assert result.objective == pytest.approx(cheapest(X, y))


def test_a_grid_and_the_experiments_take_it() -> None:
    X, y = table()
    points = [{"miss": 1.0}, {"miss": MISS}]
    found = dict(octsvm.fit_path("stump", X, y, points, split=SPLIT))
    assert [found[k].status for k in (0, 1)] == ["fallback", "fallback"]  # it has no heuristic
    assert found[1].objective == pytest.approx(min((y == "no").sum(), MISS * (y == "yes").sum()))
    assert methods.fit_grid("stump") is methods.fit_grid("oct")
    one, tuned = (
        methods.MethodSpec(title="", kind=kind, grid=grid, fixed=fixed)
        for kind, grid, fixed in (("stump", {"miss": (1.0,)}, {}), ("tuned", {}, {"formulation": "stump"}))
    )
    methods.require(one)
    for spec in (one, tuned):
        with pytest.raises(
            octsvm.InvalidParameter, match=r"'stump' was registered in this process.*FILE\.py:CLASS"
        ):
            methods.require(spec, workers=True)
    with pytest.raises(octsvm.InvalidParameter, match="no grid for 'stump'"):
        methods.require(tuned)
    methods.require(
        tuned.model_copy(update={"fixed": {"formulation": "stump", "grid": {"miss": [1.0, 2.0]}}})
    )


def test_a_file_goes_out_and_its_solution_comes_back(tmp_path: Path) -> None:
    model = built()
    octsvm.write(model, tmp_path / "stump.lp")
    sidecar = json.loads((tmp_path / "stump.lp.json").read_text(encoding="utf-8"))
    assert sidecar["formulation"] == "stump"
    assert sidecar["params"] == {"miss": MISS, "split": SPLIT}
    highspy = importlib.import_module("highspy")
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.readModel(str(tmp_path / "stump.lp"))
    engine.run()
    engine.writeSolution(str(tmp_path / "stump.sol"), 0)
    result = octsvm.read_solution(built(), tmp_path / "stump.sol", sidecar=tmp_path / "stump.lp.json")
    assert result.formulation == "stump"
    assert result.objective == pytest.approx(cheapest(*table()))
    assert result.status == "feasible"


def test_it_is_planned_and_raced() -> None:
    model = built()
    problem = octsvm.plan(model, solver="highs").problem
    assert problem.name == "MILP"
    frame = octsvm.race(model, solvers=["highs"])
    assert frame["status"].tolist() == ["optimal"]


def test_its_size_is_counted() -> None:
    problem = octsvm.plan(built(), solver="highs").problem
    X, y = table()
    size = model_size.of_table("stump", X, y, miss=MISS, split=SPLIT)
    assert (size.variables, size.binaries, size.rows) == (problem.variables, problem.binaries, problem.rows)


def test_the_page_on_adding_shows_this_file() -> None:
    page = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    assert f"```python\n{FILE.read_text(encoding='utf-8')}```" in page


def run(*words: str) -> str:
    """What a command prints that ends well."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, with the user's file and a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE.name).write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    X, y = table()
    rows = [",".join([*map(str, x), label]) for x, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n", encoding="utf-8")


@pytest.mark.usefixtures("_folder")
def test_the_command_line_fits_it() -> None:
    words = ["fit", "data.csv", "-f", "toy_formulation.py:Stump", "--param", f"miss={MISS}", "--quiet"]
    found = json.loads(run(*words, "--json", "--out", "tree.json"))
    assert found["formulation"] == "stump"
    assert found["objective"] == pytest.approx(cheapest(*table()))
    assert run("show", "tree.json").startswith("axis-parallel tree, 1 level of splits, 1 split")
    assert run(*words).startswith("stump on 24 rows and 3 features, miss=3.0, split=0.5")


@pytest.mark.usefixtures("_folder")
def test_the_command_line_writes_plans_and_races_it() -> None:
    words = ["data.csv", "-f", "toy_formulation.py:Stump"]
    assert "model      stump: MILP" in run("write", *words, "--out", "model.lp")
    assert "problem    MILP" in run("plan", *words)
    assert "highs   optimal" in run("race", *words, "--solvers", "highs", "-q")


@pytest.mark.usefixtures("_folder")
def test_the_command_line_tells_its_size() -> None:
    shown = run("size", "data.csv", "-f", "toy_formulation.py:Stump")
    assert shown.startswith("stump on 24 rows, 3 features, 2 classes")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-f", "toy_formulation.py:Stumps"], "'toy_formulation.py:Stumps' cannot be loaded: AttributeError"),
        (["-f", "none.py:Stump"], "'none.py:Stump' cannot be loaded: FileNotFoundError"),
        (["-f", "no_module:Stump"], "'no_module:Stump' cannot be loaded: ModuleNotFoundError"),
        (["-f", "toy_formulation.py:StumpParams"], "is not a formulation"),
        (
            ["-f", "toy_formulation.py:Stump", "--param", "mis=3"],
            "'mis' is not a parameter of 'stump'. Did you mean 'miss'?",
        ),
        (["-f", "toy_formulation.py:Stump", "--param", "miss=-1"], "miss=-1 is not allowed for 'stump'"),
        (
            ["-f", "toy_formulation.py:Stump", "--param", "miss"],
            "'miss' should be the name of a parameter, =, and a value.",
        ),
        (["-f", "toy_formulation.py:Stump", "--depth", "2"], "'depth' is not a parameter of 'stump'."),
        (["--depth", "2", "--param", "depth=2"], "depth is given more than once."),
    ],
)
@pytest.mark.usefixtures("_folder")
def test_the_command_line_says_what_is_wrong(words: list[str], message: str) -> None:
    done = CliRunner().invoke(main, ["fit", "data.csv", *words])
    assert done.exit_code == 2
    assert message in done.stderr
