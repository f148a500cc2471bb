"""An imputer on tables of other engines: the same bytes, types and rows as in memory, and nothing before it is asked.

Each engine is the real one. Batches are small, so that every table has several.
"""

from __future__ import annotations

import datetime
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from imputers import make_imputer, mixed_table
from sklearn.exceptions import NotFittedError

from evenly import EvenlyWarning, Imputer, LipschitzScaler, TableError
from evenly.engines import batches
from evenly.imputation import lazy_filling

pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # Spark starts its JVM by one
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

DASK, SPARK, RAY = (pytest.param(name, marks=pytest.mark.more) for name in ("dask", "spark", "ray"))
LOCAL = ["polars", "duckdb"]
ENGINES = [*LOCAL, DASK, SPARK, RAY]


def make_table(n: int = 150, seed: int = 0) -> pl.DataFrame:
    """Columns of every kind that go together, and some that pass through; a fifth of the cells is missing."""
    rng, table = np.random.default_rng(seed), mixed_table(n, seed).drop(columns="grade")
    table["cents"] = [
        f"{x:.2f}" if seen else None for x, seen in zip(rng.normal(size=n), rng.random(n) < 0.8, strict=True)
    ]
    table["day"] = pd.Series(pd.date_range("2020-01-01", periods=n)).where(rng.random(n) < 0.8)
    table["note"] = [f"note {k} of {n * k + 7}" for k in range(n)]
    whole = pl.from_pandas(table).with_columns(pl.col("day").cast(pl.Datetime("us")), pl.col("count").cast(pl.Int32))
    return whole.with_columns(row=pl.Series(rng.permutation(n) + 10_000))


TABLE = make_table()
NEW = make_table(700, seed=1)
KINDS = {"row": "ignore", "note": "ignore"}


@pytest.fixture(scope="module")
def fitted() -> Imputer:
    return make_imputer(kinds=KINDS, epochs=1, hidden_size=8, random_state=0).fit(TABLE)


@pytest.fixture(scope="module")
def plain() -> Imputer:
    """Without a network, for processes that start anew."""
    return Imputer("marginal", kinds=KINDS).fit(TABLE)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_filling, "ROWS_AT_ONCE", 150)
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", 150)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield pytest.importorskip("ray.data")
    ray.shutdown()


@pytest.fixture
def give(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, pl.DataFrame], Any]:
    """Give a table to an engine, in several partitions if it has such; a test of an absent engine is skipped."""

    def to(engine: str, table: pl.DataFrame) -> Any:
        if engine == "polars":
            return table.lazy()
        if engine == "duckdb":
            return pytest.importorskip("duckdb").connect().from_arrow(table.to_arrow())
        if engine == "dask":
            return pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=3)
        table.write_parquet(tmp_path / "table.parquet", row_group_size=200)
        if engine == "spark":
            spark = request.getfixturevalue("spark")
            return spark.read.parquet(str(tmp_path / "table.parquet")).repartitionByRange(3, "row")
        return request.getfixturevalue("ray").read_parquet(str(tmp_path / "table.parquet"), override_num_blocks=3)

    return to


def collect(lazy: Any) -> Any:
    """Return a frame in memory, as its engine has it there."""
    if hasattr(lazy, "to_arrow_table"):
        return lazy.to_arrow_table()
    if hasattr(lazy, "toArrow"):
        return lazy.toArrow()
    if hasattr(lazy, "to_arrow_refs"):
        import pyarrow as pa
        import ray

        return pa.concat_tables(one for one in ray.get(lazy.to_arrow_refs()) if one.num_rows)
    return lazy.compute() if hasattr(lazy, "compute") else lazy.collect()


def assert_same(got: Any, expected: Any) -> None:
    """The same bytes and types, in the same order of rows."""
    if isinstance(got, pd.DataFrame):
        pd.testing.assert_frame_equal(got, expected, check_exact=True)
    elif isinstance(got, pl.DataFrame):
        assert got.schema == expected.schema
        assert got.equals(expected)
    else:
        assert got.schema.equals(expected.schema, check_metadata=False)
        assert got.equals(expected)


