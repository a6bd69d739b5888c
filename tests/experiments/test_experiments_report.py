"""The three rules on cells whose answers are worked out by hand, and the report whose figures are those of the rules."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from click.testing import CliRunner
from scipy import stats

from octsvm.cli import main
from octsvm.errors import InvalidData, InvalidParameter, MissingPackage, OutputNotWritable
from octsvm.experiments import Cell, Part, Protocol, load_protocol
from octsvm.experiments.report import TEMPLATE, pictures, require_packages, tables, write_report
from octsvm.experiments.report.figures import Run, gap
from octsvm.experiments.report.paper import published, published_averages
from octsvm.experiments.report.ranks import critical_difference, rank
from octsvm.experiments.report.tables import duration
from octsvm.experiments.selection import RULES, select, smoothed
from octsvm.reports import document
from octsvm.reports.document import number

Grid = dict[str, list[float]]


def protocol(methods: Mapping[str, Grid], **changes: Any) -> Protocol:
    specs = {m: {"title": m.upper(), "kind": m, "grid": grid} for m, grid in methods.items()}
    small = {"name": "small", "title": "Small", "sets": ["heart"], "noise": [0.2]}
    small |= {"folds": 2, "repetitions": 1}
    return load_protocol(small | {"methods": specs} | changes)


def cell(
    method: str, params: Mapping[str, float], right: float, of: int = 100, **changes: Any
) -> dict[str, Any]:
    """One row as a store has it."""
    place = {"set": "heart", "noise": 0.2, "repetition": 0, "fold": 0, "inner": False}
    cell = {"method": method, "params": json.dumps(dict(params)), "n_right": right, "n_score": of}
    rest = {
        "train_right": 40,
        "n_train": 50,
        "seconds": 1.0,
        "splits": 1,
        "flipped": 10,
        "status": "",
        "error": "",
    }
    return (
        place | cell | rest | dict.fromkeys(("objective", "bound", "relabelled", "both"), math.nan) | changes
    )


def frame(*cells: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(cells))


def alphas(
    table: Mapping[float, tuple[int, int]], inner: bool = False, of: int = 100, **changes: Any
) -> list:
    """Cells of CART: for each alpha the rows predicted right in fold 0 and in fold 1."""
    return [
        cell("cart", {"alpha": a}, right, of, fold=fold, inner=inner, **changes)
        for a, both in table.items()
        for fold, right in enumerate(both)
    ]


def picked(chosen: pd.DataFrame, rule: str, method: str = "cart") -> list[tuple[int, float, int]]:
    """(fold, alpha, rows right) of a rule."""
    these = chosen[(chosen["rule"] == rule) & (chosen["method"] == method)]
    return [
        (f, json.loads(p)["alpha"], r)
        for f, p, r in zip(these["fold"], these["params"], these["n_right"], strict=True)
    ]


ONE = {"cart": {"alpha": [0.1, 1.0, 10.0]}}
FULL = {0.1: (80, 60), 1.0: (70, 72), 10.0: (65, 75)}  # means 70, 71, 70
INNER = {0.1: (12, 11), 1.0: (11, 14), 10.0: (15, 10)}


# ------------------------------------------------------------------------------------------------------- rules


def test_the_three_rules_by_hand() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20))
    found = select(cells, protocol=protocol(ONE))
    assert picked(found.chosen, "oracle_mean") == [(0, 1.0, 70), (1, 1.0, 72)]
    assert picked(found.chosen, "oracle_fold") == [(0, 0.1, 80), (1, 10.0, 75)]
    assert picked(found.chosen, "honest") == [(0, 10.0, 65), (1, 1.0, 72)]
    means = {rule: found.table.loc[(rule, "heart", 0.2, "cart"), "accuracy"] for rule in RULES}
    assert means == pytest.approx({"oracle_mean": 0.71, "oracle_fold": 0.775, "honest": 0.685})
    assert found.missing.empty
    assert set(found.table["folds"]) == {2}


def test_every_choice_names_its_cells_as_the_store_does() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20))
    chosen = select(cells, ["honest"], protocol=protocol(ONE)).chosen
    full, inner = (Part("heart", 0.2, 0, 0, kind) for kind in (False, True))
    assert chosen.loc[0, "key"] == Cell(full, "cart", {"alpha": 10.0}).key
    assert chosen.loc[0, "inner_key"] == Cell(inner, "cart", {"alpha": 10.0}).key


def test_mean_is_over_folds_not_over_rows() -> None:
    cells = alphas({0.1: (9, 50), 1.0: (6, 70)})
    for one in cells:
        one["n_score"] = (10, 100)[one["fold"]]
    found = select(frame(*cells), ["oracle_mean"], protocol=protocol({"cart": {"alpha": [0.1, 1.0]}}))
    assert picked(found.chosen, "oracle_mean") == [(0, 0.1, 9), (1, 0.1, 50)]  # 0.7, not 59 of 110
    assert found.table["accuracy"].tolist() == [pytest.approx(0.7)]


def test_the_honest_rule_looks_at_no_test_label() -> None:
    inner = alphas(INNER, inner=True, of=20)
    choices = []
    for full in (FULL, {a: (100 - one, 100 - two) for a, (one, two) in FULL.items()}):
        chosen = select(frame(*alphas(full), *inner), ["honest"], protocol=protocol(ONE)).chosen
        choices.append([(f, a) for f, a, _ in picked(chosen, "honest")])
    assert choices[0] == choices[1] == [(0, 10.0), (1, 1.0)]


def honest_alpha(scores: list[int], splits: list[int] | None = None, full: int = 50) -> tuple[float, int]:
    """The grid point that the honest rule chooses from inner scores, and how many were tied."""
    grid = [10.0**k for k in range(len(scores))]
    cells = [cell("cart", {"alpha": a}, full + k) for k, a in enumerate(grid)]
    cells += [
        cell("cart", {"alpha": a}, right, 20, inner=True, splits=splits[k] if splits else 1)
        for k, (a, right) in enumerate(zip(grid, scores, strict=True))
    ]
    chosen = select(frame(*cells), ["honest"], protocol=protocol({"cart": {"alpha": grid}}, folds=2)).chosen
    assert len(chosen) == 1
    return math.log10(json.loads(chosen.loc[0, "params"])["alpha"]), int(chosen.loc[0, "tied"])


def test_ties_of_the_honest_rule() -> None:
    assert honest_alpha([15, 10, 14, 15, 14]) == (3, 2), "the better neighbourhood: 14.33 against 12.5"
    assert honest_alpha([10, 15, 15, 15, 10]) == (2, 3), "the middle of a plateau"
    assert honest_alpha([15, 15], [3, 2]) == (1, 2), "the smaller tree"
    assert honest_alpha([15, 15], [2, 2]) == (0, 2), "the order of the grid"
    assert honest_alpha([14, 15, 15, 14], [2, 1, 0, 0]) == (2, 2)


def test_neighbours_differ_by_one_step_of_one_parameter() -> None:
    scores = np.array([[1.0, 2.0, 4.0, 8.0, np.nan, 32.0]])
    found = smoothed(scores, (2, 3), np.arange(6))
    sums, counts = [1 + 2 + 8, 2 + 1 + 4, 4 + 2 + 32, 8 + 1, 2 + 8 + 32, 32 + 4], [3, 3, 3, 2, 3, 2]
    assert found[0].tolist() == [a / b for a, b in zip(sums, counts, strict=True)]
    mixed = [5, 3, 0, 1, 4, 2]
    again = smoothed(scores[:, mixed], (2, 3), np.array(mixed))
    assert again[0].tolist() == found[0, mixed].tolist()


def test_neighbours_follow_the_values_not_the_order_of_the_grid() -> None:
    grid: Grid = {"c1": [10.0, 0.1, 1.0], "c2": [2.0, 1.0]}
    points = [dict(zip(grid, p, strict=True)) for p in product(*grid.values())]
    score = {(10.0, 2.0): 10, (0.1, 2.0): 15, (1.0, 2.0): 9, (10.0, 1.0): 15, (0.1, 1.0): 8, (1.0, 1.0): 14}
    cells = [cell("octsvm", p, 50) for p in points]
    cells += [cell("octsvm", p, score[p["c1"], p["c2"]], 20, inner=True) for p in points]
    chosen = select(frame(*cells), ["honest"], protocol=protocol({"octsvm": grid})).chosen
    # (10, 1) has the neighbours (1, 1) and (10, 2): 39 / 3; (0.1, 2) has (1, 2) and (0.1, 1): 32 / 3.
    assert json.loads(chosen.loc[0, "params"]) == {"c1": 10.0, "c2": 1.0}


def test_ties_of_the_oracles_go_to_the_first_of_the_grid() -> None:
    cells = frame(*alphas({10.0: (70, 70), 1.0: (60, 80), 0.1: (80, 60)}))
    chosen = select(cells, ["oracle_mean", "oracle_fold"], protocol=protocol(ONE)).chosen
    assert [a for _, a, _ in picked(chosen, "oracle_mean")] == [0.1, 0.1]
    assert set(chosen.loc[chosen["rule"] == "oracle_mean", "tied"]) == {3}


def test_params_are_recognised_however_they_are_written() -> None:
    cells = frame(
        cell("octsvm", {}, 60) | {"params": '{"c2": 1, "c1": 1e1}'},
        cell("octsvm", {}, 50) | {"params": '{"c1":10,"c2":2.0}'},
    )
    found = select(cells, ["oracle_fold"], protocol=protocol({"octsvm": {"c1": [10.0], "c2": [1.0, 2.0]}}))
    assert found.chosen["n_right"].tolist() == [60]
    for wrong in ("{", "[1]", '{"c1": "x"}'):
        with pytest.raises(InvalidData, match="no JSON object of numbers"):
            select(frame(cell("cart", {}, 1) | {"params": wrong}))


# -------------------------------------------------------------------------------- runs with gaps and failures


TWO = {"cart": {"alpha": [0.1, 1.0]}, "svm": {"C": [1.0]}}


def test_only_folds_that_all_methods_have_are_compared() -> None:
    cells = frame(*alphas({0.1: (80, 20), 1.0: (70, 60)}), cell("svm", {"C": 1.0}, 75, fold=0))
    found = select(cells, ["oracle_mean"], protocol=protocol(TWO))
    assert picked(found.chosen, "oracle_mean") == [(0, 0.1, 80)], "of fold 0 alone, 0.1 is best"
    assert found.table["folds"].tolist() == [1, 1]
    why = found.missing.set_index("method")["why"].to_dict()
    assert why == {"cart": "other methods lack folds", "svm": "1 of 2 fits are not there"}
    assert found.missing["compared_oracle_mean"].tolist() == [1, 1]


def test_a_fold_with_half_a_grid_does_not_count() -> None:
    cells = frame(*alphas({0.1: (80, 20), 1.0: (70, 60)})[:-1])
    found = select(cells, ["oracle_fold"], protocol=protocol({"cart": {"alpha": [0.1, 1.0]}}))
    assert picked(found.chosen, "oracle_fold") == [(0, 0.1, 80)]
    assert found.missing.loc[0, ["expected", "complete"]].tolist() == [2, 1]


def test_a_method_that_has_not_begun_takes_nothing_from_the_others() -> None:
    found = select(frame(*alphas({0.1: (80, 20), 1.0: (70, 60)})), ["oracle_mean"], protocol=protocol(TWO))
    assert found.table["folds"].tolist() == [2]
    assert found.missing["method"].tolist() == ["svm"]
    assert found.missing["why"].tolist() == ["2 of 2 fits are not there"]


def test_the_honest_rule_waits_for_the_inner_fits() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20)[:-1])
    found = select(cells, protocol=protocol(ONE))
    assert found.table.loc["oracle_mean", "folds"].tolist() == [2]
    assert found.table.loc["honest", "folds"].tolist() == [1]
    assert found.missing["why"].tolist() == ["1 of 6 inner fits are not there"]
    alone = select(frame(*alphas(FULL)), protocol=protocol(ONE))
    assert "honest" not in alone.table.index.get_level_values("rule")


def test_failed_fits_are_not_chosen() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20))
    whole = ~cells["inner"]
    failed = whole & (cells["params"] == '{"alpha": 1.0}') & (cells["fold"] == 1)
    failed |= whole & (cells["params"] == '{"alpha": 10.0}') & (cells["fold"] == 0)
    cells.loc[failed, "error"] = "EngineFailed: it broke"
    found = select(cells, protocol=protocol(ONE))
    assert picked(found.chosen, "oracle_mean") == [(0, 0.1, 80), (1, 0.1, 60)], "it worked on both folds"
    assert picked(found.chosen, "oracle_fold") == [(0, 0.1, 80), (1, 10.0, 75)]
    assert picked(found.chosen, "honest") == [(0, 0.1, 80), (1, 0.1, 60)]
    assert found.missing.empty


def test_where_no_point_worked_on_all_folds() -> None:
    cells = frame(*alphas({0.1: (80, 20), 1.0: (70, 60)}))
    cells.loc[[0, 3], ["error", "n_right"]] = ["no", math.nan]
    found = select(cells, ["oracle_mean", "oracle_fold"], protocol=protocol({"cart": {"alpha": [0.1, 1.0]}}))
    assert picked(found.chosen, "oracle_mean") == []
    assert picked(found.chosen, "oracle_fold") == [(0, 1.0, 70), (1, 0.1, 20)]
    assert found.missing["why"].tolist() == ["oracle_mean: no grid point worked on all compared folds"]


def test_a_fold_where_all_fits_failed_does_not_count() -> None:
    cells = frame(*alphas({0.1: (80, 20), 1.0: (70, 60)}))
    cells.loc[cells["fold"] == 1, "error"] = "no"
    found = select(cells, ["oracle_mean"], protocol=protocol({"cart": {"alpha": [0.1, 1.0]}}))
    assert picked(found.chosen, "oracle_mean") == [(0, 0.1, 80)]
    assert found.missing["why"].tolist() == ["every fit failed on 1 of 2 folds"]


def test_no_cells_at_all() -> None:
    nothing = frame(*alphas(FULL)).iloc[:0]
    found = select(nothing, protocol=protocol(TWO))
    assert found.chosen.empty
    assert found.table.empty
    assert len(found.missing) == 2


def test_the_later_of_two_rows_for_one_cell_counts() -> None:
    cells = frame(*alphas(FULL), *alphas({0.1: (10, 10)}))
    chosen = select(cells, ["oracle_fold"], protocol=protocol(ONE)).chosen
    assert picked(chosen, "oracle_fold") == [(0, 1.0, 70), (1, 10.0, 75)]


def test_without_a_protocol_what_occurs_is_expected() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20))
    for column in ("chosen", "table"):
        one = getattr(select(cells), column)
        other = getattr(select(cells, protocol=protocol(ONE)), column)
        pd.testing.assert_frame_equal(one, other)


def test_the_order_of_the_cells_does_not_matter() -> None:
    cells = frame(*alphas(FULL), *alphas(INNER, inner=True, of=20))
    mixed = cells.sample(frac=1, random_state=0, ignore_index=True)
    one, other = (select(c, protocol=protocol(ONE)).chosen for c in (cells, mixed))
    pd.testing.assert_frame_equal(one, other)


def test_wrong_input() -> None:
    with pytest.raises(InvalidParameter, match="rule='best' is none; there are oracle_mean"):
        select(frame(*alphas(FULL)), ["best"])  # type: ignore[list-item]
    with pytest.raises(InvalidData, match="no column inner, n_right"):
        select(frame(*alphas(FULL)).drop(columns=["n_right", "inner"]))


# ------------------------------------------------------------------------------------------ published figures


def test_published_figures_are_consistent_with_their_printed_averages() -> None:
    table, printed = published(), published_averages()
    assert table.shape == (32, 4)
    means = table.groupby(level="set").mean()
    means.loc["total"] = table.mean()
    assert set(means.index) == set(printed.index)
    # The table averages what it had before rounding.
    assert (means - printed).abs().to_numpy().max() <= 0.0101


def test_published_figures_agree_with_the_paper(root: Path) -> None:
    papers = list((root.parent / "shared" / "paper").glob("*.tex"))
    if not papers:
        pytest.skip("the paper is not here (../shared/paper)")
    text = re.sub(r"\\textbf\{([\d.]+)\}", r"\1", papers[0].read_text(encoding="utf-8"))
    lines = re.findall(r"& (\d+) & ([\d.]+) & ([\d.]+) & ([\d.]+) & ([\d.]+) \\\\", text)
    names = re.findall(r"\\multirow\{5\}\{\*\}\{([\w']+)\}", text)
    sets = [n.lower().replace("'", "") for n in names]
    assert published().index.tolist() == [
        (s, int(line[0]) / 100) for s, line in zip(np.repeat(sets, 4), lines, strict=True)
    ]
    assert published().to_numpy().tolist() == [[float(v) for v in line[1:]] for line in lines]
    printed = re.findall(r"Averages?\} & ([\d.]+) & ([\d.]+) & ([\d.]+) & ([\d.]+)", text)
    assert published_averages().to_numpy().tolist() == [[float(v) for v in line] for line in printed]


# ------------------------------------------------------------------------------------------------------- ranks

# Demšar 2006, Table 6: C4.5, with m, with cf, with both, over 14 sets.
_PLAIN = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957]
_M = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978]
# 0.975 is there twice in print, with ranks 2 and 3.
_CF = [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.0, 0.965, 0.614, 0.9751, 0.946]
_BOTH = [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.0, 0.962, 0.669, 0.975, 0.970]
DEMSAR = np.array([_PLAIN, _M, _CF, _BOTH]).T


@pytest.mark.slow
def test_ranks_of_a_published_example() -> None:
    found = rank(pd.DataFrame(DEMSAR, columns=["plain", "m", "cf", "both"]))
    assert found is not None
    assert found.mean.round(3).to_dict() == {"both": 1.964, "m": 2.0, "cf": 2.893, "plain": 3.143}
    assert found.mean.index.tolist() == ["both", "m", "cf", "plain"]
    squares = float((found.mean**2).sum())
    assert 12 * 14 / 20 * (squares - 4 * 25 / 4) == pytest.approx(9.28, abs=0.005)  # printed, without ties
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    assert found.statistic == pytest.approx(stats.friedmanchisquare(*DEMSAR.T).statistic)
    assert found.p == pytest.approx(stats.friedmanchisquare(*DEMSAR.T).pvalue)
    pair = found.pairs.set_index(["first", "second"]).loc[("both", "plain")]
    assert pair[["won", "tied", "lost"]].tolist() == [11, 1, 2]
    # Demšar, Section 3.1.3 compares plain and m: R+ = 93 of 105; scipy leaves ties out.
    assert pair["p"] == pytest.approx(stats.wilcoxon(DEMSAR[:, 3] - DEMSAR[:, 0]).pvalue)


@pytest.mark.parametrize(
    ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)]
)
def test_critical_differences_of_the_published_table(k: int, q: float) -> None:
    assert critical_difference(k, 32) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 32)), abs=5e-4)


@pytest.mark.slow
def test_p_values_are_corrected_after_holm_for_the_pairs_that_differ() -> None:
    """Holm by hand: the smallest times the number of pairs, the next times one less, never falling, 1 at most."""
    found = rank(pd.DataFrame(DEMSAR, columns=["plain", "m", "cf", "both"]).assign(again=DEMSAR[:, 1]))
    assert found is not None
    p = found.pairs["p"]
    assert p.isna().tolist().count(True) == 1, "m and again are alike"
    known = p.dropna().sort_values()
    expected = np.minimum(1, np.maximum.accumulate(known * np.arange(len(known), 0, -1)))
    assert found.pairs.loc[known.index, "p_holm"].tolist() == pytest.approx(expected.tolist())
    assert found.pairs["p_holm"].isna().tolist() == p.isna().tolist()


@pytest.mark.slow
def test_bars_join_what_lies_within_the_critical_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    diagram = scikit_posthocs.critical_difference_diagram

    def kept(*args: Any, **options: Any) -> Any:
        made.append(diagram(*args, **options))
        return made[-1]

    monkeypatch.setattr(scikit_posthocs, "critical_difference_diagram", kept)
    rng = np.random.default_rng(0)
    for spread in (0.0, 0.5, 2.0, 20.0):
        table = pd.DataFrame(rng.normal(size=(12, 6)) + spread * np.arange(6), columns=list("fedcba"))
        found = rank(table)
        assert found is not None
        picture = pictures.rank_picture("x", found, {"a": "A$_", "b": "_b"})
        ET.fromstring(picture.light)
        drawn = [{round(float(x), 6) for x in line.get_xdata()} for [line] in made.pop()["crossbars"]]
        bars = sorted(tuple(sorted(ends)) for ends in drawn)
        # By hand: each largest run of sorted ranks within the critical difference.
        ranks, most = found.mean.to_numpy(), found.critical_difference
        runs = [[k for k, value in enumerate(ranks) if low <= value <= low + most] for low in ranks]
        largest = [r for k, r in enumerate(runs) if len(r) > 1 and (k == 0 or r[-1] > runs[k - 1][-1])]
        assert bars == sorted(tuple(round(float(ranks[k]), 6) for k in r) for r in largest)
        made.clear()


def test_too_little_to_rank() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, math.nan]})
    assert rank(table) is None
    assert rank(table[["a"]]) is None
    same = rank(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}))
    assert same is not None
    assert same.mean.tolist() == [1.5, 1.5]
    assert math.isnan(same.pairs.loc[0, "p"])


# ------------------------------------------------------------------------------------------------------ report

METHODS: dict[str, Grid] = {
    "cart": {"alpha": [0.1, 1.0]},
    "octsvm": {"c1": [0.1, 1.0], "c2": [1.0]},
    "svm": {"C": [1.0]},
}


def run(**changes: Any) -> tuple[Protocol, pd.DataFrame, dict[str, Any]]:
    """A whole small run with seeded numbers."""
    p = protocol(METHODS, sets=["heart", "sonar", "my_set"], noise=[0.0, 0.4], repetitions=2, **changes)
    rng = np.random.default_rng(0)
    rows = []
    for part, (m, spec) in product(p.parts(), p.methods.items()):
        for point in spec.settings():
            of = 20 if part.inner else 150
            flips = round(50 * part.noise)
            row = cell(m, point, int(rng.integers(of // 2, of)), of, inner=part.inner, flipped=flips)
            row |= {k: getattr(part, k) for k in ("set", "noise", "repetition", "fold")}
            row["seconds"] = float(rng.uniform(0.1, 2))
            if m == "octsvm":
                row |= {"relabelled": flips + 2, "both": flips // 2, "objective": 10.0, "bound": 7.5}
            rows.append(row)
    return p, frame(*rows), {"octsvm": "0.1.0", "machine": {"cores": 2, "system": "some & <other>"}}


def page(folder: Path) -> ET.Element:
    """The HTML report, read as XML."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>"))


