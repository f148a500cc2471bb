"""One-pass statistics: parts merge to the whole, hard columns keep their digits, every engine says the same.

References are exact fractions, 50-digit decimals, NumPy on ordinary data and plain counting.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from evenly.likelihoods.base import Likelihood, Pivot
from evenly.likelihoods.continuous import LOG_NORMAL, NORMAL
from evenly.likelihoods.discrete import Categorical
from evenly.likelihoods.registry import LIKELIHOODS, get_likelihood
from evenly.scaling.statistics import (
    ColumnStatistics,
    Moments,
    choose_pivot,
    location_family,
    measure_counts,
    measure_frame,
    measure_values,
    prepare,
    take_moments,
)
from evenly.tables import BLOCK
from evenly.tables.schema import Column

property_test = settings(deadline=None, derandomize=True, database=None, max_examples=examples(60))
NAMES = [*LIKELIHOODS, "categorical"]
SCALABLE = [name for name, family in LIKELIHOODS.items() if family.scalable]
each_likelihood = pytest.mark.parametrize("name", NAMES)
each_scalable = pytest.mark.parametrize("name", SCALABLE)


def draw(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    values = {
        "normal": lambda: rng.normal(-3.0, 20.0, n),
        "log-normal": lambda: rng.lognormal(1.0, 0.8, n),
        "gamma": lambda: rng.gamma(2.5, 4.0, n),
        "inverse-gamma": lambda: 3.0 / rng.gamma(4.0, 1.0, n),
        "inverse-gaussian": lambda: rng.wald(1.2, 2.0, n),
        "exponential": lambda: rng.exponential(7.0, n),
        "rayleigh": lambda: rng.rayleigh(2.0, n),
        "bernoulli": lambda: rng.binomial(1, 0.3, n),
        "poisson": lambda: rng.poisson(4.0, n),
        "negative-binomial": lambda: rng.negative_binomial(3, 0.4, n),
        "categorical": lambda: rng.integers(0, 3, n),
    }[name]()
    return np.asarray(values, np.float64)


def family_of(name: str) -> Likelihood:
    return get_likelihood(name, 3)


def moments(family: Likelihood, x: np.ndarray) -> Moments:
    """Take the moments of one part, about a pivot of its own."""
    return take_moments(family, x, choose_pivot(family, float(x.min()), float(x.max()), float(x.mean())))


def usual(family: Likelihood, of: Moments) -> np.ndarray:
    """Return maximum-likelihood parameters in the data's own units."""
    unit = of.pivot.unit if family.needs_unit else 1.0
    return np.asarray(family.to_usual(family.scale_natural(of.natural(family), np.asarray(unit))))


def about(family: Likelihood, of: Moments, pivot: Pivot) -> np.ndarray:
    """Return the means about a given pivot, so that two moments can be compared."""
    return np.asarray(family.repivot(of.means, of.pivot, pivot))


# --- parts and the whole --------------------------------------------------------------------------


@property_test
@given(st.sampled_from(NAMES), st.integers(0, 2**32 - 1), st.lists(st.integers(1, 199), max_size=6))
def test_parts_merge_to_the_whole(name: str, seed: int, cuts: list[int]) -> None:
    family = family_of(name)
    x = draw(name, np.random.default_rng(seed), 200)
    whole = moments(family, x)
    merged = Moments(0, Pivot(), np.zeros(len(family.natural_bounds)))
    for part in np.split(x, sorted(set(cuts))):
        merged = merged.merge(moments(family, part), family)
    assert merged.n == 200
    # Pivots of parts differ by a few spreads at most, so that moving one costs a few roundings of its size.
    assert about(family, merged, whole.pivot) == pytest.approx(whole.means, rel=1e-12, abs=1e-12)


@each_scalable
def test_fitted_parameters_of_merged_parts_are_those_of_numpy(name: str) -> None:
    family = family_of(name)
    x = draw(name, np.random.default_rng(1), 500)
    merged = moments(family, x[:13]).merge(moments(family, x[13:]), family)
    expected = family.to_usual(family.fit(family.statistics(x).mean(axis=0)))
    assert usual(family, merged) == pytest.approx(np.asarray(expected), rel=1e-11)


@property_test
@given(st.sampled_from(NAMES), st.integers(0, 2**32 - 1), st.integers(1, 58), st.integers(1, 58))
def test_merging_is_associative(name: str, seed: int, first: int, second: int) -> None:
    family = family_of(name)
    x = draw(name, np.random.default_rng(seed), 120)
    a, b, c = (moments(family, part) for part in np.split(x, [first, first + second]))
    left, right = a.merge(b, family).merge(c, family), a.merge(b.merge(c, family), family)
    assert left.n == right.n == 120
    assert left.pivot == right.pivot == a.pivot
    assert left.means == pytest.approx(right.means, rel=1e-11, abs=1e-11 * float(np.abs(left.means).max()))


