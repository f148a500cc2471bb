"""A standardized Pyro program is the hand-written model of scaled data, up to the Jacobian."""

from __future__ import annotations

import numpy as np
import pytest
from program_cases import N, fitted, scale_of, scaled, weibull

from evenly import EvenlyError, EvenlyWarning, LipschitzScaler, TableError

torch = pytest.importorskip("torch")
pyro = pytest.importorskip("pyro")

import pyro.distributions as dist
from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.infer.reparam import LocScaleReparam
from scipy import stats

from evenly.integrations.pyro import (
    LipschitzReparam,
    from_likelihood,
    rescale_prior,
    standardize,
)

MAKERS = {
    "normal": lambda a, b: dist.Normal(a, b.exp()),
    "log-normal": lambda a, b: dist.LogNormal(a, b.exp()),
    "gamma": lambda a, b: dist.Gamma(a.exp(), b.exp()),
    "inverse-gamma": lambda a, b: dist.InverseGamma(a.exp(), b.exp()),
    "inverse-gaussian": lambda a, b: from_likelihood("inverse-gaussian", mean=a.exp(), shape=b.exp()),
    "exponential": lambda a, b: dist.Exponential((a + b).exp()),
    "rayleigh": lambda a, b: dist.Weibull((a + b).exp(), torch.tensor(2.0)),
    "weibull-1.5": lambda a, b: dist.Weibull((a + b).exp(), torch.tensor(1.5)),
}
MORE_MAKERS = [
    ("rayleigh", lambda a, b: from_likelihood("rayleigh", sigma=(a + b).exp())),
    ("weibull-1.5", lambda a, b: from_likelihood(weibull(), -(a + b).exp()[..., None])),
    (
        "weibull-1.5",
        lambda a, b: dist.TransformedDistribution(
            dist.Exponential((a + b).exp()), [torch.distributions.transforms.PowerTransform(torch.tensor(1.0 / 1.5))]
        ),
    ),
]
MASK = torch.tensor([True, False, True] * 4)
ROWS = torch.tensor([3, 1, 7])


@pytest.fixture(autouse=True)
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    yield
    torch.set_default_dtype(before)


def density(model, *args, **fixed):
    parameters = {name: torch.tensor(one, requires_grad=True) for name, one in {"a": 0.3, "b": -0.2}.items()}
    conditioned = poutine.condition(model, data=parameters | fixed)
    total = poutine.trace(conditioned).get_trace(*args).log_prob_sum()
    total.backward()
    return float(total.detach()), {name: float(one.grad) for name, one in parameters.items()}


def assert_same(program, by_hand, args, args_by_hand, jacobian):
    (one, of_one), (other, of_other) = density(program, *args), density(by_hand, *args_by_hand)
    assert np.isclose(one, other + float(jacobian), rtol=1e-9, atol=1e-6)
    assert all(value != 0.0 for value in of_one.values())
    assert np.allclose(list(of_one.values()), list(of_other.values()), rtol=1e-9, atol=1e-6)


def priors():
    return pyro.sample("a", dist.Normal(0.0, 1.0)), pyro.sample("b", dist.Normal(0.0, 1.0))


def plain(make):
    def model(x):
        a, b = priors()
        with pyro.plate("rows", N, dim=-1):
            pyro.sample("x", make(a, b), obs=x)

    return model


def masked(make):
    def model(x):
        a, b = priors()
        with pyro.plate("rows", N, dim=-1), poutine.mask(mask=MASK):
            pyro.sample("x", make(a, b), obs=x)

    return model


def subsampled(make):
    def model(x):
        a, b = priors()
        with pyro.plate("rows", N, dim=-1, subsample=ROWS) as rows, poutine.scale(scale=2.0):
            pyro.sample("x", make(a, b), obs=x[rows])

    return model


def in_a_loop(make):
    def model(x):
        a, b = priors()
        for t in pyro.markov(range(N)):
            pyro.sample(f"x_{t}", make(a + 0.1 * t, b), obs=x[t])

    return model


