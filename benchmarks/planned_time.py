"""Whether the time left that a comparison shows is right: planned seconds of each candidate beside what it takes.

Run: python benchmarks/planned_time.py [--rows N ...] [--columns N] [--model NAME ...] [--epochs N]. The table has
numbers, counts and classes that share a latent variable, a tenth of their cells missing. It is compared twice, so that
the second time nothing is compiled. Seconds are those of the processor. Each candidate is first checked to be better
than mean or mode.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from evenly import Imputer, compare_imputers
from evenly._support import Snapshot, show_on
from evenly.cli.commands.compare import make_imputers
from evenly.evaluation import PEER_IMPUTERS, candidates
from evenly.evaluation.peers import as_peer
from evenly.evaluation.trials import trial_seconds
from evenly.imputation.cost import calibration_seconds
from evenly.models import SPECS


def make_table(n_rows: int, n_columns: int) -> pd.DataFrame:
    """Return columns of six kinds in turn."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n_rows)
    columns = {}
    for j in range(n_columns):
        noise = rng.normal(size=n_rows)
        columns[f"x{j}"] = (
            z * (j + 1) + noise,
            np.exp(0.5 * z + noise),
            rng.poisson(np.exp(0.3 * z + 1.0)).astype(float),
            -5.0 * z + noise,
            np.where(z + noise > 0.0, "yes", "no"),
            np.array(list("abcde"))[np.clip(np.rint(z + noise) + 2, 0, 4).astype(int)],
        )[j % 6]
    table = pd.DataFrame(columns)
    return table.mask(rng.random(table.shape) < 0.1)


class Watch:
    """A display that notes the processor's time at which each stage begins."""

    def __init__(self) -> None:
        self.begun: list[tuple[tuple[str, ...], float]] = []

    def show(self, now: Snapshot) -> None:
        if not self.begun or self.begun[-1][0] != now.names:
            self.begun.append((now.names, time.process_time()))

    def pause(self) -> None:
        """Nothing to do."""

    close = pause

    def spent(self, name: str) -> float:
        """Return the seconds of stages of a name, wherever they are."""
        ends = [at for _, at in self.begun[1:]] + [time.process_time()]
        return sum(end - at for (names, at), end in zip(self.begun, ends, strict=True) if name in names)


def measure(candidate: object, table: pd.DataFrame) -> None:
    """Print what a candidate was planned to take, and what it took."""
    n_rows, n_columns = table.shape
    one = candidate if isinstance(candidate, Imputer) else as_peer(candidate, 0)
    for time_of in ("first", "again"):
        planned = trial_seconds(one, n_rows, n_columns)
        watch, begun = Watch(), time.process_time()
        with show_on(watch):
            (trial,) = compare_imputers([candidate], table, rows="all")
        took = time.process_time() - begun
        assert trial.model == "marginal" or trial.normalized < 1.0
        stages = ""
        if isinstance(candidate, Imputer) and SPECS[candidate.model_name].calibrated:
            expected = calibration_seconds(SPECS[candidate.model_name], n_rows, n_columns)
            stages = f"; calibrating {watch.spent('calibrating'):.1f} of {expected:.1f} planned"
        print(
            f"{n_rows:7} x {n_columns:3}  {trial.name:24} {time_of}: planned {planned:6.1f} s, took {took:6.1f} s of "
            f"the processor, ratio {planned / took:.2f}{stages}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 2_500, 8_333])
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--model", nargs="+", default=[*dict(candidates()), "hivae"])
    parser.add_argument("--epochs", type=int, default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    usual = dict(candidates())
    for n_rows in given.rows:
        for model in given.model:
            pair = (model, usual.get(model, SPECS[model].method if model in SPECS else ""))
            (one,) = make_imputers([pair], None, given.epochs, {"random_state": 0})
            assert isinstance(one, Imputer) or one in PEER_IMPUTERS
            measure(one, make_table(n_rows, given.columns))


if __name__ == "__main__":
    main()
