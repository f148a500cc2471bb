"""Predictive distributions of every kind: estimates, intervals, draws, log-probabilities, mixtures; against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from evenly import Imputer, Predictive
from evenly.likelihoods.continuous import (
    EXPONENTIAL,
    GAMMA,
    INVERSE_GAMMA,
    INVERSE_GAUSSIAN,
    LOG_NORMAL,
    NORMAL,
    RAYLEIGH,
)
from evenly.likelihoods.discrete import BERNOULLI, POISSON, Categorical
from evenly.likelihoods.registry import get_likelihood
from evenly.predictive import (
    BinaryPredictive,
    BinnedPredictive,
    CategoricalPredictive,
    mix_parameters,
    predictive_of,
)
from evenly.predictive.bins import Bins, make_bins
from evenly.tables.schema import Column

SHARES = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]])

# Column, likelihood, usual parameters of three cells, SciPy's distribution of the value, its mode.
NUMBERS = {
    "normal": (
        Column(name="c", kind="real"),
        NORMAL,
        {"mean": np.array([-3.0, 0.0, 1e6]), "std": np.array([0.5, 1.0, 100.0])},
        lambda u: stats.norm(u["mean"], u["std"]),
        lambda u: u["mean"],
    ),
    "log-normal": (
        Column(name="c", kind="positive", shift=0.25),
        LOG_NORMAL,
        {"log_mean": np.array([-1.0, 0.0, 2.0]), "log_std": np.array([0.1, 0.5, 1.0]), "shift": 0.25},
        lambda u: stats.lognorm(u["log_std"], -0.25, np.exp(u["log_mean"])),
        lambda u: np.exp(u["log_mean"] - u["log_std"] ** 2) - 0.25,
    ),
    "gamma": (
        Column(name="c", kind="positive", likelihood="gamma", shift=0.5),
        GAMMA,
        {"shape": np.array([1.5, 4.0, 100.0]), "rate": np.array([0.1, 1.0, 20.0]), "shift": 0.5},
        lambda u: stats.gamma(u["shape"], -0.5, 1.0 / u["rate"]),
        lambda u: (u["shape"] - 1.0) / u["rate"] - 0.5,
    ),
    "exponential": (
        Column(name="c", kind="positive", likelihood="exponential"),
        EXPONENTIAL,
        {"rate": np.array([0.1, 1.0, 20.0])},
        lambda u: stats.expon(0.0, 1.0 / u["rate"]),
        lambda u: 0.0 * u["rate"],
    ),
    "poisson": (
        Column(name="c", kind="count"),
        POISSON,
        {"rate": np.array([0.3, 2.7, 40.5])},
        lambda u: stats.poisson(u["rate"]),
        lambda u: np.floor(u["rate"]),
    ),
    "inverse-gamma": (
        Column(name="c", kind="positive", likelihood="inverse-gamma", shift=0.5),
        INVERSE_GAMMA,
        {"shape": np.array([3.0, 5.0, 40.0]), "scale": np.array([0.2, 2.0, 300.0]), "shift": 0.5},
        lambda u: stats.invgamma(u["shape"], -0.5, u["scale"]),
        lambda u: u["scale"] / (u["shape"] + 1.0) - 0.5,
    ),
    "inverse-gaussian": (
        Column(name="c", kind="positive", likelihood="inverse-gaussian"),
        INVERSE_GAUSSIAN,
        {"mean": np.array([0.5, 2.0, 30.0]), "shape": np.array([4.0, 1.0, 90.0])},
        lambda u: stats.invgauss(u["mean"] / u["shape"], scale=u["shape"]),
        lambda u: u["mean"] * (np.hypot(1.0, 1.5 * u["mean"] / u["shape"]) - 1.5 * u["mean"] / u["shape"]),
    ),
    "rayleigh": (
        Column(name="c", kind="positive", likelihood="rayleigh"),
        RAYLEIGH,
        {"sigma": np.array([0.1, 1.0, 50.0])},
        lambda u: stats.rayleigh(scale=u["sigma"]),
        lambda u: u["sigma"],
    ),
    "negative-binomial": (
        Column(name="c", kind="count", likelihood="negative-binomial"),
        get_likelihood("negative-binomial"),
        {"mean": np.array([0.7, 5.3, 203.0]), "dispersion": np.array([2.0, 0.5, 0.1])},
        lambda u: stats.nbinom(1.0 / u["dispersion"], 1.0 / (1.0 + u["mean"] * u["dispersion"])),
        lambda u: np.floor(np.maximum(u["mean"] * (1.0 - u["dispersion"]), 0.0)),
    ),
}
COUNTS = ("poisson", "negative-binomial")


@pytest.mark.parametrize("which", ["mean", "median", "mode"])
@pytest.mark.parametrize("name", NUMBERS)
def test_estimates_of_numbers_are_scipys(name, which):
    column, family, usual, law, mode = NUMBERS[name]
    expected = mode(usual) if which == "mode" else getattr(law(usual), which)()
    np.testing.assert_allclose(predictive_of(column, family, usual).estimate(which), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("level", [5e-4, 0.475, 0.525, 0.9995])
@pytest.mark.parametrize("name", NUMBERS)
def test_quantiles_of_numbers_are_scipys(name, level):
    column, family, usual, law, _ = NUMBERS[name]
    found = predictive_of(column, family, usual).quantile(level)
    np.testing.assert_allclose(found, law(usual).ppf(level), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NUMBERS)
def test_draws_of_numbers_follow_scipys_law(name):
    column, family, usual, law, _ = NUMBERS[name]
    n = 4000
    wide = {key: np.repeat(value, n) if np.ndim(value) else value for key, value in usual.items()}
    drawn = predictive_of(column, family, wide).sample(np.random.default_rng(0)).reshape(3, n)
    reference = law(usual)
    error = reference.std() / math.sqrt(n)
    assert (np.abs(drawn.mean(1) - reference.mean()) < 4.0 * error).all()
    if name not in COUNTS:
        for j, one in enumerate(drawn):
            assert (
                stats.kstest(law({k: v[j] if np.ndim(v) else v for k, v in usual.items()}).cdf(one), "uniform").pvalue
                > 1e-3
            )
    again = predictive_of(column, family, wide).sample(np.random.default_rng(0)).reshape(3, n)
    assert again.tobytes() == drawn.tobytes()


@pytest.mark.parametrize(
    ("kind", "which", "codes"),
    [
        ("categorical", "mean", [2, 0, 2, 2]),
        ("categorical", "median", [2, 0, 2, 2]),
        ("categorical", "mode", [2, 0, 2, 2]),
        ("ordinal", "mean", [2, 0, 2, 2]),
        ("ordinal", "median", [1, 0, 1, 2]),
        ("ordinal", "mode", [2, 0, 2, 2]),
    ],
)
def test_estimates_of_classes(kind, which, codes):
    column = Column(name="c", kind=kind, classes=["a", "b", "c"])
    assert predictive_of(column, Categorical(3), {"probabilities": SHARES}).estimate(which).tolist() == codes


@pytest.mark.parametrize("which", ["mean", "median", "mode"])
def test_estimates_of_two_classes(which):
    column = Column(name="c", kind="binary", classes=[False, True])
    usual = {"probability": np.array([0.0, 0.2, 0.5, 0.8, 1.0])}
    assert predictive_of(column, BERNOULLI, usual).estimate(which).tolist() == [0, 0, 0, 1, 1]


def test_draws_of_classes_have_their_shares():
    n = 4000
    column = Column(name="c", kind="categorical", classes=["a", "b", "c"])
    codes = predictive_of(column, Categorical(3), {"probabilities": np.repeat(SHARES, n, axis=0)}).sample(
        np.random.default_rng(0)
    )
    found = np.array([np.bincount(part.astype(int), minlength=3) / n for part in codes.reshape(4, n)])
    assert (np.abs(found - SHARES) <= 4.0 * np.sqrt(SHARES * (1.0 - SHARES) / n)).all()
    usual = {"probability": np.repeat([0.0, 0.3, 1.0], n)}
    drawn = (
        predictive_of(Column(name="c", kind="binary"), BERNOULLI, usual).sample(np.random.default_rng(0)).reshape(3, n)
    )
    assert drawn.mean(1) == pytest.approx([0.0, 0.3, 1.0], abs=4.0 * math.sqrt(0.21 / n))


def test_an_infinite_mean_gives_way_to_the_median():
    """The inverse gamma has no mean up to shape 1; a log-normal's may pass the largest number."""
    column = Column(name="c", kind="positive", likelihood="inverse-gamma")
    usual = {"shape": np.array([0.5, 3.0]), "scale": np.array([2.0, 2.0])}
    usual = dict(zip(INVERSE_GAMMA.usual_names, usual.values(), strict=True))
    found = predictive_of(column, INVERSE_GAMMA, usual).estimate("mean")
    np.testing.assert_allclose(found, [stats.invgamma(0.5, scale=2.0).median(), 1.0], rtol=1e-6)
    wide = {"log_mean": np.array([600.0]), "log_std": np.array([20.0])}
    found = predictive_of(Column(name="c", kind="positive"), LOG_NORMAL, wide).estimate("mean")
    np.testing.assert_allclose(found, np.exp(600.0), rtol=1e-9)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_normals_whose_variance_is_no_number(size):
    column, usual = Column(name="c", kind="real"), {"mean": np.full(1000, 2.0 * size), "std": np.full(1000, size)}
    for which in ("mean", "median", "mode"):
        assert (predictive_of(column, NORMAL, usual).estimate(which) == 2.0 * size).all()
    np.testing.assert_allclose(predictive_of(column, NORMAL, usual).quantile(0.975), (2.0 + 1.959964) * size, rtol=1e-6)
    drawn = predictive_of(column, NORMAL, usual).sample(np.random.default_rng(0)) / size
    assert drawn.mean() == pytest.approx(2.0, abs=4.0 / math.sqrt(1000))
    assert drawn.std() == pytest.approx(1.0, abs=4.0 / math.sqrt(2000))


