"""Balancing rules: what each weighs by, and that hopeless columns neither stop it nor the others."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from evenly.models import online
from evenly.models.balancing import RULES, Signals, balance

assert online.Online.name in RULES  # importing it registers it

N = 5


def signals(step=0, *, losses=None, active=None, gradients=None):
    rng = np.random.default_rng(step)
    rows = rng.normal(size=(N, 12)) * np.array([1.0, 10.0, 0.1, 1.0, 3.0])[:, None] if gradients is None else gradients
    return Signals(
        np.asarray(np.linspace(1.0, 3.0, N) if losses is None else losses, np.float32),
        np.asarray(rows @ rows.T, np.float32),
        np.ones(N, bool) if active is None else np.asarray(active),
        np.array([step, 1], np.uint32),
        np.array([0.0, 1.0, 2.0, 100.0, 0.5], np.float32),
    )


def weights_of(name, *seen, **setting):
    """Return the weights after each of some steps."""
    rule = RULES[name](**setting)
    memory, found = rule.start(N, np.float32), []
    for one in seen:
        weights, memory = balance(rule, memory, one)
        found.append(np.asarray(weights))
    return found


@pytest.mark.parametrize("name", RULES)
def test_columns_without_hope_get_no_weight_and_the_others_go_on(name):
    usual = signals(0)
    lost = {
        "infinite": signals(1, losses=[1.0, np.inf, 2.0, 1.0, 1.0]),
        "undefined": signals(1, gradients=np.where(np.arange(N)[:, None] == 1, np.nan, np.eye(N))),
        "unseen": signals(1, active=[True, False, True, True, True]),
    }
    for one in lost.values():
        _, during, after = weights_of(name, usual, one, signals(2))
        assert np.isfinite(during).all()
        assert during[1] == 0.0
        assert np.abs(during[[0, 2, 3, 4]]).max() > 0.0
        assert np.isfinite(after).all()
        assert np.abs(after).min() >= 0.0


@pytest.mark.parametrize("name", RULES)
def test_a_column_alone_a_constant_one_and_copies_are_weighed(name):
    alone = signals(1, active=[True, False, False, False, False])
    assert weights_of(name, alone)[0].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.0], rel=1e-4)
    flat = np.eye(N) * np.array([1.0, 1.0, 0.0, 1.0, 1.0])[:, None]  # learned already: its gradient is 0
    copies = np.tile(np.ones(12) / 3.0, (N, 1))
    for one in (signals(1, gradients=flat), signals(1, gradients=copies)):
        assert all(np.isfinite(found).all() for found in weights_of(name, one, one, one))


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.reads_gradients])
def test_the_combined_gradient_is_as_long_as_the_sum(name):
    one = signals(3)
    found = weights_of(name, one)[0].astype(np.float64)
    gram = one.gram.astype(np.float64)
    assert found @ gram @ found == pytest.approx(gram.sum(), rel=1e-3)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.reads_gradients])
def test_weights_without_gradients_have_a_mean_of_one(name):
    for found in weights_of(name, *(signals(i, losses=np.linspace(-4.0, 3.0, N) / (1 + i)) for i in range(5))):
        assert found.mean() == pytest.approx(1.0, rel=1e-5)


def test_online_weighs_by_one_over_current_smoothness_within_a_factor_of_four():
    found = weights_of("online", signals())[0]  # the median of 1, 2, 100 and 0.5 is 1.5; nothing is known of the first
    np.testing.assert_allclose(found / found[0], [1.0, 1.5, 0.75, 0.25, 3.0], rtol=1e-5)


def test_none_weighs_all_alike():
    assert weights_of("none", signals())[0].tolist() == [1.0] * N


def test_uncertainty_weighs_by_the_inverse_of_the_shifted_loss():
    # The first losses are the least so far; afterwards each is larger by 0, 1, ..., 4: shifted, 1, 2, ..., 5.
    first, later = signals(losses=np.zeros(N)), signals(losses=np.arange(N))
    found = weights_of("uncertainty", first, *[later] * 400, rate=0.05)[-1]
    np.testing.assert_allclose(found / found[0], 1.0 / np.arange(1.0, N + 1.0), rtol=1e-3)


def test_priority_weighs_by_the_focal_loss_of_the_progress():
    first = signals(losses=np.full(N, 2.0))
    gained = np.array([0.0, 0.1, 0.5, 1.0, 3.0])
    found = weights_of("priority", first, *[signals(losses=2.0 - gained)] * 1500, focus=2.0)[-1]
    progress = np.clip(1.0 - np.exp(-gained), 1e-3, 1.0 - 1e-3)
    expected = -((1.0 - progress) ** 2) * np.log(progress)
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-3, atol=1e-6)


def test_famo_moves_weight_to_the_column_that_improves_slowest():
    start = 10.0 + np.arange(N)
    steps = [signals(losses=start - np.array([0.0, 0.5, 0.5, 0.5, 0.5]) * i) for i in range(10)]
    found = weights_of("famo", *steps, rate=0.5)
    now = 10.0 + np.arange(N) - steps[-1].losses  # not used for the shares: only to see that weights are shares / loss
    assert now.min() == 0.0
    assert found[-1].argmax() == 0
    assert found[-1][0] > found[1][0]


def test_gradnorm_makes_gradients_of_columns_that_learn_alike_equally_long():
    one = signals(4)
    found = weights_of("gradnorm", *[one] * 700, asymmetry=1.0)[-1]
    lengths = found * np.sqrt(np.diagonal(one.gram))
    np.testing.assert_allclose(lengths, lengths.mean(), rtol=0.05)


def test_the_same_key_draws_the_same_order():
    one, other = signals(5), signals(5)._replace(key=np.array([9, 9], np.uint32))
    first, again, apart = (weights_of("pcgrad", each)[0] for each in (one, one, other))
    np.testing.assert_array_equal(first, again)
    assert (first != apart).any()
