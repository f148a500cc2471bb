"""Time of a step of the default imputer's network, against its bare matrix products.

Run: python benchmarks/step_time.py [--data DIR] [NAME ...]. The folder holds NAME/data.csv and
NAME/kinds.csv. The network, its sizes and its arrays are those that `Imputer()` trains when a fifth of the cells is
missing. The rival is the products of its layers alone, forward and backward, without the gradient of the first layer's
input, in the same run and by turns. Seconds are those of the processor, of all threads together, and the best of
several repeats: other programs disturb them less than a clock.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from evenly import Imputer
from evenly.models import Data, bbvi, fitting, masked
from evenly.models.layout import Layout, pad_rows
from evenly.models.loop import Batches, padded_rows
from evenly.models.wiring import wire

NAMES = ("breast", "wine", "letter", "credit", "adult")
STEPS = 40
"""Steps of a measurement."""
Run = Callable[[], Any]


class Job(NamedTuple):
    """What the imputer asks its network to do."""

    model: masked.Masked
    layout: Layout
    data: Data
    plan: Any


class Caught(Exception):
    """The training was about to begin."""


def job_of(folder: Path, name: str) -> Job:
    """Return the training that the default imputer begins on a data set."""
    table = pd.read_csv(folder / name / "data.csv").astype(float)
    kinds = pd.read_csv(folder / name / "kinds.csv").set_index("column")["kind"].to_dict()
    holes = table.mask(np.random.default_rng(0).random(table.shape) < 0.2)
    found: list[Job] = []

    def catch(model: Any, layout: Layout, data: Data, seed: int, plan: Any, *rest: Any) -> None:
        found.append(Job(model, layout, data, plan))
        raise Caught

    with patch.object(fitting, "fit_model", catch), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            Imputer(kinds=kinds, random_state=0).fit(holes)
        except Caught:
            return found[0]
    raise AssertionError("nothing was trained")


class Steps:
    """Steps of a training, in a program of their own."""

    def __init__(self, job: Job) -> None:
        model, layout, data, plan = job
        data = Data(*map(np.asarray, data))
        batches = Batches(len(data.mask), padded_rows(len(data.mask), plan.batch_size), plan.batch_size)
        state = bbvi.start(model, layout, data, 0, plan.learning_rate, plan.weights, batches.n_padded)
        self.state = state.of_steps(plan.epochs * batches.n_steps)
        self.batch, self.width = batches.size, len(state.shared["first"]["weight"])
        order = batches.order(state.seed, 0)[np.arange(STEPS) % batches.n_steps]
        there = Data(*map(jnp.asarray, pad_rows(data, batches.n_padded, layout)))
        program = jax.jit(
            lambda *given: bbvi.run_epoch(model, *given),
            compiler_options={"xla_backend_optimization_level": model.optimization},
        )
        given = (wire(layout), there), (order, np.int32(STEPS), np.int32(1))
        self.run: Callable[[Any], Any] = lambda state: program(*given[0], state, *given[1])

    def __call__(self) -> float:
        """Take the steps, from where the last ones ended; returns the mean ELBO."""
        self.state, info = self.run(self.state)
        return float(info.elbo) / STEPS  # reading a result waits for it


def bare_products(job: Job, batch: int, width: int) -> Run:
    """Return as many steps of nothing but the products of the network's layers, in the precision of the network."""
    hidden = job.model.hidden_size
    sizes = [(width, hidden), *[(hidden, hidden)] * (2 * job.model.n_blocks), (hidden, job.layout.n_raw)]
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal(shape), job.data.targets.dtype)

    weights = [draw(*one) / np.sqrt(one[0]) for one in sizes]
    inputs, upstream = draw(STEPS, batch, width), draw(STEPS, batch, job.layout.n_raw)

    @jax.jit
    def program(weights: list[jax.Array], inputs: jax.Array, upstream: jax.Array, n: Any) -> Any:
        def step(i: Any, _: Any) -> Any:
            outputs = [inputs[i]]
            for weight in weights:
                outputs.append(outputs[-1] @ weight)
            gradient, found = upstream[i], []
            for j in reversed(range(len(weights))):
                found.append(outputs[j].T @ gradient)
                gradient = gradient @ weights[j].T if j else gradient
            return found, outputs[-1]

        return jax.lax.fori_loop(0, n, step, ([jnp.zeros_like(one) for one in weights[::-1]], upstream[0]))

    return lambda: np.asarray(program(weights, inputs, upstream, np.int32(STEPS))[1])


def best(runs: Mapping[str, Run], repeats: int) -> dict[str, float]:
    """Return the processor's seconds of a step of each, taking turns."""
    found = dict.fromkeys(runs, np.inf)
    for _ in range(repeats):
        for name, run in runs.items():
            begun = time.process_time()
            run()
            found[name] = min(found[name], (time.process_time() - begun) / STEPS)
    return found


def measure(folder: Path, name: str, repeats: int) -> None:
    """Print a step's time on one data set and its ratio to the bare products."""
    job = job_of(folder, name)
    steps = Steps(job)
    first = steps()
    runs: dict[str, Run] = {"step": steps, "products": bare_products(job, steps.batch, steps.width)}
    runs["products"]()
    seconds = best(runs, repeats)
    # The answer first: it learns.
    assert steps() > first, "the network did not learn"
    step, products = seconds["step"], seconds["products"]
    sizes = f"{steps.batch} rows, {steps.width} units, {job.model.hidden_size} hidden, {job.layout.n_raw} outputs"
    against = f"{step / products:.2f} x its matrix products ({1e3 * products:.2f} ms)"
    print(f"{name:7} {sizes}: {1e3 * step:.2f} ms a step, {against}", flush=True)


def main() -> None:
    """Measure the data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVENLY_DATA", "../shared/uci")))
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    for name in given.names:
        if (given.data / name / "data.csv").is_file():
            measure(given.data, name, given.repeats)
        else:
            print(f"no {name}/data.csv in {given.data}: not measured; name the folder with --data or EVENLY_DATA")


if __name__ == "__main__":
    main()
