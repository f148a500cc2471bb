"""Training: how long and with which sizes, as one object; and where its settings stood before, in the imputer."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from imputers import holed_table, make_imputer, numbers_table
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from evenly import Imputer, TableError, Training
from evenly.imputation.training import MOVED
from evenly.models import SPECS

# Each setting that was a parameter of the imputer, and the training that it stands for.
BEFORE: dict[str, tuple[Any, Training]] = {
    "epochs": (3, Training(epochs=3)),
    "batch_size": (16, Training(batch_size=16)),
    "learning_rate": (0.01, Training(learning_rate=0.01)),
    "n_networks": (2, Training(n_networks=2)),
    "masked_training": (True, Training(masked_training=True)),
    "n_draws": (5, Training(n_draws=5)),
    "target": (7.5, Training(target=7.5)),
    "bound": ("paper", Training(bound="paper")),
    "latent_size": (2, Training(sizes={"latent_size": 2})),
    "n_clusters": (4, Training(sizes={"n_clusters": 4})),
    "hidden_size": (8, Training(sizes={"hidden_size": 8})),
}
SMALL = Training(epochs=1, sizes={"latent_size": 1, "hidden_size": 4})


def test_the_settings_of_training_are_no_parameters():
    names = list(inspect.signature(Imputer).parameters)
    assert len(names) <= 21
    assert sorted(names) == sorted(Imputer().get_params(deep=False))
    assert set(BEFORE) == set(MOVED)
    assert not set(names) & set(MOVED)


@pytest.mark.parametrize("name", BEFORE)
def test_a_setting_given_to_the_imputer_warns_once_and_means_the_same(name):
    value, expected = BEFORE[name]
    for make in (lambda: Imputer(**{name: value}), lambda: Imputer().set_params(**{name: value})):
        with pytest.warns(
            FutureWarning, match=rf"Imputer\({name}=\.\.\.\) .* use Imputer\(training=evenly\.Training\("
        ) as caught:
            imputer = make()
        assert [(one.category, one.filename) for one in caught] == [(FutureWarning, __file__)]
        assert imputer.training.get_params() == expected.get_params()
        assert imputer.check_settings() is None


def test_settings_given_both_ways_are_joined_and_the_training_itself_stays():
    training = Training(epochs=5, batch_size=32, sizes={"latent_size": 3})
    with pytest.warns(FutureWarning, match=r"Imputer\(epochs=\.\.\., hidden_size=\.\.\., n_clusters=\.\.\.\)"):
        imputer = Imputer(training=training, epochs=2, hidden_size=9, n_clusters="auto")
    assert (
        imputer.training.get_params()
        == Training(epochs=2, batch_size=32, sizes={"latent_size": 3, "hidden_size": 9}).get_params()
    )
    assert training.get_params() == Training(epochs=5, batch_size=32, sizes={"latent_size": 3}).get_params()


def test_an_imputer_with_settings_of_before_imputes_the_same_bytes():
    table = numbers_table()
    with pytest.warns(FutureWarning):
        before = Imputer("vae", random_state=0, epochs=1, latent_size=1, hidden_size=4)
    now = Imputer("vae", training=SMALL, random_state=0)
    pd.testing.assert_frame_equal(before.fit_transform(table), now.fit_transform(table), check_exact=True)
    assert len(now.history_["elbo"]) == 1


def test_an_unknown_setting_is_an_error_at_once():
    for make in (Imputer, Training):
        with pytest.raises(TypeError, match="'epoch'"):
            make(epoch=3)
    with pytest.raises(TypeError, match="'epoch'"):
        Imputer(epochs=3, epoch=3)
    for setting in ("epoch", "training__epoch"):
        with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
            Imputer().set_params(**{setting: 3})


def test_a_clone_has_a_training_of_its_own_and_does_not_warn():
    with pytest.warns(FutureWarning):
        imputer = Imputer(epochs=3, hidden_size=4)
    again = clone(imputer)
    assert again.training is not imputer.training
    again.set_params(training__epochs=9)
    assert (imputer.training.epochs, again.training.epochs) == (3, 9)
    assert again.get_params()["training__sizes"] == {"hidden_size": 4}


def test_settings_of_a_training_are_parameters_of_the_imputer():
    imputer = Imputer().set_params(training__epochs=5, training__sizes={"hidden_size": 4}, model="vae")
    assert (imputer.model, imputer.training.epochs, imputer.training.sizes) == ("vae", 5, {"hidden_size": 4})
    assert imputer.get_params()["training__epochs"] == 5
    assert imputer.set_params(training=None).training is None
    assert "training__epochs" not in imputer.get_params()
    assert imputer.get_params(deep=False)["training"] is None


def test_a_grid_search_goes_over_epochs_by_the_imputers_score():
    table = numbers_table().to_numpy()
    training = clone(SMALL).set_params(learning_rate=0.05)
    steps = [("scale", StandardScaler()), ("impute", Imputer("vae", "std-none", training=training, random_state=0))]
    search = GridSearchCV(Pipeline(steps), {"impute__training__epochs": [0, 60]}, cv=2, error_score="raise")
    search.fit(table)
    before, after = search.cv_results_["mean_test_score"]
    assert after > before + 0.1  # it learns
    assert search.best_params_ == {"impute__training__epochs": 60}
    best = search.best_estimator_
    assert len(best["impute"].history_["elbo"]) == 60
    assert isinstance(best.score(table), float)
    assert best.score(table) == pytest.approx(
        np.mean([*best["impute"].log_likelihood(best[0].transform(table)).values()])
    )
    assert training.epochs == 1


@pytest.mark.parametrize("name", SPECS)
def test_auto_is_what_the_models_spec_says_and_what_is_given_counts(name):
    spec, auto = SPECS[name], Training()
    given = Training(epochs=7, batch_size=9, learning_rate=0.5, n_networks=4)
    for n_rows in (100, 10_000):
        assert auto.rate_of(spec) == spec.learning_rate
        assert auto.batch_size_of(spec, n_rows) == spec.budget.batch_size(n_rows)
        assert auto.networks_of(spec, n_rows) == spec.budget.networks(n_rows)
        epochs = auto.epochs_of(spec, n_rows, paper=False, streamed=False)
        assert epochs == spec.budget.epochs(n_rows, spec.budget.batch_size(n_rows))
        for paper in (False, True):
            assert given.epochs_of(spec, n_rows, paper=paper, streamed=False) == 7
        assert (given.rate_of(spec), given.batch_size_of(spec, n_rows), given.networks_of(spec, n_rows)) == (0.5, 9, 4)


def test_a_size_that_no_model_has_is_an_error():
    known = "column_size, hidden_size, latent_size, n_clusters"
    with pytest.raises(TableError, match=f"the size 'width', but expected one of {known}"):
        Imputer(training=Training(sizes={"width": 3})).fit(numbers_table())


def test_a_negative_number_of_draws_is_an_error() -> None:
    with pytest.raises(TableError, match=r"n_draws = -1.*whole number from 0"):
        make_imputer(n_draws=-1).fit(holed_table())
