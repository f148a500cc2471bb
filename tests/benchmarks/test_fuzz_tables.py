"""The promises of the library on hostile tables: `benchmarks/fuzz_tables.py` on a few of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sizes import examples

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import fuzz_tables

    yield fuzz_tables
    for name in ("fuzz_tables", "hostile_tables"):
        sys.modules.pop(name)


@pytest.mark.sized
def test_every_promise_holds_on_hostile_tables(fuzz):
    wrong = [found for seed in range(examples(300)) if (found := fuzz.run_case(seed)) is not None]
    assert not wrong


def test_broken_promises_are_found(fuzz, monkeypatch):
    """A check that finds nothing would hold for everything."""
    full = fuzz.Imputer.transform
    monkeypatch.setattr(fuzz.Imputer, "transform", lambda self, table: full(self, table) * 1)
    assert sum(fuzz.run_case(seed) is not None for seed in range(30)) > 2
