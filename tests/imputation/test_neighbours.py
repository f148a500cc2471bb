"""Near-duplicates: rows that repeat another one are found, and used where validation cells are better for it."""

from __future__ import annotations

from operator import methodcaller

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer

from evenly import Column, Imputer
from evenly._support.files import read_tensors
from evenly.imputation import neighbours as expert
from evenly.imputation.calibration_choice import mix_neighbours
from evenly.imputation.columns import BinnedColumn, LikelihoodColumn
from evenly.imputation.neighbours import (
    BLOCK,
    FARTHEST,
    N_NEIGHBOURS,
    WEIGHTS,
    NeighbourIndex,
    NeighbourWeight,
    index_rows,
)
from evenly.imputation.predictor import Predictor
from evenly.models.masked import Masked
from evenly.predictive import BinnedPredictive
from evenly.predictive.bins import make_bins

RNG = np.random.default_rng


def repeated(n: int = 400, share: float = 0.4, seed: int = 0) -> pd.DataFrame:
    """Independent columns, so that only another row with the same cells helps to impute a missing one."""
    rng = RNG(seed)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.lognormal(2.0, 0.5, n).round(3),
            "c": rng.integers(0, 500, n),
            "d": rng.choice(list("uvwxyz"), n),
            "e": rng.normal(size=n),
            "f": rng.uniform(size=n),
            "g": rng.poisson(20.0, n),
        }
    )
    again = rng.choice(n, int(share * n))
    return pd.concat([table, table.iloc[again]], ignore_index=True).sample(frac=1.0, random_state=1, ignore_index=True)


