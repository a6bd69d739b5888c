"""``octsvm report``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidParameter, MissingPackage
from ..formulations.checks import plural
from ..formulations.replace_file import replace_text
from ..reports.document import Picture, Table, number, render
from . import options as shared
from .findings import weights_of, words_of
from .progress import signs_of_life
from .suspects import COST, listed_suspects, rows_of, rows_options, suspects_frame

if TYPE_CHECKING:
    from ..formulations.trees import Tree
    from .suspects import Rows

ROWS_AT_ONCE = 40  # longer tables are folded


@click.command(epilog=shared.EXIT_CODES)
@click.argument("tree", metavar="TREE.json")
@click.argument("table", required=False, metavar="[DATA.csv]")
@shared.out_option("REPORT.html", "The page: one file that needs no network.", required=True)
@rows_options
@shared.json_option
@shared.quiet_option
def report(tree: str, table: str | None, **options: Any) -> None:
    """Write what there is to say of a tree that "octsvm fit --out" saved: the tree, whom it suspects, what is proved.

    DATA.csv is the table that it was fitted to; it is read from where it was then if it is left out. Suspects are the rows
    whose labels the tree gave up or predicts otherwise, with the label given and the label believed. The page is made
    with jinja2, its pictures with matplotlib: pip install 'octsvm[report]'.

    \b
    Examples:
      octsvm fit measurements.csv --label species --formulation oct --out tree.json
      octsvm report tree.json --out report.html
      octsvm report tree.json measurements.csv --keep plant --out report.html
    """
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingPackage(
            "A report is made with jinja2, which is not installed here, and its pictures with matplotlib. Install both: pip install 'octsvm[report]'. octsvm show and "
            "octsvm predict do without."
        ) from None
    with signs_of_life("reading the table, and drawing", options["quiet"]):
        rows = rows_of(tree, table, options)
        page = render("html", _content(rows))
    replace_text(options["out"], page)
    listed = listed_suspects(rows)
    if options["as_json"]:
        shared.echo_json({"file": options["out"], "suspects": listed}, "report")
    else:
        click.echo(f"written    {options['out']}\nsuspects   {len(listed)}")


# -- what the page says -------------------------------------------------------------------------------------------


def _content(rows: Rows) -> dict[str, Any]:
    return {
        "title": f"A tree for {rows.data.label} of {Path(rows.data.name).name}",
        "summary": _summary(rows),
        "tree_picture": _picture(rows),
        "rules": _rules(rows.tree),
        "weights": _weights(rows.tree),
        "suspects_text": _suspects_text(rows),
        "suspects": _suspects(rows),
        "accuracy": _accuracy(rows),
        "confusions": [_confusion(rows, part) for part in _parts(rows)],
        "regions": _regions(rows),
        "certificate_text": _certificate_text(rows),
        "certificate": _certificate(rows),
        "columns": _columns(rows.tree),
    }


def _parts(rows: Rows) -> dict[str, list[int]]:
    parts = {"training": rows.trained, "held out": [i for i in rows.record.test_rows if i < len(rows.y)]}
    return {name: places for name, places in parts.items() if places}


def _summary(rows: Rows) -> list[str]:
    held = len(rows.record.test_rows)
    flipped = len(rows.record.flipped_rows)
    return [
        f"{rows.result.get('formulation')} on {rows.data.name}: {plural(len(rows.trained), 'row')} to train on, "
        f"{held or 'none'} held out, {plural(len(rows.tree.feature_names), 'feature')}; the label is {rows.data.label}."
        + (
            f" {plural(flipped, 'label')} of training rows {'was' if flipped == 1 else 'were'} changed on purpose."
            if flipped
            else ""
        )
    ]


def _long(heads: list[str], values: list[list[str]], caption: str) -> Table:
    return Table(heads, values, caption, folded=len(values) > ROWS_AT_ONCE)


def _rules(tree: Tree) -> Table:
    from ..exports import export_text

    rules = [[line.replace("    ", "\u2003")] for line in export_text(tree).splitlines()]
    return _long(["rule"], rules, "All rules: [1] is the root, [2] and [3] are below it")


def _weights(tree: Tree) -> Table | None:
    found = [
        ["" if k else str(t), name, number(scaled, ".4g"), number(original, ".4g")]
        for t, features in weights_of(tree)
        for k, (name, scaled, original) in enumerate(features)
    ]
    heads = ["split", "feature", "weight, scaled", "weight, per unit"]
    return _long(heads, found, "Weights of the splits") if found else None


def _suspects_text(rows: Rows) -> str:
    from ..formulations.trees import MarginTree

    if not rows.suspects:
        return "The tree agrees with every label, and gave none up."
    given_up = [s for s in rows.suspects if s.cost is not None]
    otherwise = sum(s.predicted != s.given for s in rows.suspects)
    text = f"{otherwise} of {len(rows.y)} rows are predicted otherwise than given"
    if otherwise < len(rows.suspects):
        text += f", and {len(rows.suspects) - otherwise} more had their label given up at a split, and are predicted as given"
    if not isinstance(rows.tree, MarginTree):
        how = "This model gives up no labels. Support is the share of the given label among the training rows of the same leaf."
    else:
        how = (
            f"{plural(len(given_up), 'label')} of training rows given up: the model found it cheaper to "
            "pay for that than to bend a split. "
            if given_up
            else "The model gave up no label of a training row. "
        )
        how += "Support is how far a row lies on its given label's side of the split that decides, in margins; below 0 it lies on the other side."
    return f"{text}: the least supported first. {how} That is a reason to look at a row, and no proof that its label is wrong."


def _suspects(rows: Rows) -> Table:
    frame = suspects_frame(rows)
    digits = {frame.columns[0]: ".0f", "support": ".2f", COST: ".3g"}
    values = [
        [
            number(v, digits[name]) if name in digits else "" if v != v else str(v)
            for name, v in zip(frame, row, strict=True)
        ]
        for row in frame.itertuples(index=False, name=None)
    ]
    return _long([str(c) for c in frame], values, "Suspects")


def _accuracy(rows: Rows) -> Table:
    values = []
    for part, places in _parts(rows).items():
        right = sum(rows.judged[i].predicted == rows.y[i] for i in places)
        common = max(sum(rows.y[i] == c for i in places) for c in rows.tree.classes)
        values.append(
            [
                part,
                len(places),
                right,
                number(right / len(places), ".4f"),
                number(common / len(places), ".4f"),
            ]
        )
    heads = ["rows", "count", "predicted as given", "share", "share of the most frequent label"]
    text = "Agreement with the given labels"
    if rows.record.folds is not None:
        text += f" ({rows.record.folds})"
    elif not rows.record.test_rows:
        text += " (no rows were held out, so nothing says how the tree does on others)"
    return Table(heads, values, text)


def _confusion(rows: Rows, part: str) -> Table:
    pairs, classes = [(rows.y[i], rows.judged[i].predicted) for i in _parts(rows)[part]], rows.tree.classes
    labels = list(classes) + sorted({str(given) for given, _ in pairs if given not in classes})
    values = [[str(given), *(pairs.count((given, predicted)) for predicted in classes)] for given in labels]
    return Table(["given", *(("predicted", str(c)) for c in classes)], values, f"Rows, {part}")


def _certificate_text(rows: Rows) -> list[str]:
    from ..result import STATUSES

    r = rows.result
    out = [f"{r.get('status')}: {STATUSES.get(str(r.get('status')), '')}. The solve ended by {r.get('stop')}; the solver was "
           f"{r.get('solver')} {r.get('solver_version')}."]  # fmt: skip
    objective, bound = r.get("objective"), r.get("bound")
    if isinstance(objective, (int, float)) and isinstance(bound, (int, float)):
        out.append(
            f"This tree costs {objective:.6g}, and no tree of this model costs less than {bound:.6g} (gap {100 * (r.get('gap') or 0):.3g} %): "
            "the first is recomputed from the tree, the second is the solver's bound."
        )
    out.append(_recomputed(rows, objective))
    return out + [f"Note: {note}." for note in r.get("notes", ()) if isinstance(note, str)]


def _recomputed(rows: Rows, objective: Any) -> str:
    """The objective once more, from the saved tree and the table alone."""
    from .. import OctsvmError, evaluate

    y = [rows.y[i] for i in rows.trained]
    params = {k: v for k, v in dict(rows.result.get("params") or {}).items() if k not in ("depth", "big_m")}
    try:
        found = evaluate(str(rows.result.get("formulation")), rows.tree, rows.X[rows.trained], y,
                         weights=[rows.class_weight[v] for v in y], **params).objective  # fmt: skip
    except (OctsvmError, TypeError) as error:
        return f"For this page the cost was not recomputed: {error}"
    same = isinstance(objective, (int, float)) and abs(found - objective) <= 1e-6 * max(1.0, abs(objective))
    return f"For this page the cost was recomputed from the saved tree and the table: {found:.6g}" + (
        ", as it was." if same else ", which is NOT what the fit said."
    )


def _certificate(rows: Rows) -> Table | None:
    from ..result import telling

    terms = rows.result.get("terms")
    if not isinstance(terms, Mapping) or not terms:
        return None
    values = [[str(k), words_of(terms, str(k)), number(float(v), ".6g")] for k, v in terms.items()]
    params = ", ".join(f"{k}={v}" for k, v in telling(rows.result.get("params") or {}).items())
    return Table(["term", "stands for", "cost"], values, f"What the tree costs, with {params}")


def _columns(tree: Tree) -> Table | None:
    if tree.preparation is None:
        return None
    values = []
    for c in tree.preparation.columns:
        holds = f"{c.kind} ({c.form})" if c.form else c.kind
        # What the arithmetic leaves behind the tenth digit is nothing.
        fill = c.fill if c.fill is None or isinstance(c.fill, str) else f"{c.fill:.10g}"
        missing = "refused" if fill is None else f"{fill} ({(c.rule or '').replace('_', ' ')})"
        values.append([c.name, holds, ", ".join(c.features), missing])
    heads = ["column", "holds", "features", "a missing value is"]
    return Table(heads, values, "How features are made of the table's columns")


# -- pictures -----------------------------------------------------------------------------------------------------


def _both(name: str, alt: str, draw: Callable[[bool], Any]) -> Picture | None:
    """The picture on light and on dark ground; None without matplotlib."""
    from .plot import as_file

    try:
        return Picture(name, alt, *(as_file(partial(draw, dark), "svg", dark) for dark in (False, True)))
    except (MissingPackage, InvalidParameter):
        return None


def _picture(rows: Rows) -> Picture | None:
    from ..plots import plot_tree
    from .fitted_file import classifier_of

    shown = classifier_of(rows.tree, rows.record)
    return _both(
        "tree",
        "The tree, with the training rows of each class at each node",
        lambda dark: plot_tree(shown, dark=dark),
    )


def _regions(rows: Rows) -> Picture | None:
    """The plane of the two features that matter most."""
    from ..plots import plot_regions

    features = _two(rows.tree)
    if features is None:
        return None
    X, y = rows.X[rows.trained], [rows.y[i] for i in rows.trained]
    return _both(
        "regions",
        f"Regions of the classes and training rows over {features[0]} and {features[1]}",
        lambda dark: plot_regions(rows.tree, X, y, features=features, dark=dark),
    )


def _two(tree: Tree) -> tuple[str, str] | None:
    """Two features for the picture: those of the largest weights, numbers before categories."""
    import numpy as np

    from ..formulations.trees import AxisTree

    names = tree.feature_names
    if len(names) < 2:
        return None
    if not tree.weighs_features:
        effect = np.zeros(len(names))
    elif isinstance(tree, AxisTree):
        effect = np.bincount(tree.feature[tree.feature >= 0], minlength=len(names)).astype(float)
    else:
        effect = np.abs(tree.weights("scaled")[0]).sum(axis=0)  # type: ignore[attr-defined]
    columns = () if tree.preparation is None else tree.preparation.columns
    plain = [c.kind != "category" for c in columns for _ in c.features] or [True] * len(names)
    order = sorted(range(len(names)), key=lambda j: (effect[j] == 0, not plain[j], -effect[j]))
    return names[order[0]], names[order[1]]
