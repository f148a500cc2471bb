"""How long a table is trained, by its rows."""

from __future__ import annotations

import numpy as np

from evenly.models.budget import HIVAE, MASKED, PAPER, published_epochs


def test_epochs_follow_the_number_of_rows():
    assert [published_epochs(n) for n in (683, 4_600, 32_000)] == [3000, 2000, 400]
    assert [PAPER.epochs(n, 1024) for n in (1, 1024, 1025, 10_240, 10**7)] == [1000, 1000, 1000, 300, 20]


def test_hivae_is_trained_as_published_up_to_fifteen_thousand_steps():
    assert [HIVAE.epochs(n, 1000) for n in (500, 7_000, 7_001, 10**6, 10**8)] == [2000, 2000, 1875, 20, 20]
    assert HIVAE.epochs(10**8, 1000, streamed=True) == 1


def test_a_masked_network_never_sees_a_larger_table_more_often_nor_more_than_six_million_rows():
    rows = np.arange(2_000, 700_000, 250)
    epochs = np.array([MASKED.epochs(int(n), 256) for n in rows])
    assert (np.diff(epochs) <= 0).all()
    assert (epochs * rows).max() == 6_000_000
