"""Labels: whatever can be hashed is kept, predicted, reported and saved as it is given, or refused with the row."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import itertools
import pickle
import uuid
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import octsvm
from octsvm import OCTClassifier

FORMULATIONS = ("oct", "oct_h", "re_svm", "octsvm")
TABLE = pd.DataFrame({"x2": [0.0, 1, 2, 3, 4, 5], "x1": [5.0, 1, 4, 0, 3, 2]})


class Sex(str, enum.Enum):  # noqa: UP042 (its str() is not its value)
    F, M = "f", "m"


class Colour(enum.StrEnum):
    RED, BLUE = "red", "blue"


class Grade(enum.IntEnum):
    LOW, HIGH = 1, 2


class Share(float, enum.Enum):
    LITTLE, MUCH = 0.25, 0.75


class Pair(tuple, enum.Enum):
    ONE, TWO = (1,), (2,)


class Listed(enum.Enum):
    A, B = ["a"], ["b"]


class Kind(enum.Enum):
    NONE, SOME = None, "x"


class Right(enum.Flag):
    READ, WRITE = 1, 2


class Bits(enum.IntFlag):
    ONE, TWO = 1, 2


class Named(NamedTuple):
    group: str
    number: int


class Vague(NamedTuple):
    """What == makes of it is an array, as of a table in a tuple."""

    k: int

    def __eq__(self, other: object) -> Any:
        return np.array([True, False])

    def __ne__(self, other: object) -> Any:
        return np.array([True, False])

    __hash__ = tuple.__hash__


class Own:
    """Compared by identity, and without an order."""


# Labels that JSON and source code give back as they are.
PLAIN = {
    "leading zero": ("01", "1"),
    "blank at the end": ("a", "a "),
    "zero byte at the end": ("a", "a\0"),
    "upper and lower case": ("A", "a"),
    "two ways to write é": ("\u00e9", "e\u0301"),
    "words for missing": ("NA", "nan"),
    "beyond 2**53": (2**53, 2**53 + 1),
    "beyond 2**64": (2**70, 2**70 + 1),
    "signed beyond 2**63": (-1, 2**63),
    "large and a fraction": (2**53 + 1, 0.5),
    "whole numbers as floats": (1.0, 2.0),
}
OTHERS = {
    "str Enum": (Sex.M, Sex.F),
    "StrEnum": (Colour.RED, Colour.BLUE),
    "IntEnum": (Grade.HIGH, Grade.LOW),
    "float Enum": (Share.MUCH, Share.LITTLE),
    "tuple Enum": (Pair.TWO, Pair.ONE),
    "Enum of lists": (Listed.A, Listed.B),
    "Enum": (Kind.SOME, Kind.NONE),
    "Flag": (Right.READ | Right.WRITE, Right.READ),
    "IntFlag": (Bits.ONE | Bits.TWO, Bits.TWO),
    "bytes": (b"a", b"b"),
    "tuples": (("a", 1), ("b", 2)),
    "tuples of one": (("a",), ("b",)),
    "named tuples": (Named("a", 1), Named("b", 2)),
    "sets, ordered in part": (frozenset({1, 2}), frozenset({3})),
    "dates": (datetime.date(2026, 2, 1), datetime.date(2026, 1, 1)),
    "times of pandas": (pd.Timestamp("2026-01-01", tz="UTC"), pd.Timestamp("2026-01-02", tz="UTC")),
    "intervals": (pd.Interval(0, 1), pd.Interval(1, 2)),
    "decimals": (decimal.Decimal("0.1"), decimal.Decimal("0.10001")),
    "fractions": (fractions.Fraction(1, 3), fractions.Fraction(1, 2)),
    "identifiers": (uuid.UUID(int=2), uuid.UUID(int=1)),
    "complex numbers": (1j, 1 + 0j),
    "objects": (Own(), Own()),
    "classes": (int, str),
}


def same(found: list[Any], expected: list[Any]) -> bool:
    return found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kind", [*PLAIN, *OTHERS])
@pytest.mark.quick_cases("*-oct", "IntFlag-*")
@pytest.mark.every_value
def test_labels_come_back_as_they_were_given(kind: str, formulation: str) -> None:
    first, second = (PLAIN | OTHERS)[kind]
    y = [first] * 3 + [second] * 3
    result = octsvm.fit(formulation, TABLE, y)
    tree = result.tree
    assert set(tree.classes) == {first, second}
    expected = [tree.classes[k] for k in tree.predict_index(TABLE)]
    assert same(tree.predict(TABLE).tolist(), expected)
    assert set(octsvm.flip_labels(y, 0.5).tolist()) <= {first, second}
    for label in octsvm.relabelling_report(result, TABLE, y)["given"]:
        assert label in (first, second)
        assert type(label) in (type(first), type(second))
    saves = (tree.to_json, tree.to_dict, lambda: octsvm.export_source(tree), lambda: octsvm.export_dict(tree))
    if kind in OTHERS:
        text = r"label\.name" if isinstance(first, enum.Enum) else r"str\(label\)"
        for save in saves:
            with pytest.raises(octsvm.InvalidData, match=rf"does not come back as it is.*\[{text} for label"):
                save()
        return
    again = octsvm.Tree.from_json(tree.to_json())
    assert same(again.predict(TABLE).tolist(), expected)
    assert same(pickle.loads(pickle.dumps(tree)).predict(TABLE).tolist(), expected)
    source: dict[str, Any] = {}
    exec(octsvm.export_source(tree), source)
    assert same(source["predict"](TABLE.to_numpy()).tolist(), expected)


@pytest.mark.parametrize("kind", [*PLAIN, *OTHERS])
@pytest.mark.quick_cases("[b-d]*")
def test_classifiers_keep_the_same_labels(kind: str) -> None:
    first, second = (PLAIN | OTHERS)[kind]
    y = [first] * 3 + [second] * 3
    held = np.empty(6, dtype=object)
    for i, label in enumerate(y):
        held[i] = label
    for given in (y, held):
        fitted = OCTClassifier(max_depth=1, alpha=0.1).fit(TABLE, given)
        assert same(fitted.predict(TABLE).tolist(), y)
        assert fitted.score(TABLE, y) == fitted.score(TABLE, held) == 1
        assert set(fitted.classes_.tolist()) == {first, second}
        if kind in PLAIN:
            assert same(OCTClassifier.from_json(fitted.to_json()).predict(TABLE).tolist(), y)
    mixed = np.array([0.0, 1, 2, 3, 4, 5])[:, None], [first, second, first, second, second, second]
    given_up = octsvm.relabelling_report(octsvm.fit("octsvm", *mixed, depth=0, c2=0.1, c3=0.01), *mixed)
    assert len(given_up)
    for name in ("given", "believed", "predicted"):
        assert all(
            label in (first, second) and type(label) in (type(first), type(second))
            for label in given_up[name]
        )
    report = octsvm.suspect_rows(OCTClassifier(), {"max_depth": [1], "alpha": [0.1]}, TABLE, y)
    assert same(report["given"].tolist(), y)
    assert not report["against"].any()


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_times_of_numpy_are_no_numbers(unit: str) -> None:
    y = np.array(["2026-01-02"] * 3 + ["2026-01-01"] * 3, dtype=f"M8[{unit}]")
    result = octsvm.fit("oct", TABLE, y, depth=1, alpha=0.1)
    assert result.tree.classes == (y[5], y[0])
    assert same(result.tree.predict(TABLE).tolist(), list(y))


def test_the_order_of_labels_does_not_depend_on_that_of_the_rows() -> None:
    labels = (
        [Sex.M, Sex.F],
        [b"b", b"a"],
        [("b", 1), ("a", 2)],
        [datetime.date(2026, 2, 1), datetime.date(2026, 1, 1)],
    )
    for pair in labels:
        orders = [
            octsvm.fit("oct", [[0.0], [1.0]], list(y), depth=1).tree.classes
            for y in itertools.permutations(pair)
        ]
        assert orders[0] == orders[1]


REFUSED = {
    "lists": ([["a", 1], ["b", 2]], "a list can change"),
    "mappings": ([{"a": 1}, {"a": 2}], "a dict can change"),
    "two Enums": ([Sex.F, Grade.LOW], "mixes members of Grade and members of Sex"),
    "a member among text": ([Sex.F, "m"], "mixes"),
    "a member among numbers": ([Grade.LOW, 2], "mixes"),
    "dates among text": ([datetime.date(2026, 1, 1), "2026-01-02"], "mixes"),
    "a missing decimal": ([decimal.Decimal("NaN"), decimal.Decimal(1)], "row 0 is missing"),
    "a signalling decimal": ([decimal.Decimal(1), decimal.Decimal("sNaN")], "row 1"),
    "a missing time": (np.array(["2026-01-01", "NaT"], dtype="M8[ns]"), "row 1 is missing"),
    "no true or false": ([Vague(1), Vague(2)], "does not say what it is equal to"),
    "masked": (np.ma.array([0, 1], mask=[0, 1]), "row 1 is missing"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_names_no_class_is_refused_by_functions_and_classifiers_alike(kind: str) -> None:
    y, words = REFUSED[kind]
    for call in (octsvm.fit, octsvm.build):
        with pytest.raises(octsvm.InvalidData, match=words):
            call("oct", [[0.0], [1.0]], y)
    with pytest.raises(octsvm.InvalidData, match=words):
        OCTClassifier().fit([[0.0], [1.0]], y)


def test_many_points_in_time_or_fractions_are_measurements() -> None:
    X = np.arange(12.0)[:, None]
    for y in (pd.date_range("2026-01-01", periods=12), [decimal.Decimal(k) / 7 for k in range(1, 13)]):
        with pytest.raises(octsvm.InvalidData, match="measurement"):
            octsvm.fit("oct", X, y)


def test_a_sparse_column_of_labels_is_refused_with_its_line() -> None:
    import scipy.sparse as sp

    y = sp.csr_array(np.array([[0], [1]]))
    for call in (
        lambda: octsvm.fit("oct", [[0.0], [1.0]], y),
        lambda: OCTClassifier().fit([[0.0], [1.0]], y),
    ):
        with pytest.raises(octsvm.InvalidData, match=r"y\.toarray\(\)\.ravel\(\)"):
            call()


def test_containers_of_labels_are_read_in_their_order() -> None:
    y = list("aaabbb")
    kinds: list[Any] = [
        collections.deque(y),
        (label for label in y),
        dict(enumerate(y)).values(),
        np.array([(c,) for c in y], dtype=[("y", "U1")]),
        pd.Index(y),
        pd.Series(y, dtype="category"),
    ]
    for given in kinds:
        assert octsvm.fit("oct", TABLE, given, depth=1, alpha=0.1).tree.predict(TABLE).tolist() == y
    for given in (tuple(y), iter(y)):
        assert OCTClassifier(max_depth=1, alpha=0.1).fit(TABLE, given).predict(TABLE).tolist() == y


def test_a_score_on_labels_of_another_kind_is_refused() -> None:
    fitted = OCTClassifier(max_depth=1, alpha=0.1).fit(TABLE, [0, 0, 0, 1, 1, 1])
    with pytest.raises(octsvm.InvalidData, match=r"'0'.*knows 0, 1"):
        fitted.score(TABLE, list("000111"))
    assert fitted.score(TABLE, [7] * 6) == 0  # unknown, and of the kind
    assert fitted.score(TABLE, [0, 1, 0, 1, 1, 1], sample_weight=[1, 4, 1, 1, 1, 2]) == 0.6
