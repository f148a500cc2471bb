"""Weights of conflicting gradients from their inner products: the solvers of multitask learning, as pure functions.

All of them see the gradients g of the columns only through the Gram matrix M, M_ij = g_i . g_j, and return one weight a
column: the combined gradient is the weighted sum. Columns that take no part have a row and a column of zeros, and
`active` says which do. Matrices have one size for all tables of a size class, so that programs are compiled once.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

TINY = 1e-12
MGDA_STEPS, MGDA_LEAST_STEP = 100, 1e-3
"""Of the Frank-Wolfe method of Sener and Koltun (2018)."""
CAGRAD_STEPS, CENTRING = 40, 0.1
"""Interior-point steps, and how much closer each of them aims to the solution."""
PARETO = 1e-4
"""Below this norm of the combination, relative to that of all gradients, no direction helps every column."""
NASH_STEPS = 40
RANK_TOLERANCE = 1e-6
"""Singular values of a Gram matrix below this share of the largest one count as 0."""


def mgda(gram: jax.Array, active: jax.Array) -> jax.Array:
    """Return the weights, of sum 1, of the shortest convex combination of the gradients (Désidéri 2012).

    Examples
    --------
    >>> print(mgda(jnp.diag(jnp.array([1.0, 3.0])), jnp.ones(2, bool)))  # in the ratio of 1 / norm^2
    [0.75 0.25]
    """

    def improve(carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
        i, weights, _ = carry
        slopes = gram @ weights
        best = jnp.argmin(jnp.where(active, slopes, jnp.inf))
        inner, old, new = slopes[best], weights @ slopes, gram[best, best]
        between = (old - inner) / jnp.where(new + old > 2.0 * inner, new + old - 2.0 * inner, 1.0)
        step = jnp.where(new <= inner, 1.0, jnp.where(old <= inner, 0.0, between))
        corner = jnp.arange(len(gram)) == best
        return i + 1, (1.0 - step) * weights + step * corner, step

    start = (0, _even(active, gram.dtype), jnp.ones((), gram.dtype))
    going = lambda carry: (carry[0] < MGDA_STEPS) & (carry[2] >= MGDA_LEAST_STEP)  # noqa: E731
    return jnp.asarray(jax.lax.while_loop(going, improve, start)[1])


def pcgrad(gram: jax.Array, orders: jax.Array) -> jax.Array:
    """Return the weights of the sum of gradients, each freed of its conflicts with the others (Yu et al. 2020).

    Parameters
    ----------
    orders : array of int
        The order in which a column's conflicts are removed, a row for each column.

    Examples
    --------
    >>> pcgrad(jnp.array([[1.0, -0.5], [-0.5, 1.0]]), jnp.array([[0, 1], [1, 0]])).tolist()
    [1.5, 1.5]
    """
    n = len(gram)
    squares = jnp.maximum(jnp.diagonal(gram), TINY)

    def project(k: Any, weights: jax.Array) -> jax.Array:
        others = orders[:, k]
        inner = (weights * gram[others]).sum(1)
        conflict = jnp.where((others != jnp.arange(n)) & (inner < 0.0), inner / squares[others], 0.0)
        return weights.at[jnp.arange(n), others].add(-conflict)

    return jnp.asarray(jax.lax.fori_loop(0, n, project, jnp.eye(n, dtype=gram.dtype)).sum(0))


def imtl_g(gram: jax.Array) -> jax.Array:
    """Return the weights, of sum 1, that give the combined gradient equal projections on all (Liu et al. 2021).

    Examples
    --------
    >>> print(3.0 * imtl_g(jnp.array([[1.0, 0.0], [0.0, 4.0]])))  # in the ratio of 1 / norm
    [2. 1.]
    """
    found = jnp.linalg.pinv(gram, rtol=RANK_TOLERANCE, hermitian=True) @ jnp.sqrt(jnp.diagonal(gram))
    total = found.sum()
    return jnp.where(jnp.abs(total) < TINY, 0.0, found / jnp.where(jnp.abs(total) < TINY, 1.0, total))


def cagrad(gram: jax.Array, active: jax.Array, c: float) -> jax.Array:
    """Return the weights of the direction that helps the worst column most near the mean gradient (Liu et al. 2021).

    The dual problem is convex: over weights w of sum 1, w . M m + c |g_m| sqrt(w . M w), with m the even weights. It is
    solved by a primal-dual interior-point method.

    Parameters
    ----------
    c : float
        How far the direction may be from the mean, as a share of the mean's norm.

    Examples
    --------
    >>> print(cagrad(jnp.eye(2), jnp.ones(2, bool), 0.5).round(2))
    [0.75 0.75]
    """
    even, n = _even(active, gram.dtype), jnp.maximum(active.sum(), 1)
    # Columns without a part keep a problem of their own, which leaves their weights near 0.
    scaled = gram / jnp.maximum(jnp.trace(gram), TINY)
    towards = scaled @ even + jnp.where(active, 0.0, 1.0)
    radius = c * jnp.sqrt(jnp.maximum(even @ scaled @ even, 0.0))

    def improve(_: Any, carry: Any) -> Any:
        weights, slack, level = carry
        pulled = scaled @ weights
        norm = _norm(scaled, weights)
        slope = towards + radius * pulled / norm
        curved = radius * (scaled / norm - jnp.outer(pulled, pulled) / norm**3)
        aim = CENTRING * (weights @ slack) / len(weights)
        system = curved + jnp.diag(slack / weights)
        both = jnp.linalg.solve(system, jnp.stack([aim / weights - slope - level, jnp.ones_like(weights)], 1))
        shift = (both[:, 0].sum() + weights.sum() - 1.0) / both[:, 1].sum()
        move = both[:, 0] - shift * both[:, 1]
        slackening = (aim - slack * move) / weights - slack
        step = jnp.minimum(_longest(weights, move), _longest(slack, slackening))
        tried = (weights + step * move, slack + step * slackening, level + step * shift)
        fine = jnp.isfinite(tried[0]).all() & jnp.isfinite(tried[1]).all() & jnp.isfinite(tried[2])
        return jax.tree.map(lambda new, old: jnp.where(fine, new, old), tried, carry)

    start = jnp.full(len(gram), 1.0 / len(gram), gram.dtype)
    weights = jax.lax.fori_loop(0, CAGRAD_STEPS, improve, (start, start, jnp.zeros((), gram.dtype)))[0]
    weights = jnp.where(active, weights, 0.0)
    norm = _norm(scaled, weights)
    return jnp.asarray(even + jnp.where((norm > PARETO) & (n > 1), radius / norm, 0.0) * weights)


def nash(gram: jax.Array, active: jax.Array) -> jax.Array:
    """Return the weights of the bargaining solution, M w = 1 / w (Navon et al. 2022).

    They minimize w . M w / 2 - sum(log w), which is self-concordant: damped Newton steps converge from anywhere.

    Examples
    --------
    >>> print(nash(jnp.diag(jnp.array([1.0, 4.0])), jnp.ones(2, bool)).round(2))  # 1 / norm
    [1.  0.5]
    """
    norm = jnp.maximum(jnp.linalg.norm(gram), TINY)
    # Columns without a part get a problem of their own.
    scaled = jnp.where(jnp.outer(active, active), gram / norm, 0.0) + jnp.diag(jnp.where(active, 0.0, 1.0))

    def improve(_: Any, weights: jax.Array) -> jax.Array:
        slope = scaled @ weights - 1.0 / weights
        step = jnp.linalg.solve(scaled + jnp.diag(1.0 / weights**2), slope)
        decrement = jnp.sqrt(jnp.maximum(slope @ step, 0.0))
        return jnp.asarray(weights - step / jnp.where(decrement > 0.25, 1.0 + decrement, 1.0))

    start = 1.0 / jnp.sqrt(jnp.maximum(jnp.diagonal(scaled), RANK_TOLERANCE)).astype(gram.dtype)
    found = jax.lax.fori_loop(0, NASH_STEPS, improve, start)
    return jnp.where(active, found / jnp.sqrt(norm), 0.0)


def _even(active: jax.Array, dtype: Any) -> jax.Array:
    return active.astype(dtype) / jnp.maximum(active.sum(), 1)


def _norm(gram: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.asarray(jnp.sqrt(jnp.maximum(weights @ (gram @ weights), TINY)))


def _longest(at: jax.Array, move: jax.Array) -> jax.Array:
    """Return how long a step may be, at most 1, that keeps numbers positive."""
    return jnp.minimum(1.0, 0.99 * jnp.where(move < 0.0, -at / jnp.where(move < 0.0, move, -1.0), jnp.inf).min())
