"""Online standardization: scales reach the target, and no prediction moves when they do."""

from __future__ import annotations

import numpy as np
import pytest
from model_data import place

jax = pytest.importorskip("jax")

import jax.numpy as jnp

from evenly import Imputer, LipschitzScaler, Training, load_heart
from evenly.likelihoods import get_likelihood
from evenly.models.base import Plan
from evenly.models.bbvi import objective, start
from evenly.models.factorization import Factorization
from evenly.models.layout import Layout
from evenly.models.masked import Masked
from evenly.models.online import Online
from evenly.models.shared_output import Balancing
from evenly.models.vae import VAE
from evenly.models.wiring import wire

NAMES = ("normal", "gamma", "exponential", "inverse-gaussian", "bernoulli")
LAYOUT = Layout((*map(get_likelihood, NAMES), get_likelihood("categorical", 3)), (0, 1, 2, 3, 4, 5), (0, 1), (0, 1))
TARGET = 30.0


def table(n=64):
    rng = np.random.default_rng(0)
    columns = [rng.normal(0.5, 1.0, n), rng.gamma(2.0, 1.0, n), rng.exponential(1.0, n), rng.wald(1.0, 2.0, n)]
    targets = np.column_stack([*columns, rng.integers(0, 2, n), rng.integers(0, 3, n)]).astype(np.float32)
    return place(LAYOUT, targets[:, :2], targets, np.ones(targets.shape, bool))


DATA = table()
ROWS, VALID = np.arange(64, dtype=np.int32), np.ones(64, bool)


def begun(model):
    """Return a state in mid-training, with moments, and the gradient of the objective there."""
    state = start(model, LAYOUT, DATA, 0, 1e-3)
    rng = np.random.default_rng(1)
    some = jax.tree.map(lambda one: rng.gamma(1.0, size=one.shape).astype(one.dtype), state.shared)
    moments = state.shared_moments._replace(mu=some, nu=jax.tree.map(np.square, some))
    balancing = Balancing.start(Online(1.0), LAYOUT, np.float32, TARGET)
    return jax.tree.map(jnp.asarray, state._replace(shared_moments=moments, balancing=balancing))


def natural(model, state):
    shared = state.balancing.folded(model, state.shared)
    return model.predict_natural(LAYOUT, shared, DATA)


def weight_of(tree):
    """Return the weight of the heads."""
    return np.asarray(tree["mean"] if "mean" in tree and "decoder" not in tree else tree["decoder"]["3"]["weight"])


def measured(model, state):
    """Return the state after what a step does before it moves scales."""

    @jax.jit
    def measure(state):
        key = jax.random.wrap_key_data(state.key)
        at = (model, wire(LAYOUT), (state.shared, state.local), key, DATA, state, VALID)
        found = state.balancing.gradients(*at)
        return state._replace(balancing=found.balancing), found.to_variables[0]

    return measure(state)


def settled(model, state):
    return jax.jit(lambda state: state.balancing.settle(model, wire(LAYOUT), state))(state)


