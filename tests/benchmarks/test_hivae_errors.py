"""The benchmark of HI-VAE: its own measure of error, by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from evenly.tables import Column

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "hivae.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("hivae_benchmark", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_errors_are_rates_of_classes_distances_of_ordered_ones_and_root_mean_squares_over_the_range(script):
    columns = [
        Column(name="grade", kind="ordinal", classes=["low", "middle", "high", "top"]),
        Column(name="color", kind="categorical", classes=["red", "blue"]),
        Column(name="age", kind="real"),
    ]
    truth = np.array([[0.0, 0.0, 10.0], [3.0, 1.0, 60.0], [1.0, 1.0, 20.0], [np.nan, 0.0, 30.0]])
    predicted = np.array([[3.0, 1.0, 10.0], [1.0, 1.0, 57.0], [2.0, 0.0, 24.0], [0.0, 0.0, 0.0]])
    hidden = np.array([[False] * 3, [True] * 3, [True] * 3, [True, True, False]])
    found = script.own_errors(columns, truth, predicted, hidden)
    np.testing.assert_allclose(found, [(2 + 1) / 2 / 4, 1 / 3, np.sqrt((9 + 16) / 2) / 50])
