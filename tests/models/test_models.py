"""The models: their ELBO, its gradients and bounds, the loop's promises, and learning what a model generated."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_data import counting_compilations, place
from scipy import integrate, stats

from evenly import EvenlyWarning
from evenly.likelihoods.bounds import constrain, unconstrain
from evenly.likelihoods.continuous import EXPONENTIAL, GAMMA, LOG_NORMAL, NORMAL, UNIT_NORMAL
from evenly.likelihoods.discrete import BERNOULLI, POISSON, Categorical
from evenly.likelihoods.registry import LIKELIHOODS
from evenly.models import MODELS, PAPERS, Plan
from evenly.models.bbvi import objective, start, step
from evenly.models.factorization import Factorization, _best_second
from evenly.models.fitting import fit_model
from evenly.models.gradients import column_gradients, gradient_changes
from evenly.models.hivae import HIVAE
from evenly.models.layers import normal_kl
from evenly.models.layout import Data, Layout, pad_rows
from evenly.models.loop import Batches, train
from evenly.models.masked import Masked
from evenly.models.mixture import Mixture
from evenly.models.vae import VAE
from evenly.models.wiring import wire

MIXED = Layout(
    (NORMAL, GAMMA, GAMMA, LOG_NORMAL, BERNOULLI, POISSON, Categorical(3), EXPONENTIAL),
    (0, 1, 1, 2, 3, 4, 5, 6),
    inputs=(0, 1, 1, 2, 3, 4, 5, 6),
)
"""Two gamma features belong to one column."""
FEW = Layout((NORMAL, GAMMA, GAMMA, BERNOULLI), (0, 1, 1, 2), inputs=(0, 1, 1, 2))
"""For what does not go by the likelihood: each one takes its time to compile."""

SMALL = {
    "mixture": Mixture(3),
    "factorization": Factorization(2),
    "vae": VAE(latent_size=2, hidden_size=8),
    "hivae": HIVAE(2, 3, 2),
}


def mixed_data(
    n: int = 60, dtype: str = "float32", seed: int = 0, layout: Layout = MIXED, features: Sequence[int] = range(8)
) -> Data:
    """A table with the columns of `MIXED`, or some of its features."""
    rng = np.random.default_rng(seed)
    targets = np.column_stack(
        [
            rng.normal(1.0, 2.0, n),
            rng.gamma(3.0, size=n),
            rng.gamma(30.0, 0.1, size=n),
            rng.lognormal(size=n),
            rng.random(n) < 0.3,
            rng.poisson(4.0, n),
            rng.integers(0, 3, n),
            rng.exponential(size=n),
        ]
    ).astype(dtype)
    mask = rng.random(targets.shape) < 0.8
    mask[:, 2] = mask[:, 1]
    inputs = np.where(mask, (targets - targets.mean(0)) / targets.std(0), 0.0).astype(dtype)
    some = np.array(features)
    return place(layout, inputs[:, some][:, : len(layout.inputs)], targets[:, some], mask[:, some])


def few_data(n: int = 60, dtype: str = "float32", seed: int = 0, layout: Layout = FEW) -> Data:
    """The columns of `FEW`."""
    return mixed_data(n, dtype, seed, layout, (0, 1, 2, 4))


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def test_the_registry_names_the_papers_models():
    assert set(MODELS) == {"mixture", "factorization", "vae", "hivae", "masked", "marginal"}
    assert set(SMALL) == {*PAPERS, "hivae"}  # the others have tests of their own


# --- the layout ---


@pytest.mark.parametrize("family", [*LIKELIHOODS.values(), Categorical(4)], ids=lambda family: family.name)
def test_constrained_parameters_lie_inside_their_bounds_in_single_precision(family):
    raw = jnp.asarray(np.linspace(-200.0, 200.0, 81, dtype=np.float32))[:, None] * jnp.ones(len(family.natural_bounds))
    natural = constrain(family, raw)
    assert natural.dtype == jnp.float32
    low, high = np.transpose(family.natural_bounds)
    assert ((natural > low) & (natural < high)).all()


@pytest.mark.parametrize("family", [*LIKELIHOODS.values(), Categorical(4)], ids=lambda family: family.name)
def test_unconstrain_undoes_constrain(family, double):
    raw = jnp.asarray(np.random.default_rng(0).normal(0.0, 3.0, (50, len(family.natural_bounds))))
    np.testing.assert_allclose(unconstrain(family, constrain(family, raw)), raw, rtol=1e-6, atol=1e-6)


def test_the_log_likelihood_sums_observed_cells_by_column(double):
    """Against a plain loop over cells, through SciPy."""
    data = mixed_data(20, "float64")
    raw = np.random.default_rng(1).normal(size=(20, MIXED.n_raw))
    wiring = wire(MIXED)
    naturals = MIXED.by_feature(np.asarray(jax.jit(wiring.natural)(raw)))
    references = {
        "normal": lambda u: stats.norm(u[0], u[1]).logpdf,
        "gamma": lambda u: stats.gamma(u[0], scale=1 / u[1]).logpdf,
        "log-normal": lambda u: stats.lognorm(u[1], scale=np.exp(u[0])).logpdf,
        "bernoulli": lambda u: stats.bernoulli(u[0]).logpmf,
        "poisson": lambda u: stats.poisson(u[0]).logpmf,
        "categorical": lambda u: lambda x: np.log(u[int(x)]),
        "exponential": lambda u: stats.expon(scale=1 / u[0]).logpdf,
    }
    expected = np.zeros((20, MIXED.n_columns))
    for j, family in enumerate(MIXED.likelihoods):
        usual = np.asarray(family.to_usual(naturals[j]))
        for row in range(20):
            if data.mask[row, MIXED.columns[j]]:
                cell = float(MIXED.target(data, j)[row])
                expected[row, MIXED.columns[j]] += references[family.name](usual[row])(cell)
    found = jax.jit(wiring.log_likelihood)(raw, data.targets, data.mask)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(MIXED.log_likelihood(naturals, data), expected, rtol=1e-9)


@pytest.mark.more
def test_what_stands_in_a_masked_cell_does_not_matter():
    def otherwise(data):
        other = data.targets.copy()
        for layout in (MIXED, FEW):
            if other.shape[1] == layout.n_slots:
                for f, (slot, _) in enumerate(layout.places):
                    other[~data.mask[:, layout.columns[f]], slot] = 1.0
        return data, data._replace(targets=other)

    raw = np.random.default_rng(0).normal(size=(60, MIXED.n_raw)).astype(np.float32)
    of = jax.jit(wire(MIXED).log_likelihood)
    a, b = (of(raw, data.targets, data.mask) for data in otherwise(mixed_data()))
    np.testing.assert_array_equal(a, b)
    for name, model in SMALL.items():
        state = start(model, FEW, few_data(), 0, 1e-3)
        run = jax.jit(partial(step, model, wire(FEW)))
        a, b = (run(data, state, jnp.arange(60))[1] for data in otherwise(few_data()))
        np.testing.assert_array_equal(a.log_likelihood, b.log_likelihood, err_msg=name)


# --- size classes ---


KINDS = Layout(
    (UNIT_NORMAL, Categorical(6), GAMMA, BERNOULLI, Categorical(3)), (0, 0, 1, 2, 3), (0, 1, 2, 3, 3, 3), (0, 1)
)
"""A number in bins, a gamma, a yes or no, and classes."""


def kinds_data(layout: Layout, dtype: str) -> Data:
    rng, n = np.random.default_rng(0), 50
    x, y, classes = rng.normal(size=n), rng.gamma(3.0, size=n), rng.integers(0, 3, n)
    yes, one_hot = rng.random(n) < 0.4, np.eye(3)[classes]
    mask = rng.random((n, 4)) < 0.8
    inputs = np.where(mask[:, [0, 1, 2, 3, 3, 3]], np.column_stack([x, y - 3.0, yes, one_hot]), 0.0)
    targets = np.column_stack([x, np.digitize(x, [-1.0, -0.5, 0.0, 0.5, 1.0]), y, yes, classes])
    return place(layout, inputs, targets.astype(dtype), mask[:, [0, 0, 1, 2, 3]])


@pytest.mark.parametrize(
    ("model", "batch_size"),
    [
        (Masked(8, n_blocks=1), 64),
        *(
            pytest.param(model, size, marks=pytest.mark.more)
            for model in (*SMALL.values(), Masked(8, dropout_percent=20), VAE(2, 8, masked=True))
            for size in (20, 64)
        ),
    ],
)
def test_what_a_table_is_padded_with_does_not_matter(model, batch_size, double):
    """The same training in arrays that fit the table and in arrays of a size class, but for rounding."""
    padded = KINDS.in_class(50, in_bins=model.spec.bins_numbers)
    assert padded.n_raw > KINDS.n_raw
    found = []
    for layout, n_rows in ((KINDS, 50), (padded, 64)):
        data = kinds_data(layout, "float64")
        state = start(model, layout, data, 3, 1e-2, [1.0, 2.0, 0.5, 1.0], n_rows).of_steps(12.0)
        more = pad_rows(data, n_rows, layout)
        gradients = column_gradients(model, wire(layout), more, state, Batches(50, n_rows, 64).first)
        state, history = train(model, layout, more, state, epochs=4, batch_size=batch_size)
        shared = {**state.shared, **state.fixed}
        naturals = [model.predict_natural(layout, shared, data, draw) for draw in (None, (1, 2))]
        found.append((history, naturals, np.asarray(gradients)[:4]))
    (one, natural, gradient), (other, again, other_gradient) = found
    np.testing.assert_allclose(other.elbo, one.elbo, rtol=1e-9)
    np.testing.assert_allclose(other.log_likelihood, one.log_likelihood, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7), natural, again)


def test_tables_of_like_size_share_their_programs():
    """Another number of rows, other columns of other kinds, in another order: nothing is compiled again."""
    first = KINDS.in_class(50, in_bins=True)
    others = Layout((Categorical(5), BERNOULLI, UNIT_NORMAL, Categorical(9)), (0, 1, 2, 2), (0,) * 5 + (1, 2), (6,))
    second = others.in_class(60, in_bins=True)
    model, rng = Masked(8), np.random.default_rng(0)
    model = replace(model, n_knots=4)
    named = Layout(first.likelihoods[:2] + first.likelihoods[3:], (0, 0, 1, 2), (0, 1, 2, 2, 2), (0,))
    first = named.in_class(50, in_bins=True)
    classes = rng.integers(0, 5, 60)
    x = rng.normal(size=60)
    tables = [
        place(first, np.zeros((50, 5)), np.zeros((50, 4), np.float32), np.ones((50, 4), bool)),
        place(
            second,
            np.column_stack([np.eye(5)[classes], x > 0.0, x]),
            np.column_stack([classes, x > 0.0, x, np.digitize(x, np.arange(8) / 4.0 - 1.0)]).astype(np.float32),
            np.ones((60, 4), bool),
        ),
    ]
    compiled = []
    with counting_compilations(compiled):
        fit_model(model, first, tables[0], 0, Plan(1e-3, 1, 32))
        assert len(compiled) >= 1
        compiled.clear()
        shared, *_ = fit_model(model, second, tables[1], 0, Plan(1e-3, 1, 32))
    assert compiled == []
    assert np.isfinite(model.predict_natural(second, shared, tables[1])[3]).all()


# --- the ELBO ---


def test_normal_kl_against_quadrature():
    for mean, std in [(0.0, 1.0), (1.5, 0.3), (-2.0, 4.0)]:
        q, p = stats.norm(mean, std), stats.norm()
        expected = integrate.quad(
            lambda x, q=q, p=p: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), mean - 12 * std, mean + 12 * std
        )
        assert float(normal_kl(jnp.asarray(mean), jnp.asarray(std))) == pytest.approx(expected[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "name", ["vae", *(pytest.param(name, marks=pytest.mark.more) for name in SMALL if name != "vae")]
)
def test_gradients_against_finite_differences(name, double):
    model, data = SMALL[name], mixed_data(20, "float64")
    state = start(model, MIXED, data, 1, 1e-3)
    flat, unravel = jax.flatten_util.ravel_pytree((state.shared, state.local))

    @jax.jit
    def value(at):
        return objective(model, wire(MIXED), unravel(at), jax.random.key(2), data, state, jnp.ones(20, bool))[0]

    gradient = jax.jit(jax.grad(value))(flat)
    rng = np.random.default_rng(0)
    for _ in range(10):
        direction = jnp.asarray(rng.normal(size=flat.shape))
        numeric = (value(flat + 1e-6 * direction) - value(flat - 1e-6 * direction)) / 2e-6
        assert float(gradient @ direction) == pytest.approx(float(numeric), rel=2e-5, abs=1e-6)


@pytest.mark.more
def test_the_elbo_of_a_factorization_is_the_evidence_at_the_exact_posterior_and_below_it_elsewhere(double):
    """One factor, fixed loadings, normal cells: the row's posterior is normal, the evidence a multivariate normal."""
    rng = np.random.default_rng(0)
    variance, loadings = np.array([0.5, 1.0, 2.0]), np.array([1.0, -0.7, 0.4])
    layout = Layout((NORMAL,) * 3, (0, 1, 2))
    model = Factorization(1)
    n = 40
    # natural_1 = z b = mean / variance, so the mean is z b variance
    x = rng.normal(size=(n, 1)) * (loadings * variance) + rng.normal(size=(n, 3)) * np.sqrt(variance)
    data = place(layout, np.zeros((n, 0)), x, np.ones((n, 3), bool))
    others = layout.flat([np.array([0.0, -0.5 / one]) for one in variance])
    precision = 1.0 + (loadings**2 * variance).sum()
    shared = {
        "mean": np.repeat(loadings, 2)[None],  # those of the second parameters are not used
        "rho": np.full((1, 6), -40.0),  # loadings known: their own KL is left out below
        "others": others,
        "row_rho": jnp.log(jnp.expm1(jnp.asarray([precision**-0.5]))),
    }
    posterior = {"mean": jnp.asarray((x @ loadings) / precision)[:, None]}
    spread = loadings * variance
    evidence = stats.multivariate_normal(np.zeros(3), np.diag(variance) + np.outer(spread, spread)).logpdf(x).mean()

    def elbo(local):
        keys = jax.random.split(jax.random.key(3), 4000)

        def one(key):
            terms = model.terms(shared, local, key, wire(layout), data, jnp.zeros((), int))
            return (terms.log_likelihood.sum(-1) - terms.local_kl).mean()

        draws = jax.vmap(one)(keys)
        return float(draws.mean()), float(draws.std() / np.sqrt(len(keys)))

    value, error = elbo(posterior)
    assert value == pytest.approx(evidence, abs=5 * error)
    for shift in (0.5, -1.0):
        assert elbo({"mean": posterior["mean"] + shift})[0] < evidence - 0.05