@each_scalable
def test_pivots_do_not_matter(name: str) -> None:
    family = family_of(name)
    x = draw(name, np.random.default_rng(2), 400)
    expected = usual(family, moments(family, x))
    size = float(np.abs(x).mean())
    for center, unit in ((0.7 * size, 0.7 * size), (2.0 * size, 3.0 * size), (size, 5.0 * size)):
        assert usual(family, take_moments(family, x, Pivot(center, unit))) == pytest.approx(expected, rel=1e-11)
        there = take_moments(family, x[:100], Pivot(center, unit))
        assert usual(family, there.merge(moments(family, x[100:]), family)) == pytest.approx(expected, rel=1e-11)


@each_likelihood
def test_an_empty_part_changes_nothing(name: str) -> None:
    family = family_of(name)
    some = moments(family, draw(name, np.random.default_rng(3), 50))
    none = take_moments(family, np.zeros(0), Pivot(9.0, 3.0))
    assert none.n == 0
    assert some.merge(none, family) is some
    assert none.merge(some, family) is some


def test_weights_count_as_repeated_values() -> None:
    values, weights = np.array([0.5, 2.0, 7.0]), np.array([3.0, 1.0, 2.0])
    weighted = take_moments(NORMAL, values, Pivot(2.0, 4.0), weights)
    repeated = take_moments(NORMAL, np.repeat(values, weights.astype(int)), Pivot(2.0, 4.0))
    assert weighted.n == repeated.n == 6
    assert weighted.means == pytest.approx(repeated.means, rel=1e-15)


# --- hard columns, against exact arithmetic -------------------------------------------------------


def exact_mean_and_variance(x: np.ndarray) -> tuple[Fraction, Fraction]:
    values = [Fraction(float(v)) for v in x]
    mean = sum(values, Fraction(0)) / len(values)
    return mean, sum(((v - mean) ** 2 for v in values), Fraction(0)) / len(values)


HARD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ordinary": lambda z: z,
    "offset 1e9": lambda z: 1e9 + z,
    "offset 1e15": lambda z: 1e15 + np.rint(4.0 * z),
    "size 1e300": lambda z: 1e300 * z,
    "size 1e300, offset": lambda z: 1e307 + 1e300 * z,
    "size 1e-300": lambda z: 1e-300 * z,
    "one far outlier": lambda z: np.append(z, 1e12),
}


@pytest.mark.parametrize("n_parts", [1, 7])
@pytest.mark.parametrize("hard", HARD)
def test_mean_and_variance_of_hard_columns_are_exact_to_rounding(hard: str, n_parts: int) -> None:
    x = HARD[hard](np.random.default_rng(4).normal(0.0, 3.0, 300))
    column = Column(name="x", kind="real", likelihood="normal")
    parts = []
    for part in np.array_split(x, n_parts):
        # Every part is looked at by itself, as in partial_fit, so that it has a pivot of its own.
        mean = float((part / len(part)).sum())
        parts.append(measure_values(column, NORMAL, part, mean, (float(part.min()), float(part.max())), False))
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part, NORMAL)
    assert merged.location is not None
    (center, unit), (first, second) = merged.location.pivot, merged.location.means
    mean, variance = exact_mean_and_variance(x)
    got_mean = Fraction(center) + Fraction(unit) * Fraction(float(first))
    got_variance = Fraction(float(second - first * first)) * Fraction(unit) ** 2
    spread = Fraction(math.sqrt(float(variance / Fraction(unit) ** 2))) * Fraction(unit)
    # The mean is known to a rounding of the spread, wherever the column lies; the variance to one of itself,
    # or of the outlier's square where that comes in a later part.
    assert abs(got_mean - mean) <= 1e-13 * spread
    assert got_variance / variance == pytest.approx(1, rel=1e-12)
    assert (merged.n, merged.minimum, merged.maximum) == (len(x), float(x.min()), float(x.max()))


def decimal_gap(x: np.ndarray) -> Decimal:
    """Return log(mean) - mean(log) with 50 digits."""
    with localcontext() as context:
        context.prec = 50
        values = [Decimal(float(v)) for v in x]
        return (sum(values) / len(values)).ln() - sum(v.ln() for v in values) / len(values)


offset_parts = pytest.mark.parametrize("n_parts", [1, 3])


