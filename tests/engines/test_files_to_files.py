"""Parquet files in, Parquet files out: the features of `transform` in memory, whatever the engine, all or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenly import EvenlyWarning, LipschitzScaler, MissingExtraError, TableError, scale_files
from evenly.engines import dask as dask_engine
from evenly.engines import files as scaled_files
from evenly.engines import get_file_engine
from evenly.io import find_files

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("dask")

ORDERED = ["polars", "duckdb"]
QUICK = [*ORDERED, pytest.param("dask", marks=pytest.mark.more)]


def table(n: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "row": np.arange(n) + 5_000,
            "size": [None if i % 7 == 0 else float(x) for i, x in enumerate(rng.normal(10.0, 2.0, n))],
            "price": rng.lognormal(1.0, 0.5, n),
            "people": rng.poisson(6.0, n),
            "yes": rng.random(n) < 0.3,
            "colour": [None if i % 9 == 0 else ("red,", "é😀", '"x"')[i % 3] for i in range(n)],
            "note": [f"note {i} of many" for i in range(n)],
        }
    )


@pytest.fixture(scope="module")
def scaler() -> Callable[[str], LipschitzScaler]:
    kinds = {"row": "ignore", "note": "ignore"}
    return lambda method: LipschitzScaler(method, kinds=kinds, passthrough="keep", noise="drawn", random_state=0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of three files of unequal length, with row groups of 40 rows."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, start, end in (("a", 0, 250), ("b", 250, 251), ("c", 251, 600)):
        table()[start:end].write_parquet(folder / f"{name}.parquet", row_group_size=40)
    return folder


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_same(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert got.columns == expected.columns
    assert got.height == expected.height
    for name in expected.columns:
        if expected[name].dtype.is_float():
            assert got[name].is_null().to_list() == expected[name].is_null().to_list()
            np.testing.assert_allclose(got[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-12)
        else:
            assert got[name].to_list() == expected[name].to_list()


# --- the features of a table in memory ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lip-none", "lip-gamma"])
@pytest.mark.parametrize("engine", QUICK)
def test_each_engine_writes_the_features_of_a_table_in_memory(engine, method, data, scaler, tmp_path):
    fitted = scale_files(data, tmp_path / "out", scaler(method), engine=engine, key="row")
    parts = find_files(tmp_path / "out")
    got = pl.concat([pl.read_parquet(part) for part in parts])
    got = got if engine in ORDERED else got.sort("row")
    expected = scaler(method).fit(table())
    np.testing.assert_allclose(fitted.summary_["scale"], expected.summary_["scale"], rtol=1e-9)
    assert_same(got, expected.transform(table(), key="row"))
    assert left(tmp_path) == ["data", "out"]


@pytest.mark.parametrize("engine", ORDERED)
def test_without_a_key_the_noise_is_that_of_the_rows_positions(engine, data, scaler, tmp_path, monkeypatch):
    """To the last bit, over several batches, files and parts."""
    monkeypatch.setattr(scaled_files, "BATCH_CELLS", 300)
    monkeypatch.setattr(scaled_files, "PART_BYTES", (data / "a.parquet").stat().st_size + 1)
    fitted = scale_files(data, tmp_path / "out/", scaler("lip-gamma"), engine=engine)
    assert left(tmp_path / "out") == ["part-00000.parquet", "part-00001.parquet"]
    expected = fitted.transform(table())
    assert pl.read_parquet(tmp_path / "out").equals(expected)
    scale_files(f"{data}/*.parquet", tmp_path / "one.parquet", fitted, engine=engine)
    assert pl.read_parquet(tmp_path / "one.parquet").equals(expected)


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_an_engine_without_an_order_of_rows_asks_for_a_key_before_any_work(engine, data, scaler, tmp_path):
    for one in (scaler("lip-gamma"), scaler("lip-gamma").fit(table())):
        with pytest.raises(TableError, match=r"got no key.*--key.*lip-bern"):
            scale_files(data, tmp_path / "out", one, engine=engine)
    assert left(tmp_path) == ["data"]


@pytest.mark.parametrize("engine", QUICK)
def test_names_are_taken_as_they_are(engine, scaler, tmp_path):
    """No pattern in a name of a file, and no column from the name of a folder."""
    folder = tmp_path / "year=2020"
    folder.mkdir()
    table().write_parquet(folder / "a[1] {b} é.parquet")
    table().write_parquet(tmp_path / "a1 b é.parquet")
    scale_files(folder / "a[1] {b} é.parquet", tmp_path / "out", scaler("std-none"), engine=engine)
    assert_same(pl.read_parquet(tmp_path / "out"), scaler("std-none").fit(table()).transform(table()))


def test_a_single_file_and_an_empty_folder_will_do(data, scaler, tmp_path):
    (tmp_path / "out").mkdir()
    fitted = scale_files(data / "b.parquet", tmp_path / "out", scaler("lip-none").fit(table()))
    assert_same(pl.read_parquet(tmp_path / "out"), fitted.transform(table()[250:251]))


def test_a_file_without_rows_is_a_part_without_rows(data, scaler, tmp_path):
    table()[:0].write_parquet(data / "0.parquet")
    for place, key in enumerate([None, "row"]):
        fitted = scale_files(data, tmp_path / f"{place}.parquet", scaler("lip-gamma"), key=key)
        assert_same(pl.read_parquet(tmp_path / f"{place}.parquet"), fitted.transform(table(), key=key))


@pytest.mark.parametrize("key", [None, "row"])
@pytest.mark.parametrize("engine", ORDERED)
def test_files_without_a_row_are_refused_as_a_table_in_memory_is(engine, key, scaler, tmp_path):
    table()[:0].write_parquet(tmp_path / "none.parquet")
    with pytest.raises(TableError, match="0 rows"):
        scale_files(tmp_path, tmp_path / "out.parquet", scaler("lip-gamma").fit(table()), engine=engine, key=key)
    assert left(tmp_path) == ["none.parquet"]


def test_a_table_wider_than_a_batch_goes_row_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr(scaled_files, "BATCH_CELLS", 2)
    narrow = table()["people", "yes", "colour"][:20]
    narrow.write_parquet(tmp_path / "a.parquet")
    scaler = LipschitzScaler(noise="drawn", random_state=0).fit(table()[:, 3:6])
    fitted = scale_files(tmp_path / "a.parquet", tmp_path / "out", scaler)
    assert pl.read_parquet(tmp_path / "out").equals(fitted.transform(narrow))


def test_passed_through_columns_keep_their_types(tmp_path):
    frame = table().with_columns(
        pl.col("colour").cast(pl.Categorical).alias("category"),
        pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 1) + pl.duration(days=599)).alias("day"),
        pl.concat_list("people", "people").alias("list"),
    )
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=100)
    kinds = dict.fromkeys(("row", "note", "category", "day", "list"), "ignore")
    scaler = LipschitzScaler(kinds=kinds, passthrough="keep", noise="drawn", random_state=0)
    fitted = scale_files(tmp_path / "a.parquet", tmp_path / "out", scaler)
    assert pl.read_parquet(tmp_path / "out").equals(fitted.transform(frame))


@pytest.mark.parametrize("method", ["lip-gamma", "lip-none"])
def test_files_keep_columns_that_transform_drops_and_come_back_whole(method, data, tmp_path):
    scaler = LipschitzScaler(method, kinds={"row": "ignore", "note": "ignore"}, random_state=0)
    assert scale_files(data, tmp_path / "out", scaler) is scaler
    files = pl.read_parquet(tmp_path / "out")
    assert {"row", "note"} <= set(files.columns)
    assert (
        files.drop("row", "note").columns == list(scaler.get_feature_names_out()) == scaler.transform(table()).columns
    )
    assert scaler.inverse_transform(files).columns == table().columns
    assert scaler.inverse_transform(files.drop("row")).columns == [name for name in table().columns if name != "row"]


# --- refused -----------------------------------------------------------------------------------------------------


def test_what_is_no_table_in_parquet_is_refused(data, tmp_path):
    def refused(source: Any, message: str, **settings: Any) -> None:
        with pytest.raises(TableError, match=message):
            scale_files(source, settings.pop("out", tmp_path / "out"), LipschitzScaler(), **settings)
        assert left(tmp_path) == before

    (tmp_path / "empty").mkdir()
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("a\n1\n")
    (tmp_path / "none.parquet").write_text("a\n1\n")
    before = left(tmp_path)
    refused("-", "no file '-'")
    refused(tmp_path / "no.parquet", "no file")
    refused(tmp_path / "*.pq", "which matches no file")
    refused(tmp_path / "empty", "which has no file")
    refused(tmp_path / "csv", r"a\.csv.*expected Parquet, which declares")
    refused(tmp_path / "csv" / "a.csv", r"a\.csv.*expected Parquet, which declares")
    refused(tmp_path / "none.parquet", r"none\.parquet.*expected a whole Parquet file")
    refused(data, "the engine 'excel', but expected one of dask, duckdb, polars, spark", engine="excel")
    refused(data, "which is not empty", out=data)
    refused(data, r"ends in \.parquet", out=tmp_path / "out.csv")
    refused(data, r"ends in \.parquet", out="-")
    refused(data / "a.parquet", "which is read as well", out=data / "a.parquet")
    refused(data, "dask writes a folder of files", out=tmp_path / "out.parquet", engine="dask")
    refused(data, "expected a folder", out=f"{tmp_path}/none.parquet/")
    refused(data, "Column 'nobody': got no such column", key="nobody")
    refused(data, "Column 'size': got a key of Float64s, but expected whole numbers", key="size")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.drop("yes"), r"Column 'yes': got Boolean in a\.parquet and no such column in d\.parquet"),
        (lambda one: one.with_columns(new=1), r"Column 'new': got no such column in a\.parquet and Int32 in d"),
        (lambda one: one.cast({"people": pl.Float64}), r"Column 'people': got Int64 in a\.parquet and Float64 in d"),
        (lambda one: one[one.columns[::-1]], r"Column 'note': got another order in d\.parquet"),
    ],
)
def test_files_with_other_columns_are_refused(change, message, data, tmp_path):
    change(table()).write_parquet(data / "d.parquet")
    with pytest.raises(TableError, match=message):
        scale_files(data, tmp_path / "out", LipschitzScaler())


@pytest.mark.parametrize(
    ("engine", "key"),
    [*((engine, "row") for engine in ORDERED), ("polars", None), pytest.param("dask", "row", marks=pytest.mark.more)],
)
def test_damage_in_the_middle_leaves_nothing(engine, key, data, scaler, tmp_path):
    """The end of the file, which says what is in it, is sound."""
    content = bytearray((data / "c.parquet").read_bytes())
    content[4:4000] = bytes(3996)
    (data / "c.parquet").write_bytes(content)
    for out in ("out", *(["out.parquet"] if engine in ORDERED else [])):
        with pytest.raises(TableError, match=r"expected whole Parquet files"):
            scale_files(data, tmp_path / out, scaler("lip-gamma").fit(table()), engine=engine, key=key)
        assert left(tmp_path) == ["data"]


def test_infinite_cells_are_missing_or_refused_without_a_key_as_in_memory(data, scaler, tmp_path):
    fitted = scaler("lip-gamma").fit(table())
    table().with_columns(size=pl.lit(np.inf)).write_parquet(data / "d.parquet")
    with pytest.warns(EvenlyWarning, match="column 'size': 600 cells infinite, treated as missing$"):
        scale_files(data, tmp_path / "out", fitted)
    assert pl.read_parquet(tmp_path / "out")["size"][-600:].null_count() == 600
    with pytest.raises(TableError, match="Column 'size': got infinite values"):
        scale_files(data, tmp_path / "more", fitted.set_params(strict=True))
    assert left(tmp_path) == ["data", "out"]


def test_an_engine_that_is_not_there_is_named_with_what_installs_it(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"evenly\[engines\]"):
        scale_files(data, tmp_path / "out", LipschitzScaler(), engine="duckdb")


@pytest.mark.parametrize("engine", ORDERED)
def test_rows_keep_their_order_on_all_cores(engine, tmp_path):
    """Of columns with many classes and many markers of missing cells too, which DuckDB would rather join."""
    rng, n = np.random.default_rng(0), 200_000
    frame = pl.DataFrame(
        {
            "row": np.arange(n),
            "text": np.array([f"class {k}" for k in range(20)])[rng.integers(0, 20, n)],
            "grade": rng.integers(0, 60, n),
            "marked": np.where(rng.random(n) < 0.1, rng.integers(-99, -89, n), rng.normal(size=n)),
        }
    )
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=10_000)
    kinds = {"row": "ignore", "text": "categorical", "grade": "ordinal", "marked": "real"}
    missing = {"marked": list(range(-99, -89))}
    scaler = LipschitzScaler("lip-none", kinds=kinds, missing=missing, passthrough="keep").fit(frame)
    scale_files(tmp_path / "a.parquet", tmp_path / "b.parquet", scaler, engine=engine)
    assert_same(pl.read_parquet(tmp_path / "b.parquet"), scaler.transform(frame))


def test_dask_reads_row_groups_in_pieces_of_limited_size_and_every_row_once(tmp_path, monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(dask_engine, "PARTITION_CELLS", 50)
    frame = pl.DataFrame({"n": range(100), "x": [k / 2 for k in range(100)]})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=10)
    engine = get_file_engine("dask")
    with engine.connect() as connection:
        read = engine.read(connection, [tmp_path / "a.parquet"])
        assert isinstance(read, dd.DataFrame)
        assert [len(part) for part in read.partitions] == [20] * 5  # two row groups of 20 cells each, not three
        assert read.compute()["n"].tolist() == list(range(100))
