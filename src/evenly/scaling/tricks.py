"""Discrete columns as continuous features, and back.

The Bernoulli trick splits a column of K classes into K features, one per class. The Gamma trick moves a discrete value
(counted from 0, or 0/1 for a class) to 1 and above, adds noise in (0, 1), and models the result as a gamma.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Literal

import numpy as np
import numpy.typing as npt
from numpy.polynomial.chebyshev import cheb2poly, chebfit, chebpts1
from scipy.special import betainccinv, betaincinv, roots_jacobi

from evenly._support import TableError
from evenly.likelihoods import BERNOULLI, GAMMA, Array, Likelihood, Pivot, namespace
from evenly.scaling.statistics import ColumnStatistics, Moments, choose_pivot, location_family, take_moments
from evenly.tables import BLOCK, Column, Floats

Trick = Literal["none", "bern", "gamma"]

NOISE_A, NOISE_B = 1.1, 30.0
NOISE_MEAN = NOISE_A / (NOISE_A + NOISE_B)
NOISE_VARIANCE = NOISE_MEAN * (1.0 - NOISE_MEAN) / (NOISE_A + NOISE_B + 1.0)
"""Mean of the noise, Beta(1.1, 30): about 0.035."""
MOST_NOISE = 0.5
"""Noise is cut here (one draw in 10^9 is larger), so that rounding always gives the discrete value back."""
OFFSET = 1.0
"""Added before the noise: the data start at 1, which keeps the gamma's shape away from 0."""


@dataclass(frozen=True)
class Feature:
    """One modelled dimension of a column."""

    column: int
    name: str
    likelihood: Likelihood
    trick: Trick = "none"
    code: int | None = None
    """The class that the feature stands for, if the column was split."""
    rest: int | None = None
    """The code from which on classes are one, if the column has so many and was not split."""


def features_of(index: int, column: Column, family: Likelihood, trick: Trick) -> list[Feature]:
    """List the features of a column under a trick.

    Examples
    --------
    >>> from evenly.likelihoods import get_likelihood
    >>> color = Column(name="color", kind="categorical", likelihood="categorical", classes=["blue", "red", "green"])
    >>> [feature.name for feature in features_of(0, color, get_likelihood("categorical", 3), "gamma")]
    ['color=blue', 'color=red', 'color=green']
    """
    if trick == "none" or not family.takes_tricks or (trick == "bern" and not family.one_per_class):
        return [Feature(index, column.name, family, rest=column.n_single if column.has_rest else None)]
    model = BERNOULLI if trick == "bern" else GAMMA
    if column.kind in ("binary", "count"):
        return [Feature(index, column.name, model, trick)]
    single = (column.classes or [])[: column.n_single]
    return [Feature(index, f"{column.name}={value}", model, trick, code) for code, value in enumerate(single)]


# --- noise ----------------------------------------------------------------------------------------------------


_CELLS = 1 << 16


@cache
def _noise_table() -> tuple[Floats, Floats]:
    """Quantiles of the noise at the left ends of equal cells of (0, 1), and their rise within each cell."""
    quantiles = betaincinv(NOISE_A, NOISE_B, np.arange(_CELLS + 1) / _CELLS)
    return quantiles[:-1], np.diff(quantiles)


def _noise_quantile(levels: Floats) -> Floats:
    """Return quantiles of the noise: linear within a cell (to 1e-6), exact near both ends, where they curve."""
    left, rise = _noise_table()
    place = levels * _CELLS
    cell = place.astype(np.intp)
    noise = left[cell] + rise[cell] * (place - cell)
    ends = (cell < 16) | (cell >= _CELLS - 64)
    noise[ends] = np.minimum(betaincinv(NOISE_A, NOISE_B, levels[ends]), MOST_NOISE)
    return noise


def _generator(seed: int, feature: Feature) -> np.random.Philox:
    key = (zlib.crc32(feature.name.encode()) << 32) | (zlib.adler32(feature.name.encode()) & 0xFFFFFFFF)
    return np.random.Philox(key=[seed, key])


