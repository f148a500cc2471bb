"""Whether the order of numbers means anything is found by how smoothly other columns go along them."""

from __future__ import annotations

import numpy as np
import pytest

from evenly.tables import open_table
from evenly.tables.order_evidence import MOST_ROWS, MOST_TARGETS, Companions, measure_smoothness

RNG = np.random.default_rng(3)


def codes_of(n_levels: int, n: int = 900) -> np.ndarray:
    return np.concatenate([np.arange(n_levels), RNG.integers(0, n_levels, n)])


@pytest.mark.parametrize("shape", [lambda x: x, lambda x: x**2, lambda x: (x - 3.0) ** 2, lambda x: np.tanh(x - 4.0)])
def test_any_smooth_shape_is_an_order(shape):
    levels = codes_of(9)
    target = shape(levels.astype(float))
    found = measure_smoothness(levels, (target / target.std() + RNG.normal(size=len(levels)))[:, None])
    assert found.verdict == "ordered"


def test_the_share_is_that_of_the_true_means():
    """With hardly any noise: one minus the mean squared difference of neighbours over that of all pairs."""
    levels = codes_of(7, 7000)
    means = np.array([0.3, -1.0, 0.8, 0.1, -0.5, 1.2, -0.7])
    found = measure_smoothness(levels, (means[levels] + 0.05 * RNG.normal(size=len(levels)))[:, None])
    pairs = np.subtract.outer(means, means)[np.triu_indices(7, 1)] ** 2
    expected = 1.0 - (np.diff(means) ** 2).mean() / pairs.mean()
    assert found.share == pytest.approx(expected, abs=0.1)  # 400 of the 2,520 orders are drawn


def test_codes_in_random_order_are_hardly_ever_called_ordered_and_mostly_unordered():
    verdicts = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        levels = np.concatenate([np.arange(6), rng.integers(0, 6, 600)])
        targets = rng.normal(size=(4, 6))[:, levels].T + rng.normal(size=(len(levels), 4))
        verdicts.append(measure_smoothness(levels, targets).verdict)
    assert verdicts.count("ordered") <= 6
    assert verdicts.count("unordered") >= 30


def test_what_differs_by_chance_only_says_nothing():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        levels = np.concatenate([np.arange(5), rng.integers(0, 5, 300)])
        assert measure_smoothness(levels, rng.normal(size=(len(levels), 3))).verdict == "unclear"


@pytest.mark.parametrize(
    ("levels", "targets"),
    [
        ([0], [[1.0]]),
        ([0] * 30, np.ones((30, 1))),
        ([-1] * 30, np.ones((30, 1))),
        ([0, 1, 2] * 10, np.full((30, 1), np.nan)),
        ([0, 1, 2] * 10, np.zeros((30, 1))),
        ([0, 1, 2, 3] * 10, np.where(np.arange(40) % 4 < 2, np.nan, 1.0)[:, None]),
    ],
    ids=["one row", "one level", "all missing", "no target", "constant target", "half a target"],
)
def test_nothing_to_tell(levels, targets):
    found = measure_smoothness(np.array(levels), np.array(targets))
    assert found is None or found.verdict == "unclear"


def test_a_level_that_decides_a_target_exactly_is_no_division_by_zero():
    levels = codes_of(6)
    exact = np.array([3.0, 0.0, 5.0, 1.0, 4.0, 2.0])[levels]
    assert np.isfinite(measure_smoothness(levels, exact[:, None]).share)


def test_the_work_is_bounded_whatever_the_size_of_the_table(monkeypatch):
    """A few thousand rows of a few columns are looked at, once a question."""
    looked = []

    def watch(levels, targets):
        looked.append(targets.shape)
        return measure_smoothness(levels, targets)

    monkeypatch.setattr("evenly.tables.order_evidence.measure_smoothness", watch)
    table = RNG.normal(size=(40_000, 60)).round(2)
    table[:, :3] = RNG.integers(1, 6, (40_000, 3))
    columns = open_table(table).columns
    for column in columns[:3]:
        column.companions.smoothness(column.name, column.numbers)
        column.companions.smoothness(column.name, column.numbers)
    assert len(looked) == 3
    assert max(looked) <= (MOST_ROWS, MOST_TARGETS + 1)


def test_nobody_looks_at_other_columns_where_a_column_decides_by_itself(monkeypatch):
    from evenly import infer_schema

    monkeypatch.setattr(Companions, "smoothness", lambda *_: pytest.fail("looked"))
    n = 300
    infer_schema(open_table(np.column_stack([RNG.normal(size=n), RNG.integers(0, 2, n), np.arange(n)])))


def test_the_columns_of_a_table_know_each_other():
    columns = open_table([[1.0, 2.0], [3.0, 4.0]]).columns
    assert columns[0].companions is columns[1].companions
    assert columns[0].fresh().companions is columns[0].companions