@offset_parts
def test_gamma_shape_of_a_column_with_an_offset(n_parts: int) -> None:
    family = family_of("gamma")
    x = 1e9 + np.random.default_rng(5).gamma(3.0, 2.0, 300)
    shape = usual(family, _merged(family, x, n_parts))[0]
    # log(a) - digamma(a) = 1/(2a) + 1/(12 a^2) + ..., so a = 1/(2 gap) + 1/6 + ...; here a is about 1e17.
    assert shape == pytest.approx(float(1 / (2 * decimal_gap(x))), rel=1e-12)


@offset_parts
def test_inverse_gamma_shape_of_a_column_with_an_offset(n_parts: int) -> None:
    family = family_of("inverse-gamma")
    x = 1e9 + np.random.default_rng(5).gamma(3.0, 2.0, 300)
    with localcontext() as context:
        context.prec = 50
        inverses = [1 / Decimal(float(v)) for v in x]
        gap = (sum(inverses) / len(x)).ln() - sum(v.ln() for v in inverses) / len(x)
    assert usual(family, _merged(family, x, n_parts))[0] == pytest.approx(float(1 / (2 * gap)), rel=1e-12)


@offset_parts
def test_inverse_gaussian_of_a_column_with_an_offset(n_parts: int) -> None:
    family = family_of("inverse-gaussian")
    x = 1e9 + np.random.default_rng(5).gamma(3.0, 2.0, 300)
    values = [Fraction(float(v)) for v in x]
    mean, inverse = sum(values) / len(values), sum(1 / v for v in values) / len(values)
    # 1/shape = mean(1/x) - 1/mean(x)
    expected = [float(mean), float(1 / (inverse - 1 / mean))]
    assert usual(family, _merged(family, x, n_parts)) == pytest.approx(expected, rel=1e-12)


@offset_parts
def test_log_normal_of_a_column_with_an_offset(n_parts: int) -> None:
    x = 1e9 + np.random.default_rng(5).gamma(3.0, 2.0, 300)
    with localcontext() as context:
        context.prec = 50
        logs = [Decimal(float(v)).ln() for v in x]
        mean = sum(logs) / len(logs)
        std = (sum((v - mean) ** 2 for v in logs) / len(logs)).sqrt()
    expected = [float(mean), float(std)]
    assert usual(LOG_NORMAL, _merged(LOG_NORMAL, x, n_parts)) == pytest.approx(expected, rel=1e-12)


def _merged(family: Likelihood, x: np.ndarray, n_parts: int) -> Moments:
    first, *others = (moments(family, part) for part in np.array_split(x, n_parts))
    for other in others:
        first = first.merge(other, family)
    return first


@pytest.mark.parametrize("size", [1e-300, 1e300])
@each_scalable
def test_a_columns_size_drops_out_of_its_moments(name: str, size: float) -> None:
    """Shapes do not change with the units, and no square leaves the range of numbers on the way."""
    family = family_of(name)
    x = draw(name, np.random.default_rng(6), 300)
    x = x / np.abs(x).max()
    here, there = moments(family, x), moments(family, x * size)
    if family is LOG_NORMAL:
        log_mean, log_std = usual(family, here)
        assert usual(family, there) == pytest.approx([log_mean + math.log(size), log_std], rel=1e-11)
    else:
        ratio = there.pivot.unit / here.pivot.unit / size
        scaled = np.asarray(family.scale_natural(there.natural(family), np.asarray(ratio)))
        assert scaled == pytest.approx(here.natural(family), rel=1e-11)


def test_long_columns_are_read_in_blocks_without_their_missing_cells() -> None:
    x = np.random.default_rng(7).normal(5.0, 2.0, 2 * BLOCK + 1000)
    x[[0, BLOCK - 1, BLOCK, 2 * BLOCK + 5]] = np.nan
    seen = x[~np.isnan(x)]
    column = Column(name="x", kind="real", likelihood="normal")
    of = measure_values(column, NORMAL, x, 5.0, (float(seen.min()), float(seen.max())), True)
    assert of.location is not None
    assert of.n == len(seen)
    assert usual(NORMAL, of.location) == pytest.approx([seen.mean(), seen.std()], rel=1e-11)
    assert of.quartiles == pytest.approx(tuple(np.percentile(seen, [25, 75])), rel=1e-15)


# --- on the table's own engine --------------------------------------------------------------------


