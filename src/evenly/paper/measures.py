"""The numbers that the paper's figures draw, from the records of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evenly.metrics import GROUPS, ratio_to_baseline
from evenly.models import PAPERS, SPECS
from evenly.paper.datasets import NAMES
from evenly.scaling import METHODS
from evenly.tables import Floats

Record = Mapping[str, Any]

PERCENT = 20
"""The percentage of hidden cells in figures of single columns, if there are runs with it."""
BAND = (0.1, 0.5, 0.9)


# --- which records ------------------------------------------------------------------------------------------------


def values_of(records: Iterable[Record], what: str) -> list[Any]:
    """Return the data sets, models, methods or percentages that occur, in the paper's order; unknown ones last."""
    known: dict[str, Sequence[str]] = {"dataset": NAMES, "model": PAPERS, "method": tuple(METHODS)}
    order = list(known.get(what, ()))
    found = {record["run"][what] for record in records}
    return sorted(found, key=lambda one: (order.index(one) if one in order else len(order), one))


def those(records: Iterable[Record], **run: Any) -> list[Record]:
    """Return the records of the runs with these settings."""
    return [record for record in records if all(record["run"][key] == value for key, value in run.items())]


def at_one_percent(records: Sequence[Record]) -> list[Record]:
    """Return the records of one share of hidden cells, 20 % if it is there: other shares are other tasks."""
    percents = values_of(records, "percent")
    return those(records, percent=PERCENT if PERCENT in percents else percents[0]) if percents else []


def shared_by_methods(records: Sequence[Record], by: str) -> list[Record]:
    """Return the runs whose boxes can be compared: of the shares of hidden cells that most methods have runs of.

    Otherwise a method that alone has runs with half of the cells hidden would have the highest box. With `by="percent"`
    a box pools models instead, and only those that most methods have are kept.

    Examples
    --------
    >>> runs = [("std-none", 20), ("std-none", 50), ("lip-gamma", 20)]
    >>> same = {"dataset": "wine", "model": "vae"}
    >>> records = [{"run": {**same, "method": method, "percent": percent}} for method, percent in runs]
    >>> [record["run"]["percent"] for record in shared_by_methods(records, "model")]
    [20, 20]
    """
    pooled = "percent" if by == "model" else "model"
    methods: dict[tuple[Any, Any], dict[Any, set[str]]] = {}
    for run in (record["run"] for record in records):
        methods.setdefault((run["dataset"], run[by]), {}).setdefault(run[pooled], set()).add(run["method"])
    most = {panel: max(map(len, own.values())) for panel, own in methods.items()}

    def is_shared(run: Mapping[str, Any]) -> bool:
        panel = run["dataset"], run[by]
        return len(methods[panel][run[pooled]]) == most[panel]

    return [record for record in records if is_shared(record["run"])]


