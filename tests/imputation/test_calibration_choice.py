"""Calibration on validation cells: how far to follow a model that knows little, or is too sure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from imputers import hide, make_imputer

from evenly import imputation_error
from evenly.imputation.calibration import PLAIN
from evenly.imputation.calibration_choice import ValidationCells, calibrate
from evenly.imputation.columns import describe
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables.frames import open_table


def test_a_model_that_knows_nothing_gets_no_weight():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400), "c": rng.choice(["a", "b"], 400, p=[0.7, 0.3])})
    scaler = LipschitzScaler("lip-none").fit(table)
    opened = open_table(table)
    number, classes = scaler.columns_
    x, codes = number.encode(opened.columns[0])[0], classes.encode(opened.columns[1])[0]
    spec = describe(number, x, binned=True)
    noise = (rng.permutation(x) - spec.mean)[:, None] * spec.scale
    bins = np.tile(np.log(np.asarray(spec.bins.share)), (400, 1))
    lost = calibrate(ValidationCells(spec, x, [noise, bins]))
    assert lost.bin_weight == 1.0 or lost.model_weight < 0.3
    right = calibrate(ValidationCells(spec, x, [(x - spec.mean)[:, None] * spec.scale, bins]))
    assert (right.bin_weight, right.model_weight) == (0.0, pytest.approx(1.0))
    spec = describe(classes, codes)
    wrong = calibrate(ValidationCells(spec, codes, [(1.0 - 2.0 * codes)[:, None] * 5.0]))
    assert wrong.model_weight == 0.0
    right = calibrate(ValidationCells(spec, codes, [(2.0 * codes - 1.0)[:, None] * 5.0]))
    assert right.model_weight == 1.0


def test_predictions_that_do_no_better_than_the_mean_do_not_go_far_from_it():
    """Validation cells are few: where they show no gain, nothing supports a prediction that goes ten times as far."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400)})
    column = LipschitzScaler("lip-none").fit(table).columns_[0]
    x = table["x"].to_numpy()
    spec = describe(column, x, binned=True)
    flat = np.log(np.asarray(spec.bins.share))

    def naturals(predicted):
        return [(np.asarray(predicted) - spec.mean)[:, None] * spec.scale, np.tile(flat, (len(predicted), 1))]

    def calibrated(predicted):
        chosen = calibrate(ValidationCells(spec, x[held], naturals(predicted)))
        return replace(chosen, bin_weight=0.0, model_weight=1.0)

    held, far = slice(0, 40), np.array([-10.0, 0.1, 10.0])
    useless = calibrated(0.3 * rng.normal(size=40))
    known = spec.predict(naturals(far), useless).mean()
    np.testing.assert_allclose(np.abs(known - spec.mean)[[0, 2]], useless.max_deviation)
    assert useless.max_deviation < 4.0
    assert known[1] == pytest.approx(0.1, abs=1e-6)
    useful = calibrated(x[held])
    np.testing.assert_allclose(spec.predict(naturals(far), useful).mean(), far, atol=1e-6)


def yes_or_no(n: int, seed: int, too_sure: float = 1.0, kind: str = "binary", n_classes: int = 2):
    """A fitted column of classes, its codes, and the natural parameters of a model that is right but for `too_sure`."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes))
    codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1).astype(float)
    table = pd.DataFrame({"c": np.array(["a", "b", "c", "d"])[codes.astype(int)]})
    column = LipschitzScaler("lip-none", kinds={"c": kind}).fit(table).columns_[0]
    logits = logits[:, 1:] - logits[:, :1] if kind == "binary" else logits
    return column, codes, [too_sure * logits]


@pytest.mark.more
def test_a_column_that_hardly_varies_gets_its_mean():
    """Four of 600 cells do not show which rows have such values: no other row may be imputed worse than by the mean."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=600), "rare": np.zeros(600)})
    table.loc[table["x"].nlargest(4).index, "rare"] = [1.0, 1.0, 3.0, 8.0]
    table.loc[table["x"].nlargest(200).index[4:], "rare"] = np.nan
    full = make_imputer(epochs=20, hidden_size=16, n_networks=1, random_state=0, precision="full").fit_transform(table)
    imputed = full["rare"][table["rare"].isna()]
    np.testing.assert_allclose(imputed, table["rare"].mean(), rtol=1e-6)


@pytest.mark.parametrize(("kind", "n_classes"), [("binary", 2), ("categorical", 2), ("categorical", 4)])
def test_a_model_that_is_too_sure_of_classes_is_made_less_sure(kind, n_classes):
    column, codes, naturals = yes_or_no(600, 0, 4.0, kind, n_classes)
    spec = describe(column, codes)
    calibrated = calibrate(ValidationCells(spec, codes, naturals))
    assert calibrated.inverse_temperature < 0.5
    _, fresh, naturals = yes_or_no(2000, 1, 4.0, kind, n_classes)
    before, after = (spec.predict(naturals, one).log_prob(fresh).mean() for one in (PLAIN, calibrated))
    assert after > before + 0.3
    _, codes, naturals = yes_or_no(600, 0, 1.0, kind, n_classes)
    assert 0.7 <= calibrate(ValidationCells(spec, codes, naturals)).inverse_temperature <= 1.3


