"""Tables at the two ends: any dataframe or array in as columns of NumPy arrays, the same kind of table out."""

from __future__ import annotations

import decimal
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.tables.patterns import NUMBER

Floats = npt.NDArray[np.float64]
Storage = Literal["boolean", "integer", "float", "text", "time", "other"]

_TIMES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)


BLOCK = 1 << 16
"""Rows handled at once: the temporaries of a block stay in the processor's cache."""


def blocks(values: Floats) -> Iterable[Floats]:
    """Cut a column into blocks without missing cells."""
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        with np.errstate(all="ignore"):
            clean = np.isfinite(block.sum())  # one pass; a missing cell or an overflow shows in the sum
        yield block if clean else block[~np.isnan(block)]


@dataclass(frozen=True)
class TableColumn:
    """One column as it is stored, read on demand."""

    name: str
    native: Any
    """A Narwhals series, or a one-dimensional NumPy array."""

    @cached_property
    def storage(self) -> Storage:
        """How the cells are stored; says nothing yet about what they mean."""
        if isinstance(self.native, np.ndarray):
            return _array_storage(self.native)
        dtype = self.native.dtype
        if self.native.null_count() == len(self.native) and not dtype.is_numeric():
            return "text"  # a text column without a text
        return _array_storage(self.native.to_numpy()) if dtype == nw.Object else dtype_storage(dtype)

    @property
    def stored(self) -> Stored:
        """How the column is stored, to restore it later."""
        return Stored(self.dtype, self.ordered, self.storage == "text", self.storage)

    @property
    def n_observed(self) -> int:
        """Number of cells that are not missing."""
        if isinstance(self.native, np.ndarray):
            objects = self.native.dtype == object
            return int((~(_missing(self.native) if objects else self.native != self.native)).sum())
        return len(self.native) - int(self.native.null_count())

    @property
    def dtype(self) -> str:
        """The stored type by its own name, to restore it later."""
        if isinstance(self.native, np.ndarray):
            return str(self.native.dtype)
        return str(nw.to_native(self.native).dtype) if _is_pandas_like(self.native) else str(self.native.dtype)

    @cached_property
    def categories(self) -> list[Any] | None:
        """The declared classes in their order, if the type declares them (pandas categories, Polars enumerations)."""
        if isinstance(self.native, np.ndarray):
            return None
        native = nw.to_native(self.native)
        if hasattr(native, "cat") and hasattr(native.dtype, "categories") and _is_pandas_like(self.native):
            return list(native.cat.categories)
        return list(self.native.dtype.categories) if isinstance(self.native.dtype, nw.Enum) else None

    @property
    def ordered(self) -> bool:
        """Whether the type declares an order of its classes (pandas only)."""
        native = None if isinstance(self.native, np.ndarray) else nw.to_native(self.native)
        return bool(getattr(getattr(native, "dtype", None), "ordered", False))

    @cached_property
    def numbers(self) -> Floats:
        """The cells as double precision, NaN where missing; a view of the table's memory where possible."""
        if isinstance(self.native, np.ndarray):
            if self.native.dtype == object:
                missing = _missing(self.native)
                return np.where(missing, np.nan, np.where(missing, 0, self.native)).astype(np.float64)
            return self.native.astype(np.float64, copy=False)
        series = self.native
        if series.dtype == nw.Object:
            return TableColumn(self.name, series.to_numpy()).numbers
        if series.dtype != nw.Float64:
            series = series.cast(nw.Float64)
        return np.asarray(series.to_numpy(), dtype=np.float64)

    @cached_property
    def factorized(self) -> tuple[npt.NDArray[np.integer[Any]], list[Any]]:
        """Codes (-1 where missing) into the list of distinct cells, in order of appearance."""
        if isinstance(self.native, np.ndarray):
            return _factorize_objects(self.native)
        native = nw.to_native(self.native)
        if self.native.implementation.is_pandas():
            import pandas as pd

            codes, distinct = pd.factorize(native, use_na_sentinel=True)
            return codes, list(distinct)
        if self.native.implementation.is_polars():
            import polars as pl

            texts = native.cast(pl.String)
            distinct = texts.drop_nulls().unique(maintain_order=True)
            codes = texts.cast(pl.Enum(distinct)).to_physical()  # an enumeration's codes are its places
            return codes.cast(pl.Int32).fill_null(-1).to_numpy(), distinct.to_list()
        return _factorize_objects(np.asarray([*self.native.to_list(), None], dtype=object)[:-1])

    def spelled_numbers(self, markers: Collection[str]) -> tuple[Floats, list[str]] | None:
        """Return texts that spell numbers as such, NaN where missing, and the markers among them; None for others.

        Only Polars' texts are read this way, at once instead of one distinct text after the other.
        """
        if isinstance(self.native, np.ndarray) or self.native.dtype != nw.String:
            return None
        if not self.native.implementation.is_polars():
            return None
        cells = nw.to_native(self.native)
        stripped = cells.str.strip_chars()
        gone = stripped.is_in(list(markers))
        kept = stripped.filter(~gone)
        if not len(kept) or not kept.head(100).str.contains(NUMBER).all() or not kept.str.contains(NUMBER).all():
            return None
        numbers = np.full(len(cells), np.nan)
        numbers[(~gone).fill_null(False).to_numpy()] = kept.cast(float).to_numpy()
        return numbers, cells.filter(gone).unique(maintain_order=True).to_list()


