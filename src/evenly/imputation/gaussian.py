"""Straight lines: a joint normal of all columns, which says of every missing cell what the known ones of its row do.

A network needs rows to learn from. What one column says of another in a straight line takes few, and where there are
many such lines, of columns that nearly repeat each other, no network finds them as exactly. The normal is that of a
number and of its place among the column's numbers, and of every class; it is fitted by expectation-maximization, so
that a row with missing cells counts for what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from evenly.imputation.bins import Bins
from evenly.imputation.encoding import FARTHEST_TARGET, Part, encoder_inputs, standardize
from evenly.scaling import FittedColumn
from evenly.tables import Floats

Usual = dict[str, Any]

MOST_FEATURES = 500
"""A table with more features than this is left to the network: every row would cost the cube of its missing ones."""
MOST_ROWS = 6_000
"""Rows that it is fitted on at most: lines are known from these."""
N_STEPS, SETTLED = 30, 2e-3
"""Steps of expectation-maximization at most, and the largest change of a covariance that ends them."""
PRIORS = (1.0, 5.0, 25.0, 125.0)
"""Rows of columns that say nothing of each other which are added, in number: what is tried, on held-out cells."""
PRIOR = 5.0
"""The same where nothing is tried."""
FARTHEST_PLACE = 1e-3
"""Shares of the smallest and largest numbers that share a place."""
LEAST_CLASS = 0.02
"""No class is less probable than this part of its own share, whatever the lines say: they know no bounds."""
MOST_PREFERRED = 20.0
"""How much more, or less, probable than under the normal a bin may be: its share says, but far tails hold no normal."""
BLOCK = 4_000_000
"""Numbers of the matrices that are inverted at once, at most."""


class Joint(NamedTuple):
    """A joint normal of features in standard deviations: their means, and the inverse of their covariances."""

    mean: Floats
    precision: Floats


def fit_joint(table: Floats, prior: float = PRIOR, start: Joint | None = None) -> Joint:
    """Fit a joint normal to rows with missing features (NaN), which are in standard deviations from their means.

    Parameters
    ----------
    prior : float
        How many rows' weight lies on features that say nothing of each other.
    start : Joint, optional
        One of nearly the same table, to go on from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2_000)
    >>> table = np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=2_000)])
    >>> table[:500, 1] = np.nan
    >>> np.linalg.inv(fit_joint(table).precision).round(1)
    array([[1. , 0.8],
           [0.8, 1. ]])
    """
    n, width = table.shape
    known = ~np.isnan(table)
    if start is None:
        filled, counts = np.where(known, table, 0.0), known.astype(float)
        pairs = counts.T @ counts
        found, axes = np.linalg.eigh(filled.T @ filled / np.maximum(pairs, 1.0) * (pairs / (pairs + prior)))
        # Covariances of pairs, each of other rows, need not be those of any table.
        start = Joint(np.zeros(width), np.linalg.inv((axes * np.maximum(found, 1e-2)) @ axes.T))
    joint, covariance = start, np.linalg.inv(start.precision)
    for _ in range(N_STEPS):
        filled, spread = np.where(known, table, 0.0), np.zeros(width * width)
        for rows, features, expected, left in _expect(joint, table):
            filled[rows[:, None], features] = expected
            pairs = features[:, :, None] * width + features[:, None, :]
            spread += np.bincount(pairs.ravel(), left.ravel(), width * width)
        mean = filled.sum(0) / (n + prior)
        filled -= mean
        fresh = (filled.T @ filled + spread.reshape(width, width) + prior * np.eye(width)) / (n + prior)
        moved = float(np.abs(fresh - covariance).max())
        covariance, joint = fresh, Joint(mean, np.linalg.inv(fresh))
        if moved < SETTLED:
            break
    return joint


def expect(joint: Joint, table: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every missing feature, given those that its row has; NaN at the others."""
    means, stds = np.full(table.shape, np.nan), np.full(table.shape, np.nan)
    for rows, features, expected, left in _expect(joint, table):
        means[rows[:, None], features] = expected
        stds[rows[:, None], features] = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 0.0))
    return means, stds


