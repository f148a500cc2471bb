"""A likelihood from its formulas: against SciPy, the built-in families, and wrong formulas."""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any

import numpy as np
import pytest
import scipy.stats as stats

from evenly._support.errors import MissingExtraError, TableError
from evenly.likelihoods.base import Likelihood, Pivot, Support
from evenly.likelihoods.custom import define_likelihood
from evenly.likelihoods.registry import get_likelihood
from evenly.predictive import mix_parameters

pytest.importorskip("jax")

SHAPE = 1.5
WEIBULL: dict[str, Any] = {
    "support": Support(0.0),
    "statistics": lambda x, xp: (x**SHAPE,),
    "log_base": lambda x, xp: math.log(SHAPE) + (SHAPE - 1.0) * xp.log(x),
    "log_partition": lambda natural, xp: -xp.log(-natural[..., 0]),
    "factors": lambda scale, xp: (scale**SHAPE,),
}
"""Of known shape; the natural parameter is -size^-shape."""

GAMMA: dict[str, Any] = {
    "support": Support(0.0),
    "statistics": lambda x, xp: (xp.log(x), x),
    "log_base": lambda x, xp: 0.0 * x,
    "log_partition": lambda natural, xp: (
        xp.gammaln(natural[..., 0] + 1.0) - (natural[..., 0] + 1.0) * xp.log(-natural[..., 1])
    ),
    "factors": lambda scale, xp: (1.0 + 0.0 * scale, scale),
}

NORMAL: dict[str, Any] = {
    "support": Support(),
    "statistics": lambda x, xp: (x, x * x),
    "log_base": lambda x, xp: 0.0 * x - 0.5 * math.log(2.0 * math.pi),
    "log_partition": lambda natural, xp: (
        -0.25 * natural[..., 0] ** 2 / natural[..., 1] - 0.5 * xp.log(-2.0 * natural[..., 1])
    ),
    "factors": lambda scale, xp: (scale, scale**2),
}


@pytest.fixture(scope="module")
def weibull() -> Likelihood:
    return define_likelihood("weibull", **WEIBULL)


@pytest.fixture(scope="module")
def gamma() -> Likelihood:
    return define_likelihood("my-gamma", **GAMMA)


@pytest.fixture(scope="module")
def normal() -> Likelihood:
    return define_likelihood("my-normal", **NORMAL)


SIZES = np.array([1.0, 2.3, 1e-4, 3e5])


def _natural(size: Any) -> np.ndarray:
    return -(np.asarray(size)[..., None] ** -SHAPE)


