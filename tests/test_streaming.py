"""Tables larger than memory: an imputer learns from Parquet files piece by piece, and fills them piece by piece."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("jax")
pytest.importorskip("pyarrow")

from evenly import EvenlyWarning, Imputer, TableError, parquet, streaming
from evenly.parquet import open_parquet
from evenly.scaler import LipschitzScaler

N = 6_000
SMALL = {"hidden_size": 32, "n_networks": 1, "random_state": 0}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """Tables of some thousand rows are streamed, in several pools."""
    for name, value in (("MOST_IN_MEMORY", 1_000), ("SAMPLE", 2_000), ("POOL", 1_500), ("N_STEPS", 4)):
        monkeypatch.setattr(streaming, name, value)
    monkeypatch.setattr(parquet, "PIECE", 200)
    monkeypatch.setattr(parquet, "SIDE_BY_SIDE", 3)


def mixed_table(n: int = N, seed: int = 0) -> pl.DataFrame:
    """Columns that go together, of every kind, without a missing cell; sorted, as tables often are."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=n))
    return pl.DataFrame(
        {
            "real": 3.0 + 2.0 * x + 0.1 * rng.normal(size=n),
            "positive": np.exp(0.5 * x + 0.1 * rng.normal(size=n)),
            "count": rng.poisson(np.exp(1.0 + 0.5 * x)),
            "binary": x + 0.3 * rng.normal(size=n) > 0.0,
            "class": np.array(["a", "b", "c"])[np.digitize(x, [-0.5, 0.5])],
            "note": [f"row {i} says something else each time, at some length" for i in range(n)],
        }
    )


def with_gaps(table: pl.DataFrame, share: float = 0.2, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return table.with_columns(
        pl.when(pl.Series(rng.random(len(table)) >= share)).then(pl.col(name)).alias(name)
        for name in table.columns
        if name != "note"
    )


def write_parts(table: pl.DataFrame, folder, n_files: int = 3, group: int = 450) -> str:
    folder.mkdir(exist_ok=True)
    size = -(-len(table) // n_files)
    for k in range(n_files):
        table[k * size : (k + 1) * size].write_parquet(folder / f"part{k}.parquet", row_group_size=group)
    return str(folder / "*.parquet")


TABLE = mixed_table()
GAPPY = with_gaps(TABLE)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> str:
    return write_parts(GAPPY, tmp_path_factory.mktemp("table"))


def errors(full: pl.DataFrame) -> dict[str, float]:
    """Root mean square error over standard deviation of numbers, error rate of classes, where cells were missing."""
    found = {}
    for name in TABLE.columns[:-1]:
        gone = GAPPY[name].is_null()
        true, guess = TABLE[name].filter(gone), full[name].filter(gone)
        if TABLE[name].dtype.is_numeric():
            found[name] = float(((true - guess) ** 2).mean() ** 0.5 / TABLE[name].std())
        else:
            found[name] = float((true != guess).mean())
    return found
