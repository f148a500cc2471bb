"""HI-VAE: its decoder, its normalization and its prior, against the published model computed by hand."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imputers import mixed_table
from model_data import place
from scipy import stats

from evenly import EvenlyWarning, Imputer, Training
from evenly.imputation.settings import resolve
from evenly.likelihoods.continuous import GAMMA, NORMAL
from evenly.likelihoods.discrete import BERNOULLI, POISSON, Categorical
from evenly.models.balancing import RULES
from evenly.models.base import Plan
from evenly.models.bbvi import start
from evenly.models.hivae import HIVAE
from evenly.models.layout import Layout, pad_rows
from evenly.models.loop import train
from evenly.models.wiring import wire

LAYOUT = Layout(
    (Categorical(6), NORMAL, POISSON, GAMMA, BERNOULLI, NORMAL),
    (0, 1, 2, 3, 4, 5),
    (0, 0, 1, 2, 3, 4, 5),
    (2, 3, 4, 6),
)
MODEL = HIVAE(2, 3, 4)


def table(layout=LAYOUT, n=40, dtype="float64"):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 6, n), rng.normal(50.0, 2.0, n), rng.poisson(3.0, n), rng.gamma(2.0, size=n)]
    targets = np.column_stack([*columns, rng.integers(0, 2, n), rng.normal(-1.0, 0.1, n)]).astype(dtype)
    mask = rng.random(targets.shape) < 0.8
    inputs = np.column_stack([targets[:, 0] == 1, targets[:, 0] == 2, targets[:, 1:]])
    return place(layout, np.where(mask[:, [0, 0, 1, 2, 3, 4, 5]], inputs, 0.0), targets, mask)


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def moved(model, layout=LAYOUT, data=None):
    """Return shared parameters away from their start, those that padding does not use included."""
    state = start(model, layout, table(layout) if data is None else data, 0, 1e-3)
    rng = np.random.default_rng(1)
    return {**jax.tree.map(lambda one: one + 0.3 * rng.normal(size=one.shape), state.shared), **state.fixed}


def softplus(x):
    return np.logaddexp(0.0, x)


@pytest.mark.more
def test_predictions_are_the_published_decoders(double):
    """The layer y of z, cut into a piece for each column; heads without bias; outputs in the table's units."""
    data, wiring, shared = table(), wire(LAYOUT), moved(MODEL)
    found = MODEL.predict_natural(LAYOUT, shared, data)
    x = np.array(data.inputs)
    seen = data.mask[:, [0, 0, 1, 2, 3, 4, 5]]
    for i in LAYOUT.numbers:
        own = x[seen[:, i], i]
        x[:, i] = np.where(seen[:, i], (x[:, i] - own.mean()) / own.std(), 0.0)
    s = np.eye(3)[(x @ shared["cluster"]["weight"] + shared["cluster"]["bias"]).argmax(1)]
    z = np.hstack([x, s]) @ shared["mean"]["weight"] + shared["mean"]["bias"]
    y = [z @ w + b for w, b in zip(shared["pieces"]["weight"], shared["pieces"]["bias"], strict=True)]
    of_piece, of_cluster = shared["heads"]["of_piece"], shared["heads"]["of_cluster"]

    def raw(f, i, *, by_piece=True):
        at = LAYOUT.places[f][1][i]
        return s @ of_cluster[:, at] + (y[LAYOUT.columns[f]] @ of_piece[:, at] if by_piece else 0.0)

    logits = np.column_stack([0.0 * s[:, 0], *(raw(0, i) for i in range(1, 6))])
    np.testing.assert_allclose(found[0], logits, rtol=1e-6, atol=1e-9)
    for f in (1, 5):
        cells = LAYOUT.target(data, f)[data.mask[:, LAYOUT.columns[f]]]
        mean, std = NORMAL.to_usual(found[f]).T
        np.testing.assert_allclose(mean, cells.mean() + cells.std() * raw(f, 0), rtol=1e-6)
        variance = np.clip(softplus(raw(f, 1, by_piece=False)), 1e-3, 1.0)
        np.testing.assert_allclose(std, cells.std() * np.sqrt(variance), rtol=1e-6)
    np.testing.assert_allclose(np.exp(found[2][:, 0]), softplus(raw(2, 0)), rtol=1e-5)
    np.testing.assert_allclose(found[3][:, 1], -softplus(raw(3, 1, by_piece=False)), rtol=1e-5)
    np.testing.assert_allclose(found[4][:, 0], raw(4, 0), rtol=1e-6, atol=1e-9)
    assert wiring.raw_owners.tolist() == [4, 3, 3, 1, 1, 5, 5, 2, *[0] * 8]


