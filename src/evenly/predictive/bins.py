"""Histogram distributions of numbers, which fit zeros, rounded values, bounds and heavy tails alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenly.tables import Floats

N_QUANTILES = 32
"""Bins with equal shares of the cells."""
N_WIDTHS = 16
"""Additional bins of equal width: squared errors come from the tails, where bins of equal shares are coarse."""
MOST_LEVELS, CELLS_A_LEVEL = 30, 10
"""Up to 30 different values get a bin each, if every one has 10 cells on average: ratings, numbers of rooms, years of
schooling are then predicted level by level."""
MOST_BINS = 1_000
"""More are refused in a saved file."""
MODE_SHARE, ATOM = 0.3, 0.1
"""The mode lies in the densest run of bins with a probability of 0.3: for 1,000 normal values it is then accurate to
0.15 standard deviations, for exponential ones to 0.2. A single value is the mode if its probability is at least 0.1."""
LEAST_SHARE = 1e-12
"""The probability of a number outside all bins, so that a mean log-density stays finite."""


@dataclass(frozen=True)
class Bins:
    """The bins of one column, in ascending order: uniform inside a bin, an atom where a bin is a single value.

    Attributes
    ----------
    low, high : sequences of float
        The smallest and the largest observed value in each bin, both inclusive.
    mean : sequence of float
        The mean of the observed values in each bin.
    share : sequence of float
        The share of the observed values in each bin.
    whole : bool
        Whether all values are whole numbers: inside a bin, all whole numbers are equally probable.
    """

    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]
    share: Sequence[float]
    whole: bool = False

    def __len__(self) -> int:
        return len(self.low)

    def check(self) -> None:
        """Raise an error if these are no bins: of equal length, in ascending order, with shares that add up to 1."""
        lengths = [len(part) for part in (self.low, self.high, self.mean, self.share)]
        if len(set(lengths)) > 1 or not 1 <= lengths[0] <= MOST_BINS:
            raise ValueError(
                f"bins with {lengths} ends, means and shares, expected as many of each, at most {MOST_BINS}"
            )
        low, high, mean, share = self._arrays
        ordered = (low <= mean) & (mean <= high) & np.append(high[:-1] < low[1:], True)
        if not (ordered.all() and np.isfinite([low, high]).all()):
            raise ValueError("bins that are not in ascending order")
        if not ((share > 0.0).all() and abs(share.sum() - 1.0) < 1e-6):
            raise ValueError("bins whose shares do not add up to 1")

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        low, high, mean, share = (np.asarray(part, np.float64) for part in (self.low, self.high, self.mean, self.share))
        return low, high, mean, share

    @property
    def single(self) -> bool:
        """Whether every bin is a single value, so that the distribution is one of levels."""
        return all(low == high for low, high in zip(self.low, self.high, strict=True))

    @cached_property
    def edges(self) -> Floats:
        """The edges between bins: midway between the largest value of one and the smallest of the next."""
        low, high, _, _ = self._arrays
        return np.asarray(0.5 * high[:-1] + 0.5 * low[1:])

    def places(self, values: Floats) -> Floats:
        """Return the rank of each value: the share of smaller values of the column, ties counting half. NaN stays.

        Examples
        --------
        >>> make_bins(np.array([0.0, 0.0, 1.0, 2.0])).places(np.array([-1.0, 0.0, 1.5, 2.0]))
        array([0.25 , 0.25 , 0.75 , 0.875])
        """
        low, high, _, share = self._arrays
        ends = np.cumsum(share)
        single = low == high
        first, last = np.where(single, ends - 0.5 * share, ends - share), np.where(single, ends - 0.5 * share, ends)
        return np.asarray(np.interp(values, np.stack([low, high], -1).ravel(), np.stack([first, last], -1).ravel()))

    @property
    def _widths(self) -> Floats:
        low, high, _, _ = self._arrays
        return high - low + 1.0 if self.whole else high - low

    def codes(self, values: Floats) -> Floats:
        """Return the bin of each value; beyond the range, the first or the last bin. NaN stays."""
        found = np.minimum(np.searchsorted(self._arrays[1], values, side="left"), len(self) - 1)
        return np.where(np.isnan(values), np.nan, found)

    def means(self, probabilities: Floats) -> Floats:
        """Return the mean of each distribution (bins along the last axis)."""
        return _products(probabilities, self._arrays[2])

    def stds(self, probabilities: Floats) -> Floats:
        """Return the standard deviation of each distribution."""
        low, high, mean, _ = self._arrays
        unit = max(float(np.abs(low[0])), float(np.abs(high[-1])), 1e-300)
        # The variance of w equally probable whole numbers is (w^2 - 1) / 12, which is 0 for one.
        one = float(self.whole)
        inside = (self._widths - one) / unit * ((self._widths + one) / unit) / 12.0
        # Around each mean, not around 0: far from 0, the difference of two squares would cancel.
        away = mean / unit - _products(probabilities, mean / unit)[..., None]
        return np.asarray(unit * np.sqrt(_products(probabilities, away**2 + inside)))

    def quantiles(self, probabilities: Floats, level: float | Floats) -> Floats:
        """Return the quantile of each distribution, at one level for all or one for each.

        Examples
        --------
        >>> bins = make_bins(np.array([0.0, 0.0, 1.0, 2.0, 3.0]), n_quantiles=2, n_widths=0)
        >>> list(bins.low), list(bins.high)
        ([0.0, 1.0, 2.0], [0.0, 1.0, 3.0])
        >>> bins.quantiles(np.array([[0.5, 0.0, 0.5]]), 0.4), bins.quantiles(np.array([[0.5, 0.0, 0.5]]), 0.9)
        (array([0.]), array([3.]))
        """
        low, high, _, _ = self._arrays
        total = np.cumsum(probabilities, axis=-1)
        level = np.broadcast_to(np.asarray(level, np.float64), probabilities.shape[:-1]) * total[..., -1]
        at = np.minimum((total < level[..., None]).sum(-1), len(self) - 1)
        own = np.take_along_axis(probabilities, at[..., None], -1)[..., 0]
        before = np.take_along_axis(total, at[..., None], -1)[..., 0] - own
        place = np.clip((level - before) / np.maximum(own, 1e-300), 0.0, 1.0)
        if self.whole:
            return np.asarray(np.minimum(low[at] + np.floor(place * self._widths[at]), high[at]))
        return np.asarray((1.0 - place) * low[at] + place * high[at])

    def modes(self, probabilities: Floats) -> Floats:
        """Return the mode of each distribution: the most probable value, or the mean of the densest run of bins.

        A run, because bins have nearly equal shares, so that the width of a single one is random.

        Examples
        --------
        >>> bins = make_bins(np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]))
        >>> bins.modes(np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]]))
        array([1., 0.])
        """
        low, high, mean, _ = self._arrays
        places, single = np.arange(len(self)), low == high
        first, last, mass = self._densest(probabilities)
        run = np.where((first[..., None] <= places) & (places <= last[..., None]), probabilities, 0.0)
        middle = np.clip(_products(run, mean) / np.maximum(mass, 1e-300), low[first], high[last])
        found = np.where(_products(run, ~single) > 0.0, np.rint(middle) if self.whole else middle, mean[run.argmax(-1)])
        top = probabilities.argmax(-1)
        return np.where(single[top] & (probabilities.max(-1) >= ATOM), mean[top], found)

    def _densest(self, probabilities: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
        """Return the first and the last bin of the densest run that holds `MODE_SHARE`, and its probability."""
        low, high, _, _ = self._arrays
        total = np.cumsum(probabilities, axis=-1)
        shape = probabilities.shape[:-1]
        first, last, most = np.zeros(shape, np.intp), np.zeros(shape, np.intp), np.zeros(shape)
        least = 1e-9 * (0.5 * high[-1] - 0.5 * low[0]) + 1e-300  # repeated values are compared by their probability
        densest = np.full(shape, -1.0)
        for start in range(len(self)):
            before = total[..., start] - probabilities[..., start]
            end = np.minimum((total < (before + MODE_SHARE * total[..., -1])[..., None]).sum(-1), len(self) - 1)
            mass = np.take_along_axis(total, end[..., None], -1)[..., 0] - before
            half = 0.5 * high[end] - 0.5 * low[start] + 0.5 * float(self.whole)
            enough = mass >= (1.0 - 1e-9) * MODE_SHARE * total[..., -1]
            density = np.where(enough, mass / np.maximum(half, least), 0.0)
            better = density > densest
            first, last = np.where(better, start, first), np.where(better, end, last)
            most, densest = np.where(better, mass, most), np.where(better, density, densest)
        return first, last, most

    def ranks(self, probabilities: Floats, values: Floats, rng: np.random.Generator) -> Floats:
        """Return the randomized probability integral transform: uniform if the values follow the distributions.

        Inside an atom the rank is drawn uniformly, so that zeros and whole numbers are treated correctly.
        """
        low, high, _, _ = self._arrays
        at = self.codes(values).astype(np.intp)
        own = np.take_along_axis(probabilities, at[..., None], -1)[..., 0]
        before = np.take_along_axis(np.cumsum(probabilities, axis=-1), at[..., None], -1)[..., 0] - own
        widths = self._widths[at]
        drawn = rng.random(at.shape)
        inside = np.clip(values, low[at], high[at]) - low[at]
        if self.whole:
            place = (np.floor(inside) + drawn) / widths
        else:
            place = np.where(widths > 0.0, inside / np.where(widths > 0.0, widths, 1.0), drawn)
        return np.asarray(np.clip(before + own * place, 0.0, 1.0))

    @cached_property
    def _reach(self) -> tuple[Floats, Floats]:
        """The ends of the interval on which each bin has a density: it reaches half way to the bins next to it.

        So new values between two bins have a density too. No bin is extended by more than half its width: a single
        value stays an atom, and a wide gap stays empty.
        """
        low, high, _, _ = self._arrays
        if self.whole:
            return low, high
        gaps, most = 0.5 * low[1:] - 0.5 * high[:-1], 0.5 * high - 0.5 * low
        return low - np.minimum(most, np.append(0.0, gaps)), high + np.minimum(most, np.append(gaps, 0.0))

    def log_density(self, probabilities: Floats, values: Floats) -> Floats:
        """Return the log-density, or the log-probability where a bin is a single value or all numbers are whole.

        A number outside all bins has a probability of `LEAST_SHARE`.

        Examples
        --------
        >>> bins = make_bins(np.array([0.0, 0.0, 1.0, 1.0]))
        >>> np.exp(bins.log_density(np.array([[0.7, 0.3]] * 3), np.array([0.0, 1.0, 0.5]))).round(3).tolist()
        [0.7, 0.3, 0.0]
        """
        low, high = self._reach
        at = np.minimum(np.searchsorted(high, values, side="left"), len(self) - 1)
        held = (low[at] <= values) & (values <= high[at]) & (not self.whole or values == np.rint(values))
        own = np.take_along_axis(probabilities, at[..., None], -1)[..., 0]
        widths = (high - low + float(self.whole))[at]
        share = np.where(held, np.maximum(own, LEAST_SHARE), LEAST_SHARE)
        found = np.log(share) - np.log(np.where(widths > 0.0, widths, 1.0))
        return np.where(np.isnan(values), np.nan, found)


def _products(rows: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of each row; unlike with `@`, its rounding does not depend on the other rows."""
    return np.asarray((rows * weights).sum(-1))


