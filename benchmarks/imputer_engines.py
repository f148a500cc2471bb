"""Impute Parquet files on each engine: rows per second and core, memory of a worker, and a worker killed on the way.

Run: python benchmarks/imputer_engines.py [--cells 2000000] [--gaps 0.1] [--engines polars dask] [--kill] [--folder DIR]
[--out FILE].

An imputer is fitted once, in memory, on some rows of a table of ten columns, of whose cells a fifth is missing; with
`--gaps`, one or two cells of so many rows of the table, and none of the others. Each engine then has a process of its
own: it imputes a sample of the table, which must be, to the byte, what `transform` gives for it in memory; then it
imputes the whole table from files to files. Every row must come out once and without a gap, and the rows of the sample
among the result must be the same bytes again. Only then is a line printed, with the ratio to the same in memory, a file
at a time. Processor time counts all processes; compiling and starting them is not part of it. With `--kill`, a process
that imputes is killed with SIGKILL when two fifths of the parts are begun: a nanny's worker of Dask, a Python worker of
Spark (in local mode, its JVM is the driver, too), a worker of Ray. With `--out`, each job leaves a line of JSON, and
those that have one are not run again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from evenly import Imputer
from evenly.engines import get_file_engine

COLUMNS, FIT_ROWS, SAMPLE_ROWS = 10, 4_000, 50_000
FILE_ROWS, GROUP_ROWS = 500_000, 65_536
WORKERS = 2
RIVAL = "memory"
ENGINES = (RIVAL, "polars", "duckdb", "dask", "spark", "ray")
PACKAGES = {RIVAL: "polars", "spark": "pyspark"}
BILLION, CORES = 1_000_000_000, 64
"""What is projected to: so many rows, on so many cores."""
SIZES = ("8", ">14", ">10", ">10", ">14", ">8", ">22")
Record = dict[str, Any]


# --- the table -------------------------------------------------------------------------------------------------------


def make_rows(rng: np.random.Generator, n: int, first: int, gaps: float | None = None) -> pl.DataFrame:
    """Return ten columns that go together, and the number of each row; `gaps` is the share of rows that have some."""
    x, y = rng.normal(size=(2, n))
    columns: dict[str, Any] = {
        "real": 3.0 + 2.0 * x,
        "sum": x + y + 0.1 * rng.normal(size=n),
        "noise": rng.normal(size=n),
        "size": np.exp(0.5 * x + 0.3 * rng.normal(size=n)).round(2),
        "weight": np.exp(y + 0.2 * rng.normal(size=n)),
        "visits": rng.poisson(np.exp(1.0 + 0.5 * x)),
        "items": rng.poisson(np.exp(2.0 + 0.3 * y)),
        "yes": x + 0.3 * rng.normal(size=n) > 0.0,
        "class": np.array(["a", "b", "c", "d"])[np.digitize(y + 0.3 * rng.normal(size=n), [-0.7, 0.0, 0.7])],
        "region": np.array(["north", "east", "south", "west"])[rng.integers(0, 4, n)],
    }
    if gaps is None:
        hidden = rng.random((n, COLUMNS)) < 0.2
    else:
        hidden, some = np.zeros((n, COLUMNS), bool), np.flatnonzero(rng.random(n) < gaps)
        for _ in range(2):  # a tenth of these rows misses one cell, as the second is the first again
            hidden[some, rng.integers(0, COLUMNS, len(some))] = True
    frame = pl.DataFrame(columns)
    shown = [pl.when(pl.Series(~gone)).then(name).alias(name) for name, gone in zip(columns, hidden.T, strict=True)]
    return frame.select(shown).with_columns(row=pl.int_range(first, first + n))


def make_files(folder: Path, rows: int, gaps: float | None) -> Path:
    """Write the table once, a sample of its rows, and the imputer."""
    place = folder / f"{rows}x{COLUMNS}_{gaps}"
    if (place / "complete").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    (place / "table").mkdir(parents=True)
    every, some = max(1, rows // SAMPLE_ROWS), []
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        frame = make_rows(np.random.default_rng([0, number]), min(FILE_ROWS, rows - first), first, gaps)
        frame.write_parquet(place / "table" / f"{number:05d}.parquet", row_group_size=GROUP_ROWS)
        some.append(frame.filter(pl.col("row") % every == 0))
    pl.concat(some)[:SAMPLE_ROWS].write_parquet(place / "sample.parquet", row_group_size=SAMPLE_ROWS // 4)
    table = make_rows(np.random.default_rng(1), FIT_ROWS, 0)
    Imputer(effort="quick", kinds={"row": "ignore"}, random_state=0).fit(table).save(place / "imputer.safetensors")
    (place / "complete").touch()
    return place


# --- processes -------------------------------------------------------------------------------------------------------


class Watch:
    """Looks at this process and its children now and then: their processor time, and the most memory of each."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.seconds: dict[int, float] = {}
        self.peaks: dict[int, int] = {}
        self.machines: set[int] = set()
        """The virtual machines of Java among them."""
        self.at_work: set[int] = set()
        """Those that impute, or did."""
        self.own = 0.0
        """Seconds that looking took, which no engine needs."""
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look_on, daemon=True)

    def look(self) -> None:
        begun, found = time.thread_time(), psutil.Process().children(recursive=True)
        for one in [psutil.Process(), *found]:
            try:
                times = one.cpu_times()
                self.seconds[one.pid] = times.user + times.system
                self.peaks[one.pid] = peak(one.pid)
                if one.name() == "java":
                    self.machines.add(one.pid)
            except (psutil.Error, OSError, RuntimeError):  # it has ended
                continue
        self.at_work |= {one.pid for one in workers(self.engine, found)}
        self.own += time.thread_time() - begun

    def most(self, some: set[int]) -> int:
        """Return the peak memory of the largest of some processes."""
        return max((self.peaks[pid] for pid in some if pid in self.peaks), default=0)

    def look_on(self) -> None:
        while not self.over.wait(2.0):
            self.look()

    @property
    def total(self) -> float:
        self.look()
        return sum(self.seconds.values()) - self.own