def dtype_storage(dtype: Any) -> Storage:
    """Say how the cells of a dataframe's type are stored."""
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "float"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return "time" if isinstance(dtype, _TIMES) else "other"


def _is_pandas_like(series: Any) -> bool:
    return bool(series.implementation.is_pandas_like())


def _missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which cells of an object array are None, NaN or another value that is not equal to itself."""
    return np.fromiter((v is None or _unequal_to_itself(v) for v in values), bool, len(values))


def _unequal_to_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value; neither has an array
        return type(value).__name__ == "NAType"


def _array_storage(values: npt.NDArray[Any]) -> Storage:
    by_kind: dict[str, Storage] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
    by_kind |= {"U": "text", "S": "text", "M": "time", "m": "time"}
    if values.dtype.kind in by_kind:
        return by_kind[values.dtype.kind]
    seen = values[~_missing(values)]
    kinds = {type(v) for v in seen}
    if not kinds:
        return "text"
    if kinds <= {bool, np.bool_}:
        return "boolean"
    if all(issubclass(k, (int, np.integer)) and k is not bool for k in kinds):
        return "integer"
    real = (int, float, np.number, decimal.Decimal)
    if all(issubclass(k, real) and not issubclass(k, (np.complexfloating, complex)) for k in kinds):
        return "float"
    return "text" if all(issubclass(k, (str, int, float, np.number, np.bool_)) for k in kinds) else "other"


def _factorize_objects(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    seen: dict[Any, int] = {}
    missing = _missing(values) if values.dtype == object else np.zeros(len(values), bool)
    cells = values.tolist()
    codes = [-1 if gone else seen.setdefault(cell, len(seen)) for cell, gone in zip(cells, missing, strict=True)]
    return np.asarray(codes, dtype=np.intp), list(seen)


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
    """The same as a Narwhals frame with text labels; None for an array."""

    @property
    def names(self) -> list[str]:
        """The columns' names as text."""
        return [column.name for column in self.columns]


