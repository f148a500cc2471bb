"""What balance brings under masked training: the same network with columns scaled by each method, and unscaled.

Run: python benchmarks/balance.py [--data DIR] [--out FILE] [--dataset wine ...]. Under `lip` the log-likelihoods of all
columns are weighted to the same smoothness; under the others they are not, and the squared error of a number is in
units of its standard deviation, its largest distance from the mean, its quartiles, or its own (`none`). Mask 1, 20 %
hidden, honest error of the network alone, without straight lines, which no method changes; each run is a line of FILE,
and what FILE has is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from peers import codes_of

from evenly import Imputer, Schema, Training
from evenly.metrics import baseline_errors, column_errors, ratio_to_baseline
from evenly.paper.datasets import hidden_mask, load_dataset, schema
from evenly.scaling.methods import Std

METHODS = ("lip-none", "std-none", "iqr-none", "max-none", "none")
EPOCHS = {"breast": 150, "wine": 100, "spam": 80, "letter": 30, "adult": 20, "credit": 20}
"""Fewer than the defaults: what is compared is the same for all methods."""


class Unscaled(Std, name="none"):
    """Leaves the squared error of a number in its own units."""

    def centred_scale(self, values: Any, mean: float, std: float) -> float:
        return 1.0


def run(dataset: str, method: str, folder: str | None) -> dict[str, Any]:
    data = load_dataset(dataset, folder)
    hidden = hidden_mask(data, 20, 1)
    columns = list(schema(data, hidden=hidden).columns)
    values = codes_of(data, columns)
    table = pd.DataFrame(np.where(hidden, np.nan, values), columns=data.columns)
    begun = time.perf_counter()
    with warnings.catch_warnings(), patch("evenly.imputation.gaussian.MOST_FEATURES", 0):
        warnings.simplefilter("ignore")
        imputer = Imputer(
            "masked",
            method,
            schema=Schema(columns=columns),
            training=Training(epochs=EPOCHS[dataset], n_networks=1),
            random_state=0,
        ).fit(table)
        predicted = imputer.predict_cells(table)
    errors = column_errors(columns, values, predicted, hidden)
    normalized = ratio_to_baseline(errors, baseline_errors(columns, values, hidden))
    classes = np.array([column.has_classes for column in columns])
    return {
        "dataset": dataset,
        "method": method,
        "epochs": len(imputer.history_["elbo"]),
        "error": float(errors.mean()),
        "classes": float(normalized[classes].mean()) if classes.any() else None,
        "numbers": float(normalized[~classes].mean()) if (~classes).any() else None,
        "worst": float(normalized.max()),
        "seconds": round(time.perf_counter() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"))
    parser.add_argument("--out", type=Path, default=Path("balance.jsonl"))
    parser.add_argument("--dataset", nargs="*", default=list(EPOCHS))
    given = parser.parse_args()
    records = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for dataset in given.dataset:
        for method in METHODS:
            if not any(one["dataset"] == dataset and one["method"] == method for one in records):
                records.append(run(dataset, method, given.data))
                with given.out.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    for one in records:
        rival = next((r for r in records if r["dataset"] == one["dataset"] and r["method"] == "std-none"), one)
        print(
            f"{one['dataset']:8} {one['method']:9} error {one['error']:.4f} ({one['error'] / rival['error']:.3f} x "
            f"std-none), worst column {one['worst']:.2f} x mean or mode, {one['epochs']} epochs, {one['seconds']:.0f} s"
        )


if __name__ == "__main__":
    main()
