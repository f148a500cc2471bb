"""Does Lipschitz standardization replace balancing rules, add to them, or is neither worth it? Imputed UCI data sets.

    python benchmarks/balance_rules.py --out docs/results/balance_rules.jsonl --dataset breast --model vae

Every model, method and rule has the same budget: three values of the rule's setting (of the learning rate, if the rule
has none) are tried on validation cells, a tenth of the visible ones, and the best is trained again on all visible cells
and scored once on the hidden ones. A line is a record; what is recorded already is not run again, so that a run may end
at any time and go on later. `docs/make_balance.py` makes the page. Masks 1 to 3 only.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from evenly import Imputer, Training
from evenly.metrics import baseline_errors, column_errors, hold_out, ratio_to_baseline
from evenly.models import SPECS
from evenly.models.rules import get_rule
from evenly.paper.datasets import DataSet, as_table, hidden_mask, load_dataset, schema

REVISION = 1
PERCENT, MASKS = 20, (1, 2, 3)
METHODS = ("lip-gamma", "lip-none", "std-none")
RULES = (
    *("none", "lip", "online", "mgda", "uncertainty", "imtl"),
    *("pcgrad", "gradnorm", "priority", "cagrad", "nash", "famo"),
)
BATCH = 128
RATES = (0.3, 1.0, 3.0)
"""Factors of the learning rate, for rules without a setting."""
LEVEL = 0.99
"""A column whose error is above this share of that of its mean or mode is overlooked."""


@dataclass(frozen=True)
class Run:
    """What a record is of."""

    dataset: str
    mask: int
    model: str
    method: str
    rule: str
    epochs: int
    revision: int = REVISION


@dataclass(frozen=True)
class Choice:
    """A value of what is tuned."""

    balance: str
    factor: float = 1.0

    @classmethod
    def of(cls, rule: str) -> list[Choice]:
        """Return the three candidates of a rule."""
        values = get_rule(rule).candidates
        if values:
            return [cls(f"{rule}:{value:g}") for value in values]
        return [cls(rule, factor) for factor in RATES]


def fit(run: Run, data: DataSet, hidden: Any, choice: Choice) -> tuple[Imputer, Any]:
    """Return an imputer that was fitted to the cells that are not hidden, and these."""
    visible = as_table(data, hidden=hidden)
    rate = choice.factor * SPECS[run.model].learning_rate
    training = Training(epochs=run.epochs, batch_size=BATCH, n_networks=1, learning_rate=rate)
    # The target of the scales stays where the default learning rate puts it.
    scaled = sum(one.kind != "ignore" for one in schema(data).columns)
    training.set_params(target=1.0 / (scaled * SPECS[run.model].learning_rate))
    imputer = Imputer(
        run.model, run.method, balance=choice.balance, schema=schema(data), training=training, random_state=run.mask
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return imputer.fit(visible), visible


def truth_of(data: DataSet) -> Any:
    """Return values and codes counted from 0."""
    values = data.values.copy()
    for j, name in enumerate(data.columns):
        values[:, j] -= data.first_codes.get(name, 0)
    return values


def score(imputer: Imputer, visible: Any, data: DataSet, hidden: Any) -> dict[str, Any]:
    """Return honest errors of the hidden cells, relative to those of the mean or the mode, and their log-likelihood."""
    truth, columns = truth_of(data), imputer.schema_.columns
    errors = column_errors(columns, truth, imputer.predict_cells(visible), hidden)
    ratios = ratio_to_baseline(errors, baseline_errors(columns, truth, hidden))
    found = imputer.distribution(visible)
    likelihood = {
        name: float(np.mean(found[name].log_prob(truth[:, j])[hidden[:, j]]))
        for j, name in enumerate(data.columns)
        if name in found and hidden[:, j].any()
    }
    by_column = {name: round(float(ratio), 5) for name, ratio in zip(data.columns, ratios, strict=True)}
    finite = {name: ratio for name, ratio in by_column.items() if np.isfinite(ratio)}
    worst = max(finite, key=lambda name: finite[name])
    return {
        "error": float(np.nanmean(errors)),
        "ratio": float(np.mean(list(finite.values()))),
        "worst": [worst, finite[worst]],
        "overlooked": [name for name, ratio in finite.items() if ratio > LEVEL],
        "log_likelihood": float(np.mean(list(likelihood.values()))),
        "columns": by_column,
    }


def perform(run: Run, data: DataSet) -> dict[str, Any]:
    """Choose the setting on validation cells, train with it, and score the hidden cells."""
    hidden = hidden_mask(data, PERCENT, run.mask)
    held = hold_out(data.known & ~hidden, np.random.default_rng([run.mask, 7]), share=0.1)
    tried = []
    for choice in Choice.of(run.rule):
        imputer, visible = fit(run, data, hidden | held, choice)
        tried.append((score(imputer, visible, data, held)["ratio"], choice))
    best = min(tried, key=lambda one: one[0])[1]
    begun = time.process_time()
    imputer, visible = fit(run, data, hidden, best)
    seconds = time.process_time() - begun
    validation = {f"{one.balance} x {one.factor:g}": round(ratio, 5) for ratio, one in tried}
    found = score(imputer, visible, data, hidden)
    return {**asdict(run), "chosen": asdict(best), "validation": validation, "cpu_seconds": seconds, **found}


def main() -> None:
    """Run what is not recorded yet, the first mask of everything before the second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/balance_rules.jsonl"))
    parser.add_argument("--data", help="the folder of the data sets; by default as EVENLY_DATA says")
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--model", action="append", choices=[name for name, one in SPECS.items() if one.shared_output])
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--rule", action="append", choices=RULES)
    parser.add_argument("--mask", action="append", type=int, choices=MASKS)
    parser.add_argument("--epochs", type=int, default=100)
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    names = tuple(Run.__dataclass_fields__)
    done = {tuple(record[name] for name in names) for record in map(json.loads, lines)}
    wanted = product(
        given.mask or MASKS,
        given.dataset or ("breast", "wine"),
        given.rule or RULES,
        given.model or [name for name, one in SPECS.items() if one.shared_output],
        given.method or METHODS,
    )
    for mask, dataset, rule, model, method in wanted:
        run = Run(dataset, mask, model, method, rule, given.epochs)
        if tuple(asdict(run).values()) in done:
            continue
        record = perform(run, load_dataset(dataset, given.data))
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(dataset, mask, model, method, rule, f"{record['ratio']:.4f}", record["worst"], flush=True)


if __name__ == "__main__":
    main()
