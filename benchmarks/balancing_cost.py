"""CPU time of a training step under each balancing rule, against the plain step of the same model.

Run: python benchmarks/balancing_cost.py [--steps 40] [--model vae ...]. The table is the embedded one, its rows
repeated. First it is checked that the rule `none`, which takes the way of the rules, moves parameters as the plain step
does. CPU time counts all threads, so that the ratio holds on a busy machine, too. The aim is at most 1.3.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from evenly import LipschitzScaler, load_heart
from evenly.imputation.columns import describe
from evenly.imputation.ensemble import Ensemble
from evenly.models import SPECS, Data, Layout
from evenly.models.balancing import RULES, Rule
from evenly.models.bbvi import State, Trained, compiled_epoch, start
from evenly.models.rules import get_rule
from evenly.models.shared_output import Balancing
from evenly.models.wiring import wire
from evenly.tables import open_table

BATCH, REPEATS = 256, 7


@dataclass(frozen=True)
class Case:
    """A model on a table."""

    model: Trained
    layout: Layout
    data: Data

    @classmethod
    def of(cls, name: str, times: int) -> Case:
        """Scale and encode the embedded table, repeated some times, for a model."""
        table = pd.concat([pd.DataFrame(load_heart())] * times, ignore_index=True)
        spec = SPECS[name]
        scaler = LipschitzScaler(spec.method, random_state=0).fit(table)
        cells = open_table(table).columns
        values = [one.encode(own)[0] for one, own in zip(scaler.columns_, cells, strict=True)]
        pairs = zip(scaler.columns_, values, strict=True)
        specs = tuple(describe(one, own, binned=spec.bins_numbers, method=spec.method) for one, own in pairs)
        model: Any = spec.load().of_size(len(table), len(specs), {})
        encoded = Ensemble(model, specs, len(table)).encode(values)
        data = encoded.data(seed=0, with_inputs=spec.reads_inputs)
        return cls(model, encoded.layout, Data(*map(jnp.asarray, data)))

    def start(self, rule: Rule | None) -> State:
        """Return the state before the first step."""
        state = start(self.model, self.layout, Data(*map(np.asarray, self.data)), 0, 1e-3).of_steps(1e4)
        if rule is None:
            return state
        return state._replace(balancing=Balancing.start(rule, self.layout, np.float32))

    def run(self, state: State, order: Any) -> State:
        """Take the steps."""
        found: State = compiled_epoch(self.model, wire(self.layout), self.data, state, order, np.int32(len(order)), 1)[
            0
        ]
        np.asarray(found.key)  # waits until it is done
        return found


def measure(case: Case, rules: list[str], n_steps: int) -> dict[str, float]:
    """Return the CPU seconds of a step by rule, and of the plain one; the least of several turns, taken in turns."""
    rng = np.random.default_rng(0)
    order = rng.integers(0, len(case.data.mask), (n_steps, BATCH)).astype(np.int32)
    states = {"plain": case.start(None), **{name: case.start(get_rule(name)) for name in rules}}
    after = {name: case.run(state, order[:1]) for name, state in states.items()}
    for one, other in zip(*(jax.tree.leaves(after[name].shared) for name in ("plain", "none")), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    for state in states.values():
        case.run(state, order)  # compiles
    taken: dict[str, list[float]] = {name: [] for name in states}
    for _ in range(REPEATS):
        for name, state in states.items():
            begun = time.process_time()
            case.run(state, order)
            taken[name].append((time.process_time() - begun) / n_steps)
    return {name: min(times) for name, times in taken.items()}


def main() -> None:
    """Measure, and print a line a rule."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--model", action="append", choices=[name for name, one in SPECS.items() if one.shared_output])
    parser.add_argument("--rule", action="append", choices=RULES)
    given = parser.parse_args()
    rules = ["none", *(name for name in given.rule or RULES if name not in ("none", "lip"))]
    for name in given.model or [name for name, one in SPECS.items() if one.shared_output]:
        found = measure(Case.of(name, given.times), rules, given.steps)
        print(f"{name}: plain step {1e3 * found['plain']:.2f} ms of CPU time")
        for rule in rules:
            print(f"  {rule:12} {1e3 * found[rule]:8.2f} ms  {found[rule] / found['plain']:.2f} x plain", flush=True)


if __name__ == "__main__":
    main()
