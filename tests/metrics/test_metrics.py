"""Errors on hidden cells and log-likelihoods: worked out by hand, and against scikit-learn and SciPy."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats as stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, root_mean_squared_error

from evenly import LipschitzScaler, Schema, Support, TableError, define_likelihood, infer_schema
from evenly.likelihoods.registry import LIKELIHOODS
from evenly.metrics import (
    column_errors,
    imputation_error,
    log_likelihood,
    mean_errors,
    mean_or_mode,
)
from evenly.metrics.errors import clearly_better, normalized_errors
from evenly.tables.schema import Column

NAN = math.nan
REAL = Column(name="real", kind="real")
POSITIVE = Column(name="positive", kind="positive")
COUNT = Column(name="count", kind="count")
BINARY = Column(name="binary", kind="binary", classes=["no", "yes"])
COLOR = Column(name="color", kind="categorical", classes=["blue", "green", "red"])
SIZE = Column(name="size", kind="ordinal", classes=["S", "M", "L"])
IGNORED = Column(name="note", kind="ignore")
EVERY_KIND = [REAL, POSITIVE, COUNT, BINARY, COLOR, SIZE]
NUMBERS = {"real", "positive", "count"}


def column_of(*cells: float) -> np.ndarray:
    return np.array(cells, np.float64)[:, None]


def mask_of(*cells: int) -> np.ndarray:
    return np.array(cells, bool)[:, None]


@dataclass(frozen=True)
class Scored:
    """A table, a prediction of all of it, and what is hidden."""

    truth: np.ndarray
    predicted: np.ndarray
    hidden: np.ndarray


def draw(seed: int, n: int = 60, columns: list[Column] = EVERY_KIND) -> Scored:
    """A random table with missing cells; every column has visible and hidden cells."""
    rng = np.random.default_rng(seed)
    cells = {
        "real": lambda: rng.normal(-3.0, 5.0, n),
        "positive": lambda: rng.lognormal(1.0, 0.7, n),
        "count": lambda: rng.poisson(6.0, n),
        "binary": lambda: rng.integers(0, 2, n),
        "categorical": lambda: rng.integers(0, 3, n),
        "ordinal": lambda: rng.integers(0, 3, n),
    }
    truth, predicted = (np.column_stack([cells[c.kind]() for c in columns]).astype(float) for _ in range(2))
    truth[rng.random(truth.shape) < 0.1] = NAN
    return Scored(truth, predicted, rng.random(truth.shape) < 0.4)


# --- errors by hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [REAL, POSITIVE, COUNT], ids=lambda column: column.kind)
def test_numbers_are_scored_by_root_mean_square_error_over_the_range_of_all_known_cells(column):
    truth = column_of(0.0, 50.0, 10.0, 20.0, NAN)
    predicted = column_of(NAN, NAN, 13.0, 16.0, NAN)  # 3 and 4 off; what is not scored need not be there
    errors = column_errors([column], truth, predicted, mask_of(0, 0, 1, 1, 1))
    assert errors == pytest.approx([math.sqrt((9 + 16) / 2) / 50])


def test_the_range_includes_hidden_cells():
    truth = column_of(10.0, 20.0, 110.0)
    assert column_errors([REAL], truth, column_of(0.0, 0.0, 60.0), mask_of(0, 0, 1)) == pytest.approx([50 / 100])


def test_a_given_range_counts_instead():
    truth, predicted, hidden = column_of(10.0, 20.0), column_of(0.0, 25.0), mask_of(0, 1)
    errors = column_errors([REAL], truth, predicted, hidden, ranges={"real": (-100.0, 100.0)})
    assert errors == pytest.approx([5 / 200])


@pytest.mark.parametrize("column", [BINARY, COLOR, SIZE], ids=lambda column: column.kind)
def test_classes_are_scored_by_their_error_rate_however_far_off_the_code_is(column):
    truth = column_of(0, 1, 0, 1, 1, NAN)
    predicted = column_of(0, 0, 2, 1, -1, 0)  # hidden: 1 for 0 and 0 for 2 wrong, 1 right, a code of no class wrong
    assert column_errors([column], truth, predicted, mask_of(0, 1, 1, 1, 1, 1)) == pytest.approx([3 / 4])


def test_cells_missing_to_begin_with_are_never_scored():
    truth = np.array([[1.0, 0.0], [NAN, NAN], [3.0, 1.0]])
    hidden = np.ones((3, 2), bool)
    errors = [
        column_errors([REAL, COLOR], truth, np.array([[1.0, 0.0], [wild, 2.0], [2.0, 1.0]]), hidden)
        for wild in (1e6, NAN)
    ]
    np.testing.assert_array_equal(*errors)
    assert errors[0] == pytest.approx([math.sqrt(1 / 2) / 2, 0.0])


def test_nothing_to_score_is_nan():
    truth = np.array([[1.0, NAN, 5.0], [2.0, NAN, 6.0]])
    hidden = np.array([[False, True, True], [False, True, True]])
    assert np.isnan(column_errors([REAL, COLOR, IGNORED], truth, np.full((2, 3), NAN), hidden)).all()


@pytest.mark.parametrize(("constant", "predicted", "error"), [(5.0, 5.0, 0.0), (-5.0, -4.0, 1 / 5), (0.0, 0.25, 0.25)])
def test_a_constant_column_is_scored_relative_to_its_size(constant, predicted, error):
    truth = column_of(constant, constant, NAN)
    assert column_errors([REAL], truth, column_of(0.0, predicted, 0.0), mask_of(0, 1, 0)) == pytest.approx([error])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_squares_neither_overflow_nor_vanish(size):
    truth, predicted = size * column_of(0.0, 10.0, 2.0), size * column_of(0.0, 7.0, 6.0)
    assert column_errors([REAL], truth, predicted, mask_of(0, 1, 1)) == pytest.approx([math.sqrt(25 / 2) / 10])


# --- errors against scikit-learn ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_errors_agree_with_scikit_learn(seed):
    table = draw(seed)
    errors = column_errors(EVERY_KIND, table.truth, table.predicted, table.hidden)
    for j, column in enumerate(EVERY_KIND):
        scored = table.hidden[:, j] & ~np.isnan(table.truth[:, j])
        truth, predicted = table.truth[scored, j], table.predicted[scored, j]
        if column.kind in NUMBERS:
            expected = root_mean_squared_error(truth, predicted) / np.ptp(pd.Series(table.truth[:, j]).dropna())
        else:
            expected = 1.0 - accuracy_score(truth, predicted)
        assert errors[j] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_mean_or_mode_agrees_with_scikit_learns_simple_imputer(seed):
    table = draw(seed)
    visible = np.where(table.hidden, NAN, table.truth)
    predicted = mean_or_mode(EVERY_KIND, table.truth, table.hidden)
    for j, column in enumerate(EVERY_KIND):
        strategy = "mean" if column.kind in NUMBERS else "most_frequent"
        expected = SimpleImputer(strategy=strategy).fit(visible[:, [j]]).statistics_[0]
        np.testing.assert_allclose(predicted[:, j], expected, rtol=1e-12)


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed):
    table = draw(seed, 20)
    order = np.random.default_rng(seed).permutation(20)
    owners = [0, 1, 2, 3, 4, 4, 4, 5, 5, 5]
    for settings_ in ({}, {"protocol": "as-published", "owners": owners}):
        here = normalized_errors(EVERY_KIND, table.truth, table.predicted, table.hidden, **settings_)
        there = normalized_errors(
            EVERY_KIND, table.truth[order], table.predicted[order], table.hidden[order], **settings_
        )
        np.testing.assert_allclose(here, there, rtol=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_errors_of_numbers_do_not_depend_on_the_unit(seed, factor, offset):
    table = draw(seed, 20, [REAL])
    here = column_errors([REAL], table.truth, table.predicted, table.hidden)
    there = column_errors([REAL], offset + factor * table.truth, offset + factor * table.predicted, table.hidden)
    # An offset of 1e3 beside values of a thousandth leaves ten digits.
    np.testing.assert_allclose(here, there, rtol=1e-7)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_cells_that_were_not_hidden_do_not_change_the_honest_error(seed):
    table = draw(seed, 20)
    other = np.where(table.hidden, table.predicted, NAN)
    here, there = (column_errors(EVERY_KIND, table.truth, p, table.hidden) for p in (table.predicted, other))
    np.testing.assert_array_equal(here, there)


# --- as published -----------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_without_a_split_both_protocols_are_the_same(seed):
    columns = [REAL, IGNORED.model_copy(update={"name": "first"}), *EVERY_KIND[1:]]
    table = draw(seed, 20, [REAL, REAL, *EVERY_KIND[1:]])
    for errors in (column_errors, normalized_errors):
        honest = errors(columns, table.truth, table.predicted, table.hidden)
        for owners in ([0, 2, 3, 4, 5, 6], range(7)):  # without the ignored column, and with it
            published = errors(
                columns, table.truth, table.predicted, table.hidden, protocol="as-published", owners=list(owners)
            )
            np.testing.assert_array_equal(honest, published)


def test_as_published_a_split_column_is_scored_by_its_codes():
    truth = column_of(0, 2, 2, 1)
    predicted = column_of(0, 0, 1, 1)  # hidden: off by 2, by 1 and right; the range of the codes is 2
    settings_ = {"protocol": "as-published", "owners": [0, 0, 0]}
    assert column_errors([COLOR], truth, predicted, mask_of(0, 1, 1, 1), **settings_) == pytest.approx(
        [math.sqrt((4 + 1 + 0) / 3) / 2]
    )
    assert column_errors([COLOR], truth, predicted, mask_of(0, 1, 1, 1)) == pytest.approx([2 / 3])


def test_as_published_a_copier_of_what_it_saw_looks_perfect_after_the_first_split():
    """Columns 1 and 2 are scored on the cells hidden in column 0, which owns the features 0, 1 and 2."""
    columns = [COLOR, REAL, BINARY]
    truth = np.array([[0, 1.0, 0], [1, 2.0, 1], [2, 3.0, 0], [0, 5.0, 1]])
    hidden = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 0]], bool)
    copier = np.where(hidden, 0.0, truth)
    published = column_errors(columns, truth, copier, hidden, protocol="as-published", owners=[0, 0, 0, 1, 2])
    assert published == pytest.approx([0.0, 0.0, 0.0])
    honest = column_errors(columns, truth, copier, hidden)
    assert honest == pytest.approx([0.0, math.sqrt((4 + 9) / 2) / 4, 1 / 2])


def test_as_published_columns_before_the_first_split_are_scored_on_their_own_cells():
    """Features: real, blue, green, red, count. Feature 2 belongs to the colour, so the count is scored on its cells."""
    truth = np.array([[0.0, 2, 4], [10.0, 1, 8], [20.0, 0, NAN]])
    predicted = np.array([[1.0, 2, 5], [12.0, 1, 6], [25.0, 1, 9]])
    hidden = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    errors = column_errors(
        [REAL, COLOR, COUNT], truth, predicted, hidden, protocol="as-published", owners=[0, 1, 1, 1, 2]
    )
    # The count on rows 0 and 2, of which 2 is missing: 1 off, of a range of 4.
    assert errors == pytest.approx([2 / 20, math.sqrt((0 + 1) / 2) / 2, 1 / 4])


def test_as_published_needs_observed_cells_predicted_too():
    truth, hidden = np.array([[0.0, 1.0], [1.0, 2.0]]), np.array([[True, False], [False, True]])
    only_hidden = np.where(hidden, truth, NAN)
    with pytest.raises(TableError, match=r"Column 'real': .*'as-published' scores observed cells too"):
        column_errors([COLOR, REAL], truth, only_hidden, hidden, protocol="as-published", owners=[0, 0, 0, 1])


@pytest.mark.parametrize("owners", [None, [0], [0, 2], [1, 0], [-1, 0, 1], [0.0, 1.0], [[0, 1]], []])
def test_owners_must_name_every_column_in_order(owners):
    table = draw(0, 5, [REAL, COUNT])
    with pytest.raises(TableError):
        column_errors([REAL, COUNT], table.truth, table.predicted, table.hidden, protocol="as-published", owners=owners)


def test_there_are_two_protocols():
    with pytest.raises(TableError, match="expected one of honest, as-published"):
        column_errors([REAL], column_of(1.0), column_of(1.0), mask_of(1), protocol="published")


# --- mean, mode, and errors beside them -------------------------------------------------------------------------------


def test_mean_or_mode_sees_the_visible_cells_only():
    truth = np.array([[1.0, 2, 5.0], [3.0, 2, 6.0], [NAN, 0, 7.0], [1e9, 0, 8.0], [1e9, 0, 9.0]])
    hidden = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 1]], bool)
    predicted = mean_or_mode([REAL, COLOR, COUNT], truth, hidden)
    np.testing.assert_array_equal(predicted, [[2.0, 2.0, NAN]] * 5)


def test_of_two_modes_the_first_class_counts_and_an_ignored_column_has_none():
    truth = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(mean_or_mode([COLOR, IGNORED], truth, np.zeros((2, 2), bool)), [[1.0, NAN]] * 2)


def test_the_mean_of_equal_cells_is_no_rounding_away_from_them():
    truth = np.full((4, 1), 0.1)
    assert truth[1:].mean() != 0.1
    predicted = mean_or_mode([REAL], truth, mask_of(1, 0, 0, 0))
    np.testing.assert_array_equal(predicted, truth)


def test_normalized_errors_compare_with_the_mean_and_the_mode():
    truth = np.array([[0.0, 0], [4.0, 0], [10.0, 1], [6.0, 0]])
    hidden = np.array([[0, 0], [0, 0], [1, 1], [1, 1]], bool)
    predicted = np.array([[0.0, 0], [0.0, 0], [7.0, 1], [2.0, 1]])
    # The mean of 0 and 4 is 2: off by 8 and 4, against 3 and 4. The mode 0 is wrong once of two, as is the prediction.
    expected = [math.sqrt(9 + 16) / math.sqrt(64 + 16), 1.0]
    assert normalized_errors([REAL, BINARY], truth, predicted, hidden) == pytest.approx(expected)


def test_the_mean_or_mode_itself_has_the_normalized_error_1():
    table = draw(4)
    baseline = mean_or_mode(EVERY_KIND, table.truth, table.hidden)
    for settings_ in ({}, {"protocol": "as-published", "owners": [0, 1, 2, 3, 4, 4, 4, 5, 5, 5]}):
        errors = normalized_errors(EVERY_KIND, table.truth, baseline, table.hidden, **settings_)
        np.testing.assert_allclose(errors, 1.0)


def test_as_published_normalizes_by_the_mean_under_the_same_protocol():
    truth = np.array([[0, 0.0], [1, 2.0], [0, 10.0], [1, 4.0]])
    hidden = np.array([[1, 0], [0, 0], [0, 1], [0, 0]], bool)
    predicted = np.array([[0, 1.0], [1, 2.0], [0, 7.0], [1, 4.0]])
    settings_ = {"protocol": "as-published", "owners": [0, 0, 0, 1]}
    # The number is scored on row 0: 1 off, where the mean of 0, 2 and 4 is 2 off. The mode of 1, 0, 1 is 1, wrong.
    assert normalized_errors([COLOR, REAL], truth, predicted, hidden, **settings_) == pytest.approx([0.0, 1 / 2])


@pytest.mark.parametrize(("predicted", "normalized"), [(7.0, 1.0), (8.0, math.inf)])
def test_beside_a_perfect_mean_the_normalized_error_is_1_or_infinite(predicted, normalized):
    truth = column_of(7.0, 7.0, 7.0)
    assert normalized_errors([REAL], truth, column_of(0.0, 0.0, predicted), mask_of(0, 0, 1)) == [normalized]


def test_without_a_visible_cell_or_a_scored_one_there_is_nothing_to_normalize():
    truth = np.array([[1.0, 1.0], [2.0, 1.0]])
    hidden = np.array([[True, False], [True, False]])
    assert column_errors([REAL, COUNT], truth, truth, hidden)[0] == 0.0
    np.testing.assert_array_equal(normalized_errors([REAL, COUNT], truth, truth, hidden), [NAN, NAN])


def test_means_follow_the_papers_groups_and_leave_out_what_was_not_scored():
    columns = [*EVERY_KIND, IGNORED]
    errors = np.array([0.1, 0.3, 0.5, NAN, 0.7, 0.9, NAN])
    means = mean_errors(columns, errors)
    expected = {"discrete": (0.5 + 0.7 + 0.9) / 3, "continuous": (0.1 + 0.3) / 2, "all": 2.5 / 5}
    assert means == pytest.approx(expected)
    assert mean_errors([REAL, COUNT], np.array([0.2, NAN])) == pytest.approx({"continuous": 0.2, "all": 0.2})
    with pytest.raises(TableError, match="expected one for each of 2 columns"):
        mean_errors([REAL, COUNT], np.array([0.2]))


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
@pytest.mark.parametrize("column", [REAL, COLOR], ids=lambda column: column.kind)
def test_a_scored_cell_needs_a_finite_prediction(column, bad):
    with pytest.raises(TableError, match=rf"Column '{column.name}': got 1 scored cells .* Hint: impute every hidden"):
        column_errors([column], column_of(0, 1, 1), column_of(0, bad, 1), mask_of(0, 1, 1))


@pytest.mark.parametrize(
    ("truth", "predicted", "hidden", "message"),
    [
        (column_of(1.0, 2.0), column_of(1.0), mask_of(1, 1), r"predicted of shape \(1, 1\)"),
        (column_of(1.0, 2.0), column_of(1.0, 2.0), mask_of(1), r"hidden of shape \(1, 1\)"),
        (column_of(1.0, 2.0), column_of(1.0, 2.0), column_of(0, 1), "hidden of type float64"),
        (np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3), bool), "expected rows x 1 columns"),
        (np.zeros(2), np.zeros(2), np.zeros(2, bool), "expected rows x 1 columns"),
        (column_of(1.0, math.inf), column_of(1.0, 2.0), mask_of(1, 0), "Column 'real': got infinite values in truth"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(truth, predicted, hidden, message):
    with pytest.raises(TableError, match=message):
        column_errors([REAL], truth, predicted, hidden)


@pytest.mark.parametrize("ranges", [{"reel": (0.0, 1.0)}, {"real": (1.0, 0.0)}, {"real": (0.0, NAN)}])
def test_ranges_that_are_none_are_refused(ranges):
    with pytest.raises(TableError, match=f"Column '{next(iter(ranges))}'"):
        column_errors([REAL], column_of(1.0), column_of(1.0), mask_of(1), ranges=ranges)


# --- log-likelihood ---------------------------------------------------------------------------------------------------

CONTINUOUS = [  # SciPy's log-density of the value plus a shift: its distribution moved to the left
    ("normal", {"mean": 3.0, "std": 8.0}, lambda x, shift: stats.norm.logpdf(x, 3.0 - shift, 8.0)),
    (
        "log-normal",
        {"log_mean": 0.3, "log_std": 0.8},
        lambda x, shift: stats.lognorm.logpdf(x, 0.8, -shift, math.exp(0.3)),
    ),
    ("gamma", {"shape": 2.5, "rate": 1.7}, lambda x, shift: stats.gamma.logpdf(x, 2.5, -shift, 1 / 1.7)),
    ("inverse-gamma", {"shape": 3.5, "scale": 2.0}, lambda x, shift: stats.invgamma.logpdf(x, 3.5, -shift, 2.0)),
    ("inverse-gaussian", {"mean": 1.3, "shape": 2.0}, lambda x, shift: stats.invgauss.logpdf(x, 0.65, -shift, 2.0)),
    ("exponential", {"rate": 0.7}, lambda x, shift: stats.expon.logpdf(x, -shift, 1 / 0.7)),
    ("rayleigh", {"sigma": 1.3}, lambda x, shift: stats.rayleigh.logpdf(x, -shift, 1.3)),
]


def test_every_likelihood_has_a_case():
    assert {case[0] for case in CONTINUOUS} == {name for name, one in LIKELIHOODS.items() if one.scalable}


@pytest.mark.parametrize("shift", [0.0, 0.25])
@pytest.mark.parametrize(("name", "usual", "reference"), CONTINUOUS, ids=[case[0] for case in CONTINUOUS])
def test_continuous_log_likelihoods_are_scipys_in_the_tables_units(name, usual, reference, shift):
    column = Column(name="x", kind="positive", likelihood=name, shift=shift)
    values = np.array([0.5, 1.0, 4.0, NAN])
    found = log_likelihood(column, usual | ({"shift": shift} if shift else {}), values)
    np.testing.assert_allclose(found[:-1], reference(values[:-1], shift), rtol=1e-12)
    assert np.isnan(found[-1])


def test_zeros_below_a_clip_have_the_density_at_the_clip():
    column = Column(name="x", kind="positive", clip=1e-3)
    found = log_likelihood(column, {"log_mean": 0.3, "log_std": 0.8}, np.array([0.0, 1e-3, 2.0, NAN]))
    reference = stats.lognorm(0.8, scale=math.exp(0.3)).logpdf([1e-3, 1e-3, 2.0])
    np.testing.assert_allclose(found[:-1], reference, rtol=1e-12)
    assert np.isnan(found[-1])


def test_discrete_log_likelihoods_are_scipys():
    counts = np.array([0.0, 3.0, 7.0, NAN])
    np.testing.assert_allclose(log_likelihood(COUNT, {"rate": 3.2}, counts)[:-1], stats.poisson(3.2).logpmf([0, 3, 7]))
    codes = np.array([0.0, 1.0, NAN])
    np.testing.assert_allclose(
        log_likelihood(BINARY, {"probability": 0.3}, codes)[:-1], stats.bernoulli(0.3).logpmf([0, 1])
    )
    shares = np.array([0.2, 0.3, 0.5])
    for column in (COLOR, SIZE):
        found = log_likelihood(column, {"probabilities": shares}, np.array([0.0, 1.0, 2.0, NAN]))
        np.testing.assert_allclose(found[:-1], np.log(shares))
        assert np.isnan(found[-1])
    assert np.isnan(log_likelihood(COUNT, {"rate": 3.2}, counts)[-1])


def test_probabilities_that_a_trick_cut_to_0_or_1_cost_much_but_not_everything():
    codes = np.array([0.0, 1.0])
    least = math.log(1e-6)
    for probability, expected in ((0.0, [math.log(1 - 1e-6), least]), (1.0, [least, math.log(1 - 1e-6)])):
        found = log_likelihood(BINARY, {"probability": probability}, codes)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = log_likelihood(COLOR, {"probabilities": np.array([0.0, 0.25, 0.75])}, np.array([0.0, 1.0, 2.0]))
    total = 1e-6 + 0.25 + 0.75
    np.testing.assert_allclose(found, np.log([1e-6 / total, 0.25 / total, 0.75 / total]), rtol=1e-12)
    np.testing.assert_allclose(log_likelihood(COUNT, {"rate": 0.0}, np.array([0.0])), [-1e-6])


def test_parameters_may_differ_by_cell_and_by_draw():
    rng = np.random.default_rng(0)
    values = rng.normal(size=5)
    mean, std = rng.normal(size=(3, 5)), rng.random(5) + 0.5
    found = log_likelihood(REAL, {"mean": mean, "std": std}, values)
    np.testing.assert_allclose(found, stats.norm(mean, std).logpdf(values))
    shares = rng.dirichlet([2.0, 2.0, 2.0], (3, 5))
    codes = np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    found = log_likelihood(COLOR, {"probabilities": shares}, codes)
    np.testing.assert_allclose(found, np.log(shares[:, np.arange(5), codes.astype(int)]))


def test_a_value_without_a_density_is_minus_infinity():
    usual = {"log_mean": 0.0, "log_std": 1.0}
    np.testing.assert_array_equal(log_likelihood(POSITIVE, usual, np.array([-1.0, 0.0])), [-math.inf, -math.inf])
    np.testing.assert_array_equal(
        log_likelihood(COLOR, {"probabilities": np.full(3, 1 / 3)}, np.array([3.0, 0.5])), [-math.inf, -math.inf]
    )


def test_a_likelihood_of_your_own_can_be_given():
    weibull = define_likelihood(  # of shape 2 and size 3, whose natural and only parameter is -1 / 3^2
        "weibull-2",
        support=Support(0.0),
        statistics=lambda x, xp: (x**2,),
        log_base=lambda x, xp: xp.log(2.0 * x),
        log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
        factors=lambda scale, xp: (scale**2,),
    )
    column = Column(name="x", kind="positive", likelihood="weibull-2", shift=0.5)
    usual = {weibull.usual_names[0]: -1 / 9}
    found = log_likelihood(column, usual, np.array([0.0, 3.0]), weibull)
    np.testing.assert_allclose(found, stats.weibull_min.logpdf([0.5, 3.5], 2.0, scale=3.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("column", "usual", "message"),
    [
        (IGNORED, {}, "Column 'note': got an ignored column"),
        (REAL, {"mean": 1.0}, "Column 'real': .* normal expects mean, std"),
        (COLOR, {"probability": 0.5}, "Column 'color': .* categorical expects probabilities"),
        (COLOR, {"probabilities": np.array([0.5, 0.5])}, "Column 'color': .* expected 3 along the last axis"),
    ],
)
def test_parameters_of_another_likelihood_are_refused(column, usual, message):
    with pytest.raises(TableError, match=message):
        log_likelihood(column, usual, np.array([0.0]))


@pytest.mark.parametrize("method", ["std-none", "lip-none", "lip-bern", "lip-gamma"])
def test_no_scaling_changes_the_log_likelihood_of_the_best_fit(method):
    """Recovered maximum-likelihood parameters are those of the table itself, whatever it was scaled by."""
    rng = np.random.default_rng(1)
    n = 300
    table = pd.DataFrame({"real": rng.normal(1e3, 5.0, n), "positive": rng.gamma(2.0, 3.0, n)})
    table["count"], table["color"] = rng.poisson(4.0, n), rng.choice(["blue", "green", "red"], n, p=[0.5, 0.3, 0.2])
    table.loc[:9, "positive"] = 0.0  # which gives the column a shift
    kinds = {"real": "real", "positive": "positive"}
    scaler = LipschitzScaler(method, kinds=kinds, random_state=0).fit(table)
    usual = scaler.unscale(scaler.natural_)
    codes = table["color"].map({"blue": 0.0, "green": 1.0, "red": 2.0})
    shares = codes.value_counts(normalize=True).sort_index().to_numpy()
    shift = table["positive"][table["positive"] > 0].min()
    logs = np.log(table["positive"] + shift)
    expected = {
        "real": stats.norm(table["real"].mean(), table["real"].std(ddof=0)).logpdf(table["real"]),
        "positive": stats.norm(logs.mean(), logs.std(ddof=0)).logpdf(logs) - logs,
        "count": stats.poisson(table["count"].mean()).logpmf(table["count"]),
        "color": np.log(shares[codes.astype(int)]),
    }
    for name, reference in expected.items():
        values = codes if name == "color" else table[name]
        found = log_likelihood(scaler.schema_[name], usual[name], values.to_numpy(np.float64))
        np.testing.assert_allclose(found, reference, rtol=1e-6, err_msg=name)


# --- tables -----------------------------------------------------------------------------------------------------------

TRUTH = pd.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, np.nan, 60.0, 45.5],
        "color": ["red", "red", "blue", "green", None, "blue"],
        "seen": [True, True, False, True, False, True],
    }
)
HIDDEN = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0], [0, 1, 0]], bool)
IMPUTED = pd.DataFrame(
    {
        "seen": [True, True, True, True, False, True],
        "color": ["red", "red", "blue", "green", "red", "purple"],
        "age": [20.0, 34.0, 40.0, 99.0, 60.0, 45.5],
    }
)
# Scored: row 1 of age (row 3 is missing), 4 of a range of 40 off, the mean of 20, 40, 60 and 45.5 being 41.375; rows 2
# and 5 of color (row 4 is missing), a class that is none of truth's among them, the mode being red; rows 2 and 3 of
# seen, the mode being True.
EXPECTED = {
    "column": ["age", "color", "seen"],
    "kind": ["positive", "categorical", "binary"],
    "scored": [1, 2, 2],
    "error": [4 / 40, 1 / 2, 1 / 2],
    "baseline": [11.375 / 40, 1.0, 1 / 2],
    "normalized": [4 / 11.375, 1 / 2, 1.0],
}


def check_report(report) -> None:
    report = report.to_pandas() if isinstance(report, pl.DataFrame) else report
    pd.testing.assert_frame_equal(report, pd.DataFrame(EXPECTED), check_dtype=False)


def as_container(table: pd.DataFrame, container: str):
    if container == "polars":
        return pl.from_pandas(table)
    if container == "pyarrow":
        return pa.Table.from_pandas(table, preserve_index=False)
    return table.to_numpy(object) if container == "numpy" else table


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_tables_of_any_kind_are_scored_with_columns_in_any_order(container):
    report = imputation_error(as_container(TRUTH, container), as_container(IMPUTED, container), HIDDEN)
    assert isinstance(report, pl.DataFrame if container == "polars" else pd.DataFrame)
    check_report(report)


def test_one_kind_of_table_may_be_scored_against_another():
    in_order = IMPUTED[list(TRUTH.columns)]
    check_report(imputation_error(TRUTH, as_container(in_order, "numpy"), HIDDEN))
    check_report(imputation_error(TRUTH, as_container(IMPUTED, "polars"), HIDDEN))
    report = imputation_error(as_container(TRUTH, "numpy"), in_order, HIDDEN)
    assert list(report["column"]) == ["x0", "x1", "x2"]
    np.testing.assert_allclose(report["normalized"], EXPECTED["normalized"])


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "numpy"])
def test_hidden_may_be_a_table_whose_names_count_if_they_are_the_truths(container):
    hidden = pd.DataFrame(HIDDEN, columns=TRUTH.columns)
    check_report(imputation_error(TRUTH, IMPUTED, as_container(hidden, container)))
    if container != "numpy":
        check_report(imputation_error(TRUTH, IMPUTED, as_container(hidden[["seen", "age", "color"]], container)))
    check_report(imputation_error(TRUTH, IMPUTED, as_container(hidden.set_axis(list("abc"), axis=1), container)))


def test_labels_that_are_no_texts_are_found_too():
    truth, imputed = TRUTH.set_axis([3, 1, 2], axis=1), IMPUTED.set_axis([2, 1, 3], axis=1)
    report = imputation_error(truth, imputed, HIDDEN)
    assert list(report["column"]) == ["3", "1", "2"]
    np.testing.assert_allclose(report["error"], EXPECTED["error"])


def test_kinds_and_the_schema_say_what_is_scored_how(tmp_path):
    report = imputation_error(TRUTH, IMPUTED, HIDDEN, kinds={"age": "ordinal", "seen": "ignore"})
    assert list(report["kind"]) == ["ordinal", "categorical", "ignore"]
    assert list(report["scored"]) == [1, 2, 0]
    np.testing.assert_array_equal(report["error"], [1.0, 0.5, NAN])  # 34 is none of the ages
    assert np.isnan(report["normalized"][2])
    schema = infer_schema(TRUTH, kinds={"age": "ordinal", "seen": "ignore"})
    pd.testing.assert_frame_equal(imputation_error(TRUTH, IMPUTED, HIDDEN, schema=schema), report)
    schema.save(tmp_path / "schema.json")
    pd.testing.assert_frame_equal(imputation_error(TRUTH, IMPUTED, HIDDEN, schema=tmp_path / "schema.json"), report)
    both = imputation_error(TRUTH, IMPUTED, HIDDEN, schema=schema, kinds={"age": "real", "seen": "binary"})
    np.testing.assert_allclose(both["error"], EXPECTED["error"])
    partial = Schema(columns=[Column(name="color", kind="categorical")])  # the rest, and its classes, are the truth's
    check_report(imputation_error(TRUTH, IMPUTED, HIDDEN, schema=partial))


def test_a_hidden_class_that_the_schema_never_saw_is_scored_and_not_taken_for_missing():
    visible = TRUTH[~HIDDEN[:, 1]]
    schema = infer_schema(visible, kinds={"age": "real", "color": "categorical", "seen": "binary"})
    assert schema["color"].classes == ["green", "red"]
    report = imputation_error(TRUTH, IMPUTED, HIDDEN, schema=schema)
    assert list(report["scored"]) == EXPECTED["scored"]
    np.testing.assert_allclose(report["error"], EXPECTED["error"])


def test_classes_that_the_schema_leaves_out_have_their_usual_order_whichever_row_comes_first():
    schema = Schema(columns=[Column(name="color", kind="categorical")])
    truth = pd.DataFrame({"color": ["red", "blue", "blue"]})  # visible: one of each, of which blue is the first
    report = imputation_error(truth, truth, mask_of(0, 0, 1), schema=schema)
    assert list(report["baseline"]) == [0.0]
    assert list(report["normalized"]) == [1.0]


@pytest.mark.parametrize(
    ("truth", "imputed", "error"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 0.5], 1 / 2),  # between two classes is none of them
        ([0, 1, 0, 1], ["0", "1", "0", "none"], 1 / 2),
        (["a", "b", "a", "b"], [7, 7, 7, 7], 1.0),
        ([False, True, False, True], [0.0, 1.0, 0.0, 1.0], 0.0),
        (["x", "y", "x", "y"], pd.Categorical(["x", "y", "z", "y"]), 1 / 2),
    ],
)
def test_classes_are_compared_by_what_they_are(truth, imputed, error):
    hidden = mask_of(0, 0, 1, 1)
    report = imputation_error(pd.DataFrame({"c": truth}), pd.DataFrame({"c": imputed}), hidden, kinds={"c": "binary"})
    assert list(report["error"]) == [error]


def test_scoring_leaves_the_tables_and_the_schema_as_they_were():
    truth, imputed, hidden = TRUTH.copy(), IMPUTED.copy(), HIDDEN.copy()
    schema = infer_schema(TRUTH)
    before = schema.model_copy(deep=True)
    imputation_error(truth, imputed, hidden, schema=schema)
    pd.testing.assert_frame_equal(truth, TRUTH)
    pd.testing.assert_frame_equal(imputed, IMPUTED)
    np.testing.assert_array_equal(hidden, HIDDEN)
    assert schema == before


def test_nothing_scored_is_missing_in_the_report():
    report = imputation_error(pl.from_pandas(TRUTH), pl.from_pandas(IMPUTED), np.zeros(TRUTH.shape, bool))
    assert report["scored"].to_list() == [0, 0, 0]
    assert report["error"].null_count() == report["normalized"].null_count() == 3


@pytest.mark.parametrize(
    ("imputed", "hidden", "message"),
    [
        (IMPUTED[:5], HIDDEN, "5 imputed rows, but expected as many as in truth, 6"),
        (IMPUTED[["age", "seen"]], HIDDEN, "Column 'color': got no such column among .* Hint"),
        (IMPUTED.to_numpy()[:, :2], HIDDEN, "2 imputed columns, but an array is matched by position: expected 3"),
        (IMPUTED.replace({"age": {34.0: np.nan}}), HIDDEN, "Column 'age': got 1 scored cells that are missing .* Hint"),
        (IMPUTED.replace({"color": {"purple": "?"}}), HIDDEN, "Column 'color': got 1 scored cells that are missing"),
        (IMPUTED.assign(age="old"), HIDDEN, "Column 'age': got the text 'old'"),
        (IMPUTED, HIDDEN[:5], r"hidden of shape \(5, 3\), but expected that of truth, \(6, 3\)"),
        (IMPUTED, HIDDEN[:, :2], r"hidden of shape \(6, 2\), but expected that of truth, \(6, 3\)"),
        (IMPUTED, HIDDEN.astype(int), "Column 'age': got hidden cells of type int64, but expected booleans. Hint"),
        (IMPUTED, np.where(HIDDEN, "yes", "no"), "Column 'age': got hidden cells of type <U3"),
        (
            IMPUTED,
            pd.DataFrame(HIDDEN).astype("boolean").mask(HIDDEN),
            "Column 'age': got hidden cells of type boolean with missing ones",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(imputed, hidden, message):
    with pytest.raises(TableError, match=message):
        imputation_error(TRUTH, imputed, hidden)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(TableError, match="Column 'agee'"):
        imputation_error(TRUTH, IMPUTED, HIDDEN, kinds={"agee": "real"})
    with pytest.raises(TableError, match="Column 'size'"):
        imputation_error(TRUTH, IMPUTED, HIDDEN, schema=Schema(columns=[SIZE]))
    with pytest.raises(TableError, match="expected a Schema or the path of one"):
        imputation_error(TRUTH, IMPUTED, HIDDEN, schema={"age": "real"})


@pytest.mark.more
def test_without_a_dataframe_library_the_report_is_a_record_array():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import numpy as np
from evenly.metrics import imputation_error
report = imputation_error([[0.5], [1.5], [4.5]], [[0.5], [1.5], [2.5]], np.array([[False], [False], [True]]))
print(type(report).__name__, report["column"][0], float(report["error"][0]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["recarray", "x0", "0.5"]


@pytest.mark.parametrize("size", [1e300, 1.0, 1e-300])
@pytest.mark.parametrize(
    ("name", "usual", "reference"),
    [
        ("normal", {"mean": 0.3, "std": 0.2}, lambda size: stats.norm(0.3 * size, 0.2 * size)),
        ("exponential", {"rate": 2.0}, lambda size: stats.expon(scale=size / 2.0)),
        ("gamma", {"shape": 1.5, "rate": 2.0}, lambda size: stats.gamma(1.5, scale=size / 2.0)),
    ],
)
def test_the_log_likelihood_holds_for_units_of_any_size(name, usual, reference, size):
    column = Column(name="a", kind="real" if name == "normal" else "positive", likelihood=name)
    power = {"mean": 1, "std": 1, "rate": -1, "shape": 0}
    own = {key: value * size ** power[key] for key, value in usual.items()}
    values = np.array([0.1, 0.4, 0.9]) * size
    np.testing.assert_allclose(log_likelihood(column, own, values), reference(size).logpdf(values), rtol=1e-12)


def test_rows_in_another_order_are_refused():
    truth = pd.DataFrame({"a": [1.5, 2.5, 3.5, 9.0], "b": list("xyxx")})
    hidden = np.eye(4, 2, dtype=bool)
    with pytest.raises(TableError, match=r"same index in another order.*imputed\.loc\[truth\.index\]"):
        imputation_error(truth, truth.iloc[::-1], hidden)
    assert (imputation_error(truth.set_axis(list("abcd")), truth, hidden)["error"] == 0.0).all()  # no labels in common


def test_rounding_is_no_clear_gain():
    losses = np.random.default_rng(0).random(50)
    assert not clearly_better(losses * (1.0 - 1e-14), losses)
    assert clearly_better(losses * (1.0 - 1e-3), losses)
