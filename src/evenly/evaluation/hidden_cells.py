"""Known cells that are hidden from an imputer, to be imputed and scored."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evenly._support import EvenlyWarning, InterruptedWarning, Stages, TableError
from evenly.evaluation.draws import take_rows
from evenly.evaluation.intervals import error_interval, normalized_interval
from evenly.evaluation.peers import METHOD, PeerImputer, impute_visible
from evenly.evaluation.sampling import Rows, choose_rows, sample_size
from evenly.evaluation.trial_results import ColumnTrial, Trial
from evenly.imputation import Imputer, Rules, fill_seconds, fit_seconds, units_of
from evenly.metrics import baseline_errors, column_errors, hold_out, mean_or_mode
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
SCORING = "filling hidden cells"


class _Attempt(NamedTuple):
    """What an imputer made of the hidden cells."""

    columns: list[Column]
    predicted: Floats
    ends: tuple[Floats, Floats] | None
    """Of 90 % intervals, if it has any."""


@dataclass(frozen=True)
class HiddenCells:
    """A table with some known cells hidden, to try imputers on.

    Examples
    --------
    >>> hidden = HiddenCells.choose(Imputer("marginal"), [[i + 0.5] for i in range(40)], 0.1, seed=0)
    >>> int(hidden.hidden.sum()), hidden.score(Imputer("marginal"), hidden.fit(Imputer("marginal"))).columns[0].n_cells
    (4, 4)
    """

    opened: Table
    """The rows that imputers are tried on."""
    whole: Table
    """The table that they were drawn from, which decides what columns are."""
    columns: dict[str | None, list[Column]]
    """What each column is, by the preset of the imputer: the paper treats zeros differently."""
    preset: str | None
    """Of the imputer that the cells were chosen for."""
    truth: Floats
    """Values or codes: rows x columns."""
    hidden: Flags
    share: float

    @classmethod
    def choose(cls, imputer: Imputer, table: Any, share: float, seed: int, rows: Rows = "all") -> HiddenCells:
        """Hide a share of each column's known cells, in all rows or some; columns are what the imputer infers."""
        if not 0.0 < share < 1.0:
            raise TableError(f"share = {share!r}", "expected a number between 0 and 1")
        whole = opened = open_table(table, estimator="Imputer", keep=True)
        columns, truth = encode_for(imputer, whole)
        n = sample_size(rows, *truth.shape)
        if n < whole.n_rows:
            units = units_of(imputer, columns, whole)
            chosen = choose_rows(n, whole.n_rows, np.random.default_rng((seed, 1)), None if units is None else units[1])
            opened, truth = open_table(take_rows(whole, chosen), keep=True), truth[chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a known cell
            varied = np.nanmin(truth, axis=0) < np.nanmax(truth, axis=0)
        hidden = hold_out(~np.isnan(truth) & varied, np.random.default_rng(seed), share=share)
        if not hidden.any():
            got = f"{opened.n_rows} rows without a column of ten known cells that differ"
            raise TableError(got, "expected some to hide and score")
        return cls(opened, whole, {imputer.preset: columns}, imputer.preset, truth, hidden, share)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        n_rows, n_columns = self.truth.shape
        return n_rows, n_columns

    @property
    def n_sampled(self) -> int | None:
        """The number of rows, if they were drawn from more."""
        return self.opened.n_rows if self.opened.n_rows < self.whole.n_rows else None

    @property
    def visible(self) -> Floats:
        """Values or codes of the other cells, NaN elsewhere."""
        return np.where(self.hidden, np.nan, self.truth)

    @cached_property
    def shown(self) -> Table:
        """The other cells, as a table of numbers and codes."""
        return number_table(self.opened.labels, self.opened.names, self.visible)

    def shown_to(self, imputer: Imputer) -> tuple[Table, Any]:
        """Return the other cells as an imputer reads them, and its setting `groups`: units are codes, too."""
        columns = self.columns_of(imputer)
        found = units_of(imputer, columns, self.opened)
        if found is None:
            return self.shown, None if imputer.groups == "auto" else imputer.groups
        key, codes = found
        if columns[key].kind != "ignore":  # its codes are there
            return self.shown, imputer.groups
        visible = self.visible
        visible[:, key] = codes
        return number_table(self.opened.labels, self.opened.names, visible), self.opened.labels[key]

    def columns_of(self, imputer: Imputer) -> list[Column]:
        """Return what each column is to an imputer."""
        if imputer.preset not in self.columns:
            self.columns[imputer.preset] = encode_for(imputer, self.whole)[0]
        return self.columns[imputer.preset]

    def fit(self, imputer: Imputer, *, quiet: bool = False) -> tuple[Imputer, float]:
        """Fit a clone of an imputer to the numbers and codes of the other cells; returns the seconds it took, too.

        Parameters
        ----------
        quiet : bool
            Whether not to warn of an interrupt: the caller does.
        """
        begun = time.perf_counter()
        columns = self.columns_of(imputer)
        schema, rules = Schema(columns=[coded(one) for one in columns]), Rules.read(imputer.rules).meaning(columns)
        shown, groups = self.shown_to(imputer)
        own = clone(imputer).set_params(
            schema=schema, kinds=None, bounds=None, missing=None, groups=groups, rules=rules
        )
        stages = Stages(_seconds(imputer, *self.shape))
        with _only_interrupts("ignore" if quiet else "default"), stages.at("_fitting"):
            own.fit(shown)
        return own, time.perf_counter() - begun

    def score(self, imputer: Imputer, fitted: tuple[Imputer, float]) -> Trial:
        """Impute the hidden cells by a fitted clone of an imputer, and score them."""
        begun, (own, seconds), shown = time.perf_counter(), fitted, self.shown_to(imputer)[0]
        stages = Stages(_seconds(imputer, *self.shape))
        with _only_interrupts():
            with stages.at(SCORING, 0.0, 0.4):
                predicted = own.predict_cells(shown)
            with stages.at(SCORING, 0.4, 0.9):
                ends = own.interval_cells(shown, LEVEL)
            with stages.at(SCORING, 0.9, 1.0):
                scored = tuple(self._score(_Attempt(self.columns_of(imputer), predicted, ends)))
        took = seconds + time.perf_counter() - begun
        model, method, balance = own.model_name, own.scaler_.method, imputer.balance
        return Trial(scored, self.share, model, method, took, balance=balance, n_rows=self.n_sampled)

    def try_peer(self, peer: PeerImputer) -> Trial:
        """Let an imputer of scikit-learn impute the hidden cells, and score them."""
        begun, columns = time.perf_counter(), self.columns[self.preset]
        predicted = impute_visible(peer, columns, self.visible)
        scored = tuple(self._score(_Attempt(columns, predicted, None)))
        return Trial(scored, self.share, peer.name, METHOD, time.perf_counter() - begun, n_rows=self.n_sampled)

    def _score(self, attempt: _Attempt) -> Iterator[ColumnTrial]:
        columns, ends = attempt.columns, attempt.ends
        predicted = _rounded(attempt.predicted, self.whole)
        errors = column_errors(columns, self.truth, predicted, self.hidden)
        baseline = baseline_errors(columns, self.truth, self.hidden)
        plain = mean_or_mode(columns, self.truth, self.hidden)
        for j, column in enumerate(columns):
            own = self.hidden[:, j]
            if not own.any():
                continue
            true, guess = self.truth[own, j], predicted[own, j]
            covered = None
            if ends is not None and not column.has_classes:
                covered = float(((ends[0][own, j] <= true) & (true <= ends[1][own, j])).mean())
            losses, others = _losses(true, guess, plain[own, j], classes=column.has_classes)
            low, high = error_interval(float(errors[j]), losses, rate=column.has_classes)
            whole = self.whole.columns[j].storage == "integer" and not column.has_classes
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
                *normalized_interval(losses, others, rate=column.has_classes),
            )


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
    settings = {name: getattr(imputer, name) for name in DECLARED}
    rules = make_rules(opened, zeros="clip" if imputer.preset else "shift", **settings)
    return encode_columns(opened, rules)


def _rounded(predicted: Floats, opened: Table) -> Floats:
    """Round the estimates of integer columns, as `Imputer.transform` does."""
    whole = np.array([column.storage == "integer" for column in opened.columns])
    return np.where(whole, np.rint(predicted), predicted)


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