def test_a_factorization_starts_with_the_second_parameters_that_go_with_a_product_of_zero(double):
    """Gammas at the column's mean, normals with its mean square, whatever the product will become; closed forms."""
    layout = Layout((NORMAL, GAMMA, GAMMA, LOG_NORMAL), (0, 1, 1, 2))
    data = mixed_data(200, "float64", layout=layout, features=range(4))
    shared, _, _ = Factorization(2).init(np.random.default_rng(0), layout, data)
    raw = jnp.where(wire(layout).followed, 0.0, shared["others"])
    normal, small, large, log_normal = layout.by_feature(wire(layout).natural(raw))
    x = [layout.target(data, f)[data.mask[:, layout.columns[f]]] for f in range(4)]
    np.testing.assert_allclose(-0.5 / normal[1], (x[0] ** 2).mean(), rtol=1e-6)
    for natural, values in ((small, x[1]), (large, x[2])):
        np.testing.assert_allclose((natural[0] + 1) / -natural[1], values.mean(), rtol=1e-6)
    np.testing.assert_allclose(-0.5 / log_normal[1], (np.log(x[3]) ** 2).mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "mean"),
    [
        ("gamma", lambda shape, rate: stats.gamma(shape, scale=1 / rate).mean()),
        ("inverse-gamma", lambda shape, rate: stats.gamma(shape, scale=1 / rate).mean()),  # of 1/x
        ("inverse-gaussian", lambda mean, shape: 1 / mean + 1 / shape),  # of 1/x
    ],
)
def test_the_second_parameter_makes_its_statistic_right(family, mean):
    likelihood, means = LIKELIHOODS[family], np.array([1e-3, 0.7, 40.0])
    first = np.full(3, constrain(likelihood, np.zeros(2))[0])
    usual = np.asarray(likelihood.to_usual(_best_second(likelihood, first, means)))
    np.testing.assert_allclose([mean(*one) for one in usual], means, rtol=1e-6)


