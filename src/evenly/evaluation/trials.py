"""Trials of an imputer on the user's own table: known cells are hidden from it, imputed and scored."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, InterruptedWarning, TableError
from evenly.evaluation.intervals import error_interval, mean_with_interval, normalized_interval
from evenly.evaluation.peers import METHOD, PeerImputer, as_peer, impute_visible
from evenly.evaluation.wording import say_trial
from evenly.imputation import Imputer
from evenly.metrics import baseline_errors, column_errors, hold_out, mean_or_mode, ratio_to_baseline
from evenly.tables import (
    DECLARED,
    Column,
    Floats,
    Schema,
    Table,
    coded,
    decode,
    encode_columns,
    make_rules,
    number_table,
    open_table,
)

Flags = npt.NDArray[np.bool_]

LEVEL = 0.9
"""Level of the intervals: of each column's error, and of the imputed numbers whose coverage is counted."""
N_EXAMPLES = 5


@dataclass(frozen=True)
class ColumnTrial:
    """How one column's hidden cells were imputed."""

    column: str
    kind: str
    measure: str
    """`error rate` for classes, `NRMSE` (root mean square error / range) for numbers."""
    n_cells: int
    """The number of hidden cells, which are scored."""
    error: float
    low: float
    high: float
    """A 90 % interval of the error, for the random choice of hidden cells."""
    baseline: float
    """The error of the mean or the most frequent class, on the same cells."""
    covered: float | None
    """The share of numbers inside their 90 % intervals; None for classes, and for imputers without intervals."""
    examples: tuple[tuple[Any, Any], ...]
    """Some hidden cells: true and imputed values."""
    normalized_low: float = 0.0
    normalized_high: float = math.inf
    """A 90 % interval of `normalized`: both errors are taken on the same cells, so that it is narrower than theirs."""

    @property
    def normalized(self) -> float:
        """The error divided by the baseline: below 1 is better than the mean or the most frequent class."""
        return float(ratio_to_baseline(np.array([self.error]), np.array([self.baseline]))[0])


@dataclass(frozen=True)
class Trial:
    """The errors of an imputer on cells that were hidden from it; `print` says them in one sentence.

    Examples
    --------
    >>> Trial((), 0.1, "masked", "lip-none", 0.0).error
    nan
    """

    columns: tuple[ColumnTrial, ...]
    share: float
    model: str
    method: str
    seconds: float

    @property
    def error(self) -> float:
        """The mean error over columns."""
        return _mean([one.error for one in self.columns])

    @property
    def baseline(self) -> float:
        """The mean over columns of the error of the mean or the most frequent class."""
        return _mean([one.baseline for one in self.columns])

    @property
    def normalized(self) -> float:
        """The mean over columns of error / baseline: how much of the error of the mean or the mode is left.

        Columns whose baseline makes no error are left out; NaN if all are.
        """
        return self.normalized_interval[0]

    @property
    def normalized_interval(self) -> tuple[float, float, float]:
        """`normalized`, and both ends of its 90 % interval."""
        scored = [one for one in self.columns if one.baseline > 0.0 and math.isfinite(one.error)]
        return mean_with_interval([(one.normalized, one.normalized_low, one.normalized_high) for one in scored])

    def __str__(self) -> str:
        return say_trial(self)

    def to_plain(self) -> dict[str, Any]:
        """Return the trial as plain JSON types."""
        value, low, high = self.normalized_interval
        found = asdict(self)
        for one, own in zip(self.columns, found["columns"], strict=True):
            own["normalized"] = one.normalized
        return {
            "error": self.error,
            "baseline": self.baseline,
            "normalized": value,
            "normalized_low": low,
            "normalized_high": high,
            **found,
        }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def try_imputer(imputer: Imputer, table: Any, *, share: float = 0.1, random_state: Any = 0) -> Trial:
    """Hide a share of each column's known cells, impute them and score the imputed values.

    The imputer itself is not changed: a clone is fitted to the other cells.

    Parameters
    ----------
    imputer : Imputer
        Only its settings are used; it need not be fitted.
    table : dataframe or array
        The table to try it on.
    share : float
        The share of each column's known cells to hide. Columns with fewer than ten, or all equal, are skipped.
    random_state : int, RandomState or None
        Seeds the choice of hidden cells.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(50.0, 2.0, 200)
    >>> table = np.column_stack([x, 3.0 * x + rng.normal(size=200)])
    >>> from evenly import Training
    >>> small = Training(epochs=60, n_networks=1, sizes={"hidden_size": 16})
    >>> trial = try_imputer(Imputer(training=small, random_state=0), table)
    >>> [one.n_cells for one in trial.columns], trial.error < 0.8 * trial.baseline
    ([20, 20], True)
    """
    return next(compare_imputers([imputer], table, share=share, random_state=random_state))