# --- the same as in memory ---


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_bytes_types_and_rows_of_memory(engine, fitted, plain, give, small_batches):
    fitted = plain if engine == "ray" else fitted
    lazy = give(engine, NEW)
    got, before = collect(fitted.transform(lazy)), collect(lazy)
    if engine == "ray":  # which keeps no order of blocks
        got, before = (one.sort_by("row") for one in (got, before))
    expected = fitted.transform(before)
    assert_same(got, expected)
    frame = nw.from_native(got, eager_only=True)
    assert len(frame) == len(NEW)
    assert not any(frame[name].is_null().any() for name in NEW.columns)
    types = nw.from_native(before, eager_only=True).schema
    assert frame.schema == types


@pytest.mark.parametrize("engine", LOCAL)
def test_the_result_can_be_queried_further_and_twice(engine, fitted, give, small_batches):
    lazy, expected = fitted.transform(give(engine, NEW)), fitted.transform(NEW)
    first = lazy.limit(5)
    assert pl.DataFrame(collect(first)).equals(expected[:5])
    assert pl.DataFrame(collect(lazy)).equals(expected)
    assert pl.DataFrame(collect(lazy)).equals(expected)


@pytest.mark.parametrize("engine", [*LOCAL, DASK, SPARK])
def test_types_come_back_as_the_engine_has_them(engine, fitted, give):
    lazy = give(engine, NEW)
    got = fitted.transform(lazy)
    if engine == "polars":
        assert got.collect_schema() == lazy.collect_schema()
    elif engine == "duckdb":
        small = lazy.project(
            'real::float as "real", positive, count::smallint as "count", "binary", '
            '''class::enum('a', 'b', 'c') as "class", cents, day::date as "day", note, "row"'''
        )
        made = fitted.transform(small)
        assert [str(one) for one in made.types] == [str(one) for one in small.types]
        assert "ENUM" in str(made.types[4])
        assert len(made.fetchall()) == len(NEW)
    elif engine == "dask":
        assert (got.dtypes == lazy.dtypes).all()
    else:
        assert [one.dataType for one in got.schema] == [one.dataType for one in lazy.schema]


def test_a_row_gets_the_same_cells_in_any_company(fitted):
    """Which is what partitions rely on; numbers spelled as texts had the decimals of the rows beside them."""
    whole = fitted.transform(NEW)
    assert pl.concat([fitted.transform(NEW[at : at + 7]) for at in range(0, 70, 7)]).equals(whole[:70])
    mixed = NEW.with_columns(cents=pl.when(pl.int_range(pl.len()) < 10).then(pl.lit("1.5")).otherwise("cents"))
    assert fitted.transform(mixed)["cents"][30:].equals(whole["cents"][30:])


@pytest.mark.more
@pytest.mark.parametrize("model", ["mixture", "vae"])
def test_latent_variables_are_inferred_from_the_row_alone(model, small_batches):
    table = TABLE.select("real", "positive", "class")
    imputer = make_imputer(model, epochs=1, hidden_size=4, random_state=0, precision="full").fit(table)
    assert_same(imputer.transform(table.lazy()).collect(), imputer.transform(table))


def test_rows_of_a_group_learn_from_the_rows_of_fit(small_batches):
    """A group that is cut by a batch gets the same cells: of other rows, only those of fit count."""
    rng = np.random.default_rng(0)
    person = np.repeat([f"p{k}" for k in range(50)], 6)
    level = np.repeat(rng.normal(size=50), 6) + 0.1 * rng.normal(size=300)
    table = pl.DataFrame({"person": person, "x": level, "y": rng.normal(size=300)})
    table = table.with_columns(x=pl.when(pl.Series(rng.random(300) < 0.8)).then("x"))
    imputer = make_imputer(groups="person", kinds={"person": "ignore"}, epochs=1, hidden_size=8, random_state=0)
    imputer.fit(table[:200])
    assert imputer.ensemble_.panel is not None
    assert_same(imputer.transform(table.lazy()).collect(), imputer.transform(table))


def test_a_shift_of_imputed_cells_goes_along(fitted):
    shifted = fitted.transform(NEW.lazy(), delta={"real": 1000.0}).collect()
    assert shifted.equals(fitted.transform(NEW, delta={"real": 1000.0}))
    with pytest.raises(TableError, match="nowhere"):
        fitted.transform(NEW.lazy(), delta={"nowhere": 1.0})


