"""What `benchmarks/programs.py` measures of Markov chains: NUTS, HMC and SGLD, and the posterior they move on."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.diagnostics import effective_sample_size, gelman_rubin
from numpyro.infer import HMC, NUTS
from program_coordinates import Density, coordinates, density
from program_models import MODELS, load
from scipy.special import ndtri
from scipy.stats import rankdata

MASSES: dict[str, dict[str, Any]] = {
    "identity": {"adapt_mass_matrix": False},
    "diagonal": {},
    "dense": {"dense_mass": True},
}
ROWS = 100
"""How many patients chains get, so that a gradient takes microseconds."""
FOLDED = {"shared": "severity", "smooth": "steps", "factor": "latent"}
"""A latent variable whose sign no data tell: changed together with that of all its loadings, it gives the same density.
Draws are folded to one sign, that of the loading of ANCHOR, so that chains in mirrored modes have met."""
ANCHOR = "loading_max_hr"
HMC_STEPS = 16
"""Gradients by draw of plain HMC."""
SGLD_RATES = np.logspace(-8.0, -2.0, 13)
SGLD_BATCH = 0.1
"""The share of the rows in a batch of SGLD."""


@cache
def _raw(name: str) -> Density:
    return density(name, "raw", ROWS, jax.random.key(0))


@cache
def _start(name: str, seed: int, chain: int) -> Any:
    return np.asarray(density(name, "raw", ROWS, jax.random.fold_in(jax.random.key(seed), chain)).center)


@cache
def _compiled(sampler: str, name: str, mass: str, warmup: int, draws: int, depth: int) -> Any:
    """Return a function that runs a chain, in the coordinates that it is given: all programs share it."""
    raw, cells = _raw(name), load(name, ROWS)
    own: dict[str, Any] = {"num_steps": HMC_STEPS, "trajectory_length": None}
    own = {"max_tree_depth": depth} if sampler == "nuts" else own

    def run(key: Any, start: Any, factor: Any, shift: Any) -> Any:
        sample = NUTS if sampler == "nuts" else HMC
        kernel = sample(potential_fn=lambda z: raw.potential(cells, (z - shift) / factor), **own, **MASSES[mass])

        def step(state: Any, _: Any) -> Any:
            state = kernel.sample(state, (), {})
            return state, (state.z, state.num_steps, state.diverging, state.adapt_state.step_size)

        return jax.lax.scan(step, kernel.init(key, warmup, start, (), {}), None, length=warmup + draws)[1]

    return jax.jit(run)


def measure_scales(name: str, method: str) -> dict[str, Any]:
    """Return the factors by which a program multiplies unconstrained parameters, by site, and how many those are."""
    own, sites = coordinates(name, method, ROWS), {}
    for site, factor in _raw(name).unravel(jnp.asarray(own.factor)).items():
        first = float(np.ravel(factor)[0])
        if abs(first - 1.0) > 1e-6:
            sites[site] = float(f"{first:.4g}")
    changed = int((np.abs(own.factor - 1.0) > 1e-6).sum())
    return {"factors": sites, "multiplied": changed, "parameters": len(own.factor)}


def run_chain(sampler: str, name: str, method: str, settings: dict[str, Any], seed: int, chain: int) -> tuple[Any, ...]:
    """Return unconstrained vectors, gradients, divergences and step sizes of a chain, by iteration."""
    depth = settings.get("depth", 0)
    compiled = _compiled(sampler, name, settings["mass"], settings["warmup"], settings["draws"], depth)
    own = coordinates(name, method, ROWS)
    start = own.own(_start(name, seed, chain))
    key = jax.random.fold_in(jax.random.key(1000 + seed), chain)
    return tuple(np.asarray(one) for one in compiled(key, *map(jnp.float32, (start, own.factor, own.shift))))


def measure_chains(sampler: str, name: str, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run the chains of a seed; return what is measured."""
    warmup = settings["warmup"]
    chains = [run_chain(sampler, name, method, settings, seed, chain) for chain in range(settings["chains"])]
    z, steps, diverging, sizes = (np.stack(one) for one in zip(*chains, strict=True))
    draws = fold(name, z[:, warmup:].astype(np.float64))
    deviations = draws.reshape(-1, draws.shape[-1]).std(0)
    deepest = 2 ** settings["depth"] - 1 if sampler == "nuts" else np.inf
    return {
        **quality(draws),
        "gradients": int(steps.sum()),
        "gradients_of_warmup": int(steps[:, :warmup].sum()),
        "step_size": float(f"{np.median(sizes[:, -1]):.4g}"),
        "divergences": int(diverging[:, warmup:].sum()),
        "cut_trees": float(np.mean(steps[:, warmup:] >= deepest)),
        "spread_ratio": float(f"{deviations.max() / max(deviations.min(), 1e-30):.4g}"),
    }


