"""Filled tables obey rules, or the row is named: random tables and rules, checked by pandas' own arithmetic."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from evenly import EvenlyWarning, Imputer

ROWS = 60
Check = Callable[[pd.DataFrame], pd.Series]


def off(result: str, computed: Callable[[pd.DataFrame], pd.Series], half: float) -> Check:
    """Rows whose result is half a unit of its last decimal away from what is computed, or more."""

    def broken(table: pd.DataFrame) -> pd.Series:
        expected = computed(table)
        return ((table[result] - expected).abs() > half * (1.0 + 1e-7) + 1e-6 * expected.abs()) & expected.notna()

    return broken


RULES: dict[str, Check] = {
    "bmi = weight / height**2": off("bmi", lambda t: t.weight / t.height**2, 0.05),
    "total = a + b + c": off("total", lambda t: t.a + t.b + t.c, 0.5),
    "`net pay` = total * 1.5 - a": off("net pay", lambda t: t.total * 1.5 - t.a, 0.05),
    "start <= end": lambda t: t.start > t.end,
    "end <= start + 30": lambda t: t.end > t.start + pd.Timedelta(days=30),
    "a <= b": lambda t: t.a > t.b,
    "b <= c": lambda t: t.b > t.c,
    "c < total": lambda t: t.c >= t.total,
    "a + b <= 2 * c": lambda t: t.a + t.b > 2 * t.c,
    "visits only if sex == 'female'": lambda t: t.visits.notna() & (t.sex != "female"),
    "b only if sex == 'male' and a >= 2 else 0": lambda t: t.b.notna() & (t.b != 0) & ~((t.sex == "male") & (t.a >= 2)),
}
EXCLUSIVE = ("visits", "b only")


def make_table(rng: np.random.Generator, *, contradictions: bool) -> pd.DataFrame:
    """A table that obeys most rules, or that hardly does."""
    n = ROWS
    low, mid, high = np.sort(rng.integers(0, 9, (3, n)), axis=0) + np.array([[0], [1], [2]])
    sex = rng.choice(["female", "male"], n)
    height, weight = np.round(rng.normal(1.7, 0.1, n), 2), np.round(rng.normal(75.0, 12.0, n))
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D")
    table = pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / height**2, 1),
            "sex": sex,
            "visits": np.where(sex == "female", rng.poisson(1.5, n), np.nan),
            "start": start,
            "end": start + pd.to_timedelta(rng.integers(0, 30, n), unit="D"),
            "a": low.astype(float),
            "b": mid.astype(float),
            "c": high.astype(float),
            "total": (low + mid + high).astype(float),
            "net pay": (low + mid + high) * 1.5 - low,
        }
    )
    if contradictions:
        for name in table.columns:
            swapped = rng.random(n) < 0.1
            table.loc[swapped, name] = rng.permutation(np.array(table.loc[swapped, name]))
    return table


def named(caught: list[warnings.WarningMessage]) -> dict[str, dict[str, tuple[int, list[int]]]]:
    """The rules that warnings name: by what they say, the number of rows and the first ones."""
    found: dict[str, dict[str, tuple[int, list[int]]]] = {"contradicts": {}, "filling": {}}
    for one in caught:
        hit = re.match(
            r"the rule '(.*)' (contradicts|could not).* in (?:filling )?(\d+) rows? \((.*?)\)", str(one.message)
        )
        if hit is None:
            hit = re.match(
                r'the rule "(.*)" (contradicts|could not).* in (?:filling )?(\d+) rows? \((.*?)\)', str(one.message)
            )
        if hit:
            rows = [int(row) for row in hit[4].removesuffix(", ...").split(", ")]
            found["contradicts" if hit[2] == "contradicts" else "filling"][hit[1]] = (int(hit[3]), rows)
    return found


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rules = draw(st.lists(st.sampled_from(list(RULES)), min_size=1, max_size=6, unique=True))
    table = make_table(rng, contradictions=draw(st.booleans()))
    gone = rng.random(table.shape) < draw(st.sampled_from([0.1, 0.3, 0.6]))
    return rules, table.mask(gone), draw(st.integers(0, 3))


def stream(imputer: Imputer, table: pd.DataFrame) -> pd.DataFrame:
    """The table as a file, filled in several parts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.imputation.ensemble.SMALL_CHUNK", 16)
        pl.from_pandas(table).write_parquet(f"{folder}/some.parquet", row_group_size=25)
        imputer.transform_file(f"{folder}/some.parquet", f"{folder}/full.parquet")
        return pl.read_parquet(f"{folder}/full.parquet").to_pandas()


@settings(max_examples=examples(60))
@given(cases())
def test_every_row_obeys_or_is_named(case):
    rules, table, seed = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = Imputer("marginal", rules=rules, random_state=seed, kinds={"a": "count", "b": "count", "c": "count"})
        imputer.fit(table)
    for fill in (imputer.transform, lambda x: imputer.sample(x, 1)[0], partial(stream, imputer)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", EvenlyWarning)
            full = fill(table)
        found, observed = named(caught), table.notna()
        for name in table:
            pd.testing.assert_series_equal(full[name][observed[name]], table[name][observed[name]], check_dtype=False)
        for rule in rules:
            broken = np.flatnonzero(RULES[rule](full))
            rows = sorted(found["contradicts"].get(rule, (0, []))[1] + found["filling"].get(rule, (0, []))[1])
            n = sum(found[kind].get(rule, (0, []))[0] for kind in found)
            assert n == len(broken), (rule, broken, found)
            assert set(rows) <= set(broken)
            assert len(rows) >= min(len(broken), 5)
        blank = full.isna().sum()
        allowed = {rule.split()[0] for rule in rules if rule.startswith("visits")}
        assert set(blank.index[blank > 0]) <= allowed
