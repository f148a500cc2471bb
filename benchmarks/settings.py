"""Compare settings of the imputer on held-out cells: a fifth of those that mask 1 leaves visible, never hidden ones.

Run: python benchmarks/settings.py wine epochs=60 epochs=120,hidden_size=512 model=vae,masked_training=1 [--data DIR]
[--out FILE].
Each setting is a line of FILE; what FILE has is not run again. Prints the error as a ratio to the defaults of the same
run, with and without the neighbour and the Gaussian expert.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from peers import codes_of

from evenly import Imputer, Schema, Training
from evenly.metrics import column_errors
from evenly.paper.datasets import hidden_mask, load_dataset, schema

SHARE, SEED = 0.2, 12345


def run(dataset: str, percent: int, setting: str, folder: str | None) -> dict[str, Any]:
    data = load_dataset(dataset, folder)
    hidden = hidden_mask(data, percent, 1)
    columns = list(schema(data, hidden=hidden).columns)
    known = np.where(hidden, np.nan, codes_of(data, columns))
    held = ~np.isnan(known) & (np.random.default_rng(SEED).random(known.shape) < SHARE)
    table = pd.DataFrame(np.where(held, np.nan, known), columns=data.columns)
    given: dict[str, Any] = {
        name: int(value) if value.isdigit() else value
        for name, value in (one.split("=") for one in setting.split(",") if one != "default")
    }
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training = {name: given.pop(name) for name in list(given) if name in Training().get_params()}
        sizes = {name: given.pop(name) for name in list(given) if name not in Imputer().get_params()}
        training["sizes"] = sizes or None
        own = Imputer(schema=Schema(columns=columns), random_state=0, training=Training(**training))
        imputer = own.set_params(**given).fit(table)
    error = float(column_errors(columns, known, imputer.predict_cells(table), held).mean())
    seconds = time.perf_counter() - begun
    imputer.ensemble_ = replace(imputer.ensemble_, neighbours=None)
    without_neighbours = float(column_errors(columns, known, imputer.predict_cells(table), held).mean())
    imputer.ensemble_ = replace(imputer.ensemble_, gaussian=None)
    alone = float(column_errors(columns, known, imputer.predict_cells(table), held).mean())
    return {
        "dataset": dataset,
        "percent": percent,
        "setting": setting,
        "error": error,
        "without_neighbours": without_neighbours,
        "network_alone": alone,
        "epochs": len(imputer.history_["elbo"]),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("settings", nargs="*", default=["default"])
    parser.add_argument("--percent", type=int, default=20)
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"))
    parser.add_argument("--out", type=Path, default=Path("settings.jsonl"))
    given = parser.parse_args()
    records = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    mine = []
    for setting in given.settings:
        key = {"dataset": given.dataset, "percent": given.percent, "setting": setting}
        known = [one for one in records if key.items() <= one.items()]
        mine += known[:1] or [run(given.dataset, given.percent, setting, given.data)]
        if not known:
            with given.out.open("a") as file:
                file.write(json.dumps(mine[-1]) + "\n")
    for one in mine:
        print(
            f"{one['dataset']:8} {one['setting']:30} error {one['error']:.5f} ({one['error'] / mine[0]['error']:.3f} x "
            f"{mine[0]['setting']}; without twins {one['without_neighbours']:.5f}, network alone "
            f"{one.get('network_alone', one['without_neighbours']):.5f}), {one['epochs']} epochs, "
            f"{one['seconds']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
