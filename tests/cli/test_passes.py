"""The way of the data: a command opens a table once, and no column of it is profiled or encoded twice."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from commands import run

from evenly import evaluation, write_table
from evenly.data import load_heart
from evenly.tables import cells, frames, profile


@pytest.fixture
def passes(monkeypatch):
    """Who was opened, profiled and encoded: what was done, and to which cells."""
    done, kept = [], []

    def counting(what, before, place):
        def count(*arguments):
            subject = arguments[place]
            kept.append(subject)  # or another one might get its address
            done.append((what, getattr(subject, "name", ""), id(getattr(subject, "native", subject))))
            return before(*arguments)

        return count

    monkeypatch.setattr(frames, "_open", counting("open", frames._open, 0))
    monkeypatch.setattr(profile, "_profile", counting("profile", profile._profile, 0))
    monkeypatch.setattr(cells, "_encode", counting("encode", cells._encode, 1))
    return done


def test_impute_with_a_report_makes_each_pass_over_the_table_once(passes, monkeypatch, tmp_path):
    monkeypatch.setattr(evaluation.assessment, "diagnose", partial(evaluation.diagnose, epochs=1))
    heart = load_heart()
    write_table(heart, tmp_path / "heart.csv")
    passes.clear()
    given = ("--report", tmp_path / "report.html", "--epochs", 1, "--quiet")
    done = run("impute", tmp_path / "heart.csv", "-o", tmp_path / "full.csv", *given)
    assert done.returncode == 0, done.stderr
    assert max(Counter(passes).values()) == 1
    by_column = Counter((what, name) for what, name, _ in passes if what != "open")
    # Four tables have these columns: the given one, those of the trial and the diagnosis with hidden cells (codes,
    # which are only looked up), and the complete one, which the report compares with the given one.
    assert set(by_column.values()) <= {1, 2, 3, 4}
    assert sum(what == "open" for what, *_ in passes) == 2


def test_a_fit_encodes_its_table_once(passes):
    from evenly import Imputer

    table = np.random.default_rng(0).normal(size=(50, 3))
    Imputer("marginal").fit(table)
    assert Counter(what for what, *_ in passes) == {"open": 1, "profile": 3, "encode": 3}