def test_types_that_list_their_classes_get_those_of_fit(fitted):
    narrow = NEW.filter(pl.col("class").is_null() | (pl.col("class") == "a"))
    narrow = narrow.with_columns(pl.col("class").cast(pl.Enum(["a"])))
    assert_same(fitted.transform(narrow.lazy()).collect(), fitted.transform(narrow))
    assert fitted.transform(narrow.lazy()).collect_schema()["class"] == pl.Enum(["a", "b", "c"])
    empty = NEW.with_columns(real=pl.lit(None))
    assert_same(fitted.transform(empty.lazy()).collect(), fitted.transform(empty))


@pytest.mark.more
def test_classes_that_dask_does_not_know_are_those_of_each_partition(plain):
    dd, frame = pytest.importorskip("dask.dataframe"), NEW.to_pandas().sort_values("class", ignore_index=True)
    lazy = dd.from_pandas(frame, npartitions=3, sort=False).astype({"class": "category"})
    assert not lazy["class"].cat.known
    got, expected = plain.transform(lazy).compute(), plain.transform(lazy.compute())
    assert set(got["class"].cat.categories) == {"a", "b", "c"}
    pd.testing.assert_frame_equal(got.astype({"class": str}), expected.astype({"class": str}), check_exact=True)


@pytest.mark.parametrize("engine", [*LOCAL, DASK])
def test_a_partition_without_rows_stays_one(engine, fitted, give):
    none = fitted.transform(give(engine, NEW[:0]))
    assert len(collect(none)) == 0
    assert list(none.columns if engine != "polars" else none.collect_schema()) == NEW.columns


# --- nothing before it is asked for ---


def test_polars_reads_nothing_until_it_is_asked(fitted):
    from polars.io.plugins import register_io_source

    reads = []

    def read(columns, predicate, n_rows, batch_size):
        reads.append(columns)
        yield NEW.select(columns or NEW.columns)

    lazy = fitted.transform(register_io_source(read, schema=NEW.schema))
    assert not reads
    assert lazy.collect().equals(fitted.transform(NEW))
    assert len(reads) == 1


def test_duckdb_reads_nothing_until_it_is_asked(fitted):
    duckdb, pa, reads = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow"), []
    table = NEW.to_arrow()

    class Source:
        def __arrow_c_stream__(self, requested_schema=None):
            def read():
                reads.append(1)
                yield from table.to_batches()

            return pa.RecordBatchReader.from_batches(table.schema, read()).__arrow_c_stream__(requested_schema)

    lazy = fitted.transform(duckdb.connect().from_arrow(Source()))
    assert not reads
    assert lazy.aggregate("count(real)").fetchall() == [(len(NEW),)]
    assert reads == [1]


