"""Predictions of a fitted ensemble: estimates, intervals and samples, of one network or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from imputers import MASKED_VAE, hide, holed_table, linked_table, make_imputer
from scipy import stats

from evenly import Imputer, TableError, imputation_error
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.predictor import central_draws, count_draws
from evenly.models.bbvi import Trained


@pytest.fixture(scope="module")
def learned() -> tuple[Imputer, pd.DataFrame, pd.DataFrame, np.ndarray]:
    table = linked_table()
    holed, hidden = hide(table)
    imputer = make_imputer(epochs=60, hidden_size=64, n_networks=1, random_state=0).fit(holed)
    return imputer, table, holed, hidden


def test_it_learns_how_columns_depend_on_each_other(learned):
    imputer, table, holed, hidden = learned
    errors = imputation_error(table, imputer.transform(holed), hidden).set_index("column")
    # What is left of `double` given x is 0.3 of 2; x is missing in a fifth of the rows, where little is known.
    assert errors.loc["double", "normalized"] < 0.6
    assert errors.loc["x", "normalized"] < 0.6
    assert errors.loc["sign", "normalized"] < 0.6
    assert (errors["normalized"] < 1.02).all()


def test_a_row_without_any_cell_is_filled(learned):
    imputer, _, holed, _ = learned
    empty = pd.DataFrame({name: pd.Series([None], dtype=holed[name].dtype) for name in holed})
    full = imputer.transform(empty)
    assert not full.isna().any(axis=None)
    assert not imputer.sample(empty, 1)[0].isna().any(axis=None)


def test_only_missing_cells_are_predicted_to_the_same_bytes(learned, monkeypatch):
    """Large tables have few incomplete rows, and few gaps in each: what is known must cost nothing."""
    imputer, _, holed, _ = learned
    opened = imputer._open(holed)
    assert 0 < opened.missing.sum() < 0.5 * opened.missing[opened.rows].size
    every = imputer._predictor().choose(opened.encoded, np.ones_like(opened.missing), [imputer._choose])[0]
    predicted = note_rows(monkeypatch, imputer.ensemble_.modelled)
    some = imputer._predictor().choose(opened.encoded, opened.missing, [imputer._choose])[0]
    assert sum(predicted) == 2 * opened.missing.sum()  # by the networks alone, for the trees, and by all together
    for one, own, cells in zip(some, every, opened.missing.T, strict=True):
        assert one[cells].tobytes() == own[cells].tobytes()
        assert np.isnan(one[~cells]).all()


def test_rows_without_a_gap_do_not_reach_the_network(learned, monkeypatch):
    imputer, table, holed, _ = learned
    expected, rows = imputer.transform(holed), np.flatnonzero(holed.isna().any(axis=1))
    calls = []
    predict = Trained.predict_natural
    monkeypatch.setattr(
        Trained, "predict_natural", lambda self, *given, **more: (calls.append(1), predict(self, *given, **more))[1]
    )
    pd.testing.assert_frame_equal(imputer.transform(table), table, check_exact=True)
    assert not calls
    apart = imputer.transform(holed.iloc[rows])
    assert calls == [1] * -(-len(rows) // imputer.ensemble_.chunk_size)
    pd.testing.assert_frame_equal(apart, expected.iloc[rows], check_exact=True)


def note_rows(monkeypatch: pytest.MonkeyPatch, specs: Sequence[ModelledColumn]) -> list[int]:
    """Return a list to which every prediction of a column adds its number of cells."""
    noted = list[int]()
    for kind in {type(one) for one in specs}:
        predict = kind.predict

        def count(spec, naturals, *more, predict=predict):
            noted.append(len(naturals[0]))
            return predict(spec, naturals, *more)

        monkeypatch.setattr(kind, "predict", count)
    return noted


@pytest.mark.more
def test_several_networks_are_averaged(learned):
    _, _, holed, _ = learned
    imputer = make_imputer(epochs=1, hidden_size=8, n_networks=3, random_state=0).fit(holed)
    assert len(imputer.ensemble_.networks) == 3
    ensemble, alone = replace(imputer.ensemble_, gaussian=None), []  # experts read what all networks expect together
    imputer.ensemble_ = ensemble
    together = imputer.distribution(holed)["sign"].probability
    for network in ensemble.networks:
        imputer.ensemble_ = replace(ensemble, networks=[network])
        alone.append(imputer.distribution(holed)["sign"].probability)
    np.testing.assert_allclose(together, np.mean(alone, 0), rtol=1e-6)
    assert not np.allclose(alone[0], alone[1])


def test_intervals_cover_as_many_cells_as_they_claim(learned):
    imputer, table, holed, hidden = learned
    for level in (0.5, 0.9):
        low, high = imputer.interval(holed, level)
        held = []
        for name in ("x", "double"):  # continuous: an atom would be covered more often than claimed
            cells = hidden[:, list(table).index(name)]
            held.append(table[name].between(low[name], high[name])[cells].mean())
            assert (low[name] <= high[name]).all()
        assert np.mean(held) == pytest.approx(level, abs=0.08)
        assert low["sign"].equals(high["sign"])
        pd.testing.assert_frame_equal(low.where(holed.notna()), holed)
    with pytest.raises(TableError, match="level"):
        imputer.interval(holed, 1.5)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.99, 0.998])
def test_one_more_draw_lies_between_central_draws_as_often_as_claimed(level):
    rng, n_cells = np.random.default_rng(0), 20_000
    n_draws = count_draws(level)
    # Uniform draws: what lies between the ends is their distance.
    held = np.mean(
        [np.subtract(*central_draws(rng.random((n_draws, 200)), level)[::-1]).mean() for _ in range(n_cells // 200)]
    )
    # At most one of the n + 1 places is too many at each end.
    assert level - 0.001 <= held <= level + 2.0 / (n_draws + 1) + 0.001


@pytest.mark.more
def test_intervals_of_the_papers_models_come_from_draws():
    holed, _ = hide(linked_table(100))
    imputer = make_imputer("mixture", "std-none", epochs=2, random_state=0).fit(holed)
    low, high = imputer.interval(holed, 0.8)
    gone = holed["x"].isna()
    assert (low["x"] <= high["x"]).all()
    assert (low["x"] < high["x"])[gone].mean() > 0.9
    assert low["sign"].equals(high["sign"])


def test_samples_keep_how_columns_depend_on_each_other(learned):
    """Drawn one after the other, a row's missing cells go together, as the columns do; drawn each alone they do not."""
    imputer, _, holed, _ = learned
    both = holed.copy()
    both.loc[:399, ["x", "double"]] = np.nan
    drawn = imputer.sample(both, 2)
    for one in drawn:
        slope = stats.linregress(one["x"][:400], one["double"][:400]).slope
        assert slope == pytest.approx(2.0, abs=0.5)
        assert one["visits"].eq(one["visits"].round()).all()
    assert not drawn[0].equals(drawn[1])


