"""The page of results holds what its recorded runs say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from evenly.paper.records import Run, read_records

DOCS = Path(__file__).parents[2] / "docs"


def load_script(name: str = "make_results"):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_is_made_from_the_recorded_runs():
    script = load_script()
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, read_records(script.RUNS, revision=1)) == text


def test_the_recorded_runs_are_finished_and_differ():
    records = read_records(load_script().RUNS, revision=1)
    assert all("failed" not in record for record in records)
    assert len({Run(**record["run"]) for record in records}) == len(records)


def test_the_page_of_peers_is_made_from_the_recorded_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_peers")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_the_costs_of_engines_are_made_from_the_recorded_jobs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_engines")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read()) == text


def test_projected_costs_are_those_of_a_straight_line(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_engines")

    def cost(rows: int, columns: int) -> float:
        return 3.0 + rows * (2e-7 + 5e-8 * columns)

    measured = [(1_000_000, 12), (4_000_000, 12), (1_000_000, 48)]
    records = [
        {"job": "a", "rows": rows, "columns": columns, "fit": 1.0, "write": cost(rows, columns) - 1.0}
        for rows, columns in measured
    ]
    for rows, columns in ((20_000_000, 12), (10**9, 1000)):
        assert abs(script.project(records, "a", rows, columns) / cost(rows, columns) - 1.0) < 1e-9
    assert script.project(records[:2], "a", 10**9, 1000) is None
