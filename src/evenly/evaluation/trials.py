"""Trials of an imputer on the user's own table: known cells are hidden from it, imputed and scored."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, InterruptedWarning, Stages, TableError, showing
from evenly.imputation import Imputer, fill_seconds, fit_seconds
from evenly.metrics import baseline_errors, column_errors, hold_out
from evenly.tables import (
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
Z = 1.6448536269514722
"""Half-width of a 90 % interval of a normal mean, in standard errors."""
N_EXAMPLES = 5
SCORING = "filling hidden cells"


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
    """The share of numbers inside their 90 % intervals; None for classes."""
    examples: tuple[tuple[Any, Any], ...]
    """Some hidden cells: true and imputed values."""


@dataclass(frozen=True)
class Trial:
    """The errors of an imputer on cells that were hidden from it.

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
    final: bool = False
    """Whether the imputer that was tried also fills the table: it was not fitted again to all cells."""

    @property
    def error(self) -> float:
        """The mean error over columns."""
        return _mean([one.error for one in self.columns])

    @property
    def baseline(self) -> float:
        """The mean over columns of the error of the mean or the most frequent class."""
        return _mean([one.baseline for one in self.columns])

    def to_plain(self) -> dict[str, Any]:
        """Return the trial as plain JSON types."""
        return {"error": self.error, "baseline": self.baseline, **asdict(self)}


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
    imputers: Sequence[Imputer], table: Any, *, share: float = 0.1, random_state: Any = 0
) -> Iterator[Trial]:
    """Try several imputers on the same hidden cells, one after the other; see `try_imputer`.

    All imputers use the schema of the first one. Ctrl-C ends the comparison; an imputer whose training it cut short is
    left out, unless it is the first.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(60, 2))
    >>> some = [Imputer("marginal"), Imputer("marginal", estimate="median")]
    >>> [trial.model for trial in compare_imputers(some, table)]
    ['marginal', 'marginal']
    """
    hidden = HiddenCells.choose(imputers[0], table, share, random_state)
    names = [f"_{i}" if len(imputers) == 1 else _name(one, i, len(imputers)) for i, one in enumerate(imputers)]
    planned = {name: trial_seconds(one, *hidden.shape) for name, one in zip(names, imputers, strict=True)}
    for i, (name, imputer) in enumerate(zip(names, imputers, strict=True)):
        with showing(imputer.verbose), Stages(planned).at(name):
            fitted = hidden.fit(imputer, quiet=i > 0)
            interrupted = fitted[0].ensemble_.interrupted
            if interrupted and i:
                return
            trial = hidden.score(imputer, fitted)
        yield trial
        if interrupted:
            return


def _name(imputer: Imputer, i: int, n: int) -> str:
    method = "" if imputer.method == "auto" else f" {imputer.method}"
    return f"{imputer.model_name}{method} ({i + 1} of {n})"


def trial_seconds(imputer: Imputer, n_rows: int, n_columns: int) -> float:
    """Return the expected number of seconds of a trial."""
    return fit_seconds(imputer, n_rows, n_columns) + 2.0 * fill_seconds(n_rows, n_columns)


