"""Columns on the way out, in the types that they were stored with."""

from __future__ import annotations

import decimal
import re
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly.tables.columns import Stored, TableColumn, missing_cells


def restore_column(values: npt.NDArray[Any], container: str, stored: Stored, classes: list[Any] | None) -> Any:
    """Give a column its stored type back: whole numbers, booleans, texts and classes; missing cells stay missing.

    A type that cannot hold missing cells gives way to the nearest one that can.
    """
    missing = np.isnan(values) if values.dtype.kind == "f" else missing_cells(values)
    dtype, ordered, text, _ = stored
    wants = dtype.lower()
    if values.dtype.kind == "f" and (whole := re.search(r"u?int(8|16|32|64)", wants)):
        # Imputed values may exceed a small type. The largest 64-bit integers are not exact in double precision.
        low, high = np.iinfo(whole.group()).min, np.iinfo(whole.group()).max
        values = np.clip(np.rint(values), low, high if high < 2**53 else np.nextafter(float(high), 0.0))
    if values.dtype.kind == "f" and text:
        # Thirteen digits: scaling and unscaling cost the last two or three of sixteen.
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