@pytest.mark.parametrize(("kind", "n_classes"), [("binary", 2), ("categorical", 4)])
def test_a_model_of_classes_that_often_knows_nothing_gets_part_of_the_weight(kind, n_classes):
    """It is sure and right in half of the rows, sure and random in the others: no temperature corrects that."""
    column, codes, naturals = yes_or_no(600, 0, 1.0, kind, n_classes)
    n_inputs, rng = naturals[0].shape[1], np.random.default_rng(0)
    predicted = np.where(rng.random(600) < 0.6, codes, rng.integers(0, n_classes, 600))
    sure = 6.0 * (predicted[:, None] == np.arange(n_classes)) if n_inputs > 1 else 12.0 * predicted[:, None] - 6.0
    calibrated = calibrate(ValidationCells(describe(column, codes), codes, [sure]))
    assert 0.25 <= calibrated.model_weight <= 0.75


def test_intervals_of_a_number_are_calibrated_as_they_will_be_used():
    """A model of half the weight is mixed with the column's shares: it is the mixture's intervals that must cover."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    number = LipschitzScaler("lip-none").fit(pd.DataFrame({"x": x})).columns_[0]
    spec = describe(number, x, binned=True)
    guess = 0.5 * x + rng.normal(size=2000)
    away = (np.asarray(spec.bins.means(np.eye(len(spec.bins)))) - guess[:, None]) / 0.7
    naturals = [(guess - spec.mean)[:, None] * spec.scale, -0.5 * away**2]
    calibrated = calibrate(ValidationCells(spec, x, naturals))
    assert 0.2 < calibrated.model_weight < 0.7
    ranks = spec.bins.ranks(spec.predict(naturals, calibrated).probabilities, x, np.random.default_rng(0))
    for level in (0.5, 0.8, 0.9):
        assert (np.abs(ranks - 0.5) < 0.5 * level).mean() == pytest.approx(level, abs=0.015)


@pytest.mark.more
def test_a_small_table_of_noise_is_not_made_worse_than_the_mean():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    table["e"] = rng.choice(["u", "v"], 200, p=[0.7, 0.3])
    holed, hidden = hide(table)
    errors = imputation_error(
        table, make_imputer(epochs=40, hidden_size=32, random_state=0).fit_transform(holed), hidden
    )
    assert errors["normalized"].mean() < 1.05


def doubtful_cells(shares: np.ndarray, seed: int = 0) -> ValidationCells:
    """Validation cells of whole numbers that may be codes, with probabilities of levels that are right."""
    rng = np.random.default_rng(seed)
    levels = np.array([np.searchsorted(np.cumsum(one), rng.random()) for one in shares]).astype(float)
    column = LipschitzScaler("lip-none", kinds={"x": "count"}).fit(pd.DataFrame({"x": levels})).columns_[0]
    doubtful = column.column.model_copy(update={"confidence": "doubtful", "alternative": "categorical"})
    spec = describe(replace(column, column=doubtful), levels, binned=True)
    standard = (shares @ np.arange(shares.shape[1]) - spec.mean)[:, None] * spec.scale
    return ValidationCells(spec, levels, [standard, np.log(shares)])


def test_numbers_that_may_be_codes_are_imputed_by_what_predicts_validation_cells():
    """Codes 0 and 3 are both likely in a row: between them, the mean is wrong. A rating is spread around its mean."""
    sides = np.random.default_rng(1).integers(2, size=200)
    codes = np.where(sides[:, None] == 1, [0.60, 0.02, 0.02, 0.36], [0.36, 0.02, 0.02, 0.60])
    center = np.random.default_rng(2).uniform(0.5, 2.5, 200)
    ratings = np.exp(-0.8 * (np.arange(4) - center[:, None]) ** 2)
    ratings /= ratings.sum(1, keepdims=True)
    for shares, expected in ((codes, "mode"), (ratings, "mean")):
        cells = doubtful_cells(shares)
        chosen = calibrate(cells)
        assert chosen.estimate == expected
        predicted = cells.predict(chosen)
        np.testing.assert_array_equal(predicted.estimate("mean"), getattr(predicted, expected)())
        again = predicted.mix([predicted]).append([predicted]).take(slice(0, 50))
        np.testing.assert_allclose(again.estimate("mean"), getattr(again, expected)())
    sure = replace(cells.spec.fitted, column=cells.spec.column.model_copy(update={"confidence": "likely"}))
    cells = doubtful_cells(codes)
    assert calibrate(cells._replace(spec=replace(cells.spec, fitted=sure))).estimate == "mean"


@pytest.mark.more
def test_codes_that_look_like_numbers_are_imputed_by_codes():
    """The schema and the notebook say so."""
    rng = np.random.default_rng(0)
    code = rng.choice(4, 600, p=[0.4, 0.1, 0.1, 0.4])
    table = pd.DataFrame(
        {"x": np.isin(code, [0, 3]) + 0.2 * rng.normal(size=600), "y": rng.normal(size=600), "c": code}
    )
    shown = table.assign(c=table["c"].where(rng.random(600) > 0.2))
    imputer = make_imputer(epochs=20, hidden_size=16, n_networks=1, random_state=0, precision="full").fit(shown)
    column = imputer.schema_["c"]
    assert (column.kind, column.confidence, column.alternative) == ("count", "doubtful", "categorical")
    assert "imputed by the most probable level" in column.note
    full = imputer.transform(shown)["c"]
    assert full.isin([0, 1, 2, 3]).all()
    assert "imputed by the most probable level" in imputer._repr_html_()
