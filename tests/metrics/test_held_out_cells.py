"""Which cells are hidden: how many, which never, and the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from evenly.metrics import count_held, hide_by_rank, hide_keeping_two, hide_share, hold_out
from evenly.metrics.held_out_cells import FEWEST, MOST, draw_by_rank, rank

RNG = np.random.default_rng(7)
VALUES = np.where(RNG.random((300, 3)) < 0.3, np.nan, RNG.normal(size=(300, 3)))
CHOICES = {
    "hold_out": lambda rng: hold_out(~np.isnan(VALUES), rng),
    "hide_share": lambda rng: hide_share(~np.isnan(VALUES), 0.2, rng),
    "hide_keeping_two": lambda rng: np.column_stack([hide_keeping_two(one, 0.2, rng) for one in VALUES.T]),
    "hide_by_rank": lambda rng: hide_by_rank(VALUES, 0.2, rng),
    "by another column": lambda rng: hide_by_rank(VALUES, 0.2, rng, driver=1),
}


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
def test_the_same_seed_hides_the_same_known_cells(choose):
    hidden = choose(np.random.default_rng(3))
    assert hidden.any()
    assert not hidden[np.isnan(VALUES)].any()
    np.testing.assert_array_equal(hidden, choose(np.random.default_rng(3)))
    assert (hidden != choose(np.random.default_rng(4))).any()


def test_every_column_is_scored_on_the_asked_share_of_its_known_cells():
    known = ~np.isnan(VALUES)
    assert hide_share(known, 0.2, RNG).sum(0).tolist() == [round(0.2 * n) for n in known.sum(0)]


def test_a_column_that_decides_about_the_others_stays_whole():
    assert not hide_by_rank(VALUES, 0.5, RNG, driver=1)[:, 1].any()


def test_few_cells_are_not_held_out_and_of_many_only_as_many_as_an_error_needs():
    known = np.ones((100_000, 2), bool)
    known[FEWEST - 1 :, 1] = False
    assert count_held(known).tolist() == [MOST, 0]


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.999])
@pytest.mark.parametrize(
    "values",
    [RNG.normal(size=50), np.repeat([0.0, 1.0], [49, 1]), np.array([1.0, 2.0]), np.array([1.0, 1.0, 2.0])],
    ids=["numbers", "one of another class", "two cells", "three cells"],
)
def test_held_out_cells_are_observed_ones_and_leave_two_values_visible(values, share):
    values = np.concatenate([values, [np.nan] * 5])
    hidden = hide_keeping_two(values, share, np.random.default_rng(0))
    observed = ~np.isnan(values)
    assert not hidden[~observed].any()
    assert len(np.unique(values[observed & ~hidden])) >= 2
    wanted = max(1, round(share * observed.sum()))
    assert hidden.sum() == min(wanted, observed.sum() - 2)


def test_missing_values_have_the_rank_in_the_middle():
    assert rank(np.array([3.0, np.nan, 1.0, 3.0, 9.0])).tolist() == [0.5, 0.5, 0.125, 0.5, 0.875]


@pytest.mark.parametrize(("share", "low"), [(0.2, 1 / 3), (0.9, 8 / 9)])
def test_the_probability_to_be_hidden_grows_with_the_rank(share, low):
    ranks = (np.arange(100) + 0.5) / 100
    rng = np.random.default_rng(0)
    hits = sum(np.bincount(draw_by_rank(ranks, share, rng), minlength=100) for _ in range(2000)) / 2000
    expected = share * (low + (2 - 2 * low) * ranks)
    assert np.abs(hits - expected).max() < 5 * np.sqrt(0.25 / 2000)


def test_a_large_share_leaves_every_column_cells_to_learn_from():
    observed = np.ones((10, 2), bool)
    assert (~hold_out(observed, np.random.default_rng(0), share=0.99)).sum(0).tolist() == [2, 2]


def test_a_share_of_every_columns_observed_cells_is_held_out():
    observed = np.random.default_rng(0).random((5000, 3)) < 0.7
    observed[:, 2] = False
    observed[:5, 2] = True
    held = hold_out(observed, np.random.default_rng(1))
    assert not (held & ~observed).any()
    np.testing.assert_allclose(held[:, :2].sum(0) / observed[:, :2].sum(0), 0.05, atol=1e-3)
    assert held[:, 2].sum() == 0  # too few to give any away
