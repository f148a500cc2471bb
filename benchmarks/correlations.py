"""Do imputed tables keep the correlations of the complete one? Cells of real tables are hidden and imputed.

Run: python benchmarks/correlations.py [--data DIR] [--out FILE] [--dataset wine ...] [--method evenly ...]
[--masks 1-3] [--percent 20]. Every imputation becomes one line of FILE (JSON), and what FILE already has is not
repeated.

The cells are those of `peers.py`, hidden completely at random. Correlations are those of rows that were complete
before. A class column with more than two classes counts as one indicator for each class but the first; pairs within a
column are left out. Those of several drawn tables are averaged, as they are when an analysis is pooled.

- `off` is the mean absolute difference from the correlations of the complete table.
- `slope` is the slope of a regression through 0 of the imputed on the complete correlations: below 1 where imputation
  weakens relations, above 1 where it exaggerates them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from meter import cpu_seconds
from peer_imputers import Floats, MeanOrMode, MiceForest, Record, commit
from peers import SMALL, codes_of, hide, load_small, numbers

import evenly
from evenly.paper.datasets import load_dataset, schema
from evenly.tables import Column

DATASETS = ("breast", "wine", "heart", "iris")
N_TABLES = 5
KEYS = ("dataset", "percent", "mask", "method", "revision")
REVISIONS = {"evenly": 1}
"""Raise one when the method imputes other values than before."""


def indicators(columns: Sequence[Column], table: Floats) -> tuple[Floats, list[int]]:
    """Return the table with classes as indicators, and to which column each of its columns belongs."""
    blocks, owners = [], []
    for j, column in enumerate(columns):
        n = len(column.classes or ()) if column.has_classes else 0
        # A missing cell is missing in all of its indicators.
        own = table[:, j : j + 1]
        block = np.where(np.isnan(own), np.nan, own == np.arange(1, n)) if n > 2 else own
        blocks.append(block)
        owners += [j] * block.shape[1]
    return np.hstack(blocks), owners


def correlations(columns: Sequence[Column], table: Floats) -> Floats:
    """Return the correlations of all pairs of indicators of different columns, each from the rows that have both."""
    found, owners = indicators(columns, table)
    rows, others = np.triu_indices(len(owners), 1)
    apart = np.array(owners)[rows] != np.array(owners)[others]
    matrix = pd.DataFrame(found).corr().to_numpy()
    return np.asarray(matrix[rows[apart], others[apart]])


def compare(complete: Floats, imputed: Floats) -> tuple[float, float]:
    """Return how far correlations are off, and the slope; those of columns that do not vary are left out."""
    known = np.isfinite(complete) & np.isfinite(imputed)
    own, other = complete[known], imputed[known]
    return float(np.abs(other - own).mean()), float((own * other).sum() / (own**2).sum())


# --- methods ------------------------------------------------------------------------------------------------------


def by_evenly(columns: list[Column], visible: Floats, seed: int) -> dict[str, list[Floats]]:
    """Fit once; draw tables, and impute the most likely classes and the means of numbers."""
    frame = pd.DataFrame({column.name: visible[:, j] for j, column in enumerate(columns)})
    imputer = evenly.Imputer(schema=evenly.Schema(columns=columns), random_state=seed).fit(frame)
    drawn = [one.to_numpy(float) for one in imputer.sample(frame, n=N_TABLES)]
    predicted = imputer.predict_cells(frame)  # of visible cells, too
    return {"draws": drawn, "points": [np.where(np.isnan(visible), predicted, visible)]}


def by_miceforest(columns: list[Column], visible: Floats, seed: int) -> dict[str, list[Floats]]:
    """Draw tables from miceforest with its defaults, and impute its predictions."""
    n_classes = [len(column.classes or ()) if column.has_classes else 0 for column in columns]
    found = {}
    for way, n in (("draws", N_TABLES), ("points", 1)):
        settings = {"n_classes": n_classes, "seed": seed, "tables": n}
        found[way] = MiceForest.environment.impute(MiceForest.job, visible, settings)[0]
    return found


def by_mean(columns: list[Column], visible: Floats, seed: int) -> dict[str, list[Floats]]:
    """Impute means and modes."""
    filled = MeanOrMode().impute(columns, visible).values
    return {"points": [np.where(np.isnan(visible), filled, visible)]}


def by_pairs(columns: list[Column], visible: Floats, seed: int) -> dict[str, list[Floats]]:
    """Impute nothing: each correlation is that of the rows where both cells are visible."""
    return {"gaps": [visible]}


METHODS: Mapping[str, Callable[[list[Column], Floats, int], dict[str, list[Floats]]]] = {
    "pairs": by_pairs,
    "mean-or-mode": by_mean,
    "miceforest": by_miceforest,
    "evenly": by_evenly,
}
"""What imputes a table, in one or several ways, each a list of tables."""


# --- runs ---------------------------------------------------------------------------------------------------------


def run(settings: Record, folder: str | None = None) -> Record:
    """Hide cells of a data set, impute it, and return the record of its correlations."""
    name = settings["dataset"]
    data = load_small(name) if name in SMALL else load_dataset(name, folder)
    hidden = hide(data, settings["percent"], settings["mask"], "mcar")
    columns = list(schema(data, hidden=hidden).columns)
    truth = codes_of(data, columns)
    whole = data.known.all(1)
    begun, cpu = time.perf_counter(), cpu_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[settings["method"]](columns, np.where(hidden, np.nan, truth), settings["mask"])
        complete = correlations(columns, truth[whole])
        kept = {
            way: compare(complete, np.mean([correlations(columns, one[whole]) for one in tables], 0))
            for way, tables in found.items()
        }
    return {
        **settings,
        "kept": {way: {"off": round(off, 6), "slope": round(slope, 6)} for way, (off, slope) in kept.items()},
        "pairs": len(complete),
        "mean_correlation": round(float(np.nanmean(np.abs(complete))), 6),
        "seconds": round(time.perf_counter() - begun, 2),
        "cpu_seconds": round(cpu_seconds() - cpu, 2),
        "commit": commit(),
    }


def read(path: Path) -> list[Record]:
    """Return the records of a file that were made by the methods as they are now."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [one for one in map(json.loads, lines) if one["revision"] == REVISIONS.get(one["method"], 1)]


