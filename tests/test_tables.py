"""Columns get the type back that they were stored as, whatever a model made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenly import LipschitzScaler

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
