"""Likelihood heads against SciPy, derivatives and the scaler itself: every method, kind and likelihood."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import evenly
from evenly import EvenlyWarning, LipschitzScaler, TableError
from evenly.scaling import NOISE_MEAN, OFFSET, Cells, Heads
from evenly.scaling.methods import METHODS
from evenly.tables import column_likelihood

N = 60
LIKELIHOODS = {
    "real": "normal",
    "wage": "log-normal",
    "shifted": "log-normal",
    "wait": "gamma",
    "delay": "inverse-gamma",
    "hitting": "inverse-gaussian",
    "gap": "exponential",
    "wave": "rayleigh",
    "visits": "poisson",
    "bursts": "negative-binomial",
    "yes": "bernoulli",
    "colour": "categorical",
    "rank": "categorical",
}
KINDS = {"visits": "count", "bursts": "count", "yes": "binary", "colour": "categorical", "rank": "ordinal"}
NUMBERS = [name for name in LIKELIHOODS if name not in KINDS]
TRICKED = {"none": set(), "bern": {"colour", "rank"}, "gamma": set(KINDS)}
every_method = pytest.mark.parametrize("method", METHODS)
few_methods = pytest.mark.parametrize("method", ["lip-none", "lip-bern", "lip-gamma"])


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    whole = pd.DataFrame(
        {
            "real": rng.normal(-3.0, 5.0, N),
            "wage": rng.lognormal(1.0, 0.7, N),
            "shifted": np.where(rng.random(N) < 0.2, 0.0, rng.lognormal(1.0, 0.7, N)),
            "wait": rng.gamma(3.0, 2.0, N),
            "delay": stats.invgamma(4.0, scale=9.0).rvs(N, random_state=rng),
            "hitting": rng.wald(2.0, 5.0, N),
            "gap": rng.exponential(3.0, N),
            "wave": rng.rayleigh(7.0, N),
            "visits": rng.poisson(6.0, N),
            "bursts": rng.negative_binomial(2, 0.3, N),
            "yes": rng.choice(["no", "yes"], N, p=[0.7, 0.3]),
            "colour": rng.choice(["red", "green", "blue", "grey"], N),
            "rank": rng.integers(1, 4, N),
            "nothing": np.full(N, 7.5),
        }
    )
    return whole.mask(pd.DataFrame(rng.random((N, 14)) < 0.1, columns=whole.columns) & (whole.columns != "nothing"))


@cache
def fitted(method: str) -> LipschitzScaler:
    given = {name: one for name, one in LIKELIHOODS.items() if name not in ("yes", "colour", "rank")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)  # of the constant column, and of targets below a floor
        return LipschitzScaler(method, kinds=KINDS, likelihoods=given).fit(table())


@cache
def heads_of(method: str) -> Heads:
    return fitted(method).heads()


def raw_outputs(heads: Heads, seed: int = 0, shape: tuple[int, ...] = (N,)) -> np.ndarray:
    """Near the marginal, so that the densities are neither flat nor 0."""
    return heads.marginal + 0.3 * np.random.default_rng(seed).standard_normal((*shape, heads.n_outputs))


def scipy_log_density(name: str, x: Any, usual: Any) -> Any:
    """Of one cell a row, by likelihood, from usual parameters."""
    of = {
        "normal": lambda m, s: stats.norm(m, s).logpdf(x),
        "gamma": lambda a, b: stats.gamma(a, scale=1.0 / b).logpdf(x),
        "inverse-gamma": lambda a, b: stats.invgamma(a, scale=b).logpdf(x),
        "inverse-gaussian": lambda m, k: stats.invgauss(m / k, scale=k).logpdf(x),
        "exponential": lambda rate: stats.expon(scale=1.0 / rate).logpdf(x),
        "rayleigh": lambda sigma: stats.rayleigh(scale=sigma).logpdf(x),
        "bernoulli": lambda p: stats.bernoulli(p).logpmf(x),
        "poisson": lambda rate: stats.poisson(rate).logpmf(x),
        "negative-binomial": lambda m, a: stats.nbinom(1.0 / a, 1.0 / (1.0 + a * m)).logpmf(x),
        "categorical": lambda *p: np.log(np.take_along_axis(usual, x.astype(int)[:, None], 1)[:, 0]),
    }
    return of[name](*np.moveaxis(usual, -1, 0))


# --- the density --------------------------------------------------------------------------------------------------


@every_method
def test_log_probabilities_are_scipys(method):
    heads, scaler = heads_of(method), fitted(method)
    values, mask = heads.encode(table(), dtype="float64")
    raw = raw_outputs(heads)
    found, naturals = heads.log_prob(raw, values, mask), heads.natural(raw)
    assert found.shape == mask.shape == (N, len(LIKELIHOODS))
    columns = {one.column.name: one for one in scaler.columns_}
    for j, head in enumerate(heads.columns):
        seen, expected = mask[:, j], 0.0
        for k, (feature, family) in enumerate(zip(columns[head.name].features, head.likelihoods, strict=True)):
            x = values[seen, head.features.start + k]
            expected = expected + scipy_log_density(family.name, x, family.to_usual(naturals[feature.name][seen]))
        np.testing.assert_allclose(found[seen, j], expected, rtol=1e-9, atol=1e-9, err_msg=head.name)
        assert (found[~seen, j] == 0.0).all()
        assert 0 < seen.sum() < N


@every_method
def test_every_kind_has_the_features_of_its_method(method):
    heads = heads_of(method)
    trick = METHODS[method].trick
    assert heads.names == list(LIKELIHOODS)
    assert heads.left_out == ("nothing",)
    for head in heads.columns:
        family = LIKELIHOODS[head.name]
        n_classes = len(head.fitted.column.classes or ())
        expected = [column_likelihood(head.fitted.column).modelled_as.name]
        if head.name in TRICKED[trick]:
            expected = ["bernoulli" if trick == "bern" else "gamma"] * (n_classes if family == "categorical" else 1)
        assert [one.name for one in head.likelihoods] == expected, head.name
    at = [(one.start, one.stop) for one in heads.slices.values()]
    assert [a for a, _ in at] == [0, *(b for _, b in at[:-1])]
    assert at[-1][1] == heads.n_outputs


@every_method
def test_encoded_cells_are_those_of_transform(method):
    """But of log-normal columns, whose feature is the scaled logarithm."""
    heads, scaler = heads_of(method), fitted(method)
    values, mask = heads.encode(table(), dtype="float64")
    scaled = scaler.transform(table())
    for j, head in enumerate(heads.columns):
        expected = scaled[[one.name for one in head.fitted.features]].to_numpy(np.float64)
        if LIKELIHOODS[head.name] == "log-normal":
            expected = np.log(expected)
        own = values[:, head.features]
        np.testing.assert_array_equal(mask[:, j], table()[head.name].notna())
        np.testing.assert_allclose(own[mask[:, j]], expected[mask[:, j]], rtol=1e-12, atol=1e-12)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", [name for name in LIKELIHOODS if name not in ("colour", "rank", "yes")] + ["colour"])
@every_method
def test_the_density_survives_scaling(method, name):
    """log p(table's units) = log p(scaled) + log |d scaled / d cell|, wherever no trick stands between."""
    heads = heads_of(method)
    if name in TRICKED[METHODS[method].trick]:
        pytest.skip("a trick's feature is no function of the cell")
    j, raw = heads.names.index(name), raw_outputs(heads, seed=3)
    cells = heads.encode(table(), dtype="float64")
    scaled = (heads.log_prob(raw, cells) + heads.log_jacobian(cells))[:, j]
    own = table()[name]
    codes = own.map(heads.columns[j].fitted.column.classes.index, na_action="ignore") if name == "colour" else own
    found = heads.distribution(raw)[name].log_prob(codes.to_numpy(np.float64))
    assert np.isnan(found[~cells.mask[:, j]]).all()
    np.testing.assert_allclose(found[cells.mask[:, j]], scaled[cells.mask[:, j]], rtol=1e-8, atol=1e-8)


@every_method
def test_the_jacobian_is_the_derivative_of_the_encoding(method):
    heads, step = heads_of(method), 1e-6
    cells = heads.encode(table(), dtype="float64")
    moved = heads.encode(table().assign(**{name: table()[name] * (1.0 + step) for name in NUMBERS}), dtype="float64")
    for name in NUMBERS:
        j, at = heads.names.index(name), heads.columns[heads.names.index(name)].features.start
        some = cells.mask[:, j] & (np.abs(table()[name].to_numpy()) > 0.5)
        slope = (moved.values - cells.values)[some, at] / (step * table()[name].to_numpy()[some])
        np.testing.assert_allclose(heads.log_jacobian(cells)[some, j], np.log(slope), atol=1e-5, err_msg=name)


def test_a_number_without_a_mask_is_missing_where_it_is_no_number():
    heads = heads_of("lip-none")
    values, mask = heads.encode(table(), dtype="float64")
    gone = values.copy()
    gone[:, 0] = np.nan
    found = heads.log_prob(raw_outputs(heads), gone, np.ones_like(mask))
    assert (found[:, 0] == 0.0).all()
    assert np.isfinite(found).all()


# --- arrays of other libraries ------------------------------------------------------------------------------------


def torch_log_prob(heads: Heads, raw: Any, cells: Cells, *, grad: bool = False) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    given = torch.tensor(raw, requires_grad=True)
    found = heads.log_prob(given, torch.as_tensor(cells.values), torch.as_tensor(cells.mask))
    if grad:
        found.sum().backward()
    return found.detach().numpy(), given.grad


def jax_log_prob(heads: Heads, raw: Any, cells: Cells, *, grad: bool = False) -> tuple[Any, Any]:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        total = jax.jit(
            jax.value_and_grad(lambda raw, cells: (lambda p: (p.sum(), p))(heads.log_prob(raw, cells)), has_aux=True)
        )
        (_, found), slope = total(jax.numpy.asarray(raw), Cells(*map(jax.numpy.asarray, cells)))
        return np.asarray(found), np.asarray(slope)


@every_method
def test_pytorch_gives_the_same_numbers_and_the_derivatives(method):
    heads = heads_of(method)
    cells, raw = heads.encode(table(), dtype="float64"), raw_outputs(heads)
    found, slope = torch_log_prob(heads, raw, cells, grad=True)
    np.testing.assert_allclose(found, heads.log_prob(raw, cells), rtol=1e-6, atol=1e-6)
    assert_slope(heads, raw, cells, slope.numpy())


@pytest.mark.more
@every_method
def test_jax_gives_the_same_numbers_and_the_derivatives(method):
    heads = heads_of(method)
    cells, raw = heads.encode(table(), dtype="float64"), raw_outputs(heads)
    found, slope = jax_log_prob(heads, raw, cells)
    np.testing.assert_allclose(found, heads.log_prob(raw, cells), rtol=1e-6, atol=1e-6)
    assert_slope(heads, raw, cells, slope)


def test_jax_gives_the_same_numbers_and_the_derivatives_of_a_few_columns():
    heads = fitted("lip-gamma").heads(["real", "wait", "visits"])
    cells, raw = heads.encode(table(), dtype="float64"), raw_outputs(heads)
    found, slope = jax_log_prob(heads, raw, cells)
    np.testing.assert_allclose(found, heads.log_prob(raw, cells), rtol=1e-6, atol=1e-6)
    assert_slope(heads, raw, cells, slope)


def assert_slope(heads: Heads, raw: np.ndarray, cells: Cells, slope: np.ndarray) -> None:
    """Central differences: the outputs of a row move that row alone, those of a column that column alone."""
    step = 1e-5
    for k in range(heads.n_outputs):
        ahead, behind = raw.copy(), raw.copy()
        ahead[:, k] += step
        behind[:, k] -= step
        moved = (heads.log_prob(ahead, cells) - heads.log_prob(behind, cells)) / (2.0 * step)
        j = next(j for j, one in enumerate(heads.columns) if one.outputs.start <= k < one.outputs.stop)
        assert (np.delete(moved, j, axis=1) == 0.0).all()
        np.testing.assert_allclose(slope[:, k], moved[:, j], rtol=2e-5, atol=2e-5)


@few_methods
def test_missing_cells_have_no_gradient_whatever_the_network_says(method):
    torch = pytest.importorskip("torch")
    heads = heads_of(method)
    values, mask = map(torch.as_tensor, heads.encode(table()))
    for wild in (0.0, 1e30, -1e30, math.inf, math.nan):
        raw = torch.tensor(raw_outputs(heads), dtype=torch.float32)
        for j, head in enumerate(heads.columns):
            raw[~mask[:, j], head.outputs] = wild
        raw.requires_grad_(True)
        heads.log_prob(raw, values, mask).sum().backward()
        assert torch.isfinite(raw.grad).all()
        for j, head in enumerate(heads.columns):
            assert (raw.grad[~mask[:, j], head.outputs] == 0.0).all()
            assert (raw.grad[mask[:, j], head.outputs] != 0.0).any()


@pytest.mark.more
def test_missing_cells_have_no_gradient_in_jax_either():
    jax = pytest.importorskip("jax")
    heads = heads_of("lip-gamma")
    values, mask = heads.encode(table())
    raw = raw_outputs(heads).astype(np.float32)
    for j, head in enumerate(heads.columns):
        raw[~mask[:, j], head.outputs] = math.nan
    slope = np.asarray(jax.grad(lambda raw: heads.log_prob(raw, values, mask).sum())(raw))
    assert np.isfinite(slope).all()
    for j, head in enumerate(heads.columns):
        assert (slope[~mask[:, j], head.outputs] == 0.0).all()


@every_method
def test_far_outputs_stay_finite_in_single_precision(method):
    """Softplus underflows: the floors keep every parameter inside its bounds."""
    torch = pytest.importorskip("torch")
    heads = heads_of(method)
    values, mask = map(torch.as_tensor, heads.encode(table()))
    for far in (-40.0, 40.0):
        raw = torch.full((N, heads.n_outputs), far, requires_grad=True)
        found = heads.log_prob(raw, values, mask)
        assert found.dtype == torch.float32
        assert torch.isfinite(found).all()


@pytest.mark.more
def test_rows_are_mapped_one_by_one_in_jax():
    jax = pytest.importorskip("jax")
    heads = heads_of("lip-gamma")
    with jax.enable_x64(True):
        cells, raw = Cells(*map(jax.numpy.asarray, heads.encode(table(), dtype="float64"))), raw_outputs(heads)
        found = jax.vmap(heads.log_prob)(jax.numpy.asarray(raw), cells)
        np.testing.assert_allclose(found, heads.log_prob(raw, table()), rtol=1e-6, atol=1e-6)


def test_a_data_loader_gives_cells_as_a_list():
    torch = pytest.importorskip("torch")
    heads = heads_of("lip-none")
    values, mask = heads.encode(table())
    batch = next(iter(torch.utils.data.DataLoader([*zip(values, mask, strict=True)], batch_size=N)))
    raw = torch.tensor(raw_outputs(heads), dtype=torch.float32)
    torch.testing.assert_close(heads.log_prob(raw, batch), heads.log_prob(raw, values, mask))


def test_draws_lie_along_axes_before_the_rows():
    heads = heads_of("lip-bern")
    raw, cells = raw_outputs(heads, shape=(3, N)), heads.encode(table())
    found = heads.log_prob(raw, cells)
    assert found.shape == (3, N, len(LIKELIHOODS))
    np.testing.assert_allclose(found[1], heads.log_prob(raw[1], cells))
    np.testing.assert_allclose(
        heads.log_prob(raw[1, 0], cells)[5], heads.log_prob(raw[1, :1], Cells(*(one[5:6] for one in cells)))[0]
    )
    assert heads.distribution(raw)["colour"].probabilities.shape == (3, N, 4)
    assert heads.distribution(raw)["real"].mean().shape == (3, N)


def test_a_table_is_encoded_as_encode_does():
    heads = heads_of("std-gamma")
    raw = raw_outputs(heads)
    expected = heads.log_prob(raw, heads.encode(table(), dtype="float64"))
    np.testing.assert_array_equal(heads.log_prob(raw, table()), expected)
    np.testing.assert_array_equal(heads.log_prob(raw, pl.from_pandas(table())), expected)
    np.testing.assert_allclose(heads.log_jacobian(table()), heads.log_jacobian(heads.encode(table())), rtol=1e-5)


# --- parameters and distributions ---------------------------------------------------------------------------------


@every_method
def test_the_fitted_parameters_come_back_as_the_scaler_has_them(method):
    heads, scaler = heads_of(method), fitted(method)
    given = {name: one for name, one in scaler.natural_.items() if name != "nothing"}
    usual, found = scaler.unscale(given), heads.distribution(heads.raw(given))
    assert [*found] == heads.names
    for name in heads.names:
        for key, expected in usual[name].items():
            np.testing.assert_allclose(found[name].parameters[key], expected, rtol=1e-5, atol=1e-7, err_msg=name)


@every_method
def test_raw_outputs_and_natural_parameters_are_one_to_one(method):
    heads = heads_of(method)
    raw = raw_outputs(heads)
    np.testing.assert_allclose(heads.raw(heads.natural(raw)), raw, rtol=1e-6, atol=1e-6)


@every_method
def test_unscale_takes_the_natural_parameters(method):
    heads = heads_of(method)
    raw = raw_outputs(heads)
    usual, found = fitted(method).unscale(heads.natural(raw)), heads.distribution(raw)
    for name in heads.names:
        for key, expected in usual[name].items():
            np.testing.assert_array_equal(found[name].parameters[key], expected)


@every_method
def test_no_other_constant_is_more_likely_than_the_marginal(method):
    """Of a negative binomial, which is fitted by moments, there is; of a trick's noise, a fit knows the mean alone."""
    heads, rng = heads_of(method), np.random.default_rng(0)
    apart = {"bursts", *(TRICKED[METHODS[method].trick] if METHODS[method].trick == "gamma" else ())}
    own = [j for j, one in enumerate(heads.columns) if one.name not in apart]
    cells = heads.encode(table(), dtype="float64")
    best = heads.log_prob(heads.marginal, cells).sum(0)
    for _ in range(20):
        other = heads.log_prob(heads.marginal + 0.3 * rng.standard_normal(heads.n_outputs), cells).sum(0)
        assert (other[own] < best[own]).all()


@every_method
def test_the_marginal_is_finite_where_a_class_never_occurs(method):
    without = table().assign(colour=table()["colour"].mask(table()["colour"] == "grey"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        heads = LipschitzScaler(method, schema=fitted(method).schema_).fit(without).heads()
    assert len(heads.columns[heads.names.index("colour")].fitted.column.classes) == 4
    assert np.isfinite(heads.marginal).all()
    assert np.isfinite(heads.log_prob(heads.marginal, without)).all()


@few_methods
def test_distributions_are_in_the_tables_units(method):
    heads = heads_of(method)
    cells = heads.distribution(np.tile(heads.marginal, (4000, 1)))
    rng = np.random.default_rng(1)
    for name in ("real", "wait", "gap", "visits"):
        own = table()[name].dropna()
        drawn = cells[name].sample(rng)
        assert np.isclose(cells[name].mean()[0], own.mean(), rtol=1e-3)
        assert abs(drawn.mean() - own.mean()) < 5.0 * drawn.std() / math.sqrt(len(drawn))
        low, high = cells[name].interval(0.9)
        assert 0.8 < ((own >= low[0]) & (own <= high[0])).mean() <= 1.0
    share = (table()["colour"].dropna() == "red").mean()
    probabilities = cells["colour"].probabilities[0]
    assert np.isclose(probabilities[cells["colour"].column.classes.index("red")], share, atol=0.01)


def test_best_guesses_have_the_types_of_the_table():
    heads = heads_of("lip-gamma")
    found = heads.predict(raw_outputs(heads))
    assert [*found.columns] == heads.names
    assert len(found) == N
    assert set(found["colour"]) <= set(table()["colour"].dropna())
    assert found["visits"].dtype == table()["visits"].dtype
    expected = heads.distribution(raw_outputs(heads))["real"].median()
    np.testing.assert_allclose(heads.predict(raw_outputs(heads), "median")["real"], expected)


def test_weights_are_those_of_the_scaler():
    scaler, heads = fitted("lip-none"), heads_of("lip-none")
    weights = scaler.balance_weights()
    np.testing.assert_array_equal(heads.weights, [weights[name] for name in heads.names])
    assert heads.weights[heads.names.index("yes")] > 10.0
    assert np.isclose(heads.weights[heads.names.index("real")], 1.0)


# --- noise and new rows -------------------------------------------------------------------------------------------


def test_noise_is_its_mean_unless_it_is_drawn():
    heads = heads_of("lip-gamma")
    visits = heads.columns[heads.names.index("visits")]
    scale = visits.fitted.fits[0].scale
    seen = table()["visits"].notna().to_numpy()

    def noise(rng: Any) -> np.ndarray:
        values = heads.encode(table(), rng, dtype="float64").values[seen, visits.features.start]
        return values / scale - OFFSET - table()["visits"].to_numpy()[seen]

    np.testing.assert_allclose(noise(None), NOISE_MEAN, atol=1e-9)
    first = noise(1)
    assert 0.0 < first.min() < first.max() < 0.5
    np.testing.assert_array_equal(noise(1), first)
    assert (noise(2) != first).all()
    rng = np.random.default_rng(0)
    drawn = noise(rng)
    np.testing.assert_array_equal(noise(np.random.default_rng(0)), drawn)
    assert (noise(rng) != drawn).all()
    assert stats.kstest(np.concatenate([noise(k) for k in range(30)]), stats.beta(1.1, 30.0).cdf).pvalue > 1e-3


def test_a_scaler_that_draws_noise_has_heads_that_do():
    numbers = pd.DataFrame({"n": np.random.default_rng(0).poisson(3.0, 50)})
    scaler = LipschitzScaler(noise="drawn", random_state=3).fit(numbers)
    np.testing.assert_array_equal(scaler.heads().encode(numbers, dtype="float64").values, scaler.transform(numbers))


@few_methods
def test_classes_that_fit_did_not_see_are_missing(method):
    heads = heads_of(method)
    new = table().assign(colour="violet", visits=-3.0)
    with pytest.warns(EvenlyWarning, match="not seen in fit, treated as missing|below 0, used as 0"):
        values, mask = heads.encode(new)
    assert not mask[:, heads.names.index("colour")].any()
    assert mask[:, heads.names.index("visits")].all()
    assert np.isfinite(values).all()


def test_heads_of_some_columns_need_no_others():
    heads = fitted("lip-gamma").heads(["rank", "real"])
    assert heads.names == ["real", "rank"]
    assert heads.encode(table()[["rank", "real"]]).mask.shape == (N, 2)
    every = heads_of("lip-gamma")
    raw = raw_outputs(every)
    own = np.concatenate([raw[:, every.slices[name]] for name in heads.names], axis=1)
    expected = every.log_prob(raw, table())[:, [every.names.index(name) for name in heads.names]]
    np.testing.assert_allclose(heads.log_prob(own, table()), expected)


def test_heads_of_an_array_go_by_position():
    numbers = np.random.default_rng(0).normal(0.0, 2.0, (20, 3))
    heads = LipschitzScaler().fit(numbers).heads(["x2"])
    np.testing.assert_allclose(
        heads.encode(numbers, dtype="float64").values[:, 0] / numbers[:, 2], heads.columns[0].fitted.fits[0].scale
    )
    with pytest.raises(TableError, match="an array of 2 columns, but expected the 3 of fit"):
        heads.encode(numbers[:, :2])


def test_heads_outlive_a_copy_and_a_later_fit():
    numbers = pd.DataFrame({"a": np.random.default_rng(0).normal(0.0, 2.0, 50)})
    scaler = LipschitzScaler().fit(numbers)
    heads = scaler.heads()
    before = heads.log_prob(np.zeros(2), numbers)
    scaler.fit(100.0 * numbers)
    for one in (heads, copy.deepcopy(heads), pickle.loads(pickle.dumps(heads))):
        np.testing.assert_array_equal(one.log_prob(np.zeros(2), numbers), before)
    assert hash(heads) == hash(heads)  # so that it may be a static argument
    assert repr(heads) == "<heads of 1 columns: 2 outputs>"


def test_a_likelihood_of_ones_own_has_a_head(pareto):
    numbers = pd.DataFrame({"size": stats.pareto(2.5).rvs(200, random_state=0)})
    scaler = LipschitzScaler("std-none", likelihoods={"size": pareto}).fit(numbers)
    heads = scaler.heads()
    raw, cells = np.full((200, 1), 0.7), heads.encode(numbers, dtype="float64")
    shape = -heads.natural(raw)["size"][:, 0]
    np.testing.assert_allclose(
        heads.log_prob(raw, cells)[:, 0], stats.pareto(shape).logpdf(cells.values[:, 0]), rtol=1e-9
    )
    found = heads.distribution(raw)["size"].log_prob(numbers["size"].to_numpy())
    np.testing.assert_allclose((heads.log_prob(raw, cells) + heads.log_jacobian(cells))[:, 0], found, rtol=1e-5)


# --- bad input ----------------------------------------------------------------------------------------------------


def test_an_unfitted_scaler_has_no_heads():
    with pytest.raises(ValueError, match="not fitted"):
        LipschitzScaler().heads()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["height"], "Column 'height': got no such column among .*, but expected a column that was there in fit"),
        ("real", r"got columns = 'real', but expected a list of columns. Hint: pass \['real'\]"),
        (
            ["real", "nothing"],
            "Column 'nothing': got a column that is ignored, has no observed cell, or a single value",
        ),
        ([], "got no columns"),
    ],
)
def test_columns_that_have_no_head_are_refused(columns, message):
    with pytest.raises(TableError, match=message):
        fitted("lip-gamma").heads(columns)


