"""Does it help a program to run in scaled units? The same posterior, reached by SVI and by NUTS, raw, std and lip.

    python benchmarks/programs.py svi --seeds 10 --steps 4000
    python benchmarks/programs.py nuts --seeds 10 --out nuts.jsonl

Needs `pip install ".[all,numpyro]" pandas`. All priors are carried along, so that every program has the raw one's
posterior; that is checked first, by differences of log-densities. SVI: a mean-field guide, Adam and SGD with momentum,
the learning rate of each program chosen on validation cells from one grid; then, on test cells, the log-likelihood by
column in the table's units, the column that is furthest below the best that any program reached there, and the steps to
95 % of the way from the start to the best. NUTS: the smallest bulk effective sample size by gradient evaluation with
warm-up included, step size, divergences and R-hat.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, init_to_median, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

from evenly import LipschitzScaler, load_heart
from evenly._support import align
from evenly.integrations.numpyro import rescale_prior, standardize

METHODS = {"raw": None, "std": "std-none", "lip": "lip-none"}
FAMILIES = {
    "rest_bp": "normal",
    "cholesterol": "log-normal",
    "max_hr": "gamma",
    "st_depression": "exponential",
    "age": "normal",
}
OUTCOMES = ("rest_bp", "cholesterol", "max_hr", "st_depression")
CELLS = dict[str, Any]
"""Arrays of cells by column; NaN where a cell is hidden."""


@dataclass
class Carry:
    """Samples parameters by priors that are those of raw parameters, carried along; remembers how to undo it."""

    scaler: LipschitzScaler | None
    factors: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def __call__(self, name: str, prior: Any, column: str, parameter: str, log: bool = False) -> Any:
        if self.scaler is not None:
            scale = next(one for one in self.scaler.columns_ if one.column.name == column).fits[0].scale
            power = {"rate": -1.0, "shape": 0.0}.get(parameter, 1.0)
            self.factors[name] = scale**power, log
            prior = rescale_prior(prior, self.scaler, column, parameter, log=log)
        return numpyro.sample(name, prior)

    def scaled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters in scaled units from raw ones."""
        moved = dict(values)
        for name, (factor, log) in self.factors.items():
            moved[name] = values[name] + np.log(factor) if log else values[name] * factor
        return moved


def observe(carry: Carry, cells: CELLS, column: str, linear: Any) -> None:
    """Give one column a likelihood whose location is linear: of the mean, of log x, or of the log of the mean."""
    x = cells[column]
    seen, family = ~jnp.isnan(x), FAMILIES[column]
    if family == "normal":
        level = carry(f"level_{column}", dist.Normal(100.0, 100.0), column, "mean")
        spread = carry(f"spread_{column}", dist.HalfNormal(30.0), column, "std")
        scale = carry(f"slope_{column}", dist.Normal(0.0, 30.0).expand(linear.shape[-1:]).to_event(1), column, "mean")
        fn: Any = dist.Normal(level + linear @ scale, spread)
    elif family == "log-normal":
        level = carry(f"level_{column}", dist.Normal(5.0, 2.0), column, "log_mean")
        spread = carry(f"spread_{column}", dist.HalfNormal(1.0), column, "log_std")
        prior = dist.Normal(0.0, 0.5).expand(linear.shape[-1:]).to_event(1)
        fn = dist.LogNormal(level + linear @ carry(f"slope_{column}", prior, column, "log_mean"), spread)
    else:
        level = carry(f"level_{column}", dist.Normal(-3.0, 3.0), column, "rate", log=True)
        prior = dist.Normal(0.0, 0.5).expand(linear.shape[-1:]).to_event(1)
        log_rate = level + linear @ numpyro.sample(f"slope_{column}", prior)
        if family == "exponential":
            fn = dist.Exponential(jnp.exp(log_rate))
        else:
            shape = numpyro.sample(f"shape_{column}", dist.LogNormal(2.0, 1.5))
            fn = dist.Gamma(shape, shape * jnp.exp(log_rate))
    numpyro.sample(column, fn.mask(seen), obs=x)