@dataclass(frozen=True)
class HiddenCells:
    """A table with some known cells hidden, to try imputers on."""

    opened: Table
    columns: dict[str | None, list[Column]]
    """What each column is, by the preset of the imputer: the paper treats zeros differently."""
    truth: Floats
    """Values or codes: rows x columns."""
    hidden: Flags
    shown: Table
    """The numbers and codes of the other cells."""
    share: float

    @classmethod
    def choose(cls, imputer: Imputer, table: Any, share: float, random_state: Any) -> HiddenCells:
        """Hide a share of each column's known cells; columns are what the imputer infers."""
        if not 0.0 < share < 1.0:
            raise TableError(f"share = {share!r}", "expected a number between 0 and 1")
        opened = open_table(table, estimator="Imputer", keep=True)
        columns, truth = encode_for(imputer, opened)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a known cell
            varied = np.nanmin(truth, axis=0) < np.nanmax(truth, axis=0)
        hidden = hold_out(~np.isnan(truth) & varied, rng, share=share)
        if not hidden.any():
            got = f"{opened.n_rows} rows without a column of ten known cells that differ"
            raise TableError(got, "expected some to hide and score")
        shown = number_table(opened.labels, opened.names, np.where(hidden, np.nan, truth))
        return cls(opened, {imputer.preset: columns}, truth, hidden, shown, share)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        n_rows, n_columns = self.truth.shape
        return n_rows, n_columns

    def columns_of(self, imputer: Imputer) -> list[Column]:
        """Return what each column is to an imputer."""
        if imputer.preset not in self.columns:
            self.columns[imputer.preset] = encode_for(imputer, self.opened)[0]
        return self.columns[imputer.preset]

    def fit(self, imputer: Imputer, *, quiet: bool = False) -> tuple[Imputer, float]:
        """Fit a clone of an imputer to the numbers and codes of the other cells; returns the seconds it took, too.

        Parameters
        ----------
        quiet : bool
            Whether not to warn of an interrupt: the caller does.
        """
        begun = time.perf_counter()
        schema = Schema(columns=[coded(column) for column in self.columns_of(imputer)])
        own = clone(imputer).set_params(schema=schema, kinds=None, missing=None)
        stages = Stages(_seconds(imputer, *self.shape))
        with _only_interrupts("ignore" if quiet else "default"), stages.at("_fitting"):
            own.fit(self.shown)
        return own, time.perf_counter() - begun

    def score(self, imputer: Imputer, fitted: tuple[Imputer, float]) -> Trial:
        """Impute the hidden cells by a fitted clone of an imputer, and score them."""
        begun, (own, seconds) = time.perf_counter(), fitted
        stages = Stages(_seconds(imputer, *self.shape))
        with _only_interrupts():
            with stages.at(SCORING, 0.0, 0.5):
                predicted = _rounded(own.predict_cells(self.shown), self.opened)
            with stages.at(SCORING, 0.5, 1.0):
                ends = own.interval_cells(self.shown, LEVEL)
        scored = _score(self.columns_of(imputer), self.truth, predicted, self.hidden, ends, self.opened)
        seconds += time.perf_counter() - begun
        return Trial(tuple(scored), self.share, own.model_name, own.scaler_.method, seconds)


def _seconds(imputer: Imputer, n_rows: int, n_columns: int) -> dict[str, float]:
    return {"_fitting": fit_seconds(imputer, n_rows, n_columns), SCORING: 2.0 * fill_seconds(n_rows, n_columns)}


@contextmanager
def _only_interrupts(of_interrupts: Literal["default", "ignore"] = "default") -> Iterator[None]:
    """Hide Evenly's warnings, which are repeated when the whole table is fitted, except of interrupts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        warnings.simplefilter(of_interrupts, InterruptedWarning)
        yield


def encode_for(imputer: Imputer, opened: Table) -> tuple[list[Column], Floats]:
    """Return the columns that an imputer infers for a table, and the values or codes, rows x columns."""
    settings = {name: getattr(imputer, name) for name in ("kinds", "likelihoods", "schema", "missing")}
    rules = make_rules(opened, zeros="clip" if imputer.preset == "paper" else "shift", **settings)
    return encode_columns(opened, rules)


def _rounded(predicted: Floats, opened: Table) -> Floats:
    """Round the estimates of integer columns, as `Imputer.transform` does."""
    whole = np.array([column.storage == "integer" for column in opened.columns])
    return np.where(whole, np.rint(predicted), predicted)


def _score(
    columns: Sequence[Column],
    truth: Floats,
    predicted: Floats,
    hidden: Flags,
    ends: Sequence[Floats],
    opened: Table,
) -> Iterator[ColumnTrial]:
    errors, baseline = column_errors(columns, truth, predicted, hidden), baseline_errors(columns, truth, hidden)
    for j, column in enumerate(columns):
        own = hidden[:, j]
        if not own.any():
            continue
        true, guess = truth[own, j], predicted[own, j]
        inside = (ends[0][own, j] <= true) & (true <= ends[1][own, j])
        low, high = _interval(float(errors[j]), true, guess, classes=column.has_classes)
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
            None if column.has_classes else float(inside.mean()),
            tuple(zip(*cells, strict=True)),
        )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _interval(error: float, true: Floats, guess: Floats, *, classes: bool) -> tuple[float, float]:
    """Return the 90 % interval of an error: Wilson's for a rate; from the spread of squared errors for an NRMSE."""
    n = len(true)
    if classes:
        middle, spread = error + Z**2 / (2 * n), Z * np.sqrt(error * (1 - error) / n + Z**2 / (4 * n**2))
        low, high = (float((middle + sign * spread) / (1 + Z**2 / n)) for sign in (-1.0, 1.0))
        return low if error > 0.0 else 0.0, high if error < 1.0 else 1.0  # exact, despite rounding
    size = np.abs(true - guess)
    squares = (size / max(size.max(), 1e-300)) ** 2
    if n < 2 or not squares.any():
        return (error, error) if n > 1 else (0.0, np.inf)
    relative = Z * float(squares.std(ddof=1) / np.sqrt(n) / squares.mean())
    return error * float(np.sqrt(max(0.0, 1.0 - relative))), error * float(np.sqrt(1.0 + relative))
