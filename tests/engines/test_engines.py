"""The same scaler on every engine: the same schema, scales and features as in memory, and never a row collected.

The reference is pandas in memory; each engine is the real one (Spark in local mode, with a JVM).
"""

from __future__ import annotations

import importlib.util
import os
import signal
import warnings
from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import betaincinv

from evenly import (
    Column,
    EvenlyWarning,
    LipschitzScaler,
    Schema,
    Support,
    TableError,
    define_likelihood,
    infer_schema,
    scale_files,
)
from evenly.engines import Engine, base, partitions, profiling, queries
from evenly.likelihoods.continuous import GAMMA
from evenly.scaling.tricks import _PRIME, LEVEL_STEPS, MOST_NOISE, NOISE_A, NOISE_B, Feature, keyed_noise

# PySpark 4.1 looks at the version of pandas even where it does not use it; goes when it supports pandas 3.
# Ibis 12 asks DuckDB for tables by an old name; goes when it uses the new one.
pytestmark = [
    # Spark starts its JVM by a fork; JAX, which other tests have loaded, warns of every one.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
]

DASK, SPARK = (pytest.param(name, marks=pytest.mark.more) for name in ("dask", "pyspark"))
ENGINES = ["polars", "duckdb", DASK, SPARK, "ibis"]
QUICK = ["polars", "duckdb", DASK]
METHODS = ["lip-gamma", "std-none", "max-none", "iqr-none"]


@cache
def table() -> pd.DataFrame:
    """Every kind of column, with missing cells, markers, zeros and an offset of 1e9."""
    rng, n = np.random.default_rng(0), 300
    frame = pd.DataFrame(
        {
            "id": rng.permutation(n) + 10_000,
            "real": rng.normal(-3.0, 2.0, n),
            "offset": rng.normal(1e9, 2.0, n),
            "zeros": np.where(rng.random(n) < 0.1, 0.0, rng.gamma(2.0, 3.0, n)),
            "count": rng.poisson(4.0, n),
            "wide": rng.poisson(90_000.0, n),
            "amount": rng.integers(0, 50_000, n),
            "yes": rng.random(n) < 0.3,
            "color": rng.choice(["red", "blue", 'a,"é😀'], n),
            "code": rng.choice([1, 2, 7], n, p=[0.5, 0.1, 0.4]),
            "digits": rng.integers(1, 900, n).astype(str),
            "when": pd.date_range("2020-01-01", periods=n),
            "note": [f"note {k} of many" for k in range(n)],
        }
    )
    frame.loc[rng.random(n) < 0.1, "real"] = np.nan
    frame["color"] = frame["color"].where(rng.random(n) > 0.1)
    frame.loc[3, "color"] = "?"
    return frame


