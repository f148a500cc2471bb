"""Log-likelihoods in compiled programs: classes in blocks, and the gradient that is written by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import BERNOULLI, UNIT_NORMAL, get_likelihood
from evenly.models.layout import Layout
from evenly.models.wiring import wire

CLASSES = (3, 9, 4)
LAYOUT = Layout((UNIT_NORMAL, BERNOULLI, *(get_likelihood("categorical", k) for k in CLASSES)), (0, 1, 2, 3, 4))


def test_classes_and_their_gradient_are_those_of_a_plain_softmax_however_far_apart_columns_are():
    rng = np.random.default_rng(0)
    for layout in (LAYOUT, LAYOUT.in_class(100, in_bins=True)):
        wiring, n = wire(layout), 20
        raw = rng.normal(size=(n, layout.n_raw)).astype(np.float32)
        raw[:, layout.places[3][1]] += 500.0  # one column's classes are likelier than another's by far: no matter
        raw[:5, layout.places[4][1][1]] -= 300.0
        data = layout.empty(n, "float32", with_inputs=False)
        data.mask[:, :5] = rng.random((n, 5)) < 0.8
        for f, k in enumerate(CLASSES, 2):
            data.targets[:, layout.places[f][0]] = rng.integers(0, k, n)
        weights = rng.random((n, layout.sizes.columns)).astype(np.float32)

        def plain(raw: jax.Array, layout: Layout = layout, data: object = data, weights: object = weights) -> jax.Array:
            total = jnp.zeros(())
            for f in range(2, 5):
                logs = jax.nn.log_softmax(raw[:, layout.places[f][1]])
                codes = data.targets[:, layout.places[f][0]].astype(int)
                total += jnp.where(data.mask[:, f], weights[:, f] * logs[np.arange(len(codes)), codes], 0.0).sum()
            return total

        def ours(raw: jax.Array, wiring: object = wiring, data: object = data, weights: object = weights) -> jax.Array:
            seen = wiring.log_likelihood(raw, data.targets, data.mask)
            return (weights * seen)[:, 2:].sum()

        (expected, slope), (found, gradient) = (jax.jit(jax.value_and_grad(one))(raw) for one in (plain, ours))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(gradient, slope, atol=2e-6)


def test_gradients_of_numbers_and_binaries_are_put_where_their_parameters_are():
    """Against the closed forms: the error of the mean, and that of the probability."""
    layout = LAYOUT.in_class(100, in_bins=True)
    wiring, raw = wire(layout), np.random.default_rng(1).normal(size=(4, layout.n_raw)).astype(np.float32)
    data = layout.empty(4, "float32", with_inputs=False)
    data.mask[:, :2] = True
    data.targets[:, layout.places[0][0]] = [0.5, -1.0, 2.0, 0.0]
    data.targets[:, layout.places[1][0]] = [0.0, 1.0, 1.0, 0.0]
    found = jax.jit(jax.grad(lambda one: wiring.log_likelihood(one, data.targets, data.mask).sum()))(raw)
    normal, yes = (layout.places[f][1][0] for f in range(2))
    np.testing.assert_allclose(found[:, normal], data.targets[:, layout.places[0][0]] - raw[:, normal], rtol=1e-5)
    chance = 1.0 / (1.0 + np.exp(-raw[:, yes]))
    np.testing.assert_allclose(found[:, yes], data.targets[:, layout.places[1][0]] - chance, rtol=1e-5, atol=1e-6)
    rest = np.delete(np.asarray(found), [normal, yes], axis=1)
    assert not rest.any()
