"""Means of other columns by class: against means row by row, without leaks, and in how much memory."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenly import Imputer, Training
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.level_means import MOST_MEANS, fit_means, inputs_without_own, plan_means
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables.frames import open_table


class Encoded(NamedTuple):
    specs: list
    values: list


def encode(table: pd.DataFrame) -> Encoded:
    columns = LipschitzScaler("lip-none", random_state=0).fit(table).columns_
    values = [one.encode(cells)[0] for one, cells in zip(columns, open_table(table).columns, strict=True)]
    return Encoded([describe(one, own, binned=True) for one, own in zip(columns, values, strict=True)], values)


def town_table(n_rows: int = 1200, n_towns: int = 150, seed: int = 0) -> pd.DataFrame:
    """Income depends on the town, noise on nothing; the region is that of the town; some cells are missing."""
    rng = np.random.default_rng(seed)
    town = np.concatenate([np.arange(n_towns), rng.integers(0, n_towns, n_rows - n_towns)])
    effect = rng.normal(size=n_towns)
    table = pd.DataFrame(
        {
            "town": [f"town {code}" for code in town],
            "income": (effect[town] + 0.5 * rng.normal(size=n_rows)).round(3),
            "region": [f"region {code % 5}" for code in town],
            "noise": rng.normal(size=n_rows).round(3),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, "income"] = np.nan
    table.loc[rng.random(n_rows) < 0.1, "town"] = None
    return table


def test_each_row_sees_the_mean_of_the_other_rows_of_its_class():
    table = town_table()
    specs, values = encode(table)
    found = inputs_without_own(specs, values)
    income = specs[1].inputs(values[1], None)[:, 0].clip(-5.0, 5.0)
    known = ~np.isnan(values[1])
    groups = [income[known & (values[0] == code)] for code in np.unique(values[0][~np.isnan(values[0])])]
    groups = [one for one in groups if len(one)]
    # The classical estimate of random effects: the variance between groups, less what the one within them explains.
    n = np.array([len(one) for one in groups])
    within = sum(((one - one.mean()) ** 2).sum() for one in groups) / (n.sum() - len(n))
    fraction = stats.f_oneway(*groups).statistic
    between = within * (fraction - 1.0) / ((n.sum() - (n**2).sum() / n.sum()) / (len(n) - 1))
    center = income[known & ~np.isnan(values[0])].mean()
    for row in range(0, len(table), 7):
        others = known & (values[0] == values[0][row]) & (np.arange(len(table)) != row)
        expected = (income[others] - center).sum() / (others.sum() + within / between)
        assert found[row, 0] == pytest.approx(0.0 if np.isnan(values[0][row]) else expected, abs=1e-5)


def test_a_column_that_does_not_differ_between_classes_says_nothing():
    specs, values = encode(town_table())
    (means,) = fit_means(specs, values).means
    at = {"income": slice(0, 1), "noise": slice(1, 2), "region": slice(2, 7)}
    assert (means[:, at["noise"]] == 0.0).all()
    assert means[:, at["income"]].std() > 0.5
    assert means[:, at["region"]].max() > 0.5


def test_held_cells_feed_no_input():
    table = town_table()
    specs, values = encode(table)
    layout = lay_out(specs)
    rng = np.random.default_rng(1)
    held = (rng.random((len(table), 4)) < 0.1) & ~np.isnan(np.column_stack(values))
    changed = [
        np.where(gone, own[rng.permutation(np.flatnonzero(~np.isnan(own)))[0]], own)
        for own, gone in zip(values, held.T, strict=True)
    ]
    assert any((one != other)[~np.isnan(one)].any() for one, other in zip(values, changed, strict=True))
    found = []
    for own in (values, changed):
        encoded = EncodedTable(tuple(map(EncodedColumn, specs, own)), layout, fit_means(specs, values))
        learned = encoded.learn_from(encoded.data(seed=0), held)
        found.append(learned.inputs[:, sum(len(one.centers) for one in specs) :])
    np.testing.assert_array_equal(*found)
    assert found[0].any()


def test_the_own_cell_of_a_row_feeds_none_of_its_inputs():
    table = town_table()
    specs, values = encode(table)
    row = int(np.flatnonzero(~np.isnan(values[0]) & ~np.isnan(values[1]))[5])
    before = inputs_without_own(specs, values)
    moved = [own.copy() for own in values]
    moved[1][row] += 0.01  # so little that the shrinkage hardly moves
    after = inputs_without_own(specs, moved)
    mates = np.flatnonzero((values[0] == values[0][row]) & (np.arange(len(table)) != row))
    assert abs(after[row, 0] - before[row, 0]) < 1e-4
    assert (np.abs(after[mates, 0] - before[mates, 0]) > 3e-4).all()


def test_the_number_of_means_is_bounded():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{j}": rng.normal(size=600) for j in range(66)})
    table["town"], table["street"] = ([f"{name} {i}" for i in rng.permutation(600) % 140] for name in "ts")
    specs, _ = encode(table)
    assert [one.width for one in plan_means(specs)] == [MOST_MEANS, MOST_MEANS]


def peak_of(n_rows: int, n_towns: int) -> int:
    """Return the bytes that the arrays of a model take at most while they are made."""
    rng = np.random.default_rng(0)
    town = np.concatenate([np.arange(n_towns), rng.integers(0, n_towns, n_rows - n_towns)])
    income = rng.normal(size=n_towns)[town] + rng.normal(size=n_rows)
    table = pd.DataFrame({"town": pd.Categorical.from_codes(town, [f"t{i}" for i in range(n_towns)]), "income": income})
    specs, values = encode(table)
    tracemalloc.start()
    levels = fit_means(specs, values)
    encoded = EncodedTable(tuple(map(EncodedColumn, specs, values)), lay_out(specs), levels)
    encoded.learn_from(encoded.data(seed=0), np.zeros((n_rows, 2), bool))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_rows_times_classes():
    few, many = peak_of(8_000, 200), peak_of(8_000, 2_000)
    assert many < 1.3 * few


@pytest.mark.more
def test_memory_of_a_large_table_with_5000_classes():
    assert peak_of(200_000, 5_000) < 200_000 * 5_000 / 2  # half a byte for each pair of a row and a class


@pytest.mark.more
def test_towns_improve_what_they_determine_and_are_imputed_better_than_the_mode():
    rng = np.random.default_rng(0)
    n, n_towns = 2_000, 150
    size = 1.0 / np.arange(1.0, n_towns + 1.0)
    town = rng.choice(n_towns, n, p=size / size.sum())
    effect = rng.normal(size=n_towns)
    truth = pd.DataFrame(
        {
            "town": [f"town {code}" for code in town],
            "income": (effect[town] + 0.4 * rng.normal(size=n)).round(3),
            "area code": (town % 89 + 100 + 0.1 * rng.normal(size=n)).round(2),
            "age": rng.integers(18, 80, n),
        }
    )
    hidden = rng.random(truth.shape) < 0.15
    table = truth.mask(hidden)
    at = {name: hidden[:, j] for j, name in enumerate(truth)}
    errors, quick = {}, {"training": Training(n_networks=1), "effort": "quick", "random_state": 0}
    for kinds in ({}, {"town": "ignore"}):
        full = Imputer(kinds=kinds, **quick).fit_transform(table)
        errors[len(kinds)] = np.sqrt(((full["income"] - truth["income"])[at["income"]] ** 2).mean())
        if not kinds:
            wrong = (full["town"] != truth["town"])[at["town"]].mean()
            assert set(full["town"]) <= set(table["town"].dropna())
    assert errors[0] < 0.75 * errors[1]
    most_frequent = table["town"].mode()[0]
    assert wrong < 0.8 * (truth["town"] != most_frequent)[at["town"]].mean()


def test_inputs_of_many_classes_are_standardized_as_all_are():
    specs, values = encode(town_table())
    inputs = specs[0].inputs(values[0][~np.isnan(values[0])], None)
    np.testing.assert_allclose(inputs.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(inputs.std(0), 1.0, atol=1e-12)


@pytest.mark.more
def test_other_rows_of_a_person_predict_if_the_key_is_declared():
    rng = np.random.default_rng(0)
    n_people, n_years = 200, 6
    level = np.repeat(rng.normal(size=n_people), n_years)
    truth = pd.DataFrame(
        {
            "person": np.repeat(rng.permutation(9_000)[:n_people], n_years),
            "wage": level + 0.3 * rng.normal(size=len(level)),
            "sex": np.repeat(rng.choice(["f", "m"], n_people), n_years),
        }
    )
    hidden = rng.random(truth.shape) < 0.2
    hidden[:, 0] = False
    table = truth.mask(hidden)
    error, wrong = [], []
    for kind in ("categorical", "ignore"):
        full = Imputer(kinds={"person": kind}, effort="quick", random_state=0).fit_transform(table)
        error.append(np.sqrt(((full["wage"] - truth["wage"])[hidden[:, 1]] ** 2).mean()))
        wrong.append((full["sex"] != truth["sex"])[hidden[:, 2]].mean())
    assert error[0] < 0.7 * error[1]
    assert wrong[0] < 0.1 < wrong[1]


def test_trees_tell_apart_what_the_networks_do():
    specs, values = encode(town_table())
    town = specs[0]
    outcomes = town.outcomes(values[0][~np.isnan(values[0])])
    assert outcomes.max() == town.n_outcomes - 1 == 100
    shares = np.bincount(outcomes.astype(int), minlength=town.n_outcomes) / len(outcomes)
    found = town.from_outcomes(np.zeros(1), shares[None])
    np.testing.assert_allclose(found.probabilities, shares[None])  # mixed with the column's own, which are the same
