"""How long it takes to get started: imports, help, and the first fits of a process, with and without a compile cache.

Run: python benchmarks/start_up.py [--rows 303 2000 20000]. Every line is a process of its own, which checks its answer
first, and tells seconds by the clock and of CPU; compiled programs go to a folder of this run alone. The rival of the
fits is scikit-learn's IterativeImputer with random forests (missForest) on the embedded table, in the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FITS = """
import json, resource, sys, time
sys.path.insert(0, {here!r})
from start_up import fits
fits({rows}, {tables!r})
"""


def embedded(n_rows: int) -> Any:
    """Return the embedded table, its rows drawn again (with noise in the numbers) until there are enough."""
    import evenly

    heart = evenly.load_heart()
    if n_rows == len(heart):
        return heart
    rng = np.random.default_rng(0)
    table = heart.iloc[rng.integers(0, len(heart), n_rows)].reset_index(drop=True)
    for name in ("age", "rest_bp", "cholesterol", "max_hr"):
        table[name] = (table[name] + rng.normal(0.0, 5.0, n_rows)).round()
    return table


def another(n_rows: int) -> Any:
    """Return a survey of like size with other columns: eleven of them, of all kinds, a tenth of the cells missing."""
    import pandas as pd

    rng = np.random.default_rng(1)
    z = rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "income": np.exp(10.0 + 0.5 * z + 0.3 * rng.normal(size=n_rows)).round(2),
            "hours": np.clip(40.0 + 6.0 * z + 4.0 * rng.normal(size=n_rows), 5.0, 80.0).round(),
            "height": (172.0 + 8.0 * rng.normal(size=n_rows)).round(1),
            "weight": (70.0 + 5.0 * z + 9.0 * rng.normal(size=n_rows)).round(1),
            "children": rng.poisson(np.exp(0.3 * z)).astype(float),
            "score": (z + rng.normal(size=n_rows)).round(3),
            "owner": np.where(z + rng.normal(size=n_rows) > 0.0, "yes", "no"),
            "smoker": np.where(rng.random(n_rows) < 0.3, "yes", "no"),
            "region": rng.choice(["north", "south", "east", "west"], n_rows),
            "level": np.array(["low", "mid", "high"])[np.clip(np.rint(z + 1.0), 0, 2).astype(int)],
            "transport": rng.choice(["car", "bus", "bike", "foot", "train"], n_rows),
        }
    )
    for name in table:
        table.loc[rng.random(n_rows) < 0.1, name] = None
    return table


def spent() -> tuple[float, float]:
    """Return the clock, and the CPU seconds of this process and the ones it waited for."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in own)


def fits(n_rows: int, tables: tuple[str, ...]) -> None:
    """Fit the imputer to some tables, one after the other; print the clock and the CPU seconds of each."""
    from evenly import Imputer

    for name in tables:
        table = {"embedded": embedded, "another": another}[name](n_rows)
        begun = spent()
        imputer = Imputer(random_state=0).fit(table)
        ended = spent()
        full = imputer.transform(table)
        assert not full.isna().to_numpy().any()
        assert ((full == table) | table.isna()).to_numpy().all()
        print("fit", *(round(b - a, 2) for a, b in zip(begun, ended, strict=True)))


def rival() -> None:
    """Fit missForest to the embedded table."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (what makes the next import work)
    from sklearn.impute import IterativeImputer

    table = embedded(303)
    codes = table.apply(lambda column: column.astype("category").cat.codes.replace(-1, np.nan) * 1.0)
    begun = spent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = IterativeImputer(RandomForestRegressor(100, random_state=0), max_iter=10).fit_transform(codes)
    ended = spent()
    assert not np.isnan(full).any()
    print("fit", *(round(b - a, 2) for a, b in zip(begun, ended, strict=True)))


def run(code: str, cache: Path | None) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Run code in a process; returns what its fits took, and what all of it took."""
    environment = os.environ | {"EVENLY_CACHE": "off" if cache is None else str(cache)}
    begun = spent()
    command = code.split("\0") if "\0" in code else [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    ended = spent()
    if done.returncode:
        raise SystemExit(done.stderr)
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("fit ")]
    whole = tuple(round(b - a, 2) for a, b in zip(begun, ended, strict=True))
    return [(float(one), float(other)) for one, other in found], (whole[0], whole[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[303, 2_000, 20_000])
    rows = parser.parse_args().rows
    here = str(Path(__file__).parent)

    def show(what: str, took: tuple[float, float], aim: str = "") -> None:
        print(f"{what:58} {took[1]:7.1f} CPU s {took[0]:7.1f} s{aim}", flush=True)

    show("python -c pass", run("pass", None)[1])
    show("import evenly", run("import evenly", None)[1])
    show("evenly --help", run("\0".join([str(Path(sys.executable).parent / "evenly"), "--help"]), None)[1])
    forest = run(f"import sys; sys.path.insert(0, {here!r}); from start_up import rival; rival()", None)[0][0]
    show("missForest (scikit-learn), 303 rows", forest)
    for n in rows:
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)

            def fit(*tables: str, n: int = n, cache: Path = cache) -> list[tuple[float, float]]:
                return run(FITS.format(here=here, rows=n, tables=tables), cache)[0]

            small = n == 303
            (first,) = fit("embedded")
            show(f"fit, {n} rows, empty cache", first, f"   ({first[1] / forest[1]:.2f} x missForest)" if small else "")
            if n <= 2_000:
                show(f"fit, {n} rows, warm cache", fit("embedded")[0])
                again, second = fit("embedded", "embedded")[1], fit("embedded", "another")[1]
                show(f"fit, {n} rows, the same table again in the process", again)
                show(f"fit, {n} rows, another table of like size in the process", second)


if __name__ == "__main__":
    main()
