"""Does it help a program to run in scaled units? The same posterior, reached by SVI and by chains: raw, std and lip.

    python benchmarks/programs.py --parts svi --seeds 0 1 2 --out programs.jsonl
    python benchmarks/programs.py --parts nuts --masses identity diagonal --warmups 100 300 --out programs.jsonl
    python benchmarks/programs.py --out docs/results/programs.jsonl && python docs/make_programs.py

Needs `pip install ".[all,numpyro]" pandas`, and for `adult-factors` the folder of EVENLY_DATA. One line of JSON a run,
with its settings and commit; a run that the file has is not made again, so that it can be stopped at any time.

All priors are carried along, so that every program has the raw one's posterior. Standardizing then only multiplies and
shifts unconstrained parameters. That is checked against the programs that `standardize` makes (see
`program_coordinates.py`), and all of them run on one density, each in its own coordinates. Then:

- scales: which unconstrained parameters a program multiplies, and by what.
- svi: a mean-field guide, all rows a step, Adam and SGD with momentum; the learning rate of each run is that of one
  grid which is best on validation cells. Log-likelihoods of test cells by column, in the table's units. Scalers are
  fitted to all cells: a scale moves no posterior.
- nuts, hmc: the smallest bulk effective sample size of all parameters by gradient evaluation, warm-up included; step
  size, divergences, R-hat. HMC has trajectories of 16 steps. 100 patients.
- sgld: errors of posterior means and spreads by step size, against long chains of NUTS.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpyro
from peer_imputers import commit
from program_chains import MASSES, ROWS, measure_chains, measure_scales, measure_sgld
from program_models import METHODS, MODELS
from program_svi import OPTIMIZERS, measure_svi

Record = dict[str, Any]
OF_CHAINS = ("regression", "shared", "varying", "smooth", "factor")
OF_SVI = ("hierarchical", "heart-factors", "adult-factors")
PARTS = ("scales", "svi", "nuts", "hmc", "sgld")
KEYS = ("part", "model", "method", "settings", "seed")
"""What tells one run from another."""


def groups(options: argparse.Namespace) -> Iterator[Record]:
    """Yield the runs that are asked for, without their seeds."""
    for part in options.parts:
        models = [one for one in (OF_SVI if part == "svi" else OF_CHAINS) if one in options.models]
        for settings, model, method in itertools.product(_settings(part, options), models, options.methods):
            yield {"part": part, "model": model, "method": method, "settings": settings}


def _settings(part: str, options: argparse.Namespace) -> list[Record]:
    if part == "svi":
        common = {"steps": options.steps, "every": options.every, "rates": options.rates}
        return [{"optimizer": one, **common} for one in options.optimizers]
    if part == "scales":
        return [{"rows": ROWS}]
    if part == "sgld":
        return [{"steps": options.sgld_steps, "thin": 20, "rows": ROWS}]
    common = {"draws": options.draws, "chains": options.chains, "rows": ROWS}
    if part == "nuts":
        common["depth"] = options.depth
    return [
        {"mass": mass, "warmup": warmup, **common}
        for warmup, mass in itertools.product(options.warmups, options.masses)
    ]


def measure(group: Record, seed: int) -> Record:
    """Make a run; return its record."""
    model, method, settings = (group[key] for key in ("model", "method", "settings"))
    began = time.process_time()
    if group["part"] == "svi":
        found = measure_svi(model, method, settings, seed)
    elif group["part"] == "scales":
        found = measure_scales(model, method)
    elif group["part"] == "sgld":
        found = measure_sgld(model, method, settings, seed)
    else:
        found = measure_chains(group["part"], model, method, settings, seed)
    cost = {"cpu_seconds": round(time.process_time() - began, 1), "commit": commit()}
    cost |= {"numpyro": numpyro.__version__, "jax": jax.__version__}
    return {**group, "seed": seed, **found, **cost}


def read(file: Path) -> list[Record]:
    """Return the records of a file, none if there is no such file."""
    return [json.loads(one) for one in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def line(record: Record) -> str:
    """Return the line that is printed for a run."""
    settings = " ".join(map(str, record["settings"].values()))
    head = f"{record['part']} {record['model']} {record['method']} seed {record['seed']} ({settings}):"
    if record["part"] == "svi":
        worst = min(zip(record["curves"][-1], record["columns"], strict=True))
        return f"{head} rate {record['rate']:.2g}, lowest log-likelihood {worst[0]:.3f} of {worst[1]}"
    if record["part"] == "scales":
        return f"{head} multiplies {record['multiplied']} of {record['parameters']} parameters"
    if record["part"] == "sgld":
        errors = [one for one in record["mean_error"] if one is not None]
        return f"{head} least error of means {min(errors, default=float('inf')):.3f} spreads"
    rate = 1000.0 * record["ess"] / record["gradients"]
    return f"{head} {rate:.3f} effective draws in 1000 gradients, R-hat {record['r_hat']:.3f}"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--out", type=Path, default=Path("programs.jsonl"))
    parser.add_argument("--steps", type=int, default=1000, help="of SVI")
    parser.add_argument("--every", type=int, default=50, help="steps of SVI between two measurements")
    parser.add_argument("--rates", type=int, default=10, help="how many learning rates are tried")
    parser.add_argument("--optimizers", nargs="+", choices=list(OPTIMIZERS), default=list(OPTIMIZERS))
    parser.add_argument("--masses", nargs="+", choices=list(MASSES), default=list(MASSES))
    parser.add_argument("--warmups", nargs="+", type=int, default=[100, 300, 1000])
    parser.add_argument("--draws", type=int, default=250, help="of each chain")
    parser.add_argument("--chains", type=int, default=2, help="for each seed")
    parser.add_argument("--depth", type=int, default=10, help="how deep the trees of NUTS may grow")
    parser.add_argument("--sgld-steps", type=int, default=10_000)
    return parser.parse_args(given)


def main() -> None:
    options = arguments()
    done = [{key: one[key] for key in KEYS} for one in read(options.out)]
    for group in groups(options):
        for seed in options.seeds[: 1 if group["part"] == "scales" else None]:  # nothing is random there
            if {**group, "seed": seed} in done:
                continue
            record = measure(group, seed)
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(line(record), f"[{record['cpu_seconds']} s]", flush=True)


if __name__ == "__main__":
    main()