def texts(element: ET.Element) -> list[str]:
    return ["".join(e.itertext()) for e in element]


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of a report's time."""
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(run(), folder)
    return folder


@pytest.mark.slow
def test_figures_in_the_page_are_those_of_the_rules(whole: Path) -> None:
    p, cells, _ = run()
    table, html = select(cells, p.rules, protocol=p).table["accuracy"], page(whole)
    targets = {e.get("id") for e in html.iter() if e.get("id")}
    seen = set()
    for line in html.iter("a"):
        target = (line.get("href") or "").removeprefix("#")
        assert target in targets
        found = re.fullmatch(r"(oracle_mean|oracle_fold|honest)-(\w+)-(\d+)-(\w+)", target)
        if found:
            rule, name, percent, method = found.groups()
            mean = 100 * table[rule, name, int(percent) / 100, method]
            assert "".join(line.itertext()) == f"{mean:.2f}"
            seen.add(found.groups())
    assert len(seen) == 3 * 3 * 2 * 3


@pytest.mark.slow
def test_the_page_lists_the_cells_behind_every_figure(whole: Path) -> None:
    chosen = pd.read_csv(whole / "selected.csv", keep_default_na=False)
    p, cells, _ = run()
    assert len(chosen) == len(p.rules) * len(p.sets) * len(p.noise) * len(METHODS) * p.folds * p.repetitions
    keys = set()
    for row in cells.to_dict("records"):
        part = Part(row["set"], row["noise"], row["repetition"], row["fold"], row["inner"])
        keys.add(Cell(part, row["method"], json.loads(row["params"])).key)
    assert set(chosen["key"]) <= keys
    assert set(chosen["inner_key"]) - {""} <= keys
    rows = {e.get("id"): line for line in page(whole).iter("tr") for e in line if e.get("id")}
    for (rule, name, noise, method), group in chosen.groupby(["rule", "set", "noise", "method"]):
        line = texts(rows[f"{rule}-{name}-{100 * noise:g}-{method}"])
        assert line[3] == f"{100 * (group['n_right'] / group['n_score']).mean():.2f}"
        for r in group.to_dict("records"):
            assert f"r{r['repetition']}f{r['fold']} {r['n_right']}/{r['n_score']}" in line[4]


