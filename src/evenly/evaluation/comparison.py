"""Which imputers to compare on a table, and their trials side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenly.evaluation.trials import Trial

CANDIDATES = (
    ("masked", "lip-none"),
    ("masked", "std-none"),
    ("vae", "lip-gamma"),
    ("vae", "std-none"),
    ("factorization", "lip-gamma"),
    ("mixture", "lip-none"),
    ("marginal", "lip-none"),
)
"""Models and methods that are compared unless others are named."""


def candidates(models: Sequence[str] = (), methods: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the pairs of model and method to compare; by default the usual ones.

    Examples
    --------
    >>> candidates(["vae"])
    [('vae', 'lip-gamma'), ('vae', 'std-none')]
    >>> candidates(["vae"], ["std-gamma"]), candidates(["auto"])
    ([('vae', 'std-gamma')], [('auto', 'auto')])
    """
    if methods:
        return [(model, method) for model in models or dict(CANDIDATES) for method in methods]
    usual = [pair for pair in CANDIDATES if not models or pair[0] in models]
    return usual + [(model, "auto") for model in models if model not in dict(CANDIDATES)]


def errors_by_column(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Return the errors of trials on the same hidden cells as a table: a row a column, a column a trial.

    Examples
    --------
    >>> errors_by_column([Trial((), 0.1, "vae", "std-none", 0.0)])
    {'column': [], 'measure': [], 'mean or mode': [], 'vae std-none': []}
    """
    first = trials[0].columns
    return {
        "column": [one.column for one in first],
        "measure": [one.measure for one in first],
        "mean or mode": [one.baseline for one in first],
        **{f"{trial.model} {trial.method}": [one.error for one in trial.columns] for trial in trials},
    }


def worst_column(trial: Trial) -> tuple[str, float] | None:
    """Return the column that gains least over its mean or most frequent class, and its share of that error."""
    ratios = {one.column: one.error / one.baseline for one in trial.columns if one.baseline}
    return max(ratios.items(), key=lambda item: item[1], default=None)