def _pandas(data: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(data)


def _pandas_nullable(data: dict[str, list[Any]]) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({name: pd.array(cells, dtype="Float64") for name, cells in data.items()})


def _polars(data: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(data)


def _polars_lazy(data: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").LazyFrame(data)


def _pyarrow(data: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pyarrow").table(data)


each_engine = pytest.mark.parametrize(
    "build",
    [_pandas, _pandas_nullable, _polars, _polars_lazy, _pyarrow],
    ids=["pandas", "pandas nullable", "polars", "polars lazy", "pyarrow"],
)
PREPARED: dict[str, dict[str, float]] = {"as it is": {}, "shifted": {"shift": 0.75}, "clipped": {"clip": 0.9}}


def assert_same(one: ColumnStatistics, two: ColumnStatistics, rel: float = 1e-12) -> None:
    assert (one.n, one.minimum, one.maximum) == (two.n, two.minimum, two.maximum)
    for a, b in ((one.location, two.location), (one.own, two.own)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert (a.n, a.pivot) == (b.n, b.pivot)
            assert a.means == pytest.approx(b.means, rel=rel, abs=rel)


@each_engine
def test_engines_agree_with_numpy_on_every_likelihood(build: Callable[..., Any]) -> None:
    rng = np.random.default_rng(8)
    data: dict[str, list[Any]] = {}
    requests, expected = [], []
    for name in SCALABLE:
        for prepared, how in PREPARED.items():
            family = family_of(name)
            x = draw(name, rng, 300)
            x[rng.random(300) < 0.1] = np.nan
            # Half of the missing cells are nulls, half NaN: both are no cells.
            nulls = np.isnan(x) & (rng.random(300) < 0.5)
            label = f"{name} {prepared}"
            data[label] = [None if null else float(v) for v, null in zip(x, nulls, strict=True)]
            kind = "real" if name == "normal" else "positive"
            column = Column(name=label, kind=kind, likelihood=name, **how)
            extent, mean = (float(np.nanmin(x)), float(np.nanmax(x))), float(np.nanmean(x))
            requests.append((label, column, family, mean, extent))
            expected.append(measure_values(column, family, x, mean, extent, False))
    for got, want in zip(measure_frame(nw.from_native(build(data)), requests), expected, strict=True):
        assert want.n < 300
        assert_same(got, want)


@each_engine
def test_engines_keep_the_digits_of_columns_with_an_offset(build: Callable[..., Any]) -> None:
    x = 1e9 + np.random.default_rng(9).gamma(3.0, 2.0, 400)
    extent, mean = (float(x.min()), float(x.max())), float(x.mean())
    columns = {name: Column(name=name, kind="positive", likelihood=name) for name in SCALABLE}
    requests = [(name, column, family_of(name), mean, extent) for name, column in columns.items()]
    frame = nw.from_native(build({name: x.tolist() for name in SCALABLE}))
    for name, got in zip(SCALABLE, measure_frame(frame, requests), strict=True):
        want = measure_values(columns[name], family_of(name), x, mean, extent, False)
        for a, b in ((got.location, want.location), (got.own, want.own)):
            if a is not None and b is not None:
                family = location_family(family_of(name)) if a is got.location else family_of(name)
                assert usual(family, a) == pytest.approx(usual(family, b), rel=1e-11)


@each_engine
def test_whole_numbers_with_missing_cells_are_measured_too(build: Callable[..., Any]) -> None:
    frame = nw.from_native(build({"x": [3, None, 8, 1]}))
    column = Column(name="x", kind="real", likelihood="normal")
    (of,) = measure_frame(frame, [("x", column, NORMAL, 4.0, (1.0, 8.0))])
    assert of.location is not None
    assert of.n == 3
    assert usual(NORMAL, of.location) == pytest.approx([4.0, math.sqrt(26.0 / 3.0)], rel=1e-14)


@each_engine
def test_a_column_without_cells_has_moments_of_none(build: Callable[..., Any]) -> None:
    frame = nw.from_native(build({"x": [float("nan"), None], "y": [1.0, 2.0]}))
    column = Column(name="x", kind="positive", likelihood="gamma")
    (of,) = measure_frame(frame, [("x", column, family_of("gamma"), 1.0, (1.0, 1.0))])
    assert of.location is not None
    assert of.own is not None
    assert of.n == of.own.n == 0
    assert np.isfinite(of.own.means).all()
    more = measure_values(column, family_of("gamma"), np.array([1.0, 2.0]), 1.5, (1.0, 2.0), False)
    assert of.merge(more, family_of("gamma")) is more


# --- shift, clip, counts, and the plain form ------------------------------------------------------


def test_shift_and_clip_are_applied_before_anything_is_averaged() -> None:
    x = np.array([0.0, 0.5, np.nan, 4.0])
    shifted = Column(name="x", kind="positive", likelihood="gamma", shift=0.5)
    clipped = Column(name="x", kind="positive", likelihood="gamma", clip=1e-3)
    assert prepare(shifted, x).tolist()[:2] == [0.5, 1.0]
    assert prepare(clipped, x).tolist()[:2] == [1e-3, 0.5]
    assert np.isnan(prepare(shifted, x)[2])
    assert np.isnan(prepare(clipped, x)[2])
    family = family_of("gamma")
    for column in (shifted, clipped):
        of = measure_values(column, family, x, 1.5, (0.0, 4.0), False)
        seen = prepare(column, x[~np.isnan(x)])
        assert of.own is not None
        assert (of.n, of.minimum, of.maximum) == (3, seen.min(), seen.max())
        expected = family.to_usual(family.fit(family.statistics(seen).mean(axis=0)))
        assert usual(family, of.own) == pytest.approx(np.asarray(expected), rel=1e-12)


def test_location_is_of_the_values_and_for_the_log_normal_of_their_logs() -> None:
    x = draw("log-normal", np.random.default_rng(10), 200)
    for name in SCALABLE:
        column = Column(name="x", kind="positive", likelihood=name)
        of = measure_values(column, family_of(name), x, float(x.mean()), (float(x.min()), float(x.max())), True)
        assert of.location is not None
        measured = np.log(x) if name == "log-normal" else x
        center, spread = usual(location_family(family_of(name)), of.location)
        assert (center, spread) == (pytest.approx(measured.mean()), pytest.approx(measured.std()))
        assert of.quartiles == pytest.approx(tuple(np.percentile(measured, [25, 75])))
        assert (of.own is None) == (name in ("normal", "log-normal"))


some_codes = st.lists(st.one_of(st.integers(0, 5), st.sampled_from([10**6 - 1, 10**6, 10**12]), st.none()), max_size=40)


@property_test
@given(some_codes, some_codes)
def test_counts_are_counted_and_merge(one: list[int | None], two: list[int | None]) -> None:
    def measured(cells: list[int | None]) -> ColumnStatistics:
        return measure_counts(np.array([np.nan if c is None else c for c in cells], np.float64))

    seen = [float(c) for c in one + two if c is not None]
    merged = measured(one).merge(measured(two), family_of("poisson"))
    assert merged.counts == Counter(seen)
    assert merged.n == len(seen)
    if seen:
        assert (merged.minimum, merged.maximum) == (min(seen), max(seen))
        assert merged.constant == (len(set(seen)) == 1)


def test_merging_columns_pools_their_extents_and_forgets_quartiles() -> None:
    column = Column(name="x", kind="positive", likelihood="gamma")
    x = draw("gamma", np.random.default_rng(11), 100)
    family = family_of("gamma")

    def measured(part: np.ndarray) -> ColumnStatistics:
        extent = (float(part.min()), float(part.max()))
        return measure_values(column, family, part, float(part.mean()), extent, True)

    merged = measured(x[:40]).merge(measured(x[40:]), family)
    assert (merged.n, merged.minimum, merged.maximum) == (100, x.min(), x.max())
    assert merged.quartiles is None  # those of parts say nothing of the whole
    assert merged.own is not None
    expected = family.to_usual(family.fit(family.statistics(x).mean(axis=0)))
    assert usual(family, merged.own) == pytest.approx(np.asarray(expected), rel=1e-11)


@each_likelihood
def test_the_plain_form_survives_json(name: str) -> None:
    family = family_of(name)
    x = draw(name, np.random.default_rng(12), 60)
    if family.scalable:
        column = Column(name="x", kind="positive", likelihood=name)
        of = measure_values(column, family, x, float(x.mean()), (float(x.min()), float(x.max())), True)
    else:
        of = measure_counts(x)
    again = ColumnStatistics.from_plain(json.loads(json.dumps(of.to_plain())))
    assert again.counts == of.counts
    assert again.quartiles == of.quartiles
    assert_same(again, of, rel=0.0)  # a double survives its shortest text to the bit


def test_the_plain_form_of_no_cells() -> None:
    of = measure_counts(np.full(3, np.nan))
    again = ColumnStatistics.from_plain(json.loads(json.dumps(of.to_plain())))
    assert (again.n, again.counts, again.constant) == (0, {}, False)


def test_categorical_moments_are_the_shares_of_the_classes() -> None:
    of = take_moments(Categorical(3), np.array([0.0, 2.0, 2.0, 1.0, 2.0]), Pivot())
    assert of.means.tolist() == pytest.approx([0.2, 0.2, 0.6], rel=1e-15)
