"""What `benchmarks/programs.py` measures of Markov chains: NUTS, HMC and SGLD on a program."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.diagnostics import effective_sample_size, gelman_rubin
from numpyro.infer import HMC, MCMC, NUTS, init_to_median
from numpyro.infer.util import initialize_model, unconstrain_fn
from program_models import MODELS, check, load, program
from scipy.special import ndtri
from scipy.stats import rankdata

MASSES: dict[str, dict[str, Any]] = {
    "identity": {"adapt_mass_matrix": False},
    "diagonal": {},
    "dense": {"dense_mass": True},
}
HMC_STEPS = 16
"""Gradients by draw of plain HMC."""
SGLD_RATES = np.logspace(-8.0, -2.0, 13)
SGLD_BATCH = 0.1
"""The share of the rows in a batch of SGLD."""


def measure_chains(sampler: str, name: str, method: str, settings: dict[str, Any], seeds: list[int]) -> list[Any]:
    """Run the chains of some seeds in one compiled program; return what is measured of each seed."""
    check(name)
    cells, depth, chains, warmup = load(name), settings.get("depth", 0), settings["chains"], settings["warmup"]
    moved = program(name, method, cells)[0]
    if sampler == "nuts":
        kernel: Any = NUTS(moved, init_strategy=init_to_median, max_tree_depth=depth, **MASSES[settings["mass"]])
    else:
        steps = {"num_steps": HMC_STEPS, "trajectory_length": None}
        kernel = HMC(moved, init_strategy=init_to_median, **steps, **MASSES[settings["mass"]])
    keys = jnp.concatenate([jax.random.split(jax.random.key(seed), chains) for seed in seeds])

    def step(state: Any, _: Any) -> Any:
        state = kernel.sample(state, (cells,), {})
        vector = ravel_pytree(state.z)[0]
        return state, (vector, state.num_steps, state.diverging, state.adapt_state.step_size)

    def run(key: Any) -> Any:
        start = kernel.init(key, warmup, None, (cells,), {})
        return jax.lax.scan(step, start, None, length=warmup + settings["draws"])[1]

    found = [np.asarray(one) for one in jax.jit(lambda every: jax.lax.map(run, every))(keys)]
    by_seed = zip(*(one.reshape(len(seeds), chains, *one.shape[1:]) for one in found), strict=True)
    deepest = 2**depth - 1 if depth else None
    return [_measure_chain(z, steps, lost, sizes, warmup, deepest) for z, steps, lost, sizes in by_seed]


def _measure_chain(z: Any, steps: Any, diverging: Any, sizes: Any, warmup: int, deepest: int | None) -> dict[str, Any]:
    """Return what is measured of chains: unconstrained vectors and more, by chain and iteration."""
    draws = z[:, warmup:].astype(np.float64)
    deviations = draws.reshape(-1, draws.shape[-1]).std(0)
    return {
        **quality(draws),
        "gradients": int(steps.sum()),
        "gradients_of_warmup": int(steps[:, :warmup].sum()),
        "step_size": float(f"{np.median(sizes[:, -1]):.4g}"),
        "divergences": int(diverging[:, warmup:].sum()),
        "cut_trees": float(np.mean(steps[:, warmup:] >= deepest)) if deepest else None,
        "spread_ratio": float(f"{deviations.max() / max(deviations.min(), 1e-30):.4g}"),
    }


def _unconstrained(moved: Any, cells: Any, draws: dict[str, Any]) -> Any:
    """Return draws as vectors without constraints, which is where chains move."""
    return jax.vmap(lambda one: ravel_pytree(unconstrain_fn(moved, (cells,), {}, one))[0])(draws)


def quality(draws: Any) -> dict[str, Any]:
    """Return the smallest bulk effective sample size and the largest R-hat of all parameters.

    Draws by chain, iteration and parameter. Chains are split and ranks normalized, as Vehtari et al. (2021) do.
    """
    halves = np.concatenate(np.array_split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1))
    ranks = rankdata(halves.reshape(-1, halves.shape[-1]), axis=0).reshape(halves.shape)
    normal = ndtri((ranks - 0.375) / (halves.shape[0] * halves.shape[1] + 0.25))
    with np.errstate(all="ignore"):
        size = np.min(np.nan_to_num(effective_sample_size(normal)))
        hat = np.max(np.nan_to_num(gelman_rubin(normal), nan=1e6, posinf=1e6))
    return {"ess": float(f"{size:.5g}"), "r_hat": float(f"{hat:.5g}")}


# --- stochastic gradient Langevin dynamics ----------------------------------------------------------------------------


def measure_sgld(name: str, method: str, settings: dict[str, Any], seeds: list[int]) -> list[dict[str, Any]]:
    """Run SGLD with every step size; return errors of the means and spreads of parameters in their own spreads."""
    center, spread, start, gradient, n_rows = _sgld(name, method)
    n_batch = int(SGLD_BATCH * n_rows)

    def run(rate: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            one, other = jax.random.split(key)
            rows = jax.random.permutation(one, n_rows) < n_batch
            z = state - 0.5 * rate * gradient(state, rows) + jnp.sqrt(rate) * jax.random.normal(other, state.shape)
            return z, None

        def block(state: Any, key: Any) -> Any:
            state = jax.lax.scan(step, state, jax.random.split(key, settings["thin"]))[0]
            return state, state

        keys = jax.random.split(key, settings["steps"] // settings["thin"])
        return jax.lax.scan(block, start, keys)[1]

    compiled, records = jax.jit(jax.vmap(run)), []
    for seed in seeds:
        keys = jax.random.split(jax.random.key(seed), len(SGLD_RATES))
        drawn = np.asarray(compiled(jnp.asarray(SGLD_RATES), keys), np.float64)
        kept = drawn[:, drawn.shape[1] // 2 :]
        with np.errstate(all="ignore"):
            means = np.max(np.abs(kept.mean(1) - center) / spread, axis=-1)
            spreads = np.max(np.abs(np.log(kept.std(1) / spread)), axis=-1)
        records.append(
            {
                "rates": [float(f"{one:.4g}") for one in SGLD_RATES],
                "mean_error": _finite(means),
                "spread_error": _finite(spreads),
                "gradients": settings["steps"],
            }
        )
    return records


def _finite(values: Any) -> list[float | None]:
    return [float(f"{one:.4g}") if np.isfinite(one) else None for one in values]


@cache
def _reference(name: str) -> dict[str, Any]:
    """Return draws of the raw parameters by a long chain of NUTS on the standardized program."""
    cells = load(name)
    moved, carry = program(name, "std", cells)
    mcmc = MCMC(NUTS(moved, init_strategy=init_to_median), num_warmup=1000, num_samples=2000, progress_bar=False)
    mcmc.run(jax.random.key(12345), cells)
    return carry.raw({site: np.asarray(one) for site, one in mcmc.get_samples().items()})


@cache
def _sgld(name: str, method: str) -> Any:
    """Return the mean and spread of the posterior, a start and the gradient on a batch of rows, unconstrained."""
    cells = load(name)
    check(name)
    moved, carry = program(name, method, cells)
    info, potential, *_ = initialize_model(
        jax.random.key(0), moved, init_strategy=init_to_median, dynamic_args=True, model_args=(cells,)
    )
    observed = {column: jnp.asarray(cells[column]) for column in MODELS[name].families}
    covariates = {key: jnp.asarray(one) for key, one in cells.items() if key not in observed}
    fixed = dict(cells) | covariates
    draws = carry.scaled(_reference(name))
    some = {site: jnp.asarray(draws[site]) for site in info.z}
    flat = np.asarray(jax.jit(lambda one: _unconstrained(moved, cells, one))(some), np.float64)
    start, unravel = ravel_pytree(info.z)
    n_rows = len(cells["age"])

    def of(z: Any, rows: Any) -> Any:
        """Return the potential with the cells of these rows only."""
        some = {column: jnp.where(rows, one, jnp.nan) for column, one in observed.items()}
        return potential(fixed | some)(unravel(z))

    def total(z: Any, rows: Any) -> Any:
        prior = of(z, jnp.zeros(n_rows, bool))
        return prior + (of(z, rows) - prior) / SGLD_BATCH

    return flat.mean(0), flat.std(0), start, jax.grad(total), n_rows