@pytest.fixture(scope="session")
def lazily(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Give a pandas table to an engine; a test of an engine that is not there is skipped."""

    def give(engine: str, frame: pd.DataFrame) -> Any:
        if engine == "polars":
            return pl.from_pandas(frame).lazy()
        if engine == "duckdb":
            return pytest.importorskip("duckdb").connect().from_arrow(pl.from_pandas(frame).to_arrow())
        if engine == "dask":
            return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
        path = tmp_path_factory.mktemp("tables") / "table.parquet"
        pl.from_pandas(frame).with_columns(pl.selectors.datetime().dt.cast_time_unit("us")).write_parquet(path)
        if engine == "pyspark":
            return request.getfixturevalue("spark").read.parquet(str(path))
        pytest.importorskip("ibis")
        if importlib.util.find_spec("pyarrow_hotfix") is None:
            pytest.skip("Ibis needs pyarrow_hotfix: pip install 'ibis-framework[duckdb]'")
        import ibis

        return ibis.duckdb.connect().read_parquet(path)

    return give


@pytest.fixture(scope="session")
def fitted(lazily: Callable[..., Any]) -> Callable[[str, str], LipschitzScaler]:
    """A scaler fitted by an engine ("pandas": in memory), once for all tests."""

    @cache
    def fit(engine: str, method: str) -> LipschitzScaler:
        frame = table() if engine == "pandas" else lazily(engine, table())
        return quiet(LipschitzScaler(method, passthrough="keep", random_state=0).fit, frame)

    return fit


def quiet(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function without its warnings of columns that are passed through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        return function(*arguments, **settings)


def numbers(frame: Any, key: str = "id") -> pd.DataFrame:
    """Collect a lazy frame: engines keep no order of rows."""
    collected = nw.from_native(frame).collect() if isinstance(nw.from_native(frame), nw.LazyFrame) else frame
    native = nw.from_native(collected).to_pandas()
    return native.sort_values(key).reset_index(drop=True) if key in native else native


def assert_same_features(got: Any, expected: pd.DataFrame) -> None:
    got, expected = numbers(got), numbers(expected)
    assert list(got.columns) == list(expected.columns)
    for name in expected.columns:
        if expected[name].dtype.kind == "f":
            np.testing.assert_allclose(
                got[name].to_numpy(np.float64, na_value=np.nan), expected[name], rtol=1e-9, atol=1e-12, err_msg=name
            )
        else:  # a column that is passed through
            assert got[name].astype(expected[name].dtype).equals(expected[name]), name


# --- fitting ---


@pytest.mark.parametrize("engine", ENGINES)
def test_the_schema_is_that_of_pandas(engine, fitted):
    assert fitted(engine, "lip-gamma").schema_ == fitted("pandas", "lip-gamma").schema_


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_scales_are_those_of_pandas(engine, method, fitted):
    """Quartiles too: exact on all engines, and on Dask as long as a partition has at most 1000 rows."""
    got, expected = fitted(engine, method), fitted("pandas", method)
    assert list(got.get_feature_names_out()) == list(expected.get_feature_names_out())
    assert list(got.summary_["outcome"]) == list(expected.summary_["outcome"])
    np.testing.assert_allclose(got.summary_["scale"], expected.summary_["scale"], rtol=1e-9)


def test_dasks_quartiles_keep_their_promise():
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(-4.0, 1.0, 20_000), rng.standard_t(2, 7_000), rng.normal(9.0, 0.1, 12_000)])
    lazy = dd.from_pandas(pd.DataFrame({"x": x}), npartitions=5)
    (got,) = (one.statistics for one in LipschitzScaler("iqr-none").fit(lazy).columns_)
    for level, value in zip((0.25, 0.75), got.quartiles, strict=True):
        low, high = np.quantile(x, [level - 1.0 / partitions.KEPT_RANKS, level + 1.0 / partitions.KEPT_RANKS])
        assert low <= value <= high


@pytest.mark.parametrize("method", ["lip-gamma", "iqr-none"])
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine is not SPARK])
def test_fitting_asks_at_most_three_queries_and_collects_no_rows(engine, method, lazily, monkeypatch):
    """Spark's queries, which are slow to plan, are counted below, with their scans."""
    shapes, partitioned = [], []
    collect, ask_partitions = Engine.collect, queries.ask_partitions

    def collecting(engine, frame):
        answer = collect(engine, frame)
        shapes.append(answer.shape)
        return answer

    monkeypatch.setattr(Engine, "collect", collecting)
    monkeypatch.setattr(queries, "ask_partitions", lambda *asked: (partitioned.append(1), ask_partitions(*asked))[1])
    quiet(LipschitzScaler(method, random_state=0).fit, lazily(engine, table().head(60)))
    assert len(shapes) + len(partitioned) <= 3
    assert all(rows == 1 or columns in (3, 4) for rows, columns in shapes)  # aggregates, or (column, cell, count)


def test_polars_reads_its_source_at_most_three_times():
    from polars.io.plugins import register_io_source

    frame, reads = pl.from_pandas(table()), []

    def read(columns, predicate, n_rows, batch_size):
        reads.append(columns)
        part = frame.select(columns or frame.columns)
        yield part if predicate is None else part.filter(predicate)

    quiet(LipschitzScaler("iqr-none").fit, register_io_source(read, schema=frame.schema))
    assert len(reads) <= 3


@pytest.mark.more
@pytest.mark.parametrize("method", ["lip-gamma", "iqr-none"])
def test_dask_reads_each_partition_at_most_three_times(method):
    dd = pytest.importorskip("dask.dataframe")
    import dask

    frame, reads = table(), []

    def read(start):
        reads.append(start)
        return frame.iloc[start : start + 100]

    lazy = dd.from_map(read, [0, 100, 200], meta=frame.iloc[:0])
    with dask.config.set(scheduler="synchronous"):
        quiet(LipschitzScaler(method).fit, lazy)
    assert max(reads.count(start) for start in (0, 100, 200)) <= 3


def plan(frame: Any) -> str:
    if hasattr(frame, "_jdf"):
        return frame._jdf.queryExecution().executedPlan().toString()
    return frame.explain()


@pytest.mark.parametrize(
    ("engine", "scan"), [("duckdb", "SCAN"), pytest.param("pyspark", "FileScan", marks=pytest.mark.more)]
)
def test_each_query_scans_the_table_once(engine, scan, lazily, monkeypatch):
    plans = []
    collect = Engine.collect

    def collecting(engine, frame):
        plans.append(plan(nw.to_native(frame)))
        return collect(engine, frame)

    monkeypatch.setattr(Engine, "collect", collecting)
    quiet(LipschitzScaler("lip-gamma").fit, lazily(engine, table()))
    assert len(plans) == 3
    assert [text.count(scan) for text in plans] == [1, 1, 1]


@pytest.mark.parametrize("engine", QUICK)
def test_settings_and_hard_columns_are_as_in_memory(engine, lazily):
    n = 200
    rng = np.random.default_rng(2)
    hard = pd.DataFrame(
        {
            "huge": rng.lognormal(0.0, 1.0, n) * 1e300,
            "tiny": rng.normal(0.0, 1e-300, n),
            "constant": 3.5,
            "nothing": np.full(n, np.nan),
            "marked": np.where(rng.random(n) < 0.2, -999.0, rng.normal(0.5, 1.0, n)),
            "halves": rng.choice([0.5, 1.5, 2.5], n),
            "group": rng.choice(["1", "2", "10"], n),
            "flag": rng.choice(["yes", "no", "NA"], n),
            "number_id": rng.integers(0, 5_000, n),
            "row": np.arange(n) + 2_000,
            "left": rng.normal(size=n),
        }
    )
    settings = {
        "method": "lip-gamma",
        "kinds": {"halves": "ordinal", "group": "categorical", "left": "ignore"},
        "missing": {"marked": [-999]},
        "likelihoods": {"huge": "gamma"},
    }
    expected = quiet(LipschitzScaler(**settings).fit, hard)
    got = quiet(LipschitzScaler(**settings).fit, lazily(engine, hard))
    assert got.schema_ == expected.schema_
    assert list(got.summary_["outcome"]) == list(expected.summary_["outcome"])
    np.testing.assert_allclose(got.summary_["scale"], expected.summary_["scale"], rtol=1e-9)


@pytest.mark.parametrize("engine", QUICK)
def test_numbers_that_an_engine_counted_spread_as_their_cells_do_not_as_their_values(engine, lazily):
    """Each value occurs about twice; with one copy of each, the variance would be that of a count."""
    often = pd.DataFrame({"x": np.random.default_rng(0).integers(0, 990, 2_000)})
    expected = LipschitzScaler().fit(often).schema_
    assert expected["x"].kind == "positive"
    assert LipschitzScaler().fit(lazily(engine, often)).schema_ == expected


@pytest.mark.parametrize("engine", QUICK)
def test_many_texts_are_counted_without_listing_them(engine, lazily, monkeypatch):
    monkeypatch.setattr(profiling, "MOST_TEXTS", 50)
    many = pd.DataFrame(
        {
            "prose": [f"a sentence, number {k}, of some length" for k in range(300)],
            "name": [f"user{k}" for k in range(300)],
            "day": [f"20{k // 28:02d}-01-{k % 28 + 1:02d}" for k in range(300)],
            "few": [f"class {k % 120}" for k in range(300)],
            "x": np.random.default_rng(0).normal(size=300),
        }
    )
    expected = quiet(LipschitzScaler().fit, many)
    assert quiet(LipschitzScaler().fit, lazily(engine, many)).schema_ == expected.schema_
    assert {column.kind for column in expected.schema_.columns} == {"ignore", "real"}
    with pytest.raises(TableError, match=r"Column 'few': got 120 distinct texts, but a lazy frame expects at most 50"):
        LipschitzScaler(kinds={"few": "categorical"}).fit(lazily(engine, many))
    spelled = pd.DataFrame({"x": [f"{k}.5" for k in range(100)]})
    with pytest.raises(TableError, match=r"100 distinct texts that spell numbers.*cast it to numbers on its engine"):
        LipschitzScaler().fit(lazily(engine, spelled))


def test_texts_of_all_partitions_are_counted_together(monkeypatch):
    """Where Dask is asked for quartiles, partition by partition: of the first one alone, all texts would be dates."""
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(profiling, "MOST_TEXTS", 50)
    days = [f"20{k // 28:02d}-01-{k % 28 + 1:02d}" for k in range(100)]
    many = pd.DataFrame(
        {"said": days + [f"user{k}" for k in range(200)], "x": np.random.default_rng(0).normal(size=300)}
    )
    got = quiet(LipschitzScaler("iqr-none").fit, dd.from_pandas(many, npartitions=3)).schema_
    assert got == quiet(LipschitzScaler("iqr-none").fit, many).schema_
    assert got["said"].note == "identifier: nearly every cell differs"


@pytest.mark.parametrize("engine", QUICK)
def test_a_count_of_too_many_values_is_refused_with_a_remedy(engine, lazily, monkeypatch):
    monkeypatch.setattr(profiling, "MOST_VALUES", 100)
    frame = pd.DataFrame({"n": np.random.default_rng(0).integers(0, 10**6, 500)})
    with pytest.raises(TableError, match=r"Column 'n': got more than 100 distinct numbers.*declare it `positive`"):
        LipschitzScaler(kinds={"n": "count"}).fit(lazily(engine, frame))


@pytest.mark.parametrize("engine", QUICK)
def test_values_beyond_the_support_of_a_likelihood_of_ones_own_are_moved_into_it(engine, lazily):
    """A power of a uniform number, between 0 and 1: minus its logarithm is exponential."""
    pytest.importorskip("jax")
    power = define_likelihood(
        "power",
        support=Support(0.0, 1.0),
        statistics=lambda x, xp: (xp.log(x),),
        log_base=lambda x, xp: -xp.log(x),
        log_partition=lambda natural, xp: -xp.log(natural[..., 0]),
        factors=lambda scale, xp: (scale,),
        scale_data=lambda x, scale, xp: x**scale,
    )
    seen = pd.DataFrame({"x": np.random.default_rng(0).random(60) ** 2})
    scaler = LipschitzScaler(likelihoods={"x": power}).fit(seen)
    new = pd.DataFrame({"x": [0.25, 1.5, 0.0, 0.75, -0.5]})
    inside = new["x"].where(new["x"] < 1.0, seen["x"].max()).where(new["x"] > 0.0, seen["x"].min())
    got = numbers(scaler.transform(lazily(engine, new)))["x"]
    np.testing.assert_allclose(got, scaler.transform(inside.to_frame())["x"], rtol=1e-12)
    got = numbers(scaler.set_params(strict=True).transform(lazily(engine, new)))["x"]
    assert got.isna().tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("engine", QUICK)
def test_numbers_of_too_many_classes_are_refused_and_not_listed(engine, lazily):
    halves = pd.DataFrame({"x": np.arange(3000) + 0.5})
    with pytest.raises(TableError, match=r"Column 'x': got 3000 distinct numbers, but expected at most 1000 classes"):
        LipschitzScaler(kinds={"x": "categorical"}).fit(lazily(engine, halves))


@pytest.mark.parametrize("engine", QUICK)
def test_a_schema_of_ones_own_is_followed(engine, lazily):
    schema = Schema(
        columns=[
            Column(name="count", kind="positive", shift=1.0),
            Column(name="color", kind="categorical"),
            Column(name="real", kind="real", lower=-20.0, upper=20.0),
        ]
    )
    some = table()[["count", "color", "real"]]
    expected = LipschitzScaler(schema=schema).fit(some)
    got = LipschitzScaler(schema=schema).fit(lazily(engine, some))
    assert got.schema_ == expected.schema_
    np.testing.assert_allclose(got.summary_["scale"], expected.summary_["scale"], rtol=1e-9)
    schema["real"].upper = 0.0
    with pytest.raises(TableError, match=r"Column 'real'.*the schema declares -20.0 to 0.0"):
        LipschitzScaler(schema=schema).fit(lazily(engine, some))


# --- transforming ---


@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
@pytest.mark.parametrize("engine", ENGINES)
def test_features_are_those_of_pandas_and_stay_on_their_engine(engine, method, fitted, lazily):
    """The noise of the Gamma trick too, by a key; columns may come in any order."""
    scaler = fitted("pandas", method)
    lazy = lazily(engine, table()[table().columns[::-1]])
    scaled = scaler.transform(lazy, key="id")
    assert type(scaled) is type(lazy)
    assert_same_features(scaled, scaler.transform(table(), key="id"))


@pytest.mark.parametrize("engine", QUICK)
def test_an_engines_own_scaler_gives_the_features_of_pandas(engine, fitted, lazily):
    got = fitted(engine, "lip-gamma").transform(lazily(engine, table()), key="id")
    assert_same_features(got, fitted("pandas", "lip-gamma").transform(table(), key="id"))


@pytest.mark.parametrize("engine", ENGINES)
def test_negative_keys_give_the_same_noise_everywhere(engine, lazily):
    """Remainders of negative numbers have another sign on Spark."""
    keyed = pd.DataFrame(
        {"key": np.arange(-20, 20) * 10**9, "n": [0, 3, 1, 2, 7] * 8, "x": [0.5, -1.5, 2.0, 0.25] * 10}
    )
    scaler = LipschitzScaler(kinds={"key": "ignore", "n": "count"}, passthrough="keep", random_state=0).fit(keyed)
    got = numbers(scaler.transform(lazily(engine, keyed), key="key"), key="key")
    np.testing.assert_allclose(got["n"], scaler.transform(keyed, key="key")["n"], rtol=1e-9)


def unseen_rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table to fit, and rows with values, classes and texts that it does not have."""
    seen = pd.DataFrame(
        {
            "id": range(40),
            "positive": [1.5, 2.5, 4.0, 8.5] * 10,
            "zeros": [0.0, 2.5, 4.0, 8.5] * 10,
            "count": [1, 7, 3, 2] * 10,
            "bounded": [1.5, -2.5, 4.0, 8.5] * 10,
            "spelled": ["1.5", "2.5", "-4.0", "?"] * 10,
            "class": ["a", "b", "c", "b"] * 10,
            "yes": ["n", "y", "y", "y"] * 10,
            "flag": [True, False, False, False] * 10,
            "code": [1, 2, 7, 7] * 10,
        }
    )
    new = pd.DataFrame(
        {
            "id": range(8),
            "positive": [1.5, 0.0, -1.0, np.inf, np.nan, 1e-9, 9.0, -np.inf],
            "zeros": [0.0, -0.5, -3.0, np.inf, np.nan, 1e-9, 9.0, -np.inf],
            "count": [1.0, 2.5, -1.0, np.inf, np.nan, 0.4, 3.5, -np.inf],
            "bounded": [1.5, -50.0, 70.0, np.inf, np.nan, 0.4, 3.5, -np.inf],
            "spelled": ["1.5", "abc", " 7 ", "?", None, "", "01", "-999"],
            "class": ["a", "new", None, "?", " NA ", "c", "b", "x" * 100],
            "yes": ["n", "new", None, "?", " NA ", "y", "n", "Y"],
            "flag": ["True", "maybe", None, "?", "", "False", "true", "1"],
            "code": [1.0, 2.5, np.nan, 7.0, 3.0, np.inf, -1.0, 2.0],
        }
    )
    return seen, new


@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_fit_did_not_see_is_treated_as_in_memory(engine, method, lazily):
    """Moved to where a density is, or missing, or the code of an unseen class; silently, as nothing is computed."""
    seen, new = unseen_rows()
    schema = infer_schema(seen, bounds={"bounded": (-20.0, 20.0)}, kinds={"id": "ignore", "count": "count"})
    scaler = LipschitzScaler(method, schema=schema, passthrough="keep", random_state=0).fit(seen)
    expected = quiet(scaler.transform, new, key="id")
    assert expected.isna().sum()[:5].tolist() == [0, 3, 3, 3, 3]
    assert_same_features(scaler.transform(lazily(engine, new), key="id"), expected)


@pytest.mark.parametrize("engine", QUICK)
def test_what_a_strict_scaler_refuses_in_memory_is_missing_in_a_lazy_frame(engine, lazily):
    seen, new = unseen_rows()
    kinds = {"id": "ignore", "count": "count"}
    settings = {"strict": True, "handle_unknown": "error", "passthrough": "keep"}
    scaler = LipschitzScaler("lip-bern", kinds=kinds, **settings).fit(seen)
    got = numbers(scaler.transform(lazily(engine, new)))
    assert got["positive"].isna().tolist() == [False, True, True, True, True, False, False, True]
    assert got["count"].isna().tolist() == [False, True, True, True, True, True, True, True]
    assert got["class=a"].isna().tolist() == [False, True, True, True, True, False, False, True]


@pytest.mark.parametrize("engine", QUICK)
def test_dates_where_fit_saw_numbers_or_classes_are_treated_as_in_memory(engine, lazily):
    seen = pd.DataFrame({"x": [0.5, -2.0, 1.5, 4.0] * 9, "c": ["a", "b", "c", "c"] * 9})
    new = pd.DataFrame({"x": pd.date_range("2024", periods=3), "c": pd.to_datetime(["2024-01-01", None, "2024-01-03"])})
    scaler = LipschitzScaler("lip-bern").fit(seen)
    expected = quiet(scaler.transform, new)
    assert expected["x"].isna().all()
    assert expected["c=a"].fillna(9.0).tolist() == [0.0, 9.0, 0.0]
    assert_same_features(scaler.transform(lazily(engine, new)), expected)


@pytest.mark.parametrize("engine", QUICK)
def test_columns_that_are_no_variables_are_dropped_unless_kept(engine, lazily):
    frame = table()
    dropping = quiet(LipschitzScaler("lip-bern", random_state=0).fit, lazily(engine, frame))
    keeping = quiet(LipschitzScaler("lip-bern", passthrough="keep", random_state=0).fit, lazily(engine, frame))
    dropped, kept = (numbers(one.transform(lazily(engine, frame))) for one in (dropping, keeping))
    assert list(dropped.columns) == list(dropping.get_feature_names_out())
    assert set(kept.columns) - set(dropped.columns) == {"id", "when", "note"}
    only = lazily(engine, frame[["when", "note"]])
    scaler = quiet(LipschitzScaler("lip-bern").fit, only)
    with pytest.raises(TableError, match="got no column with a variable in it"):
        scaler.transform(only)


@pytest.mark.parametrize("engine", QUICK)
def test_markers_that_spell_numbers_are_missing_in_columns_of_texts(engine, lazily):
    """As in memory: a text column may hold numbers, with -999 where a cell is missing."""
    some = pd.DataFrame(
        {"id": range(30), "x": ["1.5", "-999", "2.5", " -999 ", "?"] * 6, "g": ["1", "2", "-999", "1.0", "2"] * 6}
    )
    kinds = {"id": "ignore", "x": "real", "g": "categorical"}
    scaler = LipschitzScaler("lip-bern", kinds=kinds, missing=[-999], passthrough="keep").fit(some)
    expected = scaler.transform(some)
    assert expected["x"].isna().sum() == 18
    assert expected["g=1"].isna().sum() == 6
    assert_same_features(scaler.transform(lazily(engine, some)), expected)


@pytest.mark.parametrize("engine", QUICK)
def test_extra_columns_are_left_out_and_said_and_absent_ones_are_errors(engine, lazily):
    seen = pd.DataFrame({"a": [0.5, -2.0, 3.5], "b": [1.5, -2.5, 0.0]})
    scaler = LipschitzScaler("std-none").fit(seen)
    with pytest.warns(EvenlyWarning, match="columns that were not there in fit are left out: \\['c'\\]"):
        got = scaler.transform(lazily(engine, seen.assign(c=1)))
    assert list(numbers(got).columns) == ["a", "b"]
    with pytest.raises(TableError, match="Column 'b': got no such column"):
        scaler.transform(lazily(engine, seen[["a"]]))


def test_drawn_noise_on_a_lazy_frame_needs_a_key():
    lazy = pl.LazyFrame({"n": [0, 1, 5, 2] * 9, "x": [0.5, 1.5, -2.0, 3.0] * 9, "t": ["a", "b"] * 18})
    scaler = LipschitzScaler(noise="drawn", random_state=0).fit(lazy)
    with pytest.raises(TableError, match=r'has no row numbers.*transform\(frame, key="id"\).*lip-bern'):
        scaler.transform(lazy)
    with pytest.raises(TableError, match="Column 'x': got a key of floats, but expected whole numbers"):
        scaler.transform(lazy, key="x")
    with pytest.raises(TableError, match="Column 'id': got no such column"):
        scaler.transform(lazy, key="id")
    with pytest.raises(TableError, match="Column 't': got a key of texts"):
        scaler.transform(lazy.collect(), key="t")


def test_a_key_beside_the_fitted_columns_is_used_and_left_out_silently():
    frame = pl.DataFrame({"n": [0, 1, 1, 2] * 9, "x": [0.5, 1.5, -2.0, 3.0] * 9})
    scaler = LipschitzScaler(random_state=0).fit(frame)
    keyed = frame.with_columns(key=pl.Series(range(100, 136)))
    got = scaler.transform(keyed.lazy(), key="key").collect()
    assert got.columns == ["n", "x"]
    np.testing.assert_allclose(got, scaler.transform(keyed, key="key"), rtol=1e-12)
    np.testing.assert_allclose(got[::-1], scaler.transform(keyed[::-1].lazy(), key="key").collect(), rtol=0.0)
    assert (got["n"] != scaler.transform(frame)["n"]).any()


def test_keyed_noise_is_the_beta_and_neighbours_and_features_are_independent():
    first, second = Feature(0, "a", GAMMA, "gamma"), Feature(1, "b", GAMMA, "gamma")
    for keys in (np.arange(200_000), np.arange(200_000) * 1_000 + 2**60, -np.arange(200_000)):
        noise, other = keyed_noise(3, first, keys), keyed_noise(3, second, keys)
        assert stats.kstest(noise, stats.beta(NOISE_A, NOISE_B).cdf).pvalue > 1e-3
        assert noise.min() > 0.0
        assert noise.max() <= MOST_NOISE
        pairs = [(noise, other), (noise[1:], noise[:-1]), (noise, keyed_noise(4, first, keys))]
        for a, b in pairs:
            levels = [stats.rankdata(one) / (len(one) + 1) for one in (a, b)]
            grid = np.histogram2d(*levels, bins=32)[0]
            assert stats.chisquare(grid.ravel()).pvalue > 1e-4
            assert abs(np.corrcoef(a, b)[0, 1]) < 5.0 / np.sqrt(len(a))


def test_keyed_noise_follows_the_quantiles_of_the_beta():
    mixed = np.unique(np.geomspace(1, _PRIME - 1, 5_000).astype(np.int64))
    mixed = np.concatenate([mixed, _PRIME - 1 - mixed])
    exact = np.minimum(betaincinv(NOISE_A, NOISE_B, (mixed + 0.5) / _PRIME), MOST_NOISE)
    noise = reduce(lambda given, step: step(given), LEVEL_STEPS, mixed)
    np.testing.assert_allclose(noise, exact, atol=2e-6)


# --- errors ---


@pytest.mark.parametrize("engine", QUICK)
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}).iloc[:0], "0 rows"),
        (pd.DataFrame({"a": [1.5, np.inf, -np.inf]}), "Column 'a': got 2 infinite values"),
        (pd.DataFrame({"a": [-1.5, 2.0], "b": [1.0, 2.0]}), "Column 'a': got minimum -1.5, but gamma expects"),
    ],
)
def test_errors_are_those_of_a_table_in_memory(engine, frame, message, lazily):
    settings = {"likelihoods": {"a": "gamma"}} if "b" in frame else {}
    with pytest.raises(TableError, match=message):
        LipschitzScaler(**settings).fit(frame)
    with pytest.raises(TableError, match=message):
        LipschitzScaler(**settings).fit(lazily(engine, frame))


def test_names_that_an_engine_cannot_tell_apart_are_refused():
    duckdb, dd = pytest.importorskip("duckdb"), pytest.importorskip("dask.dataframe")
    with pytest.raises(TableError, match="Column 'a': got the name more than once"):
        LipschitzScaler().fit(dd.from_pandas(pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), npartitions=1))
    with pytest.raises(TableError, match="Column '7': got the name 7, but a lazy frame expects texts"):
        LipschitzScaler().fit(dd.from_pandas(pd.DataFrame({7: [1.0, 2.0]}), npartitions=1))
    twice = duckdb.connect().sql("select 1.5 as a, 2.5 as a")
    if len(set(twice.columns)) < 2:
        with pytest.raises(TableError, match="Column 'a': got the name more than once"):
            LipschitzScaler().fit(twice)


def test_a_lazy_frame_is_refused_where_it_cannot_stay_lazy():
    lazy = pl.LazyFrame({"x": [0.5, 1.5, -2.0]})
    scaler = LipschitzScaler("std-none").fit(lazy)
    with pytest.raises(TableError, match="fit each part and add the scalers"):
        scaler.partial_fit(lazy)
    with pytest.raises(TableError, match=r"a lazy frame.*collect it first"):
        scaler.inverse_transform(lazy)
    with pytest.raises(TableError, match="its output is a lazy frame too"):
        scaler.set_output(transform="pandas").transform(lazy)


@pytest.mark.more
def test_spark_scales_files_to_files(spark, tmp_path: Path):
    """In the active session; the other engines are tested with the bad input of `scale_files`."""
    (tmp_path / "data").mkdir()
    some = pl.from_pandas(table()[["id", "real", "count", "color"]])
    for place, name in enumerate(["a.parquet", "b [1] {c}.parquet"]):
        some[150 * place : 150 * place + 150].write_parquet(tmp_path / "data" / name)
    scaler = LipschitzScaler("lip-none", kinds={"id": "ignore"}, passthrough="keep")
    scale_files(tmp_path / "data", tmp_path / "out", scaler, engine="spark")
    assert_same_features(pl.read_parquet(tmp_path / "out"), scaler.transform(some).to_pandas())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def test_a_scaler_fitted_on_an_engine_is_saved_and_used_in_memory(fitted, tmp_path: Path):
    scaler = fitted("duckdb", "lip-gamma")
    scaler.save(tmp_path)
    again = LipschitzScaler.load(tmp_path)
    assert_same_features(again.transform(table(), key="id"), scaler.transform(table(), key="id"))
    restored = numbers(again.inverse_transform(again.transform(table())))
    expected = numbers(table())
    assert restored["count"].tolist() == expected["count"].tolist()
    assert restored["color"].dropna().tolist() == expected["color"].replace("?", None).dropna().tolist()


# --- a worker lost ---


@pytest.mark.more
def test_a_dask_worker_killed_during_fit_changes_nothing(tmp_path, fitted):
    """The first partition's task kills its own process, once: the cluster starts another and reads it again."""
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    marker, parquet = tmp_path / "killed", tmp_path / "table.parquet"
    table().to_parquet(parquet)
    lazy = dd.from_map(read_or_die, [0, 100, 200], path=str(parquet), marker=str(marker), meta=table().iloc[:0])
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**settings, silence_logs=50) as cluster,
        distributed.Client(cluster),
    ):
        got = quiet(LipschitzScaler("lip-gamma", random_state=0).fit, lazy)
    assert marker.exists()
    expected = fitted("pandas", "lip-gamma")
    assert got.schema_ == expected.schema_
    np.testing.assert_allclose(got.summary_["scale"], expected.summary_["scale"], rtol=1e-9)