@pytest.mark.slow
def test_differences_and_averages(whole: Path) -> None:
    listed = pd.read_csv(whole / "accuracies.csv").set_index(["rule", "set", "noise", "method"])
    line = listed.loc[("oracle_mean", "heart", 0.4, "octsvm")]
    assert line["paper"] == 76.19
    assert line["difference"] == pytest.approx(line["accuracy"] - 76.19, abs=1e-5)
    assert listed.loc[("oracle_mean", "my_set", 0.4, "octsvm"), "paper":].isna().all()
    assert listed.xs("svm", level="method")["paper"].isna().all()
    text = (whole / "report.md").read_text(encoding="utf-8")
    part = text.split("## Table 2: best mean test accuracy")[1].split("\n## ")[0]
    rows = [re.sub(r"[*\s]", "", r).split("|")[1:-1] for r in part.splitlines() if r.startswith("|")]
    figures = [f"{m}{w}" for m in ("CART", "OCTSVM") for w in ("paper", "ours", "diff.")]
    assert rows[0] == ["set", "%flipped", *figures]
    places = product(("heart", "sonar"), (0.0, 0.4))
    ours = {k: listed.loc[("oracle_mean", *k, "octsvm"), "accuracy"] for k in places}
    heart = np.mean([ours["heart", 0.0], ours["heart", 0.4]])
    assert rows[4][:2] == ["", "average"]
    assert rows[4][5:] == [f"{(84.13 + 76.19) / 2:.2f}", f"{heart:.2f}", number(heart - 80.16, "+.2f")]
    total = np.mean(list(ours.values()))
    given = np.mean([84.13, 76.19, 74.76, 63.84])
    assert rows[-1][5:] == [number(given), number(total), number(total - given, "+.2f")]
    assert rows[8][2] == "–", "a set that the paper has not"


