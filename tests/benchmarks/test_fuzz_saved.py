"""Saved files under random edits: each is refused in one sentence, changes nothing, or can be used."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

CASES = 1_500


@pytest.mark.more
def test_no_edit_of_a_saved_file_crashes_or_quietly_differs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    script = importlib.import_module("fuzz_saved")
    assert [wrong for seed in range(CASES) if (wrong := script.run_case(seed))] == []
