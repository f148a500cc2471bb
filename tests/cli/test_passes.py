"""The way of the data: a command opens a table once, and no column of it is profiled or encoded twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from commands import run

from evenly import write_table
from evenly.data import load_heart
from evenly.evaluation import assessment
from evenly.tables import cells, frames, profile


@pytest.fixture
def passes(monkeypatch):
    """Who was opened, profiled and encoded: what was done, and to which cells."""
    done, kept = [], []

    def counting(what, before, place):
        def count(*arguments):
            subject = arguments[place]
            native = getattr(subject, "native", subject)
            kept.append((subject, native))  # or another one might get its address
            done.append((what, getattr(subject, "name", ""), id(native)))
            return before(*arguments)

        return count

    monkeypatch.setattr(frames, "_open", counting("open", frames._open, 0))
    monkeypatch.setattr(profile, "_profile", counting("profile", profile._profile, 0))
    monkeypatch.setattr(cells, "_encode", counting("encode", cells._encode, 1))
    return done


@pytest.fixture
def csv(tmp_path):
    write_table(load_heart(), tmp_path / "heart.csv")
    return tmp_path / "heart.csv"


def impute(csv, passes, *more):
    """Impute a table with a report; returns how often each pass was made over cells of that name."""
    passes.clear()
    given = ("-o", csv.with_name("full.csv"), "--report", csv.with_name("report.html"), "--quiet", *more)
    done = run("impute", csv, *given)
    assert done.returncode == 0, done.stderr
    assert max(Counter(passes).values()) == 1  # over the same cells: once
    # The given table and, for the report, the complete one, and ten small ones with the rows that are drawn.
    assert sum(what == "open" for what, *_ in passes) == 12
    return set(Counter((what, name) for what, name, _ in passes if what != "open").values())


def test_impute_with_a_report_makes_each_pass_over_the_table_once(passes, csv):
    # Beside the given and the complete table there are the codes of the trial, with hidden cells, and the rows that are
    # drawn: as given, and ten times drawn.
    assert impute(csv, passes, "--model", "marginal") <= {1, 2, 14}


def test_impute_with_a_report_trains_nothing_but_the_imputer(csv, monkeypatch):
    def refuse(*arguments, **settings):
        raise AssertionError("a diagnosis was made")

    monkeypatch.setattr(assessment, "diagnose", refuse)
    given = ("-o", csv.with_name("full.csv"), "--report", csv.with_name("report.html"), "--model", "marginal")
    assert run("impute", csv, *given).returncode == 0
    page = csv.with_name("report.html").read_text()
    assert "overlooked" not in page.partition("</style>")[2].partition("<script")[0]


@pytest.mark.more
def test_so_it_does_with_a_trained_model(passes, csv):
    assert impute(csv, passes, "--epochs", 1) <= {1, 2, 14}


def test_a_fit_encodes_its_table_once(passes):
    from evenly import Imputer

    table = np.random.default_rng(0).normal(size=(50, 3))
    Imputer("marginal").fit(table)
    assert Counter(what for what, *_ in passes) == {"open": 1, "profile": 3, "encode": 3}