def peak(pid: int) -> int:
    """Return the most memory that a process ever had, in bytes (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmHWM of {pid}")


def workers(engine: str, children: list[psutil.Process] | None = None) -> list[psutil.Process]:
    """Return the processes that impute: this one, if the engine has no others."""
    words = {"dask": "multiprocessing.spawn", "spark": "pyspark.daemon", "ray": "ray::"}
    if engine not in words:
        return [psutil.Process()]
    found = []
    for one in psutil.Process().children(recursive=True) if children is None else children:
        try:
            if words[engine] in " ".join(one.cmdline()) and "resource_tracker" not in " ".join(one.cmdline()):
                found.append(one)
        except psutil.Error:
            continue
    if engine == "spark":  # the daemon forks the workers
        found = [one for one in found if one.parent() is not None and one.parent() in found]
    return found


def count_parts(engine: str, frame: Any) -> int:
    """Return how many files an engine that writes one for each partition will write; 0 if it does not say."""
    if engine == "dask":
        return int(frame.npartitions)
    return int(frame.rdd.getNumPartitions()) if engine == "spark" else 0


def kill_one(engine: str, out: Path, parts: int, done: threading.Event, killed: list[int]) -> None:
    """Kill the worker that is working most, once two fifths of the parts have been begun."""
    before: dict[int, float] = {}
    while not done.wait(1.0):
        if sum(1 for _ in out.rglob("*.parquet")) < max(1, 0.4 * parts):
            continue
        now = {one.pid: sum(one.cpu_times()[:2]) for one in workers(engine)}
        worked = {pid: seconds - before[pid] for pid, seconds in now.items() if pid in before}
        before = now
        if worked and max(worked.values()) > 0.1:
            os.kill(pid := max(worked, key=worked.__getitem__), signal.SIGKILL)
            killed.append(pid)
            return


# --- engines: each gives what turns files into a lazy frame, and what writes one -------------------------------------


@contextmanager
def start(engine: str, imputer: Imputer) -> Iterator[tuple[Callable[[list[Path]], Any], Callable[[Any, Path], None]]]:
    """Start an engine; yields how it reads files and imputes them, lazily, and how it writes what was imputed."""
    if engine == RIVAL:
        yield lambda files: files, lambda files, out: impute_in_memory(imputer, files, out)
    elif engine == "ray":
        ray: Any = importlib.import_module("ray")
        importlib.import_module("ray.data")
        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield (
            lambda files: imputer.transform(ray.data.read_parquet(list(map(str, files)))),
            lambda made, out: made.write_parquet(str(out)),
        )
        ray.shutdown()
    elif engine == "dask":
        known, distributed = get_file_engine("dask"), importlib.import_module("distributed")
        settings: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
        with distributed.LocalCluster(n_workers=WORKERS, **settings) as cluster, distributed.Client(cluster):
            yield lambda files: imputer.transform(split(files)), lambda made, out: known.write(made, out, GROUP_ROWS)
    elif engine == "spark":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
        settings |= {"spark.sql.files.maxPartitionBytes": "4m", "spark.sql.files.openCostInBytes": "0"}
        settings |= {"spark.driver.memory": "1g"}
        session = SparkSession.builder.master(f"local[{WORKERS},4]").config(map=settings).getOrCreate()
        spark = get_file_engine("spark")
        yield (
            lambda files: imputer.transform(spark.read(session, files)),
            lambda made, out: spark.write(made, out / "parts", GROUP_ROWS),
        )
        session.stop()
    else:
        local = get_file_engine(engine)
        with local.connect() as connection:
            yield (
                lambda files: imputer.transform(local.read(connection, files)),
                lambda made, out: local.write(made, out / "0.parquet", GROUP_ROWS),
            )


def impute_in_memory(imputer: Imputer, files: list[Path], out: Path) -> None:
    """Impute one file after the other, each in memory as a whole."""
    for one in files:
        imputer.transform(pl.read_parquet(one)).write_parquet(out / one.name, row_group_size=GROUP_ROWS)


def split(files: list[Path]) -> Any:
    """Read each row group as a partition, so that both workers have some of a small table."""
    import pyarrow.parquet as pq

    from evenly.engines.dask import FileSlice, read_slice

    slices = [FileSlice(str(one), [k]) for one in files for k in range(pq.read_metadata(one).num_row_groups)]
    dd: Any = importlib.import_module("dask.dataframe")
    return dd.from_map(read_slice, slices, meta=read_slice(slices[0]).iloc[:0])


# --- one job, in a process of its own --------------------------------------------------------------------------------


def check(imputer: Imputer, place: Path, written: Path, what: str) -> int:
    """Compare rows that were written with the same rows imputed in memory, bit by bit; returns how many."""
    sample = pl.read_parquet(place / "sample.parquet")
    source = "sample.parquet" if written.name == "first" else "table/*.parquet"
    n = pl.scan_parquet(place / source).select(pl.len()).collect().item()
    expected = imputer.transform(sample).sort("row")
    files = sorted(str(one) for one in written.rglob("*.parquet"))
    got = pl.scan_parquet(files).filter(pl.col("row").is_in(sample["row"].implode())).collect().sort("row")
    got = got.select(pl.col(name).cast(dtype) for name, dtype in expected.schema.items())
    assert len(got) == len(expected), f"{what}: {len(got)} of {len(expected)} rows"
    for name in expected.columns:
        ours, theirs = (one[name].to_numpy() for one in (got, expected))
        if ours.dtype.kind == "f":
            ours, theirs = ours.view(np.uint64), theirs.view(np.uint64)
        assert (ours == theirs).all(), f"{what}: {int((ours != theirs).sum())} other cells in {name}"
    asked = (pl.len(), pl.col("row").n_unique().alias("rows"), pl.sum_horizontal(pl.all().null_count()).alias("gaps"))
    counted = pl.scan_parquet(files).select(*asked).collect(engine="streaming").rows()[0]
    assert counted == (n, n, 0), f"{what}: {counted} rows, different ones and gaps, expected {(n, n, 0)}"
    return len(expected)


def count_incomplete(files: list[Path]) -> int:
    """Return how many rows have a missing cell."""
    lacking = pl.any_horizontal(pl.all().is_null()).sum()
    return int(pl.scan_parquet(files).select(lacking).collect(engine="streaming").item())


def measure(engine: str, place: Path, *, kill: bool) -> Record:
    """Impute the sample and check it, then the table, and check that; returns times and memory."""
    warnings.simplefilter("ignore")
    imputer = Imputer.load(place / "imputer.safetensors")
    files, watch, killed = sorted((place / "table").iterdir()), Watch(engine), list[int]()
    incomplete = count_incomplete(files)
    watch.thread.start()
    with tempfile.TemporaryDirectory(dir=place.parent) as folder, start(engine, imputer) as (read, write):
        first, out = Path(folder) / "first", Path(folder) / "out"
        for one in (first, out):
            one.mkdir()
        for _ in range(2):  # every worker starts and compiles before the clock does
            shutil.rmtree(first)
            first.mkdir()
            write(read([place / "sample.parquet"]), first)
        check(imputer, place, first, f"{engine}, the sample")
        done, begun, before = threading.Event(), time.perf_counter(), watch.total
        made = read(files)
        if kill:
            aside = (engine, out, count_parts(engine, made), done, killed)
            threading.Thread(target=kill_one, args=aside, daemon=True).start()
        write(made, out)
        record = {"seconds": time.perf_counter() - begun, "cpu": watch.total - before}
        done.set()
        watch.over.set()
        record |= {"peak": watch.most(watch.at_work), "machine": watch.most(watch.machines)}
        record |= {"killed": len(killed), "repeated": count_repeated(engine)}
        record |= {"checked": check(imputer, place, out, engine), "incomplete": incomplete}
    if kill and not killed:
        raise SystemExit(f"{engine}: no worker was killed: the table is too short")
    return record


def count_repeated(engine: str) -> int:
    """Return how many of Spark's tasks failed, and were done again."""
    if engine != "spark":
        return 0
    from pyspark.sql import SparkSession

    tracker = SparkSession.builder.getOrCreate().sparkContext.statusTracker()
    jobs: list[Any] = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup()]
    stages = [tracker.getStageInfo(one) for job in jobs if job is not None for one in job.stageIds]
    return sum(one.numFailedTasks for one in stages if one is not None)


