"""How long a table is trained, by its rows."""

from __future__ import annotations

import numpy as np

from evenly.models.budget import MASKED, PAPER, published_epochs


def test_epochs_follow_the_number_of_rows():
    assert [published_epochs(n) for n in (683, 4_600, 32_000)] == [3000, 2000, 400]
    assert [PAPER.epochs(n, 1024) for n in (1, 1024, 1025, 10_240, 10**7)] == [1000, 1000, 1000, 300, 20]


def test_a_masked_network_never_sees_a_larger_table_more_often_nor_more_than_six_million_rows():
    rows = np.arange(2_000, 700_000, 250)
    epochs = np.array([MASKED.epochs(int(n), 256) for n in rows])
    assert (np.diff(epochs) <= 0).all()
    assert (epochs * rows).max() == 6_000_000
