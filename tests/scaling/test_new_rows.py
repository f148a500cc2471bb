"""Rows that fit did not see: any cell goes through `transform`, changed as little as needed, and never silently."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from evenly import Column, EvenlyWarning, LipschitzScaler, Schema, TableError
from evenly.scaling import METHODS

N = 60


def seen() -> pd.DataFrame:
    """A table of every kind, without a missing cell."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "real": rng.normal(5.0, 2.0, N),
            "positive": rng.lognormal(0.0, 1.0, N) + 0.01,
            "zeros": np.where(np.arange(N) % 7, rng.lognormal(0.0, 1.0, N), 0.0),
            "count": rng.poisson(4.0, N) + 1,
            "yes": np.where(np.arange(N) % 3, "y", "n"),
            "class": np.array(["red", "green", "blue"])[np.arange(N) % 7 % 3],
        }
    )


def with_cell(column: str, value: object, row: int = 1) -> pd.DataFrame:
    new = seen().head(4).astype({column: object})
    new.loc[row, column] = value
    return new


def scaled(scaler: LipschitzScaler, table: pd.DataFrame) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        return scaler.transform(table)


# --- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "used", "message"),
    [
        ("positive", 0.0, seen()["positive"].min(), "1 cell not above 0, used as [0-9.]+, the smallest value in fit"),
        ("positive", -1.0, seen()["positive"].min(), "1 cell not above 0, used as [0-9.]+, the smallest value in fit"),
        ("zeros", -1e9, 0.0, "1 cell not above -[0-9.e-]+, used as 0, the smallest value in fit"),
        ("count", 2.5, 3, "1 cell not whole, rounded"),
        ("count", -1, 0, "1 cell below 0, used as 0"),
        ("count", -0.6, 0, "1 cell below 0, used as 0"),
        ("real", np.inf, np.nan, "1 cell infinite, treated as missing"),
        ("count", -np.inf, np.nan, "1 cell infinite, treated as missing"),
        ("real", "abc", np.nan, "1 cell with no number, treated as missing: 'abc'"),
        ("count", "2,5", np.nan, "1 cell with no number, treated as missing: '2,5'"),
        ("count", " 2.5 ", 3, "1 cell not whole, rounded"),
    ],
)
@pytest.mark.parametrize("method", ["lip-gamma", "lip-none"])
def test_a_cell_that_fit_would_refuse_is_used_as_the_nearest_and_said(method, column, value, used, message):
    scaler = LipschitzScaler(method, random_state=0).fit(seen())
    new = with_cell(column, value)
    with pytest.warns(EvenlyWarning, match=f"^column '{column}': {message}$") as caught:
        got = scaler.transform(new)
    assert len(caught) == 1
    pd.testing.assert_frame_equal(got, scaler.transform(with_cell(column, used)))
    with pytest.raises(TableError, match=f"Column '{column}': got"):
        scaler.set_params(strict=True).transform(new)


def test_all_changes_of_a_column_are_one_warning_with_numbers_of_cells():
    scaler = LipschitzScaler(random_state=0).fit(seen())
    new = seen().assign(count=[2.5, -1.0, np.inf] * 20)
    with pytest.warns(EvenlyWarning) as caught:
        scaler.transform(new)
    (message,) = [str(one.message) for one in caught]
    assert message.startswith("column 'count': 20 cells infinite, treated as missing; 20 cells below 0, used as 0; 20 ")


def test_declared_bounds_are_clipped_to():
    bounded = Schema(columns=[Column(name="real", kind="real", lower=-20.0, upper=20.0)])
    scaler = LipschitzScaler(schema=bounded, random_state=0).fit(seen())
    new = seen().head(3).assign(real=[-50.0, 3.0, 50.0])
    with pytest.warns(EvenlyWarning, match="1 cell below the declared -20, used as that; 1 cell above the declared 20"):
        got = scaler.transform(new)
    pd.testing.assert_frame_equal(got, scaler.transform(new.assign(real=[-20.0, 3.0, 20.0])))


@pytest.mark.parametrize("zeros", ["shift", "clip"])
def test_zeros_keep_the_treatment_that_they_had_in_fit(zeros):
    scaler = LipschitzScaler("std-none", zeros=zeros, random_state=0).fit(seen())
    assert np.isfinite(scaler.transform(with_cell("zeros", 0.0))["zeros"]).all()
    with pytest.warns(EvenlyWarning, match="column 'zeros'"):
        assert np.isfinite(scaler.transform(with_cell("zeros", -1e9))["zeros"]).all()


@pytest.mark.parametrize(
    "likelihood",
    ["log-normal", "gamma", "inverse-gamma", "inverse-gaussian", "exponential", "rayleigh", "normal", "poisson"],
)
@pytest.mark.parametrize("method", ["lip-gamma", "std-none"])
def test_every_finite_number_gives_a_finite_feature(likelihood, method):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": (rng.poisson(4.0, N) if likelihood == "poisson" else rng.gamma(2.0, 1.0, N)) + 1.0})
    scaler = LipschitzScaler(method, likelihoods={"x": likelihood}, random_state=0).fit(table)
    extremes = [0.0, -0.0, 5e-324, -5e-324, 0.5, -1.0, 2.5, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308]
    got = scaled(scaler, pd.DataFrame({"x": extremes}))["x"]
    assert np.isfinite(got).all()
    assert np.isnan(scaled(scaler, pd.DataFrame({"x": [np.nan, None]}))["x"]).all()


