"""Time of one epoch of each model on adult, lip-gamma, batches of 1024, against its bare matrix products.

Run: python benchmarks/epoch_time.py [--data DIR]. The folder holds adult/data.csv and adult/kinds.csv. The rival of the
VAE is the time of its matrix products alone, forward and backward, measured in the same run. After that: a step of the
default imputer's network against its own matrix products, on the data sets of `step_time.py`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import step_time

from evenly import LipschitzScaler
from evenly.imputation.columns import describe
from evenly.imputation.ensemble import Ensemble
from evenly.models import Data, Layout
from evenly.models.bbvi import Trained, start
from evenly.models.factorization import Factorization
from evenly.models.loop import train
from evenly.models.mixture import Mixture
from evenly.models.vae import VAE
from evenly.tables import open_table

BATCH = 1024


def load(folder: Path) -> tuple[Layout, Data, int]:
    """Scale adult with lip-gamma and lay it out for the models."""
    table = pd.read_csv(folder / "adult" / "data.csv")
    kinds = pd.read_csv(folder / "adult" / "kinds.csv").set_index("column")["kind"].to_dict()
    scaler = LipschitzScaler("lip-gamma", kinds=kinds, random_state=0).fit(table)
    columns = scaler.columns_
    values = [one.encode(cells)[0] for one, cells in zip(columns, open_table(table).columns, strict=True)]
    specs = tuple(describe(one, own) for one, own in zip(columns, values, strict=True))
    encoded = Ensemble(VAE(), specs, len(table)).encode(values)
    return encoded.layout, encoded.data(seed=scaler.seed_), table.shape[1]


def matrix_products(sizes: list[tuple[int, int]], n_steps: int) -> float:
    """Time an epoch of nothing but the products of each layer: forward, and both of the gradient."""
    keys = jax.random.split(jax.random.key(0), 3 * len(sizes))
    layers = [
        (
            jax.random.normal(keys[3 * i], (BATCH, a)),
            jax.random.normal(keys[3 * i + 1], (a, b)),
            jax.random.normal(keys[3 * i + 2], (BATCH, b)),
        )
        for i, (a, b) in enumerate(sizes)
    ]

    @jax.jit
    def epoch(layers: Any) -> Any:
        def one(carry: Any, _: None) -> tuple[Any, None]:
            products = [(x @ w, g @ w.T, x.T @ g) for (x, w, g) in carry]
            # Every product feeds the next step, so that none can be left out.
            return [(gx * 1e-3, xg * 1e-3, y * 1e-3) for (y, gx, xg) in products], None

        return jax.lax.scan(one, layers, None, length=n_steps)[0]

    return best(lambda: np.asarray(epoch(layers)[0][0]))  # reading a result waits for it


def best(run: Callable[[], Any], repeats: int = 5) -> float:
    run()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVENLY_DATA", "../shared/uci")))
    folder = parser.parse_args().data
    if not (folder / "adult" / "data.csv").is_file():
        print(f"no adult/data.csv in {folder}: nothing measured; name the folder with --data or EVENLY_DATA")
        return
    layout, data, n_columns = load(folder)
    n_steps = -(-data.targets.shape[0] // BATCH)
    latent = int(0.75 * n_columns)
    models: dict[str, Trained] = {
        "vae": VAE(latent_size=latent),
        "factorization": Factorization(latent_size=n_columns // 2),
        "mixture": Mixture(n_clusters=10),
    }
    hidden = 256
    sizes = [(data.inputs.shape[1], hidden), (hidden, hidden), (hidden, hidden), (hidden, latent), (hidden, latent)]
    sizes += [(latent, hidden), (hidden, hidden), (hidden, hidden), (hidden, layout.n_parameters)]
    rival = matrix_products(sizes, n_steps)
    print(f"adult, lip-gamma: {data.targets.shape[0]} rows, {layout.n_features} features, batches of {BATCH}")
    for name, model in models.items():
        begun = time.perf_counter()
        there = Data(*map(jnp.asarray, data))
        state, first = train(model, layout, there, start(model, layout, data, 0, model.spec.learning_rate), epochs=1)
        compiled = time.perf_counter() - begun
        # The answer first: it learns.
        state, history = train(model, layout, there, state, epochs=5)
        assert np.isfinite(history.elbo).all()
        assert history.elbo[-1] > first.elbo[0]
        seconds = best(partial(train, model, layout, there, state, epochs=1))
        against = f", {seconds / rival:.2f} x its matrix products ({rival:.2f} s)" if name == "vae" else ""
        print(f"{name:14} {seconds:6.3f} s an epoch{against}; first epoch with compiling {compiled:.1f} s", flush=True)
    for name in step_time.NAMES:
        if (folder / name / "data.csv").is_file():
            step_time.measure(folder, name, repeats=10)


if __name__ == "__main__":
    main()
