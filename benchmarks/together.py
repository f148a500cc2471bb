"""Is it faster to train runs that share shapes together, vectorized, than one after the other?

For each of the paper's models, on tables of breast's and wine's shapes: checks that the ELBOs are those of the runs
alone, then prints the time of four runs together as a ratio to that of the four alone, one after the other, and that of
the four in two processes, which is what `evenly paper run --jobs 2` does.

Run: python benchmarks/together.py
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np

from evenly.likelihoods import BERNOULLI, GAMMA, NORMAL
from evenly.models import MODELS, Data, Layout
from evenly.models.bbvi import State, Trained, start
from evenly.models.loop import train

SHAPES = {"breast": (699, 10, 60), "wine": (6497, 13, 12)}
"""Rows, columns and the epochs to time: enough for a second or more."""
RUNS = 4


def make(n_rows: int, n_columns: int, seed: int) -> tuple[Layout, Data]:
    """A table of normals, gammas and a class."""
    likelihoods = [NORMAL, GAMMA] * (n_columns // 2) + [BERNOULLI] * (n_columns % 2 or 0)
    rng = np.random.default_rng(seed)
    targets = np.column_stack(
        [
            {"normal": rng.normal(size=n_rows), "gamma": rng.gamma(3.0, size=n_rows)}.get(
                one.name, rng.integers(0, 2, n_rows)
            )
            for one in likelihoods
        ]
    ).astype(np.float32)
    mask = rng.random(targets.shape) < 0.8
    columns = tuple(range(len(likelihoods)))
    layout = Layout(tuple(likelihoods), columns, columns)
    data = layout.empty(n_rows, np.float32)
    data.inputs[:] = np.where(mask, (targets - targets.mean(0)) / targets.std(0), 0.0)
    data.targets[:, [slot for slot, _ in layout.places]] = targets
    data.mask[:] = mask
    return layout, data


def begin(name: str, shape: tuple[int, int, int], seed: int) -> tuple[Trained, Layout, Data, State]:
    """A model at its start."""
    layout, data = make(*shape[:2], seed)
    model = MODELS[name].of_size(shape[0], shape[1], {})
    assert isinstance(model, Trained)
    return model, layout, data, start(model, layout, data, seed, model.spec.learning_rate)


def timed(model: Trained, layout: Layout, data: Data, state: State, epochs: int) -> tuple[np.ndarray, float]:
    """Train, after one epoch to compile; returns the ELBOs and the seconds."""
    train(model, layout, data, state, epochs=1, batch_size=1024)
    begun = time.perf_counter()
    _, history = train(model, layout, data, state, epochs=epochs, batch_size=1024)
    return history.elbo, time.perf_counter() - begun


def alone(name: str, shape: tuple[int, int, int], seed: int) -> tuple[np.ndarray, float]:
    """One run, in whatever process."""
    return timed(*begin(name, shape, seed), shape[2])


def main() -> None:
    """Print a line for each data set and model."""
    print("four runs: seconds alone, one after the other; together and in two processes, as ratios to that")
    for dataset, shape in SHAPES.items():
        for name in ("mixture", "factorization", "vae"):
            singles = [alone(name, shape, seed) for seed in range(RUNS)]
            begun = [begin(name, shape, seed) for seed in range(RUNS)]
            stack = partial(jax.tree.map, lambda *parts: jnp.stack(parts))
            elbos, seconds = timed(
                begun[0][0], begun[0][1], stack(*[b[2] for b in begun]), stack(*[b[3] for b in begun]), shape[2]
            )
            for i, (elbo, _) in enumerate(singles):
                np.testing.assert_allclose(elbos[:, i], elbo, rtol=1e-2)
            with ProcessPoolExecutor(2, get_context("spawn")) as pool:
                apart = [one.result()[1] for one in [pool.submit(alone, name, shape, seed) for seed in range(RUNS)]]
            one_by_one = sum(one[1] for one in singles)
            print(
                f"{dataset:8} {name:14} alone {one_by_one:6.2f} s   together {seconds / one_by_one:5.2f}   "
                f"two processes {sum(apart) / 2 / one_by_one:5.2f}"
            )


if __name__ == "__main__":
    main()