def make_bins(values: npt.NDArray[np.float64], n_quantiles: int = N_QUANTILES, n_widths: int = N_WIDTHS) -> Bins:
    """Divide the observed values of a column into bins of equal shares and, for its tails, of equal widths.

    A frequent value gets its own bin, and so does every value of a column with few.
    """
    values = np.sort(values)
    n = len(values)
    shares = values[np.ceil(np.linspace(0.0, 1.0, n_quantiles + 1) * n).astype(int).clip(1, n) - 1]
    inner = np.linspace(0.0, 1.0, n_widths + 1)[1:-1]
    widths = values[np.searchsorted(values, (1.0 - inner) * values[0] + inner * values[-1])]
    levels = np.unique(values)
    few = len(levels) <= MOST_LEVELS and n >= CELLS_A_LEVEL * len(levels)
    ends = levels if few else np.unique(np.concatenate([shares, widths]))
    last = np.searchsorted(values, ends, side="right")
    first = np.concatenate([[0], last[:-1]])
    unit = max(abs(float(values[0])), abs(float(values[-1])), 1e-300)
    sums = np.concatenate([[0.0], np.cumsum(values / unit)])
    low = values[first]
    # The mean of many values may be rounded to beyond the ends of their bin.
    mean = np.clip(unit * ((sums[last] - sums[first]) / (last - first)), low, ends)
    whole = bool((values == np.rint(values)).all())
    return Bins(low.tolist(), ends.tolist(), mean.tolist(), ((last - first) / n).tolist(), whole)