@pytest.mark.more
def test_a_factorization_distinguishes_all_classes_by_row():
    """Three classes that another column gives away; with the first class alone two of them would be as one."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    hidden = np.arange(300) >= 200
    layout = Layout((NORMAL, NORMAL, Categorical(3)), (0, 1, 2))
    near = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])[group] + rng.normal(0.0, 0.2, (300, 2))
    targets = np.column_stack([near, group]).astype(np.float32)
    mask = np.ones((300, 3), bool)
    mask[hidden, 2] = False
    data = place(layout, np.zeros((300, 0)), targets, mask)
    model = Factorization(3)
    shared, *_ = fit_model(model, layout, data, 0, Plan(3e-2, 200, 300))
    classes = model.predict_natural(layout, shared, data)[2].argmax(-1)
    assert (classes == group)[hidden].mean() > 0.9


@pytest.mark.more
def test_the_elbo_of_a_mixture_is_the_evidence_at_the_exact_posterior(double):
    rng = np.random.default_rng(0)
    layout, model, n = Layout((NORMAL, NORMAL), (0, 1)), Mixture(2), 30
    means, member = np.array([[0.0, 0.0], [2.0, -1.0]]), rng.integers(0, 2, n)
    x = means[member] + rng.normal(size=(n, 2))
    data = place(layout, np.zeros((n, 0)), x, np.ones((n, 2), bool))
    naturals = NORMAL.to_natural(np.stack([means, np.ones((2, 2))], -1))
    shared = {"mean": jnp.asarray(layout.flat([naturals[:, 0], naturals[:, 1]])), "rho": jnp.full((2, 4), -40.0)}
    local = model.infer_local(shared, jax.random.key(0), wire(layout), data)
    by_cluster = np.stack([stats.norm(m, 1.0).logpdf(x).sum(1) for m in means], -1)
    evidence = np.logaddexp.reduce(by_cluster - np.log(2.0), axis=1).mean()
    late = jnp.asarray(10_000)  # the coldest temperature: draws are one-hot
    keys = jax.random.split(jax.random.key(1), 4000)

    def one(key):
        terms = model.terms(shared, local, key, wire(layout), data, late)
        return (terms.log_likelihood.sum(-1) - terms.local_kl).mean()

    draws = jax.vmap(one)(keys)
    assert float(draws.mean()) == pytest.approx(evidence, abs=5 * float(draws.std()) / np.sqrt(4000))


def test_the_temperature_falls_every_twenty_epochs_to_a_thousandth():
    epochs = jnp.array([0, 19, 20, 39, 1000, 10**6])
    expected = [1.0, 1.0, np.exp(-0.02), np.exp(-0.02), np.exp(-1.0), 0.001]
    np.testing.assert_allclose(Mixture.temperature(epochs), expected, rtol=1e-6)


# --- the loop ---


@pytest.mark.parametrize(
    "name", ["mixture", *(pytest.param(name, marks=pytest.mark.more) for name in SMALL if name != "mixture")]
)
def test_training_raises_the_elbo_and_is_the_same_for_the_same_key(name):
    model, data = SMALL[name], few_data(200)
    runs = []
    for _ in range(2):
        state = start(model, FEW, data, 0, 1e-2)
        state, history = train(model, FEW, data, state, epochs=60, batch_size=64)
        runs.append((state, history))
    assert history.elbo.shape == (60,)
    assert history.log_likelihood.shape == (60, FEW.n_columns)
    assert history.elbo[-10:].mean() > history.elbo[:3].mean()
    for a, b in zip(jax.tree.leaves(runs[0][0].shared), jax.tree.leaves(runs[1][0].shared), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.more
@pytest.mark.parametrize("name", SMALL)
def test_runs_trained_together_agree_with_runs_alone(name):
    model = SMALL[name]
    tables = [few_data(50, seed=seed) for seed in (0, 1, 2)]
    states = [start(model, FEW, data, seed, 1e-3) for seed, data in enumerate(tables)]
    together = (
        jax.tree.map(lambda *parts: jnp.stack(parts), *tables),
        jax.tree.map(lambda *parts: jnp.stack(parts), *states),
    )
    _, history = train(model, FEW, *together, epochs=3, batch_size=25)
    assert history.elbo.shape == (3, 3)
    for i in range(3):
        _, alone = train(model, FEW, tables[i], states[i], epochs=3, batch_size=25)
        np.testing.assert_allclose(history.elbo[:, i], alone.elbo, rtol=1e-3)


@pytest.mark.more
def test_every_row_is_seen_once_an_epoch():
    """Rows' variables start equal: after an epoch of three batches all of them have moved."""
    model, data = Mixture(3), few_data(50)
    state = start(model, FEW, data, 0, 1e-3)
    after, _ = train(model, FEW, data, state, epochs=1, batch_size=20)
    assert (np.asarray(after.local["logits"]) != np.asarray(state.local["logits"])).any(-1).all()


