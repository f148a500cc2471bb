"""What training on a table larger than memory costs: peak memory, and its rate as a ratio to training in memory.

Run: python benchmarks/streaming.py [--rows N] [--epochs N] [--in-memory N] [--write FILE]. First the answer is checked:
on a small table of the same kind, the error on hidden cells after streaming is no worse than after training in memory,
within TOLERANCE. Then each training has a process of its own. The rate is that of the epochs alone: rows that were
trained on by the time from the end of the first part or epoch, which is compiled, to the end of the last one. With
--write the numbers are added to a file of JSON lines, such as docs/results/streaming.jsonl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

LIMIT = 4.0
"""GiB of memory that streaming may take, whatever the number of rows."""
AIM = 0.7
"""Of the rate of training in memory."""
TOLERANCE = 1.05
"""Mean errors of two trainings from different orders of rows differ by some per cent."""
BLOCK = 250_000


def make_imputer(epochs: int, **sizes: int) -> Any:
    from evenly import Imputer, Training

    return Imputer(training=Training(epochs=epochs, n_networks=1, sizes=sizes), random_state=0)


def block(n_rows: int, seed: int) -> pl.DataFrame:
    """Return 12 columns of all kinds that share two latent variables, without a missing cell."""
    rng = np.random.default_rng((0, seed))
    a, b = rng.normal(size=(2, n_rows))
    words = np.array(["north", "east", "south", "west", "centre"])
    return pl.DataFrame(
        {
            "real_0": 50.0 + 3.0 * a + rng.normal(size=n_rows),
            "real_1": a * b + 0.5 * rng.normal(size=n_rows),
            "real_2": 1e4 * b + 5e3 * rng.normal(size=n_rows),
            "real_3": np.sin(2.0 * a) + 0.3 * rng.normal(size=n_rows),
            "positive_0": np.exp(0.5 * a + 0.3 * rng.normal(size=n_rows)),
            "positive_1": np.exp(0.8 * b + 0.5 * rng.normal(size=n_rows)),
            "count_0": rng.poisson(np.exp(0.4 * a + 1.0)),
            "count_1": rng.poisson(np.exp(0.6 * b)),
            "binary_0": a + 0.5 * rng.normal(size=n_rows) > 0.0,
            "binary_1": (a * b + 0.3 * rng.normal(size=n_rows) > 0.0).astype(np.int8),
            "class_0": words[np.clip(np.rint(a + 0.5 * rng.normal(size=n_rows) + 2), 0, 4).astype(int)],
            "class_1": words[np.clip(np.rint(b + 0.5 * rng.normal(size=n_rows) + 2), 0, 4).astype(int)],
        }
    )


def with_gaps(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Hide a tenth of all cells."""
    rng = np.random.default_rng((1, seed))
    return table.with_columns(
        pl.when(pl.Series(rng.random(len(table)) >= 0.1)).then(pl.col(name)).alias(name) for name in table.columns
    )


def write(folder: Path, n_rows: int) -> None:
    """Write the table with missing cells, one file a block."""
    for k, start in enumerate(range(0, n_rows, BLOCK)):
        n = min(BLOCK, n_rows - start)
        with_gaps(block(n, k), k).write_parquet(folder / f"part{k:04}.parquet", row_group_size=100_000)


def error(full: pl.DataFrame, table: pl.DataFrame, gappy: pl.DataFrame) -> float:
    """Return the mean over columns of the error on hidden cells: over the standard deviation, or the error rate."""
    found = []
    for name in table.columns:
        gone = gappy[name].is_null()
        true, guess = table[name].filter(gone), full[name].filter(gone)
        numbers = table[name].dtype.is_numeric() and table[name].n_unique() > 2
        if numbers:
            found.append(np.sqrt(((true - guess).to_numpy() ** 2).mean()) / table[name].to_numpy().std())
        else:
            found.append((true != guess).to_numpy().mean())
    return float(np.mean(found))


