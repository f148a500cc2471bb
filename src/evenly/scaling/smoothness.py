"""Smoothness: local Lipschitz constants of a log-likelihood's gradient, before and after scaling.

Norms: the constant of each partial derivative is taken with the maximum norm on the natural parameters; its dual is the
1-norm on gradients, which gives the paper's sums of absolute entries. In that pair of norms the sum over the parameters
bounds the constant of the whole gradient, and constants of a sum of likelihoods add up.
"""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, to_numpy
from evenly.tables import Floats

Bound = Literal["exact", "paper"]


def smoothness_at(family: Likelihood, natural: Array) -> float:
    """Return the paper's estimator at given parameters: the sum of the absolute entries of the Fisher matrix.

    Examples
    --------
    A centred, standardized normal is 3-smooth:

    >>> from evenly.likelihoods.continuous import NORMAL
    >>> smoothness_at(NORMAL, NORMAL.to_natural(np.array([0.0, 1.0])))
    3.0
    """
    return float(np.abs(family.fisher(to_numpy(natural))).sum())


def smoothness_by_parameter(family: Likelihood, natural: Array) -> Floats:
    """Return the estimator of each natural parameter: the row sums of the absolute Fisher matrix."""
    return np.asarray(np.abs(family.fisher(to_numpy(natural))).sum(axis=-1))


def log_scaled_smoothness(family: Likelihood, fisher: Floats, log_scale: Floats | float, bound: Bound) -> Floats:
    """Return the log of the smoothness after scaling the data, for one log-scale or many.

    `exact` is the estimator on the scaled feature itself, sum_ij |f_i f_j Fisher_ij|; `paper` is the paper's upper
    bound, sum_i |f_i| sum_j |f_j| L_i. In logs, neither huge columns nor huge scales overflow.
    """
    factors = np.asarray(family.log_factors(np.asarray(log_scale, np.float64)))
    with np.errstate(divide="ignore"):
        if bound == "paper":
            rows = np.log(np.abs(fisher).sum(axis=-1)) + factors
            return np.asarray(np.logaddexp.reduce(rows, axis=-1) + np.logaddexp.reduce(factors, axis=-1))
        entries = np.log(np.abs(fisher)) + factors[..., :, None] + factors[..., None, :]
    return np.asarray(np.logaddexp.reduce(entries.reshape((*entries.shape[:-2], -1)), axis=-1))


def scaled_smoothness(family: Likelihood, natural: Array, scale: float, bound: Bound = "exact") -> float:
    """Return the smoothness after scaling the data; infinite or 0 where it leaves the range of numbers.

    Examples
    --------
    >>> from evenly.likelihoods.continuous import EXPONENTIAL
    >>> round(scaled_smoothness(EXPONENTIAL, np.array([-2.0]), 4.0), 12)  # 4^2 / 2^2
    4.0
    """
    fisher = family.fisher(to_numpy(natural))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(log_scaled_smoothness(family, fisher, float(np.log(scale)), bound)))


def balancing_weights(smoothness: Floats, target: float | None = None, most: float = np.inf) -> Floats:
    """Return the weights of log-likelihoods that make their smoothness equal: its inverse, relative to a target.

    Parameters
    ----------
    smoothness : array
        Of each log-likelihood; one that is 0 or not finite gets the weight 1.
    target : float, optional
        By default the median of the others, so that the weights lie around 1.
    most : float
        Weights are clipped to this factor around 1.

    Examples
    --------
    >>> balancing_weights(np.array([0.25, 1.0, 2.0, 0.0]))
    array([4. , 1. , 0.5, 1. ])
    """
    usable = np.isfinite(smoothness) & (smoothness > 0.0)
    if not usable.any():
        return np.ones(len(smoothness))
    typical = float(np.median(smoothness[usable])) if target is None else target
    return np.clip(typical / np.where(usable, smoothness, typical), 1.0 / most, most)


def ball_smoothness(family: Likelihood, natural: Array, radius: float) -> float:
    """Return the smoothness over a ball; as its radius goes to 0, that becomes the estimator.

    The ball is that of the maximum norm, a box of half-width `radius` around the parameters. On a convex set the
    Lipschitz constant of a partial derivative is the largest dual norm of its gradient (the mean value theorem), so
    each constant is the maximum of a row sum of the absolute Fisher matrix over the box; the result is their sum.
    Where the box reaches the edge of the parameters' domain the curvature has no bound: infinity.

    Examples
    --------
    >>> from evenly.likelihoods.continuous import EXPONENTIAL
    >>> ball_smoothness(EXPONENTIAL, np.array([-1.0]), 0.5)  # 1 / 0.5^2, at the box's right end
    4.0
    >>> ball_smoothness(EXPONENTIAL, np.array([-1.0]), 1.0)
    inf
    """
    if not radius >= 0.0:  # NaN too
        raise TableError(f"a radius of {radius:g}", "expected one of 0 or more")
    natural = to_numpy(natural)
    low, high = np.transpose(family.natural_bounds)
    if radius == 0.0:
        return smoothness_at(family, natural)
    if (natural - radius <= low).any() or (natural + radius >= high).any():
        return float("inf")
    box = [(value - radius, value + radius) for value in natural]
    # Row sums are smooth and mostly monotone: climb from the best of the corners and the centre.
    starts = [np.array(corner) for corner in itertools.product(*box)] if len(box) <= 4 else []
    starts.append(natural)
    total = 0.0
    for i in range(len(natural)):

        def row(at: Floats, i: int = i) -> float:
            return float(np.abs(family.fisher(np.clip(at, *np.transpose(box))))[i].sum())

        best = max(starts, key=row)
        # Relative to the best start; where that is 0 (a probability that underflows), there is nothing to climb.
        unit = row(best) or 1.0
        climbed = minimize(lambda at, row=row, unit=unit: -row(at) / unit, best, bounds=box, method="L-BFGS-B")
        total += max(row(best), row(climbed.x))
    return total
