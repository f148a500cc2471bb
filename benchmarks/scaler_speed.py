"""Fit and transform five million rows: time against scikit-learn's StandardScaler, and peak memory.

Run: python benchmarks/scaler_speed.py [--rows 5000000]. Each measurement has a process of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NUMERIC = ["r0", "r1", "r2", "r3", "p0", "p1", "p2", "c0", "c1"]
"""Four real, three positive and two count columns; the table has a boolean and two text columns more."""


def make_table(container: str, rows: int) -> Any:
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {f"r{i}": rng.normal(3.0 * i, 1.0 + i, rows) for i in range(4)}
    data |= {f"p{i}": rng.lognormal(i, 0.5, rows) for i in range(3)}
    data |= {"c0": rng.poisson(4.0, rows), "c1": rng.poisson(30.0, rows)}
    data |= {"b": rng.random(rows) < 0.3}
    for name, classes in {"s0": ["red", "green", "blue"], "s1": ["north", "east", "south", "west"]}.items():
        data[name] = np.array(classes)[rng.integers(0, len(classes), rows)]
    if container == "pandas":
        import pandas as pd

        return pd.DataFrame(data)
    import polars as pl

    return pl.DataFrame(data)


def memory(field: str) -> int:
    """Read a field of the process's memory, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(field)


def check(scaler: Any, scaled: Any, kinds: dict[str, str]) -> None:
    """Check the answer first: the smoothness of the scaled data, from their mean and variance, is the target."""
    for name, kind in kinds.items():
        values = np.asarray(scaled[name], dtype=float)
        values = np.log(values) if kind == "positive" else values
        mean, variance = values.mean(), values.var()
        smoothness = variance + 4 * abs(mean) * variance + 2 * variance**2 + 4 * mean**2 * variance
        assert abs(smoothness / scaler.target_ - 1) < 1e-6, (name, smoothness, scaler.target_)


def measure(job: str, container: str, rows: int) -> dict[str, float]:
    """Time one job, best of three; peak memory counts the table itself."""
    from sklearn.preprocessing import StandardScaler

    from evenly import LipschitzScaler

    run: Callable[[Any], Any]
    small = make_table(container, 1000)
    whole = job.endswith("whole table")
    if job.startswith("StandardScaler"):

        def run(table: Any) -> Any:
            return StandardScaler().set_output(transform=container).fit(table).transform(table)
    else:
        kinds = {name: "real" for name in NUMERIC if name[0] == "r"} | {"p0": "positive"}

        def run(table: Any) -> Any:
            scaler = LipschitzScaler(job.split()[0], kinds=kinds, noise="drawn", random_state=0).fit(table)
            scaled = scaler.transform(table)
            if len(table) < 10_000:
                check(scaler, scaled, kinds)
            return scaled

    run(small if whole else small[NUMERIC])  # imports and first calls
    table = make_table(container, rows)
    table = table if whole else table[NUMERIC]
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    time.sleep(3)  # what making the table left behind goes back to the system; Polars' allocator takes its time
    before = memory("VmRSS")
    size = int(table.memory_usage(deep=True).sum()) if container == "pandas" else int(table.estimated_size())
    peaks, times = [], []
    for _ in range(3):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the table
        start = time.perf_counter()
        result = run(table)
        times.append(time.perf_counter() - start)
        peaks.append(size + memory("VmHWM") - before)
        del result
    return {"seconds": min(times), "peak": min(peaks) / size, "size": size}


JOBS = ["StandardScaler, numeric", "lip-none, numeric", "lip-none, whole table", "lip-gamma, whole table"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--one", nargs=2, metavar=("JOB", "CONTAINER"), help="measure one job and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0].replace(",", ""), options.one[1], options.rows)))
        return
    print(
        f"{options.rows:,} rows; {len(NUMERIC)} numeric columns of 12; ratio to StandardScaler on the numeric columns"
    )
    print(f"{'table':8}{'job':28}{'seconds':>9}{'ratio':>8}{'peak / input':>14}")
    for container in ("pandas", "polars"):
        rival = None
        for job in JOBS:
            command = [sys.executable, __file__, "--rows", str(options.rows), "--one", job, container]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rival = rival or found["seconds"]
            line = f"{container:8}{job:28}{found['seconds']:9.2f}{found['seconds'] / rival:8.2f}{found['peak']:14.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
