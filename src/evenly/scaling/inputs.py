"""Tables that come to a fitted estimator: their width, columns that fit did not see, keys of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly.scaling.tricks import check_key
from evenly.tables import Table, TableColumn, open_table, select


def check_width(estimator: Any, table: Table) -> None:
    """Refuse an array that is wider or narrower than the fitted table, in the words of scikit-learn."""
    if table.container == "numpy" and len(table.columns) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(table.columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def open_checked(estimator: Any, table: Any) -> Table:
    """Open a table; refuse an array that has not the width of the fitted table."""
    opened = open_table(table)
    check_width(estimator, opened)
    return opened


def left_out(extra: Sequence[Any]) -> str:
    """Say that columns are left out."""
    return f"columns that were not there in fit are left out: {[str(label) for label in extra]}"


def row_keys(table: Table, key: Any) -> npt.NDArray[np.int64]:
    """Return the keys of rows; a row without one gets -1."""
    (column,), _ = select(table, [key]) if table.container != "numpy" else ([table.columns[key]], [])
    check_key(column.name, column.storage)
    if isinstance(column.native, np.ndarray):
        return column.native.astype(np.int64)
    return np.asarray(column.native.cast(nw.Int64).fill_null(-1).to_numpy(), np.int64)


def pass_through(cells: TableColumn, source: str, container: str) -> Any:
    """Pass a column through: as it is into its own kind of table, as a list of cells into another."""
    if isinstance(cells.native, np.ndarray):
        return cells.native
    if source == container:
        return nw.to_native(cells.native)
    return cells.native.to_list()
