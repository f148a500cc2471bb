"""scikit-learn's imputers are tried on the same hidden cells as Evenly's, on tables of numbers and classes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from imputers import Recorded, linked_table
from sklearn.impute import KNNImputer, SimpleImputer

from evenly import EvenlyWarning, Imputer, TableError, compare_imputers
from evenly._support import show_on
from evenly.evaluation import PEER_IMPUTERS, candidates
from evenly.evaluation.peers import Forest, NearestNeighbours, NumberEncoding, impute_visible
from evenly.tables import Column


def mixed(n: int = 150) -> pd.DataFrame:
    """Columns of every kind that depend on each other; one is no variable, one is empty, one is constant."""
    table = linked_table(n)
    table["grade"] = pd.Categorical.from_codes(np.digitize(table["x"], [-0.5, 0.5]), ["lo", "mid", "hi"], ordered=True)
    table["id"] = [f"person {i}" for i in range(n)]
    table["nothing"], table["one"] = np.nan, 3.0
    return table.mask(np.random.default_rng(0).random(table.shape) < 0.1)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mixed()


def small(name: str, **settings: int) -> object:
    trees = {"n_trees": 10, "max_rounds": 2} if name == "forest" else {}
    return PEER_IMPUTERS[name](**trees, **settings)


@pytest.mark.parametrize("name", PEER_IMPUTERS)
def test_every_peer_beats_the_mean_on_the_cells_that_others_get(table, name):
    ours, theirs = compare_imputers([Imputer("marginal", random_state=0), small(name)], table)
    assert (theirs.model, theirs.method) == (name, "scikit-learn")
    assert [(one.column, one.n_cells, one.baseline) for one in theirs.columns] == [
        (one.column, one.n_cells, one.baseline) for one in ours.columns
    ]
    assert theirs.error < 0.9 * theirs.baseline
    assert all(one.covered is None for one in theirs.columns)
    assert theirs.to_plain()["model"] == name


@pytest.mark.parametrize("name", PEER_IMPUTERS)
def test_the_same_seed_gives_the_same_trial(table, name):
    first, second = (next(compare_imputers([small(name)], table)) for _ in range(2))
    assert first.columns == second.columns


def test_names_and_imputers_of_scikit_learn_are_candidates_too(table):
    found = list(compare_imputers(["knn", KNNImputer(n_neighbors=5), SimpleImputer(), "linear"], table))
    assert [one.model for one in found] == ["knn", "KNNImputer", "SimpleImputer", "linear"]
    assert found[0].columns == found[1].columns
    # The mean of one-hot classes is greatest for the most frequent.
    assert found[2].error == pytest.approx(found[2].baseline, rel=1e-9)


def test_declarations_of_columns_count_for_peers_too(table):
    like = Imputer(kinds={"visits": "ignore"})
    (trial,) = compare_imputers(["knn"], table, like=like)
    assert "visits" not in [one.column for one in trial.columns]


@pytest.mark.parametrize(
    ("candidate", "says"),
    [
        ("trees", "the imputer 'trees', but expected one of knn, linear, forest"),
        (3.0, "3.0 as imputer"),
        (KNNImputer, "as imputer, but expected an Imputer"),
    ],
)
def test_other_candidates_are_refused(table, candidate, says):
    with pytest.raises(TableError, match=says):
        next(compare_imputers([candidate], table))


def test_imputers_that_leave_cells_or_columns_out_are_refused():
    class Lazy(KNNImputer):
        def fit_transform(self, X, y=None):
            return X[:, 1:]

    with pytest.raises(TableError, match="from Lazy, or missing cells in it, but expected all"):
        next(compare_imputers([Lazy()], np.random.default_rng(0).normal(size=(60, 3))))


@pytest.mark.parametrize("name", PEER_IMPUTERS)
def test_large_tables_are_learned_from_a_sample_and_a_warning_says_so(monkeypatch, name):
    monkeypatch.setattr("evenly.evaluation.peers.FEWEST_ROWS", 50)
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    visible = np.column_stack([x, x, x])
    visible[:40, 1] = np.nan
    columns = [Column(name=f"x{j}", kind="real") for j in range(3)]
    with pytest.warns(EvenlyWarning, match=f"{name}: learns from 50 of the 200 rows"):
        full = impute_visible(small(name, most_cells=150), columns, visible)
    assert np.corrcoef(full[:40, 1], x[:40])[0, 1] > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        impute_visible(small(name, most_cells=600), columns, visible)


def test_classes_are_voted_for_and_ordered_ones_are_numbers():
    columns = [
        Column(name="color", kind="categorical", classes=["a", "b", "c"]),
        Column(name="grade", kind="ordinal", classes=["lo", "mid", "hi"]),
        Column(name="size", kind="positive"),
    ]
    table = np.array([[0.0, 0.0, 2.0], [2.0, 2.0, 4.0], [np.nan, np.nan, np.nan]])
    encoding = NumberEncoding.of(columns, table)
    encoded = encoding.encode(table)
    assert encoded.shape == (3, 5)
    assert np.isnan(encoded[2]).all()
    np.testing.assert_array_equal(encoding.decode(encoded[:2]), table[:2])
    assert encoding.decode(np.array([[0.2, 0.3, 0.5, 9.0, 1.0]])).tolist() == [[2.0, 2.0, 4.0]]


def test_a_table_of_one_column_has_nothing_to_learn_from():
    visible = np.array([[1.0], [3.0], [np.nan]])
    columns = [Column(name="x", kind="real")]
    assert Forest(n_trees=2).impute(columns, visible)[2, 0] == 2.0
    assert NearestNeighbours().impute(columns, visible)[2, 0] == 2.0


def test_peers_are_among_the_usual_candidates():
    assert {"forest", "knn", "linear"} <= dict(candidates()).keys()
    assert candidates(["forest", "masked"])[0][0] == "masked"
    assert ("knn", "std-none") not in candidates([], ["std-none"])
    assert "forest" not in dict(candidates(n_columns=101))
    assert candidates(["forest"], n_columns=101) == [("forest", "scikit-learn")]


def test_neighbours_of_a_long_table_compare_a_bounded_number_of_rows():
    neighbours = NearestNeighbours(most_cells=100_000)
    rows = [1_000, 10_000, 100_000, 10**6]
    assert [neighbours.n_learned(n, 10) for n in rows] == [1_000, 10_000, 4_000, 500]
    assert [NearestNeighbours().n_learned(n, 10) for n in rows] == rows
    times = [neighbours.seconds(n, 10) for n in rows[1:]]
    assert max(times) < 6.0 * min(times)


def test_a_forest_is_planned_to_take_seconds_of_a_small_table():
    """Its 100 trees a column and round are the most of a comparison of 200 rows: it was planned as a second."""
    assert 4.0 < Forest().seconds(200, 12) < 15.0
    assert Forest().seconds(200, 12) > 10.0 * NearestNeighbours().seconds(200, 12)


def test_rows_filled_some_at_a_time_have_the_same_neighbours(table, monkeypatch):
    monkeypatch.setattr("evenly.evaluation.peers.AT_ONCE", 7)
    columns = [Column(name=name, kind="real") for name in "xy"]
    visible = np.random.default_rng(0).normal(size=(90, 2))
    visible[::5, 0] = visible[1::7, 1] = np.nan
    some = NearestNeighbours(most_cells=60)
    monkeypatch.setattr("evenly.evaluation.peers.FEWEST_ROWS", 30)
    with pytest.warns(EvenlyWarning, match="learns from 30 of the 90 rows"):
        found = impute_visible(some, columns, visible)
    with pytest.warns(EvenlyWarning):
        chosen = some.learns_from(visible)
    encoding = NumberEncoding.of(columns, visible)
    cells = encoding.encode(visible)
    expected = KNNImputer(n_neighbors=5).fit(cells[chosen]).transform(cells)
    np.testing.assert_allclose(found, encoding.decode(expected))


@pytest.mark.parametrize("name", PEER_IMPUTERS)
def test_a_peer_says_how_far_it_is(name, monkeypatch):
    monkeypatch.setattr("evenly.evaluation.peers.AT_ONCE", 30)
    monkeypatch.setattr("evenly.evaluation.peers.FEWEST_ROWS", 50)
    monkeypatch.setattr("evenly._support.progress.SOON", 0.0)
    shown = Recorded()
    with show_on(shown), warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        list(compare_imputers([small(name, most_cells=100)], mixed()))
    assert len({one.share for one in shown.seen if 0.0 < one.share < 1.0}) > 3
