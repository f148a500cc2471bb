"""The report of a table that was filled by rules lists them, and in how many rows each was followed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import run
from report_parts import Page

from evenly import EvenlyWarning, Imputer, make_report
from evenly.imputation import RuleCount, count_rules

pytest.importorskip("plotly")
RULES = ["total = a + b", "0 <= a <= total", "births only if sex == 'female'"]


def ruled() -> pd.DataFrame:
    rng, n = np.random.default_rng(0), 80
    a, b = rng.integers(1, 50, (2, n)).astype(float)
    sex = rng.choice(["female", "male"], n)
    births = np.where(sex == "female", rng.poisson(2.0, n), np.nan)
    table = pd.DataFrame({"a": a, "b": b, "total": a + b, "sex": sex, "births": births})
    table.loc[:9, "total"] = np.nan
    table.loc[5:14, "a"] = np.nan  # in rows 5 to 9 with the total
    table.loc[20:22, "total"] += 7.0  # contradict the sum
    return table


def fill(table):
    imputer = Imputer("marginal", rules=RULES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        return imputer, imputer.fit_transform(table)


@pytest.mark.parametrize("make", [lambda table: table, pl.from_pandas])
def test_rows_are_counted_by_what_was_missing(make):
    table = make(ruled())
    imputer, full = fill(table)
    total, order, births = count_rules(imputer, table, full)
    assert total == RuleCount("total = a + b", 15, 0, 3)
    assert order == RuleCount("0 <= a <= total", 15, 0, 0)
    assert births.n_filled == ruled()["births"].isna().sum()
    assert (births.n_against, births.n_observed) == (0, 0)


def test_rows_that_no_value_repairs_are_counted():
    table = ruled()
    imputer, full = fill(table)
    full.loc[:3, "total"] += 1.0
    assert count_rules(imputer, table, full)[0] == RuleCount("total = a + b", 15, 4, 3)


def test_the_report_lists_the_rules():
    table = ruled()
    imputer, full = fill(table)
    page = Page(make_report(table, filled=full, imputer=imputer))
    text = " ".join(page.text.split())
    assert "Filled rows obey each of the 3 rules. Observed cells, which stay as they are, contradict 1 of them." in text
    assert "total = a + b 15 none 3" in text
    without = Page(make_report(table, filled=full, imputer=Imputer("marginal").fit(table)))
    assert "Filled rows obey" not in without.text


def test_the_command_puts_its_rules_into_the_report(tmp_path):
    ruled().to_csv(tmp_path / "table.csv", index=False)
    rules = [part for rule in RULES for part in ("--rule", rule)]
    command = ("impute", "table.csv", "-o", "full.csv", "--model", "marginal", "--report", "page.html", *rules)
    done = run(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "contradict 1 of them" in (tmp_path / "page.html").read_text()
