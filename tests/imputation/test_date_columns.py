"""Dates in the imputer: what the model sees of them, how they are rounded, and what they are worth as predictors."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import Imputer, Training
from evenly.imputation.columns import DateColumn, dates
from evenly.tables import Column, days_of

RNG = np.random.default_rng(0)
DATES = Column(name="seen", kind="date", origin="2024-01-01")


def days(*texts: str) -> np.ndarray:
    return np.array(
        [(np.datetime64(one, "us") - np.datetime64("1970-01-01")) / np.timedelta64(1, "D") for one in texts]
    )


RESOLUTIONS = {
    "year": ["2024-01-01", "1999-01-01"],
    "quarter": ["2024-01-01", "2024-04-01"],
    "month": ["2024-01-01", "2024-03-01"],
    "month end": ["2024-02-29", "2023-02-28", "2024-04-30"],
    "day": ["2024-01-01", "2024-01-17"],
    "hour": ["2024-01-01T05:00", "2024-01-01"],
    "minute": ["2024-01-01T05:01", "2024-01-01"],
    "second": ["2024-01-01T05:01:07", "2024-01-01"],
    "millisecond": ["2024-01-01T05:01:07.125", "2024-01-01"],
    None: ["2024-01-01T05:01:07.125777", "2024-01-01"],
}


@pytest.mark.parametrize("name", RESOLUTIONS)
def test_the_resolution_is_the_coarsest_step(name):
    seen = days(*RESOLUTIONS[name])
    assert dates.find_resolution(seen) == name
    if name is not None:
        rounded = dates.round_days(seen + 1e-6, name)
        np.testing.assert_allclose(rounded, dates.round_days(seen, name), rtol=0, atol=1e-6)


@given(st.dates(datetime.date(1800, 1, 1), datetime.date(2200, 1, 1)))
def test_inputs_are_those_of_the_calendar(date):
    value = days(date.isoformat()) - days_of(DATES.origin)
    number, year, *angles = dates.date_inputs(DATES, ["year", "weekday", "season", "hour"], value)[0]
    assert (number, year) == (value[0], date.year)
    weekday = 2.0 * np.pi * date.weekday() / 7.0  # 0 is Monday
    np.testing.assert_allclose(angles[:2], [np.sin(weekday), np.cos(weekday)], atol=1e-12)
    tomorrow = dates.date_inputs(DATES, ["season"], value + 365.2425)[0][1:]
    np.testing.assert_allclose(angles[2:4], tomorrow, atol=1e-9)
    np.testing.assert_allclose(angles[4:], [0.0, 1.0], atol=1e-12)


def test_only_parts_that_vary_are_inputs():
    of = {
        "season": pd.date_range("2024-01-01", periods=40, freq="7D"),
        "season weekday": pd.date_range("2024-01-01", periods=40),
        "year": pd.date_range("1980-01-01", periods=40, freq="YS"),
        "year season": pd.date_range("2020-01-01", periods=40, freq="MS"),
        "year season weekday": pd.date_range("2020-01-01", periods=40, freq="17D"),
        "season weekday hour": pd.date_range("2024-01-01", periods=40, freq="7h"),
    }
    for parts, cells in of.items():
        imputer = Imputer("marginal").fit(pd.DataFrame({"seen": cells, "x": RNG.normal(size=40)}))
        spec = imputer.ensemble_.specs[0]
        assert isinstance(spec, DateColumn)
        expected = [one for one in ("year", "season", "weekday", "hour") if one in parts.split()]
        # Seven days are a part of a year only.
        assert list(spec.parts) == expected
        values = imputer.ensemble_.encode([days(*map(str, cells)) - days_of(spec.column.origin), np.zeros(40)])
        inputs = values.data(seed=None).inputs[:, : spec.n_inputs]
        assert np.isfinite(inputs).all()
        assert (inputs.std(0) > 0.1).all()


def test_a_saved_date_column_is_checked():
    imputer = Imputer("marginal").fit(
        pd.DataFrame({"seen": pd.date_range("2024-01-01", periods=40), "x": RNG.normal(size=40)})
    )
    spec = imputer.ensemble_.specs[0]
    spec.check()
    for wrong in ({"parts": ("week",)}, {"resolution": "week"}, {"parts": ()}):
        with pytest.raises(ValueError, match=r"parts|centers"):
            replace(spec, **wrong).check()


@pytest.mark.parametrize("model", ["marginal"])
def test_a_table_of_dates_alone_is_imputed(model):
    table = pd.DataFrame({"a": pd.date_range("2024-01-01", periods=40), "b": pd.date_range("2024-06-01", periods=40)})
    table.loc[3, "a"] = table.loc[5, "b"] = pd.NaT
    full = Imputer(model).fit_transform(table)
    assert full.notna().all().all()
    shifted = Imputer(model).fit(table).transform(table, delta={"a": 3})
    assert shifted.loc[3, "a"] - full.loc[3, "a"] == pd.Timedelta(days=3)


@pytest.mark.more
def test_a_date_as_predictor_lowers_the_error():
    n = 1200
    rng = np.random.default_rng(1)
    seen = np.datetime64("2022-01-01") + rng.integers(0, 1000, n)
    day = (seen - np.datetime64("2022-01-01")).astype(float)
    weekend = pd.Series(seen).dt.day_of_week.to_numpy() >= 5
    sales = 20.0 + 5.0 * weekend + 4.0 * np.sin(2 * np.pi * day / 365.25) + 0.01 * day + rng.normal(0.0, 1.0, n)
    table = pd.DataFrame({"seen": seen.astype("M8[ns]"), "sales": sales, "noise": rng.normal(size=n)})
    hidden = rng.random(n) < 0.2
    masked = table.assign(sales=table["sales"].mask(hidden))
    gone = rng.random(n) < 0.2
    masked["seen"] = masked["seen"].mask(gone & ~hidden)
    errors = {}
    for kinds in (None, {"seen": "ignore"}):
        imputer = Imputer(kinds=kinds, training=Training(n_networks=1), random_state=0)
        full = imputer.fit_transform(masked)
        errors[kinds is None] = float(np.sqrt(np.mean((full["sales"] - sales)[hidden] ** 2)))
        if kinds is None:
            dated = full["seen"][gone & ~hidden]
            assert dated.notna().all()
            assert (dated == dated.dt.normalize()).all()
    assert errors[True] < 0.5 * errors[False]  # whose best is the spread of sales, some 4.5; the noise is 1
    assert errors[True] < 2.0
