"""The grid of the paper's runs: which methods apply to a data set, and what is to run. Without JAX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from evenly._support import TableError
from evenly.models import PAPERS, published_epochs
from evenly.paper.datasets import N_ROWS, PERCENTS, kinds_of, n_masks
from evenly.paper.records import Run
from evenly.scaling import METHODS


def methods_for(kinds: Iterable[str]) -> list[str]:
    """Return the methods that apply to a table with columns of these kinds, as in the paper's tables.

    Without a continuous column the methods without a trick are all the same; without a column of more than two classes
    the Bernoulli trick changes nothing.

    Examples
    --------
    >>> methods_for(["count", "binary"])
    ['std-none', 'std-gamma', 'lip-gamma']
    >>> methods_for(["count", "categorical"])
    ['std-none', 'lip-bern', 'std-gamma', 'lip-gamma']
    """
    kinds = set(kinds)
    continuous, classes = kinds & {"real", "positive"}, kinds & {"categorical", "ordinal"}
    applies = {
        "max-none": bool(continuous),
        "iqr-none": bool(continuous),
        "lip-none": bool(continuous),
        "lip-bern": bool(classes),
    }
    return [method for method in METHODS if applies.get(method, True)]


@dataclass(frozen=True)
class Plan:
    """Which runs of the paper's grid to make.

    Parameters
    ----------
    masks : sequence of int, optional
        Which masks, from 1; by default all that are given with a data set, or ten.
    methods : sequence of str, optional
        By default all that apply to a data set.
    epochs_fraction : float
        Share of the paper's epochs.

    Examples
    --------
    >>> len(Plan(["wine"], percents=[20], masks=[1], models=["vae"]).runs())
    6
    """

    datasets: Sequence[str]
    percents: Sequence[int] = PERCENTS
    masks: Sequence[int] | None = None
    models: Sequence[str] = PAPERS
    methods: Sequence[str] | None = None
    seeds: Sequence[int] = (0,)
    epochs_fraction: float = 1.0
    optimizer: Literal["adam", "sgd"] = "adam"

    def __post_init__(self) -> None:
        if not 0 < self.epochs_fraction < np.inf:
            raise TableError(f"an epochs fraction of {self.epochs_fraction}", "expected a positive number")
        if self.masks is not None and (not self.masks or min(self.masks) < 1):
            raise TableError(f"the masks {list(self.masks)}", "expected one or more numbers from 1")
        if not self.seeds or not 0 <= min(self.seeds) <= max(self.seeds) < 2**32:
            raise TableError(f"the seeds {list(self.seeds)}", "expected one or more whole numbers from 0 to 4294967295")

    def runs(self, folder: str | Path | None = None) -> list[Run]:
        """Return the runs, first masks first; no table is read for it.

        Parameters
        ----------
        folder : path, optional
            Where to look for given masks first, as `load_dataset` does.
        """
        runs = []
        for name in self.datasets:
            epochs = max(1, round(published_epochs(N_ROWS[name]) * self.epochs_fraction))
            methods = [one for one in methods_for(kinds_of(name).values()) if not self.methods or one in self.methods]
            for percent in self.percents:
                for mask in self.masks or range(1, n_masks(name, percent, folder) + 1):
                    settings = product(self.models, methods, self.seeds)
                    runs += [Run(name, percent, mask, *one, epochs, self.optimizer) for one in settings]
        return sorted(dict.fromkeys(runs), key=lambda run: run.mask)


FOUR = ("std-none", "lip-none", "std-gamma", "lip-gamma")
"""Two scales by two tricks: what a scale does is told apart from what the Gamma trick does."""
LEARNERS = ("vae", "factorization")
"""The models that preprocessing matters for, by the paper; the mixture finds the same optimum under all."""
SMALL, LARGE = ("breast", "wine", "spam"), ("letter", "adult", "credit")
A_QUARTER = 0.25
"""100 of the 400 epochs of the large data sets."""
DESIGN = (
    Plan(SMALL, [20], range(1, 6), LEARNERS, FOUR, seeds=(0, 1)),
    Plan(SMALL, [20], [1], LEARNERS, ("max-none", "iqr-none", "lip-bern")),
    Plan(LARGE, [20], range(1, 4), LEARNERS, FOUR, epochs_fraction=A_QUARTER),
    Plan(LARGE, [20], [1], LEARNERS, FOUR),
    Plan(LARGE, [20], [1], LEARNERS, ("max-none", "iqr-none", "lip-bern"), epochs_fraction=A_QUARTER),
    # The theory is about gradient descent. A row's variables would hardly move: their gradient is one row's share of
    # that of a batch.
    Plan(("breast", "wine"), [20], [1], ("vae",), FOUR, optimizer="sgd"),
    Plan(("adult",), [20], [1], ("vae",), FOUR, epochs_fraction=A_QUARTER, optimizer="sgd"),
)
"""The runs that separate scale from trick, the small data sets first."""


def design_runs(plan: Plan, folder: str | Path | None = None) -> list[Run]:
    """Return the runs of `DESIGN` of a plan's data sets, models and methods, and of its masks if it has some.

    Examples
    --------
    >>> len(design_runs(Plan(["breast"]))), len(design_runs(Plan(["breast"], masks=[1], models=["vae"])))
    (63, 9)
    """
    kept = []
    for run in (run for part in DESIGN for run in part.runs(folder)):
        wanted = run.dataset in plan.datasets and run.model in plan.models and run.percent in plan.percents
        if wanted and (not plan.methods or run.method in plan.methods) and (not plan.masks or run.mask in plan.masks):
            kept.append(run)
    return list(dict.fromkeys(kept))
