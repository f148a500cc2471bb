"""Pages of results are what their scripts write from the records; what the sentences say is counted by hand here."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    return importlib.import_module


@pytest.mark.parametrize("name", ["default_method", "gamma_trick"])
def test_a_page_is_what_its_script_writes(load: Any, name: str) -> None:
    script: ModuleType = load(f"make_{name}")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read()) == text


def test_settings_and_balance_are_what_their_script_writes(load: Any) -> None:
    script: ModuleType = load("make_peers")
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def comparison(preparation: str, log_loss: float, **more: Any) -> dict[str, Any]:
    about = {"part": "pipelines", "table": "heart", "rows": 9, "classifier": "network", "accuracy": 0.5, "moved": 0.0}
    return about | {"preparation": preparation, "log_loss": log_loss} | more


def test_the_answer_counts_in_how_many_comparisons_the_rival_is_better(load: Any) -> None:
    found = load("make_default_method").answer(
        [
            comparison("lip-gamma, mean", 0.6),
            comparison("lip-gamma, drawn", 0.9, moved=0.25),
            comparison("lip-gamma, standardized", 0.2),
            comparison("one-hot, standardized", 0.3),
        ]
    )
    assert "lower log-loss in 2 of 3 comparisons" in found
    assert "from 2.00 to 0.67" in found
    assert "up to 0.25 when" in found


def test_the_papers_error_is_compared_with_the_nearest_number_of_draws(load: Any) -> None:
    about = {"group": "Poisson", "paper": 0.07, "matched": 0.51, "plain": 0.5, "fits": 5}
    records = [about | {"draws": 100, "away": -6.5}, about | {"draws": 1000, "away": 0.4}]
    found = load("make_gamma_trick").answer(records)
    assert "the mean of about 1,000 draws" in found
    assert "0.4 standard deviations" in found
    assert "more than 6 from" in found
    assert "the same to 2 %" in found
