"""An imputer fitted to a table, with its held-out error and the table's diagnosis."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, InterruptedWarning, Stages, TableError, finishing, showing
from evenly.evaluation.diagnosis import diagnose
from evenly.evaluation.diagnosis_results import Diagnosis
from evenly.evaluation.hidden_cells import HiddenCells
from evenly.evaluation.trial_results import Trial
from evenly.evaluation.trials import trial_seconds
from evenly.imputation import Imputer, bind, fit_seconds
from evenly.tables import DECLARED, Table, open_table

MANY_ROWS = 30_000
"""From this number of rows on, the imputer of the trial fills the table: a network sees a fixed number of rows then,
and a tenth of the cells more would hardly improve it."""
CHECKING, DIAGNOSING, FITTING = "checking the error on hidden cells", "comparing scalings", "fitting all cells"


@dataclass(frozen=True)
class Assessment:
    """A fitted imputer, its held-out error and the table's diagnosis, where they were asked for."""

    imputer: Imputer
    trial: Trial | None = None
    diagnosis: Diagnosis | None = None


def fit_and_assess(
    imputer: Imputer,
    table: Any,
    *,
    share: float = 0.1,
    balance: bool = False,
    files: str | None = None,
    on_trial: Callable[[Trial], None] | None = None,
) -> Assessment:
    """Estimate the error of an imputer, diagnose the table if asked to, and fit the imputer to all of it.

    From 30,000 rows on, the imputer of the estimate is used instead of fitting again; `Trial.final` says so. Ctrl-C
    ends the work with what is there: as soon as the imputer of the estimate is trained, it is used.

    Parameters
    ----------
    imputer : Imputer
        It is fitted in place. Its settings are those of the trial, and its declared columns those of the diagnosis.
    share : float
        The share of known cells to hide and score; 0 for no estimate. With too few cells to hide any there is none
        either, and a warning says so.
    balance : bool
        Whether to diagnose the table.
    files : str, optional
        Parquet files to fit the imputer to; the table is then a sample of their rows.
    on_trial : callable, optional
        Called with the trial as soon as it is there: the diagnosis and the fit take longer.

    Examples
    --------
    >>> table = [[i + 0.5, 2.0 * i + 0.3 * (i % 3)] for i in range(40)]
    >>> found = fit_and_assess(Imputer("marginal", random_state=0), table)
    >>> [one.n_cells for one in found.trial.columns], found.diagnosis
    ([4, 4], None)
    """
    opened = open_table(table, estimator="Imputer", keep=True)
    work = _Assessing(imputer, opened, files, on_trial)
    with showing(imputer.verbose):
        stages = Stages(_plan(imputer, opened, share=bool(share), balance=balance, once=work.once))
        try:
            work.run(stages, share, balance=balance)
        except KeyboardInterrupt:
            if work.tried is None:
                raise
            work.stopped = True
        if work.tried is not None and (work.stopped or work.once):
            with finishing("the table is filled first"):
                work.use_tried()
    return Assessment(imputer, work.trial, work.diagnosis)


def fits_once(table: Table, files: str | None) -> bool:
    """Whether the table is so large that one training is enough for the trial and for filling it."""
    return table.n_rows >= MANY_ROWS and files is None


def assessment_seconds(imputer: Imputer, table: Table, *, share: float, balance: bool, files: str | None) -> float:
    """Return the expected number of seconds of `fit_and_assess`."""
    once = _Assessing(imputer, table, files, None).once
    return sum(_plan(imputer, table, share=bool(share), balance=balance, once=once).values())


def _plan(imputer: Imputer, table: Table, *, share: bool, balance: bool, once: bool) -> dict[str, float]:
    size = table.n_rows, len(table.columns)
    planned = {CHECKING: trial_seconds(imputer, *size)} if share else {}
    planned |= {DIAGNOSING: 2.0 * fit_seconds(imputer, *size)} if balance else {}
    return planned | {FITTING: 0.01 if share and once else fit_seconds(imputer, *size, again=share)}


@dataclass
class _Assessing:
    """The steps of `fit_and_assess`, and how far they are."""

    imputer: Imputer
    opened: Table
    files: str | None
    on_trial: Callable[[Trial], None] | None
    trial: Trial | None = None
    diagnosis: Diagnosis | None = None
    tried: Imputer | None = None
    """The imputer of the trial, fitted to the table's numbers and codes without the hidden cells."""
    stopped: bool = False
    """Whether Ctrl-C asked for no more than what is there."""

    @property
    def once(self) -> bool:
        """Whether one training is enough."""
        return fits_once(self.opened, self.files)

    def run(self, stages: Stages, share: float, *, balance: bool) -> None:
        """Take all steps; Ctrl-C is raised, or ends a training and then the steps."""
        if share:
            with stages.at(CHECKING):
                self._try(share)
        if balance and not self.stopped:
            declared = {name: getattr(self.imputer, name) for name in DECLARED}
            seed, verbose = self.imputer.random_state, self.imputer.verbose
            with stages.at(DIAGNOSING):
                self.diagnosis = diagnose(self.opened, random_state=seed, verbose=verbose, **declared)
        if self.tried is None or not (self.stopped or self.once):
            with stages.at(FITTING):
                self._fit()

    def _try(self, share: float) -> None:
        """Hide cells, fit a clone of the imputer to the others, and score it."""
        # Rows of files are read in parts, so that other rows of a unit predict nothing.
        imputer = self.imputer if self.files is None else clone(self.imputer).set_params(groups=None)
        try:
            seed = int(check_random_state(self.imputer.random_state).randint(2**31 - 1))
            hidden = HiddenCells.choose(imputer, self.opened, share, seed)
        except TableError as error:  # no reason not to fill the missing cells
            warnings.warn(f"no error estimate: {error}", EvenlyWarning, stacklevel=4)
            return
        fitted = hidden.fit(imputer)
        self.tried = fitted[0]
        self.stopped = self.tried.ensemble_.interrupted
        self.trial = replace(hidden.score(imputer, fitted), final=self.once or self.stopped)
        if self.on_trial is not None:
            self.on_trial(self.trial)

    def _fit(self) -> None:
        """Fit the imputer to all cells."""
        with warnings.catch_warnings():
            if self.tried is not None:  # of a training that is not used then
                warnings.simplefilter("ignore", InterruptedWarning)
            self.imputer.fit(self.opened if self.files is None else self.files)
        self.stopped = self.imputer.ensemble_.interrupted

    def use_tried(self) -> None:
        """Give the imputer what the imputer of the trial learned."""
        assert self.tried is not None
        if self.stopped:
            without = "" if self.trial is not None else ", and its error is not known"
            message = (
                "interrupted: the table is filled by the imputer of the trial, which did not see the hidden cells"
                f"{without}"
            )
            warnings.warn(message, InterruptedWarning, stacklevel=3)
        bind(self.imputer, self.tried, self.opened)
        self.trial = None if self.trial is None else replace(self.trial, final=True)