def hierarchical(carry: Carry, cells: CELLS) -> None:
    """Four outcomes of different kinds by age and, with a common spread, by type of chest pain."""
    groups = cells["chest_pain"].astype(int)
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 4):
        offset = numpyro.sample("offset", dist.Normal(0.0, spread))
    age = (cells["age"] - 54.0) / 9.0
    for column in OUTCOMES:
        observe(carry, cells, column, jnp.stack([age, offset[groups]], axis=-1))


def factors(carry: Carry, cells: CELLS) -> None:
    """Five columns by two latent variables of each row."""
    with numpyro.plate("rows", len(cells["age"])):
        latent = numpyro.sample("latent", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    for column in (*OUTCOMES, "age"):
        observe(carry, cells, column, latent)


MODELS: dict[str, tuple[Callable[[Carry, CELLS], None], tuple[str, ...]]] = {
    "hierarchical": (hierarchical, OUTCOMES),
    "factors": (factors, (*OUTCOMES, "age")),
}


def load(seed: int, columns: tuple[str, ...]) -> tuple[Any, CELLS, CELLS, CELLS]:
    """Return heart, and cells for training, validation and test: 10 % of the cells of each column for each of these."""
    heart = load_heart()
    cells: CELLS = {name: np.asarray(heart[name], np.float64) for name in FAMILIES}
    cells["st_depression"] += 0.1  # an exponential of NumPyro has no density at 0
    table = pd.DataFrame({name: cells[name] for name in columns})
    cells["chest_pain"] = np.unique(np.asarray(heart["chest_pain"]).astype(str), return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    parts = rng.choice(3, size=(len(columns), len(cells["age"])), p=[0.8, 0.1, 0.1])
    split = []
    for part in range(3):
        split.append(dict(cells))
        for name, where in zip(columns, parts, strict=True):
            split[part][name] = np.where(where == part, cells[name], np.nan)
    return table, split[0], split[1], split[2]


def program(model: str, method: str, table: Any) -> tuple[Callable[..., Any], Carry]:
    """Return a program of cells, and what carries its priors along."""
    write, columns = MODELS[model]
    if METHODS[method] is None:
        raw = Carry(None)
        return (lambda cells: write(raw, cells)), raw
    likelihoods = {name: FAMILIES[name] for name in columns}
    scaler = LipschitzScaler(METHODS[method] or "", likelihoods=likelihoods).fit(table)
    carry = Carry(scaler)
    return standardize(lambda cells: write(carry, cells), scaler, {name: name for name in columns}), carry


def check(model: str, table: Any, cells: CELLS) -> None:
    """Refuse to measure unless all programs have the same posterior, up to a constant."""
    with jax.enable_x64(True):
        raw = program(model, "raw", table)[0]
        draws = []
        for seed in range(2):
            trace = handlers.trace(handlers.seed(raw, seed)).get_trace(cells)
            latent = {k: np.asarray(v["value"]) for k, v in trace.items() if v["type"] == "sample"}
            draws.append({k: v for k, v in latent.items() if not trace[k]["is_observed"]})
        expected = difference(raw, cells, draws)
        for method in METHODS:
            moved, carry = program(model, method, table)
            handlers.trace(handlers.seed(moved, 0)).get_trace(cells)  # so that it knows the factors
            found = difference(moved, cells, [carry.scaled(one) for one in draws])
            assert np.isclose(found, expected, rtol=1e-6), (model, method, found, expected)


def difference(moved: Any, cells: CELLS, draws: list[dict[str, Any]]) -> float:
    """Return by how much more likely one draw of the parameters is than another."""
    one, other = (float(log_density(moved, (cells,), {}, draw)[0]) for draw in draws)
    return one - other


# --- SVI --------------------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adam": numpyro.optim.Adam,
    "momentum": lambda rate: numpyro.optim.Momentum(rate, 0.9),
}
RANGES = {"adam": (-3.0, 0.0), "momentum": (-9.0, -2.0)}
"""Logs to base 10 of the smallest and the largest learning rate that is tried."""


def fit(
    moved: Any, optimizer: str, rates: Any, split: tuple[CELLS, ...], options: argparse.Namespace, seed: int
) -> Any:
    """Return log-likelihoods by rate, moment, part (validation, test) and column, for all rates of the grid at once."""
    train, *held = split
    guide = AutoNormal(moved, init_loc_fn=init_to_median)
    with handlers.seed(rng_seed=seed):
        guide(train)  # so that no tracer gets into it
    columns = [name for name in FAMILIES if any(np.isnan(train[name]))]

    def score(params: Any, key: Any) -> Any:
        samples = guide.sample_posterior(key, params, sample_shape=(20,))
        parts = []
        for cells in held:
            each = log_likelihood(moved, samples, cells)
            by_cell = {name: jax.nn.logsumexp(each[name], axis=0) - jnp.log(20.0) for name in columns}
            parts.append([by_cell[name].sum() / jnp.sum(~jnp.isnan(cells[name])) for name in columns])
        return jnp.array(parts)

    def run(rate: Any) -> Any:
        svi = SVI(moved, guide, OPTIMIZERS[optimizer](rate), Trace_ELBO())
        start = svi.init(jax.random.key(seed), train)

        def some(state: Any, key: Any) -> Any:
            found = score(svi.get_params(state), key)
            return jax.lax.fori_loop(0, options.every, lambda _, s: svi.update(s, train)[0], state), found

        keys = jax.random.split(jax.random.key(seed + 1), options.steps // options.every + 1)
        return jax.lax.scan(some, start, keys)[1]

    found = np.asarray(jax.jit(jax.vmap(run))(jnp.asarray(rates)))
    return np.where(np.isfinite(found), found, -1e6), columns


def svi(options: argparse.Namespace) -> None:
    for model in options.models:
        for optimizer in options.optimizers:
            rates = np.logspace(*RANGES[optimizer], options.rates)
            curves: dict[str, list[Any]] = {method: [] for method in METHODS}
            for seed in range(options.seeds):
                table, *split = load(seed, MODELS[model][1])
                check(model, table, split[0])
                for method in METHODS:
                    moved = program(model, method, table)[0]
                    parts = (split[0], split[1], split[2])
                    found, columns = fit(moved, optimizer, rates, parts, options, seed)
                    curves[method].append(found)
                    write(options, model=model, optimizer=optimizer, method=method, seed=seed, curves=found.tolist())
            report_svi(f"{model}, {optimizer}", curves, columns, rates, options.every)


def report_svi(title: str, curves: dict[str, list[Any]], columns: list[str], rates: Any, every: int) -> None:
    """Print the table of one model and optimizer; the rate is the best one on validation cells at the end."""
    stacked = {method: np.stack(runs) for method, runs in curves.items()}  # seed, rate, moment, part, column
    chosen = {method: int(runs[:, :, -1, 0].mean(axis=(0, 2)).argmax()) for method, runs in stacked.items()}
    tests = {method: runs[:, chosen[method], :, 1] for method, runs in stacked.items()}  # seed, moment, column
    highest = np.max([test.max(axis=1) for test in tests.values()], axis=0)
    top = np.max([test.mean(axis=-1).max(axis=1) for test in tests.values()], axis=0)
    start = np.median([test.mean(axis=-1)[:, 0] for test in tests.values()], axis=0)
    goal = start + 0.95 * (top - start)
    rows = [("program", "rate", *columns, "worst column below the best", "steps to 95 %")]
    for method, test in tests.items():
        over = test.mean(axis=-1) >= goal[:, None]
        steps = [every * int(one.argmax()) if one.any() else np.inf for one in over]
        cells = (interval(test[:, -1, k]) for k in range(len(columns)))
        gap = interval((highest - test[:, -1]).max(axis=-1))
        rows.append((method, f"{rates[chosen[method]]:.2g}", *cells, gap, f"{np.median(steps):g}"))
    print(f"\n{title}: log-likelihood of a hidden cell, in the table's units (mean and 90 % interval over seeds)")
    print("\n".join(align(rows, 1)))


def interval(values: Any) -> str:
    """Return a mean with a 90 % interval over seeds."""
    half = 1.645 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {half:.3f}"


# --- NUTS -------------------------------------------------------------------------------------------------------------

MASSES: dict[str, dict[str, Any]] = {
    "identity": {"adapt_mass_matrix": False},
    "diagonal": {},
    "dense": {"dense_mass": True},
}


def nuts(options: argparse.Namespace) -> None:
    for model in options.models:
        rows = [("program", "mass", "warm-up", "smallest ESS by 1000 gradients", "step size", "divergences", "R-hat")]
        for mass in options.masses:
            for warmup in options.warmups:
                for method in METHODS:
                    runs = [sample(model, method, mass, warmup, options, seed) for seed in range(options.seeds)]
                    of = {name: np.array([one[name] for one in runs]) for name in runs[0]}
                    size, lost = f"{np.median(of['step_size']):.2g}", f"{of['divergences'].mean():.1f}"
                    middle = interval(1000.0 * of["ess"] / of["gradients"])
                    rows.append((method, mass, str(warmup), middle, size, lost, f"{of['r_hat'].max():.3f}"))
        print(f"\n{model}: NUTS, mean and 90 % interval over seeds")
        print("\n".join(align(rows, 2)))


def sample(model: str, method: str, mass: str, warmup: int, options: argparse.Namespace, seed: int) -> dict[str, float]:
    """Run one chain; return what is measured of it."""
    table, train, *_ = load(0, MODELS[model][1])
    if seed == 0:
        check(model, table, train)
    moved = program(model, method, table)[0]
    kernel = NUTS(moved, init_strategy=init_to_median, max_tree_depth=options.depth, **MASSES[mass])
    chain = MCMC(kernel, num_warmup=warmup, num_samples=options.draws, progress_bar=False)
    fields = ("num_steps", "diverging", "adapt_state.step_size")
    chain.warmup(jax.random.key(seed), train, extra_fields=fields, collect_warmup=True)
    before = float(np.sum(chain.get_extra_fields()["num_steps"]))
    chain.run(jax.random.key(seed + 1000), train, extra_fields=fields)
    extra = chain.get_extra_fields()
    draws = [np.asarray(one)[None] for name, one in chain.get_samples().items() if name != "latent"]
    with np.errstate(all="ignore"):
        ess = min(float(np.min(np.nan_to_num(effective_sample_size(one)))) for one in draws)
        r_hat = max(float(np.max(np.nan_to_num(split_gelman_rubin(one), nan=np.inf))) for one in draws)
    found = {
        "ess": ess,
        "gradients": before + float(np.sum(extra["num_steps"])),
        "step_size": float(np.median(extra["adapt_state.step_size"])),
        "divergences": float(np.sum(extra["diverging"])),
        "r_hat": r_hat,
    }
    write(options, model=model, method=method, mass=mass, warmup=warmup, seed=seed, **found)
    return found


def write(options: argparse.Namespace, **record: Any) -> None:
    """Add a record to the file of all runs."""
    if options.out:
        with open(options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["svi", "nuts"])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", help="a file of JSON lines that every run is added to")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=50, help="steps between two measurements")
    parser.add_argument("--rates", type=int, default=8, help="how many learning rates are tried")
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=list(OPTIMIZERS))
    parser.add_argument("--masses", nargs="+", choices=MASSES, default=list(MASSES))
    parser.add_argument("--warmups", nargs="+", type=int, default=[100, 300, 1000])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--depth", type=int, default=10, help="how deep the trees of NUTS may grow")
    options = parser.parse_args()
    {"svi": svi, "nuts": nuts}[options.part](options)


if __name__ == "__main__":
    main()
