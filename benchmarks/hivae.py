"""HI-VAE by its own measure of error, beside the paper's VAE and the mean or mode of each column, on UCI data sets.

    python benchmarks/hivae.py --epochs adult=40

The measure is that of Nazabal et al. (2018), on hidden cells: the error rate of classes, the mean distance of ordered
classes over their number, and for numbers the root mean square error over the range. HI-VAE imputes modes, as
published; its means are scored, too. Masks 1 to 3, 20 % hidden. Epochs are those of each model's default, for HI-VAE
2,000 in batches of 1,000 as published, unless some are given. A line is a record; what is recorded is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenly import Imputer, Training
from evenly.metrics import column_errors, mean_or_mode
from evenly.models import SPECS
from evenly.paper.datasets import DataSet, as_table, hidden_mask, load_dataset, schema
from evenly.tables import Column

REVISION = 1
PERCENT, MASKS = 20, (1, 2, 3)
BASELINE = "mean-or-mode"
MODELS = ("hivae", "vae", BASELINE)
NAMES = ("dataset", "mask", "model", "epochs", "revision")


def own_errors(columns: Sequence[Column], truth: Any, predicted: Any, hidden: Any) -> Any:
    """Return the error of each column by HI-VAE's measure, for codes that count from 0."""
    errors = column_errors(columns, truth, predicted, hidden)
    for j, column in enumerate(columns):
        scored = hidden[:, j] & ~np.isnan(truth[:, j])
        if column.kind == "ordinal" and scored.any():
            errors[j] = np.abs(predicted[scored, j] - truth[scored, j]).mean() / len(column.classes or ())
    return errors


def truth_of(data: DataSet) -> Any:
    """Return values and codes counted from 0."""
    values = data.values.copy()
    for j, name in enumerate(data.columns):
        values[:, j] -= data.first_codes.get(name, 0)
    return values


def run(data: DataSet, mask: int, model: str, epochs: int | None) -> dict[str, Any]:
    """Fit a model to the cells that are not hidden, and score it by both estimates."""
    hidden, truth = hidden_mask(data, PERCENT, mask), truth_of(data)
    columns, begun = schema(data).columns, time.process_time()
    if model == BASELINE:
        predicted, n_epochs = {"mean": mean_or_mode(columns, truth, hidden)}, 0
    else:
        visible = as_table(data, hidden=hidden)
        training = Training(epochs="auto" if epochs is None else epochs)
        imputer = Imputer(model, schema=schema(data), training=training, random_state=mask)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imputer.fit(visible)
        n_epochs, predicted = len(imputer.history_["elbo"]), {}
        for estimate in ("mode", "mean"):
            predicted[estimate] = imputer.set_params(estimate=estimate).predict_cells(visible)
    errors = {name: own_errors(columns, truth, one, hidden) for name, one in predicted.items()}
    nominal = np.array([one.has_classes for one in columns])
    groups = {"error": np.ones(len(columns), bool), "numerical": ~nominal, "nominal": nominal}
    found: dict[str, Any] = {"trained_epochs": n_epochs, "cpu_seconds": round(time.process_time() - begun, 1)}
    for estimate, own in errors.items():
        means = {name: float(np.nanmean(own[some])) for name, some in groups.items() if some.any()}
        found[estimate] = means | {"columns": dict(zip(data.columns, np.round(own, 5).tolist(), strict=True))}
    return found


def main() -> None:
    """Run what is not recorded yet, and print a line a record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/hivae.jsonl"))
    parser.add_argument("--data", help="the folder of the data sets; by default as EVENLY_DATA says")
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--mask", action="append", type=int, choices=MASKS)
    parser.add_argument("--epochs", action="append", default=[], metavar="DATASET=N")
    given = parser.parse_args()
    assert set(SPECS) >= set(MODELS) - {BASELINE}
    cut = {name: int(n) for name, n in (one.split("=") for one in given.epochs)}
    records = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {tuple(one[name] for name in NAMES) for one in records}
    for dataset in given.dataset or ("wine", "adult"):
        data = load_dataset(dataset, given.data)
        for mask in given.mask or MASKS:
            for model in given.model or MODELS:
                epochs = cut.get(dataset) if model != BASELINE else None
                about = dict(zip(NAMES, (dataset, mask, model, epochs, REVISION), strict=True))
                if tuple(about.values()) in done:
                    continue
                record: dict[str, Any] = about | run(data, mask, model, epochs)
                with given.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                shown = {name: f"{record[name]['error']:.4f}" for name in ("mode", "mean") if name in record}
                print(dataset, mask, model, record["trained_epochs"], shown, record["cpu_seconds"], flush=True)


if __name__ == "__main__":
    main()