# --- one parameter: a Weibull of known shape ----------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_the_density_is_scipys(weibull: Likelihood, size: float) -> None:
    reference = stats.weibull_min(SHAPE, scale=size)
    x = reference.ppf([0.01, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(weibull.log_density(x, _natural(size)), reference.logpdf(x), rtol=1e-13, atol=1e-13)


def test_mean_statistics_and_fisher_are_the_closed_forms(weibull: Likelihood) -> None:
    # x^k is exponential with mean size^k: that is its deviation too.
    mean = (SIZES**SHAPE)[:, None]
    np.testing.assert_allclose(weibull.mean_statistics(_natural(SIZES)), mean, rtol=1e-14)
    fisher = weibull.fisher(_natural(SIZES))
    assert fisher.shape == (4, 1, 1)
    np.testing.assert_allclose(fisher, mean[..., None] ** 2, rtol=1e-13)
    assert weibull.natural_bounds == ((-np.inf, 0.0),)
    assert weibull.fisher(_natural(2.0)).dtype == np.float64


@pytest.mark.parametrize("size", [*SIZES, 1e-12, 1e12])
def test_fit_is_the_closed_form(weibull: Likelihood, size: float) -> None:
    x = stats.weibull_min(SHAPE, scale=size).rvs(200, random_state=np.random.default_rng(1))
    target = np.mean(x**SHAPE, keepdims=True)
    np.testing.assert_allclose(weibull.fit(target), -1.0 / target, rtol=1e-13)
    np.testing.assert_allclose(weibull.fit(np.stack([target, 2.0 * target])), [-1 / target, -0.5 / target], rtol=1e-13)


def test_terms_are_the_statistics_whatever_the_pivot(weibull: Likelihood) -> None:
    x = np.array([0.5, 1.0, 4.0])
    assert not weibull.needs_unit
    pivot = Pivot(2.0, 3.0)
    (term,) = weibull.terms(x, pivot)
    np.testing.assert_array_equal(term, x**SHAPE)
    means = np.array([np.mean(term)])
    np.testing.assert_array_equal(weibull.repivot(means, pivot, Pivot()), means)
    np.testing.assert_array_equal(weibull.fit_terms(means, pivot), weibull.fit(means))
    np.testing.assert_array_equal(weibull.to_usual(weibull.to_natural(means)), means)


@pytest.mark.parametrize("size", SIZES)
def test_summaries_are_scipys(weibull: Likelihood, size: float) -> None:
    reference = stats.weibull_min(SHAPE, scale=size)
    assert float(weibull.mean(_natural(size))) == pytest.approx(reference.mean(), rel=1e-9)
    assert float(weibull.median(_natural(size))) == pytest.approx(reference.median(), rel=1e-8)
    for level in (5e-4, 0.475, 0.9995):
        assert float(weibull.quantile(_natural(size), level)) == pytest.approx(reference.ppf(level), rel=1e-6)
    # The density is flat to rounding within the root of the rounding unit.
    mode = size * ((SHAPE - 1.0) / SHAPE) ** (1.0 / SHAPE)
    assert float(weibull.mode(_natural(size))) == pytest.approx(mode, rel=1e-7)


def test_networks_of_an_own_likelihood_are_averaged_by_natural_parameters(weibull: Likelihood) -> None:
    mixed = mix_parameters(weibull, [{"natural_1": np.array([-1.0, -2.0])}, {"natural_1": np.array([-3.0, -2.0])}])
    np.testing.assert_array_equal(mixed["natural_1"], [-2.0, -2.0])


def test_summaries_go_row_by_row(weibull: Likelihood) -> None:
    natural = _natural(SIZES.reshape(2, 2))
    for summary in (weibull.mean, weibull.median, weibull.mode):
        assert summary(natural).shape == (2, 2)
        np.testing.assert_allclose(summary(natural)[1, 0], summary(natural[1, 0]), rtol=1e-14)


def test_samples_follow_scipys_distribution(weibull: Likelihood) -> None:
    natural = _natural(SIZES[:3])
    draw = weibull.sample(np.random.default_rng(4), natural, (1000, 2))
    assert draw.shape == (1000, 2, 3)
    assert draw.tobytes() == weibull.sample(np.random.default_rng(4), natural, (1000, 2)).tobytes()
    for i, size in enumerate(SIZES[:3]):
        reference = stats.weibull_min(SHAPE, scale=size)
        assert stats.kstest(draw[..., i].ravel(), reference.cdf).pvalue > 1e-3
    assert np.shape(weibull.sample(np.random.default_rng(4), natural[0])) == ()


@pytest.mark.parametrize("scale", [1e-3, 0.6, 1.0, 40.0])
def test_the_density_survives_scaling(weibull: Likelihood, scale: float) -> None:
    natural, x = _natural(2.3), np.array([0.01, 1.0, 2.0, 7.0])
    scaled = weibull.scale_natural(natural, scale)
    total = weibull.log_density(weibull.scale_data(x, scale), scaled) + weibull.log_jacobian(x, scale)
    np.testing.assert_allclose(total, weibull.log_density(x, natural), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(weibull.unscale_data(weibull.scale_data(x, scale), scale), x, rtol=1e-15)
    np.testing.assert_allclose(weibull.unscale_usual(weibull.to_usual(scaled), scale), natural, rtol=1e-14)
    np.testing.assert_allclose(
        weibull.fisher(scaled), weibull.factors(scale)[0] ** 2 * weibull.fisher(natural), rtol=1e-12
    )


def test_a_power_can_be_the_scaling(pareto: Likelihood) -> None:
    x, natural = np.array([1.01, 2.0, 30.0]), np.array([-2.5])
    np.testing.assert_allclose(pareto.log_density(x, natural), stats.pareto(2.5).logpdf(x), rtol=1e-14)
    assert float(pareto.median(natural)) == pytest.approx(stats.pareto(2.5).median(), rel=1e-8)
    # d(x^s)/dx = s x^(s - 1)
    np.testing.assert_allclose(pareto.log_jacobian(x, 3.0), math.log(3.0) + 2.0 * np.log(x), rtol=1e-14)


def test_a_bounded_support_works() -> None:
    """A beta with second parameter 1, scaled by powers: x^s is one again."""
    power = define_likelihood(
        "power",
        support=Support(0.0, 1.0),
        statistics=lambda x, xp: (xp.log(x),),
        log_base=lambda x, xp: -xp.log(x),
        log_partition=lambda natural, xp: -xp.log(natural[..., 0]),
        factors=lambda scale, xp: (scale,),
        scale_data=lambda x, scale, xp: x**scale,
    )
    assert power.natural_bounds == ((0.0, np.inf),)
    reference = stats.beta(3.0, 1.0)
    assert float(power.mean(np.array([3.0]))) == pytest.approx(reference.mean(), rel=1e-9)
    assert float(power.median(np.array([3.0]))) == pytest.approx(reference.median(), rel=1e-8)
    np.testing.assert_allclose(power.fit(np.array([-0.2])), [5.0], rtol=1e-13)


# --- two parameters: the built-in families by hand ----------------------------------------------------------

ROWS = np.array([[0.4, -1.3], [-0.7, -20.0], [150.0, -1e-3]])
"""Natural parameters of gammas with shapes 1.4, 0.3 and 151."""


def test_bounds_are_found_where_the_log_partition_ends(gamma: Likelihood, normal: Likelihood) -> None:
    assert gamma.natural_bounds == get_likelihood("gamma").natural_bounds
    assert normal.natural_bounds == get_likelihood("normal").natural_bounds


def test_a_gamma_by_hand_is_the_gamma(gamma: Likelihood) -> None:
    built_in = get_likelihood("gamma")
    x = np.array([1e-3, 0.7, 5.0])
    expected = built_in.log_density(x[:, None], ROWS)
    np.testing.assert_allclose(gamma.log_density(x[:, None], ROWS), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(gamma.mean_statistics(ROWS), built_in.mean_statistics(ROWS), rtol=1e-13)
    np.testing.assert_allclose(gamma.fisher(ROWS), built_in.fisher(ROWS), rtol=1e-12)
    np.testing.assert_allclose(gamma.fit(built_in.mean_statistics(ROWS)), ROWS, rtol=1e-10)
    np.testing.assert_allclose(gamma.factors(0.3), built_in.factors(0.3), rtol=1e-15)
    np.testing.assert_allclose(gamma.scale_natural(ROWS, 0.3), built_in.scale_natural(ROWS, 0.3), rtol=1e-15)
    np.testing.assert_allclose(gamma.mean(ROWS), built_in.mean(ROWS), rtol=1e-9)
    np.testing.assert_allclose(gamma.median(ROWS), built_in.median(ROWS), rtol=1e-8)
    np.testing.assert_allclose(gamma.mode(ROWS)[[0, 2]], built_in.mode(ROWS)[[0, 2]], rtol=1e-7)
    assert gamma.mode(ROWS)[1] < 1e-12  # unbounded at 0: as low as the quadrature goes


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (-3.0, 0.2), (1e4, 0.1), (1e-3, 50.0), (5.0, 1e-6)])
def test_a_normal_by_hand_is_the_normal(normal: Likelihood, mean: float, std: float) -> None:
    built_in = get_likelihood("normal")
    natural = built_in.to_natural(np.array([mean, std]))
    deviation = np.sqrt(np.diagonal(built_in.fisher(natural)))
    limit = 1e-12 * np.outer(deviation, deviation)
    assert np.all(np.abs(normal.fisher(natural) - built_in.fisher(natural)) <= limit)
    # The definition's terms are of size (mean/std)^2: what they round is noise in the log-density, and what
    # rounding the second moment does to the variance, no fit can undo.
    noise = 1e-15 * (1.0 + (mean / std) ** 2)
    limit = (1e-9 + noise) * std + 1e-15 * abs(mean)
    assert float(normal.mean(natural)) == pytest.approx(mean, abs=limit)
    assert float(normal.median(natural)) == pytest.approx(mean, abs=limit)
    fitted = built_in.to_usual(normal.fit(built_in.mean_statistics(natural)))
    assert fitted[0] == pytest.approx(mean, abs=(1e-12 + noise) * std + 1e-15 * abs(mean))
    assert fitted[1] == pytest.approx(std, rel=1e-12 + noise)


@pytest.mark.more
def test_jax_and_torch_arrays_give_the_same_numbers(gamma: Likelihood) -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    x = np.array([0.2, 1.0, 3.0])
    tensors = torch.as_tensor(ROWS)
    np.testing.assert_allclose(gamma.fisher(tensors).numpy(), gamma.fisher(ROWS), rtol=1e-8)  # PyTorch's trigamma
    np.testing.assert_allclose(gamma.mean_statistics(tensors).numpy(), gamma.mean_statistics(ROWS), rtol=1e-12)
    with jax.enable_x64(True):
        arrays = jax.numpy.asarray(ROWS)
        np.testing.assert_allclose(jax.jit(gamma.fisher)(arrays), gamma.fisher(ROWS), rtol=1e-12)
        np.testing.assert_allclose(
            jax.jit(gamma.log_density)(jax.numpy.asarray(x), arrays), gamma.log_density(x, ROWS), rtol=1e-11
        )
        np.testing.assert_allclose(
            jax.jit(gamma.log_jacobian)(jax.numpy.asarray(x), 3.0), gamma.log_jacobian(x, 3.0), rtol=1e-14
        )
        draw = gamma.sample(jax.random.key(0), arrays, (5,))
        assert isinstance(draw, jax.Array)
        assert draw.shape == (5, 3)
        statistics = jax.numpy.asarray(gamma.mean_statistics(ROWS))
        for got, expected in [
            (gamma.fit(statistics), ROWS),
            (gamma.mean(arrays), gamma.mean(ROWS)),
            (gamma.median(arrays), gamma.median(ROWS)),
            (gamma.mode(arrays), gamma.mode(ROWS)),
        ]:
            assert isinstance(got, jax.Array)
            np.testing.assert_allclose(got, expected, rtol=1e-10)
    assert isinstance(gamma.log_jacobian(torch.as_tensor(x), 3.0), torch.Tensor)
    assert isinstance(gamma.sample(torch.Generator().manual_seed(0), tensors, (5,)), torch.Tensor)


def test_terms_run_on_a_table_engine(gamma: Likelihood) -> None:
    polars, nw = pytest.importorskip("polars"), pytest.importorskip("narwhals")
    x = np.array([0.5, 1.0, 4.0])
    table = nw.from_native(polars.DataFrame({"x": x}))
    got = table.select(*[term.mean().alias(str(i)) for i, term in enumerate(gamma.terms(nw.col("x"), Pivot()))])
    np.testing.assert_allclose(got.to_numpy()[0], gamma.statistics(x).mean(0), rtol=1e-15)


# --- wrong definitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"log_partition": lambda natural, xp: -2.0 * xp.log(-natural[..., 0])},
            "integrates to 1.7, but 'bad'",
        ),
        ({"log_partition": lambda natural, xp: xp.log(-natural[..., 0])}, "integrates to 0.3.*log_partition"),
        ({"log_partition": lambda natural, xp: -1e4 - xp.log(-natural[..., 0])}, "integrates to inf"),
        ({"log_base": lambda x, xp: x**2}, "integrates to"),
        ({"log_base": lambda x, xp: -np.inf + 0.0 * x}, "integrates to 0"),
        ({"factors": lambda scale, xp: (scale,)}, "got a factors of 'bad' that breaks the scale law"),
        ({"scale_data": lambda x, scale, xp: x + scale}, "got a scale_data of 'bad'"),
        ({"scale_data": lambda x, scale, xp: x**scale}, "got a factors of 'bad'"),
        ({"support": Support(0.0, whole=True)}, "factors or scale_data of 'bad', but whole numbers are not scaled"),
        ({"factors": None}, "no factors of 'bad', but values > 0 are scaled"),
        ({"factors": lambda scale, xp: (scale, scale)}, "got a factors of 'bad'.*one for each"),
        ({"log_partition": lambda natural, xp: np.nan * natural[..., 0]}, "no finite log-partition of 'bad'"),
    ],
)
def test_a_wrong_definition_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        define_likelihood("bad", **{**WEIBULL, **wrong})