def with_an_event(make):
    def model(x):
        a, b = priors()
        with pyro.plate("rows", N // 3, dim=-1):
            pyro.sample("x", make(a, b).expand([3]).to_event(1), obs=x.reshape(-1, 3))

    return model


PROGRAMS = {
    plain: np.ones(N),
    masked: 1.0 * MASK.numpy(),
    subsampled: np.isin(np.arange(N), ROWS) * (2.0 * N / len(ROWS)),
    in_a_loop: np.ones(N),
    with_an_event: np.ones(N),
}
"""How often the log-density of each cell counts."""


QUICK = ("log-normal", "gamma")
"""The rest is for `make test-more`."""
EVERY = [
    pytest.param(program, name, make, id=f"{program.__name__}-{name}", marks=() if name in QUICK else pytest.mark.more)
    for program in PROGRAMS
    for name, make in [*MAKERS.items(), *MORE_MAKERS]
]


@pytest.mark.parametrize(("program", "name", "make"), EVERY)
def test_a_standardized_program_is_the_model_of_scaled_data(program, name, make):
    pytest.importorskip("jax")  # for the user's likelihood
    scaler, table = fitted()
    by_hand, jacobian = scaled(name, table[name], scale_of(scaler, name))
    model = program(make)
    sites = {f"x_{t}": name for t in range(N)} if program is in_a_loop else {"x": name}
    given = standardize(model, scaler, sites)
    cells, hand = torch.tensor(table[name]), torch.tensor(by_hand)
    assert_same(given, model, (cells,), (hand,), (jacobian * PROGRAMS[program]).sum())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.more) for name in MAKERS]
)
def test_missing_cells_count_nothing(name):
    scaler, table = fitted()
    cells = torch.where(MASK, torch.tensor(table[name]), torch.nan)
    by_hand, jacobian = scaled(name, table[name], scale_of(scaler, name))
    model = masked(MAKERS[name])
    for program in (
        standardize(model, scaler, {"x": name}),
        standardize(plain(MAKERS[name]), scaler, {"x": name}, missing="mask"),
    ):
        assert_same(program, model, (cells,), (torch.tensor(by_hand),), jacobian[MASK.numpy()].sum())


def test_observed_and_unobserved_parts_of_a_site_keep_the_tables_units():
    scaler, table = fitted()
    whole = torch.where(MASK, torch.tensor(table["gamma"]), 55.0)

    def model(x):
        a, b = priors()
        with pyro.plate("rows", N):
            pyro.sample("x", MAKERS["gamma"](a, b), obs=x, obs_mask=MASK)

    program = standardize(model, scaler, {"x": "gamma"})
    one = density(program, torch.where(MASK, whole, torch.nan), x_unobserved=torch.where(MASK, 1.0, whole))
    other = density(standardize(plain(MAKERS["gamma"]), scaler, {"x": "gamma"}), whole)
    assert np.isclose(one[0], other[0])
    assert np.isclose(one[1]["a"], other[1]["a"])


@pytest.mark.parametrize("joint", ["independent", "mask by cell", "multivariate", "low rank", "mixture", "rightmost"])
def test_several_columns_lie_along_the_last_axis(joint):
    scaler, table = fitted()
    names = ["height", "weight"]
    x = torch.tensor(np.stack([table[name] for name in names], axis=-1))
    scales = np.array([scale_of(scaler, name) for name in names])
    root = torch.tensor([[1.3, 0.0], [0.4, 0.8]])

    def model(x):
        a, b = priors()
        means = torch.stack([a, a * b])
        if joint == "rightmost":
            with pyro.plate("rows", N, dim=-2), pyro.plate("columns", 2, dim=-1):
                pyro.sample("x", dist.Normal(means, b.exp()), obs=x)
            return
        if joint == "multivariate":
            fn = dist.MultivariateNormal(means, scale_tril=root * b.exp())
        elif joint == "low rank":
            fn = dist.LowRankMultivariateNormal(means, root * a.exp(), torch.stack([a, b]).exp())
        elif joint == "mixture":
            parts = dist.Normal(torch.stack([means, 2.0 * means]), b.exp()).to_event(1)
            fn = dist.MixtureSameFamily(dist.Categorical(torch.tensor([0.3, 0.7])), parts)
        elif joint == "mask by cell":
            fn = dist.Normal(means, b.exp()).mask(torch.tensor([True, False])).to_event(1)
        else:
            fn = dist.Normal(means, b.exp()).to_event(1)
        with pyro.plate("rows", N):
            pyro.sample("x", fn, obs=x)

    jacobian = N * np.log(scales[:1] if joint == "mask by cell" else scales).sum()
    assert_same(standardize(model, scaler, {"x": names}), model, (x,), (x * torch.tensor(scales),), jacobian)


