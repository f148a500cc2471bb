"""The paper's claims against records of runs: each a comparison of two methods, with an interval. Without JAX.

Runs are paired by data set, model, mask, seed and epochs, so that both see the same cells. A comparison is the mean of
log ratios over the masks of each data set and model, and then over these. Its interval is a bootstrap over masks, which
carry their seeds along; with n comparisons, its level is 1 - 0.05 / n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly.paper.measures import (
    Record,
    bounded_error,
    epochs_to,
    gradient_changes,
    improvements,
    normalized,
    variation,
)
from evenly.tables import Floats

Measure = Callable[[Record], float]
Block = tuple[str, str, int]
"""A data set, a model and a number of epochs."""

LEVEL = 0.95
REPLICATES = 10_000
LEAST_MASKS, LEAST_DATASETS = 2, 3
"""A data set and a model need so many masks to count, and a claim so many data sets: none stands on a run or two."""
MARGIN = 0.01
"""A claimed decrease does not hold if its interval excludes a decrease by more than one per cent."""


# --- what is measured of a run ----------------------------------------------------------------------------------------


def equation_4(record: Record) -> float:
    """Return how much the columns' gains differ (std / |mean|), the median over points: 0 is the paper's ideal."""
    return _median(variation(improvements(record)))


def equation_5(record: Record) -> float:
    """Return how much the columns' relative changes of gradient differ (std / |mean|), the median over points."""
    return _median(variation(gradient_changes(record)))


def spread_of_epochs(record: Record, share: float) -> float:
    """Return how far apart the columns reach a share of their gain: the std of log(1 + epoch)."""
    epochs = epochs_to(record, share)
    reached = np.log1p(epochs[~np.isnan(epochs)])
    return float(reached.std()) if len(reached) > 1 else float("nan")


def half_gains(record: Record) -> float:
    """Return how far apart the columns reach 50 % of their gain."""
    return spread_of_epochs(record, 0.5)


def most_gains(record: Record) -> float:
    """Return how far apart the columns reach 90 % of their gain."""
    return spread_of_epochs(record, 0.9)


def median_error(record: Record) -> float:
    """Return the median over columns of the honest error: a few cells far off do not move it."""
    return _median(np.array(record["honest"], np.float64))


def overlooked(record: Record) -> float:
    """Return one plus the number of columns that are no better off than with the mean or the mode."""
    return 1.0 + float((normalized(record) >= 1.0).sum())


