"""The measures of balance, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evenly.paper.measures import epochs_to, gradient_changes, improvements, progress, variation

RECORD = {
    "points": [0, 1, 4],
    # Three columns: nats of the observed cells at the start, after one epoch and after four.
    "history": [[-4.0, -10.0, 2.0], [-3.0, -9.0, 2.5], [-2.5, -5.0, 4.0]],
    "gradients": [[2.0, 10.0, 0.5], [1.0, 5.0, 0.5], [0.5, 1.0, 0.1]],
    "gradient_changes": [[1.0, 1.0, 0.1], [0.5, 2.0, 0.1], [0.2, 1.0, 0.05]],
}


def test_equation_4_divides_each_gain_by_the_size_at_the_start() -> None:
    # (l_1 - l_0) / |l_0| and (l_4 - l_1) / |l_0|.
    by_hand = [[1.0 / 4.0, 1.0 / 10.0, 0.5 / 2.0], [0.5 / 4.0, 4.0 / 10.0, 1.5 / 2.0]]
    np.testing.assert_allclose(improvements(RECORD), by_hand, rtol=1e-14)
    spread = np.std([0.25, 0.1, 0.25]) / 0.2
    assert variation(improvements(RECORD))[0] == pytest.approx(spread, rel=1e-12)


def test_equation_5_divides_the_change_of_the_gradient_by_the_first() -> None:
    by_hand = [[0.5, 0.1, 0.2], [0.25, 0.2, 0.2], [0.1, 0.1, 0.1]]
    np.testing.assert_allclose(gradient_changes(RECORD), by_hand, rtol=1e-14)


def test_half_of_a_gain_is_made_at_an_epoch_between_two_points() -> None:
    # Gains of 1.5, 5 and 2: after one epoch 2/3, 1/5 and 1/4 are made.
    np.testing.assert_allclose(progress(RECORD)[1], [2 / 3, 1 / 5, 1 / 4], rtol=1e-12)
    low, high = np.log(2.0), np.log(5.0)  # of 1 + epoch
    first = np.exp(low * 0.5 / (2 / 3)) - 1.0
    second = np.exp(low + (high - low) * (0.5 - 0.2) / 0.8) - 1.0
    third = np.exp(low + (high - low) * (0.5 - 0.25) / 0.75) - 1.0
    np.testing.assert_allclose(epochs_to(RECORD, 0.5), [first, second, third], rtol=1e-12)
    assert (epochs_to(RECORD, 0.9) > epochs_to(RECORD, 0.5)).all()


def test_a_column_that_overshoots_counts_when_it_first_gets_there() -> None:
    record = {"points": [0, 1, 2, 4], "history": [[0.0], [3.0], [1.0], [2.0]]}
    assert epochs_to(record, 1.0) == pytest.approx([np.exp(np.log(2.0) * 2 / 3) - 1.0])


def test_a_column_without_gain_has_no_such_epoch() -> None:
    record = {"points": [0, 1], "history": [[0.0, 1.0, None], [-1.0, 1.0, 2.0]]}
    assert np.isnan(epochs_to(record, 0.5)).all()