def test_a_shifted_column_is_shifted_before_it_is_scaled():
    cells = np.array([0.0, 1.5, 3.0, 8.0, 20.0, 2.0, 2.5, 40.0])
    scaler = LipschitzScaler("lip-none", likelihoods={0: "gamma"}).fit(cells[:, None])
    shift, scale = scaler.columns_[0].column.shift, scale_of(scaler, "x0")

    def model(x):
        a, b = priors()
        pyro.sample("x", dist.Gamma(a.exp(), b.exp()).expand([8]).to_event(1), obs=x)

    program = standardize(model, scaler, {"x": "x0"})
    hand = torch.tensor((cells + shift) * scale)
    assert_same(program, model, (torch.tensor(cells),), (hand,), len(cells) * np.log(scale))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, id=name, marks=() if name in QUICK else pytest.mark.more)
        for name, make in [*MAKERS.items(), *MORE_MAKERS]
    ],
)
def test_draws_come_in_the_tables_units(name, make):
    """Unscaled, they are draws of the distribution that the model names."""
    pytest.importorskip("jax")
    scaler, _ = fitted()
    model = lambda: pyro.sample("x", make(torch.tensor(0.3), torch.tensor(-0.2)).expand([2000]))  # noqa: E731
    own = standardize(model, scaler, {"x": name})().numpy()
    drawn = scaled(name, own, scale_of(scaler, name))[0]
    assert not np.allclose(own, drawn)
    assert stats.ks_2samp(drawn, model().numpy()).pvalue > 1e-3


# --- discrete sites ---------------------------------------------------------------------------------------------------

DISCRETE = {name: name for name in ("visits", "smoker", "color")}


def discrete(visits, smoker, color):
    a, b = priors()
    with pyro.plate("rows", N):
        pyro.sample("visits", dist.Poisson(a.exp()), obs=visits)
        pyro.sample("smoker", dist.Bernoulli(logits=b), obs=smoker)
        pyro.sample("color", dist.Categorical(logits=torch.stack([a, b, 0.0 * a])), obs=color)


def codes(table):
    color = np.searchsorted(["blue", "green", "red"], table["color"])
    return torch.tensor(table["visits"]), torch.tensor(1.0 * (table["smoker"] == "yes")), torch.tensor(color)


def test_discrete_sites_are_left_as_they_are():
    scaler, table = fitted()
    assert_same(standardize(discrete, scaler, DISCRETE), discrete, codes(table), codes(table), 0.0)


def test_the_gamma_trick_stands_in_for_discrete_sites():
    scaler, table = fitted("lip-gamma")
    columns = {one.column.name: one for one in scaler.columns_}
    noise = 1.0 + 1.1 / 31.1

    def fits(name):
        each = ((fit.scale, fit.natural[0] + 1.0, -fit.natural[1]) for fit in columns[name].fits)
        return [(scale, shape, shape / rate) for scale, shape, rate in each]

    def by_hand(visits, smoker, color):
        a, b = priors()
        total = sum(mean for _, _, mean in fits("color"))
        means = {"visits": [a.exp()], "smoker": [b.exp()]}
        means["color"] = list(total * torch.softmax(torch.stack([a, b, 0.0 * a]), 0))
        cells = {"visits": [visits], "smoker": [smoker], "color": [1.0 * (color == k) for k in range(3)]}
        with pyro.plate("rows", N):
            for name in DISCRETE:
                for k, (scale, shape, _) in enumerate(fits(name)):
                    gamma = dist.Gamma(torch.tensor(shape), shape / means[name][k])
                    pyro.sample(f"{name}{k}", gamma, obs=scale * (cells[name][k] + noise))

    jacobian = N * sum(np.log(scale) for name in DISCRETE for scale, _, _ in fits(name))
    program = standardize(discrete, scaler, DISCRETE, tricks=True)
    assert_same(program, by_hand, codes(table), codes(table), jacobian)


