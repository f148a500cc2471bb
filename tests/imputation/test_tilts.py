"""Tilts: they are the regressions of statsmodels, and pooled draws have the standard errors of theory."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from imputers import make_imputer
from scipy.special import ndtr

from evenly import Imputer, TableError, Training, pool
from evenly._support.files import read_tensors, write_tensors
from evenly.imputation import tilt_fitting
from evenly.imputation.columns import describe
from evenly.imputation.tilts import N_DRAWS, Cells, Place, Tilt, draw_weights, fit_tilt
from evenly.predictive import BinaryPredictive, BinnedPredictive
from evenly.scaling import LipschitzScaler
from evenly.tables.frames import open_table

RNG = np.random.default_rng
NOTHING = np.zeros(2, bool)


def spec_of(cells: pd.Series):
    scaler, opened = LipschitzScaler("lip-none", random_state=0).fit(cells.to_frame()), open_table(cells.to_frame())
    return describe(scaler.columns_[0], scaler.columns_[0].encode(opened.columns[0])[0], binned=True)


@pytest.fixture(scope="module")
def linear():
    """A number that two others predict, and distributions that have half of their slopes, and too large a variance."""
    rng = RNG(0)
    x = rng.normal(size=(2000, 2))
    y = x @ [1.0, -0.5] + rng.normal(size=2000)
    spec = spec_of(pd.Series(y, name="y"))
    assert spec.kind == "binned"
    place = Place(x, np.full(2000, 0.5))
    edges = np.concatenate([[-np.inf], spec.bins.edges, [np.inf]])
    shares = np.diff(ndtr((edges - (0.5 * x @ [1.0, -0.5])[:, None]) / 1.5), axis=1)
    found = BinnedPredictive(spec.column, spec.bins, spec.bins.means(shares), shares)
    return spec, x, y, place, found, fit_tilt(spec, Cells(y, found, place, draw_weights(2000)), NOTHING)


def test_tilted_numbers_have_the_mean_and_the_variance_of_least_squares(linear):
    spec, x, y, place, found, tilt = linear
    tilted, least = tilt.apply(spec, found, place), sm.OLS(y, sm.add_constant(x)).fit()
    np.testing.assert_allclose(tilted.mean(), least.fittedvalues, atol=0.25)  # bins are coarse in the tails
    slopes = sm.OLS(tilted.mean(), sm.add_constant(x)).fit().params
    np.testing.assert_allclose(slopes, least.params, atol=0.02)
    assert np.mean(tilted.std**2) == pytest.approx(least.scale, rel=0.03)
    assert np.mean(found.std**2) > 1.9 * least.scale


def test_drawn_numbers_have_the_standard_errors_of_least_squares(linear):
    spec, x, y, place, found, tilt = linear
    least = sm.OLS(y, sm.add_constant(x)).fit()
    drawn = [tilt.drawn(i).apply(spec, found, place).mean() for i in range(N_DRAWS)]
    slopes = np.array([sm.OLS(one, sm.add_constant(x)).fit().params for one in drawn])
    np.testing.assert_allclose(slopes.std(0), least.bse, rtol=0.2)  # four standard errors of 200 draws


def test_tilted_classes_are_those_of_logistic_regression():
    rng = RNG(2)
    x = rng.normal(size=(800, 2))
    outcome = (rng.random(800) < 1.0 / (1.0 + np.exp(-(0.3 + x @ [1.0, -2.0])))).astype(float)
    spec = spec_of(pd.Series(np.where(outcome == 1.0, "yes", "no"), name="sick"))
    found = BinaryPredictive(spec.column, np.full(800, 0.5))
    tilt = fit_tilt(spec, Cells(outcome, found, Place(x, np.full(800, 0.5)), draw_weights(800)), NOTHING)
    likely = sm.Logit(outcome, sm.add_constant(np.clip(x, -4.0, 4.0))).fit(disp=False)
    np.testing.assert_allclose(tilt.coefficients, likely.params, rtol=0.02)  # a prior of one cell
    np.testing.assert_allclose(tilt.draws.std(0), likely.bse, rtol=0.2)  # four standard errors of 200 draws
    np.testing.assert_allclose(
        tilt.apply(spec, found, Place(x, np.zeros(800))).probability, likely.predict(), atol=0.01
    )


def test_zeros_bounds_and_whole_numbers_stay_what_they_are():
    """Of counts that are mostly 0, tilted distributions still give only observed whole numbers, and many zeros."""
    rng = RNG(3)
    x = rng.normal(size=(1000, 2))
    visits = np.where(rng.random(1000) < 0.6, 0.0, rng.poisson(np.exp(1.0 + 0.5 * x[:, 0])))
    spec = spec_of(pd.Series(visits, name="visits"))
    shares = np.tile(np.asarray(spec.bins.share), (1000, 1))
    found = BinnedPredictive(spec.column, spec.bins, spec.bins.means(shares), shares)
    place = Place(x, np.full(1000, 0.5))
    tilt = fit_tilt(spec, Cells(visits, found, place, draw_weights(1000)), NOTHING)
    drawn = tilt.apply(spec, found, place).sample(rng)
    assert (drawn == np.rint(drawn)).all()
    assert 0.0 <= drawn.min() <= drawn.max() <= visits.max()
    assert np.mean(drawn == 0.0) == pytest.approx(np.mean(visits == 0.0), abs=0.05)
    assert np.corrcoef(drawn, x[:, 0])[0, 1] > 0.5 * np.corrcoef(visits, x[:, 0])[0, 1]


def test_few_cells_have_none(linear):
    spec, _, y, place, found, _ = linear
    few = Cells(y[:20], found.take(slice(20)), place.take(slice(20)), draw_weights(20))
    assert fit_tilt(spec, few, NOTHING) is None


def test_draws_of_two_columns_go_together():
    """Of a number and its copy, the slopes on a third are too steep in the same draws."""
    rng = RNG(5)
    x = rng.normal(size=(500, 2))
    y = x[:, 0] + rng.normal(size=500)
    spec = spec_of(pd.Series(y, name="y"))
    found = BinnedPredictive(spec.column, spec.bins, np.zeros(500), np.tile(spec.bins.share, (500, 1)))
    cells = Cells(y, found, Place(x, np.full(500, 0.5)), draw_weights(500))
    some = RNG(6).random(500) < 0.7
    part = Cells(y[some], found.take(some), cells.place.take(some), cells.weights[some])
    slopes = [fit_tilt(spec, one, NOTHING).draws[:, 1] for one in (cells, part)]
    assert np.corrcoef(slopes)[0, 1] == pytest.approx(np.sqrt(0.7), abs=0.1)  # that of a mean of all and of a part


def line_table(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """A normal y, of which 40 % is missing, that depends on x, which is always observed; and an unrelated number."""
    rng = RNG(4)
    x = rng.normal(size=n)
    table = pd.DataFrame({"y": 0.7 * x + rng.normal(size=n), "x": x, "other": rng.normal(size=n)})
    gone = rng.random(n) < 0.4
    return table.assign(y=table["y"].mask(gone)), gone


@pytest.fixture(scope="module")
def of_lines() -> tuple[Imputer, pd.DataFrame]:
    table, _ = line_table()
    training = Training(epochs=30, n_networks=2, sizes={"hidden_size": 16})
    return Imputer(training=training, random_state=0).fit(table), table


@pytest.mark.more
def test_pooled_estimates_are_those_of_theory(of_lines):
    """Rows without y say nothing about the line: estimate and error must be those of the rows that have one.

    The standard error of the draws' share in the variance is 16 %, of 80 tables.
    """
    imputer, table = of_lines
    fits = [sm.OLS(one["y"], sm.add_constant(one[["x", "other"]])).fit() for one in imputer.sample(table, n=80)]
    pooled = pool(fits)
    known = table.dropna()
    least = sm.OLS(known["y"], sm.add_constant(known[["x", "other"]])).fit()
    np.testing.assert_allclose(pooled.estimate, least.params, atol=0.25 * least.bse.min())
    np.testing.assert_allclose(pooled.standard_error, least.bse, rtol=0.12)


def test_draws_are_the_same_after_loading(of_lines, tmp_path):
    imputer, table = of_lines
    assert list(imputer.ensemble_.tilts) == ["y", "x", "other"]
    imputer.save(tmp_path / "a")
    for one, other in zip(imputer.sample(table, 2), Imputer.load(tmp_path / "a").sample(table, 2), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_wrong_tilts_are_refused(of_lines, tmp_path):
    imputer, _ = of_lines
    file = tmp_path / "a"
    imputer.save(file)
    content, tensors = read_tensors(file, "Imputer")

    def load(**arrays):
        some = {name: one for name, one in (tensors | arrays).items() if one is not None}
        write_tensors(file, content | {"shapes": {name: list(one.shape) for name, one in some.items()}}, some)
        return Imputer.load(file)

    load()
    n = len(tensors["tilt0_coefficients"])
    for field, wrong in (
        ("features", np.full_like(tensors["tilt0_features"], 99)),
        ("coefficients", np.full(n, np.nan)),
        ("coefficients", np.zeros(n + 1)),
        ("draws", np.zeros((N_DRAWS, n + 1))),
        ("draws", np.zeros((N_DRAWS - 1, n))),
        ("draws", None),
    ):
        with pytest.raises(TableError, match=r"cannot read it: .*tilt"):
            load(**{f"tilt0_{field}": wrong})
    assert [field.name for field in fields(Tilt)] == ["features", "coefficients", "draws"]


def test_without_tilts_networks_take_turns(of_lines):
    imputer, table = of_lines
    ensemble = imputer.ensemble_
    imputer.ensemble_ = replace(ensemble, tilts={})
    both = imputer.sample(table, 2)
    for i, network in enumerate(ensemble.networks):
        imputer.ensemble_ = replace(ensemble, tilts={}, networks=[network])
        pd.testing.assert_frame_equal(imputer.sample(table, 2)[i], both[i], check_exact=True)
    imputer.ensemble_ = ensemble


def test_large_tables_have_none(monkeypatch):
    monkeypatch.setattr(tilt_fitting, "MOST_TABLE_ROWS", 250)
    imputer = make_imputer(epochs=1, hidden_size=8, n_networks=1, random_state=0).fit(line_table()[0])
    assert imputer.ensemble_.tilts == {}


def test_a_column_with_predictors_of_its_own_is_regressed_on_no_other():
    settings = {"epochs": 1, "hidden_size": 8, "n_networks": 1, "random_state": 0}
    imputer = make_imputer(predictors={"y": ["other"]}, **settings).fit(line_table()[0])
    assert list(imputer.ensemble_.tilts["y"].features) == [4]  # two features a number
    assert list(imputer.ensemble_.tilts["x"].features) == [0, 4]