def test_a_table_where_nothing_varies_has_no_heads():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = LipschitzScaler().fit([[1.0], [1.0]])
    with pytest.raises(TableError, match="expects one that varies"):
        scaler.heads()


def half(heads: Heads) -> Any:
    return pytest.importorskip("torch").zeros((N, heads.n_outputs)).half()


# What is called with heads, raw outputs, values and mask, and what is said.
BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "width": (lambda h, r, v, m: h.log_prob(r[:, :-1], v, m), r"raw outputs of shape \(60, 33\), but expected 34"),
    "rows": (lambda h, r, v, m: h.log_prob(r[:7], v, m), r"raw of shape \(7, 34\), values of shape \(60"),
    "features": (lambda h, r, v, m: h.log_prob(r, v[:, :-1], m), "values of shape .* one a feature"),
    "columns": (lambda h, r, v, m: h.log_prob(r, v, m[:, 1:]), "mask of shape .* one a column"),
    "half": (lambda h, r, v, m: h.natural(half(h)), "raw outputs of type float16"),
    "text": (lambda h, r, v, m: h.distribution([["a"]]), "raw outputs of type list, but expected an array of numbers"),
    "two masks": (lambda h, r, v, m: h.log_prob(r, h.encode(table()), m), "encoded cells and another mask"),
    "no mask": (lambda h, r, v, m: h.log_prob(r, half(h)), "an array of torch without a mask"),
    "dtype": (lambda h, r, v, m: h.encode(table(), dtype="float16"), "dtype = 'float16'"),
    "rng": (lambda h, r, v, m: h.encode(table(), rng=-1), "rng = -1"),
    "lazy": (lambda h, r, v, m: h.encode(pl.LazyFrame({"real": [1.0]})), "a lazy frame"),
    "absent": (lambda h, r, v, m: h.encode(table().drop(columns="gap")), "Column 'gap': got no such column among"),
    "estimate": (lambda h, r, v, m: h.predict(r, "average"), "estimate = 'average'"),
    "draws": (lambda h, r, v, m: h.predict(r[None]), "a table expects rows x outputs"),
    "unknown": (lambda h, r, v, m: h.raw({"height": [0.0]}), "the feature 'height'"),
    "missing": (lambda h, r, v, m: h.raw({"real": [0.0, -1.0]}), "no parameters of 'wage'"),
    "size": (lambda h, r, v, m: h.raw({**h.natural(r), "real": [0.0]}), "expected 2 of normal along the last axis"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_what_does_not_fit_is_refused(call, message):
    heads = heads_of("lip-gamma")
    with pytest.raises(TableError, match=message):
        call(heads, raw_outputs(heads), *heads.encode(table()))


def test_distributions_are_refused_inside_a_compiled_function():
    jax = pytest.importorskip("jax")
    heads = heads_of("lip-gamma")
    with pytest.raises(TableError, match="raw outputs within a compiled function"):
        jax.jit(lambda raw: heads.distribution(raw)["real"].mean())(np.zeros(heads.n_outputs, np.float32))


def test_heads_are_a_public_name():
    assert evenly.Heads is Heads
