"""LipschitzScaler as people use it: in Pipelines, on any table, in parts, saved and loaded."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from evenly import Column, EvenlyWarning, LipschitzScaler, Schema, Support, TableError, define_likelihood, load_heart
from evenly._support import write_json
from evenly.likelihoods.continuous import LOG_NORMAL, NORMAL
from evenly.likelihoods.discrete import BERNOULLI, POISSON
from evenly.scaling.fitted import SummaryRow
from evenly.scaling.methods import METHODS
from evenly.scaling.smoothness import smoothness_at

HEART = load_heart()


def mixed_table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "real": rng.normal(-3.0, 5.0, n),
            "positive": rng.lognormal(1.0, 0.7, n),
            "count": rng.poisson(6.0, n),
            "binary": rng.random(n) < 0.2,
            "class": rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    table.loc[rng.random(n) < 0.1, "real"] = np.nan
    return table


# --- scikit-learn's conventions ---


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
@pytest.mark.parametrize("method", ["lip-gamma", "lip-none", "std-none", "iqr-none"])
def test_scikit_learns_estimator_checks_pass(method):
    # The one expected failure: it calls partial_fit after fit, and quartiles cannot be merged.
    expected_failed = {"check_fit_score_takes_y"} if method == "iqr-none" else set()
    results = estimator_checks.check_estimator(LipschitzScaler(method), on_fail=None, on_skip=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} == expected_failed
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_where_noise_is_drawn_scikit_learn_skips_the_checks_that_reorder_rows():
    results = estimator_checks.check_estimator(LipschitzScaler(noise="drawn"), on_fail=None, on_skip=None)
    assert not [result["check_name"] for result in results if result["status"] == "failed"]
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= {
        "check_array_api_input",
        "check_pipeline_consistency",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
    }


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_the_plain_call_of_the_estimator_checks_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        estimator_checks.check_estimator(LipschitzScaler())


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_set_output_transform,
        estimator_checks.check_set_output_transform_pandas,
        estimator_checks.check_set_output_transform_polars,
        estimator_checks.check_transformer_get_feature_names_out,
        estimator_checks.check_transformer_get_feature_names_out_pandas,
    ],
)
def test_output_and_names_follow_scikit_learn(check):
    check("LipschitzScaler", LipschitzScaler())


def test_works_in_a_pipeline_and_a_column_transformer():
    table = mixed_table()
    parts = ColumnTransformer(
        [("scale", LipschitzScaler(random_state=0), ["positive", "count", "class"])], remainder="drop"
    )
    reduced = make_pipeline(parts, PCA(2)).fit_transform(table)
    assert reduced.shape == (len(table), 2)
    assert np.isfinite(reduced).all()
    assert list(parts.get_feature_names_out())[:2] == ["scale__positive", "scale__count"]


def test_clones_and_pickles():
    scaler = LipschitzScaler("lip-bern", kinds={"count": "real"}, random_state=1)
    assert clone(scaler).get_params() == scaler.get_params()
    table = mixed_table()
    scaler.fit(table)
    again = pickle.loads(pickle.dumps(scaler))
    pd.testing.assert_frame_equal(again.transform(table), scaler.transform(table))


def test_asks_to_be_fitted_first():
    with pytest.raises(NotFittedError):
        LipschitzScaler().transform([[1.0]])
    assert not hasattr(LipschitzScaler(), "summary_")


# --- what it promises ---


@pytest.mark.parametrize("bound", ["exact", "paper"])
@pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])
def test_every_column_gets_the_target(method, bound):
    scaler = LipschitzScaler(method, bound=bound, random_state=0).fit(mixed_table())
    summary = scaler.summary_
    reached = summary[summary["outcome"] == "reached"]
    by_column = reached.groupby("column")["smoothness_after" if bound == "exact" else "bound_after"].sum()
    assert set(by_column.index) == ({"real", "positive"} if method != "lip-gamma" else set(mixed_table().columns))
    np.testing.assert_allclose(by_column, scaler.target_, rtol=1e-8)
    assert scaler.target_ == pytest.approx(1.0 / (len(by_column) * 1e-3))


def test_the_scaled_data_have_the_smoothness_of_the_summary():
    """Fit each likelihood anew to the transformed data: an independent way to the same number."""
    table = mixed_table()
    scaler = LipschitzScaler("lip-none").fit(table)
    scaled = scaler.transform(table)
    for name, family in (("real", NORMAL), ("positive", LOG_NORMAL)):
        data = scaled[name].dropna().to_numpy()
        natural = family.fit(family.statistics(data).mean(axis=0))
        assert smoothness_at(family, natural) == pytest.approx(scaler.target_, rel=1e-9)


def test_scaling_twice_changes_nothing():
    table = mixed_table()[["real", "positive"]]
    once = LipschitzScaler("lip-none", target=50.0).fit_transform(table)
    again = LipschitzScaler("lip-none", target=50.0).fit(once)
    np.testing.assert_allclose(again.summary_["scale"], 1.0, rtol=1e-9)


def test_the_columns_units_do_not_matter():
    table = mixed_table()[["real"]]
    a = LipschitzScaler("lip-none", target=50.0).fit_transform(table)
    b = LipschitzScaler("lip-none", target=50.0).fit_transform(table * 1e6)
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_the_summary_has_the_promised_columns_and_words():
    summary = LipschitzScaler(random_state=0).fit(HEART).summary_
    assert tuple(summary.columns) == SummaryRow._fields[:-1]
    assert set(summary["likelihood"]) == {"gamma", "log-normal"}
    assert set(summary["outcome"]) == {"reached"}
    assert np.isfinite(summary[["smoothness_before", "scale", "smoothness_after"]].to_numpy()).all()


@pytest.mark.parametrize("method", METHODS)
def test_unscale_recovers_the_maximum_likelihood_parameters(method):
    """In the table's units: what fitting each column's own likelihood to the raw data gives."""
    table = mixed_table()
    scaler = LipschitzScaler(method, random_state=0).fit(table)
    usual = scaler.unscale(scaler.natural_)
    real, positive = table["real"].dropna(), np.log(table["positive"])
    assert usual["real"]["mean"] == pytest.approx(real.mean(), rel=1e-9)
    assert usual["real"]["std"] == pytest.approx(real.std(ddof=0), rel=1e-9)
    assert usual["positive"]["log_mean"] == pytest.approx(positive.mean(), rel=1e-9)
    assert usual["positive"]["log_std"] == pytest.approx(positive.std(ddof=0), rel=1e-9)
    assert usual["count"]["rate"] == pytest.approx(table["count"].mean(), rel=1e-9)
    assert usual["binary"]["probability"] == pytest.approx(table["binary"].mean(), rel=1e-9)
    shares = table["class"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(usual["class"]["probabilities"], shares, rtol=1e-9)


def test_unscale_takes_batches_and_names_what_is_missing():
    scaler = LipschitzScaler(random_state=0).fit(mixed_table())
    many = {name: np.broadcast_to(value, (7, 3, len(value))) for name, value in scaler.natural_.items()}
    assert scaler.unscale(many)["class"]["probabilities"].shape == (7, 3, 3)
    with pytest.raises(TableError, match=r"'class'.*no parameters of 'class=green'"):
        scaler.unscale({"class=blue": scaler.natural_["class=blue"]})
    with pytest.raises(TableError, match="the feature 'nope'"):
        scaler.unscale({"nope": np.zeros(2)})


def test_missing_cells_stay_missing_and_are_ignored():
    table = mixed_table()
    scaled = LipschitzScaler(random_state=0).fit_transform(table)
    assert (scaled["real"].isna() == table["real"].isna()).all()
    full = LipschitzScaler("lip-none", target=9.0).fit(table[["real"]].dropna())
    assert (
        full.summary_["scale"][0] == LipschitzScaler("lip-none", target=9.0).fit(table[["real"]]).summary_["scale"][0]
    )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_noise():
    a, b, c = (LipschitzScaler(noise="drawn", random_state=seed).fit_transform(HEART).to_numpy() for seed in (3, 3, 4))
    assert a.tobytes() == b.tobytes()
    assert a.tobytes() != c.tobytes()


def test_fitting_draws_no_noise():
    scales = [LipschitzScaler(random_state=seed).fit(HEART).summary_["scale"] for seed in (1, 2)]
    assert (scales[0] == scales[1]).all()


def test_bern_features_are_bernoulli_and_none_keeps_codes():
    table = mixed_table()
    bern = LipschitzScaler("lip-bern").fit(table)
    assert list(bern.get_feature_names_out()) == ["real", "positive", "count", "binary", *_names("class")]
    assert set(np.unique(bern.transform(table)["class=red"])) == {0.0, 1.0}
    none = LipschitzScaler("lip-none").fit(table)
    assert none.summary_["likelihood"].tolist() == ["normal", "log-normal", "poisson", "bernoulli", "categorical"]
    by_name = none.summary_.set_index("column")["smoothness_before"]
    p = table["binary"].mean()
    assert by_name["binary"] == pytest.approx(smoothness_at(BERNOULLI, np.array([np.log(p / (1 - p))])))
    assert by_name["count"] == pytest.approx(smoothness_at(POISSON, np.log([table["count"].mean()])))


def _names(column: str) -> list[str]:
    return [f"{column}={value}" for value in ("blue", "green", "red")]


# --- any table in, the same out ---


def test_pandas_polars_arrow_and_numpy_agree_and_come_back():
    frame = HEART
    polars = pl.from_pandas(frame)
    arrow = polars.to_arrow()
    array = frame.to_numpy(dtype=object)
    scaled = {}
    for name, table in {"pandas": frame, "polars": polars, "arrow": arrow, "numpy": array}.items():
        kinds = {} if name != "numpy" else None
        scaler = LipschitzScaler("lip-none", kinds=kinds).fit(table)
        out = scaler.transform(table)
        assert type(out) is type(table)
        scaled[name] = out.to_pandas() if name in ("polars", "arrow") else pd.DataFrame(np.asarray(out))
        back = scaler.inverse_transform(out)
        assert type(back) is type(table)
        if name == "pandas":
            pd.testing.assert_frame_equal(back, table, rtol=1e-12)
        elif name == "polars":
            assert_frame_equal(back, table)
        elif name == "arrow":
            assert back.schema.names == table.schema.names
            assert_frame_equal(pl.from_arrow(back), pl.from_arrow(table))
    for name in ("polars", "arrow", "numpy"):
        np.testing.assert_allclose(
            scaled[name].to_numpy(float), scaled["pandas"].to_numpy(float), rtol=1e-9, err_msg=name
        )


def test_inverse_transform_restores_types_and_classes():
    table = pd.DataFrame(
        {
            "int": [3, 4, 9, 8, 5] * 8,
            "small": np.array([3, 4, 9, 8, 5] * 8, dtype="uint8"),
            "nullable": pd.array([1, None, 30, 4, 5] * 8, dtype="Int64"),
            "float32": np.linspace(-1, 1, 40, dtype="float32"),
            "bool": [True, False, True, True, False] * 8,
            "boolean": pd.array([True, None, True, True, False] * 8, dtype="boolean"),
            "text": ["a,b", '"q"', "😀", "a,b", None] * 8,
            "ordered": pd.Categorical(["lo", "hi", "lo", "hi", None] * 8, ["lo", "mid", "hi"], ordered=True),
            "numbers": pd.Categorical([10, 20, 10, 30, 20] * 8),
            "date": pd.date_range("2020-01-01", periods=40),
        },
        index=np.arange(40) * 2,
    )
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)
            scaler = LipschitzScaler(method, passthrough="keep", random_state=0).fit(table)
        back = scaler.inverse_transform(scaler.transform(table))
        pd.testing.assert_frame_equal(back, table, rtol=1e-6)


def test_set_output_converts():
    table = mixed_table()
    assert isinstance(LipschitzScaler().set_output(transform="polars").fit_transform(table), pl.DataFrame)
    assert isinstance(
        LipschitzScaler().set_output(transform="pandas").fit_transform(pl.from_pandas(table)), pd.DataFrame
    )
    out = LipschitzScaler().set_output(transform="pandas").fit(table).transform(table.set_index(table.index + 7))
    assert list(out.index[:2]) == [7, 8]


def test_columns_may_come_in_another_order_and_extra_ones_are_named():
    table = mixed_table()
    scaler = LipschitzScaler(random_state=0).fit(table)
    expected = scaler.transform(table)
    pd.testing.assert_frame_equal(scaler.transform(table[table.columns[::-1]]), expected)
    with pytest.warns(EvenlyWarning, match="not there in fit are left out: .'more'"):
        pd.testing.assert_frame_equal(scaler.transform(table.assign(more=1)), expected)
    with pytest.raises(TableError, match=r"Column 'class'.*every column that was there in fit"):
        scaler.transform(table.drop(columns="class"))


def test_a_declared_ignore_is_silent():
    scaler = LipschitzScaler(kinds={"real": "ignore"}, random_state=0).fit(mixed_table())
    assert scaler.summary_.set_index("column").loc["real", "outcome"] == "passed_through"


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "lip"}, "the method 'lip'.*lip-gamma"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"target": -1.0}, "target = -1.0"),
        ({"target": "big"}, "target = 'big'"),
        ({"bound": "upper"}, "bound = 'upper'"),
        ({"kinds": {"nope": "real"}}, "Column 'nope': got kinds for it"),
        ({"kinds": {"real": "float"}}, "Column 'real': got the kind 'float'"),
        ({"kinds": {"real": "positive"}}, "Column 'real': got minimum .*log-normal expects values > 0"),
        ({"kinds": {"class": "real"}}, "Column 'class': got the text .*real expects numbers"),
        ({"kinds": {"class": "binary"}}, "Column 'class': got 3 classes, but binary expects at most 2"),
        ({"likelihoods": {"real": "gama"}}, "the likelihood 'gama'"),
        ({"likelihoods": {"real": "gamma"}}, "Column 'real': got minimum"),
        ({"likelihoods": {"real": "poisson"}}, "Column 'real': got values that are not whole numbers"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(TableError, match=message):
        LipschitzScaler(**settings).fit(mixed_table())


@pytest.mark.parametrize("name", ["gamma", "inverse-gamma", "inverse-gaussian", "exponential", "rayleigh", "normal"])
def test_a_positive_column_may_have_any_positive_likelihood(name):
    scaler = LipschitzScaler("lip-none", likelihoods={"positive": name}, target=30.0).fit(mixed_table())
    row = scaler.summary_.set_index("column").loc["positive"]
    assert row["likelihood"] == name
    assert row["smoothness_after"] == pytest.approx(30.0, rel=1e-8)


def test_below_the_floor_warns_with_the_remedy():
    table = pd.DataFrame({"a": np.random.default_rng(0).gamma(0.3, size=500)})
    with pytest.warns(EvenlyWarning, match="below_floor: 'a': no scale reaches this target.*lower the learning rate"):
        scaler = LipschitzScaler("lip-none", likelihoods={"a": "gamma"}, target=1.0).fit(table)
    assert scaler.summary_["outcome"][0] == "below_floor"


def weibull() -> object:
    return define_likelihood(
        "weibull",
        support=Support(0.0),
        statistics=lambda x, xp: (x**1.5,),
        log_base=lambda x, xp: 0.5 * xp.log(x) + np.log(1.5),
        log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
        factors=lambda scale, xp: (scale**1.5,),
    )


def test_a_likelihood_of_ones_own(tmp_path):
    family = weibull()
    table = pl.DataFrame({"a": np.random.default_rng(0).weibull(1.5, 300) * 4.0, "b": np.linspace(-1, 1, 300)})
    scaler = LipschitzScaler("lip-none", likelihoods={"a": family}).fit(table)
    assert scaler.summary_["smoothness_after"][0] == pytest.approx(scaler.target_, rel=1e-8)
    scaler.save(tmp_path / "own.json")
    with pytest.raises(TableError, match="the likelihood 'weibull' of your own"):
        LipschitzScaler.load(tmp_path / "own.json")
    again = LipschitzScaler.load(tmp_path / "own.json", likelihoods=[family])
    assert_frame_equal(again.transform(table), scaler.transform(table))


# --- parts, files ---


def test_parts_give_what_the_whole_gives():
    table = mixed_table(1000)
    whole = LipschitzScaler(random_state=0).fit(table)
    parts = LipschitzScaler(random_state=0)
    for start in range(0, 1000, 170):
        parts.partial_fit(table.iloc[start : start + 170])
    np.testing.assert_allclose(parts.summary_["scale"], whole.summary_["scale"], rtol=1e-10)


def test_later_parts_may_bring_new_classes():
    parts = LipschitzScaler(random_state=0).partial_fit(pd.DataFrame({"c": ["a", "b"] * 10, "x": [-1.5, 2.0] * 10}))
    parts.partial_fit(pd.DataFrame({"c": ["a", "z"] * 10, "x": [-1.5, 2.0] * 10}))
    assert parts.schema_["c"].classes == ["a", "b", "z"]


def test_quartiles_refuse_parts():
    table = mixed_table()
    with pytest.raises(TableError, match="quartiles need all rows at once"):
        LipschitzScaler("iqr-none").partial_fit(table).partial_fit(table)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_a_saved_scaler_gives_the_same_bytes(method, convert, tmp_path):
    table = convert(HEART)
    scaler = LipschitzScaler(method, random_state=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        scaler.fit(table)
    scaler.save(tmp_path)
    assert json.loads((tmp_path / "scaler.json").read_text())["saved"] == "LipschitzScaler"
    again = LipschitzScaler.load(tmp_path)
    a, b = (pd.DataFrame(np.asarray(s.transform(table))).to_numpy(float) for s in (scaler, again))
    assert a.tobytes() == b.tobytes()
    assert again.get_params()["method"] == method
    assert again.summary_.equals(scaler.summary_)


def test_a_loaded_scaler_goes_on_learning(tmp_path):
    table = mixed_table(1000)
    LipschitzScaler(random_state=0).fit(table.head(500)).save(tmp_path / "half.json")
    merged = LipschitzScaler.load(tmp_path / "half.json").partial_fit(table.tail(500))
    whole = LipschitzScaler(random_state=0).fit(table)
    np.testing.assert_allclose(merged.summary_["scale"], whole.summary_["scale"], rtol=1e-10)


def test_loading_something_else_is_a_clear_error(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(TableError, match=r"x.json.*LipschitzScaler.save wrote"):
        LipschitzScaler.load(tmp_path / "x.json")


def test_an_edited_schema_file_is_followed(tmp_path):
    table = mixed_table()
    path = tmp_path / "schema.json"
    LipschitzScaler().fit(table).schema_.save(path)
    edited = json.loads(path.read_text())
    edited["columns"][2] |= {"kind": "real", "likelihood": "normal"}
    path.write_text(json.dumps(edited))
    scaler = LipschitzScaler("lip-none", schema=path).fit(table)
    assert scaler.summary_.set_index("column").loc["count", "likelihood"] == "normal"
    assert Schema.load(path) == scaler.schema_


# --- what must not be lost or mistaken ---


def test_an_ignored_column_keeps_its_name_beside_a_class_feature_of_that_name():
    table = pd.DataFrame({"a": list("bcd") * 20, "a=b": np.linspace(-1.0, 1.0, 60)})
    scaler = LipschitzScaler(kinds={"a=b": "ignore"}, passthrough="keep", random_state=0).fit(table)
    scaled = scaler.transform(table)
    assert scaled.shape == (60, 4)
    pd.testing.assert_series_equal(scaled["a=b"], table["a=b"])


def test_own_likelihoods_must_have_different_names():
    own = weibull()
    table = pd.DataFrame({"x": np.linspace(0.5, 3.0, 50), "y": np.linspace(0.5, 2.0, 50)})
    own.name = "gamma"
    with pytest.raises(TableError, match="Column 'x': got another likelihood called 'gamma'"):
        LipschitzScaler(likelihoods={"x": own, "y": "gamma"}).fit(table)
    with pytest.raises(TableError, match="Column 'y': got another likelihood called 'weibull'"):
        LipschitzScaler(likelihoods={"x": weibull(), "y": weibull()}).fit(table)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"kind": "real", "likelihood": "poisson"}, "the likelihood 'poisson' does not go with the kind 'real'"),
        ({"kind": "binary", "classes": ["a", "b", "c"]}, "binary expects at most 2 classes"),
        ({"kind": "positive", "shift": 1.0, "clip": 1e-30}, "shift and clip exclude each other"),
        ({"kind": "real", "lower": 2.0, "upper": 1.0}, "lower = 2 lies above upper = 1"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(edit, message, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps({"columns": [{"name": "c", **edit}]}))
    with pytest.raises(TableError, match=message):
        LipschitzScaler(schema=tmp_path / "schema.json").fit(pd.DataFrame({"c": [1.0, 2.5]}))


def test_editing_the_kind_alone_is_enough(tmp_path):
    table = mixed_table()
    path = tmp_path / "schema.json"
    LipschitzScaler().fit(table).schema_.save(path)
    path.write_text(path.read_text().replace('"kind": "count"', '"kind": "real"'))
    scaler = LipschitzScaler(schema=path, random_state=0).fit(table)
    assert scaler.summary_.set_index("column").loc["count", ["kind", "likelihood"]].tolist() == ["real", "normal"]


def test_a_third_class_makes_a_binary_column_categorical():
    parts = LipschitzScaler(random_state=0).partial_fit(pd.DataFrame({"c": ["a", "b"] * 10}))
    parts.partial_fit(pd.DataFrame({"c": ["z"] * 20}))
    assert parts.schema_["c"].kind == "categorical"
    np.testing.assert_allclose(parts.unscale(parts.natural_)["c"]["probabilities"], [0.25, 0.25, 0.5], rtol=1e-9)


def test_a_failed_fit_changes_nothing():
    table = mixed_table()
    scaler = LipschitzScaler(random_state=0).fit(table)
    expected = scaler.transform(table)
    wrong = table.assign(positive=np.inf)
    for call in (scaler.fit, scaler.partial_fit):
        with pytest.raises(TableError):
            call(wrong)
        pd.testing.assert_frame_equal(scaler.transform(table), expected)
    fresh = LipschitzScaler()
    with pytest.raises(TableError):
        fresh.partial_fit(wrong)
    assert fresh.partial_fit(table).transform(table).shape == expected.shape


def test_inverse_transform_takes_the_nearest_class_and_value():
    """What a model gives back lies between the data: the largest feature wins, a count goes to the nearest."""
    table = pd.DataFrame(
        {"c": ["a", "b", "c"] * 20, "n": np.arange(60, dtype="uint8") % 7, "p": np.linspace(0.1, 9, 60)}
    )
    scaler = LipschitzScaler(random_state=0, kinds={"n": "count"}).fit(table)
    scale = scaler.summary_.set_index("feature")["scale"]
    made_up = pd.DataFrame(
        {
            "c=a": np.array([1.1, 2.1]) * scale["c=a"],
            "c=b": np.array([1.9, 2.9]) * scale["c=b"],
            "c=c": np.array([1.2, 1.2]) * scale["c=c"],
            "n": np.array([5.0 + 1.0 + 0.3, -4.0]) * scale["n"],
            "p": [-1.0, 1.0],
        }
    )
    back = scaler.inverse_transform(made_up)
    assert back["c"].tolist() == ["b", "b"]
    assert back["n"].tolist() == [5, 0]
    assert back["n"].dtype == "uint8"
    assert back["p"].tolist() == [0.0, 1.0]


def test_texts_of_numbers_come_back_as_they_were_and_codes_with_leading_zeros_are_classes():
    table = pd.DataFrame({"n": ["0.36", "2.5", "-7", "1e3"] * 10, "zip": ["02139", "10115", "00501", "02139"] * 10})
    scaler = LipschitzScaler(random_state=0).fit(table)
    assert (scaler.schema_["n"].kind, scaler.schema_["zip"].kind) == ("real", "categorical")
    back = scaler.inverse_transform(scaler.transform(table))
    assert back["zip"].tolist() == table["zip"].tolist()
    assert back["n"].head(4).tolist() == ["0.36", "2.5", "-7", "1000"]


@pytest.mark.parametrize("kind", ["categorical", "real"])
def test_declaring_dates_a_variable_is_a_clear_error(kind):
    table = pd.DataFrame({"d": pd.date_range("2020", periods=5)})
    with pytest.raises(TableError, match=r"Column 'd': got dates or times, but .* expects numbers or texts"):
        LipschitzScaler(kinds={"d": kind}).fit(table)
    with pytest.raises(TableError, match=r"Column 'd': got .*, but .* expects numbers"):
        LipschitzScaler(schema=Schema(columns=[Column(name="d", kind=kind)])).fit(table)


def test_classes_that_json_cannot_hold(tmp_path):
    table = pd.DataFrame({"c": pd.cut(np.linspace(0.0, 1.0, 40), 3)})
    scaler = LipschitzScaler(random_state=0).fit(table)
    scaled = scaler.transform(table)
    pd.testing.assert_frame_equal(scaler.inverse_transform(scaled), table)
    scaler.save(tmp_path)
    again = LipschitzScaler.load(tmp_path).inverse_transform(scaled)
    assert again["c"].astype(str).tolist() == table["c"].astype(str).tolist()


def test_a_number_and_a_text_that_look_alike_are_an_error():
    with pytest.raises(TableError, match="Column 'c': got the class 1 as a number and as a text"):
        LipschitzScaler().fit(pd.DataFrame({"c": pd.Series([1, "1", "x"] * 5, dtype=object)}))


def test_masked_arrays_are_missing_cells():
    values = np.ma.masked_equal([[1.5], [-999.0], [2.5]], -999.0)
    scaler = LipschitzScaler("std-none").fit(values)
    assert scaler.schema_["x0"].kind == "positive"
    assert np.isnan(scaler.transform(values)).ravel().tolist() == [False, True, False]


def test_settings_beside_a_schema_keep_its_markers_and_bounds():
    table = pd.DataFrame({"x": [1.5, -999.0, 2.5, 7.0]})
    schema = Schema.model_validate({"columns": [{"name": "x", "kind": "positive", "missing": [-999], "upper": 9.0}]})
    scaler = LipschitzScaler("lip-none", schema=schema, likelihoods={"x": "gamma"}).fit(table)
    assert scaler.schema_["x"].upper == 9.0
    assert scaler.schema_["x"].likelihood == "gamma"


@pytest.mark.parametrize("settings", [{"kinds": {"size": "ordinal"}}, {"likelihoods": {"size": "categorical"}}])
def test_settings_beside_a_schema_keep_its_classes_and_their_order(settings):
    table = pd.DataFrame({"size": ["low", "mid", "high"] * 3})
    declared = {"name": "size", "kind": "ordinal", "classes": ["low", "mid", "high", "huge"]}
    schema = Schema.model_validate({"columns": [declared]})
    found = LipschitzScaler("std-none", schema=schema, **settings).fit(table).schema_["size"]
    assert (found.kind, found.classes) == ("ordinal", ["low", "mid", "high", "huge"])


def test_bounds_are_a_setting_that_is_saved_and_compared(tmp_path):
    table = pd.DataFrame({"x": [1.5, 2.5, 7.0, 4.0]})
    scaler = LipschitzScaler("lip-none", bounds={"x": (0, 9)}, missing=[-999, {"x": [-1]}]).fit(table)
    scaler.save(tmp_path)
    again = LipschitzScaler.load(tmp_path)
    assert (again.bounds, again.missing) == ({"x": [0, 9]}, [-999, {"x": [-1]}])
    assert (again + scaler).schema_["x"].upper == 9.0
    with pytest.raises(TableError, match=r"bounds = .* in one scaler"):
        again + LipschitzScaler("lip-none", missing=[-999, {"x": [-1]}]).fit(table)
    with pytest.raises(TableError, match=r"Column 'x': got values from 1.5 to 7"):
        LipschitzScaler(bounds={"x": (2, None)}).fit(table)
    schema = Schema.model_validate({"columns": [{"name": "x", "kind": "positive", "upper": 5.0}]})
    assert LipschitzScaler(schema=schema, bounds={"x": (0, 9)}).fit(table).schema_["x"].upper == 9.0


def test_bounds_of_a_schema_hold_for_a_column_that_settings_make_a_count():
    schema = Schema.model_validate({"columns": [{"name": "x", "kind": "real", "upper": 9.0}]})
    with pytest.raises(TableError, match="Column 'x': got values from 1 to 12"):
        LipschitzScaler(schema=schema, kinds={"x": "count"}).fit(pd.DataFrame({"x": [1, 4, 12, 5, 6]}))


def test_declared_markers_count_in_parts_and_tables_to_come():
    """A part without a marker must not make it a number of the next."""
    x = np.random.default_rng(0).normal(size=(60, 1))
    x[45] = -999.0
    whole = LipschitzScaler("std-none", missing=[-999]).fit(x)
    first, second = (LipschitzScaler("std-none", missing=[-999]).fit(part) for part in (x[:30], x[30:]))
    parts = LipschitzScaler("std-none", missing=[-999]).partial_fit(x[:30]).partial_fit(x[30:])
    for scaler in (parts, first + second):
        np.testing.assert_allclose(scaler.summary_["scale"], whole.summary_["scale"])
    assert np.isnan(first.transform(x[45:46])).all()
    words = pd.DataFrame({"c": ["a", "b", "a", "b"]})
    scaler = LipschitzScaler("std-none", missing=["unknown"]).fit(words)
    assert scaler.transform(pd.DataFrame({"c": ["unknown", "a"]})).isna().any(axis=1).tolist() == [True, False]


def test_markers_and_the_papers_clip_are_settings():
    table = pd.DataFrame({"x": [1.5, -999.0, 0.0, 7.0]})
    scaler = LipschitzScaler("std-none", missing=[-999], zeros="clip").fit(table)
    assert scaler.schema_["x"].clip == 1e-30
    assert scaler.inverse_transform(scaler.transform(table))["x"].tolist()[2] == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": "count"}, "kinds = 'count', but expected a mapping"),
        ({"likelihoods": {"real": 3}}, "the likelihood 3"),
        ({"schema": {}}, "schema = {}"),
        ({"method": ["lip-gamma"]}, "the method"),
        ({"missing": -999}, "missing = -999"),
        ({"missing": "abc"}, "missing = 'abc'"),
        ({"missing": {"typo": [1]}}, "Column 'typo': got missing for it"),
        ({"zeros": "foo"}, "zeros = 'foo'"),
    ],
)
def test_settings_of_the_wrong_type_are_named(settings, message):
    with pytest.raises(TableError, match=message):
        LipschitzScaler(**settings).fit(mixed_table())


def test_a_loaded_scaler_knows_its_settings(tmp_path):
    settings = {
        "kinds": {"count": "real"},
        "target": np.int64(40),
        "learning_rate": np.float32(0.01),
        "random_state": 3,
    }
    LipschitzScaler(**settings).fit(mixed_table()).save(tmp_path)
    again = LipschitzScaler.load(tmp_path)
    assert again.kinds == {"count": "real"}
    assert (again.target, again.random_state) == (40, 3)
    table = mixed_table()
    pd.testing.assert_frame_equal(again.fit(table).transform(table), LipschitzScaler(**settings).fit_transform(table))


def test_labels_of_any_type_survive_saving(tmp_path):
    table = pd.DataFrame({0.5: np.linspace(-1, 1, 30), ("a", 1): np.linspace(0.5, 1, 30)})
    scaler = LipschitzScaler(random_state=0).fit(table)
    scaler.save(tmp_path)
    pd.testing.assert_frame_equal(LipschitzScaler.load(tmp_path).transform(table), scaler.transform(table))


def test_a_damaged_file_is_a_clear_error(tmp_path):
    scaler = LipschitzScaler().fit(mixed_table())
    scaler.save(tmp_path)
    content = json.loads((tmp_path / "scaler.json").read_text())
    for name in ("schema", "statistics", "settings", "scales"):
        broken = {key: value for key, value in content.items() if key != name}
        (tmp_path / "scaler.json").write_text(json.dumps(broken))
        with pytest.raises(TableError, match="edited or damaged"):
            LipschitzScaler.load(tmp_path)
        write_json(tmp_path / "scaler.json", {key: one for key, one in scaler.to_plain().items() if key != name})
        with pytest.raises(TableError, match=f"cannot read it: .*{name}"):
            LipschitzScaler.load(tmp_path)


def test_the_output_may_be_written_to():
    table = pd.DataFrame({"k": [1.0, 2.0, 7.0, 4.0] * 5, "x": np.linspace(-1, 1, 20)})
    scaled = LipschitzScaler("lip-none").fit_transform(table)
    scaled.loc[0, "k"] = 99.0
    assert table.loc[0, "k"] == 1.0


def test_passed_through_dates_keep_their_type_in_another_container():
    table = pd.DataFrame({"d": pd.date_range("2020", periods=5), "x": np.linspace(-1, 1, 5)})
    scaler = LipschitzScaler(kinds={"d": "ignore"}, passthrough="keep").set_output(transform="polars").fit(table)
    assert scaler.transform(table)["d"].dtype == pl.Datetime


def scaled_by_powers() -> object:
    """A log-normal of known spread 1, defined by hand: it is scaled by powers, so its methods look at log x."""
    return define_likelihood(
        "own-log-normal",
        support=Support(0.0),
        statistics=lambda x, xp: (xp.log(x), xp.log(x) ** 2),
        log_base=lambda x, xp: -xp.log(x) - 0.5 * np.log(2.0 * np.pi),
        log_partition=lambda n, xp: -(n[..., 0] ** 2) / (4.0 * n[..., 1]) - 0.5 * xp.log(-2.0 * n[..., 1]),
        factors=lambda scale, xp: (scale, scale**2),
        scale_data=lambda x, scale, xp: x**scale,
        natural_bounds=((-np.inf, np.inf), (-np.inf, 0.0)),
    )


@pytest.mark.parametrize("method", ["std-none", "max-none", "iqr-none", "lip-none"])
def test_an_own_likelihood_scaled_by_powers_is_scaled_as_the_log_normal(method):
    table = pd.DataFrame({"a": np.random.default_rng(0).lognormal(1.0, 0.4, 200)})
    own, ours = (
        LipschitzScaler(method, likelihoods={"a": one}, target=50.0).fit(table).summary_["scale"][0]
        for one in (scaled_by_powers(), "log-normal")
    )
    assert own == pytest.approx(ours, rel=1e-8)


@pytest.mark.parametrize("target", [1e300, 1e-300])
def test_a_target_out_of_reach_is_an_outcome(target):
    table = pd.DataFrame({"a": np.random.default_rng(0).gamma(2.0, size=50)})
    with pytest.warns(EvenlyWarning, match="out_of_range: 'a'|below_floor: 'a'"):
        LipschitzScaler("lip-none", likelihoods={"a": "gamma"}, target=target).fit(table)


def test_zeros_of_an_exponential_column_are_scaled_as_they_are():
    table = pd.DataFrame({"a": [0.0, 0.5, 1.0, 4.0, 0.0, 2.5]})
    scaler = LipschitzScaler("lip-none", likelihoods={"a": "exponential"}, target=9.0).fit(table)
    assert scaler.summary_["scale"][0] == pytest.approx(3.0 / table["a"].mean(), rel=1e-9)  # sqrt(target / mean^2)
    assert scaler.transform(table)["a"][0] == 0.0


def test_an_array_of_other_than_the_features_does_not_come_back():
    scaler = LipschitzScaler("std-none").fit(np.array([[0.5, -1.5], [2.0, 3.0], [1.0, 0.25]]))
    with pytest.raises(TableError, match="got 3 columns, but expected the 2 features of transform"):
        scaler.inverse_transform(np.zeros((4, 3)))


def test_the_key_of_an_array_is_a_columns_place_and_rows_keep_their_noise_in_any_order():
    table = np.column_stack([np.arange(40), np.tile([0, 3, 1, 2, 7], 8)])
    scaler = LipschitzScaler(kinds={0: "ignore", 1: "count"}, random_state=0).fit(table)
    scaled = scaler.transform(table, key=0)
    np.testing.assert_array_equal(scaler.transform(table[::-1], key=0), scaled[::-1])
    assert (scaler.transform(table[::-1]) != scaled[::-1]).any()


def test_the_largest_whole_number_comes_back_as_nearly_as_double_precision_has_it():
    table = pl.DataFrame({"a": [2**63 - 1, 1, 2, 5, 3, 4] * 4})
    scaler = LipschitzScaler("std-none", kinds={"a": "real"}).fit(table)
    back = scaler.inverse_transform(scaler.transform(table))["a"]
    assert back.dtype == pl.Int64
    assert back[0] == pytest.approx(2**63, rel=1e-12)
