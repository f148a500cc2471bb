"""The benchmark of imputing on engines: it reports nothing of a result that is not, row by row, that of memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenly import Imputer


def load_script(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, Path(__file__).parents[2] / path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


BENCHMARK = load_script("benchmarks/imputer_engines.py")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of two files, a sample of it, and where a result is."""
    for name in ("table", "out"):
        (tmp_path / name).mkdir()
    rows = [BENCHMARK.make_rows(np.random.default_rng(k), 200, 200 * k, 0.3) for k in range(2)]
    for k, one in enumerate(rows):
        one.write_parquet(tmp_path / "table" / f"{k}.parquet")
    pl.concat(rows)[::10].write_parquet(tmp_path / "sample.parquet")
    return tmp_path


@pytest.fixture
def imputer(place: Path) -> Imputer:
    return Imputer("marginal", kinds={"row": "ignore"}, random_state=0).fit(pl.read_parquet(place / "sample.parquet"))


def test_one_or_two_cells_of_a_share_of_the_rows_are_missing():
    rows = BENCHMARK.make_rows(np.random.default_rng(0), 4_000, 0, 0.05)
    gaps = rows.select(pl.sum_horizontal(pl.all().is_null()))[:, 0].to_numpy()
    assert set(gaps) == {0, 1, 2}
    assert (gaps > 0).mean() == pytest.approx(0.05, abs=0.02)
    assert rows["row"].null_count() == 0


def test_a_result_is_that_of_memory(place, imputer):
    full = imputer.transform(pl.read_parquet(place / "table/*.parquet"))
    full.write_parquet(place / "out" / "0.parquet")
    assert BENCHMARK.check(imputer, place, place / "out", "an engine") == 40


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda full: full.filter(pl.col("row") != 5), r"\(399, 399, 0\)"),
        (lambda full: pl.concat([full, full[5:6]]), r"\(401, 400, 0\)"),
        (lambda full: full.with_columns(pl.when(pl.col("row") != 5).then("noise").alias("noise")), r"\(400, 400, 1\)"),
        (
            lambda full: full.with_columns(noise=np.nextafter(full["noise"].to_numpy(), np.inf)),
            "40 other cells in noise",
        ),
        (lambda full: full.filter(pl.col("row") != 10), "39 of 40 rows"),
    ],
    ids=["lost", "twice", "gap", "last digit", "lost of the sample"],
)
def test_a_lost_or_repeated_row_a_gap_and_another_digit_are_found(place, imputer, spoil, message):
    full = imputer.transform(pl.read_parquet(place / "table/*.parquet"))
    spoil(full).write_parquet(place / "out" / "0.parquet")
    with pytest.raises(AssertionError, match=message):
        BENCHMARK.check(imputer, place, place / "out", "an engine")
