"""Gradient descent with momentum, step by step by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_data import LAYOUT, two_columns

from evenly.models.base import Plan
from evenly.models.bbvi import objective, start, step
from evenly.models.factorization import Factorization
from evenly.models.fitting import log_spaced
from evenly.models.wiring import wire

DATA = two_columns(16)
ROWS = np.arange(16, dtype=np.int32)


@pytest.mark.more
def test_two_steps_are_those_by_hand() -> None:
    model, wiring, rate = Factorization(2), wire(LAYOUT), 0.05
    state = start(model, LAYOUT, DATA, 0, rate).by_momentum()
    shared, local = state.shared, state.local
    velocity = jax.tree.map(np.zeros_like, (shared, local))
    for _ in range(2):
        key = jax.random.wrap_key_data(state.key)
        gradient, _ = jax.grad(objective, argnums=2, has_aux=True)(
            model, wiring, (shared, local), key, DATA, state, np.ones(16, bool)
        )
        velocity = jax.tree.map(lambda v, g: 0.9 * v + np.asarray(g), velocity, gradient)
        shared, local = jax.tree.map(lambda p, v: p - rate * v, (shared, local), velocity)
        state, _ = jax.jit(step, static_argnums=0)(model, wiring, jax.tree.map(jnp.asarray, DATA), state, ROWS)
    for name, one in state.shared.items():
        np.testing.assert_allclose(one, shared[name], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state.local["mean"], local["mean"], rtol=1e-4, atol=1e-6)


@pytest.mark.more
def test_a_plan_chooses_it() -> None:
    model = Factorization(2)
    adam, sgd = (model.fit(LAYOUT, DATA, 0, Plan(1e-2, 3, 8, optimizer=name)) for name in ("adam", "sgd"))
    assert np.isfinite(sgd.history.elbo).all()
    assert (sgd.shared["mean"] != adam.shared["mean"]).any()


def test_log_spaced_points_begin_at_0_and_end_at_the_end() -> None:
    assert log_spaced(3000).tolist() == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3000]