def compare_imputers(
    imputers: Sequence[Any], table: Any, *, share: float = 0.1, random_state: Any = 0, like: Imputer | None = None
) -> Iterator[Trial]:
    """Try several imputers on the same hidden cells, one after the other; see `try_imputer`.

    Parameters
    ----------
    imputers : sequence of Imputer, str or estimator
        Imputers; `"forest"`, `"knn"` and `"linear"`, which are built on scikit-learn; or any imputer of scikit-learn,
        which gets numbers standardized and classes one-hot. None of these has intervals. On tables of more than
        100,000 cells, those with names learn from a sample of the rows, with a warning.
    table, share, random_state
        As in `try_imputer`.
    like : Imputer, optional
        Whose declarations of columns count; by default those of the first `Imputer`.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(60, 2))
    >>> some = [Imputer("marginal"), "knn", Imputer("marginal", estimate="median")]
    >>> [trial.model for trial in compare_imputers(some, table)]
    ['marginal', 'knn', 'marginal']
    """
    if not 0.0 < share < 1.0:
        raise TableError(f"share = {share!r}", "expected a number between 0 and 1")
    opened = open_table(table, estimator="Imputer", keep=True)
    found = [one for one in imputers if isinstance(one, Imputer)]
    first = like or (found[0] if found else Imputer("marginal"))
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    candidates = [one if isinstance(one, Imputer) else as_peer(one, seed) for one in imputers]
    columns, truth = encode_for(first, opened)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a known cell
        varied = np.nanmin(truth, axis=0) < np.nanmax(truth, axis=0)
    hidden = hold_out(~np.isnan(truth) & varied, rng, share=share)
    if not hidden.any():
        raise TableError(
            f"{opened.n_rows} rows without a column of ten known cells that differ", "expected some to hide and score"
        )
    shown = _Shown(opened, np.where(hidden, np.nan, truth), columns, first.preset)
    for candidate in candidates:
        begun = time.perf_counter()
        attempt = shown.by_peer(candidate) if isinstance(candidate, PeerImputer) else shown.by_imputer(candidate)
        yield Trial(
            tuple(_score(attempt, truth, hidden, opened)),
            share,
            attempt.model,
            attempt.method,
            time.perf_counter() - begun,
        )


class _Attempt(NamedTuple):
    """What an imputer made of the hidden cells."""

    columns: list[Column]
    predicted: Floats
    ends: tuple[Floats, Floats] | None
    """Of 90 % intervals, if it has any."""
    model: str
    method: str


@dataclass(frozen=True)
class _Shown:
    """A table with some cells hidden."""

    opened: Table
    visible: Floats
    columns: list[Column]
    preset: str | None
    """Of the imputer whose columns these are: the paper treats zeros differently."""

    def by_peer(self, peer: PeerImputer) -> _Attempt:
        predicted = impute_visible(peer, self.columns, self.visible.copy())
        return _Attempt(self.columns, _rounded(predicted, self.opened), None, peer.name, METHOD)

    def by_imputer(self, imputer: Imputer) -> _Attempt:
        columns = self.columns if imputer.preset == self.preset else encode_for(imputer, self.opened)[0]
        numbers = number_table(self.opened.labels, self.opened.names, self.visible)
        schema = Schema(columns=[coded(column) for column in columns])
        own = clone(imputer).set_params(schema=schema, kinds=None, bounds=None, missing=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)  # repeated when the whole table is fitted
            warnings.simplefilter("default", InterruptedWarning)
            own.fit(numbers)
            predicted = _rounded(own.predict_cells(numbers), self.opened)
            ends = own.interval_cells(numbers, LEVEL)
        return _Attempt(columns, predicted, ends, own.model_name, own.scaler_.method)


def encode_for(imputer: Imputer, opened: Table) -> tuple[list[Column], Floats]:
    """Return the columns that an imputer infers for a table, and the values or codes, rows x columns."""
    settings = {name: getattr(imputer, name) for name in DECLARED}
    rules = make_rules(opened, zeros="clip" if imputer.preset == "paper" else "shift", **settings)
    return encode_columns(opened, rules)


def _rounded(predicted: Floats, opened: Table) -> Floats:
    """Round the estimates of integer columns, as `Imputer.transform` does."""
    whole = np.array([column.storage == "integer" for column in opened.columns])
    return np.where(whole, np.rint(predicted), predicted)


def _score(attempt: _Attempt, truth: Floats, hidden: Flags, opened: Table) -> Iterator[ColumnTrial]:
    columns, predicted, ends = attempt[:3]
    errors, baseline = column_errors(columns, truth, predicted, hidden), baseline_errors(columns, truth, hidden)
    plain = mean_or_mode(columns, truth, hidden)
    for j, column in enumerate(columns):
        own = hidden[:, j]
        if not own.any():
            continue
        true, guess = truth[own, j], predicted[own, j]
        covered = None
        if ends is not None and not column.has_classes:
            covered = float(((ends[0][own, j] <= true) & (true <= ends[1][own, j])).mean())
        losses, others = _losses(true, guess, plain[own, j], classes=column.has_classes)
        low, high = error_interval(float(errors[j]), losses, rate=column.has_classes)
        ends_of_ratio = normalized_interval(losses, others, rate=column.has_classes)
        whole = opened.columns[j].storage == "integer" and not column.has_classes
        cells = [
            [int(cell) if whole else _plain(cell) for cell in decode(column, values[:N_EXAMPLES])]
            for values in (true, guess)
        ]
        yield ColumnTrial(
            column.name,
            column.kind,
            "error rate" if column.has_classes else "NRMSE",
            int(own.sum()),
            float(errors[j]),
            low,
            high,
            float(baseline[j]),
            covered,
            tuple(zip(*cells, strict=True)),
            *ends_of_ratio,
        )


def _losses(true: Floats, *guesses: Floats, classes: bool) -> list[Floats]:
    """Return the losses of each cell, whose means give the errors: wrong or not, or squared differences.

    Differences are relative to the largest of all, so that no square overflows or vanishes.
    """
    if classes:
        return [(true != guess).astype(np.float64) for guess in guesses]
    sizes = np.abs(true - np.stack(guesses))
    return list((sizes / max(float(sizes.max()), 1e-300)) ** 2)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
