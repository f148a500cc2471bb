"""An imputer fitted to a table, with its held-out error and the table's diagnosis."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenly._support import EvenlyWarning, TableError
from evenly.evaluation.diagnosis import diagnose
from evenly.evaluation.diagnosis_results import Diagnosis
from evenly.evaluation.trials import Trial, try_imputer
from evenly.imputation import Imputer
from evenly.tables import DECLARED


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
    seed, trial, diagnosis = imputer.random_state, None, None
    if share:
        try:
            trial = try_imputer(imputer, table, share=share, random_state=seed)
        except TableError as error:  # no reason not to fill the missing cells
            warnings.warn(f"no error estimate: {error}", EvenlyWarning, stacklevel=2)
    if trial is not None and on_trial is not None:
        on_trial(trial)
    if balance:
        declared = {name: getattr(imputer, name) for name in DECLARED}
        diagnosis = diagnose(table, random_state=seed, verbose=imputer.verbose, **declared)
    return Assessment(imputer.fit(table if files is None else files), trial, diagnosis)
