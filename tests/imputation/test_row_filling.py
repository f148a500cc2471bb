"""Rows that trees and kernels read are filled by what networks expect, and know nothing of the cell to predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from imputers import make_imputer, mixed_table, ruled_table

from evenly.imputation.expected_cells import blend, fill_expected
from evenly.imputation.gaussian import feature_owners, fit_gaussian, gaussian_features
from evenly.imputation.predictors import plan_passes
from evenly.imputation.row_filling import HeldOut, RowFiller

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def filled():
    """An imputer with two networks, its table as encoded, and a filler that asks the networks alone."""
    frame = ruled_table(400)
    imputer = make_imputer(epochs=3, n_networks=2, hidden_size=16, random_state=0).fit(frame)
    table = imputer._open(frame).encoded
    return imputer, table, filler_of(imputer, table)


def filler_of(imputer, table, weight=0.0) -> RowFiller:
    gaussian, weights = fit_gaussian(gaussian_features(table)), np.full(len(table.columns), weight)
    return RowFiller(imputer.ensemble_, table, table.data(seed=None), gaussian, weights)


def with_values(table, j, values):
    columns = list(table.columns)
    columns[j] = columns[j]._replace(values=values)
    return replace(table, columns=tuple(columns))


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_what_is_filled_without_a_column_does_not_know_it(filled, weight):
    imputer, table, _ = filled
    (one,) = plan_passes({}, table.layout.names)
    owners = feature_owners(table)
    other = with_values(table, 0, np.where(np.isnan(table.values[0]), np.nan, 1.0 - table.values[0]))
    gaussian = fit_gaussian(gaussian_features(table))
    fillers = (replace(filler_of(imputer, some, weight), gaussian=gaussian, kept={}) for some in (table, other))
    before, after = ([filler.fill_without(one, j) for j in (0, 1)] for filler in fillers)
    np.testing.assert_array_equal(before[0][:, owners != 0], after[0][:, owners != 0])
    assert (before[1][:, owners != 1] != after[1][:, owners != 1]).any()


def test_observed_cells_stay_and_all_others_are_filled(filled):
    _, table, filler = filled
    (one,) = plan_passes({}, table.layout.names)
    features, owners = gaussian_features(table), feature_owners(table)
    for j in one.targets:
        found, others = filler.fill_without(one, j), owners != j
        known = ~np.isnan(features)
        np.testing.assert_array_equal(found[known], features[known])
        assert not np.isnan(found[:, others]).any()
        np.testing.assert_array_equal(np.isnan(found[:, ~others]), np.isnan(features[:, ~others]))


def test_trees_read_the_same_in_fit_and_in_predictions(filled):
    """A cell is filled alike when it is held out, and when it is missing."""
    imputer, table, filler = filled
    (one,) = plan_passes({}, table.layout.names)
    held = np.zeros((table.n_rows, len(table.columns)), bool)
    held[:40, 2] = ~np.isnan(table.values[2][:40])
    gone = table.without(held)
    networks, data = imputer.ensemble_.networks, gone.data(seed=None)
    naturals = [imputer.ensemble_.model.predict_natural(table.layout, own, data) for own in networks]
    expected = fill_expected(gone, np.isnan(np.column_stack(gone.values)), naturals)
    rows = held.any(1)
    np.testing.assert_allclose(filler.fill_held(HeldOut(held), one), expected[rows], atol=1e-5)


def test_a_held_out_cell_is_filled_by_the_networks_that_are_asked(filled):
    imputer, table, filler = filled
    (one,) = plan_passes({}, table.layout.names)
    held = RNG(0).random((table.n_rows, len(table.columns))) < 0.1
    alone = [filler.fill_held(HeldOut(held, [own]), one) for own in imputer.ensemble_.networks]
    both = filler.fill_held(HeldOut(held), one)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3
    classes = np.isin(feature_owners(table), [j for j, has in enumerate(table.classes) if has])
    np.testing.assert_allclose(both[:, classes], np.mean(alone, axis=0)[:, classes], atol=1e-6)


def test_columns_that_a_pass_does_not_show_are_filled_as_if_they_were_missing(filled):
    imputer, table, _ = filled
    names = table.layout.names
    _, own = plan_passes({"corner": ["x"]}, names)
    (j,) = own.targets
    blank = table
    for other, name in enumerate(names):
        if name not in ("x", "corner"):
            blank = with_values(blank, other, np.full(table.n_rows, np.nan))
    owners = feature_owners(table)
    found, expected = (
        filler_of(imputer, some).fill_without(one, j)
        for some, one in ((table, own), (blank, plan_passes({}, names)[0]))
    )
    np.testing.assert_allclose(found[:, owners != j], expected[:, owners != j], atol=1e-6)


@pytest.fixture(scope="module")
def of_every_kind():
    """An imputer of a table with columns of every kind, and the distributions of some of its cells."""
    frame = mixed_table(200)
    imputer = make_imputer(epochs=2, n_networks=1, hidden_size=8, random_state=0).fit(frame)
    return imputer, imputer.distribution(frame.head(20))


@pytest.mark.parametrize("name", ["real", "positive", "count", "binary", "class", "grade"])
def test_expected_features_are_the_mean_of_those_of_draws(of_every_kind, name):
    """Of classes exactly; of numbers, the first feature, which is linear in the number."""
    imputer, distributions = of_every_kind
    spec = next(one for one in imputer.ensemble_.modelled if one.name == name)
    found = distributions[name]
    expected = spec.expected_features(found)
    if spec.column.has_classes:
        of_classes = spec.gaussian_features(np.arange(float(spec.n_outcomes)))
        np.testing.assert_allclose(expected, found.probabilities @ of_classes, rtol=1e-9)
        draws = np.mean([spec.gaussian_features(found.sample(RNG(i))) for i in range(4000)], axis=0)
        np.testing.assert_allclose(expected, draws, atol=0.1)
    else:
        np.testing.assert_allclose(expected[:, 0], (found.mean() - spec.mean) / spec.std, rtol=1e-9)


def test_a_blend_moves_only_where_there_is_something_to_move_to():
    filled, means = np.array([[1.0, 2.0, 3.0]]), np.array([[5.0, np.nan, 5.0]])
    np.testing.assert_array_equal(blend(filled, means, np.array([[1.0, 1.0, 0.0]])), [[5.0, 2.0, 3.0]])
