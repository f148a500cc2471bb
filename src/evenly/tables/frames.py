"""Dataframes and arrays: opened as named columns on the way in, built from columns on the way out."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import TableError, as_text, refuse_duplicates
from evenly.tables.columns import TableColumn


@dataclass(frozen=True)
class Table:
    """A table of any kind seen as named columns; `labels` are the names as the user has them."""

    columns: list[TableColumn]
    labels: list[Hashable]
    n_rows: int
    container: str
    """`numpy`, or the name of the dataframe library."""
    native: Any = field(repr=False, default=None)
    frame: Any = field(repr=False, default=None)
    """The table as a Narwhals frame with text labels; None for an array."""

    @property
    def names(self) -> list[str]:
        """The columns' names as text."""
        return [column.name for column in self.columns]


def open_table(table: Any, *, estimator: str = "LipschitzScaler", keep: bool = False) -> Table:
    """View a dataframe or an array as columns; an opened table passes through.

    Parameters
    ----------
    table : pandas, Polars or PyArrow dataframe, NumPy array or nested list
        The table. Columns of an array are called `x0`, `x1`, ...
    estimator : str
        The name used in messages.
    keep : bool
        Whether profiles and codes of its columns are kept as long as the opened table is: for whoever uses it more than
        once. They take as much memory as the table as numbers.

    Examples
    --------
    >>> open_table([[1.0, 2.0], [3.0, 4.0]]).names
    ['x0', 'x1']
    >>> open_table([])
    Traceback (most recent call last):
    ValueError: Expected 2D array, got 1D array instead: ...
    """
    opened = table if isinstance(table, Table) else _open(table, estimator)
    if not keep or all(one.memo is not None for one in opened.columns):
        return opened
    return replace(opened, columns=[replace(one, memo={}) for one in opened.columns])


def _open(table: Any, estimator: str) -> Table:
    if table is None or isinstance(table, (str, bytes)) or (isinstance(table, Mapping) and not hasattr(table, "nnz")):
        raise TableError(f"a {type(table).__name__}", "expected a dataframe or a two-dimensional array")
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        refuse_duplicates(list(table.columns))  # Narwhals would refuse them in its own words
    frame = nw.from_native(table, pass_through=True, eager_only=False)
    if isinstance(frame, nw.LazyFrame):
        raise TableError("a lazy frame", "expected a table in memory", "collect it first")
    if isinstance(frame, nw.DataFrame):
        return _open_frame(frame, table)
    if hasattr(table, "columns") and hasattr(table, "iloc"):  # pandas with labels that Narwhals refuses
        return _open_frame(_rename(table), table)
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "to_struct_array"):  # a record batch
        import pyarrow as pa

        return _open(pa.Table.from_batches([table]), estimator)
    if isinstance(table, np.ma.MaskedArray):
        filling: Any = None if table.dtype == object else np.nan
        table = np.ma.filled(table if table.dtype == object else table.astype(np.float64), filling)
    # Imported here: it takes a second, and only arrays need it.
    from sklearn.utils.validation import check_array

    array = check_array(table, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    if array.dtype.kind == "c":
        raise TableError("complex values", "expected real ones. Complex data not supported")
    columns = [TableColumn(f"x{j}", array[:, j]) for j in range(array.shape[1])]
    return Table(columns, list(range(array.shape[1])), array.shape[0], "numpy")


def _rename(frame: Any) -> nw.DataFrame[Any]:
    """Give a pandas frame text labels, which must not become duplicates."""
    return nw.from_native(frame.set_axis([as_text(label) for label in frame.columns], axis=1), eager_only=True)


def _open_frame(frame: nw.DataFrame[Any], native: Any) -> Table:
    labels = list(native.columns) if hasattr(native, "iloc") else list(frame.columns)
    texts = refuse_duplicates(labels)
    if texts != labels:
        frame = _rename(native)
    n_rows, n_columns = frame.shape
    if n_columns == 0:
        raise TableError(f"0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required", "expected columns")
    if n_rows == 0:
        raise TableError("0 rows (n_samples=0)", "expected at least 1 row", "is the file empty?")
    columns = [TableColumn(text, frame[text]) for text in texts]
    return Table(columns, labels, n_rows, frame.implementation.name.lower(), native, frame)


def select(table: Any, labels: Sequence[Hashable], *, by_position: bool = False) -> tuple[list[Any], list[Hashable]]:
    """Find the columns of a fitted table in a new one: by label in a dataframe, by position in an array.

    A table that was fitted as an array has no labels to search for. Returns the columns in the fitted order and the
    labels that the fitted table did not have.
    """
    if table.container == "numpy" or (by_position and len(table.columns) == len(labels)):
        return table.columns, []
    where: dict[Hashable, int] = {label: j for j, label in enumerate(table.labels)}
    # A saved scaler has the text of a label that JSON cannot hold.
    where = {name: j for j, name in enumerate(table.names)} | where
    absent = [label for label in labels if label not in where]
    if absent:
        raise TableError(
            f"no such column among {[str(label) for label in table.labels][:20]}",
            "expected every column that was there in fit",
            "add it, with missing cells if it is unknown",
            column=absent[0],
        )
    found = [where[label] for label in labels]
    extra = [label for j, label in enumerate(table.labels) if j not in set(found)]
    return [table.columns[j] for j in found], extra


def map_columns(function: Callable[..., Any], *items: Sequence[Any], n_rows: int) -> list[Any]:
    """Apply a function to each column; long columns in a few threads, as NumPy releases the lock."""
    if n_rows < 100_000:
        return [function(*each) for each in zip(*items, strict=True)]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(function, *items))


def build_table(data: Mapping[Any, Any], container: str, like: Any = None) -> Any:
    """Make a table of the given container from columns; NaN in a float column becomes a missing cell.

    Parameters
    ----------
    data : mapping of label to column
        NumPy arrays, or native series that pass through.
    container : str
        As `Table.container`.
    like : pandas.DataFrame, optional
        Where a pandas frame takes its index from.
    """
    if container == "numpy":
        arrays = [np.asarray(column) for column in data.values()]
        return np.column_stack(arrays) if all(a.dtype.kind in "fiub" for a in arrays) else _objects(arrays)
    if container == "polars":
        import polars as pl

        return pl.DataFrame({name: _polars_series(column) for name, column in data.items()})
    if container == "pyarrow":
        import pyarrow as pa

        return pa.table(
            {
                name: pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column
                for name, column in data.items()
            }
        )
    import pandas as pd

    index = getattr(like, "index", None)
    frame = pd.DataFrame(dict(enumerate(data.values())), index=index, copy=False)
    frame.columns = pd.Index(list(data))
    return frame


def _objects(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    out = np.empty((len(arrays[0]), len(arrays)), dtype=object)
    for j, array in enumerate(arrays):
        out[:, j] = array
    return out


def _polars_series(column: Any) -> Any:
    import polars as pl

    if isinstance(column, list):
        return pl.Series(values=column)
    if not isinstance(column, np.ndarray):
        return column
    return pl.Series(values=column, nan_to_null=True) if column.dtype.kind == "f" else pl.Series(values=column)
