"""A standardized NumPyro program is the hand-written model of scaled data, up to the Jacobian."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from program_cases import DRAWS, N, fitted, scale_of, scaled, weibull

import evenly
from evenly import EvenlyWarning, LipschitzScaler, TableError

jax = pytest.importorskip("jax")
pytest.importorskip("numpyro")

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import log_density
from scipy import stats

from evenly.integrations.numpyro import (
    LipschitzReparam,
    from_likelihood,
    rescale_prior,
    standardize,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*enable_x64.*:DeprecationWarning")

MAKERS = {
    "normal": lambda a, b: dist.Normal(a, jnp.exp(b)),
    "log-normal": lambda a, b: dist.LogNormal(a, jnp.exp(b)),
    "gamma": lambda a, b: dist.Gamma(jnp.exp(a), jnp.exp(b)),
    "inverse-gamma": lambda a, b: dist.InverseGamma(jnp.exp(a), jnp.exp(b)),
    "inverse-gaussian": lambda a, b: from_likelihood("inverse-gaussian", mean=jnp.exp(a), shape=jnp.exp(b)),
    "exponential": lambda a, b: dist.Exponential(jnp.exp(a + b)),
    "rayleigh": lambda a, b: dist.Weibull(jnp.exp(a + b), 2.0),
    "weibull-1.5": lambda a, b: dist.Weibull(jnp.exp(a + b), 1.5),
}
"""The distribution that a program gives a site of each likelihood, from two unbounded parameters."""
MORE_MAKERS = [
    ("rayleigh", lambda a, b: from_likelihood("rayleigh", sigma=jnp.exp(a + b))),
    ("gamma", lambda a, b: from_likelihood("gamma", shape=jnp.exp(a), rate=jnp.exp(b))),
    ("weibull-1.5", lambda a, b: from_likelihood(weibull(), -jnp.exp(a + b)[..., None])),
    (
        "weibull-1.5",
        lambda a, b: dist.TransformedDistribution(
            dist.Exponential(jnp.exp(a + b)), dist.transforms.PowerTransform(jnp.asarray(1.0 / 1.5))
        ),
    ),
]
"""Others for the same columns."""
PARAMETERS = {"a": np.array(0.3), "b": np.array(-0.2)}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def density(model, *args):
    def of(parameters):
        return log_density(model, args, {}, parameters)[0]

    value, gradients = jax.value_and_grad(of)({name: jnp.asarray(one) for name, one in PARAMETERS.items()})
    return float(value), {name: np.asarray(one) for name, one in gradients.items()}


def assert_same(program, by_hand, args, args_by_hand, jacobian):
    (one, of_one), (other, of_other) = density(program, *args), density(by_hand, *args_by_hand)
    assert np.isclose(one, other + jacobian, rtol=1e-9, atol=1e-6)
    for name in of_one:
        assert of_one[name] != 0.0
        assert np.allclose(of_one[name], of_other[name], rtol=1e-9, atol=1e-6)


def priors():
    return numpyro.sample("a", dist.Normal(0.0, 1.0)), numpyro.sample("b", dist.Normal(0.0, 1.0))


def plain(make):
    def model(x, mask, rows):
        a, b = priors()
        with numpyro.plate("rows", N, dim=-1):
            numpyro.sample("x", make(a, b), obs=x)

    return model


def masked(make):
    def model(x, mask, rows):
        a, b = priors()
        with numpyro.plate("rows", N, dim=-1), handlers.mask(mask=mask):
            numpyro.sample("x", make(a, b), obs=x)

    return model


def masked_observations(make):
    """`obs_mask` samples the others as latents, which are fixed by `substitute` here."""

    def model(x, mask, rows):
        a, b = priors()
        with numpyro.plate("rows", N, dim=-1):
            numpyro.sample("x", make(a, b), obs=x, obs_mask=mask)

    return model


def subsampled(make):
    def model(x, mask, rows):
        a, b = priors()
        with numpyro.plate("rows", N, dim=-1, subsample_size=len(ROWS)) as rows, handlers.scale(scale=2.0):
            numpyro.sample("x", make(a, b), obs=x[rows])

    return handlers.substitute(model, {"rows": jnp.asarray(ROWS)})


def scanned(make):
    def model(x, mask, rows):
        a, b = priors()

        def step(carry, cell):
            numpyro.sample("x", make(a + carry, b), obs=cell)
            return carry + 0.1, carry

        scan(step, 0.0, x)

    return model


def with_an_event(make):
    def model(x, mask, rows):
        a, b = priors()
        with numpyro.plate("rows", N // 3, dim=-1):
            numpyro.sample("x", make(a, b).expand([3]).to_event(1), obs=x.reshape(-1, 3))

    return model


MASK = np.array([True, False, True] * 4)
ROWS = np.array([3, 1, 7])
PROGRAMS = {
    plain: np.ones(N),
    masked: 1.0 * MASK,
    subsampled: np.isin(np.arange(N), ROWS) * (2.0 * N / len(ROWS)),
    scanned: np.ones(N),
    with_an_event: np.ones(N),
}
"""How often the log-density of each cell counts."""


QUICK = {(plain, "log-normal"), (masked, "log-normal"), (scanned, "gamma"), (subsampled, "gamma")}
"""What compiles least; the rest is for `make test-more`."""
EVERY = [
    pytest.param(program, name, make, id=f"{program.__name__}-{name}", marks=() if quick else pytest.mark.more)
    for program in PROGRAMS
    for k, (name, make) in enumerate([*MAKERS.items(), *MORE_MAKERS])
    for quick in [(program, name) in QUICK and k < len(MAKERS)]
]


@pytest.mark.parametrize(("program", "name", "make"), EVERY)
def test_a_standardized_program_is_the_model_of_scaled_data(program, name, make):
    scaler, table = fitted()
    by_hand, jacobian = scaled(name, table[name], scale_of(scaler, name))
    model = program(make)
    total = float((jacobian * PROGRAMS[program]).sum())
    rows = (MASK, ROWS)
    given = standardize(model, scaler, {"x": name})
    assert_same(given, model, (table[name], *rows), (by_hand, *rows), total)


def test_the_columns_cover_every_continuous_likelihood():
    from evenly.likelihoods import FAMILIES

    assert set(DRAWS) == {name for name, family in FAMILIES.items() if family.scalable}
    assert set(MAKERS) == {*DRAWS, "weibull-1.5"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "log-normal" else pytest.mark.more) for name in MAKERS]
)
def test_missing_cells_count_nothing(name):
    """Neither hidden by a mask of the model, nor masked by the program; and gradients are numbers."""
    scaler, table = fitted()
    cells = np.where(MASK, table[name], np.nan)
    by_hand, jacobian = scaled(name, table[name], scale_of(scaler, name))
    total = float(jacobian[MASK].sum())
    model = masked(MAKERS[name])
    for program in (
        standardize(model, scaler, {"x": name}),
        standardize(plain(MAKERS[name]), scaler, {"x": name}, missing="mask"),
    ):
        assert_same(program, model, (cells, MASK, ROWS), (by_hand, MASK, ROWS), total)


@pytest.mark.more
def test_observed_and_unobserved_parts_of_a_site_keep_the_tables_units():
    scaler, table = fitted()
    program = standardize(masked_observations(MAKERS["gamma"]), scaler, {"x": "gamma"})
    rest = np.where(MASK, np.nan, 55.0)
    latent = handlers.substitute(program, {"x_unobserved": jnp.where(MASK, 1.0, rest)})
    whole = np.where(MASK, table["gamma"], 55.0)
    one = density(latent, np.where(MASK, table["gamma"], np.nan), MASK, ROWS)
    other = density(standardize(plain(MAKERS["gamma"]), scaler, {"x": "gamma"}), whole, MASK, ROWS)
    assert np.isclose(one[0], other[0])
    assert np.isclose(one[1]["a"], other[1]["a"])


@pytest.mark.more
@pytest.mark.parametrize("joint", ["independent", "mask by cell", "multivariate", "low rank", "mixture", "rightmost"])
def test_several_columns_lie_along_the_last_axis(joint):
    scaler, table = fitted()
    names = ["height", "weight"]
    x = np.stack([table[name] for name in names], axis=-1)
    scales = np.array([scale_of(scaler, name) for name in names])
    root = np.array([[1.3, 0.0], [0.4, 0.8]])

    def model(x):
        a, b = priors()
        means = jnp.stack([a, a * b])
        with numpyro.plate("rows", N, dim=-2 if joint == "rightmost" else -1):
            if joint == "multivariate":
                fn = dist.MultivariateNormal(means, scale_tril=root * jnp.exp(b))
            elif joint == "low rank":
                fn = dist.LowRankMultivariateNormal(means, root * jnp.exp(a), jnp.exp(jnp.stack([a, b])))
            elif joint == "mixture":
                parts = dist.Normal(jnp.stack([means, 2.0 * means]), jnp.exp(b)).to_event(1)
                fn = dist.MixtureSameFamily(dist.Categorical(jnp.array([0.3, 0.7])), parts)
            elif joint == "mask by cell":
                fn = dist.Normal(means, jnp.exp(b)).mask(jnp.array([True, False])).to_event(1)
            elif joint == "rightmost":
                with numpyro.plate("columns", 2, dim=-1):
                    numpyro.sample("x", dist.Normal(means, jnp.exp(b)), obs=x)
                return
            else:
                fn = dist.Normal(means, jnp.exp(b)).to_event(1)
            numpyro.sample("x", fn, obs=x)

    jacobian = N * np.log(scales[:1] if joint == "mask by cell" else scales).sum()
    assert_same(standardize(model, scaler, {"x": names}), model, (x,), (x * scales,), jacobian)


@pytest.mark.more
def test_a_mixture_of_components_along_the_last_axis_moves_by_column():
    scaler, table = fitted()
    names = ["height", "weight"]
    x = np.stack([table[name] for name in names], axis=-1)
    scales = np.array([scale_of(scaler, name) for name in names])

    def model(x):
        a, b = priors()
        parts = dist.Normal(jnp.stack([a, b, a * b]) * jnp.ones((2, 3)), jnp.exp(b))
        with numpyro.plate("rows", N, dim=-2), numpyro.plate("columns", 2, dim=-1):
            numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.ones((2, 3)) / 3), parts), obs=x)

    assert_same(standardize(model, scaler, {"x": names}), model, (x,), (x * scales,), N * np.log(scales).sum())


@pytest.mark.more
def test_branches_of_cond_are_standardized():
    scaler, table = fitted()

    def model(x):
        a, b = priors()

        def one(_):
            numpyro.sample("x", dist.Normal(a, jnp.exp(b)), obs=x)

        def other(_):
            numpyro.sample("x", dist.Normal(b, jnp.exp(a)), obs=x)

        cond(a > 0.0, one, other, None)

    scale = scale_of(scaler, "height")
    x = table["height"]
    assert_same(standardize(model, scaler, {"x": "height"}), model, (x,), (x * scale,), N * np.log(scale))


@pytest.mark.more
def test_a_shifted_column_is_shifted_before_it_is_scaled():
    cells = np.array([0.0, 1.5, 3.0, 8.0, 20.0, 2.0, 2.5, 40.0])
    scaler = LipschitzScaler("lip-none", likelihoods={0: "gamma"}).fit(cells[:, None])
    shift, scale = scaler.columns_[0].column.shift, scale_of(scaler, "x0")
    assert shift > 0.0

    def model(x):
        a, b = priors()
        numpyro.sample("x", dist.Gamma(jnp.exp(a), jnp.exp(b)), obs=x)

    program = standardize(model, scaler, {"x": "x0"})
    assert_same(program, model, (cells,), ((cells + shift) * scale,), len(cells) * np.log(scale))
    drawn = Predictive(program, {name: np.full(500, one) for name, one in PARAMETERS.items()})(jax.random.key(0), None)
    assert float(drawn["x"].min()) < 0.0  # a draw of the gamma, back in the table's units


@pytest.mark.parametrize("loop", [False, pytest.param(True, marks=pytest.mark.more)], ids=["plate", "scan"])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, marks=() if name == "log-normal" else pytest.mark.more, id=name)
        for name, make in [*MAKERS.items(), *MORE_MAKERS]
    ],
)
def test_draws_come_in_the_tables_units(name, make, loop):
    """Unscaled, they are draws of the distribution that the model names; `scan` draws within its body."""
    scaler, _ = fitted()
    n = 200 if name == "weibull-1.5" else 2000

    def model():
        a, b = jnp.asarray(0.3), jnp.asarray(-0.2)
        if loop:
            return scan(lambda carry, _: (carry, numpyro.sample("x", make(a, b))), 0.0, None, length=n)[1]
        return numpyro.sample("x", make(a, b).expand([n]))

    program = standardize(model, scaler, {"x": name})
    own = handlers.trace(handlers.seed(program, 0)).get_trace()["x"]["value"]
    raw = handlers.seed(model, 1)()
    drawn = scaled(name, np.asarray(own), scale_of(scaler, name))[0]
    assert not np.allclose(own, drawn)
    assert stats.ks_2samp(drawn, np.asarray(raw)).pvalue > 1e-3


def test_log_likelihoods_come_in_the_tables_units():
    scaler, table = fitted()
    program = standardize(plain(MAKERS["gamma"]), scaler, {"x": "gamma"})
    draws = {name: np.stack([one, one + 0.1]) for name, one in PARAMETERS.items()}
    found = log_likelihood(program, draws, table["gamma"], MASK, ROWS)["x"]
    scale = scale_of(scaler, "gamma")
    expected = [
        stats.gamma(np.exp(a), scale=np.exp(-b) / scale).logpdf(table["gamma"])
        for a, b in zip(draws["a"], draws["b"], strict=True)
    ]
    assert np.allclose(found, expected)


def test_a_moved_distribution_is_of_the_same_class_and_has_its_moments():
    scaler, _ = fitted()
    program = standardize(lambda: numpyro.sample("x", dist.Gamma(4.0, 2.0)), scaler, {"x": "gamma"})
    fn = handlers.trace(handlers.seed(program, 0)).get_trace()["x"]["fn"]
    assert type(fn) is dist.Gamma
    assert np.isclose(fn.mean, 2.0 / scale_of(scaler, "gamma"))


def test_values_that_the_model_uses_again_keep_their_units():
    scaler, table = fitted()

    def model(x):
        return numpyro.sample("x", dist.Normal(0.0, 1.0), obs=x)

    assert (standardize(model, scaler, {"x": "height"})(table["height"]) == table["height"]).all()


# --- discrete sites ---------------------------------------------------------------------------------------------------


def discrete(visits, smoker, color):
    a, b = priors()
    with numpyro.plate("rows", N):
        numpyro.sample("visits", dist.Poisson(jnp.exp(a)), obs=visits)
        numpyro.sample("smoker", dist.Bernoulli(logits=b), obs=smoker)
        numpyro.sample("color", dist.Categorical(logits=jnp.stack([a, b, 0.0 * a])), obs=color)


DISCRETE = {name: name for name in ("visits", "smoker", "color")}


def codes(table):
    return table["visits"], 1 * (table["smoker"] == "yes"), np.searchsorted(["blue", "green", "red"], table["color"])


def test_discrete_sites_are_left_as_they_are():
    scaler, table = fitted()
    program = standardize(discrete, scaler, DISCRETE)
    assert_same(program, discrete, codes(table), codes(table), 0.0)
    assert [row.how for row in program.explain().rows] == ["left as it is"] * 3


@pytest.mark.more
def test_the_gamma_trick_stands_in_for_discrete_sites():
    """Written by hand: a gamma of each scaled feature whose mean is what the site emits, its shape the fitted one."""
    scaler, table = fitted("lip-gamma")
    program = standardize(discrete, scaler, DISCRETE, tricks=True)
    columns = {one.column.name: one for one in scaler.columns_}
    noise = 1.0 + 1.1 / 31.1

    def fits(name):
        return [
            (fit.scale, fit.natural[0] + 1.0, -(fit.natural[0] + 1.0) / fit.natural[1]) for fit in columns[name].fits
        ]

    def by_hand(visits, smoker, color):
        a, b = priors()
        total = sum(mean for _, _, mean in fits("color"))
        means = {"visits": [jnp.exp(a)], "smoker": [jnp.exp(b)]}
        means["color"] = list(total * jax.nn.softmax(jnp.stack([a, b, 0.0 * a])))
        cells = {"visits": [visits], "smoker": [smoker], "color": [1.0 * (color == k) for k in range(3)]}
        for name in DISCRETE:
            for k, (scale, shape, _) in enumerate(fits(name)):
                gamma = dist.Gamma(shape, shape / means[name][k])
                numpyro.sample(f"{name}{k}", gamma, obs=scale * (cells[name][k] + noise))

    jacobian = N * sum(np.log(scale) for name in DISCRETE for scale, _, _ in fits(name))
    assert_same(program, by_hand, codes(table), codes(table), jacobian)
    assert {row.how for row in program.explain().rows} == {"Gamma trick"}
    assert len(program.explain().rows) == 5


@pytest.mark.more
def test_the_gamma_trick_is_undone_in_draws():
    scaler, _ = fitted("lip-gamma")
    program = standardize(lambda a: discrete_draws(a, scaler), scaler, DISCRETE, tricks=True)
    drawn = handlers.trace(handlers.seed(program, 0)).get_trace(20000)
    column = {one.column.name: one for one in scaler.columns_}
    for name, one in drawn.items():
        values = np.asarray(one["value"])
        assert set(np.unique(values)) <= set(range(30))
        mean = (values[:, None] == np.arange(3)).mean(0) if name == "color" else values.mean()
        expected = column[name].recover([fit.natural for fit in column[name].fits])
        assert np.allclose(mean, next(iter(expected.values())), atol=0.05)


def discrete_draws(n, scaler):
    """Sites that emit what the scaler fitted."""
    fits = {one.column.name: one.fits for one in scaler.columns_}
    means = {name: np.array([-(f.natural[0] + 1.0) / f.natural[1] for f in fits[name]]) for name in DISCRETE}
    numpyro.sample("visits", dist.Poisson(means["visits"][0]).expand([n]))
    numpyro.sample("smoker", dist.Bernoulli(logits=np.log(means["smoker"][0])).expand([n]))
    numpyro.sample("color", dist.Categorical(means["color"] / means["color"].sum()).expand([n]))


@pytest.mark.more
def test_negative_binomials_come_out_of_the_trick():
    """From the mean and the variance of the fitted gamma, less the noise."""
    scaler, _ = fitted("lip-gamma")
    fit = next(one for one in scaler.columns_ if one.column.name == "calls").fits[0]
    shape, rate = fit.natural[0] + 1.0, -fit.natural[1]
    program = standardize(lambda: numpyro.sample("x", dist.Poisson(shape / rate)), scaler, {"x": "calls"}, tricks=True)
    fn = handlers.trace(handlers.seed(program, 0)).get_trace()["x"]["fn"].predictive
    noise_variance = 1.1 * 30.0 / (31.1**2 * 32.1)
    mean, variance = shape / rate / fit.scale - 1.0 - 1.1 / 31.1, shape / rate**2 / fit.scale**2 - noise_variance
    assert variance > 2.0 * mean
    assert np.allclose([fn.mean, fn.variance], [mean, variance])


@pytest.mark.more
def test_gammas_may_be_written_for_discrete_columns_under_the_trick():
    scaler, table = fitted("lip-gamma")
    fits = {one.column.name: one.fits for one in scaler.columns_}

    def model(visits, color):
        a, b = priors()
        with numpyro.plate("rows", N):
            numpyro.sample("visits", dist.Gamma(jnp.exp(a), jnp.exp(b)), obs=visits)
            each = dist.Gamma(jnp.exp(jnp.stack([a, b, a + b])), jnp.exp(b)).to_event(1)
            numpyro.sample("color", each, obs=color)

    def by_hand(visits, color):
        a, b = priors()
        noise = 1.0 + 1.1 / 31.1
        numpyro.sample("v", dist.Gamma(jnp.exp(a), jnp.exp(b)), obs=fits["visits"][0].scale * (visits + noise))
        for k in range(3):
            shape = jnp.exp(jnp.stack([a, b, a + b]))[k]
            numpyro.sample(f"c{k}", dist.Gamma(shape, jnp.exp(b)), obs=fits["color"][k].scale * ((color == k) + noise))

    visits, _, color = codes(table)
    program = standardize(model, scaler, {"visits": "visits", "color": "color"}, tricks=True)
    jacobian = N * np.log([fits["visits"][0].scale, *(one.scale for one in fits["color"])]).sum()
    assert_same(program, by_hand, (visits, color), (visits, color), jacobian)


# --- beside other handlers, and priors --------------------------------------------------------------------------------


def test_lipschitz_reparam_goes_beside_others():
    scaler, table = fitted()

    def model(x):
        a = numpyro.sample("a", dist.Normal(0.5, 2.0))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Gamma(jnp.exp(a), jnp.exp(b)), obs=x)

    both = handlers.reparam(model, {"x": LipschitzReparam(scaler, "gamma"), "a": LocScaleReparam(0.0)})
    alone = handlers.reparam(standardize(model, scaler, {"x": "gamma"}), {"a": LocScaleReparam(0.0)})
    parameters = {"a_decentered": 0.3, "b": -0.2}
    one, other = (log_density(each, (table["gamma"],), {}, parameters)[0] for each in (both, alone))
    assert np.isclose(one, other)
    assert not np.isclose(
        one, log_density(handlers.reparam(model, {"a": LocScaleReparam(0.0)}), (table["gamma"],), {}, parameters)[0]
    )


@pytest.mark.more
@pytest.mark.parametrize(
    ("column", "parameter", "power"),
    [
        ("height", "mean", 1),
        ("height", "loc", 1),
        ("height", "std", 1),
        ("log-normal", "scale", 1),
        ("gamma", "shape", 0),
        ("gamma", "rate", -1),
        ("inverse-gamma", "rate", 1),
        ("exponential", "rate", -1),
        ("rayleigh", "sigma", 1),
        ("rayleigh", "scale", 1),
        ("weibull-1.5", "scale", 1),
        ("inverse-gaussian", "shape", 1),
    ],
)
def test_a_prior_is_carried_along_by_the_power_of_the_scale(column, parameter, power):
    scaler, _ = fitted()
    factor = scale_of(scaler, column) ** power
    for prior in (dist.HalfNormal(3.0), dist.Normal(1.0, 2.0), dist.Uniform(0.5, 4.0)):
        moved = rescale_prior(prior, scaler, column, parameter)
        at = 0.5 * factor + np.array([0.1, 1.0]) * factor
        assert np.allclose(moved.log_prob(at), prior.log_prob(at / factor) - np.log(factor))
        assert moved.support(at).all()
        anywhere = dist.biject_to(moved.support)(np.array([-3.0, 0.4, 5.0]))
        assert prior.support(anywhere / factor).all()  # where samplers go
    logged = rescale_prior(dist.Normal(1.0, 2.0), scaler, column, parameter, log=True)
    assert np.isclose(
        logged.log_prob(0.3), dist.Normal(1.0 + power * np.log(scale_of(scaler, column)), 2.0).log_prob(0.3)
    )


@pytest.mark.more
def test_priors_of_several_columns_are_carried_along():
    scaler, _ = fitted()
    names = ["height", "weight"]
    scales = np.array([scale_of(scaler, name) for name in names])
    at = np.array([0.3, -0.2])
    plain = rescale_prior(dist.Normal(0.0, 2.0).expand([2]).to_event(1), scaler, names, "mean")
    joint = rescale_prior(dist.MultivariateNormal(jnp.zeros(2), 4.0 * jnp.eye(2)), scaler, names, "mean")
    expected = stats.norm(0.0, 2.0 * scales).logpdf(at).sum()
    assert np.allclose([plain.log_prob(at), joint.log_prob(at)], expected)
    with pytest.raises(evenly.EvenlyError, match="cannot be rescaled"):
        rescale_prior(dist.Dirichlet(np.ones(2)), scaler, names, "mean", log=True)


# --- explain, and bad input -------------------------------------------------------------------------------------------


def test_a_program_explains_itself():
    scaler, _ = fitted()
    program = standardize(lambda: None, scaler, {"x": ["height", "weight"], "y": "gamma", "z": "visits"})
    explained = program.explain()
    summary = scaler.summary_.set_index("feature")
    for row in explained.rows[:3]:
        of = summary.loc[row.feature]
        assert (row.scale, row.smoothness_before, row.smoothness_after) == (
            of["scale"],
            of["smoothness_before"],
            of["smoothness_after"],
        )
    assert [row.how for row in explained.rows] == ["scaled", "scaled", "scaled", "left as it is"]
    assert re.search(r"priors.*rescale_prior", str(explained))
    assert list(explained.to_frame()["site"]) == ["x", "x", "y", "z"]


def run(fn, column, value=None, **options):
    scaler, _ = fitted(options.pop("method", "lip-none"))
    model = lambda: numpyro.sample("obs", fn, obs=value)  # noqa: E731
    return handlers.seed(standardize(model, scaler, {"obs": column}, **options), 0)()


ONES = np.ones(N)
BAD = {
    "no column": (lambda: run(dist.Normal(), "heigth"), "the column 'heigth'.*expected one of.*'height'"),
    "no hashable": (lambda: run(dist.Normal(), {}), "the column {}"),
    "another likelihood": (lambda: run(dist.Gamma(1.0, 1.0), "log-normal"), "Gamma.*log-normal.*expected LogNormal"),
    "a likelihood without a law": (lambda: run(dist.Cauchy(), "normal"), "Cauchy"),
    "of Evenly": (lambda: run(from_likelihood("gamma", shape=1.0, rate=2.0), "normal"), "gamma likelihood.*normal"),
    "another discrete": (lambda: run(dist.Normal(), "visits"), "Normal.*declared poisson"),
    "another trick": (
        lambda: run(dist.Poisson(2.0), "smoker", method="lip-gamma", tricks=True),
        "Poisson.*takes Bernoulli",
    ),
    "continuous under a trick": (
        lambda: run(dist.Normal(), "visits", method="lip-gamma", tricks=True),
        "Normal.*takes Poisson",
    ),
    "classes": (
        lambda: run(dist.Categorical(np.ones(4) / 4), "color", method="lip-gamma", tricks=True),
        "4 probabilities.*3 classes",
    ),
    "no trick": (lambda: run(dist.Poisson(2.0), "visits", tricks=True), "lip-none.*Gamma trick"),
    "columns of several likelihoods": (lambda: run(dist.Normal(), ["gamma", "height"]), "gamma of.*normal of"),
    "no columns": (lambda: run(dist.Normal(), []), "no columns"),
    "an axis too few": (lambda: run(dist.Normal(), ["height", "weight"]), r"shape \(\).*2 columns"),
    "an axis too long": (
        lambda: run(dist.Normal(np.zeros(3)).to_event(1), ["height", "weight"]),
        r"shape \(3,\).*2 columns",
    ),
    "observations of another shape": (
        lambda: run(dist.Normal(np.zeros(5)), "height", ONES),
        r"shape \(12,\).*shape \(5,\)",
    ),
    "an outer product": (
        lambda: run(dist.Normal(np.zeros(N)), "height", ONES[:, None]),
        r"shape \(12, 1\).*shape \(12,\)",
    ),
    "missing cells": (
        lambda: run(dist.Normal(), "height", np.where(MASK, ONES, np.nan)),
        '4 missing cells without a mask.*missing="mask"',
    ),
    "half a row": (
        lambda: run(
            dist.MultivariateNormal(np.zeros(2), np.eye(2)),
            ["height", "weight"],
            np.array([[1.0, np.nan], [1.0, 2.0]]),
            missing="mask",
        ),
        "1 rows with some cells missing",
    ),
}


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=pytest.mark.more) if one == "half a row" else one for one in BAD]
)
def test_bad_input_is_refused_and_the_site_named(what):
    do, message = BAD[what]
    with pytest.raises(TableError, match=message) as error:
        do()
    if what != "no trick":
        assert "at site 'obs'" in str(error.value)
        assert "skip=['obs']" in str(error.value)


def test_a_scaler_that_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        standardize(lambda: None, LipschitzScaler(), {"x": "height"})


def test_options_that_make_no_sense_are_refused():
    scaler, _ = fitted()
    for bad in ({"sites": {}}, {"sites": "x"}, {"skip": "x"}, {"missing": "drop"}):
        with pytest.raises(TableError):
            standardize(lambda: None, **({"scaler": scaler, "sites": {"x": "height"}} | bad))
    with pytest.raises(TableError, match="the parameter 'size'"):
        rescale_prior(dist.Normal(), scaler, "height", "size")
    with pytest.raises(TableError, match="keep their units"):
        rescale_prior(dist.Normal(), scaler, "visits", "rate")


def test_a_skipped_site_stays_as_it_is():
    assert type(run(dist.Cauchy(), "height", skip=["obs"])) is not None


def test_an_ignored_column_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = LipschitzScaler(kinds={0: "ignore"}).fit([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(TableError, match="ignores it"):
        standardize(lambda: None, scaler, {"x": "x0"})


def test_a_site_that_the_model_lacks_is_warned_of():
    scaler, table = fitted()
    program = standardize(plain(MAKERS["gamma"]), scaler, {"x": "gamma", "y": "height"})
    with pytest.warns(EvenlyWarning, match=r"without the sites \['y'\]"):
        density(program, table["gamma"], MASK, ROWS)


# --- with inference ---------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_svi_and_autoguides_take_a_program_as_it_is():
    scaler, table = fitted()

    def model(x=None):
        a, b = priors()
        with numpyro.plate("rows", N, subsample_size=6) as rows:
            numpyro.sample("x", dist.Gamma(jnp.exp(a), jnp.exp(b)), obs=None if x is None else x[rows])

    program = standardize(model, scaler, {"x": "gamma"})
    guide = AutoNormal(program)
    svi = SVI(program, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    result = svi.run(jax.random.key(0), 800, jnp.asarray(table["gamma"]), progress_bar=False)
    drawn = Predictive(program, guide=guide, params=result.params, num_samples=300)(jax.random.key(1))["x"]
    assert 0.5 < float(jnp.median(drawn)) / np.median(table["gamma"]) < 2.0


@pytest.mark.more
def test_the_posterior_is_that_of_the_raw_program_with_priors_carried_along():
    """By NUTS, of a regression with a gamma and a normal outcome; and so are draws of the outcomes."""
    rng = np.random.default_rng(3)
    t = rng.normal(size=80)
    height = 170.0 + 9.0 * t + rng.normal(size=80) * 6.0
    cost = rng.gamma(2.5, 400.0 * np.exp(0.3 * t))
    scaler = LipschitzScaler("lip-none", likelihoods={0: "normal", 1: "gamma"}).fit(np.stack([height, cost], -1))

    def write(carry):
        def model(t, height=None, cost=None):
            level = numpyro.sample("level", carry(dist.Normal(160.0, 30.0), "x0", "mean"))
            slope = numpyro.sample("slope", carry(dist.Normal(0.0, 20.0), "x0", "mean"))
            spread = numpyro.sample("spread", carry(dist.HalfNormal(20.0), "x0", "std"))
            shape = numpyro.sample("shape", dist.LogNormal(1.0, 1.0))
            log_rate = numpyro.sample("log_rate", carry(dist.Normal(-5.0, 2.0), "x1", "rate", log=True))
            trend = numpyro.sample("trend", dist.Normal(0.0, 1.0))
            numpyro.sample("height", dist.Normal(level + slope * t, spread), obs=height)
            numpyro.sample("cost", dist.Gamma(shape, jnp.exp(log_rate + trend * t)), obs=cost)

        return model

    raw = write(lambda prior, *_, **__: prior)
    own = write(lambda prior, column, name, **how: rescale_prior(prior, scaler, column, name, **how))
    program = standardize(own, scaler, {"height": "x0", "cost": "x1"})
    s0, s1 = scale_of(scaler, "x0"), scale_of(scaler, "x1")
    back = {
        "level": lambda x: x / s0,
        "slope": lambda x: x / s0,
        "spread": lambda x: x / s0,
        "log_rate": lambda x: x + np.log(s1),
    }
    draws = []
    for k, model in enumerate((raw, program)):
        chain = MCMC(NUTS(model, dense_mass=True), num_warmup=800, num_samples=2500, progress_bar=False)
        chain.run(jax.random.key(k), t, height, cost)
        found = {name: np.asarray(one) for name, one in chain.get_samples().items()}
        seen = Predictive(model, chain.get_samples())(jax.random.key(7), t[:3])
        if model is program:
            found = {name: back.get(name, lambda x: x)(one) for name, one in found.items()}
        draws.append((found, seen))
    (one, seen), (other, seen_too) = draws
    for name in one:
        n = [numpyro.diagnostics.effective_sample_size(each[name][None]) for each in (one, other)]
        spread = one[name].std()
        error = spread * np.sqrt(1.0 / n[0] + 1.0 / n[1])
        assert abs(one[name].mean() - other[name].mean()) < 4.0 * error, name
        assert abs(other[name].std() / spread - 1.0) < 4.0 / np.sqrt(2.0 * min(n)), name
    for name in ("height", "cost"):
        thinned = (np.asarray(each[name])[::5, 1] for each in (seen, seen_too))
        assert stats.ks_2samp(*thinned).pvalue > 1e-3
