"""Tables as people have them: a clear error or a named outcome for each, never a NaN or an error from inside NumPy."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest

from evenly import EvenlyWarning, LipschitzScaler, TableError
from evenly.scaling.methods import METHODS

N = 60
RNG = np.random.default_rng(0)
BASE = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.lognormal(size=N)})


def with_column(values: object) -> pd.DataFrame:
    return BASE.assign(c=values)


# What the outcome of column c is, under lip-none (continuous) or lip-gamma.
OUTCOMES = {
    "constant": (with_column(3.0), "constant"),
    "constant text": (with_column("x"), "constant"),
    "all zero": (with_column(0.0), "constant"),
    "all zero, whole": (with_column(0), "constant"),
    "all missing": (with_column(np.nan), "no_data"),
    "all missing text": (with_column(pd.Series([None] * N, dtype=object)), "no_data"),
    "1e300": (with_column(RNG.normal(size=N) * 1e300), "reached"),
    "1e300, positive": (with_column(RNG.random(N) * 1e300), "reached"),
    "1e-300": (with_column(RNG.random(N) * 1e-300), "reached"),
    "the largest numbers": (with_column(RNG.choice([-1.7e308, 0.5, 1.7e308], N)), "reached"),
    "1e-300 to 1e300": (with_column(10.0 ** RNG.uniform(-300, 300, N)), "reached"),
    # Positive, so log-normal: the power that would spread its logs leaves the range of numbers. As `real` it is fine.
    "offset 1e15": (with_column(1e15 + RNG.normal(size=N)), "out_of_range"),
    "offset -1e15": (with_column(-1e15 + RNG.normal(size=N)), "reached"),
    "one rounding step apart": (with_column(np.where(np.arange(N) % 2 == 0, 1.0, 1.0 + 2.0**-52)), "reached"),
    "the smallest number": (with_column(np.where(np.arange(N) == 0, 5e-324, 1.0)), "reached"),
    "zeros and the smallest number": (with_column(np.where(np.arange(N) % 2 == 0, 0.0, 5e-324)), "reached"),
    "commas, quotes, HTML, emoji": (
        with_column(RNG.choice(["a,b", '"q"', "<script>alert(1)</script>", "😀"], N)),
        "reached",
    ),
    "mixed types": (with_column(pd.Series([1, "a", 2.5, None] * 15, dtype=object)), "reached"),
    "booleans": (with_column(RNG.random(N) < 0.5), "reached"),
    "nullable whole numbers": (with_column(pd.array([1, None, 3] * 20, dtype="Int64")), "reached"),
    "nullable booleans": (with_column(pd.array([True, None, False] * 20, dtype="boolean")), "reached"),
    "nullable texts": (with_column(pd.array(["x", None, "y"] * 20, dtype="string")), "reached"),
    "nullable floats": (with_column(pd.array([1.5, None, 2.5] * 20, dtype="Float64")), "reached"),
    "categories": (with_column(pd.Categorical(RNG.choice(["lo", "hi"], N), ["lo", "mid", "hi"])), "reached"),
    "texts of numbers": (with_column(["3", "?", "5", "NA"] * 15), "reached"),
    "empty texts": (with_column(["", "x", "y"] * 20), "reached"),
    "NaN among texts": (with_column(pd.Series(["x", np.nan, "y"] * 20, dtype=object)), "reached"),
    "NA among texts": (with_column(pd.Series(["x", pd.NA, "y"] * 20, dtype=object)), "reached"),
    "half precision": (with_column(RNG.normal(size=N).astype("float16")), "reached"),
    "huge whole numbers": (with_column(RNG.integers(0, 2**62, N)), "reached"),
    "dates": (with_column(pd.date_range("2020", periods=N)), "passed_through"),
    "dates with a zone": (with_column(pd.date_range("2020", periods=N, tz="UTC")), "passed_through"),
    "date objects": (with_column([datetime.date(2020, 1, 1)] * N), "passed_through"),
    "durations": (with_column(pd.Timedelta("1D")), "passed_through"),
    "periods": (with_column(pd.period_range("2020", periods=N)), "passed_through"),
    "dates as texts": (with_column([f"2020-01-{i % 28 + 1:02d}" for i in range(N)]), "passed_through"),
    "identifiers": (with_column(np.arange(N)), "passed_through"),
    "identifiers as texts": (with_column([f"user{i}" for i in range(N)]), "passed_through"),
    "free text": (with_column([f"she said that number {i} was fine" for i in range(N)]), "passed_through"),
    "lists": (with_column([[1]] * N), "passed_through"),
    "bytes": (with_column([b"x", b"y"] * (N // 2)), "passed_through"),
    "decimals": (with_column([decimal.Decimal("1.5"), decimal.Decimal("2.5")] * (N // 2)), "reached"),
    "postal codes": (with_column(["02139", "10115", "02139", "75001"] * (N // 4)), "reached"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", OUTCOMES)
def test_a_real_column_never_raises(case, method):
    table, outcome = OUTCOMES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        scaler = LipschitzScaler(method, random_state=0).fit(table)
    scaled = scaler.transform(table)
    summary = scaler.summary_
    numbers = summary[["smoothness_before", "scale", "smoothness_after"]].to_numpy(float)
    assert not np.isnan(numbers).any()
    assert (numbers[:, 1] > 0.0).all()
    assert np.isfinite(numbers[summary["outcome"].isin(["reached", "scaled"])][:, 1:]).all()
    if method == "lip-gamma":
        assert set(summary[summary["column"] == "c"]["outcome"]) == {outcome}
    if outcome != "passed_through" and outcome != "no_data":
        features = scaled[list(summary[summary["column"] == "c"]["feature"])].to_numpy(float)
        missing = table["c"].isna().to_numpy() | table["c"].isin(["?", "NA", ""]).to_numpy()
        assert (np.isnan(features) == missing[:, None]).all()
        assert not np.isinf(features).any()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame(), "0 feature"),
        (BASE.iloc[:0], "0 rows"),
        (np.empty((0, 3)), "0 sample"),
        (np.ones(5), "Expected 2D array"),
        (np.ones((2, 2, 2)), "dim 3"),
        (None, "got a NoneType, but expected a dataframe or a two-dimensional array"),
        ("table.csv", "got a str, but expected a dataframe"),
        ({"a": [1.0]}, "got a dict, but expected a dataframe"),
        (pd.Series([1.0, 2.0]), "2-dimensional"),
        (with_column(np.where(np.arange(N) == 3, np.inf, 1.5)), "Column 'c': got 1 infinite values"),
        (with_column(-np.inf), "Column 'c': got 60 infinite values"),
        (pl.DataFrame({"a": [1.0, float("inf")]}), "Column 'a': got 1 infinite values"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "Column 'a': got the name more than once"),
        (pd.DataFrame(np.ones((3, 2)), columns=[1, "1"]), "Column '1': got the name more than once"),
        (pl.DataFrame(), "0 feature"),
    ],
    ids=str,
)
def test_anything_but_a_table_is_a_clear_error(table, message):
    with pytest.raises(ValueError, match=message):
        LipschitzScaler().fit(table)


@pytest.mark.parametrize("kind", ["real", "positive", "count", "binary", "categorical", "ordinal"])
def test_a_declared_column_without_data_is_no_data(kind):
    with pytest.warns(EvenlyWarning, match="no_data: 'c'"):
        scaler = LipschitzScaler(kinds={"c": kind}, random_state=0).fit(with_column(np.nan))
    assert scaler.summary_.set_index("column").loc["c", "outcome"] == "no_data"
    assert "c" not in scaler.transform(with_column(np.nan))
    assert scaler.set_params(passthrough="keep").transform(with_column(np.nan))["c"].isna().all()


def test_one_row_and_one_column():
    with pytest.warns(EvenlyWarning, match="constant: 'a', 'b'"):
        scaler = LipschitzScaler(random_state=0).fit(BASE.head(1))
    assert scaler.transform(BASE.head(1)).shape == (1, 2)
    assert LipschitzScaler().fit(BASE[["a"]]).summary_["outcome"].tolist() == ["reached"]


@pytest.mark.parametrize("labels", [[1, 2], [1, "b"], [("x", 1), ("x", 2)], [1.5, 2]], ids=str)
def test_names_need_not_be_text(labels):
    table = pd.DataFrame(RNG.normal(size=(N, 2)))
    table.columns = pd.Index(labels, tupleize_cols=False)
    scaler = LipschitzScaler(kinds={labels[0]: "real"}).fit(table)
    back = scaler.inverse_transform(scaler.transform(table))
    assert list(back.columns) == labels or [str(c) for c in back.columns] == [str(c) for c in table.columns]
    np.testing.assert_allclose(back, table)
    assert list(scaler.get_feature_names_out()) == [str(label) for label in table.columns]


def test_a_class_feature_and_a_column_of_the_same_name_stay_apart():
    table = pd.DataFrame({"a": ["x", "y", "z"] * 20, "a=x": RNG.normal(size=60)})
    scaler = LipschitzScaler(random_state=0).fit(table)
    names = list(scaler.get_feature_names_out())
    assert len(set(names)) == len(names) == 4
    pd.testing.assert_frame_equal(scaler.inverse_transform(scaler.transform(table)), table)


def test_polars_and_arrow_with_everything():
    frame = pl.DataFrame(
        {
            "float": [1.5, None, float("nan"), 2.5] * 10,
            "text": ["x", None, "y", "?"] * 10,
            "bool": [True, None, False, True] * 10,
            "enum": pl.Series(["a", "b", None, "a"] * 10, dtype=pl.Enum(["a", "b", "c"])),
            "categorical": pl.Series(["a", "b", None, "a"] * 10, dtype=pl.Categorical),
            "date": [datetime.date(2020, 1, 1)] * 40,
            "list": [[1, 2]] * 40,
            "int": [1, None, 3, 5] * 10,
            "null": [None] * 40,
        }
    )
    for table in (frame, frame.drop("enum").to_arrow()):
        with (
            pytest.warns(EvenlyWarning, match="passed_through: 'date'.*'list'"),
            pytest.warns(EvenlyWarning, match="no_data: 'null'"),
        ):
            scaler = LipschitzScaler(random_state=0).fit(table)
        scaled = scaler.transform(table)
        back = scaler.inverse_transform(scaled)
        back = back if isinstance(back, pl.DataFrame) else pl.from_arrow(back)
        expected = frame.select(back.columns).with_columns(
            pl.col("float").fill_nan(None), pl.col("text").replace("?", None)
        )
        pl.testing.assert_frame_equal(back, expected, categorical_as_str=True)
        assert isinstance(scaled, type(table))


def test_arrow_chunks_are_one_column():
    table = pa.concat_tables([pa.table({"a": [1.5, 2.5]}), pa.table({"a": [4.0, None]})])
    scaled = LipschitzScaler("lip-none").fit_transform(table)
    assert scaled.num_rows == 4
    assert scaled["a"].null_count == 1


def test_an_arrow_record_batch_is_a_table():
    batch = pa.record_batch({"a": [1.5, 2.5, 4.0]})
    scaled = LipschitzScaler("lip-none").fit_transform(batch)
    assert isinstance(scaled, pa.Table)
    assert scaled.column_names == ["a"]


def test_an_error_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(TableError("1", "2", "3", column="c")))
    assert str(error) == "Column 'c': got 1, but 2. Hint: 3."
