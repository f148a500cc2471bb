"""Which imputers to compare on a table, and their trials side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evenly.evaluation.peers import METHOD, PEER_IMPUTERS
from evenly.evaluation.trial_results import Trial
from evenly.evaluation.wording import say_trial

CANDIDATES = (
    ("masked", "lip-none"),
    ("masked", "std-none"),
    ("vae", "lip-gamma"),
    ("vae", "std-none"),
    ("factorization", "lip-gamma"),
    ("mixture", "lip-none"),
    ("marginal", "lip-none"),
    *((name, METHOD) for name in PEER_IMPUTERS),
)
"""Models and methods, and imputers of scikit-learn, that are compared unless others are named."""


def too_wide_for(n_columns: int) -> list[str]:
    """Return the imputers of scikit-learn that are compared only if asked for, since a table has so many columns."""
    return [name for name, peer in PEER_IMPUTERS.items() if n_columns > peer.most_columns]


def candidates(models: Sequence[str] = (), methods: Sequence[str] = (), n_columns: int = 0) -> list[tuple[str, str]]:
    """Return the pairs of model and method to compare; by default the usual ones for a table of so many columns.

    Imputers of scikit-learn have no method of ours: with methods, they are compared only if they are named.

    Examples
    --------
    >>> candidates(["vae"])
    [('vae', 'lip-gamma'), ('vae', 'std-none')]
    >>> candidates(["vae"], ["std-gamma"]), candidates(["auto"])
    ([('vae', 'std-gamma')], [('auto', 'auto')])
    >>> candidates(["forest"], ["std-gamma"]), [model for model, _ in candidates(n_columns=200)][-2:]
    ([('forest', 'scikit-learn')], ['knn', 'linear'])
    """
    if methods:
        scaled = [one for one in models or dict(CANDIDATES) if one not in PEER_IMPUTERS]
        return [(model, method) for model in scaled for method in methods] + [
            (one, METHOD) for one in models if one in PEER_IMPUTERS
        ]
    if not models:
        return [pair for pair in CANDIDATES if pair[0] not in too_wide_for(n_columns)]
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
        **{trial.name: [one.error for one in trial.columns] for trial in trials},
    }


def worst_column(trial: Trial) -> tuple[str, float] | None:
    """Return the column that gains least over its mean or most frequent class, and its share of that error."""
    ratios = {one.column: one.normalized for one in trial.columns if one.baseline}
    return max(ratios.items(), key=lambda item: item[1], default=None)


def rank_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials from the best to the worst, by their errors relative to the mean or the mode.

    Examples
    --------
    >>> rank_trials([Trial((), 0.1, "vae", "std-none", 0.0)])[0].model
    'vae'
    """
    return sorted(trials, key=lambda one: (math.isnan(one.normalized), one.normalized))


def say_winner(ranked: Sequence[Trial]) -> str:
    """Say which trial is best, by how much it beats the mean or the mode, and which others are within its interval."""
    best, *others = ranked
    high = best.normalized_interval[2]
    level = [one.name for one in others if one.normalized <= high]
    within = f" Within that interval too: {', '.join(level)}." if level else ""
    found = say_trial(best, "its")
    return f"Best: {best.name}. {found}{within}" if found else "Nothing was scored."