# Two networks' parameters of a cell.
PAIRS = {
    NORMAL: ([0.0, 1.0], [10.0, 1.0]),
    LOG_NORMAL: ([0.0, 0.5], [1.0, 0.2]),
    GAMMA: ([2.0, 1.0], [30.0, 3.0]),
    INVERSE_GAMMA: ([5.0, 2.0], [9.0, 40.0]),
    INVERSE_GAUSSIAN: ([1.0, 4.0], [3.0, 30.0]),
    EXPONENTIAL: ([0.1], [10.0]),
    RAYLEIGH: ([1.0], [7.0]),
    POISSON: ([0.5], [9.0]),
}
every_family = pytest.mark.parametrize("family", PAIRS, ids=lambda one: one.name)


def named(family, parameters):
    return dict(zip(family.usual_names, np.array(parameters)[:, None], strict=True))


@every_family
def test_networks_that_agree_are_that_distribution(family):
    for own in PAIRS[family]:
        mixed = mix_parameters(family, [named(family, own)] * 3)
        np.testing.assert_allclose([mixed[name][0] for name in family.usual_names], own, rtol=1e-9)


@every_family
def test_a_mixture_is_what_the_likelihood_fits_best_to_draws_from_both(family):
    mixed = mix_parameters(family, [named(family, own) for own in PAIRS[family]])
    natural = family.to_natural(np.array([mixed[name][0] for name in family.usual_names]))
    rng = np.random.default_rng(0)
    drawn = np.concatenate([family.sample(rng, family.to_natural(np.array(own)), (20_000,)) for own in PAIRS[family]])
    best = family.log_density(drawn, natural).mean()
    for own in (*PAIRS[family], np.mean(PAIRS[family], axis=0)):
        assert best > family.log_density(drawn, family.to_natural(np.array(own))).mean() - 1e-4
    assert family.log_density(drawn, family.fit(family.statistics(drawn).mean(0))).mean() == pytest.approx(
        best, abs=1e-3
    )