def draw_noise(seed: int, feature: Feature, n: int, start: int = 0) -> Floats:
    """Draw the noise of rows start .. start + n - 1: the same for the same seed, feature and row.

    The generator is counter-based and keyed by seed and feature, so that a row's noise depends on its position only.

    Examples
    --------
    >>> feature = Feature(0, "color=red", GAMMA, "gamma", 1)
    >>> bool((draw_noise(7, feature, 5)[3:] == draw_noise(7, feature, 2, start=3)).all())
    True
    """
    generator = _generator(seed, feature)
    # One step of the counter yields four numbers: skip those before the first row's own.
    generator.advance(start // 4)
    uniform = np.random.Generator(generator)
    uniform.random(start % 4)
    noise = np.empty(n)
    for first in range(0, n, BLOCK):
        block = noise[first : first + BLOCK]
        block[:] = _noise_quantile(uniform.random(len(block)))
    return noise


# --- noise by a key: arithmetic that every table engine has ---------------------------------------------------------

_PRIME, _OTHER_PRIME = 2147483579, 1073741789
"""Below 2^31, so that a product fits 64 bits. The first is 2 modulo 3, so that cubing modulo it is one to one."""
_ROUNDS = 2
"""One round of cubing already passes the tests of uniformity and independence; the second is a margin."""
_SPLIT = 0.7
"""Below this level the noise is a polynomial in level^(1/1.1), above it one in -log(1 - level)."""
_DEGREE = 12
"""Of both polynomials, which err by at most 2e-6, as the table of `draw_noise` does."""


def check_key(name: str, storage: str) -> None:
    """Refuse a key that is no whole number."""
    if storage != "integer":
        raise TableError(f"a key of {storage}s", "expected whole numbers", "cast it, or choose another", column=name)


def noise_steps(seed: int, feature: Feature) -> list[Callable[[Array], Array]]:
    """Return the steps from a row's key to its noise, each applied to the result of the one before it.

    They take arrays or Narwhals expressions. A step uses its argument several times, so an engine should keep each
    result as a column: nested, the expressions would grow to thousands of terms.
    """
    constants = [int(one) for one in np.random.Generator(_generator(seed, feature)).integers(1, 2**30, 2 + _ROUNDS)]

    def start(key: Array) -> Array:
        # Remainders of negative numbers differ between engines; these do not.
        low, high = ((key % prime + prime) % prime for prime in (_PRIME, _OTHER_PRIME))
        return (low * constants[0] + high * constants[1]) % _PRIME

    def move(constant: int) -> Callable[[Array], Array]:
        return lambda mixed: (mixed + constant) % _PRIME

    rounds = [step for constant in constants[2:] for step in (move(constant), _cube)]
    return [start, *rounds, *LEVEL_STEPS]


def _cube(mixed: Array) -> Array:
    return ((mixed * mixed) % _PRIME) * mixed % _PRIME


def _level(mixed: Array) -> Array:
    return (mixed + 0.5) * (1.0 / _PRIME)


_WIDEST = _SPLIT ** (1.0 / NOISE_A)
_LOW, _HIGH = -math.log1p(-_SPLIT), -math.log(0.5 / _PRIME)


def _bend(level: Array) -> Array:
    """Return the variable of the polynomials: from -1 to 1 for the first, from 3 to 5 for the second."""
    xp = namespace(level)
    near, far = level ** (1.0 / NOISE_A), -xp.log(1.0 - level)
    return xp.where(level < _SPLIT, near * (2.0 / _WIDEST) - 1.0, (far - _LOW) * (2.0 / (_HIGH - _LOW)) + 3.0)


@cache
def _noise_curves() -> tuple[list[float], list[float]]:
    """Coefficients of the two polynomials, from -1 to 1."""
    places = chebpts1(_DEGREE + 1)  # interpolating there is nearly the best approximation
    root, far = 0.5 * _WIDEST * (places + 1.0), _LOW + 0.5 * (_HIGH - _LOW) * (places + 1.0)
    near = betaincinv(NOISE_A, NOISE_B, root**NOISE_A) / root
    curves = near, betainccinv(NOISE_A, NOISE_B, np.exp(-far))
    first, second = (cheb2poly(chebfit(places, curve, _DEGREE)).tolist() for curve in curves)
    return first, second


def _curve(bent: Array) -> Array:
    first, second = _noise_curves()
    near = (bent + 1.0) * (0.5 * _WIDEST) * _polynomial(first, bent)
    return namespace(bent).where(bent < 2.0, near, _polynomial(second, bent - 4.0))


def _cut(noise: Array) -> Array:
    return namespace(noise).where(noise < MOST_NOISE, noise, MOST_NOISE)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    value = coefficients[-1] * x + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * x + coefficient
    return value


LEVEL_STEPS: list[Callable[[Array], Array]] = [_level, _bend, _curve, _cut]
"""The steps from a random whole number below the prime to the noise."""


def keyed_noise(seed: int, feature: Feature, keys: npt.NDArray[np.int64]) -> Floats:
    """Draw the noise of rows by their keys: the same for the same seed, feature and key, on every table engine.

    Examples
    --------
    >>> feature = Feature(0, "color=red", GAMMA, "gamma", 1)
    >>> noise = keyed_noise(7, feature, np.arange(5))
    >>> bool((noise[3:] == keyed_noise(7, feature, np.array([3, 4]))).all())
    True
    """
    return np.asarray(reduce(lambda given, step: step(given), noise_steps(seed, feature), keys))


@cache
def _noise_nodes() -> tuple[Floats, Floats]:
    """Gauss-Jacobi nodes and weights for the noise: exact for polynomials of degree 63."""
    nodes, weights = roots_jacobi(32, NOISE_B - 1.0, NOISE_A - 1.0)
    return 0.5 * (1.0 + nodes), weights / weights.sum()


# --- column -> features -----------------------------------------------------------------------------------------


def feature_values(
    feature: Feature, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None, start: int = 0
) -> Floats:
    """Return the unscaled feature from the encoded column; missing cells stay NaN.

    The Gamma trick adds noise by the row's position, counted from `start`, or by its key; without a seed, it adds the
    mean of the noise.
    """
    if feature.trick == "none":
        return values if feature.rest is None else np.minimum(values, feature.rest)
    base = values if feature.code is None else np.where(np.isnan(values), np.nan, values == feature.code)
    if feature.trick == "bern":
        return base
    if seed is None:
        return base + OFFSET + NOISE_MEAN
    noise = draw_noise(seed, feature, len(values), start) if keys is None else keyed_noise(seed, feature, keys)
    return base + OFFSET + noise


@dataclass(frozen=True)
class FeatureStatistics:
    """Moments of one feature: of its values (or logs) and of its likelihood."""

    n: int
    minimum: float
    maximum: float
    location: Moments | None
    own: Moments
    quartiles: tuple[float, float] | None = None


def feature_statistics(feature: Feature, of: ColumnStatistics) -> FeatureStatistics:
    """Return the statistics of a feature from those of its column: no pass over the data, no random draw.

    Under the Gamma trick each distinct value becomes the variable value + 1 + noise, whose mean terms are
    one-dimensional integrals over the noise.
    """
    family = feature.likelihood
    if of.counts is None:
        assert of.location is not None
        own = of.location if of.own is None else of.own
        return FeatureStatistics(of.n, of.minimum, of.maximum, of.location, own, of.quartiles)
    if not of.counts:  # nothing observed, nothing to average
        empty = Moments(0, Pivot(), np.zeros(len(family.natural_bounds)))
        return FeatureStatistics(0, of.minimum, of.maximum, None, empty)
    values = np.array(list(of.counts), np.float64)
    weights = np.array(list(of.counts.values()), np.float64)
    if feature.code is not None:
        values = (values == feature.code).astype(np.float64)
    elif feature.rest is not None:
        values = np.minimum(values, feature.rest)
    if feature.trick != "gamma":
        own = take_moments(family, values, choose_pivot(family, 0.0, 1.0, 1.0), weights)
        return FeatureStatistics(of.n, float(values.min()), float(values.max()), None, own)
    nodes, node_weights = _noise_nodes()
    points = (values[:, None] + OFFSET + nodes).ravel()
    masses = (weights[:, None] * node_weights).ravel()
    low, high = float(values.min()) + OFFSET, float(values.max()) + OFFSET + 1.0
    mean = float((points * masses).sum() / masses.sum())
    location, own = (
        take_moments(one, points, choose_pivot(one, low, high, mean), masses)
        for one in (location_family(family), family)
    )
    return FeatureStatistics(of.n, low, high, location, own)


# --- features -> column -----------------------------------------------------------------------------------------


def undo_values(feature: Feature, values: Floats) -> Floats:
    """Return the 0/1 or the whole number from a feature's unscaled values."""
    if feature.trick != "gamma":
        return values
    # The noise lies in (0, 1/2], so that rounding gives the value that it was added to.
    return np.maximum(np.rint(values - OFFSET - NOISE_MEAN), 0.0)


def undo_mean(natural: Array) -> Array:
    """Return the mean of the discrete value from the gamma's natural parameters."""
    return GAMMA.mean(natural) - OFFSET - NOISE_MEAN


def undo_binary(natural: Array) -> Array:
    """Return the Bernoulli probability from the gamma's natural parameters: the mean, cut to [0, 1]."""
    xp = namespace(natural)
    mean = undo_mean(natural)
    mean = xp.where(mean > 0.0, mean, xp.zeros_like(mean))
    return xp.where(mean < 1.0, mean, xp.zeros_like(mean) + 1.0)


def undo_moments(natural: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of the discrete value from the gamma's natural parameters."""
    variance = (natural[..., 0] + 1.0) / natural[..., 1] ** 2
    return undo_mean(natural), variance - NOISE_VARIANCE


def undo_classes(naturals: Sequence[Array], trick: Trick, frequencies: Array) -> Array:
    """Return the probabilities of the classes from the natural parameters of their features.

    Each class's mean is cut to [0, 1] and divided by their sum; where all are 0, the classes' frequencies are used. If
    these have one more, it is that of the classes without a feature of their own, which get what is left of 1.
    """
    xp = namespace(*naturals)
    parts = [BERNOULLI.mean(one) if trick == "bern" else undo_binary(one) for one in naturals]
    if len(frequencies) > len(naturals):
        left = 1.0 - sum(parts)
        parts.append(xp.where(left > 0.0, left, xp.zeros_like(left)))
    means = xp.stack(parts)
    total = means.sum(-1)[..., None]
    return xp.where(
        total > 0.0, means / xp.where(total > 0.0, total, 0.0 * total + 1.0), xp.asarray(frequencies, means)
    )