@pytest.mark.more
def test_the_divergence_of_the_latents_is_that_of_their_priors(double):
    """KL of q(s | x) from the uniform one and of q(z | x, s) from the prior that s chooses, by SciPy and by drawing."""
    data, shared = table(n=6), moved(MODEL)
    wiring, late = wire(LAYOUT), jnp.asarray(10_000)
    keys = jax.random.split(jax.random.key(0), 4000)
    share = jax.jit(lambda key: MODEL.share(shared, {}, key, wiring, data, late))
    found = jax.vmap(share)(keys)
    z, s = np.split(np.asarray(found.output), [2], -1)
    q = s.mean(0)
    prior = stats.norm(s @ shared["prior"]["weight"] + shared["prior"]["bias"], 1.0).logpdf(z).sum(-1)
    entropy_s = -(q * np.log(q)).sum(-1)
    # -E[log p(z | s)] - H(q(z | x, s)): the entropy of each class's normal, from its draws.
    kl = np.log(3.0) - entropy_s
    for row in range(6):
        for c in range(3):
            own = s[:, row].argmax(-1) == c
            if own.sum() > 500:
                log_q = stats.norm(z[own, row].mean(0), z[own, row].std(0)).logpdf(z[own, row]).sum(-1)
                kl[row] += own.mean() * (log_q - prior[own, row]).mean()
            else:
                kl[row] = np.nan
    fine = np.isfinite(kl)
    assert fine.sum() >= 2
    np.testing.assert_allclose(np.asarray(found.local_kl).mean(0)[fine], kl[fine], rtol=0.03, atol=0.03)


def test_the_temperature_falls_by_a_hundredth_an_epoch():
    epochs = jnp.array([0, 1, 50, 100, 1000])
    np.testing.assert_allclose(MODEL.temperature(epochs), [1.0, 0.99, 0.5, 1e-3, 1e-3], rtol=1e-5)


@pytest.mark.more
def test_what_a_table_is_padded_with_does_not_matter(double):
    found = []
    for layout, n_rows in ((LAYOUT, 40), (LAYOUT.in_class(40), 64)):
        data = table(layout)
        state = start(MODEL, layout, data, 3, 1e-2, n_rows=n_rows)
        state, history = train(MODEL, layout, pad_rows(data, n_rows, layout), state, epochs=4, batch_size=16)
        shared = {**state.shared, **state.fixed}
        found.append((history.elbo, [MODEL.predict_natural(layout, shared, data, draw) for draw in (None, (1, 2))]))
    (one, natural), (other, again) = found
    np.testing.assert_allclose(other, one, rtol=1e-9)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7), natural, again)


@pytest.mark.more
def test_the_scale_of_a_feature_does_not_matter_to_its_own_normalization(double):
    """A column in other units is learned in the same way: its ELBO differs by the log of the unit."""
    histories = []
    for unit in (1.0, 0.01):
        data = table()
        data.targets[:, LAYOUT.places[1][0]] *= unit
        found = MODEL.fit(LAYOUT, data, 0, Plan(1e-2, 3, 64))
        histories.append(found.history.log_likelihood[:, 1] + np.log(unit) * data.mask[:, 1].mean())
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9)


@pytest.mark.more
def test_a_cell_that_is_infinite_and_a_column_of_one_cell_leave_the_others_finite():
    data = table(dtype="float32")
    data.mask[1:, 5] = False
    data.targets[2, LAYOUT.places[1][0]] = np.inf
    state = start(MODEL, LAYOUT, data, 0, 1e-3)
    data.targets[2, LAYOUT.places[1][0]] = 50.0
    naturals = MODEL.predict_natural(LAYOUT, {**state.shared, **state.fixed}, data)
    assert all(np.isfinite(one).all() for one in naturals)


FOUR = Layout((NORMAL, NORMAL, BERNOULLI, NORMAL), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 3))


@pytest.mark.more
@pytest.mark.parametrize("name", RULES)
def test_every_rule_goes_on_beside_an_infinite_cell_a_column_of_one_cell_and_a_constant_one(name):
    rng = np.random.default_rng(0)
    targets = np.column_stack([*rng.normal(size=(2, 16)), np.ones(16), rng.normal(size=16)]).astype(np.float32)
    mask = np.ones(targets.shape, bool)
    mask[1:, 1] = False
    data = place(FOUR, np.where(mask, targets, 0.0), targets, mask)
    data.targets[3, FOUR.places[0][0]] = np.inf
    with pytest.warns(EvenlyWarning, match=f"balance='{name}'.* left out of steps: '0' of [0-9]; the others went on"):
        found = HIVAE(2, 2, 2).fit(FOUR, data, 0, Plan(1e-2, 3, 8, rule=RULES[name]()))
    assert np.isfinite(found.history.elbo).all()
    assert all(np.isfinite(one).all() for one in jax.tree.leaves(found.shared))
    assert found.history.not_finite == 0  # the learning rate stays


@pytest.mark.parametrize(
    ("method", "normalizes"), [("auto", True), ("max-none", True), ("lip-none", False), ("lip-gamma", False)]
)
def test_scales_for_equal_smoothness_are_kept_and_others_normalized(method, normalizes):
    training = Training(sizes={"latent_size": 2, "n_clusters": 3, "column_size": 4})
    sizes = resolve(Imputer("hivae", method, training=training)).model_sizes
    assert HIVAE.of_size(100, 6, sizes) == HIVAE(2, 3, 4, normalizes)


@pytest.mark.more
def test_it_learns_columns_that_go_together():
    truth = mixed_table(600)
    rng = np.random.default_rng(3)
    hidden = rng.random(len(truth)) < 0.2
    hidden &= truth["real"].notna().to_numpy() & truth["positive"].notna().to_numpy()
    table = truth.copy()
    table.loc[hidden, "real"] = np.nan
    training = Training(epochs=150, batch_size=64)
    filled = Imputer("hivae", training=training, random_state=0).fit(table).transform(table)
    error = np.sqrt(np.mean((filled["real"] - truth["real"])[hidden] ** 2))
    assert error < 0.7 * truth["real"][hidden].std()
