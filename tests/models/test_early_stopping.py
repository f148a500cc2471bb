"""Training ends early when its score no longer rises, and the learning rate falls from the best point."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_data import LAYOUT, two_columns

from evenly.models import Plan, Watchers, bbvi, fitting
from evenly.models.masked import Masked


def test_a_training_that_ends_early_lets_the_learning_rate_fall_from_its_best_point():
    """The score is highest after 8 of 40 epochs, and falls from there."""
    data, model = two_columns(), Masked(16)
    asked = []

    def score(shared):
        asked.append(shared)
        return -abs(len(asked) - 5.0)

    shared, history, *_ = fitting.fit_model(model, LAYOUT, data, 0, Plan(1e-2, 40, 64), Watchers(score))
    # Scored before the first epoch and after every other one; four points after the best, and 4 epochs in the end.
    assert len(asked) == 5 + fitting.PATIENCE + 1
    assert len(history.elbo) == 2 * (4 + fitting.PATIENCE) + 4
    jax.tree.map(np.testing.assert_array_equal, shared, asked[4])

    state = bbvi.start(model, LAYOUT, data, 0, 1e-2).of_steps(100.0)
    state = state._replace(shared_moments=state.shared_moments._replace(count=jnp.asarray(30)))
    cooled = fitting._cool_down(model, state, 20.0)

    def rate(one: bbvi.State, later: int) -> float:
        return float(one.learning_rate * model.schedule((one.shared_moments.count + later) / one.n_steps))

    assert rate(cooled, 0) == pytest.approx(rate(state, 0), rel=1e-5)
    falling = [rate(cooled, later) for later in range(21)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 0.05 * falling[0]
