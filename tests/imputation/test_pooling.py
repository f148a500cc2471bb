"""Rubin's rules: in exact fractions, against published numbers, by what they promise, and where they have no answer."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import scipy.stats as stats
from hypothesis import given
from hypothesis import strategies as st

from evenly import EvenlyWarning, TableError, pool

INF = math.inf
EXACT = {"rel": 1e-12, "abs": 0.0}
"""A dozen roundings of float64."""

NUMBERS = ("estimate", "standard_error", "low", "high", "degrees", "missing_information")


def rubin(pairs, complete=None):
    """Rubin's rules in exact fractions: estimate, total variance, degrees of freedom, missing information."""
    m = len(pairs)
    estimate = sum(q for q, _ in pairs) / m
    within = sum(se * se for _, se in pairs) / m
    between = sum((q - estimate) ** 2 for q, _ in pairs) / (m - 1)
    total = within + (1 + F(1, m)) * between
    increase = (1 + F(1, m)) * between / within
    old = degrees = (m - 1) * (1 + 1 / increase) ** 2
    if complete is not None:
        observed = F(complete + 1, complete + 3) * complete * within / total
        degrees = 1 / (1 / old + 1 / observed)
    return estimate, total, degrees, (increase + 2 / (old + 3)) / (increase + 1)


# --- numbers that were worked out elsewhere -----------------------------------------------------------------------


