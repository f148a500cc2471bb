"""Trials of an imputer: cells are hidden from it, it is scored on those, and nothing else changes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from imputers import make_imputer
from scipy import stats

from evenly import Imputer, TableError, compare_imputers, try_imputer
from evenly.cli import main
from evenly.evaluation import rank_trials, say_winner
from evenly.evaluation.hidden_cells import encode_for
from evenly.evaluation.intervals import error_interval, mean_with_interval, normalized_interval
from evenly.evaluation.trial_results import ColumnTrial, Trial
from evenly.tables.frames import open_table

SEEN = []


class Remembering(Imputer):
    """An imputer that remembers the tables it was fitted to."""

    def fit(self, X, y=None):
        SEEN.append(pd.DataFrame({one.name: one.numbers for one in X.columns}))
        return super().fit(X, y)


def quick(**settings):
    return make_imputer(kind=Remembering, epochs=2, n_networks=1, hidden_size=8, random_state=0, **settings)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {
            "size": rng.normal(10.0, 2.0, n),
            "people": rng.poisson(7.0, n),
            "colour": rng.choice(["red", "<b>blue</b>", "green"], n, p=[0.6, 0.3, 0.1]),
            "owns": rng.random(n) < 0.3,
            "same": 5.0,
            "nothing": np.nan,
            "id": [f"user{i:04d}" for i in range(n)],
        }
    ).assign(size=lambda t: t["size"].mask(rng.random(n) < 0.2))


def test_the_scored_cells_are_known_ones_and_hidden_from_the_imputer(table):
    SEEN.clear()
    trial = try_imputer(quick(), table, share=0.2)
    (fitted,) = SEEN
    assert list(fitted.columns) == list(table.columns)
    gone = fitted.isna()
    for one in trial.columns:
        new = gone[one.column] & table[one.column].notna()
        assert one.n_cells == new.sum() == round(0.2 * table[one.column].notna().sum())
    assert [one.column for one in trial.columns] == ["size", "people", "colour", "owns"]


def test_errors_and_examples_are_those_of_the_hidden_cells(table):
    SEEN.clear()
    trial = try_imputer(quick(), table)
    gone = SEEN[0]["colour"].isna().to_numpy()
    colour = next(one for one in trial.columns if one.column == "colour")
    assert [true for true, _ in colour.examples] == table["colour"][gone].tolist()[:5]
    # The most frequent visible colour is red: the baseline is the share of other hidden ones.
    assert colour.baseline == pytest.approx((table["colour"][gone] != "red").mean())
    assert colour.measure == "error rate"
    assert colour.covered is None
    people = next(one for one in trial.columns if one.column == "people")
    assert people.measure == "NRMSE"
    assert all(isinstance(cell, int) for pair in people.examples for cell in pair)
    assert trial.error == pytest.approx(np.mean([one.error for one in trial.columns]))


def test_the_imputer_itself_stays_unfitted_and_the_same_seed_gives_the_same_trial(table):
    imputer = quick()
    one, two = (try_imputer(imputer, table, random_state=3) for _ in range(2))
    assert not hasattr(imputer, "scaler_")
    assert one.columns == two.columns
    assert one.columns != try_imputer(imputer, table, random_state=4).columns


def test_all_containers_give_the_same_trial(table):
    plain = table.drop(columns=["nothing"])
    results = [try_imputer(quick(), one).columns for one in (plain, pl.from_pandas(plain), pa.table(plain))]
    assert results[0] == results[1] == results[2]


@pytest.mark.more
def test_several_imputers_are_tried_on_the_same_cells(table):
    SEEN.clear()
    trials = list(compare_imputers([quick(), quick(method="std-none"), quick(model="vae")], table))
    assert [(one.model, one.method) for one in trials] == [
        ("masked", "lip-none"),
        ("masked", "std-none"),
        ("vae", "lip-gamma"),
    ]
    assert all(seen.isna().equals(SEEN[0].isna()) for seen in SEEN)
    assert len({one.baseline for one in trials}) == 1


@pytest.mark.more
def test_ctrl_c_between_two_candidates_keeps_the_first(table, tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **settings):
        yield next(compare_imputers(*arguments, **settings))
        raise KeyboardInterrupt

    monkeypatch.setattr("evenly.evaluation.compare_imputers", interrupted)
    monkeypatch.chdir(tmp_path)
    table[["size", "people"]].to_csv("table.csv", index=False)
    command = "evenly compare table.csv --model masked --model vae --method lip-none --epochs 1 -o errors.csv"
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 0
    assert "interrupted: the first 1 of 2 candidates are compared" in printed.err
    assert "mean or mode" in printed.out
    assert list(pd.read_csv("errors.csv"))[3:] == ["masked lip-none"]


@pytest.mark.more
def test_declared_kinds_markers_and_classes_count(table):
    marked = table[["people", "colour"]].assign(people=lambda t: t["people"].where(t.index % 4 > 0, -9))
    trial = try_imputer(quick(kinds={"people": "real"}, missing={"people": [-9]}), marked)
    people = trial.columns[0]
    assert people.kind == "real"
    assert people.n_cells == round(0.1 * 90)
    assert all(true != -9 for true, _ in people.examples)


@pytest.mark.more
def test_a_declared_likelihood_of_classes_changes_nothing():
    rng = np.random.default_rng(0)
    cells = pd.Categorical(rng.choice(["a", "b"], 120, p=[0.8, 0.2]), categories=["z", "a", "b"])
    table = pd.DataFrame({"c": cells, "x": rng.normal(size=120)})
    mixtures = [
        make_imputer("mixture", epochs=1, likelihoods=one, random_state=0) for one in (None, {"c": "categorical"})
    ]
    plain, declared = (try_imputer(imputer, table).columns[0] for imputer in mixtures)
    assert (declared.error, declared.examples) == (plain.error, plain.examples)
    assert {true for true, _ in declared.examples} <= {"a", "b"}


def test_the_papers_preset_is_tried_with_the_papers_treatment_of_zeros():
    table = pd.DataFrame({"x": [0.0, 1.5, 2.5, 0.5] * 5})
    for preset, clip in (("paper", 1e-30), (None, None)):
        (column,), _ = encode_for(Imputer("mixture", preset=preset), open_table(table))
        assert column.clip == clip


def test_a_trial_is_plain_json(table):
    plain = json.loads(json.dumps(try_imputer(quick(), table).to_plain()))
    assert plain["columns"][0]["column"] == "size"


def test_the_interval_of_a_rate_is_wilsons():
    wrong = np.repeat([1.0, 0.0], [7, 33])
    expected = stats.binomtest(7, 40).proportion_ci(0.9, method="wilson")
    assert error_interval(7 / 40, wrong, rate=True) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_no_error_begins_at_0_and_of_nothing_else_ends_at_1():
    assert error_interval(0.0, np.zeros(30), rate=True)[0] == 0.0
    assert error_interval(1.0, np.ones(30), rate=True)[1] == 1.0


def test_the_interval_of_an_nrmse_is_that_of_a_bootstrap():
    rng = np.random.default_rng(0)
    wrong = rng.standard_t(8, 2000) ** 2
    expected = np.quantile(np.sqrt(rng.choice(wrong, (4000, 2000)).mean(1)), [0.05, 0.95])
    found = error_interval(float(np.sqrt(wrong.mean())), wrong, rate=False)
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("rate", [True, False])
def test_the_interval_of_a_ratio_is_that_of_a_bootstrap_of_cells(rate):
    """Both errors of a cell go together: without that the interval would be twice as wide."""
    rng = np.random.default_rng(0)
    others = (rng.random(1500) < 0.5).astype(float) if rate else rng.standard_t(8, 1500) ** 2
    losses = others * (rng.random(1500) < 0.8) if rate else others * rng.uniform(0.4, 0.8, 1500)
    chosen = rng.integers(0, 1500, (2000, 1500))
    ratios = losses[chosen].mean(1) / others[chosen].mean(1)
    expected = np.quantile(ratios if rate else np.sqrt(ratios), [0.05, 0.95])
    assert normalized_interval(losses, others, rate=rate) == pytest.approx(expected, rel=0.01)


def test_the_mean_ratio_of_columns_has_the_interval_of_a_simulation():
    rng = np.random.default_rng(0)
    means, spreads = np.array([0.5, 0.9, 1.1]), np.array([0.05, 0.1, 0.2])
    found = mean_with_interval([(m, m - 1.645 * s, m + 1.645 * s) for m, s in zip(means, spreads, strict=True)])
    drawn = rng.normal(means, spreads, (40_000, 3)).mean(1)
    assert found == pytest.approx((means.mean(), *np.quantile(drawn, [0.05, 0.95])), abs=0.003)


def scored(name, error, baseline, low=0.0, high=np.inf):
    return ColumnTrial(name, "real", "NRMSE", 50, error, error, error, baseline, 0.9, (), low, high)


def test_a_trial_says_what_it_gains_over_the_mean_or_mode_column_by_column():
    """Not by the mean of errors, in which an error rate of 0.6 weighs more than an NRMSE of 0.1."""
    columns = (
        scored("a", 0.3, 0.6, 0.4, 0.6),
        scored("b", 0.09, 0.1, 0.8, 1.1),
        scored("c", 0.0, 0.0),
        scored("d", 0.12, 0.1, 1.1, 1.3),
    )
    trial = Trial(columns, 0.1, "masked", "lip-none", 1.0)
    assert trial.normalized == pytest.approx((0.5 + 0.9 + 1.2) / 3)
    assert str(trial).startswith(
        "On 200 cells that were hidden from it, the imputer's error is 13 % lower than that of filling in each "
        "column's mean or most frequent class (90 % interval: "
    )
    assert str(trial).endswith("; better in 1 of 4 columns, level in 2, worse in 1.")
    plain = trial.to_plain()
    assert plain["normalized"] == trial.normalized
    assert plain["columns"][0]["normalized"] == 0.5


@pytest.mark.parametrize(
    ("error", "says"), [(0.069, "is 31 % lower than"), (0.1, "is about the same as"), (0.12, "is 20 % higher than")]
)
def test_a_trial_cannot_be_read_backwards(error, says):
    trial = Trial((scored("a", error, 0.1, 0.9 * error / 0.1, 1.1 * error / 0.1),), 0.1, "masked", "lip-none", 1.0)
    assert f"the imputer's error {says} that of filling in" in str(trial)


def test_the_winner_is_named_first_and_so_are_those_that_come_close():
    trials = [
        Trial((scored("a", error, 0.1, 9.0 * error, 11.0 * error),), 0.1, model, "lip-none", 1.0)
        for model, error in (("vae", 0.08), ("masked", 0.05), ("mixture", 0.052))
    ]
    ranked = rank_trials(trials)
    assert [one.model for one in ranked] == ["masked", "mixture", "vae"]
    said = say_winner(ranked)
    assert said.startswith("Best: masked lip-none. On 50 cells that were hidden from it, its error is 50 % lower than")
    assert said.endswith("Within that interval too: mixture lip-none.")


def test_a_trial_without_anything_to_gain_says_nothing():
    assert str(Trial((scored("a", 0.0, 0.0),), 0.1, "masked", "lip-none", 1.0)) == ""


def test_the_marginal_model_is_level_with_mean_and_mode(table):
    trial = try_imputer(Imputer("marginal"), table.drop(columns="people"))  # whose mean would be rounded
    assert trial.normalized_interval == pytest.approx((1.0, 1.0, 1.0), abs=1e-6)
    assert "is about the same as" in str(trial)
    assert str(trial).endswith("better in 0 of 3 columns, level in 3.")


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_that_hides_nothing_or_all_is_refused(table, share):
    with pytest.raises(TableError, match="share"):
        try_imputer(quick(), table, share=share)


def test_a_table_with_nothing_to_hide_is_refused():
    with pytest.raises(TableError, match="ten known cells"):
        try_imputer(quick(), pd.DataFrame({"a": [1.0, 2.0, None]}))
