"""What other columns hold on average at each class of a column with many: inputs that make rare classes predictors.

A town says most by what people in it earn. So a column with many classes gets inputs beside its frequent classes: the
means of the other columns over the rows of the same class. Means of few rows are shrunk towards the mean of all rows,
as far as the column varies within classes (empirical Bayes), and a column that does not differ between classes by more
than by chance counts as 0.

While a network is trained, a row's own cell is left out of its mean, and so are validation cells everywhere: otherwise
a network would read what it has to predict. Time and memory grow with rows and with classes, not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from evenly.imputation.columns import ModelledColumn, encoder_inputs, standardize
from evenly.tables import Column, Floats, coded

MOST_MEANS = 64
"""The largest number of means by class, so that inputs do not grow with the square of the number of columns."""
FEW_OUTCOMES, HASHED = 16, 16
"""Classes of a column with more outcomes than 16 are summarized by codes of 16 signs instead of by their shares."""
FARTHEST = 5.0
"""Standardized numbers are clipped here before they are averaged: no outlier decides on its class."""
EVIDENCE = 3.0
"""Standard errors by which a column must differ between classes more than by chance."""
LEAST_SHRINKAGE = 0.1
"""In rows: the smallest weight of the mean of all rows in that of a class."""


@dataclass(frozen=True)
class MeansPlan:
    """Which means a column with many classes gets."""

    column: int
    """Its number among the modelled columns."""
    others: tuple[int, ...]
    """The columns that are averaged."""
    width: int
    """The number of means by class."""
    n_numbers: int
    """How many of these, the first, are means of numbers."""


def plan_means(specs: Sequence[ModelledColumn]) -> tuple[MeansPlan, ...]:
    """Return the means of each column that has many classes: numbers and two classes first, while there is room."""
    plans = []
    for k, one in enumerate(specs):
        if not one.column.has_rest:
            continue
        plans.append(MeansPlan(k, *choose_averaged(specs, [k], MOST_MEANS)))
    return tuple(plans)


def choose_averaged(
    specs: Sequence[ModelledColumn], without: Sequence[int | None], most: int
) -> tuple[tuple[int, ...], int, int]:
    """Return the columns to average, how many means that makes, and how many of these, the first, are of numbers."""
    others, width = list[int](), 0
    for j in sorted((j for j in range(len(specs)) if j not in without), key=lambda j: _width(specs[j].column) > 1):
        if width + _width(specs[j].column) <= most:
            others.append(j)
            width += _width(specs[j].column)
    return tuple(others), width, sum(_width(specs[j].column) == 1 for j in others)


@dataclass(frozen=True)
class LevelMeans:
    """The means of other columns at each class of the columns that have many."""

    plans: tuple[MeansPlan, ...]
    means: tuple[npt.NDArray[np.float32], ...]
    """Classes x means, for each plan."""

    @property
    def width(self) -> int:
        """The number of inputs."""
        return sum(one.width for one in self.plans)

    def inputs(self, values: Sequence[Floats]) -> npt.NDArray[np.float32]:
        """Return the inputs of rows, given every modelled column's values or codes: 0 where the class is missing."""
        parts = [_look_up(means, values[plan.column]) for plan, means in zip(self.plans, self.means, strict=True)]
        return np.concatenate(parts, axis=1)


def fit_means(specs: Sequence[ModelledColumn], values: Sequence[Floats]) -> LevelMeans | None:
    """Return the means of the observed cells at each class; None if no column has many classes."""
    plans = plan_means(specs)
    means = tuple(_sums_of(plan, specs, values).means().astype(np.float32) for plan in plans)
    return LevelMeans(plans, means) if plans else None


def inputs_without_own(specs: Sequence[ModelledColumn], values: Sequence[Floats]) -> npt.NDArray[np.float32]:
    """Return the inputs of the rows that the means are taken from, each without the row's own cells."""
    parts = [_sums_of(plan, specs, values).means_without_own() for plan in plan_means(specs)]
    return np.concatenate(parts, axis=1)


def _sums_of(plan: MeansPlan, specs: Sequence[ModelledColumn], values: Sequence[Floats]) -> ClassSums:
    codes, n_classes = values[plan.column], len(specs[plan.column].column.classes or ())
    return ClassSums.of(codes, n_classes, averaged_cells(specs, values, plan.others))


