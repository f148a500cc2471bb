"""What a scale changes for a sampler that moves in means and in logs of positive parameters, and missing cells."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from program_cases import DRAWS, N, fitted, scale_of

from evenly import LipschitzScaler, TableError, get_likelihood

jax = pytest.importorskip("jax")
pytest.importorskip("numpyro")

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

from evenly.integrations.numpyro import from_likelihood, rescale_prior, standardize

pytestmark = pytest.mark.filterwarnings("ignore:.*enable_x64.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


LOCATIONS = {"normal": dist.Normal, "log-normal": dist.LogNormal}
POSITIVE = ("gamma", "inverse-gamma", "exponential")


def curvature(scaler, column, fn, usual):
    """Return the Hessian of the mean of -log p at the parameters that were fitted, in a sampler's coordinates."""
    cells = jnp.asarray(fitted()[1][column])

    def model(z):
        numpyro.sample("x", fn(z), obs=cells)

    def energy(z):
        return -log_density(standardize(model, scaler, {"x": column}), (z,), {}, {})[0] / N

    return np.asarray(jax.hessian(energy)(jnp.asarray(usual)))


def usual_of(scaler, column, family):
    """Return the usual parameters of the scaled column, as fitted."""
    natural = next(one for one in scaler.columns_ if one.column.name == column).fits[0].natural
    return np.asarray(get_likelihood(family).to_usual(natural))


def of_logs(make, z):
    """Return a distribution from its mean and the logarithm of its standard deviation."""
    return make(z[0], jnp.exp(z[1]))


@pytest.mark.more
@pytest.mark.parametrize("method", ["std-none", "lip-none"])
def test_standard_deviations_make_smoothness_equal_in_means_and_logs_of_spreads(method):
    """A normal's curvature is 1 / (scale * std)^2 and 2 there, whatever its column."""
    scaler, _ = fitted(method)
    found = {}
    for column in ("normal", "log-normal", "height", "weight"):
        family = column if column in LOCATIONS else "normal"
        mean, std = usual_of(scaler, column, family)
        found[column] = curvature(scaler, column, partial(of_logs, LOCATIONS[family]), [mean, np.log(std)])
        assert np.allclose(found[column], np.diag([1.0 / std**2, 2.0]), rtol=1e-6, atol=1e-6)
    means = [one[0, 0] for one in found.values()]
    if method == "std-none":
        assert np.allclose(means, 1.0)
    else:
        assert max(means) > 10.0 * min(means)


@pytest.mark.more
@pytest.mark.parametrize("column", POSITIVE)
def test_no_scale_changes_curvature_in_logs_of_positive_parameters(column):
    makers = {"gamma": dist.Gamma, "inverse-gamma": dist.InverseGamma, "exponential": dist.Exponential}
    found = []
    for method in ("std-none", "lip-none"):
        scaler, _ = fitted(method)
        usual = np.log(usual_of(scaler, column, column))
        found.append(curvature(scaler, column, lambda z: makers[column](*jnp.exp(z)), usual))
    assert scale_of(fitted("std-none")[0], column) != scale_of(fitted("lip-none")[0], column)
    assert np.allclose(*found)
    assert np.all(np.abs(np.diag(found[0])) > 0.1)


def test_centred_normals_have_the_scale_of_their_standard_deviation_up_to_a_constant():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 3)) * [1.0, 30.0, 1e-3]
    table -= table.mean(axis=0)
    for target in (3.0, 250.0):
        lip = LipschitzScaler(target=target, kinds=dict.fromkeys(range(3), "real")).fit(table)
        widths = [scale_of(lip, f"x{k}") * table[:, k].std() for k in range(3)]
        assert np.allclose(widths, widths[0])
        assert np.isclose(widths[0], 1.0) == (target == 3.0)


PARAMETERS = {
    "normal": (dist.Normal, {"loc": "mean", "scale": "std"}),
    "log-normal": (dist.LogNormal, {"loc": "log_mean", "scale": "log_std"}),
    "gamma": (dist.Gamma, {"concentration": "shape", "rate": "rate"}),
    "inverse-gamma": (dist.InverseGamma, {"concentration": "shape", "rate": "scale"}),
    "exponential": (dist.Exponential, {"rate": "rate"}),
    "inverse-gaussian": (
        lambda **usual: from_likelihood("inverse-gaussian", **usual),
        {"mean": "mean", "shape": "shape"},
    ),
    "rayleigh": (lambda **usual: from_likelihood("rayleigh", **usual), {"sigma": "sigma"}),
}