def _expect(joint: Joint, table: Floats) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Go through the rows with missing features, those with as many together: rows, features, means, covariances.

    The covariance of some features given all others is the inverse of their part of the precision: as large as what
    is missing, not as what is known. Sums of products row by row, so that a row does not go by those around it.
    """
    missing = np.isnan(table)
    away = np.where(missing, 0.0, table - joint.mean)
    counts = missing.sum(1)
    for k in np.unique(counts[counts > 0]):
        some = np.flatnonzero(counts == k)
        size = max(1, BLOCK // int(k * max(k, table.shape[1])))
        for rows in np.split(some, range(size, len(some), size)):
            features = np.nonzero(missing[rows])[1].reshape(len(rows), k)
            left = np.linalg.inv(joint.precision[features[:, :, None], features[:, None, :]])
            pull = np.einsum("rkf,rf->rk", joint.precision[features], away[rows])
            yield rows, features, joint.mean[features] - np.einsum("rkl,rl->rk", left, pull), left


# --- of a table ---------------------------------------------------------------------------------------------------


def owners(parts: Sequence[Part]) -> npt.NDArray[np.intp]:
    """Return which of the modelled columns each feature of a joint normal belongs to."""
    widths = [len(part.centers) + (part.bins is not None) for part in parts if part.modelled]
    return np.repeat(np.arange(len(widths)), widths)


def place_cells(columns: Sequence[FittedColumn], parts: Sequence[Part], values: Sequence[Floats | None]) -> Floats:
    """Return the features of a joint normal from columns' values or codes: rows x features, NaN where missing.

    Of a number: its distance from the mean, and its place among the column's numbers as a quantile of the normal. Of
    a class: whether it is that one.
    """
    found = []
    for fitted, part, own in zip(columns, parts, values, strict=True):
        if not part.modelled:
            continue
        assert own is not None
        if part.bins is None:
            standard = standardize(encoder_inputs(fitted.column, own), part.centers, part.spreads)
        else:
            places = np.clip(part.bins.places(own), FARTHEST_PLACE, 1.0 - FARTHEST_PLACE)
            standard = np.column_stack([standardize(own, part.mean, part.std), ndtri(places)])
        found.append(np.where(np.isnan(own)[:, None], np.nan, np.clip(standard, -FARTHEST_TARGET, FARTHEST_TARGET)))
    return np.concatenate(found, axis=1)


def speak(columns: Sequence[FittedColumn], parts: Sequence[Part], joint: Joint, table: Floats) -> list[Usual]:
    """Return what a joint normal says of each modelled column's cells; NaN where a cell is known.

    Of a binned number: `mean` and `probabilities`; of classes `probabilities`, or the `probability` of yes.
    """
    means, stds = expect(joint, table)
    found, at = [], 0
    for fitted, part in zip(columns, parts, strict=True):
        if not part.modelled:
            continue
        if part.bins is not None:
            mean = np.clip(means[:, at], -FARTHEST_TARGET, FARTHEST_TARGET)
            shares = tilt(part.bins, mean, stds[:, at], part.mean, part.std)
            with np.errstate(over="ignore"):
                in_units = np.clip(part.mean + part.std * mean, part.extent[0], part.extent[1])
            found.append({"mean": in_units, "probabilities": shares})
            at += 2
            continue
        width = len(part.centers)
        if fitted.column.has_classes:
            likely = np.asarray(part.centers) + np.asarray(part.spreads) * means[:, at : at + width]
            least = LEAST_CLASS * np.asarray(fitted.frequencies)
            if width == 1:
                found.append({"probability": np.clip(likely[:, 0], least[1], 1.0 - least[0])})
            else:
                likely = np.maximum(likely, np.maximum(least, 1e-6))
                found.append({"probabilities": likely / likely.sum(1, keepdims=True)})
        else:
            found.append({})
        at += width
    return found


def tilt(bins: Bins, means: Floats, stds: Floats, center: float, spread: float) -> Floats:
    """Return the probabilities of bins under normals, in standard deviations of the column; NaN stays.

    A normal knows no zeros and no tails. So a bin is as much more probable than under it as its share of the column is
    than under the column's own normal.

    Examples
    --------
    >>> from evenly.imputation.bins import make_bins
    >>> bins = make_bins(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> tilt(bins, np.array([0.0, 5.0]), np.array([1.0, 0.1]), 0.25, 0.433).round(2)
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    edges = standardize(bins.edges, center, spread)
    share = np.asarray(bins.share)
    preferred = share / np.maximum(np.diff(ndtr(edges), prepend=0.0, append=1.0), 1e-12)
    preferred = np.clip(preferred, 1.0 / MOST_PREFERRED, MOST_PREFERRED)
    # The difference of two probabilities near 1 is lost: on that side those of the other end are taken.
    z = (edges - means[:, None]) / np.maximum(stds, 1e-6)[:, None]
    low, high = (
        np.pad(z, ((0, 0), (1, 0)), constant_values=-np.inf),
        np.pad(z, ((0, 0), (0, 1)), constant_values=np.inf),
    )
    low, high = np.where(low > 0.0, -high, low), np.where(low > 0.0, -low, high)
    likely = preferred * (ndtr(high) - ndtr(low)) + 1e-9 * share
    return np.asarray(likely / likely.sum(1, keepdims=True))
