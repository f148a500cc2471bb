"""The kernel expert: it predicts as scikit-learn's kernel ridge regression does, validation cells without their row."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from imputers import GaussianFiller, hide, make_imputer
from sklearn.kernel_ridge import KernelRidge

from evenly import Imputer, LipschitzScaler, TableError
from evenly._support import Deadline
from evenly._support.files import read_tensors, write_tensors
from evenly.imputation import kernel_fitting
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.gaussian import expect, gaussian_features
from evenly.imputation.growing import Work
from evenly.imputation.kernel_fitting import fit_kernels
from evenly.imputation.kernels import (
    kernels_from_tensors,
    kernels_to_tensors,
    place,
    predict_by_kernel,
    similarity,
)
from evenly.imputation.predictors import plan_passes
from evenly.imputation.row_filling import HeldOut
from evenly.tables.frames import open_table

RNG = np.random.default_rng


def smooth_table(n: int = 200) -> pd.DataFrame:
    """Columns that follow from two others smoothly, but not linearly, with gaps."""
    rng = RNG(0)
    x, y = rng.uniform(-2.0, 2.0, (2, n))
    table = pd.DataFrame({"x": x, "y": y, "bent": np.cos(1.5 * x) + 0.5 * y + 0.05 * rng.normal(size=n)})
    table["ring"] = np.where(x**2 + y**2 < 2.5, "in", "out")
    table["third"] = np.array(["a", "b", "c"])[np.digitize(x + 0.3 * y, [-0.7, 0.7])]
    return table.mask(rng.random(table.shape) < 0.1)


def encode(table: pd.DataFrame) -> EncodedTable:
    scaler, opened = LipschitzScaler("lip-none", random_state=0).fit(table), open_table(table)
    values = [one.encode(cells)[0] for one, cells in zip(scaler.columns_, opened.columns, strict=True)]
    specs = [describe(one, own, binned=True) for one, own in zip(scaler.columns_, values, strict=True)]
    return EncodedTable(tuple(map(EncodedColumn, specs, values)), lay_out(specs))


@pytest.fixture(scope="module")
def fitted():
    """A table, its filler, sets of validation cells, and the regression of each column."""
    table = encode(smooth_table())
    filler = GaussianFiller(table)
    observed = np.column_stack([~np.isnan(one) for one in table.values])
    held = [HeldOut(observed & (RNG(seed).random(observed.shape) < 0.1)) for seed in (1, 2)]
    passes = plan_passes({}, table.layout.names)
    return table, filler, held, fit_kernels(table, filler, passes, held, Work(RNG(3)))


def owners_of(table: EncodedTable) -> np.ndarray:
    widths = [one.n_gaussian for one in table.specs]
    return np.repeat(np.arange(len(widths)), widths)


def test_it_predicts_as_a_kernel_ridge_regression(fitted):
    table, filler, held, found = fitted
    features, owners = gaussian_features(table), owners_of(table)
    for j, one in enumerate(found):
        width = float(one.kernel.width[0])
        filled = filler.hiding(np.arange(len(table.columns)) == j)
        points, known = place(table.specs, j, filled), np.flatnonzero(~np.isnan(table.values[j]))
        wanted = features[:, owners == j]
        hidden = np.where(held[1].cells[:, owners], np.nan, features)
        asked = np.flatnonzero(held[1].cells[:, j])
        at = place(table.specs, j, filler.fill(hidden[asked]))
        matches = []
        for noise in kernel_fitting.NOISES:
            whole = KernelRidge(alpha=noise, kernel="precomputed")
            center = wanted[known].mean(0)
            whole.fit(similarity(points[known], points[known], width), wanted[known] - center)
            if not np.allclose(whole.dual_coef_, one.kernel.weights, atol=1e-6):
                continue
            expected = center + whole.predict(similarity(at, points[known], width))
            np.testing.assert_allclose(one.kernel.predict(at)[0], expected, atol=1e-6)
            for place_of_row, row in zip(at, asked, strict=True):  # the regression without a row, fitted anew
                rest = known[known != row]
                anew = KernelRidge(alpha=noise, kernel="precomputed")
                anew.fit(similarity(points[rest], points[rest], width), wanted[rest] - center)
                matches.append(center + anew.predict(similarity(place_of_row[None], points[rest], width))[0])
        anew_of = table.specs[j].from_gaussian(np.array(matches), np.tile(one.kernel.spread, (len(matches), 1)))
        for name, own in one.predicted[1].parameters.items():
            np.testing.assert_allclose(own, anew_of.parameters[name], atol=1e-5)


def test_its_settings_have_the_least_error_on_rows_that_are_left_out():
    rng = RNG(0)
    points = rng.normal(size=(40, 3))
    for wanted in (
        np.sin(2.0 * points[:, :2]) + 0.1 * rng.normal(size=(40, 2)),
        points[:, :1] + rng.normal(size=40)[:, None],
    ):
        losses, away = {}, wanted - wanted.mean(0)
        for width, noise in product(kernel_fitting.WIDTHS, kernel_fitting.NOISES):
            near, model = similarity(points, points, width), KernelRidge(alpha=noise, kernel="precomputed")
            errors = []
            for i in range(len(points)):
                rest = np.arange(len(points)) != i
                model.fit(near[np.ix_(rest, rest)], away[rest])
                errors.append(model.predict(near[i : i + 1, rest])[0] - away[i])
            losses[width, noise] = np.minimum(np.square(errors), kernel_fitting.FARTHEST_LOSS).mean()
        assert kernel_fitting._choose(points, wanted) == min(losses, key=losses.__getitem__)


def test_it_knows_smooth_relations_that_are_not_linear(fitted):
    """Where both columns that a third follows from are seen."""
    table, filler, held, found = fitted
    features, owners = gaussian_features(table), owners_of(table)
    by_kernel, by_line = [], []
    for cells, one in zip((each.cells for each in held), found[2].predicted, strict=True):
        hidden = np.where(cells[:, owners], np.nan, features)
        asked = cells[:, 2]
        seen = ~np.isnan(hidden[asked][:, [0, 2]]).any(1)
        truth = features[asked, 4]
        by_line.extend((expect(filler.gaussian, hidden)[0][asked, 4] - truth)[seen])
        by_kernel.extend(((one.mean() - table.specs[2].mean) / table.specs[2].std - truth)[seen])
    assert np.mean(np.square(by_kernel)) < 0.5 * np.mean(np.square(by_line))


def test_predictions_of_a_row_do_not_depend_on_the_rows_around_it(fitted):
    table, filler, _, found = fitted
    features = gaussian_features(table)
    filled = filler.fill(features)
    for j, one in enumerate(found):
        every = predict_by_kernel(one.kernel, table, j, np.ones(table.n_rows, bool), filled)
        known = ~np.isnan(table.values[j])
        assert all(np.isnan(own[known]).all() for own in every.parameters.values())
        for row in np.flatnonzero(np.isnan(table.values[j]))[:3]:
            some = slice(row, row + 1)
            alone = predict_by_kernel(one.kernel, table.rows(some), j, np.ones(1, bool), filled[some])
            for name, own in alone.parameters.items():
                np.testing.assert_array_equal(own, every.parameters[name][some])


def test_saved_regressions_are_the_same_and_wrong_ones_are_refused(fitted):
    table, _, _, found = fitted
    kernels = {spec.name: one.kernel for spec, one in zip(table.specs, found, strict=True)}
    tensors = kernels_to_tensors(kernels)
    again = kernels_from_tensors(list(kernels), table.specs, tensors)
    for name, one in kernels.items():
        assert all(np.array_equal(getattr(again[name], part.name), getattr(one, part.name)) for part in fields(one))
    with pytest.raises(ValueError, match="kernel0_width"):
        kernels_from_tensors(
            list(kernels), table.specs, {name: own for name, own in tensors.items() if name != "kernel0_width"}
        )
    for names in (["x", "x"], ["x", "other"]):
        with pytest.raises(ValueError, match="other columns"):
            kernels_from_tensors(names, table.specs, tensors)
    first = kernels["x"]
    broken = [replace(first, points=first.points[:, 1:]), replace(first, weights=first.weights[1:])]
    broken += [replace(first, width=-first.width), replace(first, spread=first.spread * np.nan)]
    broken += [replace(first, points=first.points.astype(np.int32))]
    for one in broken:
        with pytest.raises(ValueError, match="kernels"):
            kernels_from_tensors(["x"], table.specs, kernels_to_tensors({"x": one}))


def test_large_tables_and_late_fits_have_none(fitted, monkeypatch):
    table, filler, held, _ = fitted
    passes = plan_passes({}, table.layout.names)
    over = Work(RNG(3), deadline=Deadline.after(-1.0))
    assert fit_kernels(table, filler, passes, held, over) == [None] * 5
    assert fit_kernels(table, None, passes, held, Work(RNG(3))) == [None] * 5
    monkeypatch.setattr(kernel_fitting, "MOST_TABLE_ROWS", table.n_rows - 1)
    assert fit_kernels(table, filler, passes, held, Work(RNG(3))) == [None] * 5


def test_many_rows_are_sampled(fitted, monkeypatch):
    table, filler, held, _ = fitted
    monkeypatch.setattr(kernel_fitting, "MOST_ROWS", 50)
    for one, other in zip(
        *(fit_kernels(table, filler, plan_passes({}, table.layout.names), held, Work(RNG(3))) for _ in range(2)),
        strict=True,
    ):
        assert len(one.kernel.points) == 50
        assert np.array_equal(one.kernel.weights, other.kernel.weights)
        assert all(np.isfinite(each.mean()).all() for each in one.predicted)


@pytest.mark.more
def test_an_imputer_with_regressions_is_the_same_after_loading_and_for_new_rows(tmp_path):
    table = smooth_table(300)
    shown = table.mask(hide(table)[1])
    settings = {"epochs": 2, "hidden_size": 8, "n_networks": 1, "random_state": 0}
    imputer = make_imputer(**settings).fit(shown)
    assert imputer.ensemble_.kernels
    full = imputer.transform(shown)
    file = tmp_path / "imputer.safetensors"
    imputer.save(file)
    again = Imputer.load(file)
    pd.testing.assert_frame_equal(again.transform(shown), full, check_exact=True)
    pd.testing.assert_frame_equal(imputer.transform(shown.iloc[100:117]), full.iloc[100:117], check_exact=True)
    pd.testing.assert_frame_equal(make_imputer(**settings).fit(shown).transform(shown), full, check_exact=True)
    content, tensors = read_tensors(file, "Imputer")
    write_tensors(file, content, tensors | {"kernel0_width": np.zeros_like(tensors["kernel0_width"])})
    with pytest.raises(TableError, match=r"cannot read it: .*kernels"):
        Imputer.load(file)


@pytest.mark.more
def test_a_regression_of_a_column_with_predictors_of_its_own_uses_no_other():
    table = smooth_table(300)
    settings = {"epochs": 2, "hidden_size": 8, "n_networks": 1, "random_state": 0}
    imputer = make_imputer(**settings, predictors={"bent": ["x"]}).fit(table)
    assert "bent" in imputer.ensemble_.kernels
    changed = table.assign(y=0.5, ring="in", third="a")
    pd.testing.assert_series_equal(imputer.transform(changed)["bent"], imputer.transform(table)["bent"])
