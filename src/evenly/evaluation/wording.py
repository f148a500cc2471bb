"""What a trial found, in words that the terminal and the report share."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.evaluation.trial_results import ColumnTrial, Trial

SAME = 0.005
"""Errors that differ by less than this share are as good as equal."""


def verdict_of(column: ColumnTrial) -> str:
    """Return whether a column is imputed `better` than by its mean or mode, `worse`, or `level` with it.

    Level means that the 90 % interval of the ratio holds 1, that they differ by less than 0.5 %, or that neither makes
    an error.
    """
    if not column.baseline:
        return "worse" if column.error > 0.0 else "level"
    if (
        not math.isfinite(column.error)
        or abs(column.normalized - 1.0) < SAME
        or column.normalized_low <= 1.0 <= column.normalized_high
    ):
        return "level"
    return "better" if column.normalized < 1.0 else "worse"


def say_ratio(ratio: float) -> str:
    """Say how much lower or higher an error is than another, given their ratio.

    Examples
    --------
    >>> say_ratio(0.69), say_ratio(1.204), say_ratio(0.9996)
    ('31 % lower', '20 % higher', '0 % lower')
    """
    return f"{100.0 * abs(1.0 - ratio):.0f} % {'lower' if ratio <= 1.0 else 'higher'}"


def say_range(low: float, high: float) -> str:
    """Say between which bounds an error is lower or higher than another; empty if there is no upper bound.

    Examples
    --------
    >>> say_range(0.66, 0.72), say_range(0.95, 1.03), say_range(1.1, 1.3)
    ('28 to 34 % lower', '5 % lower to 3 % higher', '10 to 30 % higher')
    """
    if not math.isfinite(high):
        return ""
    one, two = say_ratio(low), say_ratio(high)
    if one.split()[-1] != two.split()[-1]:
        return f"{one} to {two}"
    small, large = sorted((one, two), key=lambda text: int(text.split()[0]))
    return f"{small.split()[0]} to {large}"


def say_trial(trial: Trial, whose: str = "the imputer's") -> str:
    """Say in one sentence how an imputer compares with filling in the mean or the mode; empty if nothing was scored."""
    value, low, high = trial.normalized_interval
    if not math.isfinite(value):
        return ""
    counts = Counter(verdict_of(one) for one in trial.columns)
    n_columns, n_cells = len(trial.columns), sum(one.n_cells for one in trial.columns)
    between, lower = say_range(low, high), say_ratio(value)
    compared = "about the same as" if lower.startswith("0 ") else f"{lower} than"
    sample = "" if trial.n_rows is None else f" in a random sample of {trial.n_rows:,} rows"
    words = [f"better in {counts['better']} of {n_columns} columns" if n_columns > 1 else "", *_others(counts)]
    return (
        f"On {n_cells:,} cells that were hidden from it{sample}, {whose} error is {compared} that of filling in each "
        "column's mean or most frequent class"
        + (f" (90 % interval: {between})" if between else "")
        + (f"; {', '.join(filter(None, words))}." if n_columns > 1 else ".")
    )


def _others(counts: Counter[str]) -> list[str]:
    return [f"{name} in {counts[name]}" for name in ("level", "worse") if counts[name]]
