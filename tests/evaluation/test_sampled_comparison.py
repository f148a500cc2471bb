"""Large tables are compared on a random sample of their rows, the same for every candidate, and a warning says so."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from commands import refused, run
from imputers import Recorded
from sklearn.impute import SimpleImputer

from evenly import EvenlyWarning, Imputer, TableError, compare_imputers, try_imputer
from evenly._support import show_on
from evenly.cli.commands.compare import make_imputers
from evenly.evaluation import candidates, comparison_seconds, say_trial
from evenly.evaluation.sampling import choose_rows, sample_size

SEEN: list[np.ndarray] = []
SAMPLED = "compared on 40 of the 120 rows, drawn at random"


class Remembering(SimpleImputer):
    """An imputer of scikit-learn that remembers the tables it was fitted to."""

    def fit_transform(self, X, y=None):
        SEEN.append(X)
        return super().fit_transform(X)


@pytest.fixture
def table(monkeypatch) -> pd.DataFrame:
    monkeypatch.setattr("evenly.evaluation.sampling.MOST_CELLS", 300)
    monkeypatch.setattr("evenly.evaluation.sampling.SAMPLED_CELLS", 120)
    monkeypatch.setattr("evenly.evaluation.sampling.FEWEST_ROWS", 20)
    SEEN.clear()
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 2.0, 120)
    return pd.DataFrame({"a": x, "b": 3.0 * x + rng.normal(size=120), "c": np.where(x > 50.0, "high", "low")})


def test_by_default_all_candidates_get_the_same_sample(table):
    some = [Imputer("marginal", random_state=0), Remembering(), Remembering(strategy="median"), "linear"]
    with pytest.warns(EvenlyWarning, match=rf"^{SAMPLED}.* rows='all' \(--rows all\) compares on all") as warned:
        trials = list(compare_imputers(some, table))
    assert len(warned) == 1  # scikit-learn's imputers learn from all rows of the sample
    assert {one.n_rows for one in trials} == {40}
    np.testing.assert_array_equal(*SEEN)
    assert len(SEEN[0]) == 40
    assert {tuple(one.n_cells for one in trial.columns) for trial in trials} == {(4, 4, 4)}
    assert "in a random sample of 40 rows" in say_trial(trials[0])


def test_the_same_seed_gives_the_same_sample(table):
    with pytest.warns(EvenlyWarning, match=SAMPLED):
        one, same, other = (next(compare_imputers(["knn"], table, random_state=seed)) for seed in (1, 1, 2))
    assert one.columns == same.columns
    assert one.columns != other.columns


def test_all_rows_or_so_many_can_be_asked_for(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = next(compare_imputers(["linear"], table, rows="all"))
        assert next(compare_imputers(["linear"], table, rows=120)).columns == whole.columns
        assert try_imputer(Imputer("marginal"), table).columns[0].n_cells == 12
    assert whole.n_rows is None
    assert whole.columns[0].n_cells == 12
    assert "sample" not in say_trial(whole)
    with pytest.warns(EvenlyWarning, match="compared on 60 of the 120 rows"):
        assert next(compare_imputers(["linear"], table, rows=60)).n_rows == 60


@pytest.mark.parametrize("rows", [0, -3, 2.5, "some", True, None])
def test_other_numbers_of_rows_are_refused(table, rows):
    with pytest.raises(TableError, match=r"rows = .*expected 'auto', 'all' or a number of rows"):
        next(compare_imputers(["linear"], table, rows=rows))


def test_columns_are_what_they_are_in_the_whole_table(table):
    """A class, or a decimal, counts even if no row of the sample has it."""
    plain = table.assign(c=np.where(table["a"] > 50.0, "yes", "no"), d=np.arange(120.0) % 7)
    rare = plain.assign(c=["maybe", *plain["c"][1:]], d=[0.5, *plain["d"][1:]])
    with pytest.warns(EvenlyWarning, match="compared on 30 of"):
        plain, rare = (next(compare_imputers(["linear"], one)).columns for one in (plain, rare))
    assert [one.kind for one in plain[2:]] == ["binary", "count"]
    assert [one.kind for one in rare[2:]] == ["categorical", "positive"]


def test_rows_of_a_person_are_drawn_together():
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(300.0), 4)
    rows = choose_rows(200, len(units), rng, units)
    assert len(rows) == 200
    assert (np.diff(rows) > 0).all()
    assert set(np.unique(units[rows], return_counts=True)[1]) == {4}


def test_rows_without_a_person_and_persons_of_too_many_rows_are_drawn_one_by_one():
    rng = np.random.default_rng(0)
    units = np.repeat([np.nan, 1.0], 600)
    rows = choose_rows(200, len(units), rng, units)
    assert len(rows) == 200
    assert 60 < (rows < 600).sum() < 140


def test_a_sample_has_enough_rows_of_a_wide_table():
    assert sample_size("auto", 8_333, 12) == 8_333
    assert sample_size("auto", 8_334, 12) == sample_size("auto", 200_000, 12) < 8_333
    assert sample_size("auto", 200_000, 1_000) == sample_size("auto", 200_000, 10_000) == 2_000
    assert sample_size("auto", 1_500, 10_000) == 1_500
    assert sample_size("all", 10**7, 12) == 10**7
    assert sample_size(300, 200, 12) == 200


def test_comparing_a_table_of_200_000_rows_is_planned_to_take_minutes():
    imputers = make_imputers(candidates(n_columns=12), None, None, {})
    assert 30.0 < comparison_seconds(imputers, 200_000, 12) < 240.0
    assert comparison_seconds(imputers, 200_000, 12, rows="all") > 2.0 * comparison_seconds(imputers, 200_000, 12)


def test_progress_ends_with_the_last_candidate(table, monkeypatch):
    """Neighbours that are looked for some rows at a time once reported more than all of them."""
    monkeypatch.setattr("evenly.evaluation.peers.FEWEST_ROWS", 50)
    monkeypatch.setattr("evenly.evaluation.peers.MOST_CELLS", 50)
    monkeypatch.setattr("evenly._support.progress.SOON", 0.0)
    shown = Recorded()
    with show_on(shown), warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        list(compare_imputers(["knn", "linear"], table, rows="all"))
    assert min(one.share for one in shown.seen if one.names == ("linear (2 of 2)",)) < 1.0


def test_the_command_takes_a_number_of_rows(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    command = ("compare", "table.csv", "--model", "linear", "--model", "marginal")
    done = run(*command, "--rows", "50", "--report", "page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "compared on 50 of the 120 rows" in done.stderr
    assert "50 of 120 rows" in done.stdout
    assert "The same hidden cells of 50 rows of this table, drawn at random, imputed" in (
        " ".join((tmp_path / "page.html").read_text().replace("\N{NO-BREAK SPACE}", " ").split())
    )
    assert "random sample of 50 rows" in (tmp_path / "page.html").read_text().replace(" ", " ")
    done = run(*command, "--json", folder=tmp_path)
    assert [one["n_rows"] for one in json.loads(done.stdout)] == [40, 40]
    assert SAMPLED in done.stderr
    done = run(*command, "--rows", "all", folder=tmp_path)
    assert done.returncode == 0
    assert "compared on" not in done.stderr
    done = run(*command, "--rows", "many", folder=tmp_path)
    refused(done, "got --rows many, but expected a number of rows from 1, or all")
