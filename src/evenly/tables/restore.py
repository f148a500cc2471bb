"""Columns on the way out, in the types that they were stored with."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.tables.columns import Stored, TableColumn, missing_cells
from evenly.tables.dates import build_dates
from evenly.tables.native_types import CellType, arrow_type, cell_type, numpy_type, pandas_type, polars_type

Flags = npt.NDArray[np.bool_]


def restore_column(values: npt.NDArray[Any], container: str, stored: Stored, classes: list[Any] | None) -> Any:
    """Give a column its stored type back: whole numbers, booleans, texts and classes; missing cells stay missing.

    A type that cannot hold missing cells gives way to the nearest one that can; in an array, to a masked array.
    """
    try:
        return _restore(values, container, stored, classes)
    except ImportError:
        raise
    except Exception as error:  # each library has its own for a type that it does not know or cannot convert to
        got, expected = f"the stored type {stored.dtype!r}", f"{container} cannot store {values.dtype} cells as that"
        raise TableError(got, expected, "fit again") from error


def _restore(values: npt.NDArray[Any], container: str, stored: Stored, classes: list[Any] | None) -> Any:
    name = stored.dtype
    if container == "numpy":
        return _build(values, container, numpy_type(name), stored)
    if container == "polars":
        return _build(values, container, polars_type(name, classes), stored)
    if container == "pyarrow":
        return _build(values, container, arrow_type(name), stored)
    return _build(values, container, pandas_type(name, classes, ordered=stored.ordered), stored)


def retype(column: npt.NDArray[Any], stored: Stored) -> npt.NDArray[Any]:
    """Give a column that passed through an array of floats or objects the type back that it had before."""
    dtype = numpy_type(stored.dtype)
    if column.dtype == dtype:
        return column
    missing = missing_cells(column)
    try:
        plain = np.where(missing, np.zeros(1, dtype)[0], np.ma.getdata(column)).astype(dtype) if missing.any() else None
        if plain is None or not (stored.masked or dtype.kind in "iub"):
            return column.astype(dtype)
        return _masked(plain, missing)
    except (TypeError, ValueError):  # cells were written to it that the type cannot hold
        return column


def _masked(plain: npt.NDArray[Any], missing: Flags) -> npt.NDArray[Any]:
    made: npt.NDArray[Any] = np.ma.MaskedArray(plain, mask=missing)
    return made


def _build(values: npt.NDArray[Any], container: str, dtype: Any, stored: Stored) -> Any:
    """Make a native column of numbers or classes; `dtype` None takes the type that its cells have."""
    if values.dtype.kind == "M":
        return build_dates(values, container, dtype, days=stored.days)
    missing = missing_cells(values)
    if container == "pandas" and type(dtype).__name__ == "CategoricalDtype":
        import pandas as pd

        return pd.Categorical(values, dtype=dtype)
    cells = _as_cells(values, missing, CellType("anything") if dtype is None else cell_type(dtype), stored)
    if container == "numpy":
        return _make_numpy(cells, missing, dtype)
    if container == "polars":
        return _make_polars(cells, missing, dtype)
    return _make_arrow(cells, missing, dtype) if container == "pyarrow" else _make_pandas(cells, missing, dtype)


# --- cells ------------------------------------------------------------------------------------------------------------


def _as_cells(values: npt.NDArray[Any], missing: Flags, wanted: CellType, stored: Stored) -> npt.NDArray[Any]:
    """Turn numbers or classes into cells of a type; where they are missing, anything may stand."""
    if values.dtype.kind == "f":
        if wanted.wants == "float" or (wanted.wants == "anything" and stored.dtype != "object"):
            return values
        if wanted.wants == "integer" and wanted.high < 2**64:
            return _whole(np.where(missing, 0.0, values), wanted.low, wanted.high)
    convert = _converter(wanted, stored, numbers=values.dtype.kind == "f")
    out = np.empty(len(values), object)
    out[:] = [None if gone else convert(value) for value, gone in zip(values.tolist(), missing, strict=True)]
    return out


def _whole(values: npt.NDArray[Any], low: int, high: int) -> npt.NDArray[Any]:
    """Round numbers to integers of a type; those beyond it become its largest or smallest.

    Examples
    --------
    >>> _whole(np.array([300.2, -1.0]), 0, 2**64 - 1), _whole(np.array([1e300]), -(2**63), 2**63 - 1).tolist()
    (array([300,   0], dtype=uint64), [9223372036854775807])
    """
    rounded, dtype = np.rint(values), np.uint64 if low == 0 else np.int64
    inside = np.where((rounded >= low) & (rounded < float(high)), rounded, 0.0).astype(dtype)
    return np.where(rounded >= float(high), dtype(high), np.where(rounded < low, dtype(low), inside))


def _converter(wanted: CellType, stored: Stored, *, numbers: bool) -> Callable[[Any], Any]:
    """Return what turns a number or a class into a cell."""

    def exact(value: Any) -> decimal.Decimal:
        scale = wanted.scale if wanted.wants == "decimal" else stored.decimals
        with decimal.localcontext() as context:
            context.prec = 400
            found = decimal.Decimal(str(value)) if scale is None else round(decimal.Decimal(str(value)), scale)
            if wanted.wants != "decimal":
                return found
            low, high = (decimal.Decimal(end).scaleb(-scale) for end in (wanted.low, wanted.high))  # type: ignore[operator]
            return min(max(found, low), high)

    if wanted.wants == "integer":
        return lambda value: min(max(round(float(value) if isinstance(value, str) else value), wanted.low), wanted.high)
    if wanted.wants == "decimal":
        return exact
    if wanted.wants == "float":
        return float
    if wanted.wants == "boolean":
        return lambda value: value == "True" if isinstance(value, str) else bool(round(value))
    if wanted.wants == "text" or (stored.text and numbers):
        return lambda value: _spelled(value, stored.decimals)
    if stored.dtype == "object" and numbers:
        by_storage: dict[str, Callable[[Any], Any]] = {"integer": round, "boolean": lambda value: bool(round(value))}
        return exact if stored.exact else by_storage.get(stored.storage, float)
    return lambda value: value


def _spelled(value: Any, decimals: int | None) -> str:
    """Spell a number as the others of its column.

    Examples
    --------
    >>> _spelled(1.5, 2), _spelled(0.1 + 0.2, None), _spelled("a", 2)
    ('1.50', '0.3', 'a')
    """
    if isinstance(value, (str, bool)):
        return str(value)
    # Thirteen digits: scaling and unscaling cost the last two or three of sixteen.
    return f"{value:.13g}" if decimals is None or abs(value) >= 1e22 else f"{value:.{decimals}f}"


# --- columns of each library ------------------------------------------------------------------------------------------


def _make_numpy(cells: npt.NDArray[Any], missing: Flags, dtype: Any) -> Any:
    if dtype.kind in "iub":
        plain = np.where(missing, 0, cells).astype(dtype)
        return _masked(plain, missing) if missing.any() else plain
    if dtype.kind in "US":
        texts = np.where(missing, "", cells).astype(str)
        made = texts if dtype.kind == "U" else np.char.encode(texts, "utf-8")
        return made.astype(np.result_type(made, dtype))
    if dtype.kind == "T":
        return np.where(missing, "", cells).astype(dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            return _finite(cells.astype(np.float64), missing, dtype).astype(dtype)
    return cells.astype(dtype)


def _finite(values: npt.NDArray[Any], missing: Flags, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Clip numbers to what a smaller type of floats can hold."""
    most = np.finfo(dtype).max
    return np.where(missing, np.nan, np.clip(values, -most, most)) if dtype.itemsize < 8 else values


