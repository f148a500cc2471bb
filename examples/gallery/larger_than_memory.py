"""Scale a table where it is: a lazy frame of Polars or a relation of DuckDB, without reading its rows into memory.

The engine itself measures every column, and the features are expressions, which run when somebody asks for rows. The
picture shows the smoothness of every column before and after.
"""

import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import evenly

rng = np.random.default_rng(0)
n = 200_000
columns = {"income": rng.lognormal(10.0, 0.6, n), "visits": rng.poisson(3.0, n), "age": rng.normal(45.0, 12.0, n)}
columns["smokes"] = rng.choice(["yes", "no"], n, p=[0.2, 0.8])
with tempfile.TemporaryDirectory() as folder:
    file = str(Path(folder) / "people.parquet")
    pl.DataFrame(columns).write_parquet(file)
    lazy = evenly.LipschitzScaler().fit(pl.scan_parquet(file))
    also = evenly.LipschitzScaler().fit(duckdb.read_parquet(file))
    print("the same scales on both:", np.allclose(lazy.summary_["scale"], also.summary_["scale"]))
    print(lazy.transform(pl.scan_parquet(file)).select(pl.all().mean()).collect())

evenly.plot_smoothness(lazy).figure.savefig(sys.argv[1] if sys.argv[1:] else "smoothness.png")
