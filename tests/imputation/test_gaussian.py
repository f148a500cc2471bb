"""The Gaussian expert: conditional expectations, fits to rows with missing cells, its weight in predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer
from scipy.stats import multivariate_normal, norm, rankdata

from evenly import Imputer, LipschitzScaler
from evenly.imputation import gaussian as gaussian_expert
from evenly.imputation.calibration import Calibration
from evenly.imputation.calibration_choice import ValidationCells
from evenly.imputation.columns import describe, tilt
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.experts import NO_EXPERTS, Experts
from evenly.imputation.gaussian import (
    Gaussian,
    expect,
    feature_owners,
    fit_gaussian,
    gaussian_features,
    predict_cells,
)
from evenly.imputation.stacking import STACKING_STEPS, STACKING_WEIGHTS, choose_stacking_weights
from evenly.predictive import BinnedPredictive
from evenly.predictive.bins import make_bins

RNG = np.random.default_rng


def some_normal(width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(1)
    roots = rng.normal(size=(width, width)) + np.eye(width)
    return rng.normal(size=width), roots @ roots.T


def with_gaps(table: np.ndarray, share: float = 0.3) -> np.ndarray:
    return np.where(RNG(2).random(table.shape) < share, np.nan, table)


def test_expectations_are_those_of_the_conditional_normal():
    mean, covariance = some_normal()
    table = with_gaps(RNG(3).multivariate_normal(mean, covariance, 40), 0.5)
    table[0] = np.nan
    means, stds = expect(Gaussian(mean, np.linalg.inv(covariance)), table)
    for row, expected, std in zip(table, means, stds, strict=True):
        gone = np.isnan(row)
        assert np.isnan(expected[~gone]).all()
        assert np.isnan(std[~gone]).all()
        known = covariance[np.ix_(~gone, ~gone)]
        lines = np.linalg.solve(known, covariance[np.ix_(~gone, gone)]).T
        np.testing.assert_allclose(expected[gone], mean[gone] + lines @ (row - mean)[~gone], rtol=1e-8, atol=1e-10)
        left = covariance[np.ix_(gone, gone)] - lines @ covariance[np.ix_(~gone, gone)]
        np.testing.assert_allclose(std[gone], np.sqrt(np.diag(left)), rtol=1e-8)


def test_the_prediction_of_a_row_does_not_depend_on_the_rows_around_it():
    mean, covariance = some_normal(9)
    table = with_gaps(RNG(3).multivariate_normal(mean, covariance, 300))
    gaussian = Gaussian(mean, np.linalg.inv(covariance))
    whole = expect(gaussian, table)
    for rows in (slice(7, 8), slice(3, 140)):
        for some, every in zip(expect(gaussian, table[rows]), whole, strict=True):
            np.testing.assert_array_equal(some, every[rows])


def test_of_complete_rows_the_covariance_is_that_of_the_table_and_the_prior():
    table = RNG(0).normal(size=(50, 3)) @ RNG(1).normal(size=(3, 3))
    gaussian = fit_gaussian(table, prior=2.0)
    mean = table.sum(0) / 52.0
    away = table - mean
    np.testing.assert_allclose(gaussian.mean, mean)
    np.testing.assert_allclose(np.linalg.inv(gaussian.precision), (away.T @ away + 2.0 * np.eye(3)) / 52.0)


def test_rows_with_missing_cells_are_fitted_to_the_most_likely_normal():
    mean, covariance = np.zeros(4), np.array([[1, 0.9, 0.5, 0], [0.9, 1, 0.4, 0], [0.5, 0.4, 1, 0.3], [0, 0, 0.3, 1]])
    table = with_gaps(RNG(0).multivariate_normal(mean, covariance, 800), 0.4)
    table = table[~np.isnan(table).all(1)]

    def likelihood(mean: np.ndarray, covariance: np.ndarray) -> float:
        found = 0.0
        for row in table:
            seen = ~np.isnan(row)
            found += multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
        return found

    gaussian = fit_gaussian(table, prior=1e-6)
    fitted = np.linalg.inv(gaussian.precision)
    best = likelihood(gaussian.mean, fitted)
    assert best > likelihood(mean, covariance)
    for change in (0.95, 1.05):  # and nothing near by is better
        assert best > likelihood(gaussian.mean, fitted * change)
    for axis in np.eye(4):
        for sign in (-0.05, 0.05):
            assert best > likelihood(gaussian.mean + sign * axis, fitted)


def test_features_are_distances_places_and_classes():
    table = pd.DataFrame({"x": [1.0, 1.0, 3.0, 9.0, np.nan] * 20, "k": ["a", "b", "c", "a", None] * 20})
    scaler = LipschitzScaler("lip-none", kinds={"x": "real"}, random_state=0).fit(table)
    x, codes = table["x"].to_numpy(), table["k"].map({"a": 0.0, "b": 1.0, "c": 2.0}).to_numpy()
    specs = [describe(column, values, binned=True) for column, values in zip(scaler.columns_, (x, codes), strict=True)]
    encoded = EncodedTable(tuple(map(EncodedColumn, specs, (x, codes))), lay_out(specs))
    found = gaussian_features(encoded)
    assert feature_owners(encoded).tolist() == [0, 0, 1, 1, 1]
    seen = ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(found), ~seen[:, None].repeat(5, 1))
    np.testing.assert_allclose(found[seen, 0], (x[seen] - x[seen].mean()) / x[seen].std())
    ranks = (rankdata(x[seen]) - 0.5) / seen.sum()
    np.testing.assert_allclose(found[seen, 1], norm.ppf(ranks))
    assert (np.argmax(found[seen, 2:], axis=1) == codes[seen]).all()


def test_normals_of_a_normal_column_have_their_own_shares_in_its_bins():
    x = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    bins = make_bins(x)
    found = tilt(bins, np.array([0.4, -1.0, np.nan]), np.array([0.5, 0.9, 1.0]), 0.0, 1.0)
    for row, mean, std in zip(found, (0.4, -1.0), (0.5, 0.9), strict=False):
        np.testing.assert_allclose(row, np.diff(norm(mean, std).cdf(bins.edges), prepend=0.0, append=1.0), atol=2e-3)
    assert np.isnan(found[2]).all()


def test_a_column_of_zeros_keeps_them():
    rng = RNG(0)
    x = np.where(rng.random(2_000) < 0.7, 0.0, rng.exponential(size=2_000))
    bins = make_bins(x)
    found = tilt(bins, np.zeros(1), np.ones(1), x.mean(), x.std())
    assert found.sum() == pytest.approx(1.0)
    assert found[0, 0] == pytest.approx(0.7, abs=0.05)


def held_column(noise_of_network: float, noise_of_expert: float) -> ValidationCells:
    """Validation cells that a network and the Gaussian expert each predict up to some noise."""
    rng = RNG(0)
    x = rng.normal(size=400)
    fitted = LipschitzScaler("lip-none", random_state=0).fit(x[:, None]).columns_[0]
    spec = describe(fitted, x, binned=True)
    normal = (x + noise_of_network * rng.normal(size=400))[:, None]
    naturals = [normal, np.zeros((400, len(spec.bins)))]
    means, shares = x + noise_of_expert * rng.normal(size=400), np.tile(spec.bins.share, (400, 1))
    return ValidationCells(spec, x, naturals, Experts(BinnedPredictive(spec.column, spec.bins, means, shares)))


def weights_of(columns: list[ValidationCells]) -> list[float]:
    return [one.stacking_weight for one in choose_stacking_weights(columns)]


def test_the_stacking_weight_prefers_the_better_prediction():
    assert weights_of([held_column(2.0, 0.05)]) == [1.0]
    # The bins of the network know nothing here, so that its mean is half of the normal's: still better than noise.
    assert weights_of([held_column(0.05, 5.0)])[0] <= 1.0 / STACKING_STEPS


def test_a_column_with_few_validation_cells_follows_the_others():
    good, few = held_column(2.0, 0.05), held_column(0.05, 5.0)
    spec, x, naturals, experts = few
    few = ValidationCells(spec, x[:5], [one[:5] for one in naturals], experts.take(slice(5)))
    assert weights_of([good, few]) == [1.0, 1.0]
    assert weights_of([good, few._replace(experts=NO_EXPERTS)]) == [1.0, 0.0]


@pytest.mark.parametrize(("of_gaussian", "of_trees"), [(2.0, 0.05), (0.05, 2.0)])
def test_the_better_expert_gets_the_weight(of_gaussian, of_trees):
    column, other = held_column(2.0, of_gaussian), held_column(2.0, of_trees)
    both = column._replace(experts=Experts(column.experts.gaussian, other.experts.gaussian))
    (chosen,) = choose_stacking_weights([both])
    expected = (0.0, 1.0) if of_trees < of_gaussian else (1.0, 0.0)
    assert (chosen.stacking_weight, chosen.tree_weight) == expected


def test_weights_are_those_of_the_least_loss_of_stacked_predictions():
    """The loss is computed from each prediction alone; here from the stacked ones."""
    column, other = held_column(0.6, 0.5), held_column(2.0, 0.7)
    noise = RNG(5).normal(size=400)
    trees = replace(other.experts.gaussian, means=column.truth + 0.6 * noise)
    both = column._replace(experts=Experts(column.experts.gaussian, trees))
    (chosen,) = choose_stacking_weights([both])

    def loss(gaussian: float, forest: float, kernel: float = 0.0) -> float:
        weights = {"stacking_weight": gaussian, "tree_weight": forest, "kernel_weight": kernel}
        found = both.predict(Calibration(**weights)).mean()
        return float(((found - both.truth) ** 2).mean())

    assert min(chosen.stacking_weight, chosen.tree_weight) > 0.0
    best = loss(chosen.stacking_weight, chosen.tree_weight)
    assert best <= min(loss(*weights) for weights in STACKING_WEIGHTS if not weights[2]) * (1.0 + 1e-9)


def test_where_the_expert_predicts_nothing_the_model_stays_as_it_is():
    spec, _, naturals, experts = held_column(0.1, 0.1)
    expert = experts.gaussian
    half = Calibration(stacking_weight=0.5)
    alone = spec.predict(naturals, half)
    expert.means[:100], expert.probabilities[:100] = np.nan, np.nan
    mixed = spec.predict(naturals, half, experts)
    for name in ("mean", "probabilities"):
        np.testing.assert_array_equal(mixed.parameters[name][:100], alone.parameters[name][:100])
        assert (mixed.parameters[name][100:] != alone.parameters[name][100:]).any()


def linear_table(n: int = 150) -> tuple[pd.DataFrame, np.ndarray, Gaussian]:
    """Columns that are linear in three latent ones up to noise, and a class; a fifth hidden; their own normal."""
    rng = RNG(0)
    z, weights = rng.normal(size=(n, 3)), rng.normal(size=(3, 8))
    table = pd.DataFrame(z @ weights + 0.1 * rng.normal(size=(n, 8)), columns=list("abcdefgh"))
    table["k"] = np.where(z[:, 0] > 0.0, "yes", "no")
    normal = Gaussian(np.zeros(8), np.linalg.inv(weights.T @ weights + 0.01 * np.eye(8)))
    return table, rng.random(table.shape) < 0.2, normal


@pytest.mark.more
def test_a_short_table_of_linear_columns_is_imputed_nearly_as_well_as_by_their_own_normal(tmp_path):
    table, hidden, normal = linear_table()
    shown = table.mask(hidden)
    imputer = make_imputer(epochs=3, hidden_size=8, n_networks=1, random_state=0).fit(shown)
    found = imputer.transform(shown)
    truth, gone = table.iloc[:, :8].to_numpy(float), hidden[:, :8]

    def error(values: np.ndarray) -> float:
        return float(np.sqrt((((values - truth)[gone]) ** 2).mean()))

    by_knowing = error(expect(normal, np.where(gone, np.nan, truth))[0])
    assert error(found.iloc[:, :8].to_numpy(float)) < 1.3 * by_knowing < 0.3 * truth[gone].std()
    again = tmp_path / "imputer.safetensors"
    imputer.save(again)
    pd.testing.assert_frame_equal(Imputer.load(again).transform(shown), found, check_exact=True)
    pd.testing.assert_frame_equal(imputer.transform(shown.iloc[30:37]), found.iloc[30:37], check_exact=True)


@pytest.mark.more
def test_a_table_with_very_many_features_is_left_to_the_network(monkeypatch):
    table, hidden, _ = linear_table()
    monkeypatch.setattr(gaussian_expert, "MOST_FEATURES", 10)
    imputer = make_imputer(epochs=1, hidden_size=4, n_networks=1, random_state=0).fit(table.mask(hidden))
    assert imputer.ensemble_.gaussian is None
    assert not imputer.transform(table.mask(hidden)).isna().to_numpy().any()


@pytest.mark.more
def test_classes_predicted_by_the_gaussian_expert_are_probabilities():
    table, hidden, _ = linear_table(400)
    shown = table.mask(hidden)
    imputer = make_imputer(epochs=1, hidden_size=4, n_networks=1, random_state=0).fit(shown)
    assert imputer.ensemble_.gaussian is not None
    found = predict_cells(imputer.ensemble_.gaussian, imputer._open(shown).encoded)
    sure = found[8].probability
    gone = hidden[:, 8]
    assert np.isnan(sure[~gone]).all()
    assert ((sure[gone] > 0.0) & (sure[gone] < 1.0)).all()
    assert ((sure[gone] > 0.5) == (table["k"] == "yes")[gone]).mean() > 0.85