@pytest.mark.more
def test_dask_and_spark_read_nothing_until_they_are_asked(plain, spark, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    marker = tmp_path / "read"
    frame = NEW.to_pandas()
    lazy = dd.from_map(partial(read_marking, table=frame, marker=marker), [0, 1], meta=frame.iloc[:0])
    made = plain.transform(lazy)
    assert not marker.exists()
    assert len(made.compute()) == 2 * len(NEW)
    assert marker.exists()
    marker.unlink()
    NEW.write_parquet(tmp_path / "table.parquet")
    source = spark.read.parquet(str(tmp_path / "table.parquet"))
    marked = source.mapInArrow(marking(marker), source.schema)
    made = plain.transform(marked)
    assert not marker.exists()
    assert made.toArrow().num_rows == len(NEW)
    assert marker.exists()


def read_marking(start: int, table: pd.DataFrame, marker: Path) -> pd.DataFrame:
    marker.touch()
    return table


def marking(marker: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function of batches that leaves a mark when it sees rows."""
    name = str(marker)

    def pass_on(some: Iterator[Any]) -> Iterator[Any]:
        for batch in some:
            if batch.num_rows:
                Path(name).touch()
            yield batch

    return pass_on


def test_a_later_fit_does_not_change_a_frame_that_was_made_before():
    imputer = Imputer("marginal", kinds=KINDS).fit(TABLE)
    lazy, expected = imputer.transform(NEW.lazy()), imputer.transform(NEW)
    imputer.set_params(estimate="median").fit(TABLE.with_columns(pl.col("real") + 100.0))
    assert lazy.collect().equals(expected)


# --- what workers get ---


def test_a_process_reads_the_imputer_that_was_sent_once(fitted, monkeypatch):
    loads, load = [], Imputer.load
    monkeypatch.setattr(lazy_filling, "_LOADED", {})
    monkeypatch.setattr(
        Imputer, "load", classmethod(lambda cls, *given, **more: (loads.append(1), load(*given, **more))[1])
    )
    sent = pickle.dumps(lazy_filling.FillRows(fitted, None, NEW[:0]))
    received = [pickle.loads(sent) for _ in range(3)]
    assert not loads  # a scheduler that only passes it on reads nothing
    for one in received:
        assert one(NEW).equals(fitted.transform(NEW))
    assert loads == [1]


def test_custom_likelihoods_are_sent_along(pareto):
    cloudpickle = pytest.importorskip("cloudpickle")
    table = pl.DataFrame({"a": np.random.default_rng(0).pareto(3.0, 60) + 1.0, "b": np.arange(60.0) / 8.0})
    imputer = Imputer("marginal", likelihoods={"a": pareto}).fit(table)
    fill = pickle.loads(cloudpickle.dumps(lazy_filling.FillRows(imputer, None, table[:0])))
    lacking = table.with_columns(a=pl.when(pl.int_range(60) > 3).then("a"))
    assert fill(lacking).equals(imputer.transform(lacking))


@pytest.mark.more
def test_a_dask_worker_killed_in_the_middle_changes_nothing(plain, tmp_path):
    distributed, dd = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    marker, file = tmp_path / "killed", tmp_path / "table.parquet"
    frame = NEW.to_pandas()
    frame.to_parquet(file)
    lazy = dd.from_map(read_or_die, [0, 350], file=str(file), marker=str(marker), meta=frame.iloc[:0])
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings, silence_logs=50) as cluster, distributed.Client(cluster):
        got = plain.transform(lazy).compute()
    assert marker.exists()
    assert_same(got, plain.transform(lazy.compute()))


def read_or_die(start: int, file: str, marker: str) -> pd.DataFrame:
    if start and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return pd.read_parquet(file).iloc[start : start + 350]


@pytest.mark.more
def test_a_spark_worker_killed_in_the_middle_changes_nothing(plain, give, tmp_path):
    marker = tmp_path / "killed"
    made = plain.transform(give("spark", NEW))
    got = made.mapInArrow(dying_once(marker), made.schema).toArrow()
    assert marker.exists()
    assert_same(got, plain.transform(give("spark", NEW).toArrow()))


def dying_once(marker: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function of batches that kills its worker once, after the first batch."""
    name = str(marker)

    def pass_on(some: Iterator[Any]) -> Iterator[Any]:
        for batch in some:
            yield batch
            if not Path(name).exists():
                Path(name).touch()
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


# --- what is refused, and said ---


@pytest.mark.parametrize("engine", LOCAL)
def test_errors_come_at_once_and_name_what_is_wrong(engine, fitted, give):
    with pytest.raises(NotFittedError):
        Imputer().transform(give(engine, NEW))
    with pytest.raises(TableError, match=r"Column 'count': got no such column among.*expected every column"):
        fitted.transform(give(engine, NEW.drop("count")))
    with pytest.warns(EvenlyWarning, match="more"):
        wide = fitted.transform(give(engine, NEW.select("row", pl.lit(1).alias("more"), pl.exclude("row"))))
    assert pl.DataFrame(collect(wide)).equals(fitted.transform(NEW))
    with pytest.raises(TableError, match=r"a lazy frame|Dataset|expected a table"):
        fitted.sample(give(engine, NEW))
    polite = Imputer("marginal", kinds=KINDS).fit(TABLE).set_output(transform="pandas")
    with pytest.raises(TableError, match="its output is a lazy frame too"):
        polite.transform(give(engine, NEW))


@pytest.mark.parametrize("engine", LOCAL)
def test_classes_and_numbers_that_fit_did_not_see_stay_as_they_are(engine, fitted, give, small_batches):
    odd = NEW.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("new")).otherwise("class").alias("class")
    )
    odd = odd.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit(np.inf)).otherwise("real").alias("real")
    )
    got = pl.DataFrame(collect(fitted.transform(give(engine, odd))))
    assert got["class"].to_list()[::5] == ["new"] * 140
    with pytest.warns(EvenlyWarning, match="not seen in fit"), pytest.warns(EvenlyWarning, match="100 cells infinite"):
        expected = fitted.transform(odd)
    assert got.equals(expected)