def test_a_base_measure_that_does_not_follow_the_scale_is_refused() -> None:
    """An exponential cut off at 1 is a family with the right factors, but scaling moves the end."""
    with pytest.raises(TableError, match="got a log_base of 'bad' that breaks the scale law, but log_base"):
        define_likelihood(
            "bad",
            support=Support(0.0),
            statistics=lambda x, xp: (x,),
            log_base=lambda x, xp: xp.log(1.0 + x),
            log_partition=lambda natural, xp: xp.log(-1.0 / natural[..., 0] + natural[..., 0] ** -2.0),
            factors=lambda scale, xp: (scale,),
        )


def test_without_jax_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r'pip install "evenly\[models\]"'):
        define_likelihood("weibull", **WEIBULL)


# --- what a definition carries ------------------------------------------------------------------------------


def _gamma_statistics(x: Any, xp: Any) -> tuple[Any, ...]:
    return xp.log(x), x


def _gamma_log_base(x: Any, xp: Any) -> Any:
    return 0.0 * x


def _gamma_log_partition(natural: Any, xp: Any) -> Any:
    return xp.gammaln(natural[..., 0] + 1.0) - (natural[..., 0] + 1.0) * xp.log(-natural[..., 1])


def _gamma_factors(scale: Any, xp: Any) -> tuple[Any, ...]:
    return 1.0 + 0.0 * scale, scale