def read_or_die(start: int, path: str, marker: str) -> pd.DataFrame:
    if start == 0 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return pd.read_parquet(path).iloc[start : start + 100]


# --- an engine of one's own ---


class Wrapped:
    """A frame of an engine that Narwhals does not know: it holds one of Polars."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self.frame = frame


@pytest.fixture
def toy_engine(monkeypatch: pytest.MonkeyPatch) -> type[Engine]:
    """One class, which registers itself, and no other change."""
    monkeypatch.setattr(base, "ENGINES", dict(base.ENGINES))

    class Toy(Engine):
        name = "toy"

        @classmethod
        def recognizes(cls, native: Any) -> bool:
            return isinstance(native, Wrapped)

        def labels(self, native: Any) -> list[Any]:
            return native.frame.collect_schema().names()

        def view(self, native: Any) -> nw.LazyFrame[Any]:
            return nw.from_native(native.frame)

        def unwrap(self, frame: nw.LazyFrame[Any]) -> Any:
            return Wrapped(nw.to_native(frame))

    return Toy


@pytest.mark.usefixtures("toy_engine")
@pytest.mark.parametrize("method", ["lip-gamma", "iqr-none"])
def test_a_new_engine_is_one_class(method, fitted, lazily):
    """Fit and transform run on it with the defaults of `Engine`, and the answers are those of pandas."""
    wrapped, expected = Wrapped(lazily("polars", table())), fitted("pandas", method)
    got = quiet(LipschitzScaler(method, passthrough="keep", random_state=0).fit, wrapped)
    assert got.schema_ == expected.schema_
    np.testing.assert_allclose(got.summary_["scale"], expected.summary_["scale"], rtol=1e-9)
    scaled = got.transform(wrapped, key="id")
    assert isinstance(scaled, Wrapped)
    assert_same_features(scaled.frame, expected.transform(table(), key="id"))


def test_a_frame_that_no_engine_recognizes_is_no_lazy_frame():
    assert base.open_lazy(Wrapped(pl.LazyFrame({"x": [1.0]}))) is None


def test_an_engine_that_leaves_out_what_it_must_say_cannot_be_used(monkeypatch):
    monkeypatch.setattr(base, "ENGINES", dict(base.ENGINES))

    class Unfinished(Engine):
        name = "unfinished"

    with pytest.raises(TypeError, match="recognizes"):
        base.ENGINES["unfinished"]()
