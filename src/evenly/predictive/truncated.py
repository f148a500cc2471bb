"""Distributions of numbers that are known to lie between limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from evenly.predictive.base import Predictive
from evenly.predictive.numbers import NumberPredictive
from evenly.tables import Column, Floats

LEVELS = ndtr(np.linspace(-4.5, 4.5, 129))
"""Levels at which the quantiles of the whole distribution are taken; between them, the quantiles are interpolated."""
MEAN_LEVELS = (np.arange(64) + 0.5) / 64
"""Levels whose quantiles are averaged to the mean."""
TRIES = 8
"""Draws from the whole distribution, before one is drawn by its quantile."""


@dataclass(frozen=True)
class TruncatedPredictive(NumberPredictive):
    """Distributions of numbers, cut at limits that may be infinite.

    Rows without a limit keep their distribution. If it leaves hardly anything between the limits, the nearest end is
    certain.

    Examples
    --------
    >>> from evenly.predictive import ParametricPredictive
    >>> from evenly.likelihoods import get_likelihood
    >>> normal = get_likelihood("normal")
    >>> wait = ParametricPredictive(Column(name="wait", kind="real"), normal, {"mean": np.zeros(2), "std": np.ones(2)})
    >>> cut = TruncatedPredictive(wait, np.array([0.0, -np.inf]), np.full(2, np.inf))
    >>> cut.mean().round(1), cut.median().round(1)
    (array([0.8, 0. ]), array([0.7, 0. ]))
    """

    whole: Predictive
    low: Floats
    high: Floats

    @property
    def column(self) -> Column:  # type: ignore[override]
        """The column."""
        return self.whole.column

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the whole distribution, and the limits."""
        return self.whole.parameters | {"low": self.low, "high": self.high}

    @cached_property
    def _cut(self) -> npt.NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high))

    @cached_property
    def _grid(self) -> Floats:
        """The quantiles of the whole distributions of the rows that are cut: levels x rows, strictly rising."""
        cut = self.whole.take(np.flatnonzero(self._cut))
        return np.maximum.accumulate(np.array([cut.quantile(float(level)) for level in LEVELS]), axis=0)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The levels of the limits in the whole distributions of the rows that are cut."""
        low, high = self._level_of(self.low[self._cut], below=True), self._level_of(self.high[self._cut], below=False)
        return low, np.maximum(low, high)

    def _level_of(self, ends: Floats, *, below: bool) -> Floats:
        """Return the level of a number in each row; of one that several levels have, the lowest, or the highest."""
        grid, rows = self._grid, np.arange(len(ends))
        after = (grid < ends).sum(axis=0) if below else (grid <= ends).sum(axis=0)
        inside = (after > 0) & (after < len(LEVELS))
        right = np.clip(after, 1, len(LEVELS) - 1)
        before, beyond = grid[right - 1, rows], grid[right, rows]
        with np.errstate(all="ignore"):
            share = np.clip((ends - before) / (beyond - before), 0.0, 1.0)
        at = LEVELS[right - 1] + (LEVELS[right] - LEVELS[right - 1]) * share
        if below:  # a number that several levels have is inside
            again = grid[np.minimum(right + 1, len(LEVELS) - 1), rows] == ends
            at = np.where((beyond == ends) & again, LEVELS[right - 1], at)
        return np.where(inside, at, np.where(after > 0, 1.0, 0.0))

    def _within(self, levels: Floats) -> Floats:
        """Return quantiles of the rows that are cut, given a level for each."""
        (low, high), grid, rows = self._ends, self._grid, np.arange(len(levels))
        at = np.clip(low + (high - low) * levels, LEVELS[0], LEVELS[-1])
        right = np.clip(np.searchsorted(LEVELS, at), 1, len(LEVELS) - 1)
        share = (at - LEVELS[right - 1]) / (LEVELS[right] - LEVELS[right - 1])
        before, beyond = grid[right - 1, rows], grid[right, rows]
        return np.asarray(np.clip(before + (beyond - before) * share, self.low[self._cut], self.high[self._cut]))

    def _joined(self, whole: Floats, cut: Floats) -> Floats:
        found = np.array(whole, np.float64)
        found[self._cut] = cut
        return found

    def quantile(self, level: float) -> Floats:
        n = int(self._cut.sum())
        return self._joined(self.whole.quantile(level), self._within(np.full(n, level)))

    def mean(self) -> Floats:
        n = int(self._cut.sum())
        parts = [self._within(np.full(n, level)) for level in MEAN_LEVELS]
        return self._joined(self.whole.mean(), np.mean(parts, axis=0))

    def mode(self) -> Floats:
        mode = self.whole.mode()
        return self._joined(mode, np.clip(mode, self.low, self.high)[self._cut])

    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw one value from each distribution: the first of some of the whole one that lies inside, if one does."""
        drawn = np.array(self.whole.sample(rng), np.float64)
        for _ in range(TRIES):
            outside = np.flatnonzero((drawn < self.low) | (drawn > self.high))
            if not len(outside):
                return drawn
            drawn[outside] = self.whole.take(outside).sample(rng)
        exactly = self._joined(drawn, self._within(rng.random(int(self._cut.sum()))))
        return np.where((drawn < self.low) | (drawn > self.high), exactly, drawn)

    def log_prob(self, values: Floats) -> Floats:
        low, high = self._ends
        share = self._joined(np.ones(len(self.low)), np.maximum(high - low, 1e-12))
        inside = (values >= self.low) & (values <= self.high)
        return np.where(inside | np.isnan(values), self.whole.log_prob(values) - np.log(share), -np.inf)

    def mix(self, others: Sequence[Self]) -> Self:
        return type(self)(self.whole.mix([one.whole for one in others]), self.low, self.high)

    def take(self, rows: Any) -> Self:
        return type(self)(self.whole.take(rows), self.low[rows], self.high[rows])

    def append(self, others: Sequence[Self]) -> Self:
        low, high = (np.concatenate([getattr(one, name) for one in (self, *others)]) for name in ("low", "high"))
        return type(self)(self.whole.append([one.whole for one in others]), low, high)