@pytest.mark.parametrize(("n_rows", "n_padded"), [(50, 50), (50, 64), (7, 64)])
def test_steps_name_every_row_once_and_none_beyond_the_last(n_rows, n_padded):
    batches = Batches(n_rows, n_padded, 20)
    order = batches.order(np.array([0, 1], np.uint32), 0)[: batches.n_steps]
    named = order[order < n_padded]
    assert set(named.tolist()) == set(range(n_rows))
    assert order.shape == (batches.n_steps, 20)
    assert len(named) == (order.size if n_rows >= 20 else n_rows)
    assert (order != batches.order(np.array([0, 1], np.uint32), 1)[: batches.n_steps]).any()


def test_training_goes_back_from_a_loss_that_is_not_finite_halves_the_rate_and_names_the_columns():
    model, data = VAE(2, 8), few_data(50)
    state = start(model, FEW, data, 0, 1e30)
    with pytest.warns(EvenlyWarning, match=r"the loss stopped being finite .*columns \['a'.*halved the learning rate"):
        after, history = train(model, replace(FEW, names=tuple("abc")), data, state, epochs=3)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after.shared))
    assert np.isfinite(history.elbo).all()
    assert float(after.learning_rate) < 1e30


def test_a_loss_that_is_never_finite_ends_the_training_with_a_warning():
    model, data = VAE(2, 8), few_data(50)
    state = start(model, FEW, data, 0, 1e30)
    with pytest.warns(EvenlyWarning, match=r"training ended after \d+ of 5 epochs: lower the learning rate"):
        after, history = train(model, FEW, data, state, epochs=5)
    assert len(history.elbo) < 5
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after.shared))


