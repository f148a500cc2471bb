"""What `benchmarks/programs.py` measures of SVI: held-out log-likelihoods of a program by column, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO, init_to_median, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from program_models import CELLS, MODELS, check, load, program, split

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adam": numpyro.optim.Adam,
    "momentum": lambda rate: numpyro.optim.Momentum(rate, 0.9),
}
RANGES = {"adam": (-3.0, 0.5), "momentum": (-10.0, -2.0)}
"""Logs to base 10 of the smallest and the largest learning rate that is tried."""
DRAWS = 20
"""Draws of the guide by measurement."""
DIVERGED = -1e6


def measure_svi(name: str, method: str, settings: dict[str, Any], seeds: list[int]) -> list[dict[str, Any]]:
    """Return the curves of each seed under the learning rate that is best on its validation cells, of a grid."""
    check(name)
    rates, columns = np.logspace(*RANGES[settings["optimizer"]], settings["rates"]), list(MODELS[name].families)
    compiled = compile_fit(program(name, method, load(name))[0], split(name, seeds[0])[0], columns, settings)
    records = []
    for seed in seeds:
        found = np.asarray(compiled(jnp.asarray(rates), jax.random.key(seed), *split(name, seed)), np.float64)
        found = np.where(np.isfinite(found), np.maximum(found, DIVERGED), DIVERGED)
        by_rate = found[:, -1, 0].mean(axis=-1)  # of rate, moment, part and column
        best = int(by_rate.argmax())
        records.append(
            {
                "rate": float(f"{rates[best]:.4g}"),
                "at_the_edge": best in (0, len(rates) - 1),
                "validation_by_rate": [_short(one) for one in by_rate],
                "columns": columns,
                "curves": [[_short(one) for one in moment] for moment in found[best, :, 1]],
            }
        )
    return records


def _short(value: Any) -> float:
    return float(f"{value:.6g}")


def compile_fit(moved: Any, cells: CELLS, columns: list[str], settings: dict[str, Any]) -> Any:
    """Return a function of rates, key and cells: log-likelihoods by rate, moment, part and column, all at once."""
    guide = AutoNormal(moved, init_loc_fn=init_to_median)
    with handlers.seed(rng_seed=0):
        guide(cells)  # so that no tracer gets into it

    def score(params: Any, key: Any, held: tuple[CELLS, ...]) -> Any:
        samples = guide.sample_posterior(key, params, sample_shape=(DRAWS,))
        scores = []
        for cells in held:
            each = log_likelihood(moved, samples, cells)
            by_cell = {name: jax.nn.logsumexp(each[name], axis=0) - np.log(DRAWS) for name in columns}
            scores.append([by_cell[name].sum() / jnp.sum(~jnp.isnan(cells[name])) for name in columns])
        return jnp.array(scores)

    def run(rate: Any, key: Any, train: CELLS, *held: CELLS) -> Any:
        svi = SVI(moved, guide, OPTIMIZERS[settings["optimizer"]](rate), Trace_ELBO())
        one, other = jax.random.split(key)

        def some(state: Any, key: Any) -> Any:
            found = score(svi.get_params(state), key, held)
            return jax.lax.fori_loop(0, settings["every"], lambda _, s: svi.update(s, train)[0], state), found

        keys = jax.random.split(other, settings["steps"] // settings["every"] + 1)
        return jax.lax.scan(some, svi.init(one, train), keys)[1]

    return jax.jit(jax.vmap(run, in_axes=(0, None, None, None, None)))
