"""Tables of any kind come in, and columns keep the type that they were stored as, whatever a model made up."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenly import LipschitzScaler
from evenly.tables import as_column, fill_cells, open_table

CELLS = [3, 5, 100, 120, 9, 8] * 5
SMALL: dict[str, tuple[Callable[[], Any], int]] = {
    "pandas int8": (lambda: pd.DataFrame({"a": pd.Series(CELLS, dtype="int8")}), 127),
    "pandas UInt8": (lambda: pd.DataFrame({"a": pd.Series(CELLS, dtype="UInt8")}), 255),
    "polars Int8": (lambda: pl.DataFrame({"a": CELLS}, schema={"a": pl.Int8}), 127),
    "arrow uint8": (lambda: pa.table({"a": pa.array(CELLS, pa.uint8())}), 255),
}


@pytest.mark.parametrize("name", SMALL)
def test_numbers_beyond_a_small_type_become_its_largest(name):
    """Cast as they are, they would come back from the other end, as negative ones."""
    make, largest = SMALL[name]
    table = make()
    scaler = LipschitzScaler("std-none", kinds={"a": "positive"}).fit(table)
    scaled = nw.from_native(scaler.transform(table), eager_only=True)
    back = scaler.inverse_transform(nw.to_native(scaled.with_columns(nw.col("a") * 10.0)))
    cells = nw.from_native(back, eager_only=True)["a"]
    assert cells.dtype == nw.from_native(table, eager_only=True)["a"].dtype
    assert cells.to_list()[2] == cells.max() == largest
    assert cells.min() >= 3


def test_numbers_beyond_a_small_type_of_an_array_become_its_largest():
    table = np.array(CELLS, np.int8)[:, None]
    scaler = LipschitzScaler("std-none", kinds={0: "positive"}).fit(table)
    back = scaler.inverse_transform(10.0 * scaler.transform(table))
    assert back.dtype == np.int8
    assert back[2, 0] == back.max() == 127


# --- filling ---

GONE = np.array([False, True, False, True])
FILLED: dict[str, tuple[Any, Any, list[Any]]] = {
    "pandas float": (pd.Series([1.5, np.nan, 2.5, np.nan], index=list("abcd")), [7.0, 8.0], [1.5, 7.0, 2.5, 8.0]),
    "pandas Int64": (pd.Series([1, None, 2, None], dtype="Int64"), [7.2, 8.0], [1, 7, 2, 8]),
    "pandas text": (pd.Series(["x", None, "y", None]), ["y", "z"], ["x", "y", "y", "z"]),
    "pandas category": (pd.Series(["x", None, "y", None], dtype="category"), ["y", "z"], ["x", "y", "y", "z"]),
    "pandas decimal": (pd.Series([Decimal("1.5"), None, Decimal(2), None]), [7.5, 8.0], [1.5, 7.5, 2, 8]),
    "polars Int8": (pl.Series([1, None, 2, None], dtype=pl.Int8), [7.0, 300.0], [1, 7, 2, 127]),
    "polars Enum": (pl.Series(["x", None, "y", None], dtype=pl.Enum(["x", "y"])), ["y", "x"], ["x", "y", "y", "x"]),
    "polars Decimal": (pl.Series([Decimal("1.50"), None, Decimal(2), None]), [7.5, 8.0], [1.5, 7.5, 2, 8]),
    "pyarrow text": (pa.chunked_array([["x", None], ["y", None]]), ["y", "z"], ["x", "y", "y", "z"]),
    "pyarrow decimal": (
        pa.chunked_array([[Decimal("1.50"), None, Decimal("2.00"), None]]),
        [7.5, 8.0],
        [1.5, 7.5, 2, 8],
    ),
    "numpy float": (np.array([1.5, np.nan, 2.5, np.nan], np.float32), [7.0, 8.0], [1.5, 7.0, 2.5, 8.0]),
    "numpy object": (np.array(["x", None, "y", None], object), ["y", "z"], ["x", "y", "y", "z"]),
}


@pytest.mark.parametrize("name", FILLED)
def test_filled_cells_take_the_type_of_the_others_which_stay_as_they_are(name):
    native, new, expected = FILLED[name]
    before = list(native)
    texts = isinstance(new[0], str)
    values = np.array(new, object if texts else np.float64)
    column = as_column("a", native)
    filled = fill_cells(column, GONE, values, name.split()[0], column.stored, ["x", "y", "z"] if texts else None)
    assert type(filled) is type(native)
    assert (filled.to_pylist() if name.startswith("pyarrow") else list(filled)) == expected
    if name not in ("pandas category", "polars Enum"):  # which a new class may have to be added to
        assert getattr(filled, "dtype", getattr(filled, "type", None)) == getattr(
            native, "dtype", getattr(native, "type", None)
        )
    if name.startswith("pandas"):
        assert filled.index.equals(native.index)
    assert [str(cell) for cell in native] == [str(cell) for cell in before]  # the given table is not written to


# --- opening ---


def test_cells_without_a_truth_value_are_missing_or_neither_number_nor_text():
    opened = open_table(pd.DataFrame({"a": pd.Series([1, pd.NA], dtype=object), "b": [np.zeros(2), np.ones(2)]}))
    assert (opened.columns[0].storage, opened.columns[0].n_observed) == ("integer", 1)
    assert opened.columns[1].storage == "other"
