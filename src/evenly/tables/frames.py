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
from evenly.tables.columns import TableColumn, missing_cells
from evenly.tables.order_evidence import Companions


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

    def __post_init__(self) -> None:
        """Let the columns know each other."""
        if any(one.companions is None for one in self.columns):
            together = Companions([replace(one, companions=None) for one in self.columns])
            linked = [replace(one, companions=one.companions or together) for one in self.columns]
            object.__setattr__(self, "columns", linked)

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
    evenly.TableError: got a 1D array, but Expected 2D array. Hint: Reshape your data: ...
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
    elif hasattr(table, "column_names") and hasattr(table, "num_rows"):
        refuse_duplicates(list(table.column_names))
    _refuse_other_shapes(table)
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
    array = _open_array(table, estimator)
    masked = table if isinstance(table, np.ma.MaskedArray) else None
    columns = [TableColumn(f"x{j}", array[:, j]) for j in range(array.shape[1])]
    return Table(columns, list(range(array.shape[1])), array.shape[0], "numpy", masked)


def _refuse_other_shapes(table: Any) -> None:
    """Refuse what holds data, but is no table."""
    name, module = type(table).__name__, type(table).__module__.partition(".")[0]
    if hasattr(table, "nnz"):
        raise TableError(f"a sparse {name}", "dense data is required", "table.toarray()")
    if isinstance(table, np.matrix):
        raise TableError("an np.matrix", "expected an array", "np.asarray(table)")
    if module in ("pandas", "polars") and name == "Series":
        raise TableError(f"a {module} Series", "expected a 2-dimensional table", "series.to_frame()")
    if module == "pyarrow" and not hasattr(table, "column_names"):
        raise TableError(f"a pyarrow {name}", "expected a 2-dimensional table", 'pa.table({"a": array})')


def _open_array(table: Any, estimator: str) -> npt.NDArray[Any]:
    """Check an array, or what can be made into one, in the words of scikit-learn."""
    # Imported here: it takes a second, and only arrays need it.
    from sklearn.utils.validation import check_array

    array = table
    if not isinstance(array, np.ma.MaskedArray):
        try:
            array = check_array(
                table,
                dtype=None,
                ensure_all_finite=False,
                ensure_2d=False,
                allow_nd=True,
                ensure_min_samples=0,
                input_name="X",
            )
        except (TypeError, ValueError, AttributeError) as error:
            if "omplex" in str(error):
                raise TableError("complex values", "expected real ones. Complex data not supported") from None
            raise TableError(f"a {type(table).__name__}", f"expected a table: {error}") from None
    if array.dtype.kind == "c":
        raise TableError("complex values", "expected real ones. Complex data not supported")
    if array.dtype.names:
        raise TableError("a structured array", "expected a 2D array", "pd.DataFrame(array) makes a table of it")
    if array.ndim == 1:
        raise TableError(
            "a 1D array",
            "Expected 2D array",
            "Reshape your data: array.reshape(-1, 1) is a single column, array.reshape(1, -1) a single row",
        )
    if array.ndim != 2:
        raise TableError(f"an array with dim {array.ndim}", f"{estimator} expected <= 2")
    for n, what, name in ((array.shape[0], "sample", "rows"), (array.shape[1], "feature", "columns")):
        if not n:
            raise TableError(
                f"0 {what}(s) (shape={array.shape}) while a minimum of 1 is required by {estimator}", f"expected {name}"
            )
    return np.asanyarray(array)


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
    like : pandas.DataFrame or masked array, optional
        Where a pandas frame takes its index from; like a masked array, an array masks its missing cells.
    """
    if container == "numpy":
        return _stack(list(data.values()), masked=isinstance(like, np.ma.MaskedArray))
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
    columns = {j: _pandas_column(column, index) for j, column in enumerate(data.values())}
    frame = pd.DataFrame(columns, index=index, copy=False)
    labels = list(data)
    mixed = len({type(label) for label in labels}) > 1 or labels == [None]  # else 1 beside 1.5 would become 1.0
    frame.columns = pd.Index(labels, dtype=object if mixed else None)
    return frame


def _stack(columns: list[Any], *, masked: bool) -> npt.NDArray[Any]:
    """Put columns side by side in an array of their type; of objects, if they have several that do not go together."""
    missing = [missing_cells(column) for column in map(np.asanyarray, columns)] if masked else []
    arrays = [np.ma.getdata(column) if masked else _unmasked(np.asanyarray(column)) for column in columns]
    dtypes = {array.dtype for array in arrays}
    together = all(array.dtype.kind in "fiub" for array in arrays) or all(array.dtype.kind == "U" for array in arrays)
    together = together or all(array.dtype.kind == "S" for array in arrays)
    if any(array.dtype.kind in "iu" and _beyond_floats(array) for array in arrays) and len({*dtypes}) > 1:
        together = False  # identifiers would be rounded
    # The common type of a single one may differ from it, in the order of its bytes.
    dtype = dtypes.pop() if len(dtypes) == 1 else np.result_type(*arrays) if together else np.dtype(object)
    out = np.empty((len(arrays[0]), len(arrays)), dtype)
    for j, array in enumerate(arrays):
        # NumPy's own dates stay as they are: converted, those of nanoseconds would become whole numbers.
        out[:, j] = np.array([*array, None], object)[:-1] if dtype.kind == "O" and array.dtype.kind in "mM" else array
    return np.ma.array(out, mask=np.column_stack(missing)) if masked else out


def _beyond_floats(whole: npt.NDArray[Any]) -> bool:
    """Whether some whole numbers are too large for double precision to hold all digits."""
    return whole.dtype.itemsize == 8 and bool(((whole > 2**53) | (whole < -(2**53))).any())


def _unmasked(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column that may be masked with its masked cells as NaN, or None where floats would change others."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    if column.dtype.kind in "iu" and not _beyond_floats(column.compressed()):
        return np.where(np.ma.getmaskarray(column), np.nan, column.data.astype(np.float64))
    plain = column.data.astype(object)
    plain[np.ma.getmaskarray(column)] = None
    return plain


def _pandas_column(column: Any, index: Any) -> Any:
    """Return a column as it is to be stored: objects as objects, of which pandas would make texts."""
    import pandas as pd

    if isinstance(column, (np.ndarray, pd.api.extensions.ExtensionArray)) and column.dtype == object:
        return pd.Series(np.asarray(column), index=index, dtype=object)
    # Before pandas 3, whoever writes to the new table would write to the one that the column came from.
    return column.copy() if isinstance(column, pd.Series) and int(pd.__version__.partition(".")[0]) < 3 else column


def _polars_series(column: Any) -> Any:
    import polars as pl

    if isinstance(column, list):
        return pl.Series(values=column)
    if not isinstance(column, np.ndarray):
        return column
    return pl.Series(values=column, nan_to_null=True) if column.dtype.kind == "f" else pl.Series(values=column)
