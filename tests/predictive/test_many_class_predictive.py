"""Distributions over many classes: honest probabilities, and values that are classes of the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenly import Imputer, compare_imputers, pool, try_imputer
from evenly.predictive import ManyClassesPredictive
from evenly.tables.schema import Column

N = 130
TOWNS = Column(name="town", kind="categorical", classes=[f"town {i}" for i in range(N)])
SHARES = np.append(np.full(100, 0.008), 0.2 * np.arange(30.0, 0.0, -1.0) / 465.0)


def cells(n: int = 3) -> ManyClassesPredictive:
    likely = np.random.default_rng(0).dirichlet(np.full(101, 0.1), n)
    return ManyClassesPredictive.of(TOWNS, likely, SHARES)


def every_class(found: ManyClassesPredictive) -> np.ndarray:
    """Return the probability of each of the classes, rows x classes, by asking for one after the other."""
    n = len(found.probabilities)
    return np.exp(np.column_stack([found.log_prob(np.full(n, float(code))) for code in range(N)]))


def with_evidence() -> ManyClassesPredictive:
    share = np.array([0.0, 0.5, 0.8])
    weights = share[:, None] * np.array([0.6, 0.3, 0.1])
    return cells().with_values(share, weights, np.array([[3.0, 4.0, 5.0], [120.0, 7.0, 120.0], [120.0, 125.0, 101.0]]))


@pytest.mark.parametrize("make", [cells, with_evidence])
def test_probabilities_of_all_classes_add_up_to_one(make):
    found = make()
    floored = (found.probabilities < 1e-6).sum(1) * 1e-6  # probabilities are cut there before their logarithm
    np.testing.assert_allclose(every_class(found).sum(1), 1.0, atol=floored.max() + 1e-9)


@pytest.mark.parametrize("make", [cells, with_evidence])
def test_the_mode_is_the_most_probable_of_all_classes(make):
    found = make()
    np.testing.assert_array_equal(found.mode(), every_class(found).argmax(1))


@pytest.mark.parametrize("make", [cells, with_evidence])
def test_shifted_outcomes_move_every_class_of_the_rest_alike(make):
    found = make()
    log_odds = np.random.default_rng(3).normal(size=(3, 101))
    expected = every_class(found) * np.exp(np.column_stack([log_odds[:, :100], np.repeat(log_odds[:, 100:], 30, 1)]))
    floored = (found.probabilities < 1e-6).sum() * 1e-5
    np.testing.assert_allclose(
        every_class(found.tilted(log_odds)), expected / expected.sum(1, keepdims=True), atol=floored + 1e-9
    )


@pytest.mark.parametrize("make", [cells, with_evidence])
def test_draws_are_as_frequent_as_probable(make):
    found, rng = make(), np.random.default_rng(1)
    drawn = found.take(np.repeat(np.arange(3), 20_000)).sample(rng).reshape(3, -1)
    shares = np.stack([np.bincount(one.astype(int), minlength=N) for one in drawn]) / drawn.shape[1]
    np.testing.assert_allclose(shares, every_class(found), atol=0.015)


def test_cells_of_neighbours_are_mixed_in_class_by_class():
    before, after = every_class(cells()), every_class(with_evidence())
    expected = 0.5 * before[1]
    expected[[120, 7]] += 0.5 * np.array([0.7, 0.3])
    np.testing.assert_allclose(after[1], expected, atol=1e-6)
    assert after[2].argmax() == 120


def test_shifted_log_odds_multiply_the_odds_of_each_class():
    log_odds = np.zeros(N)
    log_odds[[2, 103, 120]] = [1.0, 2.0, -1.0]
    for found in (cells(), with_evidence()):
        wanted = every_class(found) * np.exp(log_odds)
        wanted /= wanted.sum(1, keepdims=True)
        np.testing.assert_allclose(every_class(found.tilted(log_odds)), wanted, atol=2e-5)


def test_missing_values_rows_and_tables():
    found = with_evidence()
    assert np.isnan(found.log_prob(np.array([np.nan, 0.0, 120.0]))).tolist() == [True, False, False]
    again = found.take([0]).append([found.take([1, 2])])
    np.testing.assert_array_equal(again.log_prob(np.full(3, 120.0)), found.log_prob(np.full(3, 120.0)))
    frame = found.to_frame()
    assert list(frame.columns)[-2:] == ["town 99", "30 other classes"]
    np.testing.assert_allclose(frame.sum(axis=1), 1.0)
    mixed = cells().mix([cells()])
    np.testing.assert_allclose(mixed.probabilities, cells().probabilities)


# --- imputers -------------------------------------------------------------------------------------------------------


def table_of_towns(n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    code = np.concatenate([np.arange(130), rng.geometric(0.03, n - 130) % 130])
    table = pd.DataFrame({"town": [f"town {one}" for one in code], "x": rng.normal(size=n).round(2)})
    return table.mask(rng.random(table.shape) < 0.1)


def test_the_marginal_model_imputes_the_most_frequent_town_and_goes_on_after_loading(tmp_path):
    table = table_of_towns()
    imputer = Imputer("marginal", random_state=0).fit(table)
    full = imputer.transform(table)
    gone = table["town"].isna()
    assert (full["town"][gone] == table["town"].mode()[0]).all()
    assert (full["town"][~gone] == table["town"][~gone]).all()
    drawn = pd.concat(imputer.sample(table, n=20))["town"]
    assert set(drawn) <= set(table["town"].dropna())
    rare = set(table["town"].value_counts().index[100:])
    assert 0.01 < drawn[np.tile(gone, 20)].isin(rare).mean() < 0.2
    imputer.save(tmp_path)
    pd.testing.assert_frame_equal(Imputer.load(tmp_path).transform(table), full)
    likely = imputer.log_likelihood(table)["town"]
    shares = table["town"].value_counts(normalize=True)
    assert likely == pytest.approx(float((shares * np.log(shares)).sum()), abs=1e-6)


def test_trials_and_peers_score_towns_by_their_error_rate():
    table = table_of_towns(700)
    trials = compare_imputers([Imputer("marginal", random_state=0), "knn"], table, random_state=0)
    first, second = (next(one for one in trial.columns if one.column == "town") for trial in trials)
    assert first.measure == second.measure == "error rate"
    mode = 1.0 - table["town"].value_counts(normalize=True).max()
    assert first.error == pytest.approx(mode, abs=0.1)


@pytest.mark.more
def test_a_trained_imputer_saves_its_means_and_pools(tmp_path):
    from evenly import Training

    table = table_of_towns()
    short = Training(epochs=8, n_networks=2, sizes={"hidden_size": 16})
    imputer = Imputer(training=short, random_state=0).fit(table)
    full = imputer.transform(table)
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    pd.testing.assert_frame_equal(again.transform(table), full)
    np.testing.assert_array_equal(again.ensemble_.levels.means[0], imputer.ensemble_.levels.means[0])
    assert not pd.concat(imputer.sample(table, n=2)).isna().any(axis=None)
    low, high = imputer.interval(table)
    assert (low["town"] == high["town"]).all()
    assert {one.column for one in try_imputer(imputer, table, random_state=0).columns} == {"town", "x"}
    means = [(one["x"].mean(), one["x"].std() / np.sqrt(len(one))) for one in imputer.sample(table, n=3)]
    assert np.isfinite(pool(means).estimate).all()
    odd = table.head(3).assign(town=["town 1", "nowhere", None])
    with pytest.warns(match="classes not seen in fit, treated as missing: 'nowhere'"):
        found = again.transform(odd)
    assert found["town"].tolist()[:2] == ["town 1", "nowhere"]
