"""What `benchmarks/programs.py` measures of SVI: held-out log-likelihoods of a program by column, step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO, init_to_value, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import constrain_fn
from program_coordinates import coordinates, density
from program_models import CELLS, MODELS, load, program, split

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adam": numpyro.optim.Adam,
    "momentum": lambda rate: numpyro.optim.Momentum(rate, 0.9),
}
RANGES = {"adam": (-3.0, 0.5), "momentum": (-10.0, -2.0)}
"""Logs to base 10 of the smallest and the largest learning rate that is tried."""
DRAWS = 20
"""Draws of the guide by measurement."""
DIVERGED = -1e6


def measure_svi(name: str, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the curves of the fit whose learning rate is best on validation cells, of a grid."""
    own = coordinates(name, method, None)
    start = own.own(np.asarray(density(name, "raw", None, jax.random.key(seed)).center))
    moved = tuple(map(jnp.float32, (start, own.factor, own.shift)))
    columns, optimizer = list(MODELS[name].families), settings["optimizer"]
    rates = np.logspace(*RANGES[optimizer], settings["rates"])
    compiled = _compiled(name, optimizer, settings["steps"], settings["every"])
    found = np.asarray(compiled(jnp.float32(rates), jax.random.key(seed), moved, *split(name, seed)), np.float64)
    found = np.where(np.isfinite(found), np.maximum(found, DIVERGED), DIVERGED)
    by_rate = found[:, -1, 0].mean(axis=-1)  # of rate, moment, part and column
    best = int(by_rate.argmax())
    return {
        "rate": float(f"{rates[best]:.4g}"),
        "at_the_edge": best in (0, len(rates) - 1),
        "validation_by_rate": [_short(one) for one in by_rate],
        "columns": columns,
        "curves": [[_short(one) for one in moment] for moment in found[best, :, 1]],
    }


def _short(value: Any) -> float:
    return float(f"{value:.6g}")


@cache
def _compiled(name: str, optimizer: str, steps: int, every: int) -> Any:
    """Return a function of rates, key, coordinates and cells: log-likelihoods by rate, moment, part and column."""
    raw, raw_program = density(name, "raw", None, jax.random.key(0)), program(name, "raw", load(name))[0]
    columns = list(MODELS[name].families)

    def score(vectors: Any, held: tuple[CELLS, ...]) -> Any:
        scores = []
        for cells in held:
            samples = jax.vmap(lambda z, cells=cells: constrain_fn(raw_program, (cells,), {}, raw.unravel(z)))(vectors)
            each = log_likelihood(raw_program, samples, cells)
            by_cell = {column: jax.nn.logsumexp(each[column], axis=0) - np.log(DRAWS) for column in columns}
            scores.append([by_cell[column].sum() / jnp.sum(~jnp.isnan(cells[column])) for column in columns])
        return jnp.array(scores)

    def run(rate: Any, key: Any, moved: Any, train: CELLS, *held: CELLS) -> Any:
        start, factor, shift = moved

        def model(cells: CELLS) -> None:
            z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real_vector, (), start.shape))
            with handlers.block():  # the guide knows nothing of the sites within
                energy = raw.potential(cells, (z - shift) / factor)
            numpyro.factor("density", -energy)

        guide = AutoNormal(model, init_loc_fn=init_to_value(values={"z": start}))
        svi = SVI(model, guide, OPTIMIZERS[optimizer](rate), Trace_ELBO())
        one, other = jax.random.split(key)

        def some(state: Any, key: Any) -> Any:
            drawn = guide.sample_posterior(key, svi.get_params(state), sample_shape=(DRAWS,))["z"]
            found = score((drawn - shift) / factor, held)
            return jax.lax.fori_loop(0, every, lambda _, s: svi.update(s, train)[0], state), found

        keys = jax.random.split(other, steps // every + 1)
        return jax.lax.scan(some, svi.init(one, train), keys)[1]

    return jax.jit(jax.vmap(run, in_axes=(0, None, None, None, None, None)))