def test_an_interrupt_keeps_the_state_reached_so_far():
    # A process started in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model, data = VAE(2, 8), few_data(50)
    state = start(model, FEW, data, 0, 1e-3)
    seen = []

    def callback(epoch, info):
        seen.append(float(info.elbo))
        if epoch == 4:
            timer = threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            timer.join()

    try:
        with pytest.warns(EvenlyWarning, match="interrupted: training ended after .* of 1000 epochs"):
            after, history = train(model, FEW, data, state, epochs=1000, on_epoch=callback)
    finally:
        signal.signal(signal.SIGINT, before)
    assert history.interrupted
    assert 5 <= len(history.elbo) <= 10
    assert int(after.epoch) == len(history.elbo) == len(seen)


def test_a_callback_may_end_it():
    model, data = VAE(2, 8), few_data(50)
    state = start(model, FEW, data, 0, 1e-3)
    assert len(train(model, FEW, data, state, epochs=50, on_epoch=lambda epoch, info: epoch == 6)[1].elbo) == 7


@pytest.mark.more
def test_column_gradients_are_those_of_the_columns(double):
    model, data = VAE(2, 8), few_data(30, "float64")
    state = start(model, FEW, data, 0, 1e-3)
    rows = jnp.arange(30)
    norms = column_gradients(model, wire(FEW), data, state, rows)
    norms_again, changes = gradient_changes(model, wire(FEW), data, state, rows)
    np.testing.assert_allclose(norms_again, norms, rtol=1e-12)
    later = jax.jit(partial(step, model, wire(FEW)))(data, state, rows)[0].shared
    key = jax.random.wrap_key_data(state.key)
    for j in (1, 2):  # a column of two features, and one of one: each costs a compilation

        def column(shared, j=j):
            return model.terms(shared, {}, key, wire(FEW), data, state.epoch).log_likelihood[:, j].mean()

        gradient = jax.jit(jax.grad(column))
        flat, after = (jax.flatten_util.ravel_pytree(gradient(shared))[0] for shared in (state.shared, later))
        assert float(norms[j]) == pytest.approx(float(jnp.linalg.norm(flat)), rel=1e-9)
        assert float(changes[j]) == pytest.approx(float(jnp.linalg.norm(after - flat)), rel=1e-6)