@pytest.mark.more
def test_a_prediction_is_the_average_over_draws_of_the_latent() -> None:
    """The share of a class among many sampled tables is its probability, up to the noise of so many draws."""
    table, n = holed_table(60), 600
    gone = table["c"].isna().to_numpy()
    imputer = make_imputer(method="lip-none", epochs=100, n_draws=400, **MASKED_VAE).fit(table)
    averaged = imputer.distribution(table)["c"].probability[gone]
    yes = np.mean([(one["c"] == "yes").to_numpy()[gone] for one in imputer.sample(table, n)], axis=0)
    noise = np.sqrt(0.25 / n + 0.25 / 400)
    assert np.abs(yes - averaged).max() < 4.0 * noise
    at_the_mean = imputer.set_params(training__n_draws=0).distribution(table)["c"].probability[gone]
    assert np.mean((yes - averaged) ** 2) < np.mean((yes - at_the_mean) ** 2)


@pytest.mark.more
@pytest.mark.parametrize("model", ["vae", "mixture", "factorization"])
def test_a_row_does_not_depend_on_the_others_whatever_the_number_of_draws(model: str) -> None:
    table = holed_table(90)
    imputer = make_imputer(model, epochs=3, n_draws=3, random_state=0).fit(table)
    full = imputer.transform(table)
    pd.testing.assert_frame_equal(imputer.transform(table.iloc[40:]), full.iloc[40:])
    pd.testing.assert_frame_equal(imputer.transform(table), full)
    assert not full.isna().any().any()
    assert not full.equals(imputer.set_params(training__n_draws=0).transform(table))
