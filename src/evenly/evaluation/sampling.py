"""Which rows of a table imputers are compared on: all, or a random sample of a large table's."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.evaluation.peers import MOST_CELLS
from evenly.tables import Floats

Rows = int | Literal["auto", "all"]

SAMPLED_CELLS = 50_000
"""A comparison of all usual candidates on so many cells takes two cores some four minutes."""
FEWEST_ROWS = 2_000
"""The smallest sample of a wide table: each column has 200 hidden cells then."""
FEWEST_UNITS = 50
"""Persons, or other units, are drawn whole if so many of them fit into a sample."""


def check_rows(rows: Any) -> None:
    """Raise an error unless a setting is "auto", "all" or a number of rows."""
    number = isinstance(rows, numbers.Integral) and not isinstance(rows, bool) and int(rows) > 0
    if not number and not (isinstance(rows, str) and rows in ("auto", "all")):
        raise TableError(f"rows = {rows!r}", "expected 'auto', 'all' or a number of rows from 1")


def sample_size(rows: Rows, n_rows: int, n_columns: int) -> int:
    """Return on how many rows of a table to compare.

    By "auto", tables are sampled from the size on from which scikit-learn's imputers would sample them themselves.

    Examples
    --------
    >>> [sample_size("auto", n, 12) for n in (8_000, 200_000)], sample_size("all", 200_000, 12)
    ([8000, 4166], 200000)
    """
    if rows == "all" or (rows == "auto" and n_rows * n_columns <= MOST_CELLS):
        return n_rows
    most = max(FEWEST_ROWS, SAMPLED_CELLS // n_columns) if rows == "auto" else int(rows)
    return min(n_rows, most)


def choose_rows(n: int, n_rows: int, rng: np.random.Generator, units: Floats | None = None) -> npt.NDArray[np.intp]:
    """Draw rows at random, without replacement, in the order of the table.

    Parameters
    ----------
    units : array, optional
        The unit of each row, NaN if it has none: units are drawn whole, up to the last one, since their rows predict
        each other, as long as 50 of them fit.

    Examples
    --------
    >>> choose_rows(100, 1_000, np.random.default_rng(0), np.repeat(np.arange(500.0), 2))[:6].tolist()
    [26, 27, 44, 45, 72, 73]
    """
    if units is not None:
        owners = np.unique(np.where(np.isnan(units), -1.0 - np.arange(n_rows), units), return_inverse=True)[1]
        sizes = np.bincount(owners)
        if FEWEST_UNITS * (sizes**2).sum() <= n * n_rows:  # the unit of a row has so many rows on average
            return np.sort(np.argsort(rng.permutation(len(sizes))[owners], kind="stable")[:n])
    return np.sort(rng.choice(n_rows, n, replace=False))