@pytest.mark.more
def test_gradients_are_traced_at_evenly_spaced_points_and_the_training_stays_the_same():
    model, data = VAE(2, 8), few_data()
    plain, history, nothing, *_ = fit_model(model, FEW, data, 3, Plan(1e-3, 7))
    shared, again, trace, *_ = fit_model(model, FEW, data, 3, Plan(1e-3, 7, trace_points=3))
    assert trace.epochs.tolist() == [0, 2, 5, 7]
    assert trace.gradients.shape == trace.changes.shape == (4, FEW.n_columns)
    assert nothing.epochs.size == 0
    _, _, at_first, *_ = fit_model(model, FEW, data, 3, Plan(1e-3, 1, trace_points=0))
    assert at_first.epochs.tolist() == [0]
    np.testing.assert_allclose(at_first.gradients, trace.gradients[:1], rtol=1e-5)
    np.testing.assert_array_equal(history.elbo, again.elbo)
    jax.tree.map(np.testing.assert_array_equal, plain, shared)


# --- learning what a model generated ---


def mean_log_likelihood(layout, raw, data):
    found = wire(layout).log_likelihood(jnp.asarray(raw), data.targets, data.mask)
    return float(found.sum() / data.mask.sum())


def generated(name: str) -> tuple[Layout, Data, np.ndarray]:
    """A table drawn from a model of the kind, with the raw parameters that it was drawn from."""
    rng = np.random.default_rng(0)
    n = 3000
    if name == "mixture":
        likelihoods = (NORMAL,) * 4 + (POISSON,) * 2
        member = rng.integers(0, 3, n)
        usual = np.stack([rng.normal(0.0, 3.0, (3, 4)), np.full((3, 4), 0.5)], -1)
        rates = rng.uniform(1.0, 20.0, (3, 2, 1))
        naturals = [*np.moveaxis(NORMAL.to_natural(usual), 1, 0), *np.moveaxis(POISSON.to_natural(rates), 1, 0)]
        naturals = [one[member] for one in naturals]
    elif name == "factorization":
        likelihoods = (NORMAL,) * 8
        product = rng.normal(size=(n, 2)) @ rng.normal(0.0, 1.5, (2, 8))
        naturals = list(np.moveaxis(np.stack([product, np.full((n, 8), -0.5)], -1), 1, 0))
    else:
        likelihoods = (NORMAL,) * 6
        z = rng.normal(size=(n, 1))
        mean = np.concatenate([np.sin(2 * z), z**2, np.abs(z), z, np.cos(z), np.tanh(3 * z)], axis=1)
        naturals = list(np.moveaxis(NORMAL.to_natural(np.stack([mean, np.full((n, 6), 0.3)], -1)), 1, 0))
    columns = tuple(range(len(likelihoods)))
    layout = Layout(likelihoods, columns, columns)
    raw = layout.flat(naturals).astype(np.float32)
    drawn = [one.sample(rng, natural) for one, natural in zip(likelihoods, naturals, strict=True)]
    targets = np.column_stack(drawn).astype(np.float32)
    mask = rng.random(targets.shape) < 0.9
    inputs = np.where(mask, (targets - targets.mean(0)) / targets.std(0), 0.0)
    return layout, place(layout, inputs, targets, mask), raw


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "model", "epochs", "rate"),
    [
        ("mixture", Mixture(6), 120, 3e-2),
        ("factorization", Factorization(2), 120, 3e-2),
        ("vae", VAE(latent_size=2, hidden_size=64), 120, 2e-3),
        ("mixture", HIVAE(4, 6, 3), 120, 5e-3),
    ],
)
def test_the_fit_comes_within_a_twentieth_of_a_nat_of_the_generating_model(name, model, epochs, rate):
    layout, data, truth = generated(name)
    state = start(model, layout, data, 0, rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state, _ = train(model, layout, data, state, epochs=epochs, batch_size=256)
    fitted = model.predict({**state.shared, **state.fixed}, state.local, None, wire(layout), data)
    assert mean_log_likelihood(layout, fitted, data) > mean_log_likelihood(layout, truth, data) - 0.05


@pytest.mark.more
@pytest.mark.parametrize("name", ["mixture", "factorization"])
def test_new_rows_are_inferred_with_the_shared_parameters_fixed(name):
    """Inferring the training rows anew explains them about as well as training them did."""
    layout, data, _ = generated(name)
    model = {"mixture": Mixture(6), "factorization": Factorization(2)}[name]
    state = start(model, layout, data, 0, 3e-2)
    state, _ = train(model, layout, data, state, epochs=60, batch_size=256)
    local = jax.jit(model.infer_local)(state.shared, jax.random.key(1), wire(layout), data)
    trained, inferred = (
        mean_log_likelihood(layout, model.predict(state.shared, one, None, wire(layout), data), data)
        for one in (state.local, local)
    )
    assert inferred > trained - 0.05
