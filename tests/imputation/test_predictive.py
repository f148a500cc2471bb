"""One value for each distribution, or a draw from it: against SciPy, whatever the kind of column."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenly.imputation.predictive import mix_parameters, predictive_of
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
}


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
    if name != "poisson":
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