@pytest.mark.slow
def test_printed_averages_are_shown_for_whole_sets(tmp_path: Path, no_pictures: None) -> None:
    p = protocol({"octsvm": {"c1": [1.0]}}, sets=["australian"], noise=[0.0, 0.2, 0.3, 0.4], folds=2)
    cells = [
        cell("octsvm", {"c1": 1.0}, 80, set="australian", noise=v, fold=f, inner=i)
        for v, f, i in product(p.noise, (0, 1), (False, True))
    ]
    write_report((p, frame(*cells), {}), tmp_path, formats=["md"])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "|  | average | 81.26 | 80.00 | \u22121.26 |" in text  # its four cells average to 81.25


@pytest.mark.slow
def test_the_page_needs_nothing_else(whole: Path) -> None:
    text = (whole / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href|srcset)=\"(?!#|data:)", text)
    assert "<script" not in text
    assert "some &amp; &lt;other&gt;" in text
    assert "prefers-color-scheme: dark" in text
    pictures = list(page(whole).iter("img"))
    assert len(pictures) == 3 + 4 + 3 + 2  # accuracy, ranks with the paper's, relabelling, seconds and gap
    assert all(img.get("alt") for img in pictures)


@pytest.mark.slow
def test_markdown_shows_its_pictures_and_whole_tables(whole: Path) -> None:
    text = (whole / "report.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:src|srcset)=\"([\w-]+\.svg)\"", text)
    assert len(named) == 24
    for name in named:
        ET.parse(whole / name)
    assert {f.name for f in whole.glob("*.svg")} == set(named)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