def check(n_rows: int) -> None:
    """Compare the errors of a streamed training with those of one in memory, from the same rows."""
    from evenly.imputation import streaming
    from evenly.io import parquet

    parquet.MOST_IN_MEMORY, parquet.SAMPLE, streaming.POOL = 1, n_rows // 4, n_rows // 4
    table = block(n_rows, 0)
    gappy = with_gaps(table, 0)
    settings = {"epochs": 6, "hidden_size": 64}
    with tempfile.TemporaryDirectory() as folder:
        gappy.write_parquet(f"{folder}/some.parquet", row_group_size=n_rows // 10)
        streamed = error(make_imputer(**settings).fit(folder).transform(gappy), table, gappy)
    in_memory = error(make_imputer(**settings).fit_transform(gappy), table, gappy)
    print(json.dumps({"rows": n_rows, "error_streamed": streamed, "error_in_memory": in_memory}))
    assert streamed < TOLERANCE * in_memory, (streamed, in_memory)


def train(source: str, n_rows: int, epochs: int, streamed: bool) -> None:
    """Train on all files, or on some of their rows in memory; print the rate and the peak of memory."""
    from evenly import Callback
    from evenly.io import open_parquet

    table: Any = source
    if not streamed:
        table = pl.scan_parquet(f"{source}/*.parquet").head(n_rows).collect()
    n_rows = open_parquet(source).n_rows if streamed else len(table)
    before, ticks = peak(), []

    class Clock(Callback):
        """Notes the time after every part or epoch."""

        def on_epoch(self, epoch: Any) -> None:
            ticks.append((time.perf_counter(), time.process_time(), epoch.epoch + 1.0))

    begun = time.perf_counter()
    # Validation cells would be scored at other points in memory: they are left out.
    with patch("evenly.imputation.fitting.validation_score", lambda *_: None):
        imputer = make_imputer(epochs).set_params(callbacks=[Clock()]).fit(table)
    seconds = time.perf_counter() - begun
    assert np.isfinite(imputer.history_["elbo"]).all()
    (start, start_cpu, first), (end, end_cpu, last) = ticks[0], ticks[-1]
    found = {
        "rows": n_rows,
        "epochs": epochs,
        "streamed": streamed,
        "rate": n_rows * (last - first) / (end - start),
        "rate_cpu": n_rows * (last - first) / (end_cpu - start_cpu),
        "seconds": seconds,
        "before_training": ticks[0][0] - begun,
        "peak_gib": peak(),
        "peak_before_gib": before,
    }
    print(json.dumps(found))


def peak() -> float:
    """Return the most memory that this process ever had, in GiB."""
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return int(status.split()[0]) / 2**20


def run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--epochs", type=int, default=1, help="of the streamed training; one more is in memory")
    parser.add_argument("--in-memory", type=int, default=500_000, help="rows of the training in memory, at most")
    parser.add_argument("--checked", type=int, default=20_000, help="rows of the table that the answer is checked on")
    parser.add_argument("--write", type=Path, help="add the numbers to this file of JSON lines")
    parser.add_argument("--only", choices=["check", "streamed", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--source", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only == "check":
        check(given.checked)
    elif given.only:
        train(given.source, given.rows, given.epochs, given.only == "streamed")
    else:
        checked = run("--only", "check", "--checked", str(given.checked))
        print(
            f"answer, {checked['rows']} rows: error {checked['error_streamed']:.4f} streamed, "
            f"{checked['error_in_memory']:.4f} in memory (at most {TOLERANCE} x)"
        )
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), given.rows)
            size = sum(one.stat().st_size for one in Path(folder).iterdir()) / 2**20
            print(f"{given.rows} rows x 12 columns, {size:.0f} MiB of Parquet")
            fewer = str(min(given.rows, given.in_memory))
            memory = run("--only", "memory", "--source", folder, "--rows", fewer, "--epochs", str(given.epochs + 1))
            streamed = run("--only", "streamed", "--source", folder, "--epochs", str(given.epochs))
        for name, one in (("in memory", memory), ("streamed", streamed)):
            print(
                f"{name:10} {one['rows']} rows, {one['epochs']} epochs: {one['rate']:.0f} rows/s an epoch "
                f"({one['rate_cpu']:.0f} by processor time), "
                f"{one['seconds']:.0f} s in all ({one['before_training']:.0f} s before the second part or epoch), "
                f"peak {one['peak_gib']:.2f} GiB ({one['peak_before_gib']:.2f} before fit)"
            )
        ratio, by_cpu = (streamed[name] / memory[name] for name in ("rate", "rate_cpu"))
        print(f"ratio of the rates {ratio:.2f} (aim {AIM}); by processor time {by_cpu:.2f}, whatever else is running")
        print(f"peak of memory {streamed['peak_gib']:.2f} GiB (limit {LIMIT:.0f})")
        if given.write:
            with given.write.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"checked": checked, "memory": memory, "streamed": streamed}) + "\n")
        assert streamed["peak_gib"] < LIMIT


if __name__ == "__main__":
    main()
