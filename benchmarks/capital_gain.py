"""Could cells with the marker 99999 explain why our errors of adult's continuous columns are lower than the published?

Run: python benchmarks/capital_gain.py [--data DIR] [--runs FILE]. In the paper's data `capital_gain` has the code 99999
in some rows; here those cells are missing, and not scored. This adds them to the recorded as-published errors as if 0
had been predicted for them (the most frequent value, and what a model predicts that never saw one), on the mask that
the published code scores that column by, and prints every continuous cell of adult: ours, with the markers, published.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evenly.metrics import GROUPS
from evenly.paper.agreement import counted, published_cells
from evenly.paper.datasets import DataSet, load_dataset
from evenly.paper.records import read_records
from evenly.scaling import METHODS

RUNS = Path(__file__).parents[1] / "docs" / "results" / "paper_runs_first.jsonl"
COLUMN, PERCENT = "capital_gain", 20


def scored_by(data: DataSet, method: str) -> int:
    """Return the column whose mask the published code scores `capital_gain` by: the owner of that feature."""
    split = METHODS[method].trick != "none"
    sizes = [data.classes.get(name, 1) if split and data.kinds[name] != "binary" else 1 for name in data.columns]
    return int(np.repeat(np.arange(len(sizes)), sizes)[data.columns.index(COLUMN)])


def with_markers(record: Mapping[str, Any], data: DataSet, masks: Any) -> tuple[float, float]:
    """Return the mean as-published error of the continuous columns of a run, without and with the markers."""
    errors = np.array(record["as_published"], np.float64)
    continuous = np.array([kind in GROUPS["continuous"] for kind in record["kinds"]])
    place = record["columns"].index(COLUMN)
    marker = np.isnan(data.values[:, place])
    scored = masks[record["run"]["mask"] - 1][:, scored_by(data, record["run"]["method"])]
    known, more = int((scored & ~marker).sum()), int((scored & marker).sum())
    changed = errors.copy()
    # Of the whole range, 99999 - 0, the error of each of them is 1.
    changed[place] = np.sqrt((errors[place] ** 2 * known + more) / (known + more))
    return float(np.nanmean(errors[continuous])), float(np.nanmean(changed[continuous]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("EVENLY_DATA"), help="a folder with adult/masks.npz"
    )
    parser.add_argument("--runs", type=Path, default=RUNS)
    arguments = parser.parse_args()
    data = load_dataset("adult", arguments.data)
    # As given: a data set's own masks leave out the cells that are missing here.
    with np.load(Path(arguments.data) / "adult" / "masks.npz") as stored:
        masks = stored[f"missing_{PERCENT}"]
    cells = defaultdict(list)
    for record in counted(read_records(arguments.runs, revision=1), PERCENT, "as-published"):
        if record["run"]["dataset"] == "adult":
            cells[record["run"]["model"], record["run"]["method"]].append(with_markers(record, data, masks))
    print("| model | method | ours | with the markers | published | agrees: ours | with the markers |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (model, method), runs in sorted(cells.items()):
        published = published_cells()[PERCENT]["adult", model, method, "continuous"]
        means = [fmean(values) for values in zip(*runs, strict=True)]
        if published.mean == float("inf"):
            continue
        near = max(2.0 * (published.std or 0.0), 0.1 * published.mean)
        agrees = ["yes" if abs(mean - published.mean) <= near else "no" for mean in means]
        shown = f"{published.mean:.3f} ({published.std:.3f})"
        print(f"| {model} | {method} | {means[0]:.3f} | {means[1]:.3f} | {shown} | {agrees[0]} | {agrees[1]} |")


if __name__ == "__main__":
    main()