def test_a_declared_column_without_data_takes_any_number():
    table = seen().assign(empty=np.nan)
    with pytest.warns(EvenlyWarning, match="no_data"):
        scaler = LipschitzScaler(kinds={"empty": "positive"}, passthrough="keep", random_state=0).fit(table)
    assert np.isfinite(scaled(scaler, seen().assign(empty=-1.0))["empty"]).all()


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.to_numpy(object)])
def test_every_container_gives_the_same(convert):
    new = seen().head(6)
    new = new.assign(
        positive=[0.0, 1.0, 2.0, -1.0, np.inf, 1.5], count=[2.5, 1.0, -1.0, 2.0, 3.0, 4.0], yes=[*"ynYyny"]
    )
    scaler = LipschitzScaler(random_state=0).fit(seen())
    got = scaled(scaler.set_output(transform="pandas"), convert(new))
    np.testing.assert_allclose(got.to_numpy(float), scaled(scaler, new).to_numpy())


def test_parts_warn_once_in_the_end_of_all_their_cells():
    scaler = LipschitzScaler(random_state=0).fit(seen())
    new = seen().assign(count=2.5, **{"class": ["red", "violet"] * 30})
    whole = scaled(scaler, new)
    parts = scaler.transform_parts([new[:20], new[20:50], new[50:]])
    with pytest.warns(EvenlyWarning) as caught:
        got = pd.concat(list(parts))
    pd.testing.assert_frame_equal(got, whole)
    assert [str(one.message).partition(", ")[0] for one in caught] == [
        "column 'count': 60 cells not whole",
        "column 'class': 30 cells with classes not seen in fit",
    ]


# --- classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_fit_did_not_see_gives_no_missing_feature(method):
    scaler = LipschitzScaler(method, random_state=0).fit(seen())
    new = seen().head(4).assign(**{"class": ["red", "violet", "blue", "pink"], "yes": ["y", "n", "maybe", "y"]})
    with pytest.warns(EvenlyWarning) as caught:
        got = scaler.transform(new)
    assert len(caught) == 2
    assert re.search("2 cells with classes not seen in fit, .*: 'violet', 'pink'$", str(caught[1].message))
    assert "1 cell with classes not seen in fit, used as the most frequent, 'y': 'maybe'" in str(caught[0].message)
    assert np.isfinite(got).all(axis=None)
    back = scaler.inverse_transform(got)
    assert back["yes"].tolist() == ["y", "n", "y", "y"]
    if method.endswith("-none"):
        assert back["class"].tolist() == ["red", "red", "blue", "red"]
    else:
        assert "0 in each of its features" in str(caught[1].message)
        assert back["class"].tolist()[::2] == ["red", "blue"]
        assert back["class"].isna().tolist() == [False, True, False, True]


def test_an_unseen_class_looks_like_any_other_class_that_it_is_not():
    scaler = LipschitzScaler("lip-bern").fit(seen())
    got = scaled(scaler, with_cell("class", "violet"))
    assert got.loc[1, ["class=blue", "class=green", "class=red"]].tolist() == [0.0, 0.0, 0.0]
    gamma = LipschitzScaler(random_state=0).fit(seen())
    new = scaled(gamma, with_cell("class", "violet"))
    scale = gamma.summary_.set_index("feature")["scale"]
    for name in ("class=blue", "class=green", "class=red"):
        assert 1.0 < new.loc[1, name] / scale[name] <= 1.5  # 0, after the trick


@pytest.mark.parametrize("method", ["lip-gamma", "lip-bern"])
def test_small_probabilities_of_many_classes_are_still_a_class(method):
    """What a model gives back may favour no class by more than a half; that is no unseen class."""
    scaler = LipschitzScaler(method, random_state=0).fit(seen())
    scale = scaler.summary_.set_index("feature")["scale"]
    offset = 1.0 + 1.1 / 31.1 if method == "lip-gamma" else 0.0
    made_up = scaler.transform(seen().head(1))
    for name, share in {"class=blue": 0.3, "class=green": 0.4, "class=red": 0.3}.items():
        made_up[name] = (share + offset) * scale[name]
    assert scaler.inverse_transform(made_up)["class"].tolist() == ["green"]


def test_unseen_classes_are_errors_if_asked_for():
    scaler = LipschitzScaler(handle_unknown="error", random_state=0).fit(seen())
    message = r"Column 'class': got classes not seen in fit: 'violet'.*Hint: pass handle_unknown=\"ignore\""
    with pytest.raises(TableError, match=message):
        scaler.transform(with_cell("class", "violet"))
    scaler.transform(with_cell("class", None))  # missing is no class


