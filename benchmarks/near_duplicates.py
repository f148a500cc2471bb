"""The search for near-duplicate rows: how many it finds, and how long it takes, against comparing all pairs.

Run: python benchmarks/near_duplicates.py [--rows 20000 200000]. The answer comes first: of the near-duplicates that a
comparison with every row finds, the share that hashing finds, and their weight in predictions. Then CPU time per row,
and its ratio to the rivals of the same run: comparing all pairs (by matrix products), and scikit-learn's
NearestNeighbors, which knows no missing cells (it gets columns' means, and one-hot classes).
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest import mock

import numpy as np
from sklearn.neighbors import NearestNeighbors

from evenly.imputation import neighbours
from evenly.imputation.neighbours import WEIGHTS, index_rows

CLASSES = [False] * 7 + [True] * 5
MOST = 2_000
"""Rows that the rivals search for: their time per row does not depend on how many there are."""


def table_of(n_rows: int, *, repeated: float, missing: float, jitter: float) -> list[np.ndarray]:
    """Return columns of numbers and classes; a share of the rows repeats another one, some cells are missing."""
    rng = np.random.default_rng(0)
    fresh = int(n_rows * (1.0 - repeated))
    z = rng.normal(size=(fresh, 1))
    numbers = np.column_stack(
        [0.6 * z + 0.8 * rng.normal(size=(fresh, 5)), rng.poisson(3.0, fresh), rng.gamma(2.0, 1.0, fresh)]
    )
    classes = np.column_stack([rng.integers(0, k, fresh) for k in (2, 2, 3, 4, 5)])
    table = np.column_stack([numbers, classes]).astype(float)
    again = table[rng.integers(0, fresh, n_rows - fresh)]
    again[:, :5] += jitter * rng.normal(size=(len(again), 5))
    table = np.concatenate([table, again])[rng.permutation(n_rows)]
    table[rng.random(table.shape) < missing] = np.nan
    return list(table.T)


def rate(find: Any, columns: list[np.ndarray], rows: np.ndarray) -> tuple[Any, float]:
    """Return what a search of some rows finds, and its seconds per row."""
    begun = time.process_time()
    found = find([own[rows] for own in columns])
    return found, (time.process_time() - begun) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[20_000, 200_000])
    for n_rows in parser.parse_args().rows:
        for missing, jitter in ((0.1, 0.0), (0.2, 0.0), (0.1, 0.02), (0.2, 0.02)):
            columns = table_of(n_rows, repeated=0.3, missing=missing, jitter=jitter)
            some = np.arange(0, n_rows, max(1, n_rows // MOST))
            with mock.patch.object(neighbours, "FEW_ROWS", 0):
                hashed = index_rows(columns, CLASSES, np.random.default_rng(0))
            with mock.patch.object(neighbours, "FEW_ROWS", n_rows):
                compared = index_rows(columns, CLASSES, np.random.default_rng(0))
            truth, slow = rate(compared.find, columns, some)
            found, _ = rate(hashed.find, columns, some)
            _, quick = rate(hashed.find, columns, np.arange(n_rows))
            near, got = (np.isfinite(one.distance).sum() for one in (truth, found))
            gone = [np.isnan(own[some]) for own in columns]  # cells to fill; in others, a row is its own neighbour
            shares = [
                sum(one.weigh(j, WEIGHTS[3])[1][gone[j]].sum() for j in range(len(gone))) for one in (truth, found)
            ]
            line = f"{n_rows:7} rows, {missing:.0%} missing, jitter {jitter}: {got / near:.1%} of {near} found"
            full = np.column_stack([np.where(np.isnan(own), np.nanmean(own), own) for own in columns])
            hot = np.column_stack([full[:, :7], *(np.round(full[:, j, None]) == np.arange(5) for j in range(7, 12))])
            rival = NearestNeighbors(n_neighbors=16).fit(hot)
            begun = time.process_time()
            rival.kneighbors(hot[some])
            other = (time.process_time() - begun) / len(some)
            print(
                f"{line}, {shares[1] / shares[0]:.1%} of their weight; {1e6 * quick:.0f} us a row, all pairs "
                f"{1e6 * slow:.0f} ({quick / slow:.3f} x), NearestNeighbors {1e6 * other:.0f} ({quick / other:.3f} x)",
                flush=True,
            )


if __name__ == "__main__":
    main()