def test_networks_that_disagree_are_less_sure_than_each():
    mixed = mix_parameters(NORMAL, [named(NORMAL, own) for own in PAIRS[NORMAL]])
    assert mixed["mean"][0] == pytest.approx(5.0)
    assert mixed["std"][0] == pytest.approx(math.sqrt(26.0))


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e9])
def test_a_mixture_has_all_digits_whatever_the_numbers_size(size):
    far = [{"mean": np.array([size * (1.0 + one)]), "std": np.array([size * 1e-6])} for one in (0.0, 2e-6)]
    mixed = mix_parameters(NORMAL, far)
    assert mixed["std"][0] / size == pytest.approx(math.sqrt(2.0) * 1e-6, rel=1e-6)
    sure = [{"shape": np.array([1e30]), "rate": np.array([1e30 / size])}] * 2
    assert {name: float(one[0]) for name, one in mix_parameters(GAMMA, sure).items()} == pytest.approx(
        {"shape": 1e30, "rate": 1e30 / size}
    )


# --- numbers in bins ---

EDGES = np.array([-1.0, 0.0, 0.5, 4.0])
HISTOGRAM = Bins(EDGES[:-1].tolist(), EDGES[1:].tolist(), [-0.5, 0.25, 2.25], [0.2, 0.5, 0.3])
"""Bins without a gap between them, so that their distribution is a histogram's."""
MASS = np.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]])


