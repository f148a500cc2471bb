"""A standardized PyMC model is the hand-written model of scaled data, up to the Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from program_cases import N, fitted, scale_of, scaled
from scipy import stats

from evenly import EvenlyError, LipschitzScaler, TableError

pm = pytest.importorskip("pymc")

from evenly.integrations.pymc import rescale_prior, standardize

MAKERS = {
    "normal": lambda name, a, b, **more: pm.Normal(name, a, pm.math.exp(b), **more),
    "log-normal": lambda name, a, b, **more: pm.LogNormal(name, a, pm.math.exp(b), **more),
    "gamma": lambda name, a, b, **more: pm.Gamma(name, pm.math.exp(a), pm.math.exp(b), **more),
    "inverse-gamma": lambda name, a, b, **more: pm.InverseGamma(name, pm.math.exp(a), pm.math.exp(b), **more),
    "inverse-gaussian": lambda name, a, b, **more: pm.Wald(name, mu=pm.math.exp(a), lam=pm.math.exp(b), **more),
    "exponential": lambda name, a, b, **more: pm.Exponential(name, pm.math.exp(a + b), **more),
    "rayleigh": lambda name, a, b, **more: pm.Weibull(name, 2.0, pm.math.exp(a + b), **more),
    "weibull-1.5": lambda name, a, b, **more: pm.Weibull(name, 1.5, pm.math.exp(a + b), **more),
}
POINT = {"a": 0.3, "b": -0.2}
GAPS = np.array([1, 4, 5])


def model_of(name, observed, **more):
    with pm.Model(coords={"row": np.arange(N)}) as model:
        a, b = pm.Normal("a"), pm.Normal("b")
        MAKERS[name]("x", a, b, observed=observed, **more)
    return model


def density(model, point=POINT):
    return float(model.compile_logp()(point)), model.compile_dlogp([model["a"], model["b"]])(point)


def assert_same(program, by_hand, jacobian, point=POINT):
    (one, of_one), (other, of_other) = density(program, point), density(by_hand, point)
    assert np.isclose(one, other + float(jacobian), rtol=1e-9, atol=1e-6)
    assert np.all(of_one != 0.0)
    assert np.allclose(of_one, of_other, rtol=1e-9, atol=1e-6)


@pytest.fixture(scope="module", autouse=True)
def double():
    import pytensor

    with pytensor.config.change_flags(
        floatX="float64", mode="FAST_COMPILE", cxx=""
    ):  # compiling takes most of the time
        yield


QUICK = ("log-normal", "gamma")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.more, id=one) for one in MAKERS]
)
def test_density_and_gradient_are_those_of_a_hand_written_scaled_model(name):
    scaler, cells = fitted()
    x, jacobian = scaled(name, cells[name], scale_of(scaler, name))
    program = standardize(model_of(name, cells[name], dims="row"), scaler, {"x": name})
    assert_same(program, model_of(name, x), jacobian.sum())
    assert list(program.named_vars_to_dims["x"]) == ["row"]


def test_cells_in_a_minibatch_count_for_all():
    scaler, cells = fitted()
    x, jacobian = scaled("gamma", cells["gamma"], scale_of(scaler, "gamma"))
    program = standardize(model_of("gamma", cells["gamma"], total_size=30), scaler, {"x": "gamma"})
    assert_same(program, model_of("gamma", x, total_size=30), jacobian.sum() * 30 / N)


@pytest.mark.more
def test_data_can_be_replaced():
    scaler, cells = fitted()
    with pm.Model() as model:
        given = pm.Data("given", cells["normal"])
        a, b = pm.Normal("a"), pm.Normal("b")
        pm.Normal("x", a, pm.math.exp(b), observed=given)
    program = standardize(model, scaler, {"x": "normal"})
    fresh = cells["normal"][:5] + 1.0
    with program:
        pm.set_data({"given": fresh})
    scale = scale_of(scaler, "normal")
    assert_same(program, model_of("normal", fresh * scale), 5 * np.log(scale))


@pytest.mark.more
@pytest.mark.parametrize("joint", [False, True])
def test_several_columns_lie_along_the_last_axis(joint):
    scaler, cells = fitted()
    names = ["height", "weight", "normal"]
    table = np.stack([cells[one] for one in names], axis=1)
    scales = np.array([scale_of(scaler, one) for one in names])

    def model(observed):
        with pm.Model() as made:
            a, b = pm.Normal("a"), pm.Normal("b")
            if joint:
                covariance = pm.math.exp(b) * (np.eye(3) + 0.3)
                pm.MvNormal("x", a * np.ones(3), covariance, observed=observed)
            else:
                pm.Normal("x", a, pm.math.exp(b), observed=observed)
        return made

    assert_same(standardize(model(table), scaler, {"x": names}), model(table * scales), N * np.log(scales).sum())


def test_missing_cells_are_sampled_in_the_units_of_the_table():
    scaler, cells = fitted()
    scale = scale_of(scaler, "normal")
    x = cells["normal"].copy()
    x[GAPS] = np.nan
    with pytest.warns(pm.ImputationWarning):
        model, by_hand = model_of("normal", x), model_of("normal", x * scale)
    program = standardize(model, scaler, {"x": "normal"})
    here = np.array([160.0, 170.0, 185.0])
    one = program.compile_logp()({**POINT, "x_unobserved": here})
    other = by_hand.compile_logp()({**POINT, "x_unobserved": here * scale})
    assert np.isclose(one, other + N * np.log(scale), rtol=1e-9)
    a, whole = pm.draw([program["a"], program["x"]], 2000, random_seed=0)
    assert np.std(whole[:, 1]) * scale > 1.0
    assert abs(np.corrcoef(a, whole[:, 1])[0, 1]) > 0.2


@pytest.mark.more
@pytest.mark.parametrize("name", MAKERS)
def test_draws_are_in_the_units_of_the_table(name):
    scaler, cells = fitted()
    program = standardize(model_of(name, cells[name]), scaler, {"x": name})
    by_hand = model_of(name, scaled(name, cells[name], 1.0)[0])
    one, other = (
        pm.draw(pm.do(model, POINT)["x"], 300, random_seed=seed).ravel()
        for seed, model in enumerate([program, by_hand])
    )
    scale = scale_of(scaler, name)
    assert stats.kstest(scaled(name, one, scale)[0], other).pvalue > 1e-3
    assert scale == 1.0 or stats.kstest(one, other).pvalue < 1e-3


@pytest.mark.more
def test_the_posterior_is_the_raw_one_with_priors_carried_along():
    scaler, cells = fitted()
    scale = scale_of(scaler, "normal")

    def model(carried):
        with pm.Model() as made:
            mean, spread = pm.Normal.dist(100.0, 50.0), pm.HalfNormal.dist(30.0)
            if carried:
                mean = rescale_prior(mean, scaler, "normal", "mean")
                spread = rescale_prior(spread, scaler, "normal", "std")
            made.register_rv(mean, "mean")
            made.register_rv(spread, "spread")
            pm.Normal("x", made["mean"], made["spread"], observed=cells["normal"])
        return made

    raw, program = model(False), standardize(model(True), scaler, {"x": "normal"})
    points = [{"mean": 160.0, "spread_log__": 2.0}, {"mean": 171.0, "spread_log__": 2.4}]
    moved = [{"mean": one["mean"] * scale, "spread_log__": one["spread_log__"] + np.log(scale)} for one in points]
    first, second = (raw.compile_logp()(one) for one in points)
    assert np.isclose(second - first, np.subtract(*[program.compile_logp()(one) for one in moved[::-1]]), rtol=1e-9)
    with program:
        trace = pm.sample(
            300, tune=300, chains=2, cores=1, random_seed=0, progressbar=False, compute_convergence_checks=False
        )
        found = pm.sample_posterior_predictive(trace, random_seed=0, progressbar=False)
    drawn = found.posterior_predictive["x"].to_numpy()
    assert abs(float(trace.posterior["mean"].mean()) / scale - cells["normal"].mean()) < 2.0
    assert abs(drawn.mean() - cells["normal"].mean()) < 2.0
    assert abs(drawn.std() / cells["normal"].std() - 1.15) < 0.3


PRIORS: dict[str, tuple[Callable[[], Any], bool]] = {
    "Normal": (lambda: pm.Normal.dist(1.1, 2.2), True),  # no halves: PyTensor would take those for single precision
    "StudentT": (lambda: pm.StudentT.dist(3.3, mu=1.1, sigma=2.2), True),
    "Cauchy": (lambda: pm.Cauchy.dist(1.1, 2.2), True),
    "Laplace": (lambda: pm.Laplace.dist(1.1, 2.2), True),
    "Logistic": (lambda: pm.Logistic.dist(1.1, 2.2), True),
    "Gumbel": (lambda: pm.Gumbel.dist(1.1, 2.2), True),
    "Uniform": (lambda: pm.Uniform.dist(0.6, 4.1), True),
    "TruncatedNormal": (lambda: pm.TruncatedNormal.dist(1.1, 2.2, lower=0.2, upper=4.1), True),
    "HalfNormal": (lambda: pm.HalfNormal.dist(2.2), False),
    "HalfStudentT": (lambda: pm.HalfStudentT.dist(3.3, sigma=2.2), False),
    "HalfCauchy": (lambda: pm.HalfCauchy.dist(2.2), False),
    "Exponential": (lambda: pm.Exponential.dist(2.2), False),
    "Gamma": (lambda: pm.Gamma.dist(2.2, 3.3), False),
    "InverseGamma": (lambda: pm.InverseGamma.dist(2.2, 3.3), False),
    "LogNormal": (lambda: pm.LogNormal.dist(0.6, 1.7), False),
    "Wald": (lambda: pm.Wald.dist(mu=2.2, lam=3.3), False),
    "Weibull": (lambda: pm.Weibull.dist(2.2, 3.3), False),
}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "Normal" else pytest.mark.more) for one in PRIORS]
)
def test_a_prior_is_carried_along(name):
    make, is_real = PRIORS[name]
    scaler, _ = fitted()
    scale = scale_of(scaler, "normal")
    moved = rescale_prior(make(), scaler, "normal", "mean")
    expected = pm.logp(make(), 1.3).eval() - np.log(scale)
    assert np.isclose(pm.logp(moved, 1.3 * scale).eval(), expected, rtol=1e-9)
    if is_real:
        shifted = rescale_prior(make(), scaler, "normal", "mean", log=True)
        assert np.isclose(pm.logp(shifted, 1.3 + np.log(scale)).eval(), pm.logp(make(), 1.3).eval(), rtol=1e-9)
    else:
        with pytest.raises(EvenlyError, match=f"a prior {name} cannot be shifted"):
            rescale_prior(make(), scaler, "normal", "mean", log=True)


def test_a_prior_whose_parameters_do_not_say_how_to_multiply_it_is_refused():
    scaler, _ = fitted()
    with pytest.raises(EvenlyError, match="a prior Beta cannot be multiplied"):
        rescale_prior(pm.Beta.dist(1.0, 2.0), scaler, "normal", "mean")


def test_explain_names_sites_and_scales():
    scaler, cells = fitted()
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Gamma("x", 2.0, pm.math.exp(a), observed=cells["gamma"])
        pm.Poisson("n", pm.math.exp(a), observed=cells["visits"])
    program = standardize(model, scaler, {"x": "gamma", "n": "visits"})
    frame = program.explain().to_frame()
    assert frame["how"].tolist() == ["scaled", "left as it is"]
    assert frame["scale"].tolist() == [scale_of(scaler, "gamma"), 1.0]
    assert "rescale_prior" in str(program.explain())
    counted = pm.logp(program["n"], 2).eval({program["a"]: 0.3})
    assert np.allclose(counted, stats.poisson.logpmf(2, np.exp(0.3)))


def one(distribution, cells, **more):
    with pm.Model() as model:
        distribution("x", observed=cells, **more)
    return model


def test_what_cannot_be_standardized_is_an_error_that_names_the_site():
    scaler, cells = fitted()
    x = cells["normal"]
    model = one(pm.Normal, x)
    for sites, said in (
        ({"y": "normal"}, "no observed variable at site 'y', but those of the model are 'x'"),
        ({"x": "no column"}, "the column 'no column' at site 'x'"),
        ({"x": "gamma"}, "the distribution Normal at site 'x'.* gamma likelihood: expected Gamma. Hint"),
        ({"x": "rayleigh"}, "expected Weibull"),
        ({"x": "visits"}, "the distribution Normal at site 'x'.*'visits' was declared poisson"),
        ({"x": "weibull-1.5"}, "the distribution Normal at site 'x'"),
        ({"x": ["normal", "height"]}, "a distribution of shape"),
        ({"x": ["normal", "gamma"]}, "columns of the likelihoods"),
    ):
        with pytest.raises(TableError, match=said):
            standardize(model, scaler, sites)
    for other, said in (
        (one(pm.StudentT, x, nu=3.0, mu=0.0, sigma=1.0), "the distribution StudentT at site 'x'.*skip=.'x'."),
        (one(pm.Censored, x, dist=pm.Normal.dist(), lower=0.0, upper=200.0), "the distribution Censored"),
    ):
        with pytest.raises(TableError, match=said):
            standardize(other, scaler, {"x": "normal"})
        assert standardize(other, scaler, {"x": "normal"}, skip=["x"]).observed_RVs
    with pytest.raises(TableError, match="a Wald with alpha at site 'x'"):
        standardize(
            one(pm.Wald, cells["inverse-gaussian"], mu=1.0, lam=1.0, alpha=0.5), scaler, {"x": "inverse-gaussian"}
        )
    with pytest.raises(TableError, match=r"a function as model.*pymc.Model"):
        standardize(lambda: None, scaler, {"x": "normal"})


def test_a_shifted_column_is_an_error():
    cells = np.array([0.0, 1.5, 3.0, 8.0, 20.0, 2.0, 2.5, 40.0])
    scaler = LipschitzScaler("lip-none", likelihoods={0: "gamma"}).fit(cells[:, None])
    assert scaler.columns_[0].column.shift > 0.0
    with pytest.raises(TableError, match="the shift of column 'x0' at site 'x'"):
        standardize(one(pm.Gamma, cells + 1.0, alpha=1.0, beta=1.0), scaler, {"x": 0})


def test_missing_cells_that_pymc_does_not_sample_are_an_error():
    scaler, cells = fitted()
    x = cells["normal"].copy()
    x[GAPS] = np.nan
    with pm.Model() as model:
        pm.Normal("x", observed=pm.Data("given", cells["normal"]))
        model["given"].set_value(x)
    with pytest.raises(TableError, match="3 missing cells at site 'x'"):
        standardize(model, scaler, {"x": "normal"})
    with pytest.warns(pm.ImputationWarning), pm.Model() as torn:
        pm.Normal("x", observed=np.stack([x, x], axis=1))
    with pytest.raises(TableError, match="missing cells of several columns at site 'x'"):
        standardize(torn, scaler, {"x": ["normal", "height"]})


def test_an_unfitted_scaler_and_a_model_that_pymc_cannot_copy_are_errors():
    from sklearn.exceptions import NotFittedError

    scaler, cells = fitted()
    with pytest.raises(NotFittedError):
        standardize(one(pm.Normal, cells["normal"]), LipschitzScaler(), {"x": "normal"})
    with pm.Model() as model:
        a = pm.Normal("a", initval=1.0)
        pm.Normal("x", a, observed=cells["normal"])
    with pytest.raises(EvenlyError, match="PyMC cannot copy this model"):
        standardize(model, scaler, {"x": "normal"})
