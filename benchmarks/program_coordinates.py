"""One density in the coordinates of each program: what standardizing changes for a sampler, and that this is all.

Standardizing multiplies the unconstrained parameters of a program by factors, and shifts them. So chains of all
programs run on the raw one's log-density, compiled once, with factors and shifts as arguments. That these are what
`standardize` makes of a program is checked in double precision: coordinates, log-densities and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.infer import init_to_median
from numpyro.infer.util import constrain_fn, initialize_model, unconstrain_fn
from program_models import load, program

Vector = Any
TOLERANCE = 1e-6
"""How closely gradients have to agree, and log-densities up to a constant: relative to the largest."""


@dataclass(frozen=True)
class Coordinates:
    """The unconstrained parameters of a program: those of the raw one times a factor, plus a shift."""

    factor: Vector
    shift: Vector

    def raw(self, z: Vector) -> Vector:
        """Return the raw program's parameters."""
        return (z - self.shift) / self.factor

    def own(self, raw: Vector) -> Vector:
        """Return the parameters of this program."""
        return raw * self.factor + self.shift


@dataclass(frozen=True)
class Density:
    """A program's potential energy on unconstrained vectors, with the cells as first argument."""

    potential: Callable[[Any, Vector], Any]
    unravel: Callable[[Vector], Any]
    center: Vector
    """Where chains start, as NumPyro chooses it by default: medians of 15 draws of the priors."""


def density(name: str, method: str, n_rows: int | None, key: Any) -> Density:
    """Return the density of a program."""
    cells = load(name, n_rows)
    info, potential, *_ = initialize_model(
        key,
        program(name, method, cells)[0],
        init_strategy=init_to_median,
        dynamic_args=True,
        model_args=(cells,),
        validate_grad=False,
    )
    center, unravel = ravel_pytree(info.z)
    return Density(lambda cells, z: potential(cells)(unravel(z)), unravel, center)


@cache
def coordinates(name: str, method: str, n_rows: int | None) -> Coordinates:
    """Return the coordinates of a program, checked: same posterior, and gradients that follow."""
    with jax.enable_x64(True):
        cells, key = load(name, n_rows), jax.random.key(0)
        raw, own = (density(name, one, n_rows, key) for one in ("raw", method))
        raw_program, (own_program, carry) = program(name, "raw", cells)[0], program(name, method, cells)
        handlers.trace(handlers.seed(own_program, 0)).get_trace(cells)  # so that it knows the factors

        def move(z: Vector) -> Vector:
            values = constrain_fn(raw_program, (cells,), {}, raw.unravel(z))
            values = carry.scaled({site: np.asarray(one) for site, one in values.items()})
            return np.asarray(ravel_pytree(unconstrain_fn(own_program, (cells,), {}, values))[0])

        shift = move(np.zeros(raw.center.size))
        found = Coordinates(move(np.ones(raw.center.size)) - shift, shift)
        _same(name, method, "starts", own.center, found.own(raw.center))
        rng, constants = np.random.default_rng(0), []
        for _ in range(3):
            z = np.asarray(raw.center) + 0.1 * rng.normal(size=raw.center.size)
            energy, slope = jax.value_and_grad(own.potential, 1)(cells, jnp.asarray(found.own(z)))
            expected, raw_slope = jax.value_and_grad(raw.potential, 1)(cells, jnp.asarray(z))
            constants.append(float(energy - expected))
            _same(name, method, "coordinates", move(z), found.own(z))
            _same(name, method, "gradients", slope * found.factor, raw_slope)
            _same(name, method, "log-densities", float(energy) - constants[0], float(expected))
    return found


def _same(name: str, method: str, what: str, found: Any, expected: Any) -> None:
    """Refuse to measure what is not the same posterior."""
    found, expected = np.asarray(found), np.asarray(expected)
    if not np.max(np.abs(found - expected)) <= TOLERANCE * (1.0 + np.max(np.abs(expected))):
        raise SystemExit(f"{name}: {what} of {method} are not those of the raw program")