def grouped(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the records of each model and method."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["run"]["model"], record["run"]["method"]), []).append(record)
    return groups


# --- numbers to draw ----------------------------------------------------------------------------------------------


def numbers(values: Any) -> Floats:
    """Return a list of a record as an array; null is NaN."""
    return np.array(values, np.float64)


def mean_over_runs(rows: Iterable[Any]) -> Floats:
    """Return the mean of each column over the runs that have a number there; NaN where none has."""
    stacked = np.array([numbers(row) for row in rows])
    known = ~np.isnan(stacked)
    total, n = np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def mean_error(record: Record, protocol: str = "honest") -> float:
    """Return the error of a run: the mean over its columns."""
    errors = numbers(record["honest" if protocol == "honest" else "as_published"])
    errors = errors[~np.isnan(errors)]
    return float(errors.mean()) if len(errors) else float("nan")


def bounded_error(record: Record) -> float:
    """Return the mean over columns of the honest error, a column's at most 1: an error rate, or its whole range.

    Where a model blows up, a few cells far off their column's range would otherwise decide every mean.

    Examples
    --------
    >>> bounded_error({"honest": [0.25, 214.0, None]})
    0.625
    """
    errors = numbers(record["honest"])
    errors = np.minimum(errors[~np.isnan(errors)], 1.0)
    return float(errors.mean()) if len(errors) else float("nan")


def normalized(record: Record) -> Floats:
    """Return each column's error divided by that of imputing the mean or the mode.

    Examples
    --------
    >>> normalized({"honest": [0.1, 0.3, None], "mean_or_mode": [0.2, 0.1, None]})
    array([0.5, 3. , nan])
    """
    return ratio_to_baseline(numbers(record["honest"]), numbers(record["mean_or_mode"]))


def normalized_means(records: Sequence[Record]) -> dict[tuple[str, str], Floats]:
    """Return the normalized error of each column under each model and method, the mean over runs."""
    return {key: mean_over_runs(map(normalized, group)) for key, group in grouped(records).items()}


def target_of(record: Record) -> float | None:
    """Return the target of a run's method: 1 / (scaled columns * learning rate); None where it has none.

    Examples
    --------
    >>> run = {"run": {"model": "vae", "method": "lip-none"}, "columns": ["a", "b"], "modelled": ["a", "b"]}
    >>> target_of({**run, "kinds": ["real", "count"]})  # a count is left as it is: 1 / (1 * 0.001)
    1000.0
    """
    method = METHODS[record["run"]["method"]]
    if not method.equalizes:
        return None
    kinds = dict(zip(record["columns"], record["kinds"], strict=True))
    # The Bernoulli trick leaves nothing that a scale could change.
    scalable = [name for name in record["modelled"] if method.trick == "gamma" or kinds[name] in GROUPS["continuous"]]
    if not scalable:
        return None
    return 1.0 / (len(scalable) * SPECS[record["run"]["model"]].learning_rate)


def bars(kind: str, marginal: Mapping[str, Any]) -> tuple[Floats, Floats, Floats]:
    """Return the ends of a histogram's bars, and their heights in the data and in the model's draws.

    The bars of a count end between whole numbers, and their heights are shares of a single value: bars that hold
    unequal numbers of whole numbers would look like a comb.

    Examples
    --------
    >>> ends, data, model = bars("count", {"ends": [1, 1.4, 2.2, 4], "data": [0.2, 0.2, 0.6], "model": [0, 0.5, 0.5]})
    >>> ends, data, model
    (array([0.5, 1.5, 2.5, 4.5]), array([0.2, 0.2, 0.3]), array([0.  , 0.5 , 0.25]))
    """
    ends, data, model = (numbers(marginal[key]) for key in ("ends", "data", "model"))
    if kind != "count":
        return ends, data, model
    # As NumPy's histograms: the left end belongs to a bar, and the right end to the last one.
    first = np.ceil(ends)
    first[-1] = np.floor(ends[-1]) + 1.0
    held = np.diff(first)
    some = held > 0
    return np.append(first[:-1][some], first[-1]) - 0.5, data[some] / held[some], model[some] / held[some]


def improvements(record: Record) -> Floats:
    """Return each column's gain in log-likelihood from point to point, in units of its size at the start: Equation 4.

    That is (l_t+1 - l_t) / |l_0|, the paper's goal for balanced learning. In records of the first revision the start
    is the first recorded point. It depends on the column's unit, as a log-likelihood does, and has no value where that
    is 0.

    Examples
    --------
    >>> improvements({"history": [[-4.0, 2.0], [-3.0, 3.0], [-2.5, None]]})
    array([[0.25 , 0.5  ],
           [0.125,   nan]])
    """
    history = numbers(record["history"])
    return _divide(np.diff(history, axis=0), np.abs(history[0]))


def progress(record: Record) -> Floats:
    """Return the share of its whole gain in log-likelihood that each column has reached at each point; unit-free.

    A column without any gain since the start is NaN.

    Examples
    --------
    >>> progress({"history": [[-4.0, 7.0], [-3.0, 8.0], [-2.0, 6.9]]})  # the second learns nothing
    array([[0. , nan],
           [0.5, nan],
           [1. , nan]])
    """
    history = numbers(record["history"])
    gain = history[-1] - history[0]
    return _divide(history - history[0], np.where(gain > 0, gain, np.nan))


def epochs_to(record: Record, share: float) -> Floats:
    """Return the epoch at which each column has first made a share of its whole gain, between recorded points.

    In between, gain is taken as linear in log(1 + epoch), as points are spaced. NaN for a column without any gain.

    Examples
    --------
    >>> epochs_to({"points": [0, 1, 3], "history": [[-4.0, 0.0], [-2.0, 0.0], [0.0, -1.0]]}, 0.5)
    array([ 1., nan])
    """
    made, at = progress(record), np.log1p(numbers(record["points"]))[-len(record["history"]) :]
    found = np.full(made.shape[1], np.nan)
    for j, own in enumerate(made.T):
        reached = np.flatnonzero(own >= share)
        if not np.isnan(own).any() and len(reached):
            k = int(reached[0])
            found[j] = at[k] if k == 0 else np.interp(share, own[k - 1 : k + 1], at[k - 1 : k + 1])
    return np.asarray(np.expm1(found))


def gradient_changes(record: Record) -> Floats:
    """Return the change of each column's gradient by one step at each point, relative to its gradient at the start.

    Examples
    --------
    >>> gradient_changes({"gradients": [[2.0, 1.0], [1.0, 1.0]], "gradient_changes": [[1.0, 2.0], [0.5, 0.5]]})
    array([[0.5 , 2.  ],
           [0.25, 0.5 ]])
    """
    return _divide(numbers(record["gradient_changes"]), numbers(record["gradients"])[0])


def _divide(over: Floats, under: Floats) -> Floats:
    """Divide; NaN instead of a division by 0."""
    return np.asarray(over / np.where(under == 0.0, np.nan, under))


def variation(values: Floats) -> Floats:
    """Return the coefficient of variation of each row, std / |mean|; NaN where no column has a number.

    Examples
    --------
    >>> variation(np.array([[1.0, 3.0], [2.0, np.nan], [np.nan, np.nan]]))
    array([0.5, 0. , nan])
    """
    mean = mean_over_runs(values.T)
    return _divide(np.sqrt(mean_over_runs(((values - mean[:, None]) ** 2).T)), np.abs(mean))


def band(values: Floats) -> Floats:
    """Return the 10 %, 50 % and 90 % quantiles of each row over its numbers, as three rows."""
    rows = [row[~np.isnan(row)] for row in values]
    return np.array([np.quantile(row, BAND) if len(row) else np.full(len(BAND), np.nan) for row in rows]).T