def hide(table: pd.DataFrame, share: float = 0.1, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    hidden = RNG(seed).random(table.shape) < share
    return table.mask(hidden), hidden


def quick(**settings):
    return make_imputer(epochs=5, n_networks=1, hidden_size=16, random_state=0, **settings)


def as_columns(table: np.ndarray) -> list[np.ndarray]:
    return list(np.asarray(table, np.float64).T)


def test_the_nearest_rows_are_those_of_a_direct_search():
    rng = RNG(1)
    table = np.column_stack([rng.normal(size=(300, 4)), rng.integers(0, 3, (300, 2))])
    table[rng.random(table.shape) < 0.1] = np.nan
    index = index_rows(as_columns(table), [False] * 4 + [True] * 2, rng)
    rows = table[:40].copy()
    rows[:, :4] += 1e-3 * rng.normal(size=(40, 4))
    found = index.find(as_columns(rows))
    for i, row in enumerate(rows):
        gaps = []
        for other in table:
            both = ~np.isnan(row) & ~np.isnan(other)
            ranks = [np.interp([row[j], other[j]], index.grid[j], index.shares[j]) * np.sqrt(12.0) for j in range(4)]
            gap = [(ranks[j][0] - ranks[j][1]) ** 2 if j < 4 else float(row[j] != other[j]) for j in range(6)]
            # Rows that share too few cells to rule out chance are no near-duplicates, however well these agree.
            enough = index.surprise[both].sum() >= np.log(300)
            gaps.append(np.mean([g for g, b in zip(gap, both, strict=True) if b]) if enough else np.inf)
        assert found.distance[i, 0] == pytest.approx(min(gaps), abs=1e-12)
        np.testing.assert_array_equal(found.cells[i, 0], table[int(np.argmin(gaps))])


@pytest.mark.parametrize("jitter", [0.0, 1e-3, 3e-2])
def test_all_near_duplicates_are_found_and_they_are_the_nearest_rows(jitter):
    """Repeated exactly or nearly, with few classes or many, with missing cells in both rows, in either block."""
    rng = RNG(2)
    base = np.column_stack([rng.normal(size=(900, 5)), rng.integers(0, (2, 3, 5, 40), (900, 4))])
    table = base[rng.integers(0, 900, BLOCK + 900)]
    table[rng.random(table.shape) < 0.2] = np.nan
    classes = np.array([False] * 5 + [True] * 4)
    index = index_rows(as_columns(table), classes.tolist(), rng)
    rows = table[rng.integers(0, len(table), 150)]
    rows[:, :5] += jitter * rng.normal(size=(150, 5))
    found, ours, theirs = index.find(as_columns(rows)), np.empty_like(rows), np.empty_like(table)
    for j in range(9):
        for into, own in ((ours, rows[:, j]), (theirs, table[:, j])):
            ranks = np.where(np.isnan(own), np.nan, np.interp(own, index.grid[j], index.shares[j])) if j < 5 else own
            into[:, j] = np.sqrt(12.0) * ranks if j < 5 else ranks
    n_found = 0
    for i, row in enumerate(ours):
        both = ~np.isnan(row) & ~np.isnan(theirs)
        gap = np.where(both, np.where(classes, row != theirs, (row - np.nan_to_num(theirs)) ** 2), 0.0).sum(1)
        agreeing = (both * index.surprise).sum(1)
        distance = np.where(agreeing >= np.log(len(table)) - 1e-3, gap / np.maximum(both.sum(1), 1), np.inf)
        expected = np.sort(np.where(distance <= FARTHEST, distance, np.inf))[:N_NEIGHBOURS]
        np.testing.assert_allclose(found.distance[i], expected, atol=1e-12)
        n_found += np.isfinite(expected).sum()
    assert n_found > 150


@pytest.mark.more
def test_indexed_rows_are_prepared_once_and_saved_once(tmp_path, monkeypatch):
    table = RNG(0).normal(size=(300, 3))
    index, prepared = index_rows(as_columns(table), [False] * 3, RNG(0)), []
    before = expert._factors
    monkeypatch.setattr(
        expert, "_factors", lambda classes, placed: prepared.append(len(placed)) or before(classes, placed)
    )
    index.find(as_columns(table[:2]))
    index.find(as_columns(table[:1]))
    assert prepared == [2, 1]
    monkeypatch.undo()
    imputer = quick().fit(hide(repeated())[0])
    imputer.save(tmp_path / "imputer.safetensors")
    assert imputer.ensemble_.neighbours is not None
    tensors = read_tensors(tmp_path / "imputer.safetensors", "Imputer")[1]
    assert [name for name, one in tensors.items() if len(one) == len(imputer.ensemble_.neighbours.values)] == [
        "neighbours"
    ]


def test_the_near_duplicates_of_a_row_do_not_depend_on_the_rows_around_it():
    """Even if many more rows are alike than are kept, and if one of them is searched alone."""
    rng = np.random.default_rng(0)
    base = np.column_stack([rng.normal(size=(60, 5)), rng.integers(0, 3, (60, 3))])
    table = base[rng.integers(0, 60, 3000)]
    table[rng.random(table.shape) < 0.1] = np.nan
    index = index_rows(list(table.T), [False] * 5 + [True] * 3, rng)
    whole = index.find(list(table[:700].T))
    for rows in (slice(0, 1), slice(3, 18), slice(500, 700)):
        for one, other in zip(index.find(list(table[rows].T)), whole, strict=True):
            np.testing.assert_array_equal(one, other[rows])


def test_cells_of_repeated_rows_are_taken_over_and_others_are_not():
    table = repeated()
    shown, hidden = hide(table)
    imputer = quick().fit(shown)
    assert {name for name, one in imputer.ensemble_.calibrations.items() if one.neighbours} >= {"a", "b", "c"}
    predicted = imputer.predict_cells(shown)
    visible = shown.to_numpy()
    for j in (0, 2):
        truth = table.iloc[:, j].to_numpy(float)
        repeated_row = np.zeros(len(table), bool)
        for i in np.flatnonzero(hidden[:, j]):
            known = [k for k in range(7) if k != j and not hidden[i, k]]
            agree = (visible[:, known] == visible[i, known]).all(1) & ~hidden[:, j]
            repeated_row[i] = agree.any()
        alone = hidden[:, j] & ~repeated_row
        near = np.abs(predicted[:, j] - truth) / truth.std()
        assert repeated_row.sum() > 10
        assert np.median(near[repeated_row]) < 0.25
        assert np.median(near[alone]) > 2.0 * np.median(near[repeated_row])  # what nothing repeats is estimated


@pytest.mark.more
def test_a_table_without_repeated_rows_has_no_index():
    imputer = quick().fit(hide(repeated(share=0.0))[0])
    assert imputer.ensemble_.neighbours is None
    assert not any(one.neighbours for one in imputer.ensemble_.calibrations.values())


def test_rows_that_agree_by_chance_get_no_weight():
    rng = RNG(0)
    table = rng.integers(0, 2, (500, 6)).astype(float)
    index = index_rows(as_columns(table), [True] * 6, rng)
    rows = table[:50].copy()
    rows[:, 0] = np.nan
    assert ((rows[:, None, 1:] == table[None, :, 1:]).all(2).sum(1) > 1).all()
    found = index.find(as_columns(rows))
    for weight in WEIGHTS:
        assert (found.weigh(0, weight)[1] == 0.0).all()


def test_heavy_tails_make_no_near_duplicates():
    """By standard deviations nearly all cells of such a column would be the same."""
    rng = RNG(0)
    table = np.column_stack([rng.standard_cauchy((400, 5))])
    index = index_rows(as_columns(table[:200]), [False] * 5, rng)
    rows = table[200:].copy()
    rows[:, 0] = np.nan
    assert (index.find(as_columns(rows)).weigh(0, WEIGHTS[0])[1] < 0.3).mean() > 0.97


@pytest.mark.parametrize("n", [1, 2, N_NEIGHBOURS, N_NEIGHBOURS + 1])
def test_few_rows_empty_columns_and_extreme_values_are_no_error(n):
    table = np.column_stack([np.full(n, np.nan), np.linspace(0, 1e300, n), np.arange(n) % 2, np.full(n, 5.0)])
    index = index_rows(as_columns(table), [False, False, True, False], RNG(0))
    rows = np.vstack([table, [np.nan] * 4, [1.0, -1e300, 7.0, 2.0]])
    found = index.find(as_columns(rows))
    assert found.cells.shape == (n + 2, min(n, N_NEIGHBOURS), 4)
    for j in range(4):
        weights, share = found.weigh(j, NeighbourWeight(1e-3, 0.3))
        assert np.isfinite(weights).all()
        assert ((share >= 0.0) & (share <= 1.0)).all()


def test_mixed_distributions_are_distributions_and_their_mean_moves_to_the_near_duplicate():
    rng = RNG(0)
    table = rng.normal(size=(300, 3)) * [1.0, 10.0, 100.0]
    table[1] = table[0]
    index = index_rows(as_columns(table), [False] * 3, rng)
    row = table[:1].copy()
    row[0, 2] = np.nan
    bins = make_bins(table[:, 2])
    shares = np.asarray(bins.share)[None]
    cells = BinnedPredictive(Column(name="c", kind="real"), bins, bins.means(shares), shares)
    mixed = mix_neighbours(cells, NeighbourWeight(3e-4, 0.3), index.find(as_columns(row)), 2)
    assert mixed.probabilities.sum() == pytest.approx(1.0)
    assert abs(mixed.mean()[0] - table[0, 2]) < 0.5 * abs(cells.mean()[0] - table[0, 2])
    assert mixed.std[0] < cells.std[0]


@pytest.mark.more
def test_a_saved_imputer_takes_over_the_same_cells(tmp_path):
    shown, _ = hide(repeated())
    imputer = quick().fit(shown)
    assert imputer.ensemble_.neighbours is not None
    imputer.save(tmp_path / "imputer")
    again = Imputer.load(tmp_path / "imputer")
    pd.testing.assert_frame_equal(again.transform(shown), imputer.transform(shown))
    one = imputer.transform(shown.iloc[:1])
    pd.testing.assert_frame_equal(one, imputer.transform(shown).iloc[:1])


def counting(function, calls):
    """The same function, which notes its name whenever it is called."""

    def call(*given, **named):
        calls.append(function.__name__)
        return function(*given, **named)

    return call


def test_both_ends_of_intervals_come_from_one_prediction(monkeypatch):
    shown, _ = hide(repeated())
    imputer, calls = quick().fit(shown), []
    opened, predictor = imputer._open(shown), imputer._predictor()
    apart = [predictor.choose(opened.encoded, opened.missing, [methodcaller("quantile", at)])[0] for at in (0.25, 0.75)]
    monkeypatch.setattr(NeighbourIndex, "find", counting(NeighbourIndex.find, calls))
    monkeypatch.setattr(Masked, "predict_natural", counting(Masked.predict_natural, calls))
    ends = imputer.interval(shown, 0.5)
    assert sorted(calls) == ["find", "predict_natural"]
    for end, values in zip(ends, apart, strict=True):
        pd.testing.assert_frame_equal(end, imputer._fill(opened, values), check_exact=True)


def test_draws_recover_only_the_cells_of_their_turn_and_are_those_of_all_cells(monkeypatch):
    shown, hidden = hide(repeated())
    imputer, sizes = quick().fit(shown), []
    assert imputer.ensemble_.neighbours is not None
    predict = Predictor.predict
    for kind in (BinnedColumn, LikelihoodColumn):

        def predict_and_count(self, naturals, *rest, before=kind.predict):
            if rest:  # with experts: not what the networks alone expect, for trees to read
                sizes.append(len(naturals[0]))
            return before(self, naturals, *rest)

        monkeypatch.setattr(kind, "predict", predict_and_count)
    drawn = imputer.sample(shown, 2)
    assert sum(sizes) == 2 * hidden.sum()

    def predict_all(self, table, rows, *, draw=None, parameters=None, wanted=None):
        for where, found in predict(self, table, rows, draw=draw, parameters=parameters):
            yield where, [one.take(mine) for one, mine in zip(found, wanted[where].T, strict=True)]

    monkeypatch.setattr(Predictor, "predict", predict_all)
    for one, other in zip(drawn, imputer.sample(shown, 2), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_near_duplicates_of_many_rows_are_found_by_hashes_and_are_those_of_a_direct_search(monkeypatch):
    """Rows that repeat another one are found among many, whatever is missing; nothing else is."""
    rng = RNG(5)
    base = np.column_stack([rng.normal(size=(3000, 6)), rng.integers(0, (2, 3, 5), (3000, 3))])
    table = np.concatenate([base, base[:1000]])
    table[rng.random(table.shape) < 0.1] = np.nan
    classes = [False] * 6 + [True] * 3
    direct = index_rows(as_columns(table), classes, RNG(0)).find(as_columns(table[:1000]))
    monkeypatch.setattr(expert, "FEW_ROWS", 100)
    index = index_rows(as_columns(table), classes, RNG(0))
    hashed = index.find(as_columns(table[:1000]))
    assert index.hashes is not None
    # All that are found are among the true ones, and nearly all are found.
    true, found = (np.isfinite(one.distance).sum() for one in (direct, hashed))
    assert 0.9 * true < found <= true  # those overlooked are far away, or have few cells in common
    for one, other in zip(hashed.distance, direct.distance, strict=True):
        assert set(one[np.isfinite(one)]) <= set(other)
    exact = (hashed.distance[:, :2] < 1e-9).sum(1) == 2
    assert exact.mean() > 0.97  # itself, and the row that repeats it
    np.testing.assert_array_equal(index.find(as_columns(table[:1])).cells, hashed.cells[:1])


def test_the_search_of_many_rows_compares_few_pairs(monkeypatch):
    """Twice the rows, twice the pairs: not four times, even if a column has one value throughout."""
    monkeypatch.setattr(expert, "FEW_ROWS", 100)
    compared = []
    near = expert.RowHashes._near
    monkeypatch.setattr(
        expert.RowHashes,
        "_near",
        lambda self, points, row, *rest: compared.append(len(row)) or near(self, points, row, *rest),
    )
    counts = []
    for n in (4000, 8000):
        rng = RNG(6)
        table = np.column_stack([rng.normal(size=(n, 4)), np.ones(n), rng.integers(0, 3, (n, 2))])
        compared.clear()
        index_rows(as_columns(table), [False] * 5 + [True] * 2, RNG(0)).find(as_columns(table))
        counts.append(sum(compared))
    assert counts[1] < 2.6 * counts[0]
    assert counts[1] < 0.1 * 8000**2
