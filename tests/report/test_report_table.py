"""What the report says of the table itself and of its imputed cells: draws, patterns, associations, rows."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from report_parts import HOSTILE, Page, make_table, make_trial
from scipy import stats

import evenly
from evenly import Imputer
from evenly.evaluation import draw_cells
from evenly.report.associations import find_associations
from evenly.report.cells import read_cells
from evenly.report.distributions import QUANTILES, distribution
from evenly.report.missingness import find_missingness
from evenly.report.rows import count_repeated, show_rows
from evenly.tables import infer_schema

pytest.importorskip("plotly")


def cells_of(given, filled=None, draws=None, **declared):
    return read_cells(given, filled, draws, infer_schema(given, **declared))


def charts_of(text):
    return json.loads(Page(text).scripts[0])


# --- imputed cells ------------------------------------------------------------------------------------------------


def test_imputed_histograms_are_of_draws_not_of_best_guesses():
    """All best guesses of the marginal model are the same number; its draws spread as the observed cells do."""
    rng = np.random.default_rng(0)
    given = pd.DataFrame({"x": rng.normal(5.0, 2.0, 400), "c": rng.choice(["a", "b"], 400, p=[0.7, 0.3])})
    given = given.mask(rng.random(given.shape) < 0.3)
    imputer = Imputer("marginal", random_state=0).fit(given)
    full, draws = imputer.transform(given), draw_cells(imputer, given)
    guesses = evenly.make_report(given, filled=full)
    text = evenly.make_report(given, filled=full, draws=draws, imputer=imputer)
    spread = {}
    for name, page in (("best guesses", guesses), ("drawn at random", text)):
        numbers, classes = (next(c for c in charts_of(page) if c["type"] == kind) for kind in ("numbers", "classes"))
        assert numbers["imputed_name"] == classes["imputed_name"] == f"imputed, {name}"
        assert sum(numbers["observed"]) == pytest.approx(1.0, abs=1e-3)
        assert sum(numbers["imputed"]) == pytest.approx(1.0, abs=1e-3)  # normalized, so that both compare
        spread[name] = np.count_nonzero(numbers["imputed"]), classes["imputed"][1]
    assert spread["best guesses"] == (1, 0.0)
    assert spread["drawn at random"][0] > 10
    assert spread["drawn at random"][1] == pytest.approx(0.3, abs=0.06)


def test_tables_of_samples_serve_as_draws_too():
    given = pd.DataFrame({"x": [1.5, 2.5, np.nan, 4.5, np.nan]})
    drawn = [given.fillna({"x": value}) for value in (2.25, 3.25)]
    (found,) = cells_of(given, given.fillna(3.0), drawn)
    assert found.drawn.tolist() == [2.25, 2.25, 3.25, 3.25]
    assert found.filled.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_draws_are_of_at_most_2000_rows_that_have_missing_cells(container):
    values = np.arange(9000.0)
    values[values % 2 == 0] = np.nan
    given = pd.DataFrame({"x": values + 0.5, "id": [f"{i:05d}x" for i in range(9000)]})
    table = given if container is pd.DataFrame else pl.from_pandas(given)
    draws = draw_cells(Imputer("marginal", random_state=0, kinds={"id": "ignore"}).fit(table), table)
    assert isinstance(draws.tables[0], container)
    assert len(draws.rows) == len(draws.tables[0]) == 2000
    assert given["x"].to_numpy()[draws.rows].tolist() == pytest.approx([np.nan] * 2000, nan_ok=True)
    assert (draws.rows[0], draws.rows[-1]) == (0, 8998)
    assert list(draws.tables[0]["id"])[:1] == ["00000x"]


def test_numbers_have_their_quantiles_observed_and_imputed():
    given, filled = make_table(200)
    age = next(distribution(one) for one in cells_of(given, filled) if one.name == "age")
    gone = given["age"].isna()
    assert age.quantiles.observed == pytest.approx(np.quantile(given["age"].dropna(), QUANTILES))
    assert age.quantiles.imputed == pytest.approx(np.quantile(filled["age"][gone], QUANTILES))
    page = Page(evenly.make_report(given, filled=filled))
    assert "minimum 5 % 25 % median 75 % 95 % maximum observed" in page.text


def test_shown_rows_mark_what_was_imputed_and_nothing_else():
    given, filled = make_table(300)
    shown = show_rows(cells_of(given, filled), 6)
    assert len(shown.rows) == 6
    for number, cells in shown.rows:
        for name, cell in zip(shown.columns, cells, strict=True):
            assert cell.imputed == pd.isna(given[name][number - 1])
            assert cell.value == filled[name][number - 1]
    page = Page(evenly.make_report(given, filled=filled))
    marked = [a for tag, a in page.elements if tag == "ins"]
    assert len(marked) == sum(cell.imputed for _, cells in shown.rows for cell in cells) > 0
    assert "ins" not in [tag for tag, _ in Page(evenly.make_report(given, filled=filled, rows=0)).elements]


# --- the table ----------------------------------------------------------------------------------------------------


def test_patterns_are_counted_over_all_rows_and_columns():
    given, _ = make_table(500, missing=0.1)
    found = find_missingness(cells_of(given))
    gone = given.isna()
    assert found.n_complete == (~gone.any(axis=1)).sum()
    counts = gone[list(found.columns)].value_counts()
    assert found.n_patterns == len(counts)
    assert [one.n_rows for one in found.patterns] == counts.to_list()[:10]
    assert all(counts[one.missing] == one.n_rows for one in found.patterns)


def test_columns_that_are_missing_together_are_named_first():
    rng = np.random.default_rng(0)
    given = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    gone = rng.random(given.shape) < 0.2
    gone[:, 3] = gone[:, 1]
    first = find_missingness(cells_of(given.mask(gone))).pairs[0]
    assert (first.first, first.second, first.n_both) == ("b", "d", gone[:, 1].sum())
    assert first.correlation == pytest.approx(1.0)
    assert first.expected == pytest.approx(gone[:, 1].sum() ** 2 / 400)


def test_passed_through_columns_count_among_what_is_missing():
    given = pd.DataFrame({"id": [f"{i}x{i * i}" for i in range(30)], "x": np.arange(30.0) + 0.5})
    given.loc[:4, "id"] = None
    given.loc[:1, "x"] = np.nan
    found = find_missingness(cells_of(given, kinds={"id": "ignore"}))
    assert [(one.missing, one.n_rows) for one in found.patterns] == [
        ((False, False), 25),
        ((True, False), 3),
        ((True, True), 2),
    ]


def test_associations_are_those_of_the_textbook_on_known_cells():
    rng = np.random.default_rng(0)
    n = 1000
    x, group = rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    given = pd.DataFrame(
        {
            "x": x,
            "up": np.exp(x + 0.5 * rng.normal(size=n)),
            "down": -x + rng.normal(size=n),
            "group": group,
            "same": np.where(rng.random(n) < 0.7, group, "a"),
            "shifted": rng.normal(size=n) + (group == "a"),
            "alone": rng.choice([f"c{k}" for k in range(15)], n),
        }
    ).mask(rng.random((n, 7)) < 0.1)
    found = find_associations(cells_of(given))
    strength = pd.DataFrame(found.strength, found.names, found.names)
    for one, other in (("x", "up"), ("x", "down"), ("up", "down")):
        both = given[[one, other]].dropna()
        assert strength.loc[one, other] == pytest.approx(stats.spearmanr(both).statistic, abs=0.005)
    crossed = pd.crosstab(given["group"], given["same"])
    plain = stats.contingency.association(crossed, method="cramer")
    assert strength.loc["group", "same"] == pytest.approx(plain, abs=0.01)
    both = given[["group", "shifted"]].dropna()
    ranks = both["shifted"].rank()
    between = ranks.groupby(both["group"]).transform("mean").var() / ranks.var()
    assert strength.loc["group", "shifted"] == pytest.approx(np.sqrt(between), abs=0.01)
    # Fifteen classes that have to do with nothing: without the correction, chance alone looks like something.
    chance = stats.contingency.association(pd.crosstab(given["alone"], given["group"]), method="cramer")
    assert strength.loc["alone", "group"] < 0.5 * chance
    assert np.array_equal(found.strength, found.strength.T)
    assert {tuple(sorted(pair[:2])) for pair in found.strongest(1)} == {("up", "x")}


def test_rows_that_repeat_another_are_counted_with_and_without_identifiers():
    given = pd.DataFrame(
        {"id": ["a1", "b2", "c3", "a1", "e5"], "x": [1.5, 1.5, np.nan, 1.5, np.nan], "c": list("aaaab")}
    )
    assert count_repeated(cells_of(given, kinds={"id": "ignore"})) == (1, 2)
    page = Page(evenly.make_report(pd.DataFrame({"x": [1.5, 2.5, 1.5, 2.5, 1.5]})))
    assert "3 rows repeat an earlier one." in page.text
    assert "repeat" not in Page(evenly.make_report(pd.DataFrame({"x": [1.5, 2.5]}))).text


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_cells_that_are_lists_or_structures_repeat_too(container):
    table = container({"x": [1.5, 2.5, 1.5, 1.5], "tags": [["a"], ["a"], ["a"], ["b"]], "at": [{"k": 1}] * 4})
    page = Page(evenly.make_report(table))
    assert "2 rows repeat an earlier one except in columns that are passed through; 1 in all columns." in page.text


# --- comparisons --------------------------------------------------------------------------------------------------


def test_a_comparison_begins_with_the_winner_and_has_every_candidate_in_order():
    given = make_table(60)[0]
    kinds = {column.name: column.kind for column in infer_schema(given).columns}
    trials = [make_trial(kinds, seed) for seed in range(4)]
    text = evenly.make_report(given, comparison=trials)
    page, ranked = Page(text), sorted(trials, key=lambda trial: trial.normalized)
    lower = f"{100 * (1 - ranked[0].normalized):.0f} % lower"
    assert "Best: masked lip-none. On " in page.text
    assert f"its error is {lower} than that of filling in" in page.text
    chart = next(chart for chart in charts_of(text) if chart["type"] == "intervals")
    assert chart["values"] == pytest.approx([one.normalized for one in ranked])
    assert chart["lows"] == pytest.approx([one.normalized_interval[1] for one in ranked])
    first = page.elements.index(("section", {"id": "comparison", "aria-labelledby": "comparison-title"}))
    assert first < next(i for i, (_, a) in enumerate(page.elements) if a.get("id") == "columns")


# --- odd tables ---------------------------------------------------------------------------------------------------

ODD = {
    "one column": pd.DataFrame({"x": [1.5, np.nan, 2.5]}),
    "one row": pd.DataFrame({"x": [1.5], "y": ["a"]}),
    "one cell": pd.DataFrame({"x": [np.nan]}),
    "nothing missing": pd.DataFrame({"x": np.arange(20.0), "y": list("ab") * 10}),
    "a column without a cell": pd.DataFrame({"x": [np.nan] * 20, "y": np.arange(20.0)}),
    "constant": pd.DataFrame({"x": [3.5] * 15, "y": ["b"] * 15}),
    "lists": pd.DataFrame({"x": np.arange(12.0), "y": [[1, 2]] * 12}),
    "huge": pd.DataFrame({"x": [1e308, -1e308, np.nan] * 5, "y": np.arange(15.0)}),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
def test_odd_tables_have_a_report_with_and_without_imputed_cells(name):
    given = ODD[name]
    imputer = Imputer("marginal", random_state=0).fit(given)
    full = imputer.transform(given)
    parts = {"filled": full, "draws": draw_cells(imputer, given), "imputer": imputer}
    for text in (evenly.make_report(given), evenly.make_report(given, **parts)):
        assert "nan" not in re.findall(r"[a-z]+", Page(text).text.lower())
        charts_of(text)


def test_200_columns_have_a_report_of_bounded_size():
    rng = np.random.default_rng(0)
    given = pd.DataFrame({f"c{j}": rng.normal(size=150) for j in range(150)})
    given = given.assign(**{f"d{j}": rng.choice([f"class {k}" for k in range(40)], 150) for j in range(50)})
    given = given.mask(rng.random(given.shape) < 0.2)
    trial = make_trial(dict.fromkeys(given, "real"))
    text = evenly.make_report(given, filled=given.bfill().ffill(), trial=trial)
    page = Page(text)
    assert len(text) < 4e6
    charts = charts_of(text)
    assert max(len(chart.get("names", ())) for chart in charts) <= 40
    assert not [chart for chart in charts if chart["type"] == "heat"]  # the strongest pairs are listed instead
    assert "strongest pairs" in page.text
    assert len([a for tag, a in page.elements if tag == "th" and a.get("class") == "upright"]) == 30


def test_hostile_names_and_cells_are_texts_in_every_new_section():
    given, filled = make_table(200)
    kinds = {column.name: column.kind for column in infer_schema(given).columns}
    page = Page(evenly.make_report(given, filled=filled, comparison=[make_trial(kinds)]))
    assert not {"b", "img", "a href"} & {tag for tag, _ in page.elements}
    assert page.texts.count(HOSTILE[0]) >= 6
    assert "<b>bold</b>" in page.texts