def binned(bins: Bins = HISTOGRAM, mass: np.ndarray = MASS) -> BinnedPredictive:
    return BinnedPredictive(Column(name="c", kind="real"), bins, bins.means(mass), mass)


def histogram(row: int) -> stats.rv_histogram:
    return stats.rv_histogram((MASS[row] / np.diff(EDGES), EDGES), density=True)


def test_bins_without_gaps_are_a_histogram():
    cells = binned()
    laws = [histogram(row) for row in range(3)]
    np.testing.assert_allclose(cells.mean(), [law.mean() for law in laws])
    np.testing.assert_allclose(cells.parameters["std"], [law.std() for law in laws])
    for level in (0.01, 0.25, 0.5, 0.95):
        np.testing.assert_allclose(cells.quantile(level), [law.ppf(level) for law in laws])
    np.testing.assert_allclose(cells.interval(0.8), np.transpose([law.interval(0.8) for law in laws]))
    for value in (-0.9, 0.2, 3.0):
        np.testing.assert_allclose(cells.log_prob(np.full(3, value)), [law.logpdf(value) for law in laws])


def test_draws_of_numbers_in_bins_follow_their_histogram():
    n = 4000
    drawn = binned(mass=np.repeat(MASS, n, axis=0)).sample(np.random.default_rng(0)).reshape(3, n)
    for row in range(3):
        assert stats.kstest(drawn[row], histogram(row).cdf).pvalue > 1e-3


def test_whole_numbers_in_bins_of_one_value_are_a_discrete_law():
    values = np.array([0.0, 1.0, 5.0])
    cells = binned(make_bins(np.repeat(values, 10)))
    for row in range(3):
        law = stats.rv_discrete(values=(values.astype(int), MASS[row]))
        own = cells.take([row] * 3)
        np.testing.assert_allclose(own.log_prob(values), law.logpmf(values))
        np.testing.assert_allclose((own.mean()[0], own.std[0]), (law.mean(), law.std()))
        assert [own.quantile(level)[0] for level in (0.1, 0.6, 0.99)] == [law.ppf(level) for level in (0.1, 0.6, 0.99)]
    assert cells.mode().tolist() == [1.0, 0.0, 5.0]


# --- what every kind of distribution can do ---

