"""Scalers fitted on parts of a table add up to the scaler of the whole: exactly, in any order, or refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenly import Column, EvenlyWarning, LipschitzScaler, Schema, TableError
from evenly.likelihoods.continuous import LOG_NORMAL, NORMAL
from evenly.likelihoods.registry import LIKELIHOODS
from evenly.scaling.statistics import Moments, choose_pivot, take_moments

METHODS = ["lip-gamma", "lip-none", "std-none", "max-none", "lip-bern"]


def table(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "real": rng.normal(1e9, 2.0, n) * np.where(rng.random(n) < 0.5, -1.0, 1.0),
            "positive": rng.lognormal(2.0, 0.5, n),
            "count": rng.poisson(np.linspace(1.0, 30.0, n)),
            "yes": rng.random(n) < 0.3,
            "color": np.sort(rng.choice(["red", "blue", "green"], n)),
            "level": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "code": rng.choice([1, 2, 7], n, p=[0.5, 0.1, 0.4]),
        }
    )
    frame.loc[rng.random(n) < 0.1, ["real", "color"]] = None
    return frame


def fit(frame, method="lip-gamma", **settings) -> LipschitzScaler:
    return LipschitzScaler(method, random_state=0, **settings).fit(frame)


@pytest.mark.filterwarnings("ignore::evenly.EvenlyWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("parts", [2, 7])
def test_parts_add_up_to_the_whole(method, parts):
    """Colors are sorted: most parts lack one, and where only two are there the column is binary."""
    whole = fit(table(), method)
    bounds = np.linspace(0, 600, parts + 1).astype(int)
    fits = [fit(table().iloc[low:high], method) for low, high in itertools.pairwise(bounds)]
    for merged in (sum(fits), reduce(lambda a, b: b + a, fits)):
        assert merged.schema_ == whole.schema_
        np.testing.assert_allclose(merged.summary_["scale"], whole.summary_["scale"], rtol=1e-10)
        pairs = [(a.statistics, b.statistics) for a, b in zip(merged.columns_, whole.columns_, strict=True)]
        assert all(a.n == b.n and a.counts == b.counts for a, b in pairs)


def test_adding_leaves_both_scalers_as_they_were_and_the_sum_works():
    a, b = fit(table().iloc[:300]), fit(table().iloc[300:])
    before = a.to_plain(), b.to_plain()
    both = a + b
    assert (a.to_plain(), b.to_plain()) == before
    assert both.transform(table()).shape == (600, len(both.get_feature_names_out()))
    pd.testing.assert_frame_equal(both.inverse_transform(both.transform(table())), table(), rtol=1e-9)


def test_shards_fitted_by_different_engines_add_up():
    frame = pl.from_pandas(table().drop(columns="level"))
    both = fit(frame[:250].lazy()) + fit(frame[250:])
    np.testing.assert_allclose(both.summary_["scale"], fit(frame).summary_["scale"], rtol=1e-10)


def test_a_part_without_data_or_with_whole_numbers_only_follows_the_other():
    first = pd.DataFrame({"a": [np.nan] * 3, "b": [1.0, 2.0, 4.0]})
    second = pd.DataFrame({"a": [0.5, -1.5, 2.0], "b": [0.5, 1.5, 3.25]})
    with pytest.warns(match="no_data"):
        part = fit(first)
    for both in (part + fit(second), fit(second) + part):
        whole = fit(pd.concat([first, second]))
        assert [(one.kind, one.likelihood) for one in both.schema_.columns] == [
            ("real", "normal"),
            ("positive", "log-normal"),
        ]
        np.testing.assert_allclose(both.summary_["scale"], whole.summary_["scale"], rtol=1e-10)


def test_classes_are_united_and_a_third_one_makes_a_column_categorical():
    a, b = (fit(pd.DataFrame({"c": pair * 6, "x": [0.5, -1.5] * 6})) for pair in (["m", "z"], ["a", "m"]))
    both = a + b
    assert both.schema_["c"].kind == "categorical"
    assert both.schema_["c"].classes == ["a", "m", "z"]
    assert both.columns_[0].frequencies.tolist() == [0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    "cells",
    [(["a", "b", "?"], ["a", "b", "NA"]), (["1.5", "0.5", "?"], ["7.5", "2.5", "NA"])],
    ids=["texts", "numbers"],
)
def test_markers_of_either_part_mean_missing_in_the_sum(cells):
    first, second = (pd.DataFrame({"c": part * 6, "x": [0.5, -1.5, 3.0] * 6}) for part in cells)
    both, whole = fit(first) + fit(second), fit(pd.concat([first, second]))
    assert sorted(both.schema_["c"].missing) == sorted(whole.schema_["c"].missing) == ["?", "NA"]
    np.testing.assert_allclose(both.summary_["scale"], whole.summary_["scale"], rtol=1e-10)
    assert both.transform(second)["x"].notna().all()


def test_parts_that_cannot_be_merged_are_a_clear_error():
    def part(values, **settings):
        return fit(pd.DataFrame({"x": values}), **settings)

    with pytest.raises(TableError, match=r"Column 'x': got positive .* in one part and real .*schema=first.schema_"):
        part([0.5, 1.5, 2.5]) + part([-0.5, 1.5, 2.5])
    with pytest.raises(TableError, match=r"shift 0.5\) in one part and positive \(log-normal, shift 0\)"):
        part([0.0, 0.5, 2.5]) + part([0.25, 1.5, 2.5])
    with pytest.raises(
        TableError, match=r"count \(poisson, shift 0\) in one part and positive \(log-normal, shift 0\)"
    ):
        part([0, 1, 2, 4]) + part([0.5, 1.5, 2.5])  # where a 0 has no density
    with pytest.raises(TableError, match="method = 'lip-gamma' in one scaler and 'std-none' in the other"):
        part([0.5, 1.5]) + part([0.5, 1.5], method="std-none")
    with pytest.raises(TableError, match="Column 'y': got it in one scaler only"):
        part([0.5, 1.5]) + fit(pd.DataFrame({"x": [0.5, 1.5], "y": [0.5, 1.5]}))
    with pytest.raises(TableError, match="quartiles need all rows at once"):
        part([0.5, 1.5], method="iqr-none") + part([0.5, 1.5], method="iqr-none")
    with pytest.raises(TypeError):
        part([0.5, 1.5]) + 3


def test_one_schema_lets_parts_with_zeros_be_merged():
    zeros = pd.DataFrame({"x": np.where(np.arange(100) % 7, np.linspace(0.3, 9.0, 100), 0.0)})
    schema = fit(zeros).schema_
    both = fit(zeros[:30], schema=schema) + fit(zeros[30:], schema=schema)
    np.testing.assert_allclose(both.summary_["scale"], fit(zeros).summary_["scale"], rtol=1e-10)


def test_a_declared_schema_holds_for_the_sum():
    schema = Schema(columns=[Column(name="c", kind="ordinal", classes=["low", "high", "top"])])
    a, b = (
        LipschitzScaler(schema=schema).fit(pd.DataFrame({"c": cells})) for cells in (["low", "high"], ["top", "low"])
    )
    assert (a + b).schema_["c"].classes == ["low", "high", "top"]
    assert (a + b).columns_[0].frequencies.tolist() == [0.5, 0.25, 0.25]


# --- numbers, against exact fractions ---


def exact_std(values) -> float:
    """Return the standard deviation by exact fractions, as the nearest double."""
    numbers = [Fraction(float(value)) for value in values]
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
    scale = Fraction(2) ** (math.frexp(max(abs(float(x)) for x in numbers))[1])
    return math.sqrt(float(variance / scale**2)) * float(scale)


def moments(values) -> Moments:
    pivot = choose_pivot(NORMAL, float(values.min()), float(values.max()), float(values.mean()))
    return take_moments(NORMAL, values, pivot)


def std(of: Moments) -> float:
    return math.sqrt(of.means[1] - of.means[0] ** 2) * of.pivot.unit


HARD = {
    "offset 1e9": lambda rng: 1e9 + rng.normal(0.0, 1.0, 240),
    "offset 1e15": lambda rng: 1e15 + rng.integers(-40, 40, 240).astype(float),
    "1e-300": lambda rng: rng.normal(0.0, 1e-300, 240),
    "1e300": lambda rng: rng.uniform(-1.0, 1.0, 240) * 1e300,
    "a drift of parts": lambda rng: np.repeat([0.0, 1e3, 2e6, -5e6], 60) + rng.normal(0.0, 1e-3, 240),
    "an outlier": lambda rng: np.append(rng.normal(0.0, 1.0, 239), 1e12),
}


@pytest.mark.parametrize("parts", [2, 3, 40])
@pytest.mark.parametrize("case", HARD)
def test_merged_parts_have_the_spread_of_exact_arithmetic(case, parts):
    x = HARD[case](np.random.default_rng(3))
    merged = reduce(lambda a, b: a.merge(b, NORMAL), map(moments, np.array_split(x, parts)))
    assert merged.n == 240
    assert std(merged) == pytest.approx(exact_std(x), rel=1e-9)


def test_parts_of_very_different_size_merge_whichever_comes_first():
    tiny, huge = np.array([-1e-300, 2e-300, 5e-300]), np.array([-1e300, 5e299, 1e300])
    for parts in ((tiny, huge), (huge, tiny)):
        a, b = map(moments, parts)
        assert std(a.merge(b, NORMAL)) == pytest.approx(exact_std(np.concatenate(parts)), rel=1e-12)


@pytest.mark.parametrize("name", ["log-normal", "gamma", "exponential"])
def test_positive_parts_of_very_different_size_merge_to_numbers(name):
    family = LIKELIHOODS[name]
    tiny, huge = np.array([1e-300, 2e-300, 5e-300]), np.array([1e300, 5e299, 2e299])
    a, b = (take_moments(family, x, choose_pivot(family, x.min(), x.max(), x.mean())) for x in (tiny, huge))
    both, reverse = a.merge(b, family), b.merge(a, family)
    assert np.isfinite(both.means).all()
    np.testing.assert_array_equal(both.means, reverse.means)
    if name == "log-normal":
        logs = np.log(np.concatenate([tiny, huge]))
        assert both.means[1] - both.means[0] ** 2 == pytest.approx(logs.var(), rel=1e-12)


@pytest.mark.parametrize("name", ["inverse-gamma", "inverse-gaussian"])
def test_parts_too_far_apart_for_a_family_are_an_outcome(name):
    tiny, huge = (
        fit(pd.DataFrame({"x": np.array([1.0, 2.0, 5.0]) * size}), likelihoods={"x": name}) for size in (1e-300, 1e300)
    )
    for a, b in ((tiny, huge), (huge, tiny)):
        with pytest.warns(EvenlyWarning, match="out_of_range"):
            both = a + b
        assert list(both.summary_["scale"]) == [1.0]


def test_a_hundred_million_rows_of_merges_lose_nothing():
    """Seventeen doublings of 1 000 rows, then 3 000 parts of 1 000 rows on top, against exact weights."""
    rng = np.random.default_rng(4)
    block, other = 1e9 + rng.normal(0.0, 1.0, 1000), 1e9 + 3.0 + rng.normal(0.0, 2.0, 1000)
    total, part = moments(block), moments(other)
    for _ in range(17):
        total = total.merge(total, NORMAL)
    for _ in range(3000):
        total = total.merge(part, NORMAL)
    copies = 2**17
    assert total.n == 1000 * (copies + 3000) > 1e8
    weights = [Fraction(copies)] * 1000 + [Fraction(3000)] * 1000
    values = [Fraction(float(x)) for x in (*block, *other)]
    n = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / n
    variance = sum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)) / n
    assert std(total) == pytest.approx(math.sqrt(float(variance)), rel=1e-11)
    got_mean = Fraction(total.pivot.center) + Fraction(float(total.means[0])) * Fraction(total.pivot.unit)
    assert abs(float(got_mean - mean)) < 1e-11


def test_log_spread_of_a_narrow_column_survives_merging():
    rng = np.random.default_rng(5)
    x = 1e9 * (1.0 + 1e-9 * rng.integers(-50, 50, 200))
    parts = [
        take_moments(LOG_NORMAL, part, choose_pivot(LOG_NORMAL, part.min(), part.max(), part.mean()))
        for part in np.array_split(x, 5)
    ]
    merged = reduce(lambda a, b: a.merge(b, LOG_NORMAL), parts)
    exact = [Fraction(float(value)) / Fraction(10**9) - 1 for value in x]
    logs = [u - u**2 / 2 + u**3 / 3 for u in exact]  # the next term is 1e-30
    mean = sum(logs) / 200
    variance = float(sum((y - mean) ** 2 for y in logs) / 200)
    assert merged.means[1] - merged.means[0] ** 2 == pytest.approx(variance, rel=1e-9)
