"""The report's text: what it says, what it leaves out, and that nothing of a table can be anything but text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from report_parts import HOSTILE, Page, make_diagnosis, make_table, make_trial

import evenly
from evenly.report.cells import read_cells
from evenly.report.distributions import bin_edges, distribution
from evenly.tables import Column, Schema, infer_schema

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def people():
    given, filled = make_table()
    kinds = {column.name: column.kind for column in infer_schema(given).columns}
    parts = {"filled": filled, "trial": make_trial(kinds), "diagnosis": make_diagnosis(kinds)}
    return given, parts | {"comparison": [make_trial(kinds)], "command": "evenly impute a.csv", "seed": 7}


@pytest.fixture(scope="module")
def page(people):
    return Page(evenly.make_report(people[0], **people[1], title="A & B <i>"))


def test_the_sections_come_in_their_order(page):
    order = [anchor for _, a in page.elements if (anchor := a.get("id")) in SECTIONS]
    assert order == list(SECTIONS)


SECTIONS = (
    *("summary", "comparison", "columns", "accuracy", "rows", "missing", "associations", "diagnosis", "each"),
    "settings",
)


def test_the_summary_has_the_numbers_that_matter(people, page):
    given, parts = people
    missing = int(given.isna().to_numpy().sum())
    assert f"{missing:,} cells of the table" in page.text
    assert "All of them were filled" in page.text
    assert parts["diagnosis"].verdict in page.text
    worse = [one.column for one in parts["trial"].columns if one.normalized_low > 1.0]
    assert worse
    name = worse[0] if worse[0].strip() else "(no name)"
    assert f"Better filled by their mean or most frequent class: {name}" in page.text


@pytest.mark.parametrize(
    ("error", "expected"),
    [(0.1, "is 75 % lower than that of"), (0.4, "is about the same as that of"), (0.5, "is 25 % higher than that of")],
)
def test_the_first_sentence_says_how_much_lower_the_error_is_than_that_of_mean_or_mode(error, expected):
    """In words that cannot be read backwards."""
    given = make_table(50)[0][["age"]]
    (scored,) = make_trial({"age": "real"}).columns
    trial = replace(make_trial({}), columns=(replace(scored, error=error, baseline=0.4),))
    page = Page(evenly.make_report(given, trial=trial))
    assert f"the imputer's error {expected} filling in each column's mean" in page.text.replace("\u00a0", " ")


def test_the_columns_that_gain_least_come_first_in_the_table_and_below(people):
    given, parts = people
    page = Page(evenly.make_report(given, filled=parts["filled"], trial=parts["trial"]))
    ranked = sorted(parts["trial"].columns, key=lambda one: -one.normalized)
    places = [a["data-column"] for tag, a in page.elements if tag == "tr" and "data-column" in a]
    assert [given.columns[int(place)] for place in places] == [one.column for one in ranked]
    assert [a["data-column"] for tag, a in page.elements if tag == "article"] == places


def test_the_report_of_an_imputer_does_not_speak_of_other_trainings(people):
    given, parts = people
    page = Page(evenly.make_report(given, filled=parts["filled"], trial=parts["trial"]))
    for word in ("overlooked", "Smoothness", "Gradient", "Verdict", "short training"):
        assert word not in page.text


def test_beside_an_imputer_the_diagnosis_says_that_it_is_about_another_model(people, page):
    assert "It is not the imputer that filled the table." in page.text
    given, parts = people
    alone = Page(evenly.make_report(given, diagnosis=parts["diagnosis"])).text
    assert "not the imputer" not in alone
    assert "Smoothness, std" in alone


def test_every_column_has_its_error_with_interval_beside_the_baseline(people, page):
    for one in people[1]["trial"].columns:
        measure = one.measure[0].upper() + one.measure[1:]
        plain = "the mean" if one.covered is not None else "the most frequent class"
        low, high, baseline = (f"{value:#.3g}" for value in (one.low, one.high, one.baseline))
        expected = (
            f"{measure} {one.error:#.3g} (90 % interval {low} to {high}) on 60 hidden cells; {plain} gives {baseline}"
        )
        assert expected in re.sub(r" +", " ", page.text)


def test_what_was_not_given_is_left_out():
    given, _ = make_table(50)
    text = evenly.make_report(given)
    page = Page(text)
    assert page.anchors() & set(SECTIONS) == {"summary", "columns", "missing", "associations", "each", "settings"}
    for word in ("hidden", "Mean or mode", "Overlooked", "Verdict", "Seed", "filled", "imputed"):
        assert word not in page.text


def test_a_table_without_missing_cells_says_so():
    _, full = make_table(50)
    assert "Nothing was missing: there was no cell to fill." in Page(evenly.make_report(full, filled=full)).text


def test_cells_that_stay_missing_are_counted():
    given = pd.DataFrame({"a": [1.5, np.nan, 2.5, 4.5], "b": [np.nan] * 4})
    text = Page(evenly.make_report(given, filled=given.fillna({"a": 2.0}))).text
    assert "1 cell was filled; 4 stay missing" in text
    assert "No observed cell" in text


def test_columns_that_were_not_scored_are_shown_without_an_error(people):
    given, parts = people
    trial = replace(parts["trial"], columns=parts["trial"].columns[:1])
    page = Page(evenly.make_report(given, trial=trial))
    assert page.text.count("on 60 hidden cells;") == 1
    assert len([a for tag, a in page.elements if tag == "article"]) == given.shape[1]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_texts(page, name):
    shown = name.replace("\x00", "\ufffd")
    assert shown in page.texts or not name.strip()


def test_nothing_of_a_table_becomes_an_element(people, page):
    """The same parts under harmless names give the same elements."""
    given, parts = people
    harmless = {name: f"column {j}" for j, name in enumerate(given.columns)}
    kinds = {harmless[column.name]: column.kind for column in infer_schema(given).columns}
    trial = make_trial(kinds)
    same = parts | {"trial": trial, "diagnosis": make_diagnosis(kinds), "comparison": [trial]}
    cells = {"<b>bold</b>": "one", "</script>": "two", "plain": "three"}
    given, same["filled"] = (frame.replace(cells).rename(columns=harmless) for frame in (given, parts["filled"]))
    other = Page(evenly.make_report(given, **same, title="harmless"))
    tags = [[tag for tag, _ in one.elements] for one in (page, other)]
    # A name without a letter has an element of its own.
    assert [tag if tag != "em" else "bdi" for tag in tags[0]] == tags[1]
    assert len(page.scripts) == 3
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]


def test_the_data_cannot_end_their_element(page):
    data = page.scripts[0]
    assert not re.search("[<>&\u2028\u2029]", data)
    names = {name for chart in json.loads(data) for name in chart.get("names", ())}
    assert "<script>alert(1)</script>" in names


def test_halves_of_characters_do_not_stop_a_report(tmp_path):
    evenly.write_report(tmp_path / "r.html", [[1.0], [2.5]], title="a\ud83db", command="\udfff")
    assert "<h1>a\ufffdb</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_only_the_two_scripts_of_the_page_may_run_and_nothing_may_be_loaded(page):
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a) or ""
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    plotly = gzip.decompress(base64.b64decode(page.scripts[1]))
    hashes = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in (page.scripts[2].encode(), plotly)]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert rules["img-src"] == "data:"
    links = [a[key] or "" for _, a in page.elements for key in ("src", "href", "action") if key in a]
    assert all(link.startswith(("#", "data:,")) for link in links)


def test_plotly_is_there_whole(page):
    from plotly.offline import get_plotlyjs

    assert gzip.decompress(base64.b64decode(page.scripts[1])).decode() == get_plotlyjs()


def test_every_chart_has_a_text_and_its_numbers(page):
    plots = [a for _, a in page.elements if a.get("class") == "plot"]
    assert len(plots) == len(json.loads(page.scripts[0]))
    assert all(a["role"] == "img" and a["aria-label"] for a in plots)
    assert len([tag for tag, _ in page.elements if tag == "details"]) == len(plots)


def test_observed_and_imputed_cells_are_drawn_as_shares_so_that_few_compare_with_many():
    full = pd.DataFrame({"a": ["x", "x", "x", "y"] * 10 + ["x", "y", "y", "y"]})
    given = full.where((np.arange(44) < 40)[:, None])
    charts = json.loads(Page(evenly.make_report(given, filled=full)).scripts[0])
    chart = next(one for one in charts if one["type"] == "classes")
    drawn = {label: shares for label, *shares in zip(chart["labels"], chart["observed"], chart["imputed"], strict=True)}
    assert drawn == {"x": [0.75, 0.25], "y": [0.25, 0.75]}


@pytest.mark.parametrize("epochs", [1, 79, 80, 81, 1000])
def test_a_long_curve_is_thinned_out_but_ends_where_the_training_did(people, epochs):
    given, _ = people
    kinds = {column.name: column.kind for column in infer_schema(given).columns}
    diagnosis = make_diagnosis(kinds, epochs)
    page = Page(evenly.make_report(given, diagnosis=diagnosis))
    line = next(chart for chart in json.loads(page.scripts[0]) if chart["type"] == "curves")["lines"][0]
    name = next(column.name for column in infer_schema(given).columns if column.kind != "ignore")
    training = diagnosis.trainings[0]
    assert line["epochs"][-1] == epochs
    assert len(line["epochs"]) == len(line["gain"]) <= 80
    for epoch, gain in zip(line["epochs"], line["gain"], strict=True):
        assert gain == pytest.approx(
            training.log_likelihood[name][epoch - 1] - training.baseline[name], rel=1e-3, abs=1e-6
        )


def test_numbers_that_are_none_do_not_reach_the_charts(people):
    given, parts = people
    diagnosis = parts["diagnosis"]
    first, *rest = diagnosis.columns
    first = replace(first, smoothness={"none": np.inf, "std": 0.0, "lip": np.nan}, gradient_share={"std": np.nan})
    training = diagnosis.trainings[0]
    curves = dict(training.log_likelihood) | {first.column: (np.nan, -np.inf, -1.0)}
    broken = replace(
        diagnosis,
        columns=(first, *rest),
        trainings=(replace(training, log_likelihood=curves), *diagnosis.trainings[1:]),
    )
    trial = parts["trial"]
    scored = replace(trial.columns[0], error=np.nan, low=np.nan, high=np.inf)
    page = Page(evenly.make_report(given, diagnosis=broken, trial=replace(trial, columns=(scored, *trial.columns[1:]))))

    def refuse(text: str) -> float:
        raise AssertionError(text)

    charts = json.loads(page.scripts[0], parse_constant=refuse)
    curves = [chart["lines"][0]["gain"] for chart in charts if chart["type"] == "curves"]
    assert [None, None, 0.0] in curves
    assert "nan" not in page.text.lower()
    assert "inf" not in re.findall(r"\w+", page.text.lower())


def test_the_same_arguments_give_the_same_bytes(people, tmp_path):
    given, parts = people
    evenly.write_report(tmp_path / "a.html", given, **parts)
    assert (tmp_path / "a.html").read_bytes() == evenly.make_report(given, **parts).encode()


def test_60_columns_of_30_000_rows_stay_under_6_megabytes_in_a_few_seconds():
    rng = np.random.default_rng(0)
    classes = np.array([f"class {k}" for k in range(60)])
    columns = {f"{j} {'long name ' * 4}": rng.lognormal(size=30_000) for j in range(40)}
    columns |= {f"c{j}": rng.choice(classes, 30_000) for j in range(20)}
    full = pd.DataFrame(columns)
    given = full.mask(rng.random(full.shape) < 0.2)
    kinds = {name: "categorical" if name.startswith("c") else "positive" for name in columns}
    trial, diagnosis = make_trial(kinds), make_diagnosis(kinds, epochs=500)
    start = time.process_time()
    text = evenly.make_report(given, filled=full, trial=trial, diagnosis=diagnosis)
    assert time.process_time() - start < 8.0
    assert len(text.encode()) < 6e6


def test_no_cell_but_the_examples_is_in_the_report():
    full = pd.DataFrame({"secret": np.random.default_rng(0).normal(123456.0, 10.0, 500)})
    text = evenly.make_report(full.mask(np.arange(500)[:, None] % 7 == 0), filled=full)
    extremes = {full["secret"].min(), full["secret"].max()}  # where the bins end
    assert not [value for value in full["secret"] if repr(value) in text and value not in extremes]


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "numpy"])
def test_any_table_is_reported(container):
    pandas = pd.DataFrame({"x0": [1.5, None, 3.25, 4.0, 4.5], "x1": ["a", "b", None, "a", "b"]})
    if container == "polars":
        table = pytest.importorskip("polars").from_pandas(pandas)
    elif container == "pyarrow":
        table = pytest.importorskip("pyarrow").Table.from_pandas(pandas)
    else:
        table = pandas.to_numpy(dtype=object) if container == "numpy" else pandas
    assert "2 cells of the table (20 %) were missing." in Page(evenly.make_report(table)).text


def test_an_imputer_gives_its_settings_schema_and_curves():
    schema = Schema(columns=[Column(name="a", kind="real"), Column(name="b", kind="ignore", note="declared")])
    imputer = SimpleNamespace(
        schema_=schema,
        history_={"log_likelihood": {"a": np.array([-2.0, -1.5])}},
        baseline_={"a": -1.75},
        get_params=lambda: {"model": "masked", "random_state": 3, "schema": schema, "rng": np.random.RandomState(0)},
    )
    page = Page(evenly.make_report(pd.DataFrame({"a": [1.0, 2.0, 4.5], "b": ["x", "y", "z"]}), imputer=imputer))
    charts = json.loads(page.scripts[0])
    assert [chart["type"] for chart in charts] == ["numbers", "curves"]
    assert charts[1]["lines"] == [{"method": "the imputer", "epochs": [1, 2], "gain": [-0.25, 0.25]}]
    assert "Seed: 3." in page.text
    assert "'masked'" in page.text
    assert "0x" not in page.text  # no address in memory, which would differ from run to run
    assert "jax" in page.text


def test_a_filled_table_of_other_rows_is_refused():
    with pytest.raises(evenly.TableError, match="2 rows in the filled table"):
        evenly.make_report([[1.0], [2.0], [3.0]], filled=[[1.0], [2.0]])


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_without_plotly_or_jinja2_the_extra_is_named(package, monkeypatch):
    evenly.report.page._plotly.cache_clear()
    evenly.report.page._templates.cache_clear()
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(evenly.MissingExtraError, match=r"evenly\[tool\]"):
        evenly.make_report([[1.0], [2.0]])


def test_a_broken_write_leaves_the_old_report(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(evenly.TableError):
        evenly.write_report(path, None)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]


# --- distributions ----------------------------------------------------------------------------------------------


def distributions(given, filled, schema):
    return {one.name: distribution(one) for one in read_cells(given, filled, None, schema)}


def test_counts_are_those_of_the_cells():
    given, filled = make_table(300)
    found = distributions(given, filled, infer_schema(given))
    for name in ("age", "income", "smoker"):
        gone, own = given[name].isna(), found[name]
        assert (own.n_missing, own.n_filled, own.n_observed) == (gone.sum(), gone.sum(), (~gone).sum())
        if name == "smoker":
            for k, label in enumerate(own.classes):
                assert own.observed[k] == (given[name] == label).sum()
                assert own.imputed[k] == (filled[name][gone] == label).sum()
        else:
            last = own.edges[-1]
            for k, (low, high) in enumerate(zip(own.edges[:-1], own.edges[1:], strict=True)):
                inside = (filled[name] >= low) & ((filled[name] < high) | ((high == last) & (filled[name] == last)))
                assert (own.observed[k], own.imputed[k]) == ((inside & ~gone).sum(), (inside & gone).sum())
            assert sum(own.observed) + sum(own.imputed) + own.beyond == len(filled)


def test_markers_of_missing_cells_are_missing():
    given = pd.DataFrame({"a": ["1.5", "?", "2.5", "NA", "3.5"], "b": [1.0, -999.0, 2.5, 3.5, -999.0]})
    schema = infer_schema(given, missing={"b": [-999]})
    found = distributions(given, None, schema)
    assert (found["a"].n_missing, found["b"].n_missing) == (2, 2)
    assert found["b"].edges[0] > -10.0


def test_rare_classes_are_counted_together():
    cells = [f"c{k:02d}" for k in range(30) for _ in range(k + 1)]
    found = distributions(pd.DataFrame({"a": cells}), None, infer_schema(pd.DataFrame({"a": cells})))["a"]
    assert len(found.classes) == 21
    assert (found.classes[0], found.observed[0]) == ("c29", 30)
    assert (found.classes[-1], found.observed[-1]) == ("other (10 classes)", sum(range(1, 11)))
    assert sum(found.observed) == len(cells)


def test_classes_with_an_order_keep_it_and_others_come_by_size():
    cells = pd.Categorical(["mid"] * 5 + ["low"] * 2 + ["high"] * 9, ["low", "mid", "high"], ordered=True)
    words = cells.rename_categories({"low": "ash", "mid": "beech", "high": "yew"}).astype(str)
    given = pd.DataFrame({"level": cells, "word": words})
    found = distributions(given, None, infer_schema(given))
    assert (found["level"].classes, found["level"].observed) == (("low", "mid", "high"), (2, 5, 9))
    assert (found["word"].classes, found["word"].observed) == (("yew", "beech", "ash"), (9, 5, 2))


def test_imputed_cells_of_rare_classes_are_counted_together_too():
    full = pd.DataFrame({"a": [f"c{k:02d}" for k in range(30) for _ in range(k + 1)]})
    given = full.where((full.index % 5 < 4)[:, None])
    found = distributions(given, full, infer_schema(given))["a"]
    assert found.classes[-1].startswith("other (")
    assert found.imputed[-1] > 0
    assert sum(found.imputed) == found.n_filled == given["a"].isna().sum()


@pytest.mark.parametrize(
    "values",
    [[3.0], [1e300, -1e308, 1e308], [1e-300, 2e-300], [0.0] * 999 + [1.0], [1e9 + 1e-3, 1e9], [5e-324, 0.0]],
    ids=["one", "huge", "tiny", "rare", "far", "least"],
)
def test_bins_hold_whatever_numbers_there_are(values):
    edges = bin_edges(np.array(values))
    assert np.isfinite(edges).all()
    assert (np.diff(edges / np.abs(edges).max()) >= 0).all()
    assert np.histogram(values, edges)[0].sum() >= 0.98 * len(values)


def test_a_few_far_cells_do_not_squeeze_the_others():
    values = np.append(np.random.default_rng(0).normal(size=1000), [1e6, -1e6])
    edges = bin_edges(values)
    assert -4 < edges[0] < edges[-1] < 4
    found = distributions(values[:, None], None, Schema(columns=[Column(name="x0", kind="real")]))["x0"]
    assert found.beyond >= 2


def test_whole_numbers_have_a_bin_each():
    assert bin_edges(np.array([0.0, 1.0, 3.0])).tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]


def test_the_numbers_of_dates_are_days_from_a_day_that_is_named():
    table = pd.DataFrame({"seen": ["31.12.2023", "02.01.2024", None, "01.01.2024"] * 5, "x": np.arange(20) + 0.5})
    page = Page(evenly.make_report(table, filled=evenly.Imputer("marginal").fit_transform(table)))
    assert "date · normal · days from 2024-01-01 · 5 of 20 cells missing" in page.text