@pytest.mark.parametrize("model", [Factorization(2), pytest.param(VAE(2, 8), marks=pytest.mark.more)], ids=repr)
def test_an_update_moves_scales_and_no_prediction(model):
    state, before = measured(model, begun(model))
    after = settled(model, state)
    growth = np.asarray(after.balancing.multipliers)
    assert len(set(growth.round(3))) > 4
    for one, other in zip(natural(model, state), natural(model, after), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    # The gradient in the new parameters is the old one times the growth of the multipliers; so are the moments.
    old, new = (weight_of(one.shared_moments.mu) for one in (state, after))
    np.testing.assert_allclose(new, old * growth, rtol=1e-4)
    old, new = (weight_of(one.shared_moments.nu) for one in (state, after))
    np.testing.assert_allclose(new, old * growth**2, rtol=1e-4)
    if isinstance(model, VAE):  # the factors of a factorization have a prior, too
        old, new = weight_of(before), weight_of(measured(model, after)[1])
        for own in (places for _, places in LAYOUT.places):  # up to the column's weight, which went with the scale
            some = np.abs(old[:, own]) > 1e-7
            ratio = new[:, own][some] / (old * growth)[:, own][some]
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_scales_lead_to_the_target_at_the_models_own_parameters():
    model, wiring = VAE(2, 8), wire(LAYOUT)
    rule = Online(0.5)
    memory = rule.start_in(LAYOUT, np.float32)
    rng = np.random.default_rng(0)
    raw = jnp.asarray(
        LAYOUT.flat([np.asarray(natural) for natural in marginals()]) + 0.05 * rng.normal(size=(64, LAYOUT.n_raw))
    )
    cells = jnp.ones((64, LAYOUT.n_slots), bool) & wiring.used
    first = rule.observe(memory, wiring, raw, cells)
    move = jax.jit(lambda memory: rule.move({**memory, "step": jnp.int32(1)}, wiring, jnp.float32(TARGET))[0])
    memory = first
    for _ in range(60):
        memory = move(memory)
    found = np.asarray(rule.smoothness(memory, wiring))
    scalable = [LAYOUT.columns[f] for f, one in enumerate(LAYOUT.likelihoods) if one.scalable]
    np.testing.assert_allclose(found[scalable], TARGET, rtol=0.02)
    # Those of classes are what they were: the absolute Fisher matrix, averaged over the rows.
    shares = np.asarray(jax.nn.softmax(raw[:, LAYOUT.places[5][1]]))
    fisher = np.abs(shares[:, :, None] * np.eye(3) - shares[:, :, None] * shares[:, None]).sum((1, 2))
    assert found[5] == pytest.approx(fisher.mean(), rel=1e-4)
    assert model.rescale({"decoder": {"0": {"weight": jnp.ones(2)}}}, 2.0)["decoder"]["0"]["weight"].tolist() == [
        0.5,
        0.5,
    ]


def marginals():
    return [one.fit(LAYOUT.mean_statistics(DATA, f)[0]) for f, one in enumerate(LAYOUT.likelihoods)]


def test_the_objective_under_multipliers_is_that_of_the_folded_parameters():
    model = Factorization(2)
    state, _ = measured(model, begun(model))
    state = settled(model, state)
    _, terms = objective(
        model,
        wire(LAYOUT),
        (state.balancing.folded(model, state.shared), state.local),
        jax.random.wrap_key_data(state.key),
        DATA,
        state,
        VALID,
    )
    key = jax.random.wrap_key_data(state.key)
    at = (model, wire(LAYOUT), (state.shared, state.local), key, DATA, state, VALID)
    np.testing.assert_allclose(
        state.balancing.gradients(*at).terms.log_likelihood, terms.log_likelihood, rtol=1e-3, atol=1e-4
    )


@pytest.mark.more
def test_a_table_without_classes_is_trained():
    layout = Layout(LAYOUT.likelihoods[:2], (0, 1), (0, 1), (0, 1))
    columns = np.column_stack([LAYOUT.target(DATA, f) for f in range(2)])
    data = place(layout, columns, columns, np.ones(columns.shape, bool))
    found = Factorization(2).fit(layout, data, 0, Plan(1e-3, 3, 16, rule=Online(), target=TARGET))
    assert np.isfinite(found.history.elbo).all()
    assert found.log_scales.all()


@pytest.mark.more
def test_a_model_without_heads_to_rescale_is_weighed():
    model = Masked(8, 1, 4)
    found = model.fit(LAYOUT, DATA, 0, Plan(1e-3, 12, 16, rule=Online()))
    assert found.log_scales is not None
    assert not found.log_scales.any()


@pytest.mark.more
def test_it_ends_in_a_fitted_scaler_that_is_saved(tmp_path):
    table = load_heart()
    imputer = Imputer("vae", "lip-none", balance="online", training=Training(epochs=12), random_state=0).fit(table)
    scaler = imputer.online_scaler_
    outcomes = scaler.summary_.set_index("feature")["outcome"]
    assert outcomes["st_depression"] == "learned"
    assert outcomes["sex"] == "passed_through"
    start, end = (one.summary_.set_index("feature")["scale"] for one in (imputer.scaler_, scaler))
    moved = [name for name in start.index if outcomes[name] == "learned"]
    assert (np.abs(np.log(end[moved] / start[moved])) > 0.05).any()
    static = LipschitzScaler("lip-none", random_state=0).fit(table)
    found, expected = (one.unscale(one.natural_) for one in (scaler, static))
    for name, usual in expected.items():
        for parameter, value in usual.items():
            np.testing.assert_allclose(found[name][parameter], value, rtol=1e-6)
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.online_scaler_.summary_.equals(scaler.summary_)
