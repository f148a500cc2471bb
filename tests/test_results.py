"""The page of results holds what its recorded runs say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from evenly.paper.sweep import Run, read_records

DOCS = Path(__file__).parents[1] / "docs"


def load_script(name: str = "make_results"):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_is_made_from_the_recorded_runs():
    script = load_script()
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, read_records(script.RUNS)) == text


def test_the_recorded_runs_are_finished_and_differ():
    records = read_records(load_script().RUNS)
    assert all("failed" not in record for record in records)
    assert len({Run(**record["run"]) for record in records}) == len(records)


def test_the_page_of_peers_is_made_from_the_recorded_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    script = load_script("make_peers")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text