KINDS: dict[str, Predictive] = {
    **{name: predictive_of(column, family, usual) for name, (column, family, usual, _, _) in NUMBERS.items()},
    "binned": binned(),
    "binary": BinaryPredictive(Column(name="c", kind="binary", classes=[False, True]), np.array([0.1, 0.5, 0.8])),
    "categorical": CategoricalPredictive(Column(name="c", kind="categorical", classes=["a", "b", "c"]), SHARES[:3]),
    "ordinal": CategoricalPredictive(Column(name="c", kind="ordinal", classes=["a", "b", "c"]), SHARES[:3]),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def assert_same(found: Predictive, expected: Predictive, rows: list[int], rtol: float = 0.0) -> None:
    assert type(found) is type(expected)
    assert found.column == expected.column
    for name, value in expected.parameters.items():
        wanted = np.asarray(value)[rows] if np.ndim(value) else value
        np.testing.assert_allclose(found.parameters[name], wanted, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("name", NUMBERS)
def test_log_probabilities_of_numbers_are_scipys(name):
    column, family, usual, law, _ = NUMBERS[name]
    reference = law(usual)
    for level in (0.01, 0.5, 0.99):
        values = reference.ppf(level)
        expected = reference.logpmf(values) if name in COUNTS else reference.logpdf(values)
        found = predictive_of(column, family, usual).log_prob(values)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_log_probabilities_of_classes_are_those_of_their_shares():
    for name in ("categorical", "ordinal"):
        for code in range(3):
            found = KINDS[name].log_prob(np.full(3, float(code)))
            np.testing.assert_allclose(found, np.log(SHARES[:3, code]), rtol=1e-5)
    yes = np.array([0.1, 0.5, 0.8])
    np.testing.assert_allclose(KINDS["binary"].log_prob(np.ones(3)), stats.bernoulli(yes).logpmf(1))
    np.testing.assert_allclose(KINDS["binary"].log_prob(np.zeros(3)), stats.bernoulli(yes).logpmf(0))


@every_kind
def test_the_log_probability_of_a_missing_cell_is_missing(name):
    known = KINDS[name].mode()
    found = KINDS[name].log_prob(np.where([True, False, True], np.nan, known))
    assert np.isnan(found).tolist() == [True, False, True]
    assert found[1] == pytest.approx(KINDS[name].log_prob(known)[1], rel=1e-12)


@pytest.mark.parametrize("level", [0.2, 0.9])
@pytest.mark.parametrize("name", NUMBERS)
def test_central_intervals_are_scipys(name, level):
    column, family, usual, law, _ = NUMBERS[name]
    low, high = predictive_of(column, family, usual).interval(level)
    for found, expected in zip((low, high), law(usual).interval(level), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["binary", "categorical", "ordinal"])
def test_both_ends_of_an_interval_of_classes_are_the_most_probable_one(name):
    for end in KINDS[name].interval(0.9):
        assert end.tolist() == KINDS[name].mode().tolist() == KINDS[name].mean().tolist()


@every_kind
def test_rows_that_are_taken_apart_and_put_together_are_the_same(name):
    cells = KINDS[name]
    assert_same(cells.take([2, 0]), cells, [2, 0])
    assert_same(cells.take(np.array([True, False, True])), cells, [0, 2])
    assert_same(cells.take(slice(1)).append([cells.take([1]), cells.take([2])]), cells, [0, 1, 2])
    assert_same(cells.append([]), cells, [0, 1, 2])
    assert len(cells.take([]).mean()) == 0


@every_kind
def test_a_distribution_mixed_with_itself_is_that_distribution(name):
    cells = KINDS[name]
    assert_same(cells.mix([]), cells, [0, 1, 2])
    assert_same(cells.mix([cells, cells]), cells, [0, 1, 2], rtol=1e-6)


@pytest.mark.parametrize("name", ["binned", "binary", "categorical", "ordinal"])
def test_the_probabilities_of_a_mixture_are_the_mean_of_both(name):
    one, other = KINDS[name], KINDS[name].take([2, 0, 1])
    mixed = one.mix([other])
    np.testing.assert_allclose(mixed.probabilities, 0.5 * (one.probabilities + other.probabilities))
    if name == "binned":
        np.testing.assert_allclose(mixed.mean(), 0.5 * (one.mean() + other.mean()))
    codes = np.full(3, 1.0)
    np.testing.assert_allclose(
        mixed.log_prob(codes), np.logaddexp(one.log_prob(codes), other.log_prob(codes)) - np.log(2.0), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["binned", "binary", "categorical"])
def test_values_of_other_rows_take_their_share_of_the_probability(name):
    """A half for two values of the first row, nothing for the second, all for one of the third."""
    cells, share = KINDS[name], np.array([0.5, 0.0, 1.0])
    weights, values = np.array([[0.2, 0.3], [0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    mixed = cells.with_values(share, weights, values)
    np.testing.assert_allclose(mixed.probabilities.sum(1), 1.0)
    codes = values if name != "binned" else HISTOGRAM.codes(values)
    expected = (1.0 - share)[:, None] * cells.probabilities
    for row in range(3):
        for code, weight in zip(codes[row].astype(int), weights[row], strict=True):
            expected[row, code] += weight
    np.testing.assert_allclose(mixed.probabilities, expected)
    if name == "binned":
        np.testing.assert_allclose(mixed.mean(), [0.5 * cells.mean()[0] + 0.3, cells.mean()[1], 1.0])


# --- tables ---


@pytest.mark.parametrize("name", NUMBERS)
def test_the_table_of_numbers_has_scipys_mean_and_quantiles(name):
    column, family, usual, law, _ = NUMBERS[name]
    table = predictive_of(column, family, usual).to_frame()
    assert list(table) == ["mean", "q05", "q25", "q50", "q75", "q95"]
    reference = law(usual)
    np.testing.assert_allclose(table["mean"], reference.mean(), rtol=1e-6, atol=1e-9)
    for level in (5, 25, 50, 75, 95):
        np.testing.assert_allclose(table[f"q{level:02d}"], reference.ppf(level / 100.0), rtol=1e-6, atol=1e-9)


def test_the_table_of_bins_has_their_mean_and_quantiles():
    table = binned().to_frame()
    assert isinstance(table, pd.DataFrame)
    np.testing.assert_allclose(table.loc[1], [histogram(1).mean(), *histogram(1).ppf([0.05, 0.25, 0.5, 0.75, 0.95])])


def test_the_table_of_classes_has_a_column_for_each():
    pd.testing.assert_frame_equal(KINDS["categorical"].to_frame(), pd.DataFrame(SHARES[:3], columns=["a", "b", "c"]))
    yes = np.array([0.1, 0.5, 0.8])
    pd.testing.assert_frame_equal(KINDS["binary"].to_frame(), pd.DataFrame({"False": 1.0 - yes, "True": yes}))


@every_kind
def test_without_pandas_the_table_is_one_of_polars(name, monkeypatch):
    expected = KINDS[name].to_frame()
    monkeypatch.setattr("evenly.predictive.base.find_spec", lambda module: None)
    found = KINDS[name].to_frame()
    assert isinstance(found, pl.DataFrame)
    assert found.columns == list(expected)
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())


# --- as dictionaries, which they were ---


@every_kind
def test_a_parameter_by_name_warns_and_is_the_same(name):
    cells = KINDS[name]
    for parameter, value in cells.parameters.items():
        with pytest.warns(FutureWarning, match=rf"use \.parameters\['{parameter}'\]") as caught:
            found = cells[parameter]
        assert [one.filename for one in caught] == [__file__]
        np.testing.assert_array_equal(found, value)


def test_distributions_of_an_imputer_are_predictive_and_may_be_asked_as_before():
    table = pd.DataFrame({"x": [1.5, 2.5, np.nan, 4.0] * 5, "c": ["a", "b", None, "a"] * 5})
    found = Imputer("marginal").fit(table).distribution(table)
    assert [type(found[name]) for name in ("x", "c")] == [BinnedPredictive, BinaryPredictive]
    assert all(isinstance(one, Predictive) for one in found.values())
    with pytest.warns(FutureWarning, match=r"\['mean'\] is deprecated"):
        mean = found["x"]["mean"]
    np.testing.assert_array_equal(mean, found["x"].mean())
    with pytest.warns(FutureWarning), pytest.raises(KeyError):
        found["x"]["median"]
    assert len(found["c"].to_frame()) == len(table)
