"""Fitted models of other libraries are pooled as they are; tests, intervals and missing information as in textbooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.imputation.mice import MICE

from evenly import EvenlyWarning, TableError, pool

M, N = 5, 60


def tables(seed: int = 0) -> list[pd.DataFrame]:
    """Complete tables that differ in a third of the cells of `age`."""
    rng = np.random.default_rng(seed)
    age, weight = rng.normal(50.0, 9.0, N), rng.normal(70.0, 12.0, N)
    pressure = 60.0 + 0.9 * age + 0.3 * weight + rng.normal(0.0, 5.0, N)
    ill = np.where(pressure + rng.normal(0.0, 12.0, N) > 125.0, "yes", "no")
    full = pd.DataFrame({"age": age, "weight": weight, "pressure": pressure, "ill": ill})
    return [full.assign(age=np.where(np.arange(N) % 3, age, rng.normal(50.0, 9.0, N))) for _ in range(M)]


TABLES = tables()
SETS = [(one[["age", "weight"]], one["pressure"]) for one in TABLES]
CLASSES = [(one[["age", "weight"]], one["ill"]) for one in TABLES]


def ols(X: object, y: object) -> object:
    return sm.OLS(y, sm.add_constant(X)).fit()


def test_least_squares_of_statsmodels_pool_to_its_own_rules():
    """Statsmodels combines fits itself: the same covariance, and its `fmi` is our lambda."""
    fits = [ols(*one) for one in SETS]
    pooled = pool(fits)
    theirs = MICE.combine(
        type("Fits", (), {"results_list": fits, "exog_names": 1, "endog_names": 1, "model_class": sm.OLS})()
    )
    np.testing.assert_allclose(pooled.estimate, theirs.params, rtol=1e-12)
    np.testing.assert_allclose(pooled.standard_error, theirs.bse, rtol=1e-12)
    np.testing.assert_allclose(pooled.imputation_share, theirs.frac_miss_info, rtol=1e-12)
    assert pooled.terms == ("const", "age", "weight")
    assert list(pooled.low.index) == ["const", "age", "weight"]


def test_degrees_tests_and_intervals_follow_the_closed_forms():
    """Rubin's and Barnard and Rubin's formulas, written out for one coefficient."""
    fits = [ols(*one) for one in SETS]
    pooled, name = pool(fits, level=0.9), "age"
    estimates = np.array([one.params[name] for one in fits])
    within, between = np.mean([one.bse[name] ** 2 for one in fits]), estimates.var(ddof=1)
    added, complete = (1 + 1 / M) * between, N - 3
    share = added / (within + added)
    old, observed = (M - 1) / share**2, (complete + 1) / (complete + 3) * complete * (1 - share)
    degrees = old * observed / (old + observed)
    error = np.sqrt(within + added)
    t = estimates.mean() / error
    assert pooled.degrees[name] == pytest.approx(degrees, rel=1e-12)
    assert pooled.t[name] == pytest.approx(t, rel=1e-12)
    assert pooled.p[name] == pytest.approx(2 * stats.t.cdf(-abs(t), degrees), rel=1e-9)
    assert pooled.relative_increase[name] == pytest.approx(added / within, rel=1e-12)
    assert pooled.missing_information[name] == pytest.approx(
        (added / within + 2 / (old + 3)) / (added / within + 1), rel=1e-12
    )
    half = stats.t.ppf(0.95, degrees) * error
    assert (pooled.low[name], pooled.high[name]) == pytest.approx((estimates.mean() - half, estimates.mean() + half))


def test_rows_that_are_given_count_more_than_those_of_the_fits():
    fits = [ols(*one) for one in SETS]
    same, fewer = pool(fits, n_rows=N, n_parameters=3), pool(fits, n_rows=20, n_parameters=3)
    np.testing.assert_array_equal(pool(fits).degrees, same.degrees)
    assert (fewer.degrees < same.degrees).all()


def test_robust_standard_errors_are_kept():
    fits = [sm.OLS(y, sm.add_constant(X)).fit(cov_type="HC3") for X, y in SETS]
    within = np.mean([one.bse["age"] ** 2 for one in fits])
    assert pool(fits).standard_error["age"] ** 2 > within


def test_a_covariance_matrix_will_do_for_standard_errors():
    fits = [ols(*one) for one in SETS]
    pairs = [(one.params, one.cov_params()) for one in fits]
    np.testing.assert_allclose(pool(pairs, n_rows=N, n_parameters=3).standard_error, pool(fits).standard_error)
    assert pool(pairs).terms == ("const", "age", "weight")


def test_arrays_have_the_names_that_the_model_gives_them():
    fits = [sm.OLS(y.to_numpy(), sm.add_constant(X.to_numpy())).fit() for X, y in SETS]
    assert pool(fits).terms == ("const", "x1", "x2")


def test_a_model_of_several_outcomes_has_a_row_for_each_and_each_term():
    parts = [pd.cut(y, 3, labels=["low", "mid", "high"]) for _, y in SETS]
    pairs = zip(SETS, parts, strict=True)
    fits = [sm.MNLogit(part, sm.add_constant(X[["age"]])).fit(disp=False) for (X, _), part in pairs]
    pooled = pool(fits)
    assert len(pooled.terms) == 4
    assert pooled.estimate.iloc[1] == pytest.approx(np.mean([np.asarray(one.params)[1, 0] for one in fits]))


@pytest.mark.parametrize("labelled", [True, False], ids=["frames", "arrays"])
def test_linear_regressions_of_scikit_learn_pool_as_those_of_statsmodels(labelled):
    data = SETS if labelled else [(X.to_numpy(), y.to_numpy()) for X, y in SETS]
    pooled = pool([LinearRegression().fit(*one) for one in data], data=data)
    expected = pool([ols(*one) for one in SETS])
    assert pooled.terms == (("intercept", "age", "weight") if labelled else ("intercept", "x0", "x1"))
    for name in ("estimate", "standard_error", "degrees", "p", "low", "missing_information"):
        np.testing.assert_allclose(getattr(pooled, name), getattr(expected, name), rtol=1e-6)


def test_logistic_regressions_of_scikit_learn_pool_as_those_of_statsmodels():
    fits = [LogisticRegression(C=np.inf, solver="newton-cholesky").fit(*one) for one in CLASSES]
    pooled = pool(fits, data=CLASSES)
    expected = pool([sm.Logit((y == "yes") * 1.0, sm.add_constant(X)).fit(disp=False) for X, y in CLASSES])
    np.testing.assert_allclose(pooled.estimate, expected.estimate, rtol=1e-3)
    np.testing.assert_allclose(pooled.standard_error, expected.standard_error, rtol=1e-3)


def test_a_fit_without_an_intercept_has_none():
    data = [(X.to_numpy(), y.to_numpy()) for X, y in SETS]
    pooled = pool([LinearRegression(fit_intercept=False).fit(*one) for one in data], data=data)
    expected = pool([sm.OLS(y, X).fit() for X, y in data])
    assert pooled.terms == ("x0", "x1")
    np.testing.assert_allclose(pooled.standard_error, expected.standard_error, rtol=1e-6)


def test_without_data_only_the_estimates_are_pooled_and_a_warning_says_so():
    fits = [Ridge().fit(*one) for one in SETS]
    with pytest.warns(EvenlyWarning, match=r"only the estimates are pooled.*data=\[\(X, y\), ...\]"):
        pooled = pool(fits)
    assert pooled.estimate["age"] == pytest.approx(np.mean([one.coef_[0] for one in fits]))
    assert pooled.standard_error.isna().all()
    assert pooled.summary().splitlines()[2].split()[2:] == ["-"] * 9


BAD = {
    "a penalty": (lambda: [Ridge(500.0).fit(*one) for one in SETS], SETS, "do not maximize the likelihood.*penalty"),
    "data of others": (lambda: [LinearRegression().fit(*one) for one in SETS], SETS[::-1], "do not maximize"),
    "fewer data": (lambda: [LinearRegression().fit(*one) for one in SETS], SETS[:2], "data of 2 entries for 5 results"),
    "data for pairs": (lambda: [(1.0, 2.0)] * 5, SETS, "data for a tuple as result 0"),
    "not fitted": (lambda: [LinearRegression()], None, "a LinearRegression as result 0.*fit scikit-learn"),
    "a pipeline": (
        lambda: [make_pipeline(StandardScaler(), LinearRegression()).fit(*one) for one in SETS],
        None,
        "a Pipeline as result 0.*the last step",
    ),
    "two targets": (
        lambda: [LinearRegression().fit(X, np.column_stack([y, y])) for X, y in SETS],
        None,
        "several targets as result 0",
    ),
    "another term": (
        lambda: [ols(*SETS[0]), ols(SETS[1][0][["weight", "age"]], SETS[1][1])],
        None,
        "labels .* in result 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_fits_that_cannot_be_pooled_are_named(name):
    fits, data, says = BAD[name]
    with pytest.raises(TableError, match=says):
        pool(fits(), data=data)


def test_the_table_of_results_reads_well():
    pooled = pool([ols(*one) for one in SETS])
    frame = pooled.to_frame()
    names = ["term", "estimate", "std_error", "t", "df", "p", "low", "high", "fmi", "r", "lambda"]
    assert list(frame.columns) == names
    assert frame["term"].tolist() == ["const", "age", "weight"]
    assert frame["p"].tolist() == pooled.p.tolist()
    lines = pooled.summary().splitlines()
    assert lines[0].split() == names
    assert lines[-1] == "5 tables, 95 % intervals"
    assert repr(pooled) == pooled.summary()
    assert pool([([[1.0, 2.0]], [[1.0, 1.0]])] * 2).terms == ("x0,0", "x0,1")
    assert pool([(1.0, 1.0)] * 2).terms == ("estimate",)


@pytest.mark.parametrize(
    ("results", "t", "p"),
    [
        ([(0.0, 0.0)] * 2, 0.0, 1.0),
        ([(2.0, 0.0)] * 2, np.inf, 0.0),
        ([(-2.0, 1.0)] * 2, -2.0, 2 * stats.norm.cdf(-2.0)),
    ],
)
def test_p_values_are_known_at_the_limits_too(results, t, p):
    pooled = pool(results)
    assert (pooled.t, pooled.p) == (t, pytest.approx(p, rel=1e-12))


def test_nothing_known_gives_no_evidence():
    assert pool([(1.0, 0.0), (2.0, 0.0)], n_rows=10).p == 1.0
