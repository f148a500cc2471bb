"""Scale Parquet files that need not fit into memory, on each engine: time and peak memory, beside scikit-learn's.

Run: python benchmarks/engines.py [--rows 20000000] [--columns 12] [--engines polars duckdb] [--folder DIR] [--out F].

Each job has a process of its own, which checks the answer first (the scales are those of pandas in memory, on a slice).
It fits a scaler on the files and writes the scaled features to Parquet. The rival, StandardScaler, reads the same files
through pandas, fits, transforms and writes; it gets only the nine numeric columns of twelve, which favours it. With
`--out`, each job leaves a line of JSON as it ends, and those that have one are not run again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FILE_ROWS, GROUP_ROWS, SLICE_ROWS = 1_000_000, 125_000, 50_000
TEXTS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]
BLOCK = 12
"""Columns of a block: four real, three positive, two counts, a yes/no, a category and an ordinal."""
RIVAL = "StandardScaler"
KEY = "count0_0"
"""A key costs the same whatever its numbers are."""
JOBS = {
    RIVAL: ("pandas", "", None),
    "polars lip-none": ("polars", "lip-none", None),
    "duckdb lip-none": ("duckdb", "lip-none", None),
    "dask lip-none": ("dask", "lip-none", None),
    "spark lip-none": ("spark", "lip-none", None),
    "polars lip-gamma": ("polars", "lip-gamma", None),
    "polars lip-gamma by key": ("polars", "lip-gamma", KEY),
    "duckdb lip-gamma by key": ("duckdb", "lip-gamma", KEY),
}
"""Engine, method and key. Without a key Polars and DuckDB do the same: noise by position, batch by batch."""
Record = dict[str, Any]


# --- the table -----------------------------------------------------------------------------------------------------


def make_block(rng: np.random.Generator, n: int, block: int) -> dict[str, Any]:
    """Return twelve columns of all kinds; a twentieth of one of them is missing."""
    columns: dict[str, Any] = {f"real{block}_{i}": rng.normal(3.0 * i, 1.0 + i, n) for i in range(4)}
    columns[f"real{block}_1"][rng.random(n) < 0.05] = np.nan
    columns |= {f"positive{block}_{i}": rng.lognormal(i, 0.5, n) for i in range(3)}
    columns |= {f"count{block}_{i}": rng.poisson((4.0, 300.0)[i], n) for i in range(2)}
    columns[f"yes{block}"] = rng.random(n) < 0.3
    columns[f"text{block}"] = np.array(TEXTS)[rng.integers(0, len(TEXTS), n)]
    columns[f"grade{block}"] = rng.integers(1, 6, n)
    return columns


def make_files(folder: Path, rows: int, columns: int) -> Path:
    """Write the table once, a million rows a file, and a slice of it to check the answer on."""
    import polars as pl

    place = folder / f"{rows}x{columns}"
    done = place / "complete"
    if done.exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    (place / "table").mkdir(parents=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        rng = np.random.default_rng([0, number])
        n = min(FILE_ROWS, rows - start)
        blocks = [make_block(rng, n, block) for block in range(columns // BLOCK)]
        frame = pl.DataFrame({name: cells for block in blocks for name, cells in block.items()}, nan_to_null=True)
        frame.write_parquet(place / "table" / f"{number:05d}.parquet", row_group_size=GROUP_ROWS)
        if number == 0:
            frame[:SLICE_ROWS].write_parquet(place / "slice.parquet", row_group_size=SLICE_ROWS // 4)
    done.touch()
    return place


def kinds(columns: int) -> dict[str, str]:
    return {f"grade{block}": "ordinal" for block in range(columns // BLOCK)}


def numeric(columns: int) -> list[str]:
    rng = np.random.default_rng(0)
    blocks = [make_block(rng, 1, block) for block in range(columns // BLOCK)]
    return [name for block in blocks for name in block if name.startswith(("real", "positive", "count"))]


# --- one job, in a process of its own ------------------------------------------------------------------------------


def peak(pid: int | str = "self") -> int:
    """Return the most memory that a process ever had, in bytes (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmHWM of {pid}")


def cpu(pid: int | None = None) -> float:
    """Return the seconds of processor time that a process took."""
    if pid is None:
        times = os.times()
        return times.user + times.system
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def jvm(engine: str) -> Iterator[int | None]:
    """Start Spark, where it is wanted; yields the process of its JVM."""
    if engine != "spark":
        yield None
        return
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    session = SparkSession.builder.config(map=settings).getOrCreate()
    gateway: Any = session.sparkContext._gateway  # there is no public way to its process
    yield gateway.proc.pid
    session.stop()


def run_rival(place: Path, out: Path, columns: int) -> Record:
    import pandas as pd
    from sklearn.preprocessing import StandardScaler

    begun, before = time.perf_counter(), cpu()
    table = pd.read_parquet(place / "table", columns=numeric(columns))
    scaler = StandardScaler().set_output(transform="pandas").fit(table)
    fitted = time.perf_counter()
    scaler.transform(table).to_parquet(out / "scaled.parquet")
    times = {"fit": fitted - begun, "write": time.perf_counter() - fitted, "cpu": cpu() - before}
    return times | {"features": len(scaler.scale_), "scales": []}


def run_engine(place: Path, out: Path, columns: int, engine: str, method: str, key: str | None) -> Record:
    import pandas as pd

    from evenly import LipschitzScaler, scale_files
    from evenly.engines import get_file_engine
    from evenly.io import find_files

    def make() -> LipschitzScaler:
        return LipschitzScaler(method, kinds=kinds(columns), noise="drawn", random_state=0)

    in_memory = make().fit(pd.read_parquet(place / "slice.parquet"))
    chosen = get_file_engine(engine)
    with chosen.connect() as connection:
        part = make().fit(chosen.read(connection, [place / "slice.parquet"]))
        np.testing.assert_allclose(part.summary_["scale"], in_memory.summary_["scale"], rtol=1e-9)
        begun, before = time.perf_counter(), cpu()
        scaler = make().fit(chosen.read(connection, find_files(place / "table")))
        fitted = time.perf_counter()
        scale_files(place / "table", out / "scaled", scaler, engine=engine, key=key)
        times = {"fit": fitted - begun, "write": time.perf_counter() - fitted, "cpu": cpu() - before}
    check_output(out / "scaled", scaler, place, key)
    scales = [float(scale) for scale in scaler.summary_["scale"]]
    return times | {"features": len(scaler.get_feature_names_out()), "scales": scales}


def check_output(written: Path, scaler: Any, place: Path, key: str | None) -> None:
    """Compare the first rows that were written with the same rows scaled in memory."""
    import polars as pl

    first = min(written.glob("*.parquet"))
    expected = scaler.transform(pl.read_parquet(place / "slice.parquet")[:1000], key=key)
    got = pl.scan_parquet(first).head(1000).collect()
    assert got.columns == expected.columns
    for name in expected.columns:
        np.testing.assert_allclose(got[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, err_msg=name)


def measure(job: str, place: Path, columns: int) -> Record:
    engine, method, key = JOBS[job]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=place.parent) as folder, jvm(engine) as java:
        out, rival = Path(folder), job == RIVAL
        found = run_rival(place, out, columns) if rival else run_engine(place, out, columns, engine, method, key)
        found["cpu"] += cpu(java) if java else 0.0
        found["peak"] = peak() + (peak(java) if java else 0)
    return found


# --- all jobs ------------------------------------------------------------------------------------------------------


def wanted(engines: Sequence[str]) -> list[str]:
    """List the jobs of engines that are there, the rival first."""
    packages = {"spark": "pyspark"}
    there = [one for one in engines if importlib.util.find_spec(packages.get(one, one)) is not None]
    if "spark" in there and shutil.which("java") is None:
        there.remove("spark")
    return [job for job, (engine, _, _) in JOBS.items() if job == RIVAL or engine in there]


def read_lines(out: Path | None) -> list[Record]:
    if out is None or not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def show(record: Record, rival: Record) -> str:
    seconds, others = (one["fit"] + one["write"] for one in (record, rival))
    return (
        f"{record['job']:26}{record['fit']:8.1f}{record['write']:8.1f}{seconds / others:8.2f}"
        f"{record['cpu']:9.1f}{record['cpu'] / rival['cpu']:8.2f}"
        f"{record['peak'] / 2**20:11.0f}{record['peak'] / rival['peak']:8.2f}"
    )


def check_scales(records: Sequence[Record]) -> None:
    """The engines agree with each other on the whole table."""
    for method in {record["method"] for record in records if record["scales"]}:
        same = [record["scales"] for record in records if record["method"] == method]
        for other in same[1:]:
            np.testing.assert_allclose(other, same[0], rtol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=BLOCK, help="a multiple of 12")
    parser.add_argument("--engines", nargs="+", default=["polars", "duckdb", "dask", "spark"])
    parser.add_argument("--folder", type=Path, help="where the table is, or is to be, kept; else a temporary one")
    parser.add_argument("--out", type=Path, help="append a line of JSON for each job")
    parser.add_argument("--one", metavar="JOB", help="measure one job and print JSON")
    given = parser.parse_args()
    if given.one:
        place = make_files(given.folder, given.rows, given.columns)
        print(json.dumps(measure(given.one, place, given.columns)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        place = make_files(folder, given.rows, given.columns)
        size = sum(file.stat().st_size for file in (place / "table").iterdir())
        print(f"{given.rows:,} rows x {given.columns} columns, {size / 2**30:.2f} GiB of Parquet; ratios to {RIVAL}")
        print(f"{'job':26}{'fit s':>8}{'write s':>8}{'ratio':>8}{'cpu s':>9}{'ratio':>8}{'peak MiB':>11}{'ratio':>8}")
        records: list[Record] = []
        size_of_table = {"rows": given.rows, "columns": given.columns}
        for job in wanted(given.engines):
            known = [one for one in read_lines(given.out) if one["job"] == job and size_of_table.items() <= one.items()]
            if known:
                record = known[0]
            else:
                command = [sys.executable, __file__, "--folder", str(folder), "--one", job]
                command += ["--rows", str(given.rows), "--columns", str(given.columns)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                engine, method, key = JOBS[job]
                package = version({"spark": "pyspark"}.get(engine, engine))
                record = {"job": job, "engine": engine, "version": package, "method": method, "key": key}
                record |= size_of_table | {"cores": os.cpu_count(), "bytes": size}
                record |= json.loads(done.stdout.splitlines()[-1])
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(record) + "\n")
            records.append(record)
            print(show(record, records[0]), flush=True)
        check_scales(records)


if __name__ == "__main__":
    main()
