"""About how many seconds fitting and filling take on two cores: for the time left, and corrected while work is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evenly._support import Stages, showing
from evenly.imputation.boost_fitting import MOST_ROWS as MOST_BOOSTED
from evenly.imputation.effort import EFFORTS, USUAL, Effort
from evenly.imputation.growing import MOST_ROWS as MOST_GROWN
from evenly.imputation.kernel_fitting import MOST_ROWS as MOST_IN_KERNEL
from evenly.imputation.kernel_fitting import MOST_TABLE_ROWS as MOST_WITH_KERNEL
from evenly.imputation.training import Training
from evenly.models import SPECS, ModelSpec

COMPILING = 4.0
"""Seconds of compiling before the first step; less if the program was kept from an earlier run."""
EARLY = 0.7
"""The usual share of epochs that training takes if validation cells may stop it early."""
CALIBRATED_CELL, MOST_CALIBRATED = 2e-6, 250_000
"""Seconds of calibration of each cell, up to this number of rows."""
GROWN_COLUMN, GROWN_CELL = 0.1, 1.35e-4
"""Seconds of growing the forest of a column, and for each of its cells."""
KERNEL_PAIR = 1e-7
"""Seconds of fitting the Gaussian process of a column, for each pair of the rows that it learns from."""
BOOSTED_CELL = 5e-5
"""Seconds of boosting trees, for each cell of the rows that they learn from."""
FILLED_CELL = 3e-6
"""Seconds of predicting a cell of a row."""
READ_CELL = 2e-7
"""Seconds of reading, encoding or writing a cell."""
INFERRED_CELL = 1.5e-6
"""Seconds of finding out what a cell of texts is; numbers take less."""


COMPILED: set[str] = set()
"""Models that were trained in this process already: the next table probably needs no compiling."""


def training_seconds(
    spec: ModelSpec, training: Training, size: tuple[int, int], effort: Effort = USUAL, **plan: bool
) -> list[float]:
    """Return the expected number of seconds of each network's training; the first one's includes compiling.

    Parameters
    ----------
    size : tuple of int
        Rows and columns of the table.
    """
    n_rows, n_columns = size
    if not spec.trains:
        return [1e-3]
    n_epochs = training.epochs_of(spec, n_rows, effort=effort, **plan)
    early = EARLY if spec.calibrated and training.epochs == "auto" else 1.0
    row, cell = spec.visit_seconds
    each = early * n_epochs * n_rows * (row + cell * n_columns) + 1e-3
    n_networks = training.networks_of(spec, n_rows, effort)
    return [each + COMPILING * (i == 0 and spec.name not in COMPILED) for i in range(n_networks)]


def calibration_seconds(spec: ModelSpec, n_rows: int, n_columns: int, effort: Effort = USUAL) -> float:
    """Return the expected number of seconds of growing trees and choosing calibrations.

    Examples
    --------
    >>> [round(calibration_seconds(SPECS["masked"], n, 12)) for n in (300, 2_500, 6_000)]
    [2, 5, 11]
    """
    if not spec.calibrated:
        return 1e-3
    column = CALIBRATED_CELL * min(n_rows, MOST_CALIBRATED)
    if n_rows > MOST_GROWN:
        column += BOOSTED_CELL * min(n_rows, MOST_BOOSTED)
    else:
        column += effort.n_trees / USUAL.n_trees * (GROWN_COLUMN + GROWN_CELL * n_rows)
    if n_rows <= MOST_WITH_KERNEL:
        column += KERNEL_PAIR * min(n_rows, MOST_IN_KERNEL) ** 2
    return column * n_columns + 0.1


def fit_seconds(imputer: Any, n_rows: int, n_columns: int, *, again: bool = False) -> float:
    """Return the expected number of seconds of a fit, or of another one of the same size.

    Examples
    --------
    >>> from evenly import Imputer
    >>> [round(fit_seconds(Imputer(), n, 12)) for n in (300, 200_000)], round(fit_seconds(Imputer("marginal"), 300, 12))
    ([..., ...], 0)
    """
    spec, training = SPECS[imputer.model_name], imputer.training or Training()
    effort, paper = EFFORTS[imputer.effort], imputer.preset is not None
    trained = training_seconds(spec, training, (n_rows, n_columns), effort, paper=paper, streamed=False)
    if again and spec.trains and spec.name not in COMPILED:
        trained[0] -= COMPILING
    expected = sum(trained) + calibration_seconds(spec, n_rows, n_columns, effort) + READ_CELL * n_rows * n_columns
    return min(expected, float(imputer.time_limit or expected))


def fill_seconds(n_rows: int, n_columns: int, n_networks: int = 1) -> float:
    """Return the expected number of seconds of predicting the cells of some rows.

    Examples
    --------
    >>> round(fill_seconds(200_000, 12), 1)
    7.2
    """
    return FILLED_CELL * n_rows * n_columns * n_networks


def read_seconds(n_rows: int, n_columns: int) -> float:
    """Return the expected number of seconds of finding out what columns are, and of encoding them.

    Examples
    --------
    >>> round(read_seconds(200_000, 12), 1)
    3.6
    """
    return INFERRED_CELL * n_rows * n_columns + 0.01


@contextmanager
def show_filling(imputer: Any, opened: Any, times: int = 1) -> Iterator[None]:
    """Show the progress of predicting the missing cells of an opened table, some times, if the imputer is to."""
    n_rows = len(opened.rows)
    seconds = fill_seconds(n_rows * times, len(opened.columns), len(imputer.ensemble_.networks))
    name = f"filling {n_rows:,} rows" if n_rows != 1 else "filling 1 row"
    with showing(imputer.verbose), Stages({name: seconds}).at(name):
        yield


def fit_stages(trained: Sequence[float], *, together: bool) -> list[str]:
    """Return the names of the stages of training; networks that are trained in parallel have one in common.

    Examples
    --------
    >>> fit_stages([5.0, 1.0], together=False), fit_stages([5.0], together=False)
    (['training 1 of 2', 'training 2 of 2'], ['training'])
    """
    n = len(trained)
    if together or n == 1:
        return ["training"]
    return [f"training {i + 1} of {n}" for i in range(n)]