@pytest.mark.slow
def test_relabelling_time_and_gap(whole: Path) -> None:
    text = (whole / "report.md").read_text(encoding="utf-8")
    # 3 sets x 2 repetitions x 2 folds: 12 chosen fits of 50 rows, 20 flipped, 22 relabelled, 10 of them both.
    assert "| OCTSVM | 40 | 600 | 240 | 264 | 120 | 45.5 | 50.0 |" in text
    assert "| OCTSVM | 0 | 600 | 0 | 24 | 0 | – | – |" in text
    part = text.split("## Time and gap")[1]
    line = re.search(r"^\| OCTSVM \| 48 \| .*$", part, re.MULTILINE)
    assert line is not None
    assert line[0].endswith("| 48 | 0 | 25.0 | 25.0 | 25.0 | 25.0 |")
    assert re.search(r"^\| CART \| 48 \| .* \| 0 \| – \| – \| – \| – \| – \|$", part, re.MULTILINE)


def test_gap() -> None:
    cells = pd.DataFrame({"objective": [10.0, 0.0, 5.0, 4.0], "bound": [4.0, 0.0, -np.inf, np.nan]})
    assert gap(cells).tolist()[:2] == [0.6, 0.0]
    assert gap(cells)[2:].isna().all()


@pytest.mark.slow
def test_what_the_report_says_of_a_run_with_gaps(tmp_path: Path, no_pictures: None) -> None:
    p, cells, _ = run()
    cells = cells[~((cells["method"] == "svm") & (cells["set"] == "sonar"))]
    cells = cells[~((cells["method"] == "octsvm") & (cells["repetition"] == 1) & (cells["set"] == "heart"))]
    cells = cells.reset_index(drop=True)
    bad = cells.index[(cells["method"] == "cart") & (cells["set"] == "my_set")][:2]
    cells.loc[bad, "error"] = "EngineFailed: a | pipe and <tag>"
    write_report((p, cells, {}), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    without_pictures(tmp_path)
    whole = 3 * 2 * 2 * 2 * 2 * 5
    assert f"{len(cells)} of {whole} fits are there" in text
    assert "2 of them failed" in text
    assert "This run is not complete: 11 combinations" in text
    for part in (
        "| heart | 40 | OCTSVM | 4 | 2 | 2 | 2 | 4 of 8 fits are not there; 4 of 8 inner fits are not there |",
        "| heart | 40 | CART | 4 | 2 | 2 | 2 | other methods lack folds |",
        "| CART | 2 | EngineFailed: a \\| pipe and \\<tag\\> | my\\_set/",
        "| my\\_set | 0 | CART | 4 | 3 | 3 | 3 | every fit failed on 1 of 4 folds |",
        "Averaged are the 4 of 6 pairs",
    ):
        assert part in text
    html = page(tmp_path)
    tips = {a.get("title") for a in html.iter("td") if a.get("title")}
    assert any(t.startswith("mean of 2 folds") for t in tips if t)


@pytest.mark.slow
def test_a_method_without_cells_is_left_out(tmp_path: Path, no_pictures: None) -> None:
    p, cells, _ = run()
    write_report((p, cells[cells["method"] != "octsvm"], {}), tmp_path, formats=["md"])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    table = text.split("## Table 2: best mean test accuracy")[1].split("\n## ")[0]
    assert "OCTSVM" not in table
    assert "CART paper" in table
    assert "12 of 12" not in text.split("## Missing and failed")[0]
    assert "## Relabelling" not in text


def test_a_run_without_any_cell(tmp_path: Path) -> None:
    p, cells, meta = run()
    write_report((p, cells.iloc[:0], meta), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "0 of 240 fits are there (0.0 %)" in text
    assert "No fold is complete yet for this rule." in text
    page(tmp_path)


@pytest.mark.slow
def test_without_matplotlib_tables_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(run(), tmp_path)
    without_pictures(tmp_path)


def without_pictures(folder: Path) -> None:
    """The report says what would draw them, and has its tables."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "need matplotlib and scikit-posthocs, pip install 'octsvm\\[report\\]'" in text
    assert "<picture>" not in text
    assert not list(folder.glob("*.svg"))
    assert "## Table 2: best mean test accuracy" in text
    assert "Friedman: chi-square" in text
    assert not list(page(folder).iter("img"))


@pytest.mark.parametrize("lacking", ["jinja2", "statsmodels"])
def test_without_what_makes_it_there_is_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == lacking else found(name, *more)
    )
    for ask in (require_packages, lambda: write_report(run(), tmp_path / "here")):
        with pytest.raises(MissingPackage, match=rf"needs {lacking}, .* pip install 'octsvm\[report\]'"):
            ask()
    assert not (tmp_path / "here").exists()
    # Before a run, not after it.
    words = ["table2", "--quick", "--out", str(tmp_path / "here"), "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code != 0
    assert "octsvm[report]" in done.output
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
def test_cells_that_carry_their_protocol_give_the_same_files(
    tmp_path: Path, whole: Path, no_pictures: None
) -> None:
    p, cells, _ = run()
    with pytest.raises(InvalidData, match="attrs has no 'protocol'"):
        write_report(cells, tmp_path)
    machines = [{"octsvm": "0.1.0", "cpus": 2}, {"octsvm": "0.1.1", "cpus": 4}]
    cells.attrs |= {"protocol": p.model_dump(mode="json"), "hash": "abc", "machines": machines}
    report, *rest = write_report(cells, tmp_path / "carried", formats=["md"])
    assert [f.name for f in (report, *rest)] == ["report.md", "selected.csv", "accuracies.csv"]
    text = report.read_text(encoding="utf-8")
    for line in ("| hash | abc |", "| machine 1 octsvm | 0.1.0 |", "| machine 2 cpus | 4 |"):
        assert line in text
    for file in rest:
        assert file.read_bytes() == (whole / file.name).read_bytes()


def test_wrong_arguments_of_the_report(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="format='pdf' is none; there are html, md"):
        write_report(run(), tmp_path, formats=["pdf"])  # type: ignore[list-item]
    (tmp_path / "file").write_text("")
    p, cells, meta = run()
    with pytest.raises(OutputNotWritable, match="cannot be written to"):
        write_report((p, cells.iloc[:0], meta), tmp_path / "file")


def test_numbers_as_text() -> None:
    told = {0.04: "0.0 seconds", 59.0: "59.0 seconds", 90.0: "1.5 minutes", 9000.0: "2.5 hours"}
    assert {v: duration(v) for v in told} == told
    values, texts = (1.25, -3.0, 0.0, -0.01, math.nan), ["+1.2", "\u22123.0", "0.0", "0.0", "–"]
    assert [number(v, "+.1f") for v in values] == texts


def test_text_is_escaped() -> None:
    p = protocol({"cart": {"alpha": [1.0]}}, title="<t> & *stars* | [x]")
    cells = frame(*alphas({1.0: (80, 60)}), cell("cart", {"alpha": 1.0}, 0, error='<a> "&"'))
    empty = Run(p, cells, {"<k>": "<v>"}, select(cells, p.rules, protocol=p))
    names = {"title": "<h> & _x_", "run": empty, "pictures": None, "tables": tables, "source": "<s>"}
    html = document.render("html", names, *TEMPLATE)
    ET.fromstring(html.removeprefix("<!DOCTYPE html>"))
    for part in ("&lt;h&gt; &amp; _x_", "&lt;t&gt; &amp;", *(f"&lt;{letter}&gt;" for letter in "akvs")):
        assert part in html
    markdown = document.render("markdown", names, *TEMPLATE)
    for part in ("# \\<h\\> & \\_x\\_", "\\<t\\> & \\*stars\\* \\| \\[x\\]", "\\<k\\>", "\\<a\\>"):
        assert part in markdown
