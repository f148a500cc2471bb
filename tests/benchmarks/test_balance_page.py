"""The page about balancing rules: choices by validation cells, ratios, intervals and the answer, by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location("make_balance", DOCS / "make_balance.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def record(method, rule, ratio, validation=None, mask=1, **more):
    about = {
        "dataset": "wine",
        "model": "vae",
        "epochs": 5,
        "overlooked": [],
        "log_likelihood": 0.0,
        "chosen": {"factor": 1.0},
    }
    valid = {f"{rule} x 1": 9.0, f"{rule} x 3": ratio if validation is None else validation}
    return about | {"method": method, "rule": rule, "ratio": ratio, "mask": mask, "validation": valid} | more


FOUR = [
    record("std-none", "none", 0.8),
    record("lip-none", "none", 0.6),
    record("std-none", "mgda", 0.7),
    record("lip-none", "mgda", 0.4),
]


def test_each_way_chooses_on_validation_cells_and_is_scored_on_hidden_ones(script):
    more = [
        record("lip-gamma", "none", 0.72, validation=0.1),  # chosen, though lip-none is better on the hidden cells
        record("std-none", "online", 0.1, validation=0.0),  # no multitask rule
    ]
    found = script.gains(script.Runs([*FOUR, *more]))
    ratios = [np.exp(one[1]) for (one,) in found.values()]
    np.testing.assert_allclose(ratios, [0.72 / 0.8, 0.7 / 0.8, 0.4 / 0.8])


def test_the_answer_says_what_it_rests_on(script):
    found = script.answer(script.Runs(FOUR))
    assert found.startswith(
        "**On the tables that were run, Lipschitz standardization adds to the multitask rules** (1 pair of"
    )
    assert "run: `mgda`; untested: `uncertainty`, `priority`," in found
    assert "There is one mask for each, and so no interval" in found
    assert "| both | 0.500 | 1 of 1 | 0 of 1 |" in found
    assert script.answer(script.Runs(FOUR[:3])) == script.UNTESTED


def test_only_the_longest_trainings_count(script):
    shorter = record("lip-none", "none", 0.1, epochs=4)
    assert script.answer(script.Runs([*FOUR, shorter])) == script.answer(script.Runs([shorter, *FOUR]))


def test_several_masks_have_an_interval_over_them(script):
    logs = np.log([[0.9, 0.8], [0.7, 0.8]])
    blocks = [dict(enumerate(row)) for row in logs.tolist()]
    means = logs.mean(0)
    away = 12.7062 * means.std(ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    low, high = np.exp(means.mean() + np.array([-away, away]))
    assert script.summary(blocks) == f"{np.exp(logs.mean()):.3f} [{low:.3f}, {high:.3f}]"
    assert script.summary([{1: 0.0}, {}]) == "1.000"
    assert script.summary([{}]) == "untested"


def test_rules_are_compared_with_the_plain_sum_under_the_same_method(script):
    shown = script.by_rule(script.Runs([*FOUR[:3], FOUR[3] | {"log_likelihood": 0.5}])).splitlines()
    assert "| `mgda` | 0.875 (1) | 0.667 (1) | untested | +0.250 |" in shown
    assert "| `nash` | untested | untested | untested | untested |" in shown


def test_columns_that_are_overlooked_are_named(script):
    runs = [FOUR[0] | {"overlooked": ["color"]}, FOUR[2] | {"overlooked": ["color"]}]
    assert "| wine | vae | `color` | std-none: `none`, `mgda` |" in script.overlooked(script.Runs(runs))
    assert script.overlooked(script.Runs(FOUR)) == "No column, in no run."


def test_what_was_not_run_is_said(script):
    shown = script.coverage(script.Runs(FOUR))
    assert "| wine | vae | 5 | 1 | 4 | `lip`, `online`" in shown
    assert "Untested: adult, breast, credit, letter, spam;" in shown
    shown = script.coverage(script.Runs([*FOUR[:3], FOUR[3] | {"chosen": {"factor": 3.0}}]))
    assert "Of 4 runs that tuned their learning rate, 1 chose the highest:" in shown


def test_hivae_is_averaged_over_masks_beside_the_published_vae(script):
    columns = {"ph": 0.1, "density": 0.3, "color": 0.8, "quality": 0.0}  # two positive, a binary, a count
    one = {"dataset": "wine", "model": "hivae", "trained_epochs": 7, "mode": {"columns": columns}}
    shown = script.of_hivae([one, one | {"mode": {"columns": columns | {"ph": 0.2}}}])
    assert "| wine | hivae | mode | 7 | 2 | 0.3125 | 0.2250 | 0.4000 |" in shown
    assert "| wine | vae, std-none, as published | mode | 2000 | 10 | – | 0.076 | 0.089 |" in shown


def test_the_page_is_made_from_the_records_beside_it(script):
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text, script.read(script.RUNS), script.read(script.OF_HIVAE)) == text