def means(records: Sequence[Record]) -> list[Record]:
    """Return the means by data set, method and way to impute, over the masks that all methods were run on."""
    ran: dict[str, dict[str, set[int]]] = {}
    for one in records:
        ran.setdefault(one["dataset"], {}).setdefault(one["method"], set()).add(one["mask"])
    masks = {dataset: set.intersection(*by.values()) for dataset, by in ran.items()}
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for one in records:
        if one["mask"] in masks[one["dataset"]]:
            for way, kept in one["kept"].items():
                groups.setdefault((one["dataset"], one["method"], way), []).append(kept)
    found = []
    for (dataset, method, way), runs in groups.items():
        mean = {what: float(np.mean([one[what] for one in runs])) for what in ("off", "slope")}
        found.append({"dataset": dataset, "method": method, "way": way, **mean, "masks": sorted(masks[dataset])})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"))
    parser.add_argument("--out", type=Path, default=Path("correlations.jsonl"))
    parser.add_argument("--dataset", nargs="*", default=list(DATASETS))
    parser.add_argument("--method", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--masks", default="1")
    parser.add_argument("--percent", type=int, default=20)
    given = parser.parse_args()
    records = read(given.out)
    done = {tuple(one[key] for key in KEYS) for one in records}
    for mask, dataset, method in product(numbers(given.masks), given.dataset, given.method):
        asked = (dataset, given.percent, mask, method, REVISIONS.get(method, 1))
        if asked in done:
            continue
        records.append(run(dict(zip(KEYS, asked, strict=True)), given.data))
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(records[-1]) + "\n")
        print(*asked[:4], records[-1]["kept"], flush=True)
    for one in means(records):
        print(one)


if __name__ == "__main__":
    main()