def test_the_gamma_trick_is_undone_in_draws():
    scaler, _ = fitted("lip-gamma")
    fits = {one.column.name: one.fits for one in scaler.columns_}
    means = {
        name: torch.tensor([-(f.natural[0] + 1.0) / f.natural[1] for f in fits[name]]) for name in [*DISCRETE, "calls"]
    }

    def model():
        with pyro.plate("rows", 20000):
            pyro.sample("visits", dist.Poisson(means["visits"][0]))
            pyro.sample("calls", dist.Poisson(means["calls"][0]))
            pyro.sample("smoker", dist.Bernoulli(logits=means["smoker"][0].log()))
            pyro.sample("color", dist.Categorical(means["color"] / means["color"].sum()))

    sites = {name: name for name in means}
    trace = poutine.trace(standardize(model, scaler, sites, tricks=True)).get_trace()
    columns = {one.column.name: one for one in scaler.columns_}
    for name in sites:
        values = trace.nodes[name]["value"].numpy()
        mean = (values[:, None] == np.arange(3)).mean(0) if name == "color" else values.mean()
        expected = columns[name].recover([fit.natural for fit in columns[name].fits])
        assert np.allclose(mean, next(iter(expected.values())), rtol=0.05, atol=0.02), name


# --- beside other handlers, and priors --------------------------------------------------------------------------------


def test_lipschitz_reparam_goes_beside_others():
    scaler, table = fitted()
    cells = torch.tensor(table["gamma"])

    def model(x):
        a = pyro.sample("a", dist.Normal(0.5, 2.0))
        b = pyro.sample("b", dist.Normal(0.0, 1.0))
        with pyro.plate("rows", N):
            pyro.sample("x", dist.Gamma(a.exp(), b.exp()), obs=x)

    both = poutine.reparam(model, {"x": LipschitzReparam(scaler, "gamma"), "a": LocScaleReparam(0.0)})
    alone = poutine.reparam(standardize(model, scaler, {"x": "gamma"}), {"a": LocScaleReparam(0.0)})
    given = {"a_decentered": torch.tensor(0.3), "b": torch.tensor(-0.2)}
    one, other = (
        poutine.trace(poutine.condition(each, data=given)).get_trace(cells).log_prob_sum() for each in (both, alone)
    )
    assert torch.isclose(one, other)
    missing = poutine.condition(poutine.reparam(model, {"a": LocScaleReparam(0.0)}), data=given)
    assert not torch.isclose(one, poutine.trace(missing).get_trace(cells).log_prob_sum())


@pytest.mark.parametrize(
    ("column", "parameter", "power"),
    [
        ("height", "loc", 1),
        ("height", "std", 1),
        ("gamma", "shape", 0),
        ("gamma", "rate", -1),
        ("rayleigh", "scale", 1),
    ],
)
def test_a_prior_is_carried_along_by_the_power_of_the_scale(column, parameter, power):
    scaler, _ = fitted()
    factor = scale_of(scaler, column) ** power
    for prior in (dist.HalfNormal(3.0), dist.Normal(1.0, 2.0), dist.Uniform(0.5, 4.0), dist.LogNormal(0.0, 1.0)):
        moved = rescale_prior(prior, scaler, column, parameter)
        at = torch.tensor([0.6, 1.5]) * factor
        assert np.allclose(moved.log_prob(at), prior.log_prob(at / factor) - np.log(factor))
        anywhere = torch.distributions.biject_to(moved.support)(torch.tensor([-3.0, 0.4, 5.0]))
        assert prior.support.check(anywhere / factor).all()  # where samplers go
    logged = rescale_prior(dist.Normal(1.0, 2.0), scaler, column, parameter, log=True)
    shifted = dist.Normal(1.0 + power * np.log(scale_of(scaler, column)), 2.0)
    assert np.isclose(logged.log_prob(torch.tensor(0.3)), shifted.log_prob(torch.tensor(0.3)))


def test_priors_of_several_columns_are_carried_along():
    scaler, _ = fitted()
    names = ["height", "weight"]
    scales = np.array([scale_of(scaler, name) for name in names])
    at = torch.tensor([0.3, -0.2])
    plain = rescale_prior(dist.Normal(0.0, 2.0).expand([2]).to_event(1), scaler, names, "mean")
    joint = rescale_prior(dist.MultivariateNormal(torch.zeros(2), 4.0 * torch.eye(2)), scaler, names, "mean")
    bounded = rescale_prior(dist.Uniform(-9.0, 9.0).expand([2]).to_event(1), scaler, names, "mean")
    expected = stats.norm(0.0, 2.0 * scales).logpdf(at).sum()
    assert np.allclose([plain.log_prob(at), joint.log_prob(at)], expected)
    assert np.isclose(bounded.log_prob(at), -np.log(18.0 * scales).sum())
    with pytest.raises(EvenlyError, match="cannot be rescaled"):
        rescale_prior(dist.Dirichlet(torch.ones(2)), scaler, names, "mean")


