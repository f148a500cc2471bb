"""What rounding to a column's own precision costs: NRMSE of rounded over that of unrounded predictions.

Run: python benchmarks/precision.py [--data DIR]. On each of the paper's data sets, hidden cells (20 %, the first mask)
of columns of numbers are predicted by a ridge regression on all other columns. The rounded predictions are checked to
be multiples of the column's step first.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from sklearn.linear_model import Ridge

from evenly.paper.datasets import hidden_mask, load_dataset
from evenly.tables import find_precision

SETS = ("adult", "breast", "credit", "letter", "spam", "wine")


def column_ratios(name: str, folder: str | None) -> dict[str, tuple[float, float]]:
    """Return NRMSE without rounding, and its ratio with it, of each column that has a fixed precision."""
    data = load_dataset(name, folder)
    hidden = hidden_mask(data, 20, run=1)
    seen = np.where(hidden, np.nan, data.values)
    filled = np.where(np.isnan(seen), np.nanmean(seen, axis=0), seen)
    spread = np.maximum(filled.std(0), 1e-12)
    inputs = (filled - filled.mean(0)) / spread
    found = {}
    for j, column in enumerate(data.columns):
        precision = find_precision(seen[:, j])
        if data.kinds[column] in ("binary", "categorical", "ordinal") or precision is None or not hidden[:, j].any():
            continue
        known, gone = ~np.isnan(seen[:, j]), hidden[:, j]
        others = np.delete(inputs, j, axis=1)
        low, high = np.nanmin(seen[:, j]), np.nanmax(seen[:, j])
        predicted = np.clip(Ridge().fit(others[known], seen[known, j]).predict(others[gone]), low, high)
        rounded = precision.round(predicted, low, high)
        step = precision.multiple / 10**precision.decimals
        assert np.allclose(rounded / step, np.rint(rounded / step))
        plain, own = (np.sqrt(np.mean((one - data.values[gone, j]) ** 2)) for one in (predicted, rounded))
        found[column] = (float(plain / (high - low)), float(own / plain))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"))
    for name in SETS:
        found = column_ratios(name, parser.parse_args().data)
        if not found:
            print(f"{name:8} no column of numbers with a fixed precision")
            continue
        worst = max(found, key=lambda column: found[column][1])
        mean, after = np.mean([one for one, _ in found.values()]), np.mean([a * b for a, b in found.values()])
        print(
            f"{name:8} {len(found):2} columns  NRMSE {mean:.4f} -> {after:.4f}  ratio {after / mean:.4f}  "
            f"worst {worst}: {found[worst][1]:.4f}"
        )