def fold(name: str, draws: Any) -> Any:
    """Return draws with the sign of a latent variable known, along the last axis of vectors."""
    if name not in FOLDED:
        return draws
    raw = _raw(name)
    places = raw.unravel(np.arange(draws.shape[-1]))
    signs = np.sign(draws[..., np.ravel(places[ANCHOR]).astype(int)])
    loadings = [f"loading_{column}" for column in MODELS[name].families]
    flipped = np.concatenate([np.ravel(places[site]).astype(int) for site in (FOLDED[name], *loadings)])
    draws = draws.copy()
    draws[..., flipped] *= signs
    return draws


def quality(draws: Any) -> dict[str, Any]:
    """Return the smallest bulk effective sample size and the largest R-hat of all parameters.

    Draws by chain, iteration and parameter. Chains are split and ranks normalized, as Vehtari et al. (2021) do.
    """
    halves = np.concatenate(np.array_split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1))
    ranks = rankdata(halves.reshape(-1, halves.shape[-1]), axis=0).reshape(halves.shape)
    normal = ndtri((ranks - 0.375) / (halves.shape[0] * halves.shape[1] + 0.25))
    most = draws[..., 0].size * np.log10(draws[..., 0].size)  # as they bound it; NumPyro's may be negative beyond
    with np.errstate(all="ignore"):
        sizes = np.nan_to_num(effective_sample_size(normal))
        size = np.min(np.where(sizes < 0.0, most, np.minimum(sizes, most)))
        hat = np.max(np.nan_to_num(gelman_rubin(normal), nan=1e6, posinf=1e6))
    return {"ess": float(f"{size:.5g}"), "r_hat": float(f"{hat:.5g}")}


# --- stochastic gradient Langevin dynamics ----------------------------------------------------------------------------


@cache
def reference(name: str) -> Any:
    """Return raw unconstrained draws of long chains of NUTS on the program standardized by std, folded."""
    settings = {"mass": "diagonal", "warmup": 1000, "draws": 1000, "depth": 10}
    found = [run_chain("nuts", name, "std", settings, 12345, chain)[0][1000:] for chain in range(2)]
    draws = coordinates(name, "std", ROWS).raw(np.concatenate(found).astype(np.float64))
    return fold(name, draws)


@cache
def _langevin(name: str, steps: int, thin: int) -> Any:
    """Return a function that runs SGLD with every step size, in the coordinates that it is given."""
    raw, cells = _raw(name), {key: jnp.asarray(one) for key, one in load(name, ROWS).items()}
    observed, n_batch = list(MODELS[name].families), int(SGLD_BATCH * ROWS)

    def of(raw_z: Any, rows: Any) -> Any:
        """Return the potential with the cells of these rows only."""
        some = {column: jnp.where(rows, cells[column], jnp.nan) for column in observed}
        return raw.potential({**cells, **some}, raw_z)

    def total(raw_z: Any, rows: Any) -> Any:
        prior = of(raw_z, jnp.zeros(ROWS, bool))
        return prior + (of(raw_z, rows) - prior) / SGLD_BATCH

    def run(rate: Any, key: Any, start: Any, factor: Any, shift: Any) -> Any:
        def step(z: Any, key: Any) -> Any:
            one, other = jax.random.split(key)
            rows = jax.random.permutation(one, ROWS) < n_batch
            slope = jax.grad(total)((z - shift) / factor, rows) / factor
            return z - 0.5 * rate * slope + jnp.sqrt(rate) * jax.random.normal(other, z.shape), None

        def block(z: Any, key: Any) -> Any:
            z = jax.lax.scan(step, z, jax.random.split(key, thin))[0]
            return z, z

        return jax.lax.scan(block, start, jax.random.split(key, steps // thin))[1]

    return jax.jit(jax.vmap(run, (0, 0, None, None, None)))


def measure_sgld(name: str, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run SGLD with every step size; return errors of the means and spreads of parameters in their own spreads."""
    own, draws = coordinates(name, method, ROWS), reference(name)
    center, spread = own.own(draws).mean(0), own.own(draws).std(0)
    keys = jax.random.split(jax.random.key(seed), len(SGLD_RATES))
    given = map(jnp.float32, (own.own(_start(name, seed, 0)), own.factor, own.shift))
    run = _langevin(name, settings["steps"], settings["thin"])
    drawn = np.asarray(run(jnp.float32(SGLD_RATES), keys, *given), np.float64)
    kept = fold(name, drawn[:, drawn.shape[1] // 2 :])
    with np.errstate(all="ignore"):
        means = np.max(np.abs(kept.mean(1) - center) / spread, axis=-1)
        spreads = np.max(np.abs(np.log(kept.std(1) / spread)), axis=-1)
    return {
        "rates": [float(f"{one:.4g}") for one in SGLD_RATES],
        "mean_error": _finite(means),
        "spread_error": _finite(spreads),
        "gradients": settings["steps"],
    }


def _finite(values: Any) -> list[float | None]:
    return [float(f"{one:.4g}") if np.isfinite(one) else None for one in values]
