"""The comparison of correlations: which pairs count, and how far they are off."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from evenly.tables import Column

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs")]
correlations, make_pooling = import_module("correlations"), import_module("make_pooling")

COLUMNS = [
    Column(name="x", kind="real"),
    Column(name="answer", kind="binary", classes=[0, 1]),
    Column(name="color", kind="categorical", classes=[0, 1, 2]),
]


def test_classes_are_indicators_and_a_missing_cell_is_missing_in_all_of_them():
    made, owners = correlations.indicators(COLUMNS, np.array([[0.5, 1.0, 2.0], [1.5, 0.0, np.nan]]))
    np.testing.assert_array_equal(made, [[0.5, 1.0, 0.0, 1.0], [1.5, 0.0, np.nan, np.nan]])
    assert owners == [0, 1, 2, 2]


def test_pairs_within_a_column_do_not_count_and_the_others_are_pearsons():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=200), rng.integers(2, size=200), rng.integers(3, size=200)])
    found = correlations.correlations(COLUMNS, table)
    blue, red = table[:, 2] == 1, table[:, 2] == 2
    x, answer = table[:, 0], table[:, 1]
    pairs = [(x, answer), (x, blue), (x, red), (answer, blue), (answer, red)]
    np.testing.assert_allclose(found, [np.corrcoef(a, b)[0, 1] for a, b in pairs])


def test_weaker_relations_have_a_slope_below_one():
    complete = np.array([0.8, -0.4, np.nan])
    assert correlations.compare(complete, complete) == pytest.approx((0.0, 1.0))
    assert correlations.compare(complete, np.array([0.4, -0.2, 0.9])) == pytest.approx((0.3, 0.5))


def test_means_weaken_relations_and_pairs_of_visible_cells_do_not():
    settings = {"dataset": "iris", "percent": 20, "mask": 1}
    mean = correlations.run({**settings, "method": "mean-or-mode", "revision": 1})["kept"]["points"]
    pairs = correlations.run({**settings, "method": "pairs", "revision": 1})["kept"]["gaps"]
    assert mean["slope"] < 0.9 < pairs["slope"] < 1.1
    assert pairs["off"] < mean["off"]


class Nines:
    """An imputer that predicts nine for every cell, visible ones included."""

    def __init__(self, schema, random_state):
        pass

    def fit(self, frame):
        return self

    def sample(self, frame, n):
        return [frame.fillna(float(i)) for i in range(n)]

    def predict_cells(self, frame):
        return np.full(frame.shape, 9.0)


def test_visible_cells_stay_in_point_estimates(monkeypatch):
    monkeypatch.setattr(correlations.evenly, "Imputer", Nines)
    found = correlations.by_evenly(COLUMNS[:2], np.array([[0.5, np.nan], [np.nan, 1.0]]), 0)
    assert found["points"][0].tolist() == [[0.5, 9.0], [9.0, 1.0]]
    assert [one[0, 1] for one in found["draws"]] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_page_has_a_row_for_each_way_to_impute_over_the_masks_of_all_methods():
    kept = {"draws": {"off": 0.012, "slope": 0.991}, "points": {"off": 0.034, "slope": 1.2}}
    runs = [{"dataset": "wine", "mask": mask, "method": "evenly", "kept": kept} for mask in (1, 2)]
    runs += [
        {"dataset": "wine", "mask": mask, "method": "pairs", "kept": {"gaps": {"off": 0.1 * mask, "slope": 1.0}}}
        for mask in (1, 2, 3)
    ]
    runs.append({"dataset": "heart", "mask": 1, "method": "evenly", "kept": {"draws": {"off": 0.02, "slope": 1.0}}})
    runs.append({"dataset": "iris", "mask": 1, "method": "pairs", "kept": {"gaps": {"off": 0.1, "slope": 1.0}}})
    lines = make_pooling.correlations_table(correlations.means(runs)).splitlines()
    assert lines[0] == "| imputed | wine (masks 1, 2) | heart (mask 1) |"
    assert lines[2:] == [
        "| nothing imputed, pairs of visible cells | 0.150 (1.00) | – |",
        "| `Imputer()`, draws | 0.012 (0.99) | 0.020 (1.00) |",
        "| `Imputer()`, point estimates | 0.034 (1.20) | – |",
    ]


def test_every_way_to_impute_has_a_label():
    assert {method for method, _ in make_pooling.WAYS} == set(correlations.METHODS)