def _with_none(cells: npt.NDArray[Any], missing: Flags) -> list[Any]:
    return [None if gone else cell for cell, gone in zip(cells.tolist(), missing, strict=True)]


def _make_pandas(cells: npt.NDArray[Any], missing: Flags, dtype: Any) -> Any:
    import pandas as pd

    if isinstance(dtype, np.dtype):
        if dtype.kind in "iu" and missing.any():
            return np.where(missing, np.nan, np.where(missing, 0, cells).astype(np.float64))
        if dtype.kind == "b" and missing.any():
            return cells
        if dtype.kind == "O":
            return cells
        return _make_numpy(cells, missing, dtype) if dtype.kind in "iubf" else pd.Series(cells).astype(dtype).array
    if hasattr(dtype, "pyarrow_dtype"):
        return pd.arrays.ArrowExtensionArray(_make_arrow(cells, missing, dtype.pyarrow_dtype))
    if hasattr(dtype, "subtype") and isinstance(dtype.subtype, np.dtype):  # sparse
        return pd.Series(_make_pandas(cells, missing, dtype.subtype)).astype(dtype).array
    return pd.array(_with_none(cells, missing) if missing.any() else cells, dtype=dtype)


def _make_polars(cells: npt.NDArray[Any], missing: Flags, dtype: Any) -> Any:
    import polars as pl

    if cells.dtype.kind == "f":
        series = pl.Series(cells, nan_to_null=True)
        return series if dtype is None else series.cast(dtype)
    if cells.dtype.kind in "iu":
        series = pl.Series(cells).cast(dtype)
        return (
            series.to_frame("a").select(pl.when(pl.Series(~missing)).then("a")).to_series() if missing.any() else series
        )
    return pl.Series(_with_none(cells, missing), dtype=dtype, strict=False)


def _make_arrow(cells: npt.NDArray[Any], missing: Flags, dtype: Any) -> Any:
    import pyarrow as pa

    if dtype is not None and pa.types.is_dictionary(dtype):
        return _as_dictionary(_make_arrow(cells, missing, dtype.value_type), dtype)
    if dtype is not None and pa.types.is_floating(dtype):
        cells = _make_numpy(cells, missing, np.dtype(dtype.to_pandas_dtype()))
    if cells.dtype == object:
        return pa.array(_with_none(cells, missing), type=dtype)
    return pa.array(cells, type=dtype, mask=missing)