# --- sums -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassSums:
    """Sums over the rows of each class."""

    codes: Floats
    cells: npt.NDArray[np.float32]
    """What is averaged, rows x means; NaN where missing."""
    sums: Floats
    """Classes x means."""
    counts: Floats
    """How many cells were added up: classes x means."""
    squares: Floats
    """The sum of the squares of each kind of cell."""

    @classmethod
    def of(cls, codes: Floats, n_classes: int, cells: npt.NDArray[np.float32]) -> ClassSums:
        """Add up the cells of each class; a missing code is that of no class."""
        rows = np.flatnonzero(~np.isnan(codes))
        at = codes[rows].astype(np.intp)
        sums, counts = np.zeros((2, n_classes, cells.shape[1]))
        squares = np.zeros(cells.shape[1])
        for d in range(cells.shape[1]):
            own = cells[rows, d].astype(np.float64)
            known = ~np.isnan(own)
            sums[:, d] = np.bincount(at[known], own[known], n_classes)
            counts[:, d] = np.bincount(at[known], minlength=n_classes)
            squares[d] = float((own[known] ** 2).sum())
        return cls(codes, cells, sums, counts, squares)

    @cached_property
    def center(self) -> Floats:
        """The mean of all rows."""
        return np.asarray(self.sums.sum(0) / np.maximum(self.counts.sum(0), 1.0))

    @cached_property
    def shrinkage(self) -> Floats:
        """The weight of the mean of all rows, in rows: the variance within classes over that between them.

        Infinite where classes do not differ by more than by chance (an analysis of variance with random effects).
        """
        n, n_classes = self.counts.sum(0), (self.counts > 0).sum(0)
        away = self.sums - self.counts * self.center
        between = (away**2 / np.maximum(self.counts, 1.0)).sum(0)
        within = np.maximum(self.squares - n * self.center**2 - between, 0.0)
        free, left = np.maximum(n_classes - 1.0, 1.0), np.maximum(n - n_classes, 1.0)
        noise = within / left
        size = (n - (self.counts**2).sum(0) / np.maximum(n, 1.0)) / free  # rows of a class, on average
        signal = (between / free - noise) / np.maximum(size, 1e-9)
        least = EVIDENCE * np.sqrt(2.0 / free + 2.0 / left) * noise
        clear = (between / free - noise > least) & (n > n_classes) & (n_classes > 1)
        return np.where(clear, np.maximum(noise / np.maximum(signal, 1e-300), LEAST_SHRINKAGE), np.inf)

    def means(self) -> Floats:
        """Return the shrunk means of each class, less the mean of all rows."""
        return np.asarray((self.sums - self.counts * self.center) / (self.counts + self.shrinkage))

    def means_without_own(self) -> npt.NDArray[np.float32]:
        """Return the mean of each row's class, without the row's own cells."""
        return self.means_of(self.codes, self.cells)

    def means_of(self, codes: Floats, own: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the mean of the class of some rows, without cells of it that are their own, where these are known."""
        found = _look_up(self.means().astype(np.float32), codes)
        for d in range(own.shape[1]):
            rows = np.flatnonzero(~np.isnan(codes) & ~np.isnan(own[:, d]))
            at = codes[rows].astype(np.intp)
            n = self.counts[at, d] - 1.0
            left = self.sums[at, d] - own[rows, d] - n * self.center[d]
            found[rows, d] = left / (n + self.shrinkage[d])
        return found


def _look_up(means: npt.NDArray[np.float32], codes: Floats) -> npt.NDArray[np.float32]:
    found = np.zeros((len(codes), means.shape[1]), np.float32)
    known = np.flatnonzero(~np.isnan(codes))
    found[known] = means[codes[known].astype(np.intp)]
    return found


# --- what is averaged -------------------------------------------------------------------------------------------------


def _width(column: Column) -> int:
    """Return how many numbers stand for a cell of a column."""
    if column.kind not in ("categorical", "ordinal"):
        return 1
    return column.n_outcomes if column.n_outcomes <= FEW_OUTCOMES else HASHED


def averaged_cells(
    specs: Sequence[ModelledColumn], values: Sequence[Floats], which: Sequence[int], *, by_code: bool = False
) -> npt.NDArray[np.float32]:
    """Return numbers for the cells of some columns, rows x numbers; NaN where missing.

    Parameters
    ----------
    by_code : bool
        Whether signs stand for the codes of classes, which a trial on codes has too, and not for their texts.
    """
    nothing = np.zeros((len(values[0]), 0), np.float32)
    return np.concatenate([nothing, *(_averaged(specs[j], values[j], by_code) for j in which)], axis=1)


def _averaged(spec: ModelledColumn, values: Floats, by_code: bool) -> npt.NDArray[np.float32]:
    """Return numbers for the cells of a column, rows x numbers; NaN where missing."""
    column, missing = spec.column, np.isnan(values)[:, None]
    if column.kind not in ("categorical", "ordinal"):
        standard = standardize(encoder_inputs(column, values), spec.centers[:1], spec.spreads[:1])
        cells = np.clip(standard, -FARTHEST, FARTHEST)
    elif column.n_outcomes <= FEW_OUTCOMES:
        cells = encoder_inputs(column, values)
    else:
        codes = np.nan_to_num(values).astype(np.intp)
        cells = signs(coded(column) if by_code else column)[codes]
    return np.where(missing, np.nan, cells).astype(np.float32)


def signs(column: Column) -> Floats:
    """Return a code of signs for each class of a column: the first bits of the BLAKE2b hash of its text.

    Means of codes tell apart which classes occur together with another one, without an input for each.

    Examples
    --------
    >>> signs(Column(name="colour", kind="categorical", classes=["blue", "red"])).sum(1)
    array([ 6., -4.])
    """
    digests = [blake2b(str(value).encode("utf-8"), digest_size=HASHED // 8).digest() for value in column.classes or ()]
    bits = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8)).reshape(-1, HASHED)
    return bits.astype(np.float64) * 2.0 - 1.0
