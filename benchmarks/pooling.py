"""Do pooled intervals contain the truth as often as they say? A simulation with known regression coefficients.

Run: python benchmarks/pooling.py [--out FILE] [--method evenly ...] [--repetitions 500] [--seconds 600]. Every analysis
becomes one line of FILE (JSON), and what FILE already has is not repeated. At the end it prints, for each mechanism and
method, how many of the 95 % intervals contain the true coefficient, how wide they are relative to those of the complete
data, the bias in standard errors of the complete data, and how far correlations are from those of the complete data.

A table has 400 rows: y is linear in two correlated numbers x1 and x2 and a yes/no z, with normal errors; the number w
depends on y, is always observed and is no part of the analysis. Of each of y, x1, x2 and z, 30 % are hidden: completely
at random, or with a probability that grows with the row's rank in w, from 10 to 50 %. The analysis is the least squares
of y on x1, x2 and z.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from peer_imputers import MiceForest
from scipy import stats

import evenly
from evenly.metrics import hide_by_rank

Floats = npt.NDArray[np.float64]
Record = dict[str, Any]

NAMES = ("y", "x1", "x2", "z", "w")
TERMS = ("intercept", "x1", "x2", "z")
TRUTH = np.array([1.0, 0.5, -0.5, 0.8])
"""The coefficients of `TERMS`."""
N_ROWS, SHARE = 400, 0.3
"""Rows of a table, and the share of y, x1, x2 and z that is hidden."""
MECHANISMS = ("mcar", "mar")
N_TABLES = 10
"""Imputed tables that are pooled."""
LEVEL = 0.95
KEYS = ("mechanism", "repetition", "method", "revision")


def simulate(rng: np.random.Generator) -> Floats:
    """Return a complete table, one column for each of `NAMES`, with z as 0 and 1."""
    x1 = rng.normal(size=N_ROWS)
    x2 = 0.5 * x1 + np.sqrt(0.75) * rng.normal(size=N_ROWS)
    z = (rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(-0.8 * x1))).astype(float)
    y = np.column_stack([np.ones(N_ROWS), x1, x2, z]) @ TRUTH + rng.normal(size=N_ROWS)
    w = 0.6 * y + rng.normal(size=N_ROWS)
    return np.column_stack([y, x1, x2, z, w])


def hide(table: Floats, mechanism: str, rng: np.random.Generator) -> Floats:
    """Return the table with cells of every column but w missing."""
    driver = NAMES.index("w")
    if mechanism == "mar":
        gone = hide_by_rank(table, SHARE, rng, driver=driver)
    else:
        gone = rng.random(table.shape) < SHARE
        gone[:, driver] = False
    return np.where(gone, np.nan, table)


def analyse(table: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of `TERMS` by least squares, and their standard errors."""
    y, design = table[:, 0], np.column_stack([np.ones(len(table)), table[:, 1:4]])
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ y
    variance = ((y - design @ found) ** 2).sum() / (len(y) - len(found))
    return found, np.sqrt(variance * np.diag(inverse))


def correlations(table: Floats) -> Floats:
    """Return the correlations of all pairs of columns."""
    return np.asarray(np.asarray(np.corrcoef(table.T))[np.triu_indices(len(NAMES), 1)])


# --- methods ------------------------------------------------------------------------------------------------------


def as_frame(table: Floats) -> pd.DataFrame:
    """Return the table as people have it: z is yes or no."""
    frame = pd.DataFrame(table, columns=list(NAMES))
    frame["z"] = frame["z"].map({0.0: "no", 1.0: "yes"})
    return frame


def by_evenly(gaps: Floats, seed: int, *, tilts: bool = True, **settings: Any) -> list[Floats]:
    """Draw tables from `Imputer`; without tilts, its parameters are not drawn, and predictions stay shrunk."""
    frame = as_frame(gaps)
    imputer = evenly.Imputer(random_state=seed, **settings).fit(frame)
    if not tilts:
        imputer.ensemble_ = replace(imputer.ensemble_, tilts={})
    drawn = imputer.sample(frame, n=N_TABLES)
    return [one.assign(z=(one["z"] == "yes").astype(float)).to_numpy(float) for one in drawn]