def test_a_likelihood_of_module_level_functions_can_be_pickled() -> None:
    made = define_likelihood(
        "my-gamma",
        support=Support(0.0),
        statistics=_gamma_statistics,
        log_base=_gamma_log_base,
        log_partition=_gamma_log_partition,
        factors=_gamma_factors,
    )
    natural = made.fit(np.array([0.1, 1.5]))  # compiles derivatives
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.fit(np.array([0.1, 1.5])), natural)
    assert np.array_equal(again.fisher(natural), made.fisher(natural))
    assert again.scale_data(3.0, 2.0) == 6.0
    assert (again.name, again.support, again.natural_bounds) == (made.name, made.support, made.natural_bounds)


def test_outside_its_support_the_log_density_is_minus_infinity(gamma: Likelihood) -> None:
    natural = np.array([1.5, -1.7])
    x = np.array([-1.0, 0.0, 2.0, np.inf, np.nan])
    expected = stats.gamma(2.5, scale=1 / 1.7).logpdf(2.0)
    np.testing.assert_allclose(gamma.log_density(x, natural), [-np.inf, -np.inf, expected, -np.inf, np.nan], rtol=1e-13)


def test_a_scaling_by_powers_is_noticed(gamma: Likelihood, normal: Likelihood) -> None:
    assert not gamma.in_logs
    assert not normal.in_logs
    log_normal = define_likelihood(
        "my-log-normal",
        support=Support(0.0),
        statistics=lambda x, xp: NORMAL["statistics"](xp.log(x), xp),
        log_base=lambda x, xp: NORMAL["log_base"](x, xp) - xp.log(x),
        log_partition=NORMAL["log_partition"],
        factors=NORMAL["factors"],
        scale_data=lambda x, scale, xp: x**scale,
    )
    assert log_normal.in_logs


def test_tensors_with_gradients_and_in_single_precision_are_taken(gamma: Likelihood) -> None:
    torch = pytest.importorskip("torch")
    natural = torch.tensor([[1.5, -1.7]], dtype=torch.float32, requires_grad=True)
    for got in (
        gamma.mean(natural),
        gamma.sample(torch.Generator().manual_seed(1), natural, (3,)),
        gamma.fit(gamma.mean_statistics(natural)),
        gamma.unscale_natural(natural, 1.0 / 3.0),
    ):
        assert got.dtype == torch.float32