def test_a_case_worked_out_by_hand():
    """Within 4, between 1, total 4 + 4/3 = 16/3: a quarter of the variance comes from imputing, 2 * 4^2 degrees."""
    pooled = pool([(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    assert pooled.estimate == pytest.approx(2.0, **EXACT)
    assert pooled.standard_error == pytest.approx(math.sqrt(16 / 3), **EXACT)
    assert pooled.degrees == pytest.approx(32.0, **EXACT)
    assert pooled.missing_information == pytest.approx(41 / 140, **EXACT)  # 1/4 + 3/4 * 2/35
    assert pooled.n == 3
    small = pool([(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)], n_rows=11)
    assert small.degrees == pytest.approx(5280 / 997, **EXACT)  # 1 / (1/32 + 1/(11/13 * 10 * 3/4))


FRACTIONS = [
    [(F(1), F(1)), (F(3), F(2))],
    [(F(-7, 3), F(1, 2)), (F(-2), F(2, 3)), (F(-5, 2), F(3, 5))],
    [(F(100), F(1, 10)), (F(101), F(1, 5)), (F(99), F(0)), (F(100), F(3, 10))],
    [(F(i * i % 7, 8), F(1 + i % 3, 4)) for i in range(20)],
]


@pytest.mark.parametrize("pairs", FRACTIONS, ids=lambda pairs: f"{len(pairs)} tables")
@pytest.mark.parametrize(("n_rows", "n_parameters"), [(None, 1), (5, 1), (5, 3), (1000, 2)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_rubins_rules_in_exact_fractions(pairs, n_rows, n_parameters, level):
    complete = None if n_rows is None else n_rows - n_parameters
    estimate, total, degrees, missing = map(float, rubin(pairs, complete))
    floats = [(float(q), float(se)) for q, se in pairs]
    pooled = pool(floats, level=level, n_rows=n_rows, n_parameters=n_parameters)
    half = stats.t.ppf((1 + level) / 2, degrees) * math.sqrt(total)
    expected = [estimate, math.sqrt(total), estimate - half, estimate + half, degrees, missing]
    assert [getattr(pooled, name) for name in NUMBERS] == pytest.approx(expected, rel=1e-10)


def test_sas_example_of_physical_fitness():
    """SAS/STAT 13.2 User's Guide, MIANALYZE, example 64.1: mean oxygen intake of 31 men, 5 imputations, EDF=30.

    SAS computed from unrounded means and standard errors but prints 4 and 5 decimals of them, so that our input is off
    by up to d = 5e-5 and e = 5e-6. With deviations from the mean of 0.757 in sum, the between variance is then off by
    up to 2/4 * 0.757 * d = 1.9e-5, the total by 1.2 * 1.9e-5 + 2 * 0.965 * e = 3.3e-5, its share in the total
    by 2.5e-5.
    """
    estimates = [47.0120, 47.2407, 47.4995, 47.1485, 47.0042]
    errors = [0.95984, 0.93540, 1.00766, 0.95439, 0.96528]
    pooled = pool(list(zip(estimates, errors, strict=True)), n_rows=31)
    assert pooled.estimate == pytest.approx(47.180993, abs=5e-5)
    assert pooled.standard_error == pytest.approx(0.990266, abs=2e-5)  # 3.3e-5 / (2 * 0.99)
    assert pooled.degrees == pytest.approx(26.298, abs=2e-3)  # 28 * 2.5e-5, and as much from Rubin's; printed to 5e-4
    assert (pooled.low, pooled.high) == pytest.approx((45.1466, 49.2154), abs=1.5e-4)  # d + 2.05 * 2e-5; to 5e-5
    assert pooled.missing_information == pytest.approx(0.051977, abs=3e-5)


def test_sas_example_of_degrees():
    """The same guide: 5 imputations and a variance that imputing increases by 10 % make 484 degrees."""
    # Between variance (x^2 + x^2) / 4 from -x, 0, 0, 0, x; 1.2 times this is 0.1 for x^2 = 1/6.
    x = math.sqrt(1 / 6)
    assert pool([(q, 1.0) for q in (-x, 0.0, 0.0, 0.0, x)]).degrees == pytest.approx(484.0, **EXACT)


# --- what the rules promise ---------------------------------------------------------------------------------------


def proper_tables(rng, values, missing, n):
    """Fill a normal's missing values n times, as Bayes says: draw variance, then mean, then values."""
    count = (~missing).sum(1)
    mean = np.where(missing, 0.0, values).sum(1) / count
    squares = np.where(missing, 0.0, (values - mean[:, None]) ** 2).sum(1)
    for _ in range(n):
        variance = squares / rng.chisquare(count - 1)
        centre = rng.normal(mean, np.sqrt(variance / count))
        drawn = rng.normal(centre[:, None], np.sqrt(variance)[:, None], values.shape)
        yield np.where(missing, drawn, values)


@pytest.mark.parametrize("n_rows", [20, 100])
def test_intervals_cover_what_they_claim(n_rows):
    """2,000 samples: a coverage of 0.95 has a standard error of 0.005, so that 0.92 and 0.98 are six of them away."""
    rng, truth, spread = np.random.default_rng(0), 3.0, 2.0
    values = rng.normal(truth, spread, (2000, n_rows))
    missing = rng.random(values.shape) < 0.4
    results = [
        (full.mean(1), full.std(1, ddof=1) / math.sqrt(n_rows)) for full in proper_tables(rng, values, missing, 5)
    ]
    pooled = pool(results, n_rows=n_rows)
    assert 0.92 <= ((pooled.low <= truth) & (truth <= pooled.high)).mean() <= 0.98
    with pytest.warns(EvenlyWarning, match="the interval ignores it and is too narrow"):
        one = pool(results[:1], n_rows=n_rows)
    assert ((one.low <= truth) & (truth <= one.high)).mean() < 0.92  # so the warning is right


# Estimates and standard errors within ten orders of magnitude of each other, and zeros.
ESTIMATES = st.floats(-1e5, 1e5).map(lambda x: round(x, 5))
ERRORS = st.floats(0.0, 1e5).map(lambda x: round(x, 5))
RESULTS = st.lists(st.tuples(ESTIMATES, ERRORS), min_size=2, max_size=8)


@given(RESULTS, st.integers(2, 10**6))
def test_degrees_never_exceed_those_of_the_complete_data(results, n_rows):
    pooled = pool(results, n_rows=n_rows)
    assert 0.0 <= pooled.degrees <= n_rows - 1
    assert pooled.degrees <= pool(results).degrees


@given(RESULTS)
def test_imputing_never_shrinks_the_standard_error(results):
    pooled = pool(results)
    within = math.sqrt(sum(se * se for _, se in results) / len(results))
    assert pooled.standard_error >= within * (1 - 1e-12)
    assert pooled.low <= pooled.estimate <= pooled.high
    assert pooled.degrees >= (len(results) - 1) * (1 - 1e-12)
    assert 0.0 <= pooled.missing_information <= 1.0


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_units_do_not_matter(unit):
    results = [(1.0, 2.0), (2.0, 2.5), (3.0, 1.5)]
    pooled, scaled = pool(results), pool([(unit * q, unit * se) for q, se in results])
    for name in NUMBERS:
        factor = 1.0 if name in ("degrees", "missing_information") else unit
        assert getattr(scaled, name) == pytest.approx(factor * getattr(pooled, name), **EXACT)


def test_many_rows_bring_back_rubins_degrees():
    results = [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]
    # 32 degrees and about 0.75 n of the observed data: 32 / (1 + 32 / (0.75 n)).
    assert pool(results, n_rows=10**12).degrees == pytest.approx(pool(results).degrees, rel=1e-10)


# --- shapes -------------------------------------------------------------------------------------------------------


def test_scalars_give_floats():
    pooled = pool([(1, 2), (np.float32(2.0), np.array(2.0)), (3.0, F(2))])
    assert [type(getattr(pooled, name)) for name in NUMBERS] == [float] * 6
    assert type(pooled.n) is int


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3), (0,)])
def test_arrays_are_pooled_entry_by_entry(shape):
    rng = np.random.default_rng(1)
    results = [(rng.normal(size=shape), rng.random(shape)) for _ in range(4)]
    pooled = pool(results, n_rows=30)
    for name in NUMBERS:
        own = getattr(pooled, name)
        assert own.shape == shape
        for i in np.ndindex(shape):
            assert own[i] == getattr(pool([(q[i], se[i]) for q, se in results], n_rows=30), name)


def test_lists_are_arrays():
    pooled = pool([([1.0, 5.0], [2.0, 1.0]), ([2.0, 5.0], [2.0, 1.0]), ([3.0, 5.0], [2.0, 1.0])])
    np.testing.assert_allclose(pooled.degrees, [32.0, INF], rtol=1e-12)


def test_results_may_come_one_by_one_or_as_an_array():
    pairs = [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]
    assert pool(pair for pair in pairs) == pool(np.array(pairs)) == pool(pairs)


def test_series_keep_their_labels():
    labels = ["age", "sex"]
    results = [(pd.Series([q, 5.0], labels), pd.Series([2.0, 1.0], labels)) for q in (1.0, 2.0, 3.0)]
    pooled = pool(results, n_rows=11)
    for name in NUMBERS:
        assert list(getattr(pooled, name).index) == labels
    assert pooled.degrees["age"] == pytest.approx(5280 / 997, **EXACT)
    mixed = pool([(q, se.to_numpy()) for q, se in results], n_rows=11)
    pd.testing.assert_series_equal(mixed.low, pooled.low)


def test_series_in_another_order_are_not_mixed_up():
    first = (pd.Series([1.0, 2.0], ["age", "sex"]), pd.Series([1.0, 2.0], ["age", "sex"]))
    second = (pd.Series([2.0, 1.0], ["sex", "age"]), pd.Series([2.0, 1.0], ["sex", "age"]))
    with pytest.raises(TableError, match=r"labels \['sex', 'age'\] in result 1, .*\['age', 'sex'\].*Hint"):
        pool([first, second])
    with pytest.raises(TableError, match="labels"):
        pool([(first[0], second[1]), first])


# --- where the rules have no answer -------------------------------------------------------------------------------


def test_one_table_only():
    with pytest.warns(EvenlyWarning, match="the interval ignores it and is too narrow") as caught:
        pooled = pool([(1.0, 2.0)])
    assert caught[0].filename == __file__
    half = 2.0 * stats.norm.ppf(0.975)
    assert (pooled.low, pooled.high) == pytest.approx((1.0 - half, 1.0 + half), **EXACT)
    assert (pooled.estimate, pooled.standard_error, pooled.degrees, pooled.n) == (1.0, 2.0, INF, 1)
    assert math.isnan(pooled.missing_information)
    with pytest.warns(EvenlyWarning):
        assert pool([(1.0, 2.0)], n_rows=20, n_parameters=3).degrees == 17.0


@pytest.mark.parametrize("n", [2, 3, 10])
def test_equal_estimates_are_the_complete_datas_answer(n):
    pooled = pool([(0.1, 0.3)] * n)  # the mean of three 0.1 is not 0.1 in floats
    assert (pooled.estimate, pooled.standard_error) == (0.1, pytest.approx(0.3, **EXACT))
    assert (pooled.degrees, pooled.missing_information) == (INF, 0.0)
    assert pooled.high - 0.1 == pytest.approx(0.3 * stats.norm.ppf(0.975), **EXACT)
    small = pool([(0.1, 0.3)] * n, n_rows=9, n_parameters=2)
    assert (small.degrees, small.missing_information) == (7.0, 0.0)


def test_estimates_that_hardly_differ():
    pooled = pool([(0.0, 1.0), (1e-170, 1.0)])
    assert (pooled.degrees, pooled.standard_error) == (INF, 1.0)
    assert pooled.missing_information == 0.0


def test_standard_errors_of_zero():
    """All variance comes from imputing: m - 1 degrees. Nothing varies: a point."""
    pooled = pool([(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)])
    assert pooled.standard_error == pytest.approx(math.sqrt(4 / 3), **EXACT)
    assert (pooled.degrees, pooled.missing_information) == (2.0, 1.0)
    point = pool([(1.0, 0.0)] * 3)
    assert (point.low, point.estimate, point.high, point.standard_error) == (1.0, 1.0, 1.0, 0.0)
    assert (point.degrees, point.missing_information) == (INF, 0.0)


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-3])
def test_nothing_known_of_a_small_table(error):
    """Barnard and Rubin's degrees go to 0 with the share of variance that is not from imputing; SciPy fails there."""
    pooled = pool([(1.0, error), (2.0, error), (3.0, error)], n_rows=10)
    assert 0.0 <= pooled.degrees < 1e-4
    assert (pooled.low, pooled.high) == (-INF, INF)


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "got no results, but .*Hint"),
        (iter([]), "got no results"),
        (3.0, "got a float"),
        (None, "got a NoneType"),
        ("ab", "got a str"),
        ([1.0, 2.0], "got a float as result 0"),
        ([(1.0, 2.0), (1.0, 2.0, 3.0)], "got 3 entries in result 1"),
        ([(1.0, 2.0), (1.0,)], "got 1 entries in result 1"),
        (["12", "34"], "got a str as result 0"),
        ([{"mean": 1.0, "se": 2.0}], "got a dict as result 0"),
        ([(1.0, "a"), (1.0, 2.0)], "standard error 'a' in result 0"),
        ([(1.0, 2.0), (None, 2.0)], "estimate None in result 1"),
        ([(1.0, None), (1.0, None)], "standard error None in result 0"),
        ([([1.0, 2.0], [[1.0, 0.0], [0.0, -4.5]])] * 2, r"a standard error of -4\.5 in result 0"),
        ([(1.0, 2.0), (1j, 2.0)], "estimate 1j in result 1"),
        ([(1.0, 2.0), ([1.0, [2.0]], 2.0)], r"estimate \[1.0, \[2.0\]\] in result 1"),
        ([(1.0, 2.0), (math.nan, 2.0)], "an estimate of nan in result 1"),
        ([(math.inf, 2.0), (1.0, 2.0)], "an estimate of inf in result 0"),
        ([(1.0, 2.0), (1.0, math.nan)], "a standard error of nan in result 1"),
        ([(1.0, 2.0), (1.0, math.inf)], "a standard error of inf in result 1"),
        ([(1.0, 2.0), (1.0, -2.5)], r"a standard error of -2\.5 in result 1"),
        ([([1.0, 2.0], [1.0, -3.5])] * 2, r"a standard error of -3\.5 in result 0"),
        ([([1.0, 2.0], 1.0)] * 2, r"a standard error of shape \(\) in result 0, but .*\(2,\)"),
        ([([1.0], [1.0]), ([1.0, 2.0], [1.0, 2.0])], r"an estimate of shape \(2,\) in result 1, but .*\(1,\)"),
    ],
)
def test_bad_results_are_named(results, message):
    with pytest.raises(TableError, match=message):
        pool(results)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 0.0}, "level = 0.0"),
        ({"level": 1.0}, "level = 1.0"),
        ({"level": 95}, "level = 95.*between 0 and 1"),
        ({"level": math.nan}, "level = nan"),
        ({"level": "0.95"}, "level = '0.95'"),
        ({"n_rows": 1}, "n_rows = 1 and n_parameters = 1"),
        ({"n_rows": 5, "n_parameters": 5}, "n_rows = 5 and n_parameters = 5"),
        ({"n_rows": 5.5}, "n_rows = 5.5"),
        ({"n_rows": "5"}, "n_rows = '5'"),
        ({"n_rows": True}, "n_rows = True"),
        ({"n_rows": 5, "n_parameters": 0}, "n_parameters = 0"),
        ({"n_parameters": 1.5}, "n_parameters = 1.5"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(TableError, match=message):
        pool([(1.0, 2.0), (2.0, 2.0)], **settings)


# --- the name -----------------------------------------------------------------------------------------------------
