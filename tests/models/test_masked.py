"""The masked model: what it hides from itself, what its network sees, and how it learns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_data import LAYOUT, place, two_columns

from evenly.likelihoods.continuous import UNIT_NORMAL
from evenly.models import MODELS, PAPERS, bbvi, layers
from evenly.models.layout import Layout
from evenly.models.masked import Masked, _drop
from evenly.models.wiring import wire


def test_hidden_and_visible_cells_are_the_observed_ones_and_the_weight_makes_up_for_the_rest():
    observed = two_columns(20_000).mask
    visible, hidden, weight = layers.hide_cells(layers.draw_rows(jax.random.key(0), 20_000, 4), observed)
    assert bool((visible ^ hidden == observed).all())
    assert not bool((visible & hidden).any())
    assert float(weight * hidden.sum() / observed.sum()) == pytest.approx(1.0, abs=0.02)
    shares = np.asarray(hidden.sum(1) / np.maximum(observed.sum(1), 1))
    assert 0.005 < (shares == 1.0).mean() < 0.1  # now and then nothing of a row is visible


def test_a_rows_random_numbers_depend_on_nothing_but_the_key_the_row_and_their_place():
    key = jax.random.key(3)
    drawn = np.asarray(layers.draw_rows(key, 300, 40))
    np.testing.assert_array_equal(layers.draw_rows(key, 500, 90)[:300, :40], drawn)
    np.testing.assert_array_equal(jax.jit(layers.draw_rows, static_argnums=(1, 2))(key, 300, 40), drawn)


def test_random_numbers_are_uniform_and_unrelated_between_rows_places_and_steps():
    """Each bit is set in half of the numbers, and agrees with any other one in half of them, to 5 standard errors."""
    keys = [jax.random.wrap_key_data(np.array([7, step], np.uint32)) for step in range(2)]  # as steps count
    drawn, later = (np.asarray(layers.draw_rows(key, 256, 257)) for key in keys)
    assert len(np.unique(drawn)) > drawn.size - 5  # as many as differ among so many random ones, about half a pair
    for one, other in (
        (drawn, np.zeros_like(drawn)),
        (drawn[1:], drawn[:-1]),
        (drawn[:, 1:], drawn[:, :-1]),
        (drawn, later),
        (drawn, drawn << 1 | drawn >> 31),
    ):
        bits = np.unpackbits((one ^ other).view(np.uint8).reshape(-1, 4), axis=1)
        assert np.abs(bits.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(bits))
    uniform = drawn.ravel() / 2.0**32
    shares = np.histogram2d(uniform[:-1], uniform[1:], bins=16, range=[(0, 1)] * 2)[0]
    expected = (drawn.size - 1) / 256
    assert ((shares - expected) ** 2 / expected).sum() < 255 + 5 * np.sqrt(2 * 255)  # chi-squared of pairs


def test_a_fifth_of_the_units_is_dropped_and_the_others_make_up_for_it():
    drawn = layers.draw_rows(jax.random.key(0), 500, 200)
    kept = np.asarray(_drop(drawn, jnp.ones((500, 200)), 20))
    assert (kept == 0.0).mean() == pytest.approx(0.2, abs=0.01)
    assert kept.mean() == pytest.approx(1.0, abs=0.01)
    assert len(np.unique(kept)) == 2


def test_an_infinite_number_is_clipped_and_leaves_other_columns_alone():
    model, data = Masked(8), two_columns(20)
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    far = data._replace(inputs=data.inputs.copy(), mask=np.ones_like(data.mask))
    far.inputs[:, 0] = np.inf
    clipped = far._replace(inputs=np.where(np.isinf(far.inputs), 1e9, far.inputs).astype(far.inputs.dtype))
    seen, expected = (np.asarray(model._encode(start.fixed, one.inputs, one.mask)) for one in (far, clipped))
    np.testing.assert_array_equal(seen, expected)


def test_held_out_cells_cannot_be_seen():
    """The predictions of a row do not change with a cell that the network is not shown."""
    model, data = Masked(8), two_columns(20)
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.random.default_rng(1).normal(size=shared["last"]["weight"].shape)
    dark = data._replace(mask=data.mask & [False, True])
    changed = dark._replace(inputs=dark.inputs + np.array([3.0, 0.0]))
    raw = [
        model.predict(shared, {}, None, wire(LAYOUT), one)
        for one in (dark, changed, data, data._replace(inputs=changed.inputs))
    ]
    np.testing.assert_array_equal(raw[0], raw[1])
    assert not np.allclose(raw[2][5:], raw[3][5:])


def test_a_cell_is_never_predicted_from_itself_in_training():
    """A column is scored where it is hidden: whatever its own cells are then, it is scored the same."""
    model, data = Masked(8), two_columns(50)
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.random.default_rng(1).normal(size=shared["last"]["weight"].shape)
    terms = jax.jit(lambda one: model.terms(shared, {}, jax.random.key(0), wire(LAYOUT), one, 0).log_likelihood)
    found = np.asarray(terms(data))
    for column in range(2):
        other = np.asarray(terms(data._replace(inputs=data.inputs + 3.0 * (np.arange(2) == column))))
        np.testing.assert_array_equal(other[:, column], found[:, column])
        assert (other[:, 1 - column] != found[:, 1 - column]).any()


def test_it_starts_from_each_columns_own_fit():
    model, data = Masked(8), two_columns()
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.zeros_like(shared["last"]["weight"])
    normal, bins, yes = model.predict_natural(LAYOUT, shared, data)
    seen, (x, codes, answer) = data.mask[:, 0], (LAYOUT.target(data, f) for f in range(3))
    assert float(normal[0, 0]) == pytest.approx(float(x[seen].mean()), abs=1e-6)
    counts = np.bincount(codes[seen].astype(int), minlength=4) + 0.5
    np.testing.assert_allclose(jax.nn.softmax(bins[0]), counts / counts.sum(), rtol=1e-5)
    assert float(jax.nn.sigmoid(yes[0, 0])) == pytest.approx(float(answer.mean()), abs=1e-6)


def test_the_first_layer_sees_a_number_by_its_places_between_quantiles():
    """Against a plain loop; few whole numbers need no more pieces than they have steps."""
    model, data = Masked(8, n_knots=4), two_columns(200)
    layout = Layout((UNIT_NORMAL,) * 2, (0, 1), (0, 1), (0, 1))
    x, steps = data.inputs[:, 0], np.random.default_rng(1).integers(0, 3, 200)
    data = place(layout, np.column_stack([x, steps]), np.zeros((200, 2), np.float32), np.ones((200, 2), bool))
    start = model.init(np.random.default_rng(0), layout, data)
    seen = np.asarray(model._encode(start.fixed, data.inputs, data.mask))
    knots = np.quantile(x, [0.0, 0.25, 0.5, 0.75, 1.0])
    for k in range(4):
        expected = np.clip((x - knots[k]) / (knots[k + 1] - knots[k]), 0.0, 1.0)
        np.testing.assert_allclose(seen[:, 1 + k], expected, atol=1e-5)
    np.testing.assert_allclose(seen[:, 0], x, atol=1e-6)
    np.testing.assert_array_equal(seen[:, 6:8], np.column_stack([steps > 0, steps > 1]))
    np.testing.assert_array_equal(seen[:, 8:10], 1.0)  # both columns are visible
    assert not seen[:, 10:].any()
    assert not np.asarray(model._encode(start.fixed, data.inputs, ~data.mask)).any()


def test_the_learning_rate_rises_and_falls():
    model = Masked()
    rates = [float(model.schedule(jnp.asarray(progress))) for progress in np.linspace(0.0, 1.0, 101)]
    top = int(np.argmax(rates))
    assert rates[0] == 0.0
    assert rates[top] == pytest.approx(1.0, abs=1e-3)
    assert (np.diff(rates[top:]) < 0.0).all()
    assert rates[-1] == pytest.approx(0.01, abs=1e-6)
    assert float(model.schedule(0.25)) == pytest.approx(rates[25], rel=1e-6)  # outside of a program, too
    assert [float(MODELS[name]().schedule(jnp.asarray(0.5))) for name in PAPERS] == [1.0] * 3


@pytest.mark.more
def test_weight_decay_touches_weights_only():
    data = two_columns(64)
    model = Masked(8)
    state = bbvi.start(model, LAYOUT, data, 0, 1e-2).of_steps(100.0)
    state = state._replace(shared_moments=state.shared_moments._replace(count=jnp.asarray(50)))
    zero = state._replace(weights=jnp.zeros(2))  # no gradient at all: what moves is the decay
    after, _ = jax.jit(bbvi.step, static_argnums=0)(model, wire(LAYOUT), data, zero, jnp.arange(64))
    rate = 1e-2 * float(model.schedule(jnp.asarray(0.5)))
    weight = state.shared["first"]["weight"]
    np.testing.assert_allclose(after.shared["first"]["weight"], weight * (1.0 - rate * model.weight_decay), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, after.fixed, state.fixed)
    np.testing.assert_array_equal(after.shared["last"]["bias"], state.shared["last"]["bias"])


def test_weights_multiply_the_gradients_of_columns():
    data, model = two_columns(64), MODELS["vae"](2, 8)
    state = bbvi.start(model, LAYOUT, data, 0, 1e-3)

    @jax.jit
    @jax.grad
    def gradients(shared: object, weights: jax.Array) -> jax.Array:
        weighed = state._replace(weights=weights)
        return bbvi.objective(model, wire(LAYOUT), (shared, {}), jax.random.key(1), data, weighed, jnp.ones(64, bool))[
            0
        ]

    def gradient(weights: list[float]) -> np.ndarray:
        found = gradients(state.shared, jnp.asarray(weights))
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])

    both, first, second, none = (gradient(w) for w in ([1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]))
    np.testing.assert_allclose(first + second - none, both, atol=1e-5)
    np.testing.assert_allclose(gradient([3.0, 1.0]), 3.0 * (first - none) + second, rtol=1e-3, atol=1e-4)