def open_table(table: Any, *, estimator: str = "LipschitzScaler") -> Table:
    """View a dataframe or an array as columns.

    Parameters
    ----------
    table : pandas, Polars or PyArrow dataframe, NumPy array or nested list
        The table. Columns of an array are called `x0`, `x1`, ...
    estimator : str
        The name used in messages.

    Examples
    --------
    >>> open_table([[1.0, 2.0], [3.0, 4.0]]).names
    ['x0', 'x1']
    >>> open_table([])
    Traceback (most recent call last):
    ValueError: Expected 2D array, got 1D array instead: ...
    """
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

        return open_table(pa.Table.from_batches([table]), estimator=estimator)
    if isinstance(table, np.ma.MaskedArray):
        filling: Any = None if table.dtype == object else np.nan
        table = np.ma.filled(table if table.dtype == object else table.astype(np.float64), filling)
    # Imported here: a second that a file's commands would wait for, and only arrays need it.
    from sklearn.utils.validation import check_array

    array = check_array(table, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    if array.dtype.kind == "c":
        raise TableError("complex values", "expected real ones. Complex data not supported")
    columns = [TableColumn(f"x{j}", array[:, j]) for j in range(array.shape[1])]
    return Table(columns, list(range(array.shape[1])), array.shape[0], "numpy")


def _rename(frame: Any) -> nw.DataFrame[Any]:
    """Give a pandas frame text labels, where two of them would not become the same."""
    return nw.from_native(frame.set_axis([_text(label) for label in frame.columns], axis=1), eager_only=True)


def _text(label: Any) -> str:
    return label if isinstance(label, str) else str(label)


def refuse_duplicates(labels: list[Any]) -> list[str]:
    """Return names as texts, if no two of them are the same."""
    texts = [_text(label) for label in labels]
    if len(set(texts)) < len(texts):
        twice = next(text for j, text in enumerate(texts) if text in texts[:j])
        raise TableError("the name more than once", "expected names to differ", "rename one", column=twice)
    return texts


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

    A table that was fitted as an array has no labels to look for. Returns the columns in the fitted order and the
    labels that the fitted table did not have.
    """
    if table.container == "numpy" or (by_position and len(table.columns) == len(labels)):
        return table.columns, []
    where: dict[Hashable, int] = {label: j for j, label in enumerate(table.labels)}
    # A saved scaler knows a label that JSON cannot hold by its text.
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
    """Apply a function to each column; in a few threads where the columns are long (NumPy lets them run at once)."""
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


class Stored(NamedTuple):
    """How a column was stored, to store it the same way again."""

    dtype: str
    ordered: bool
    text: bool
    storage: Storage = "other"


def restore_column(values: npt.NDArray[Any], container: str, stored: Stored, classes: list[Any] | None) -> Any:
    """Give a column its stored type back: whole numbers, booleans, texts and classes; missing cells stay missing.

    A type that cannot hold missing cells gives way to the nearest one that can.
    """
    missing = np.isnan(values) if values.dtype.kind == "f" else _missing(values)
    dtype, ordered, text, _ = stored
    wants = dtype.lower()
    if values.dtype.kind == "f" and (whole := re.search(r"u?int(8|16|32|64)", wants)):
        # What a model made up may lie outside a small type; the ends of 64 bits are no double precision numbers.
        low, high = np.iinfo(whole.group()).min, np.iinfo(whole.group()).max
        values = np.clip(np.rint(values), low, high if high < 2**53 else None)
    if values.dtype.kind == "f" and text:
        # Thirteen digits: scaling there and back costs the last two or three of sixteen.
        texts = [None if gone else f"{v:.13g}" for v, gone in zip(values, missing, strict=True)]
        values = np.array(texts, dtype=object)
    if container in ("polars", "pyarrow"):
        return _restore_with_narwhals(values, missing, container, dtype, classes)
    if container == "numpy":
        plain = wants.startswith(("int", "uint", "bool")) and missing.any()
        return values if plain or wants == "object" else values.astype(dtype)
    import pandas as pd

    if wants == "category":
        return pd.Categorical(values, categories=classes, ordered=ordered)
    series = pd.Series(values)
    nullable = dtype[0].isupper() or wants.endswith("[pyarrow]") or wants == "boolean"
    if missing.any() and not nullable and wants.startswith(("int", "uint", "bool")):
        series = series.astype(np.float64) if values.dtype.kind == "f" else series
    else:
        series = series.astype(dtype)
    return series.array  # without an index of its own, which would not be the table's


def _restore_with_narwhals(
    values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], container: str, dtype: str, classes: list[Any] | None
) -> Any:
    cells = [None if gone else v for v, gone in zip(values.tolist(), missing, strict=True)]
    name = dtype.partition("(")[0]
    wanted: Any = nw.Enum(classes) if name == "Enum" and classes else getattr(nw, name, None)
    series = nw.new_series("", cells, backend="polars" if container == "polars" else "pyarrow")
    return nw.to_native(series.cast(wanted) if wanted is not None and wanted not in (nw.Object, nw.Decimal) else series)


def fill_cells(
    cells: TableColumn,
    where: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    container: str,
    stored: Stored | None,
    classes: list[Any] | None,
) -> Any:
    """Return a native column with some of its cells replaced, the others and the type as they are.

    Parameters
    ----------
    where : array of bool
        The cells to replace.
    values : array
        What to put there, in their order.
    stored : Stored or None
        How to store a column without any cell of its own; None keeps its type, if it has one.
    classes : list, optional
        All classes that may come.
    """
    native: Any = cells.native if isinstance(cells.native, np.ndarray) else nw.to_native(cells.native)
    if cells.dtype == "object" and cells.storage in ("integer", "float") and values.dtype.kind == "f":
        exact = any(isinstance(cell, decimal.Decimal) for cell in native)
        convert = round if cells.storage == "integer" else (lambda v: decimal.Decimal(str(v))) if exact else float
        values = np.array([convert(value) for value in values.tolist()], dtype=object)
    untyped = where.all() and cells.dtype in ("object", "Unknown")
    if untyped or (stored is not None and where.all() and cells.storage != stored.storage):
        stored = stored or Stored(str(values.dtype), False, False)
        whole = restore_column(values, container, stored, classes)
        return type(native)(whole, index=native.index) if container == "pandas" else whole
    if cells.categories is not None and classes is not None:
        classes = [*cells.categories, *(one for one in classes if one not in set(cells.categories))]
    restored = restore_column(values, container, cells.stored, classes)
    if container == "numpy":
        filled = native.astype(np.result_type(native, restored)) if native.dtype.kind in "US" else native.copy()
        filled[where] = restored
        return filled
    if container == "polars":
        import polars as pl

        if native.dtype == pl.Decimal:
            restored = restored.cast(native.dtype)
        place = np.maximum(np.cumsum(where) - 1, 0)
        return restored.gather(place).zip_with(pl.Series(where), native.cast(restored.dtype))
    if container == "pyarrow":
        import pyarrow as pa

        if pa.types.is_decimal(native.type):
            restored = restored.cast(native.type)
        kept = iter(restored.to_pylist())
        both = [next(kept) if gone else cell for cell, gone in zip(native.to_pylist(), where, strict=True)]
        return pa.chunked_array([pa.array(both, type=native.type)])
    filled = native.cat.set_categories(classes) if cells.categories is not None and classes else native.copy()
    filled[where] = restored
    return filled


def as_column(name: str, native: Any) -> TableColumn:
    """View a native column, or an array, as a column."""
    if not isinstance(native, np.ndarray):
        native = nw.from_native(native, series_only=True, allow_series=True)
    return TableColumn(name, native)
