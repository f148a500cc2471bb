"""What the imputer costs: peak memory of a million rows, and the time of imputing 100,000 new rows of adult.

Run: python benchmarks/imputer_cost.py [--data DIR] [--rows N]. Each measurement has a process of its own, which checks
the answer first. The rival of the imputing time is scikit-learn's SimpleImputer on the same rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

LIMIT = 6.0


def wide_table(n_rows: int) -> pd.DataFrame:
    """Return 20 columns of all kinds that share one latent variable, a tenth of their cells missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n_rows)
    columns = {f"real_{i}": z * (i + 1) + rng.normal(size=n_rows) for i in range(8)}
    columns |= {f"positive_{i}": np.exp(0.5 * z + rng.normal(size=n_rows)) for i in range(4)}
    columns |= {f"count_{i}": rng.poisson(np.exp(0.3 * z + 1.0)).astype(float) for i in range(4)}
    columns |= {f"binary_{i}": (z + rng.normal(size=n_rows) > 0).astype(float) for i in range(2)}
    columns |= {f"class_{i}": np.clip(np.rint(z + rng.normal(size=n_rows)), -2, 2) for i in range(2)}
    table = pd.DataFrame(columns)
    for name in table:
        table.loc[rng.random(n_rows) < 0.1, name] = np.nan
    return table


def memory(model: str, n_rows: int) -> None:
    from evenly import Imputer, Training

    table = wide_table(n_rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    begun = time.perf_counter()
    imputer = Imputer(
        model, kinds={f"class_{i}": "categorical" for i in range(2)}, training=Training(epochs=2), random_state=0
    ).fit(table)
    fitted = time.perf_counter()
    some = table.iloc[:10_000]
    full = imputer.transform(some)
    assert not full.isna().any().any()
    assert ((full == some) | some.isna()).all().all()
    assert np.isfinite(imputer.history_["elbo"]).all()
    # Nothing is lost, at the least: in two epochs the clusters of a mixture have hardly parted.
    assert imputer.history_["elbo"][-1] > imputer.history_["elbo"][0] - 0.01
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = table.memory_usage().sum() / 2**30
    print(
        f"{model:14} {n_rows} rows x {table.shape[1]} columns: two epochs {fitted - begun:.0f} s, peak {peak:.2f} GiB "
        f"({peak / size:.1f} x the table, {before:.2f} GiB before; limit {LIMIT:.0f} GiB)"
    )
    assert n_rows < 1_000_000 or peak < LIMIT


def speed(folder: Path) -> None:
    from sklearn.impute import SimpleImputer

    from evenly import Imputer, Training

    table = pd.read_csv(folder / "adult" / "data.csv").astype(float)
    kinds = pd.read_csv(folder / "adult" / "kinds.csv").set_index("column")["kind"].to_dict()
    rng = np.random.default_rng(0)
    table = table.mask(rng.random(table.shape) < 0.2)
    imputer = Imputer("vae", kinds=kinds, training=Training(epochs=2), random_state=0).fit(table)
    rows = table.iloc[rng.integers(0, len(table), 100_000)].reset_index(drop=True)
    imputer.transform(rows.iloc[:10])  # compiles
    begun = time.perf_counter()
    full = imputer.transform(rows)
    seconds = time.perf_counter() - begun
    assert not full.isna().any().any()
    assert ((full == rows) | rows.isna()).all().all()
    rival = SimpleImputer(strategy="most_frequent").fit(table)
    begun = time.perf_counter()
    rival.transform(rows)
    simple = time.perf_counter() - begun
    print(f"vae            imputes 100,000 rows of adult in {seconds:.2f} s, {seconds / simple:.0f} x SimpleImputer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVENLY_DATA", "../shared/uci")))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["mixture", "factorization", "vae", "masked", "speed"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only == "speed":
        if not (given.data / "adult" / "data.csv").is_file():
            print(f"no adult/data.csv in {given.data}: speed not measured; name the folder with --data or EVENLY_DATA")
        else:
            speed(given.data)
    elif given.only:
        memory(given.only, given.rows)
    else:
        for one in ("mixture", "factorization", "speed"):
            command = [sys.executable, __file__, "--only", one, "--data", str(given.data), "--rows", str(given.rows)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