def _as_dictionary(plain: Any, dtype: Any) -> Any:
    return plain.dictionary_encode().cast(dtype)


# --- filling ----------------------------------------------------------------------------------------------------------


def fill_cells(
    cells: TableColumn,
    where: Flags,
    values: npt.NDArray[Any],
    container: str,
    stored: Stored | None,
    classes: list[Any] | None,
    spelled: Stored | None = None,
) -> Any:
    """Return a native column with some cells replaced; the other cells and the type stay as they are.

    Parameters
    ----------
    where : array of bool
        The cells to replace.
    values : array
        The new cells, in their order.
    stored : Stored or None
        How to store a column without an observed cell; None keeps its type, if it has one.
    classes : list, optional
        All classes that may occur.
    spelled : Stored, optional
        How to spell numbers among texts, if it is how such a column was stored; by default, like the other cells.
    """
    native: Any = cells.native if isinstance(cells.native, np.ndarray) else nw.to_native(cells.native)
    own = cells.stored
    untyped = where.all() and cells.dtype in ("object", "Unknown", "Null", "null")
    if untyped or (stored is not None and where.all() and cells.storage != stored.storage):
        stored = stored or Stored(str(values.dtype), False, False)
        whole = restore_column(values, container, stored, classes)
        if container == "pandas":
            return type(native)(whole, index=native.index)
        return _chunked(whole) if container == "pyarrow" else whole
    if spelled is not None and (spelled.text or spelled.exact):  # other cells may be of other rows of a larger table
        own = own._replace(decimals=spelled.decimals, exact=own.exact or spelled.exact)
    if container == "numpy":
        return _fill_numpy(native, where, _build(values, container, native.dtype, own))
    if container == "polars":
        return _fill_polars(native, where, values, own, classes)
    if container == "pyarrow":
        return _fill_arrow(native, where, _build(values, container, native.type, own))
    return _fill_pandas(native, where, values, own, classes)


def _chunked(array: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([array])


def _fill_numpy(native: Any, where: Flags, new: Any) -> Any:
    filled = native.astype(np.result_type(native, new)) if native.dtype.kind in "US" else native.copy()
    if isinstance(filled, np.ma.MaskedArray):
        filled.soften_mask()
    filled[where] = new
    return filled


def _fill_polars(native: Any, where: Flags, values: npt.NDArray[Any], own: Stored, classes: list[Any] | None) -> Any:
    import polars as pl

    dtype = native.dtype
    if dtype == pl.Object:
        new = iter(_build(values, "numpy", np.dtype(object), own._replace(dtype="object")))
        cells = [next(new) if gone else cell for cell, gone in zip(native.to_list(), where, strict=True)]
        return pl.Series(cells, dtype=pl.Object)
    if dtype == pl.Enum and classes is not None:
        known = dtype.categories.to_list()
        dtype = pl.Enum([*known, *(one for one in classes if one not in set(known))])
    new = _build(values, "polars", dtype, own)
    place = np.maximum(np.cumsum(where) - 1, 0)
    return new.gather(place).zip_with(pl.Series(where), native.cast(dtype))


def _fill_arrow(native: Any, where: Flags, new: Any) -> Any:
    import pyarrow as pa

    dtype = native.type
    if dtype == pa.string_view():  # which has no kernel to take cells from it
        return _fill_arrow(native.cast(pa.string()), where, new.cast(pa.string())).cast(dtype)
    if pa.types.is_dictionary(dtype):
        return _as_dictionary(_fill_arrow(native.cast(dtype.value_type), where, new.cast(dtype.value_type)), dtype)
    whole = native.combine_chunks() if isinstance(native, pa.ChunkedArray) else native
    place = np.where(where, len(where) + np.cumsum(where) - 1, np.arange(len(where)))
    both = [whole] if not isinstance(whole, pa.ChunkedArray) else whole.chunks
    return _chunked(pa.concat_arrays([*both, new]).take(pa.array(place)))


def _fill_pandas(native: Any, where: Flags, values: npt.NDArray[Any], own: Stored, classes: list[Any] | None) -> Any:
    import pandas as pd

    dtype = native.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = set(dtype.categories)
        more = [one for one in classes or () if one not in known]
        texts = dtype.categories.dtype if isinstance(dtype.categories.dtype, pd.StringDtype) else None
        every = dtype.categories.append(pd.Index(more, dtype=texts)) if more else dtype.categories
        filled = native.cat.set_categories(every)
        filled[where] = pd.Categorical(values, categories=every, ordered=dtype.ordered)
        return filled
    new = _build(values, "pandas", dtype, own)
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        whole = _fill_arrow(pa.chunked_array(pa.array(native)), where, pa.array(new))
        return pd.Series(pd.arrays.ArrowExtensionArray(whole), index=native.index, name=native.name)
    if isinstance(dtype, pd.SparseDtype):
        dense = native.sparse.to_dense()
        dense[where] = np.asarray(new)
        return dense.astype(dtype)
    filled = native.copy()
    filled[where] = new
    return filled
