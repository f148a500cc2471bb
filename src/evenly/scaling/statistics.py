"""Mean sufficient statistics of every column: one pass, mergeable, on the table's own engine.

The terms that a pass averages come from the likelihood itself (`Likelihood.terms`). They are written once and run on
blocks of NumPy arrays or, as Narwhals expressions, on any engine that Narwhals supports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from evenly.likelihoods import LOG_NORMAL, NORMAL, Likelihood, Pivot
from evenly.tables import BLOCK, Column, Floats, between, blocks, prepare, read_number

FAR_LARGER = 1e100
"""Ratio of two units beyond which squares of the larger, counted in the smaller, overflow: 1e154 squared does."""


@dataclass(frozen=True)
class Moments:
    """Means of a likelihood's terms about a pivot, and the number of cells averaged.

    Examples
    --------
    Two halves merge to the whole, whatever their pivots are:

    >>> x = np.array([1.0, 2.0, 4.0, 8.0])
    >>> whole = take_moments(NORMAL, x, Pivot(3.0, 4.0))
    >>> first, second = take_moments(NORMAL, x[:2], Pivot(3.0, 4.0)), take_moments(NORMAL, x[2:], Pivot(6.0, 2.0))
    >>> bool(np.allclose(first.merge(second, NORMAL).means, whole.means))
    True
    """

    n: int
    pivot: Pivot
    means: Floats

    def merge(self, other: Moments, family: Likelihood) -> Moments:
        """Pool two parts; keeps the pivot of the first, unless the values of the second overflow in its unit."""
        if other.n == 0 or self.n == 0:
            return self if other.n == 0 else other
        if other.pivot.unit / FAR_LARGER > self.pivot.unit > 0.0:
            return other.merge(self, family)
        means = other.means
        n = self.n + other.n
        with np.errstate(all="ignore"):
            if other.pivot != self.pivot:
                try:
                    means = np.asarray(family.repivot(means, other.pivot, self.pivot))
                except ZeroDivisionError:  # too far apart for 1/x: no fit, which becomes a named outcome
                    means = np.full_like(means, np.nan)
            return Moments(n, self.pivot, self.means + (means - self.means) * (other.n / n))

    def natural(self, family: Likelihood) -> Floats:
        """Maximum-likelihood natural parameters of x / unit."""
        with np.errstate(all="ignore"):
            return np.asarray(family.fit_terms(self.means, self.pivot), np.float64)


def choose_pivot(family: Likelihood, minimum: float, maximum: float, mean: float) -> Pivot:
    """Return the pivot of a family's terms: the mean, in units of the mean or of the extent.

    The unit of a real column is a power of two, so that division by it is exact.
    """
    if family.support.lower == 0.0:
        narrow = 0.9 * mean < minimum and maximum < 1.1 * mean
        return Pivot(mean if narrow else 0.0, mean)
    extent = max(maximum - mean, mean - minimum)
    return Pivot(mean, math.ldexp(1.0, math.frexp(extent)[1] - 1)) if extent > 0.0 else Pivot(mean, 1.0)


def take_moments(family: Likelihood, values: Floats, pivot: Pivot, weights: Floats | None = None) -> Moments:
    """Average the terms over an array, or over distinct values with weights, whose sum is then `n`."""
    if weights is not None:
        n = float(weights.sum())
        means = np.array([float((term * weights).sum()) / n for term in family.terms(values, pivot)])
        return Moments(round(n), pivot, means)
    return _average({family: pivot}, blocks(values))[family]


def _average(pivots: dict[Likelihood, Pivot], parts: Iterable[Floats]) -> dict[Likelihood, Moments]:
    """Average the terms of several families in one pass over the parts of a column."""
    totals = {family: np.zeros(len(family.natural_bounds)) for family in pivots}
    n = 0
    for part in parts:
        if len(part):
            n += len(part)
            for family, pivot in pivots.items():
                totals[family] += [float(term.sum()) for term in family.terms(part, pivot)]
    return {family: Moments(n, pivot, totals[family] / max(n, 1)) for family, pivot in pivots.items()}


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of one column, after its shift. They merge exactly, except for the quartiles.

    `location` holds moments of the values themselves (of log x for a log-normal column), `own` those of the column's
    likelihood where that is another; a discrete column has `counts` of its values or codes instead.
    """

    n: int
    minimum: float
    maximum: float
    location: Moments | None = None
    own: Moments | None = None
    counts: dict[float, int] | None = None
    quartiles: tuple[float, float] | None = None

    @property
    def constant(self) -> bool:
        """Whether all observed cells hold the same value."""
        return self.n > 0 and self.minimum == self.maximum

    def merge(self, other: ColumnStatistics, family: Likelihood | None) -> ColumnStatistics:
        """Pool two parts of a column; one that is ignored has no likelihood, and only its cells are counted."""
        if family is None:
            return ColumnStatistics(self.n + other.n, 0.0, 0.0)
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = dict(self.counts)
            for value, count in other.counts.items():
                counts[value] = counts.get(value, 0) + count
        return ColumnStatistics(
            self.n + other.n,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            _merge(self.location, other.location, location_family(family)),
            _merge(self.own, other.own, family),
            counts,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the statistics as numbers, lists and dictionaries, for a JSON file."""
        plain: dict[str, Any] = {"n": self.n, "minimum": self.minimum, "maximum": self.maximum}
        for name, part in (("location", self.location), ("own", self.own)):
            if part is not None:
                plain[name] = {"n": part.n, "pivot": list(part.pivot), "means": part.means.tolist()}
        if self.counts is not None:
            plain["counts"] = list(self.counts.items())
        if self.quartiles is not None:
            plain["quartiles"] = list(self.quartiles)
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> ColumnStatistics:
        """Undo `to_plain`."""
        parts = {
            name: Moments(plain[name]["n"], Pivot(*plain[name]["pivot"]), np.array(plain[name]["means"], np.float64))
            for name in ("location", "own")
            if name in plain
        }
        counts = {float(value): int(count) for value, count in plain["counts"]} if "counts" in plain else None
        quartiles = tuple(plain["quartiles"]) if "quartiles" in plain else None
        return cls(plain["n"], plain["minimum"], plain["maximum"], **parts, counts=counts, quartiles=quartiles)


def _merge(a: Moments | None, b: Moments | None, family: Likelihood) -> Moments | None:
    return None if a is None or b is None else a.merge(b, family)


def location_family(family: Likelihood) -> Likelihood:
    """Return the family whose mean and spread the methods std, max and iqr use: of log x for a log-normal."""
    return LOG_NORMAL if family.in_logs else NORMAL


def measure_counts(values: Floats) -> ColumnStatistics:
    """Count the values of a discrete column (codes, or whole numbers)."""
    counts: dict[float, int] = {}
    for block in blocks(values):
        if len(block) and block.min() >= 0.0 and block.max() < BLOCK:
            counted = np.bincount(block.astype(np.intp))
            distinct = np.flatnonzero(counted)
            counted = counted[distinct]
        else:
            distinct, counted = np.unique(block, return_counts=True)
        for value, count in zip(distinct.tolist(), counted.tolist(), strict=True):
            counts[float(value)] = counts.get(float(value), 0) + count
    return from_counts(counts)


def from_counts(counts: dict[float, int]) -> ColumnStatistics:
    """Return the statistics of a discrete column whose values were counted."""
    if not counts:
        return ColumnStatistics(0, 0.0, 0.0, counts={})
    return ColumnStatistics(sum(counts.values()), min(counts), max(counts), counts=counts)


def measure_counted(
    column: Column, family: Likelihood, values: Floats, counts: Floats, quartiles: bool
) -> ColumnStatistics:
    """Take the statistics of a column from its distinct values (or codes) and how often each occurs.

    Examples
    --------
    >>> column = Column(name="a", kind="real")
    >>> part = measure_counted(column, NORMAL, np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 1.0]), True)
    >>> part.n, part.quartiles  # of 1, 2, 2, 4
    (4, (1.75, 2.5))
    """
    seen = ~np.isnan(values)
    values, places = np.unique(values[seen], return_inverse=True)
    counts = np.bincount(places, counts[seen], minlength=len(values)).astype(np.float64)
    if not family.scalable:
        return from_counts({float(v): int(c) for v, c in zip(values, counts, strict=True)})
    if not len(values):
        return measure_values(column, family, values, 0.0, (0.0, 0.0), False)
    with np.errstate(all="ignore"):
        mean = between(float((values * counts).sum() / counts.sum()), values[0], values[-1])
        low, high, pivots = _pivots(column, family, mean, (values[0], values[-1]))
        x = prepare(column, values)
        location, *own = (take_moments(one, x, pivot, counts) for one, pivot in pivots.items())
    ends = counted_quartiles(np.log(x) if family.in_logs else x, counts) if quartiles else None
    return ColumnStatistics(location.n, low, high, location, own[0] if own else None, quartiles=ends)


def counted_quartiles(values: Floats, counts: Floats) -> tuple[float, float]:
    """Return the quartiles of ordered values that occur several times, as `numpy.quantile` would of them all."""
    last = np.cumsum(counts)  # one past the place of each value's last copy
    ends = []
    for level in (0.25, 0.75):
        place = (last[-1] - 1.0) * level
        below, above = (values[np.searchsorted(last, at, side="right")] for at in (np.floor(place), np.ceil(place)))
        ends.append(float(below + (above - below) * (place - np.floor(place))))
    return ends[0], ends[1]


def measure_values(
    column: Column, family: Likelihood, values: Floats, mean: float, extent: tuple[float, float], quartiles: bool
) -> ColumnStatistics:
    """Take the statistics of a continuous column in one pass over an array.

    `mean` and `extent` (minimum, maximum) are those of the raw values, from the column's profile; a pivot need not
    be exact, so those of an earlier part serve as well.
    """
    low, high, pivots = _pivots(column, family, mean, extent)
    # Values too far apart for a family overflow its terms: then it has no fit, which becomes a named outcome.
    with np.errstate(all="ignore"):
        location, *own = _average(pivots, (prepare(column, block) for block in blocks(values))).values()
    ends = _quartiles(column, family, values) if quartiles and location.n else None
    return ColumnStatistics(location.n, low, high, location, own[0] if own else None, quartiles=ends)


def _pivots(
    column: Column, family: Likelihood, mean: float, extent: tuple[float, float]
) -> tuple[float, float, dict[Likelihood, Pivot]]:
    """Return both ends of a column after its shift, and the pivots of its location and, if another, its likelihood."""
    low, high, center = (float(prepare(column, np.float64(v))) for v in (*extent, mean))
    families = dict.fromkeys([location_family(family), family])
    return low, high, {one: choose_pivot(one, low, high, center) for one in families}


def _quartiles(column: Column, family: Likelihood, values: Floats) -> tuple[float, float]:
    seen = prepare(column, values[~np.isnan(values)])
    low, high = np.quantile(np.log(seen) if family.in_logs else seen, [0.25, 0.75])
    return float(low), float(high)


class Request(NamedTuple):
    """A continuous column that an engine is asked to measure."""

    label: str
    """Its name in the frame."""
    column: Column
    family: Likelihood
    mean: float
    extent: tuple[float, float]
    """Minimum and maximum; both as in `measure_values`."""


def measure_frame(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], requests: Sequence[Request]) -> list[ColumnStatistics]:
    """Take the statistics of continuous columns in one query on the frame's own engine.

    Examples
    --------
    >>> import polars as pl
    >>> frame = nw.from_native(pl.LazyFrame({"a": [1.0, None, 3.0]}))
    >>> (part,) = measure_frame(frame, [Request("a", Column(name="a", kind="real"), NORMAL, 2.0, (1.0, 3.0))])
    >>> part.n, part.location.means
    (2, array([0., 1.]))
    """
    answered = frame.select(*prepared_cells(requests)).select(*measure_expressions(requests))
    return read_measures(requests, (answered.collect() if isinstance(answered, nw.LazyFrame) else answered).rows()[0])


def prepared_cells(requests: Sequence[Request]) -> list[nw.Expr]:
    """List the finite cells of columns after their shift, each named by the place of its request.

    They are selected before they are averaged: a family's terms use a cell many times, and some engines evaluate its
    expression each time.
    """
    return [
        prepare(column, finite(nw.col(label), column.missing)).alias(f"x{j}")
        for j, (label, column, *_) in enumerate(requests)
    ]


def measure_expressions(requests: Sequence[Request], quartiles: bool = False) -> list[nw.Expr]:
    """List the aggregates of prepared cells that the statistics of continuous columns need, named by position."""
    expressions: list[nw.Expr] = []
    for place, (_, column, family, mean, extent) in enumerate(requests):
        x = nw.col(f"x{place}")
        expressions.append(x.count())
        for one, pivot in _pivots(column, family, mean, extent)[2].items():
            expressions += [term.mean() for term in one.terms(x, pivot)]
        if quartiles:
            of = x.log() if family.in_logs else x
            expressions += [of.quantile(level, interpolation="linear") for level in (0.25, 0.75)]
    return [expression.alias(str(place)) for place, expression in enumerate(expressions)]


def read_measures(
    requests: Sequence[Request], answers: Iterable[Any], quartiles: bool = False
) -> list[ColumnStatistics]:
    """Return the statistics of continuous columns from the answers to `measure_expressions`."""
    row = iter(answers)
    results = []
    for _, column, family, mean, extent in requests:
        low, high, pivots = _pivots(column, family, mean, extent)
        n = int(next(row))
        parts = []
        for one, pivot in pivots.items():
            means = [next(row) for _ in one.natural_bounds]
            # The mean of no cells is null or NaN, depending on the engine; here it is 0.
            parts.append(Moments(n, pivot, np.array(means if n else np.zeros(len(means)), np.float64)))
        ends = (next(row), next(row)) if quartiles else None
        ends = (float(ends[0]), float(ends[1])) if ends and n else None
        results.append(ColumnStatistics(n, low, high, parts[0], parts[1] if len(parts) > 1 else None, quartiles=ends))
    return results


def finite(cells: nw.Expr, missing: Sequence[Any] = ()) -> nw.Expr:
    """Return cells in double precision; null where they are not finite or mark a missing value."""
    numbers = cells.cast(nw.Float64)
    markers = [number for number in map(read_number, missing) if number is not None]
    known = numbers.is_finite()
    return nw.when(known & ~numbers.is_in(markers) if markers else known).then(numbers)