# --- all jobs --------------------------------------------------------------------------------------------------------


def there(engines: list[str]) -> list[str]:
    """List the engines that are installed."""
    found = [one for one in engines if importlib.util.find_spec(PACKAGES.get(one, one)) is not None]
    return [one for one in found if one != "spark" or shutil.which("java")]


def show(record: Record, rival: Record | None) -> str:
    rate = record["rows"] / record["cpu"]
    hours, ratio = BILLION / rate / 3600 / CORES, record["cpu"] / rival["cpu"] if rival else float("nan")
    return (
        f"{record['engine']:8}{rate:14,.0f}{ratio:10.2f}{record['seconds']:10.1f}"
        f"{record['peak'] / 2**20:14.0f}{record['killed']:8d}{hours:22.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=2_000_000, help=f"of the table, which has {COLUMNS} columns")
    parser.add_argument(
        "--gaps", type=float, help="share of the rows that miss one or two cells; else 0.2 of all cells"
    )
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--kill", action="store_true", help="kill a worker of Dask, Spark and Ray while it imputes")
    parser.add_argument("--folder", type=Path, help="where the table is, or is to be, kept; else a temporary one")
    parser.add_argument("--out", type=Path, help="append a line of JSON for each job")
    parser.add_argument("--one", metavar="ENGINE", help="measure one engine and print JSON")
    given = parser.parse_args()
    rows = given.cells // COLUMNS
    if given.one:
        print(json.dumps(measure(given.one, make_files(given.folder, rows, given.gaps), kill=given.kill)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        make_files(folder, rows, given.gaps)
        known = (
            [json.loads(line) for line in given.out.read_text().splitlines()]
            if given.out and given.out.exists()
            else []
        )
        print(f"{rows:,} rows x {COLUMNS} columns; ratios to the same in memory; the cost of a row stays as it is")
        titles = (
            "engine",
            "rows/s/core",
            "cpu ratio",
            "seconds",
            "MiB a worker",
            "killed",
            f"1e9 rows, h, {CORES} cores",
        )
        print("".join(f"{title:{size}}" for title, size in zip(titles, SIZES, strict=True)))
        of_rival = {"engine": RIVAL, "rows": rows, "columns": COLUMNS, "gaps": given.gaps}
        rival = next((one for one in known if of_rival.items() <= one.items()), None)
        for engine in there(given.engines):
            kill = given.kill and engine in ("dask", "spark", "ray")
            job = {"engine": engine, "rows": rows, "columns": COLUMNS, "gaps": given.gaps, "kill": kill}
            record = next((one for one in known if job.items() <= one.items()), None)
            if record is None:
                command = [
                    sys.executable,
                    __file__,
                    "--folder",
                    str(folder),
                    "--cells",
                    str(given.cells),
                    "--one",
                    engine,
                    *(["--gaps", str(given.gaps)] if given.gaps is not None else []),
                ]
                done = subprocess.run(command + ["--kill"] * kill, check=True, stdout=subprocess.PIPE, text=True)
                package = version(PACKAGES.get(engine, engine))
                record = job | {"version": package, "cores": os.cpu_count()} | json.loads(done.stdout.splitlines()[-1])
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(record) + "\n")
            rival = record if engine == RIVAL else rival
            print(show(record, rival), flush=True)


if __name__ == "__main__":
    main()