def by_iterative(gaps: Floats, seed: int) -> list[Floats]:
    """Draw tables from scikit-learn's Bayesian ridge regressions, with z as a number."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (without it the next import fails)
    from sklearn.impute import IterativeImputer

    every = range(N_TABLES * seed, N_TABLES * (seed + 1))
    return [IterativeImputer(sample_posterior=True, random_state=one).fit_transform(gaps) for one in every]


def by_miceforest(gaps: Floats, seed: int) -> list[Floats]:
    """Draw tables from miceforest with its defaults, in an environment of its own."""
    settings = {"n_classes": [2 * (name == "z") for name in NAMES], "seed": seed, "tables": N_TABLES}
    return MiceForest.environment.impute(MiceForest.job, gaps, settings)[0]


Method = Callable[[Floats, int], list[Floats]]
METHODS: Mapping[str, Method] = {
    "evenly": by_evenly,
    "evenly-quick": lambda gaps, seed: by_evenly(gaps, seed, effort="quick"),
    "evenly-quick-fixed": lambda gaps, seed: by_evenly(gaps, seed, effort="quick", tilts=False),
    "iterative": by_iterative,
    "miceforest": by_miceforest,
}
"""What draws several complete tables, given one with gaps and a seed."""
ALONE = ("complete", "complete cases")
"""What analyses one table; they cost nothing, and are run for every repetition."""
REVISIONS = {"evenly": 3, "evenly-quick": 3}
"""Raise one when the method draws other tables than before."""


# --- repetitions --------------------------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def repeat(mechanism: str, repetition: int, method: str) -> Record:
    """Make a table, hide cells, impute and analyse; all methods get the same table and the same gaps."""
    rng = np.random.default_rng([repetition, MECHANISMS.index(mechanism)])
    complete = simulate(rng)
    gaps = hide(complete, mechanism, rng)
    begun = cpu_seconds()
    if method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tables = METHODS[method](gaps, repetition)
    else:
        tables = [complete if method == "complete" else gaps[~np.isnan(gaps).any(1)]]
    seconds = cpu_seconds() - begun
    results = [analyse(one) for one in tables]
    n_rows = len(tables[0])
    if len(tables) > 1:
        pooled = evenly.pool(results, n_rows=n_rows, n_parameters=len(TERMS))
        found = (pooled.estimate, pooled.standard_error, pooled.low, pooled.high)
    else:
        (estimate, error), half = results[0], stats.t.ppf(0.5 + 0.5 * LEVEL, n_rows - len(TERMS))
        found = (estimate, error, estimate - half * error, estimate + half * error)
    parts = dict(zip(("estimate", "standard_error", "low", "high"), found, strict=True))
    parts |= {
        "within": np.sqrt(np.mean([error**2 for _, error in results], 0)),
        "correlations": np.mean([correlations(one) for one in tables], 0) - correlations(complete),
    }
    keys = dict(zip(KEYS, (mechanism, repetition, method, REVISIONS.get(method, 1)), strict=True))
    return keys | {"cpu_seconds": round(seconds, 2)} | {name: np.round(one, 4).tolist() for name, one in parts.items()}


def read(path: Path) -> list[Record]:
    """Return the records of a file that were made by the methods as they are now."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [one for one in map(json.loads, lines) if one["revision"] == REVISIONS.get(one["method"], 1)]


def summarize(records: Sequence[Record]) -> list[Record]:
    """Return what is known of each mechanism and method; everything is relative to the same repetitions' complete data.

    `covered` is the share of intervals, over all coefficients, that contain the truth, and `sure` how far off it may be
    by chance (two standard errors, repetitions being independent and coefficients not).
    """
    of: dict[tuple[str, str], dict[int, Record]] = {}
    for one in records:
        of.setdefault((one["mechanism"], one["method"]), {})[one["repetition"]] = one
    found = []
    for mechanism, method in product(MECHANISMS, (*ALONE, *METHODS)):
        runs = of.get((mechanism, method), {})
        if not runs:
            continue
        complete = [of[mechanism, "complete"][i] for i in runs]

        def stack(what: str, some: Iterable[Record] = tuple(runs.values())) -> Floats:
            return np.array([one[what] for one in some])

        inside = (stack("low") <= TRUTH) & (stack("high") >= TRUTH)
        width = (stack("high") - stack("low")).mean(0) / (stack("high", complete) - stack("low", complete)).mean(0)
        unit = np.sqrt((stack("standard_error", complete) ** 2).mean(0))
        found.append(
            {
                "mechanism": mechanism,
                "method": method,
                "repetitions": len(runs),
                "covered": float(inside.mean()),
                "sure": float(2.0 * inside.mean(1).std() / np.sqrt(len(runs))),
                "by_term": inside.mean(0).tolist(),
                "width": float(width.mean()),
                "bias": ((stack("estimate") - stack("estimate", complete)).mean(0) / unit).tolist(),
                "spread": stack("estimate").std(0).tolist(),
                "claimed": np.sqrt((stack("standard_error") ** 2).mean(0)).tolist(),
                "within": np.sqrt((stack("within") ** 2).mean(0)).tolist(),
                "correlations": float(np.abs(stack("correlations").mean(0)).max()),
                "correlation_error": float(np.sqrt((stack("correlations") ** 2).mean())),
                "cpu_seconds": float(np.median(stack("cpu_seconds"))),
            }
        )
    return found


def show(one: Record) -> str:
    """Return the lines that are printed for a mechanism and a method."""

    def listed(what: str, digits: int = 3) -> str:
        return " ".join(f"{value:.{digits}f}" for value in one[what])

    return (
        f"{one['mechanism']} {one['method']} ({one['repetitions']}): covered {one['covered']:.3f} +- {one['sure']:.3f} "
        f"({listed('by_term')}), width x {one['width']:.2f}, bias {listed('bias', 2)}, spread {listed('spread')}, "
        f"claimed {listed('claimed')}, within {listed('within')}, correlations off by {one['correlations']:.3f}, "
        f"rms {one['correlation_error']:.3f}, {one['cpu_seconds']:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("pooling.jsonl"))
    parser.add_argument("--method", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so many CPU seconds")
    given = parser.parse_args()
    records = read(given.out)
    done = {tuple(one[key] for key in KEYS) for one in records}
    spent = 0.0
    for repetition, mechanism, method in product(range(given.repetitions), MECHANISMS, (*ALONE, *given.method)):
        if (mechanism, repetition, method, REVISIONS.get(method, 1)) in done or spent > given.seconds:
            continue
        records.append(repeat(mechanism, repetition, method))
        spent += records[-1]["cpu_seconds"]
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(records[-1]) + "\n")
    print(*map(show, summarize(records)), sep="\n")


if __name__ == "__main__":
    main()