def test_a_strict_imputer_raises_its_error_where_the_engine_runs():
    imputer = Imputer("marginal", strict=True, kinds=KINDS | {"real": "real"}).fit(TABLE)
    odd = imputer.transform(NEW.with_columns(real=pl.lit(np.inf)).lazy())
    with pytest.raises((TableError, pl.exceptions.ComputeError), match="Column 'real': got infinite values"):
        odd.collect()


def test_an_engine_that_maps_no_functions_is_refused(fitted, monkeypatch):
    from evenly.engines.polars import Polars

    monkeypatch.setattr(Polars, "maps_rows", False)
    with pytest.raises(TableError, match=r"a frame of polars.*give the table to another engine"):
        fitted.transform(NEW.lazy())
    with pytest.raises(TableError, match=r"a frame of polars.*collect it"):
        Imputer("marginal").fit(NEW.lazy())


@pytest.mark.more
def test_ray_answers_no_queries_of_a_scaler(give):
    dataset = give("ray", NEW)
    with pytest.raises(TableError, match="scalers ask queries, which it does not answer"):
        LipschitzScaler().fit(dataset)


# --- fitting ---


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_that_fits_into_memory_is_fitted_as_a_whole(engine, give):
    def make() -> Imputer:
        return Imputer("marginal", kinds=KINDS, random_state=0)

    lazy = give(engine, TABLE)
    got, expected = make().fit(lazy), make().fit(collect(lazy))
    assert got.schema_ == expected.schema_
    assert got.ensemble_.n_rows == len(TABLE)
    assert got.transform(NEW).equals(expected.transform(NEW))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_larger_frame_a_random_sample_is_fitted(engine, give, monkeypatch):
    monkeypatch.setattr(lazy_filling, "MOST_SAMPLED", 300)
    seen = []

    def fit(seed: int) -> list[int]:
        imputer = Imputer("marginal", kinds=KINDS, random_state=seed)
        with pytest.warns(EvenlyWarning, match="a random sample of about 300 of 700 rows"):
            imputer.fit(give(engine, NEW))
        seen.append(imputer.ensemble_.n_rows)
        return imputer.baseline_

    first = fit(0)
    assert fit(0) == first
    assert fit(1) != first
    assert all(200 < n < 400 for n in seen)


def test_fit_transform_of_a_lazy_frame_is_lazy():
    day = datetime.date(2024, 1, 1)
    table = pl.DataFrame({"x": [1.0, None, 3.5, 7.25] * 10, "d": [day, day + datetime.timedelta(3), None, day] * 10})
    lazy = Imputer("marginal", random_state=0).fit_transform(table.lazy())
    assert lazy.collect().equals(Imputer("marginal", random_state=0).fit_transform(table))


def test_rules_are_followed_on_workers_and_said_to_be_unnamed():
    table = pd.DataFrame({"a": [1.0, 2.0, None, 4.0] * 10, "b": [3.0, 1.0, 2.0, 5.0] * 10})
    table["total"] = table["a"] + table["b"]
    gaps = table.assign(total=table["total"].where(table.index % 3 != 0))
    imputer = Imputer("marginal", rules=["total = a + b"]).fit(gaps)
    with pytest.warns(EvenlyWarning, match="do not name rows"):
        found = imputer.transform(pl.from_pandas(gaps).lazy())
    full = found.collect()
    np.testing.assert_allclose(full["total"].to_numpy(), (full["a"] + full["b"]).to_numpy())
    pd.testing.assert_frame_equal(full.to_pandas(), imputer.transform(gaps), check_dtype=False)