def test_a_warning_quotes_at_most_five_classes_and_none_at_length():
    scaler = LipschitzScaler(random_state=0).fit(seen())
    new = seen().assign(**{"class": [f"{'x' * 5000}{k}" for k in range(N)]})
    with pytest.warns(EvenlyWarning, match=r"'class': 60 cells .* and 55 more$") as caught:
        scaler.transform(new)
    assert len(str(caught[0].message)) < 500


def test_booleans_numbers_and_dates_may_come_where_fit_saw_texts():
    scaler = LipschitzScaler(random_state=0).fit(seen())
    for cells in ([True, False], [1.5, 2.5], pd.date_range("2024", periods=2), [[1], [2]], [{}, None]):
        got = scaled(scaler, seen().head(2).assign(**{"class": cells, "real": cells}))
        assert np.isfinite(got.iloc[0].drop("real")).all()


# --- columns that are no variables ---------------------------------------------------------------------------------


def with_identifiers() -> pd.DataFrame:
    return seen().assign(
        id=np.arange(N),
        when=pd.date_range("2024", periods=N),
        note=[f"note {k} of many" for k in range(N)],
        gone=np.nan,
    )


def test_columns_that_are_no_variables_are_dropped_by_default_and_named():
    table = with_identifiers()
    with pytest.warns(EvenlyWarning) as caught:
        scaler = LipschitzScaler(random_state=0).fit(table)
    said = "\n".join(str(one.message) for one in caught)
    assert "passed_through: 'id' (identifier" in said
    assert 'no variable, dropped by transform (passthrough="keep" keeps it); declare a kind' in said
    assert "no_data: 'gone': no observed cells: dropped by transform" in said
    got = scaler.transform(table)
    assert list(got.columns) == list(scaler.get_feature_names_out())
    assert not {"id", "when", "note", "gone"} & set(got.columns)
    assert all(kind.kind == "f" for kind in got.dtypes)
    pd.testing.assert_frame_equal(scaler.inverse_transform(got), seen())
    assert scaler.summary_.set_index("column").loc["when", "outcome"] == "passed_through"


def test_columns_that_are_no_variables_are_kept_if_asked_for():
    table = with_identifiers()
    with pytest.warns(EvenlyWarning) as caught:
        scaler = LipschitzScaler(passthrough="keep", random_state=0).fit(table)
    assert all("left as it is" in str(one.message) for one in caught)
    got = scaler.transform(table)
    pd.testing.assert_frame_equal(got[["id", "when", "note", "gone"]], table[["id", "when", "note", "gone"]])
    pd.testing.assert_frame_equal(scaler.inverse_transform(got), table)


def test_a_column_that_is_declared_to_be_no_variable_is_dropped_silently():
    scaler = LipschitzScaler(kinds={"real": "ignore"}, random_state=0).fit(seen())
    assert "real" not in scaler.transform(seen())


@pytest.mark.parametrize("container", ["numpy", "pandas"])
def test_a_table_without_variables_has_rows_without_features(container):
    table = np.arange(N)[:, None]
    with pytest.warns(EvenlyWarning, match="dropped by transform"):
        scaler = LipschitzScaler().fit(table if container == "numpy" else pd.DataFrame(table, index=np.arange(N) + 7))
    got = scaler.transform(table if container == "numpy" else pd.DataFrame(table, index=np.arange(N) + 7))
    assert got.shape == (N, 0)
    assert list(scaler.get_feature_names_out()) == []


def test_a_pipeline_survives_identifiers_dates_and_texts():
    table = with_identifiers().drop(columns=["zeros", "count"])
    wanted = (table["class"] == "red").to_numpy()
    pipeline = make_pipeline(LipschitzScaler(random_state=0), GaussianNB())
    grid = {"lipschitzscaler__method": ["lip-gamma", "std-none"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(table, wanted)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.9


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strict": "yes"}, "strict = 'yes', but expected True or False"),
        ({"handle_unknown": "infrequent"}, "handle_unknown = 'infrequent', but expected 'ignore' or 'error'"),
        ({"passthrough": "passthrough"}, "passthrough = 'passthrough', but expected 'drop' or 'keep'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(TableError, match=message):
        LipschitzScaler(**settings).fit(seen())


def test_settings_are_saved_and_a_used_scaler_pickles(tmp_path):
    scaler = LipschitzScaler(strict=True, handle_unknown="error", passthrough="keep", random_state=0).fit(seen())
    scaler.save(tmp_path)
    again = LipschitzScaler.load(tmp_path)
    assert (again.strict, again.handle_unknown, again.passthrough) == (True, "error", "keep")
    lenient = LipschitzScaler(random_state=0).fit(seen())
    new = with_cell("count", 2.5).assign(**{"class": "new", "positive": 0.0})
    expected = scaled(lenient, new)
    lenient.save(tmp_path)
    for same in (LipschitzScaler.load(tmp_path), pickle.loads(pickle.dumps(lenient))):
        pd.testing.assert_frame_equal(scaled(same, new), expected)
