"""The grid of the paper's runs: which methods apply to a data set, and what is to run. Without JAX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evenly._support import TableError
from evenly.models import published_epochs
from evenly.paper.datasets import N_ROWS, PERCENTS, kinds_of, n_masks
from evenly.paper.records import Run
from evenly.scaling import METHODS


class Known(NamedTuple):
    """What plans and figures ask of a model."""

    learning_rate: float


MODELS = {"mixture": Known(1e-3), "factorization": Known(1e-2), "vae": Known(1e-3)}
"""The paper's models. Said again here, because to ask the models themselves takes JAX; a test compares."""


def methods_for(kinds: Iterable[str]) -> list[str]:
    """Return the methods that apply to a table with columns of these kinds, as in the paper's tables.

    Without a continuous column nothing but standardization is left to tell apart; without one of more than two classes
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


def plan(
    datasets: Iterable[str],
    *,
    percents: Sequence[int] = PERCENTS,
    masks: Sequence[int] | None = None,
    models: Sequence[str] = tuple(MODELS),
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    epochs_fraction: float = 1.0,
    folder: str | Path | None = None,
) -> list[Run]:
    """Return the runs of a grid, first masks first; no table is read for it.

    Parameters
    ----------
    masks : sequence of int, optional
        Which masks, from 1; by default all that are given with a data set, or ten.
    methods : sequence of str, optional
        By default all that apply to a data set.
    epochs_fraction : float
        Share of the paper's epochs.
    folder : path, optional
        Where to look for given masks first, as `load_dataset` does.
    """
    if not 0 < epochs_fraction < np.inf:
        raise TableError(f"an epochs fraction of {epochs_fraction}", "expected a positive number")
    if masks is not None and (not masks or min(masks) < 1):
        raise TableError(f"the masks {list(masks)}", "expected one or more numbers from 1")
    if not seeds or not 0 <= min(seeds) <= max(seeds) < 2**32:
        raise TableError(f"the seeds {list(seeds)}", "expected one or more whole numbers from 0 to 4294967295")
    runs = []
    for name in datasets:
        epochs = max(1, round(published_epochs(N_ROWS[name]) * epochs_fraction))
        fitting = [one for one in methods_for(kinds_of(name).values()) if methods is None or one in methods]
        for percent in percents:
            for mask in masks or range(1, n_masks(name, percent, folder) + 1):
                runs += [
                    Run(name, percent, mask, model, method, seed, epochs)
                    for model in models
                    for method in fitting
                    for seed in seeds
                ]
    return sorted(dict.fromkeys(runs), key=lambda run: run.mask)