def _median(values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


# --- comparisons ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """A geometric mean ratio of one method to another, and its interval."""

    ratio: float
    low: float
    high: float
    datasets: tuple[str, ...]
    n_pairs: int


def compare(
    records: Iterable[Record],
    first: str,
    second: str,
    measure: Measure,
    *,
    level: float = LEVEL,
    models: Sequence[str] | None = None,
    optimizer: str = "adam",
) -> Ratio | None:
    """Return the ratio of a measure under one method to that under another; None without blocks of enough masks.

    Examples
    --------
    >>> run = {"dataset": "wine", "model": "vae", "percent": 20, "seed": 0, "epochs": 9}
    >>> def record(method, mask, error):
    ...     return {"run": run | {"method": method, "mask": mask}, "honest": [error]}
    >>> pairs = [record("std-none", mask, 0.2) for mask in (1, 2)] + [record("lip-none", mask, 0.1) for mask in (1, 2)]
    >>> compare(pairs, "lip-none", "std-none", median_error)
    Ratio(ratio=0.5, low=0.5, high=0.5, datasets=('wine',), n_pairs=2)
    >>> compare(pairs[:3], "lip-none", "std-none", median_error) is None  # one pair
    True
    """
    logs = paired(records, first, second, measure, optimizer=optimizer)
    blocks = {
        block: masks
        for block, masks in logs.items()
        if len(masks) >= LEAST_MASKS and (models is None or block[1] in models)
    }
    if not blocks:
        return None
    mean, low, high = np.exp(
        interval([[float(np.mean(one)) for one in masks.values()] for masks in blocks.values()], level)
    )
    datasets = tuple(dict.fromkeys(block[0] for block in blocks))
    n_pairs = sum(len(one) for masks in blocks.values() for one in masks.values())
    return Ratio(float(mean), float(low), float(high), datasets, n_pairs)


def paired(
    records: Iterable[Record], first: str, second: str, measure: Measure, *, optimizer: str = "adam"
) -> dict[Block, dict[int, list[float]]]:
    """Return the log ratios of all pairs, by block and mask: with a 20 % share of hidden cells, seed by seed.

    Of several numbers of epochs of a data set and a model, the one with most pairs counts. Pairs of which a measure is
    not a positive number are left out.
    """
    values: dict[tuple[Any, ...], dict[str, float]] = {}
    for record in records:
        run = record["run"]
        wanted = run["method"] in (first, second) and run["percent"] == 20
        if wanted and "failed" not in record and run.get("optimizer", "adam") == optimizer:
            key = run["dataset"], run["model"], run["epochs"], run["mask"], run["seed"]
            values.setdefault(key, {})[run["method"]] = measure(record)
    found: dict[Block, dict[int, list[float]]] = {}
    for (dataset, model, epochs, mask, _), both in values.items():
        if len(both) == 2 and all(np.isfinite(one) and one > 0.0 for one in both.values()):
            ratio = float(np.log(both[first] / both[second]))
            found.setdefault((dataset, model, epochs), {}).setdefault(mask, []).append(ratio)
    most: dict[tuple[str, str], Block] = {}
    for block, masks in found.items():
        best = most.get(block[:2])
        if best is None or (len(masks), block[2]) > (len(found[best]), best[2]):
            most[block[:2]] = block
    return {block: masks for block, masks in found.items() if most[block[:2]] == block}


def interval(blocks: Sequence[Sequence[float]], level: float = LEVEL, seed: int = 0) -> tuple[float, float, float]:
    """Return the mean over blocks of the mean of each, and the ends of a bootstrap interval.

    Each block is drawn anew from its own values, which are first moved apart by sqrt(n / (n - 1)): then the variance of
    a drawn mean is the unbiased one, s^2 / n, however few there are.

    Examples
    --------
    >>> interval([[1.0, 1.0], [3.0, 3.0, 3.0]])
    (2.0, 2.0, 2.0)
    """
    rng = np.random.default_rng(seed)
    drawn = np.zeros(REPLICATES)
    for own in map(np.array, blocks):
        n = len(own)
        apart = own.mean() + (own - own.mean()) * np.sqrt(n / (n - 1)) if n > 1 else own
        drawn += apart[rng.integers(0, n, (REPLICATES, n))].mean(axis=1) / len(blocks)
    low, high = np.quantile(drawn, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return float(np.mean([np.mean(own) for own in blocks])), float(low), float(high)


# --- claims -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What the paper says: under one method, something is lower than under another."""

    text: str
    first: str
    second: str
    measure: Measure
    what: str
    models: tuple[str, ...] | None = None
    optimizer: str = "adam"
    equal: bool = False
    """Whether the claim is that the first is not higher: then it holds if an increase by more than 1 % is excluded."""

    def check(self, records: Iterable[Record], n_claims: int) -> Checked:
        """Return what the records say about it, at a level that is corrected for the number of claims."""
        level = 1.0 - (1.0 - LEVEL) / n_claims
        options: Mapping[str, Any] = {"models": self.models, "optimizer": self.optimizer}
        return Checked(self, compare(records, self.first, self.second, self.measure, level=level, **options))


@dataclass(frozen=True)
class Checked:
    """A claim and what the records say about it."""

    claim: Claim
    found: Ratio | None

    @property
    def verdict(self) -> str:
        """Whether it holds, does not hold, or is untested: the records are too few or cannot tell."""
        one = self.found
        if one is None or len(one.datasets) < LEAST_DATASETS or not np.isfinite([one.low, one.high]).all():
            return "untested"
        above = 1.0 + MARGIN if self.claim.equal else 1.0
        if one.high < above:
            return "holds"
        return "does not hold" if one.low > (above if self.claim.equal else 1.0 - MARGIN) else "untested"

    @property
    def evidence(self) -> str:
        """One line: the ratio with its interval, and what it is of."""
        one = self.found
        if one is None:
            return "no pairs of runs"
        of = f"{one.n_pairs} pairs of {', '.join(one.datasets)}"
        return f"{self.claim.what}: {one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]; {of}"


GAINS, CHANGES, EPOCHS = "spread of gains", "spread of gradients' changes", "spread of epochs"
COUNTED = "1 + columns overlooked"
CLAIMS = (
    Claim("Lipschitz scales and the Gamma trick lower the error", "lip-gamma", "std-none", bounded_error, "error"),
    Claim(
        "scales and trick lower the error of the median column", "lip-gamma", "std-none", median_error, "median error"
    ),
    Claim("the Gamma trick lowers the error of standardized columns", "std-gamma", "std-none", bounded_error, "error"),
    Claim("the Gamma trick lowers the error under Lipschitz scales", "lip-gamma", "lip-none", bounded_error, "error"),
    Claim("Lipschitz scales alone do not raise the error", "lip-none", "std-none", bounded_error, "error", equal=True),
    Claim("under the Gamma trick, Lipschitz scales lower the error", "lip-gamma", "std-gamma", bounded_error, "error"),
    Claim("scales and trick balance the gains of columns (Equation 4)", "lip-gamma", "std-none", equation_4, GAINS),
    Claim("Lipschitz scales alone balance the gains (Equation 4)", "lip-none", "std-none", equation_4, GAINS),
    Claim(
        "under the Gamma trick, the scales balance the gains (Equation 4)", "lip-gamma", "std-gamma", equation_4, GAINS
    ),
    Claim(
        "scales and trick balance the changes of gradients (Equation 5)", "lip-gamma", "std-none", equation_5, CHANGES
    ),
    Claim("Lipschitz scales alone balance the changes of gradients", "lip-none", "std-none", equation_5, CHANGES),
    Claim("columns make 50 % of their gain at the same time", "lip-gamma", "std-none", half_gains, EPOCHS),
    Claim("columns make 90 % of their gain at the same time", "lip-gamma", "std-none", most_gains, EPOCHS),
    Claim("fewer columns are overlooked than under std-gamma", "lip-gamma", "std-gamma", overlooked, COUNTED),
    Claim("fewer columns are overlooked than under lip-bern", "lip-gamma", "lip-bern", overlooked, COUNTED),
    Claim(
        "Lipschitz scales alone balance gradients under gradient descent",
        "lip-none",
        "std-none",
        equation_5,
        CHANGES,
        optimizer="sgd",
    ),
    Claim(
        "the error of the mixture does not depend on the method",
        "lip-gamma",
        "std-none",
        bounded_error,
        "error",
        ("mixture",),
        equal=True,
    ),
)
"""What the paper says of Lipschitz standardization; the corrected level is for all of them together."""


def check_claims(records: Sequence[Record], claims: Sequence[Claim] = CLAIMS) -> list[Checked]:
    """Return what the records say about each claim."""
    return [claim.check(records, len(claims)) for claim in claims]
