"""Imputer as people use it: a table in, the same table without missing cells out, the same bytes for a seed."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from imputers import EACH, SMALL, TABLE, make_imputer, numbers_table, quick
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from evenly import Imputer, TableError, Training

pytestmark = pytest.mark.usefixtures("small_chunks")


# --- what every model of the registry keeps ---


def test_observed_cells_and_types_stay_and_no_cell_is_missing(fitted):
    full = fitted.transform(TABLE)
    assert full.dtypes.equals(TABLE.dtypes)
    assert not full.isna().any(axis=None)
    pd.testing.assert_frame_equal(full.where(TABLE.notna()), TABLE, check_exact=True)
    assert TABLE.isna().any().all()


def test_imputed_cells_lie_where_the_observed_ones_do(fitted):
    for full in (fitted.transform(TABLE), *fitted.sample(TABLE, 3)):
        for name in ("real", "positive", "count"):
            assert full[name].between(TABLE[name].min(), TABLE[name].max()).all()
        assert set(full["class"]) == {"a", "b", "c"}


def test_fit_transform_is_fit_and_transform_and_a_seed_repeats_it_to_the_byte(fitted):
    again = make_imputer(fitted.model, **SMALL).fit_transform(TABLE)
    pd.testing.assert_frame_equal(again, fitted.transform(TABLE), check_exact=True)
    other = make_imputer(fitted.model, **SMALL | {"random_state": 1}).fit_transform(TABLE)
    assert other.equals(again) == (fitted.model == "marginal")  # nothing is drawn there


def test_a_row_does_not_depend_on_the_rows_around_it(fitted):
    numbers = ["real", "positive"]
    full = fitted.transform(TABLE)
    order = np.random.default_rng(3).permutation(len(TABLE))
    for rows in (order, order[:7], order[:1]):
        part = fitted.transform(TABLE.iloc[rows])
        np.testing.assert_allclose(part[numbers], full[numbers].iloc[rows], rtol=1e-5)
        assert part.drop(columns=numbers).equals(full.drop(columns=numbers).iloc[rows])


def test_samples_differ_keep_observed_cells_and_are_repeatable(fitted):
    drawn = fitted.sample(TABLE, 3)
    assert len(drawn) == 3
    for one in drawn:
        assert one.dtypes.equals(TABLE.dtypes)
        assert not one.isna().any(axis=None)
        pd.testing.assert_frame_equal(one.where(TABLE.notna()), TABLE, check_exact=True)
    assert not drawn[0].equals(drawn[1])
    assert not drawn[1].equals(drawn[2])
    for one, other in zip(drawn, fitted.sample(TABLE, 4), strict=False):
        assert one.equals(other)


def test_every_epoch_is_in_the_history(fitted):
    n_epochs = 0 if fitted.model == "marginal" else 2
    assert fitted.history_["elbo"].shape == (n_epochs,)
    assert list(fitted.history_["log_likelihood"]) == list(TABLE) == list(fitted.baseline_)
    for curve in fitted.history_["log_likelihood"].values():
        assert curve.shape == (n_epochs,)
        assert np.isfinite(curve).all()


# --- settings and conventions ---


def test_masked_is_the_default_and_the_papers_model_that_of_its_preset():
    assert Imputer().model_name == "masked"
    assert Imputer(preset="paper").model_name == "vae"


def test_init_only_stores():
    training = Training(epochs=-3, target="x")
    settings = {"model": "forest", "training": training, "kinds": {"a": "real"}, "missing": [-9]}
    imputer = Imputer(**settings)
    assert {name: imputer.get_params()[name] for name in settings} == settings
    assert imputer.get_params()["kinds"] is settings["kinds"]
    again = clone(imputer)
    assert again.training.get_params() == training.get_params()
    assert again.training is not training
    assert imputer.set_params(training__epochs=5).training.epochs == 5
    assert Imputer().set_params(training__epochs=5).training.epochs == 5
    with pytest.raises(NotFittedError):
        Imputer().transform([[1.0]])
    for call in ("sample", "distribution", "score", "predict_cells"):
        with pytest.raises(NotFittedError):
            getattr(Imputer(), call)([[1.0]])


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "forest"},
        {"method": "lip"},
        {"estimate": "best"},
        {"preset": "pap"},
        {"epochs": -1},
        {"epochs": 2.5},
        {"epochs": "many"},
        {"learning_rate": 0.0},
        {"learning_rate": np.nan},
        {"learning_rate": "fast"},
        {"batch_size": 0},
        {"batch_size": "big"},
        {"n_networks": 0},
        {"latent_size": 0},
        {"n_clusters": 1.5},
        {"hidden_size": None},
        {"bound": "tight"},
        {"target": -1.0},
        {"kinds": {"typo": "real"}},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_named(settings):
    imputer = make_imputer(**settings)
    (name,) = settings
    with pytest.raises(TableError, match="typo" if name == "kinds" else name):
        imputer.fit(numbers_table())
    assert not hasattr(imputer, "scaler_")


def test_a_number_of_samples_that_makes_no_sense_is_named():
    with pytest.raises(TableError, match="n = 0"):
        quick().fit(numbers_table()).sample(numbers_table(), 0)


def test_a_failed_fit_changes_nothing():
    table = numbers_table()
    imputer = quick().fit(table)
    expected = imputer.transform(table)
    with pytest.raises(TableError):
        imputer.fit(table.assign(b=np.inf))
    pd.testing.assert_frame_equal(imputer.transform(table), expected, check_exact=True)


def test_works_in_a_pipeline_and_a_column_transformer():
    table = numbers_table()
    reduced = make_pipeline(quick(), LinearRegression()).fit(table, np.arange(30)).predict(table)
    assert np.isfinite(reduced).all()
    parts = ColumnTransformer([("impute", quick(), ["a", "b"])], remainder="drop")
    full = parts.set_output(transform="pandas").fit_transform(table.assign(other="x"))
    assert list(full) == ["impute__a", "impute__b"]
    assert not full.isna().any(axis=None)


def test_pickles_and_clones():
    table = numbers_table()
    imputer = quick().fit(table)
    again = pickle.loads(pickle.dumps(imputer))
    pd.testing.assert_frame_equal(again.transform(table), imputer.transform(table), check_exact=True)
    assert not hasattr(clone(imputer), "scaler_")


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_scikit_learns_estimator_checks_pass():
    """Without training, which every shape of table would compile anew."""
    results = estimator_checks.check_estimator(quick(hidden_size=2, random_state=None), on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    # The one expected failure: it subtracts scores, and ours are a dict, one of each column.
    assert failed == {}
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= {"check_array_api_input"}


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
@pytest.mark.parametrize("model", EACH)
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_transformer_general,
        estimator_checks.check_methods_sample_order_invariance,
        estimator_checks.check_methods_subset_invariance,
    ],
)
def test_a_trained_model_passes_the_checks_that_depend_on_it(model, check):
    check("Imputer", quick(model=model, epochs=1, hidden_size=2, n_clusters=2, latent_size=1))