# --- bad input --------------------------------------------------------------------------------------------------------


def run(fn, column, value=None, **options):
    scaler, _ = fitted(options.pop("method", "lip-none"))
    model = lambda: pyro.sample("obs", fn, obs=value)  # noqa: E731
    return poutine.trace(standardize(model, scaler, {"obs": column}, **options)).get_trace()


def normal(*shape):
    return dist.Normal(torch.zeros(shape), 1.0)


ONES = torch.ones(N, dtype=torch.float64)
BAD = {
    "no column": (lambda: run(normal(), "heigth"), "the column 'heigth'"),
    "another likelihood": (lambda: run(dist.Gamma(1.0, 1.0), "log-normal"), "Gamma.*log-normal.*expected LogNormal"),
    "a likelihood without a law": (lambda: run(dist.Cauchy(0.0, 1.0), "normal"), "Cauchy"),
    "another discrete": (lambda: run(normal(), "visits"), "Normal.*declared poisson"),
    "another trick": (
        lambda: run(dist.Poisson(2.0), "smoker", method="lip-gamma", tricks=True),
        "Poisson.*takes Bernoulli",
    ),
    "an axis too long": (lambda: run(normal(3).to_event(1), ["height", "weight"]), r"shape \(3,\).*2 columns"),
    "observations of another shape": (lambda: run(normal(5), "height", ONES), r"shape \(12,\).*shape \(5,\)"),
    "missing cells": (
        lambda: run(normal(N), "height", torch.where(MASK, ONES, torch.nan)),
        "4 missing cells without a mask",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_and_the_site_named(what):
    do, message = BAD[what]
    with pytest.raises(TableError, match=message) as error:
        do()
    assert "at site 'obs'" in str(error.value)


def test_an_unfitted_scaler_and_an_absent_site():
    with pytest.raises(ValueError, match="not fitted"):
        standardize(lambda: None, LipschitzScaler(), {"x": "height"})
    with pytest.warns(EvenlyWarning, match="without the sites"):
        standardize(lambda: None, fitted()[0], {"x": "height"})()


# --- with inference ---------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_svi_and_autoguides_take_a_program_as_it_is():
    scaler, table = fitted()

    def model(x=None):
        a, b = priors()
        with pyro.plate("rows", N):
            return pyro.sample("x", dist.Gamma(a.exp(), b.exp()), obs=x)

    program = standardize(model, scaler, {"x": "gamma"})
    guide = AutoNormal(program)
    svi = SVI(program, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    for _ in range(600):
        svi.step(torch.tensor(table["gamma"]))
    drawn = Predictive(program, guide=guide, num_samples=200)()["x"]
    assert 0.5 < float(drawn.median()) / np.median(table["gamma"]) < 2.0


@pytest.mark.more
def test_the_posterior_is_that_of_the_raw_program_with_priors_carried_along():
    rng = np.random.default_rng(3)
    cells = 170.0 + 9.0 * rng.normal(size=60)
    scaler = LipschitzScaler("lip-none", kinds={0: "real"}).fit(cells[:, None])

    def write(carry):
        def model(x):
            level = pyro.sample("level", carry(dist.Normal(160.0, 30.0), "mean"))
            spread = pyro.sample("spread", carry(dist.HalfNormal(20.0), "std"))
            with pyro.plate("rows", 60):
                pyro.sample("x", dist.Normal(level, spread), obs=x)

        return model

    raw = write(lambda prior, name: prior)
    program = standardize(write(lambda prior, name: rescale_prior(prior, scaler, "x0", name)), scaler, {"x": "x0"})
    draws = []
    for model in (raw, program):
        chain = MCMC(NUTS(model), num_samples=600, warmup_steps=200, disable_progbar=True)
        chain.run(torch.tensor(cells))
        draws.append({name: one.numpy() for name, one in chain.get_samples().items()})
    for name in ("level", "spread"):
        one, other = draws[0][name], draws[1][name] / scale_of(scaler, "x0")
        assert abs(one.mean() - other.mean()) < 4.0 * one.std() * np.sqrt(2.0 / 200.0)  # a third of 600 draws' worth
        assert stats.ks_2samp(one[::5], other[::5]).pvalue > 1e-3
