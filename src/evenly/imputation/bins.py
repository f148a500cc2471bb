"""A number by the bin that it lies in: a distribution that fits zeros, rounded values, bounds and heavy tails alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenly.tables import Floats

N_QUANTILES = 32
"""Bins of equal shares of the cells."""
N_WIDTHS = 16
"""Bins of equal width beside them: squared errors are made in the tails, where equal shares are coarse."""
MODE_SHARE, ATOM = 0.3, 0.1
"""The probability of the run of bins that has the mode: of 1,000 normal values it is known to 0.15 spreads then, of as
many exponential ones to 0.2. And the probability that a single value, the most probable one, needs to be the mode."""
LEAST_SHARE = 1e-12
"""The probability of a number that no bin holds: it must not make a mean log-density infinite."""


@dataclass(frozen=True)
class Bins:
    """The bins of one column, from low to high. Inside of a bin the distribution is uniform; one value is an atom.

    Attributes
    ----------
    low, high : sequences of float
        The smallest and the largest observed value in each bin, both inside.
    mean : sequence of float
        Of the observed values in each.
    share : sequence of float
        Of the observed values that lie in each.
    whole : bool
        Whether all values are whole numbers: inside of a bin, each of them is as probable.
    """

    low: Sequence[float]
    high: Sequence[float]
    mean: Sequence[float]
    share: Sequence[float]
    whole: bool = False

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        low, high, mean, share = (np.asarray(part, np.float64) for part in (self.low, self.high, self.mean, self.share))
        return low, high, mean, share

    @cached_property
    def edges(self) -> Floats:
        """Where one bin ends and the next begins: in the middle between their values."""
        low, high, _, _ = self._arrays
        return np.asarray(0.5 * high[:-1] + 0.5 * low[1:])

    def places(self, values: Floats) -> Floats:
        """Return the share of the column's values that are smaller than each, equal ones counting half. NaN stays.

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
        """Return the bin of each value; beyond the ends, the last one there. NaN stays."""
        found = np.minimum(np.searchsorted(self._arrays[1], values, side="left"), len(self) - 1)
        return np.where(np.isnan(values), np.nan, found)

    def means(self, probabilities: Floats) -> Floats:
        """Return the mean of each distribution (bins along the last axis)."""
        return _products(probabilities, self._arrays[2])

    def stds(self, probabilities: Floats) -> Floats:
        """Return the standard deviation of each distribution."""
        low, high, mean, _ = self._arrays
        unit = max(float(np.abs(low[0])), float(np.abs(high[-1])), 1e-300)
        # Of w equally probable whole numbers the variance is (w^2 - 1) / 12: one alone has none.
        one = float(self.whole)
        inside = (self._widths - one) / unit * ((self._widths + one) / unit) / 12.0
        # Around each mean, not around 0: far from it, nothing would be left of the difference of two squares.
        away = mean / unit - _products(probabilities, mean / unit)[..., None]
        return np.asarray(unit * np.sqrt(_products(probabilities, away**2 + inside)))

    def quantiles(self, probabilities: Floats, level: float | Floats) -> Floats:
        """Return the quantile of each distribution; a level for all, or one for each.

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
        """Return where each distribution is densest: the most probable value, or the mean of the densest run of bins.

        Bins have nearly equal shares, and a single one is wide or narrow by chance.

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
        """Return the first and the last bin of the densest run that has enough of the probability, and what it has."""
        low, high, _, _ = self._arrays
        total = np.cumsum(probabilities, axis=-1)
        shape = probabilities.shape[:-1]
        first, last, most = np.zeros(shape, np.intp), np.zeros(shape, np.intp), np.zeros(shape)
        least = 1e-9 * (0.5 * high[-1] - 0.5 * low[0]) + 1e-300  # values that repeat go by their probability
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

        An atom's mass is spread evenly by the draw, so that zeros and whole numbers count fairly.
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
        """From where to where a bin has a density: beyond its ends, to the middle between it and the next one.

        New values fall between two bins as they do between two values, so that the bins must not leave them out. But no
        bin reaches farther than half its width: one value stays an atom, and a wide gap is empty.
        """
        low, high, _, _ = self._arrays
        if self.whole:
            return low, high
        gaps, most = 0.5 * low[1:] - 0.5 * high[:-1], 0.5 * high - 0.5 * low
        return low - np.minimum(most, np.append(0.0, gaps)), high + np.minimum(most, np.append(gaps, 0.0))

    def log_density(self, probabilities: Floats, values: Floats) -> Floats:
        """Return the log of the density, or of the probability where a bin is one value or the numbers are whole.

        A number that no bin holds has next to none.

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
    """Return the weighted sum of each row; unlike `@`, whose rounding goes by the number of rows around it."""
    return np.asarray((rows * weights).sum(-1))


def make_bins(values: npt.NDArray[np.float64], n_quantiles: int = N_QUANTILES, n_widths: int = N_WIDTHS) -> Bins:
    """Cut the observed values of a column into bins of equal shares and, for its tails, of equal widths.

    A value that is frequent gets a bin of its own.
    """
    values = np.sort(values)
    n = len(values)
    shares = values[np.ceil(np.linspace(0.0, 1.0, n_quantiles + 1) * n).astype(int).clip(1, n) - 1]
    inner = np.linspace(0.0, 1.0, n_widths + 1)[1:-1]
    widths = values[np.searchsorted(values, (1.0 - inner) * values[0] + inner * values[-1])]
    ends = np.unique(np.concatenate([shares, widths]))
    last = np.searchsorted(values, ends, side="right")
    first = np.concatenate([[0], last[:-1]])
    unit = max(abs(float(values[0])), abs(float(values[-1])), 1e-300)
    sums = np.concatenate([[0.0], np.cumsum(values / unit)])
    low = values[first]
    # A sum of many may round past the ends of a bin.
    mean = np.clip(unit * ((sums[last] - sums[first]) / (last - first)), low, ends)
    whole = bool((values == np.rint(values)).all())
    return Bins(low.tolist(), ends.tolist(), mean.tolist(), ((last - first) / n).tolist(), whole)
