"""Makes tests/fixtures/saved/*.json in the present formats, `python tests/make_saved.py`.

A file that is there already is never written again: those of older versions are what older releases wrote.
``expected.json`` holds rows and the labels that each file has to predict for them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from places import FIXTURES

import octsvm
from octsvm.estimators import _saving
from octsvm.formulations import saved_trees

HERE = FIXTURES / "saved"
MODELS: dict[str, Any] = {
    "axis": octsvm.OCTClassifier(max_depth=2, alpha=0.1),
    "oblique": octsvm.OCTHClassifier(max_depth=1, alpha=0.1, class_weight={"ja": 2.0, "nein": 1.0}),
    "margin": octsvm.OCTSVMClassifier(max_depth=1, c1=4, c2=6, c3=0.1),
}


def main() -> None:
    rng = np.random.default_rng(1)
    X = np.round(rng.random((24, 3)) * [1, 10, 100], 3)
    y = np.where(X[:, 0] * 10 + X[:, 1] > 9, "ja", "nein")
    y[0] = "ja" if y[0] == "nein" else "nein"
    Z = np.round(rng.random((40, 3)) * [1, 10, 100], 3)
    record = HERE / "expected.json"
    expected = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    for kind, model in MODELS.items():
        model.set_params(time_limit=20, work_limit={"nodes": 50, "rounds": 5}).fit(X, y)
        for name, text in (
            (f"tree_v{saved_trees.VERSION}_{kind}", model.tree_.to_json()),
            (f"result_v1_{kind}", model.result_.to_json()),
            (f"estimator_v{_saving.VERSION}_{kind}", model.to_json()),
        ):
            if (HERE / f"{name}.json").exists():
                continue
            (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            expected[name] = {"X": Z.tolist(), "labels": model.predict(Z).tolist()}
    record.write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