def test_priors_of_all_likelihoods_are_tried():
    assert set(PARAMETERS) == set(DRAWS)


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one == "gamma" else pytest.mark.more) for one in DRAWS])
def test_with_priors_carried_along_the_density_is_the_raw_one_up_to_a_constant(name):
    """So the posterior is, too: in scaled units, its Jacobian is that constant."""
    scaler, table = fitted()
    make, arguments = PARAMETERS[name]
    family, scale = get_likelihood(name), scale_of(scaler, name)

    def write(carry):
        def model(x):
            given = {each: numpyro.sample(each, carry(dist.Gamma(2.0, 0.5), each)) for each in arguments}
            numpyro.sample("x", make(**given), obs=x)

        return model

    raw = write(lambda prior, _: prior)
    own = write(lambda prior, each: rescale_prior(prior, scaler, name, arguments[each]))
    program = standardize(own, scaler, {"x": name})
    differences = []
    for seed in range(3):
        scaled_usual = np.random.default_rng(seed).uniform(0.5, 4.0, len(arguments))
        usual = np.asarray(family.unscale_usual(scaled_usual, scale))
        one = log_density(program, (table[name],), {}, dict(zip(arguments, scaled_usual, strict=True)))[0]
        other = log_density(raw, (table[name],), {}, dict(zip(arguments, usual, strict=True)))[0]
        differences.append(float(one - other))
    assert np.allclose(differences, differences[0], rtol=1e-9, atol=1e-6)
    assert abs(differences[0]) > 0.1 or name in ("normal",)


# --- missing cells ----------------------------------------------------------------------------------------------------


def with_gaps():
    scaler, table = fitted()
    return scaler, table["height"], np.where(np.arange(N) % 3 == 1, np.nan, table["height"])


def level(x):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)


@pytest.mark.parametrize("inference", ["svi", "nuts"])
def test_inference_refuses_missing_cells_without_a_mask(inference):
    scaler, _, gaps = with_gaps()
    program, key = standardize(level, scaler, {"x": "height"}), jax.random.key(0)
    do = {
        "svi": lambda: SVI(program, AutoNormal(program), numpyro.optim.Adam(0.1), Trace_ELBO()).run(key, 1, gaps),
        "nuts": lambda: MCMC(NUTS(program), num_warmup=1, num_samples=1, progress_bar=False).run(key, gaps),
    }
    with pytest.raises(TableError, match="4 missing cells without a mask at site 'x'"):
        do[inference]()


def scanned(x, seen):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))

    def step(carry, given):
        cell, there = given
        with handlers.mask(mask=there):
            numpyro.sample("x", dist.Normal(mean + carry, 1.0), obs=cell)
        return carry + 0.1, None

    scan(step, 0.0, (x, seen))


@pytest.mark.more
def test_missing_cells_within_scan_count_nothing_if_they_are_masked():
    scaler, whole, gaps = with_gaps()

    def density(program, *cells):
        value, slope = jax.value_and_grad(lambda mean: log_density(program, cells, {}, {"mean": mean})[0])(0.3)
        return float(value), float(slope)

    scale, seen = scale_of(scaler, "height"), ~np.isnan(gaps)
    program = standardize(scanned, scaler, {"x": "height"}, missing="mask")
    value, slope = density(program, gaps, np.ones(N, bool))
    expected, expected_slope = density(scanned, whole * scale, seen)
    assert np.isclose(value, expected + seen.sum() * np.log(scale), atol=1e-6)
    assert np.isclose(slope, expected_slope, atol=1e-6)


@pytest.mark.more
def test_where_missing_cells_cannot_be_seen_numpyro_warns_of_them():
    """Within a compiled function or a loop there are no numbers yet to look at."""
    scaler, _, gaps = with_gaps()
    with pytest.warns(UserWarning, match="Out-of-support"):
        log_likelihood(standardize(level, scaler, {"x": "height"}), {"mean": np.zeros(2)}, gaps)
    program = standardize(scanned, scaler, {"x": "height"})
    with pytest.warns(UserWarning, match="Out-of-support"):
        log_density(program, (gaps, np.ones(N, bool)), {}, {"mean": 0.3})
