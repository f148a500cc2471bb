"""Tables with types and cells that few people expect: each comes back in the same types, or is refused in words."""

from __future__ import annotations

import datetime
import decimal
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from evenly import EvenlyWarning, Imputer, LipschitzScaler, TableError, inspect_table

RNG = np.random.default_rng(0)
N = 40
TEXTS = np.where(np.arange(N) % 5 == 4, None, RNG.choice(["a", "b", "c"], N)).tolist()
WHOLE = np.where(np.arange(N) % 5 == 4, None, RNG.poisson(40.0, N)).tolist()
CENTS = [None if i % 5 == 4 else Decimal(int(cents)).scaleb(-2) for i, cents in enumerate(RNG.integers(100, 9999, N))]
SPELLED = [None if cell is None else str(cell) for cell in CENTS]
LARGEST = [None if i % 5 == 4 else 2**63 - 1 - int(i % 7) * 10**17 for i in range(N)]
UNSIGNED = [None if i % 5 == 4 else 2**64 - 1 - int(i % 7) * 10**18 for i in range(N)]
GAPS = np.arange(N) % 5 == 4


def dictionary(cells: list[Any], of: Any) -> Any:
    return pa.array(cells, of).dictionary_encode()


def on_arrow(array: Any) -> Any:
    return pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(array)})


TABLES: dict[str, Callable[[], Any]] = {
    "arrow dictionary of texts": lambda: pa.table({"a": dictionary(TEXTS, pa.string())}),
    "arrow dictionary of small indices": lambda: pa.table(
        {"a": dictionary(TEXTS, pa.string()).cast(pa.dictionary(pa.int8(), pa.large_string()))}
    ),
    "arrow dictionary of integers": lambda: pa.table({"a": dictionary(WHOLE, pa.int64())}),
    "arrow dictionary of floats": lambda: pa.table({"a": dictionary(WHOLE, pa.float64())}),
    "arrow decimals": lambda: pa.table({"a": pa.array(CENTS, pa.decimal128(12, 2))}),
    "arrow large texts": lambda: pa.table({"a": pa.array(TEXTS, pa.large_string())}),
    "arrow text views": lambda: pa.table({"a": pa.array(TEXTS, pa.string_view())}),
    "arrow largest integers": lambda: pa.table({"a": pa.array(LARGEST, pa.int64())}),
    "pandas dictionary on Arrow": lambda: on_arrow(dictionary(TEXTS, pa.string())),
    "pandas dictionary of integers on Arrow": lambda: on_arrow(dictionary(WHOLE, pa.int64())),
    "pandas decimals on Arrow": lambda: on_arrow(pa.array(CENTS, pa.decimal128(12, 2))),
    "pandas integers on Arrow": lambda: on_arrow(pa.array(LARGEST, pa.int64())),
    "pandas Int64": lambda: pd.DataFrame({"a": pd.array(LARGEST, "Int64")}),
    "pandas UInt64": lambda: pd.DataFrame({"a": pd.array(UNSIGNED, "UInt64")}),
    "pandas decimals": lambda: pd.DataFrame({"a": pd.Series(CENTS, dtype=object)}),
    "pandas signalling NaN": lambda: pd.DataFrame(
        {"a": pd.Series([Decimal("sNaN") if cell is None else cell for cell in CENTS], dtype=object)}
    ),
    "pandas texts of numbers": lambda: pd.DataFrame({"a": pd.Series(SPELLED, dtype="str")}),
    "pandas texts kept by Arrow": lambda: pd.DataFrame({"a": pd.Series(TEXTS, dtype="string[pyarrow]")}),
    "pandas texts kept by Python": lambda: pd.DataFrame({"a": pd.Series(TEXTS, dtype="string[python]")}),
    "pandas texts with NaN": lambda: pd.DataFrame({"a": pd.Series(TEXTS, dtype=pd.StringDtype(na_value=np.nan))}),
    "pandas objects of texts": lambda: pd.DataFrame({"a": pd.Series(TEXTS, dtype=object)}),
    "pandas objects of integers": lambda: pd.DataFrame({"a": pd.Series(WHOLE, dtype=object)}),
    "pandas category with a marker": lambda: pd.DataFrame(
        {"a": pd.Categorical(["?" if cell is None else cell for cell in TEXTS])}
    ),
    "pandas sparse": lambda: pd.DataFrame({"a": pd.arrays.SparseArray([np.nan if c is None else c for c in WHOLE])}),
    "pandas name that is None": lambda: pd.DataFrame({None: np.where(GAPS, np.nan, 1.5 + np.arange(N))}),
    "polars decimals": lambda: pl.DataFrame({"a": pl.Series(CENTS, dtype=pl.Decimal(20, 2))}),
    "polars texts of numbers": lambda: pl.DataFrame({"a": SPELLED}),
    "polars objects": lambda: pl.DataFrame({"a": pl.Series(WHOLE, dtype=pl.Object)}),
    "polars largest integers": lambda: pl.DataFrame({"a": pl.Series(LARGEST, dtype=pl.Int64)}),
    "polars Int128": lambda: pl.DataFrame({"a": pl.Series(UNSIGNED, dtype=pl.Int128)}),
    "NumPy texts": lambda: np.array([["?" if cell is None else cell] for cell in TEXTS]),
    "NumPy bytes": lambda: np.array([[b"" if cell is None else cell.encode()] for cell in TEXTS]),
    "NumPy dates": lambda: (np.datetime64("2024-01-01", "ns") + np.arange(N))[:, None],
    "NumPy texts and dates": lambda: np.array(
        [[cell or "", f"2024-01-{i % 28 + 1:02}"] for i, cell in enumerate(TEXTS)]
    ),
    "NumPy big-endian": lambda: np.where(GAPS, np.nan, np.arange(N) + 0.5).astype(">f8")[:, None],
    "NumPy masked floats": lambda: np.ma.array(np.arange(N) + 0.5, mask=GAPS)[:, None],
    "NumPy masked integers": lambda: np.ma.array(RNG.poisson(9.0, N), mask=GAPS, hard_mask=True)[:, None],
    "NumPy masked texts": lambda: np.ma.array([cell or "a" for cell in TEXTS], mask=GAPS)[:, None],
    "NumPy masked flags": lambda: np.ma.array(RNG.random(N) < 0.5, mask=GAPS)[:, None],
}  # fmt: skip


def cells_of(table: Any) -> tuple[str, list[Any]]:
    """Return the type of the first column, and its cells."""
    if isinstance(table, np.ndarray):
        return f"{type(table).__name__} {table.dtype!r}", [table[i, 0] for i in range(len(table))]
    if isinstance(table, pd.DataFrame):
        return repr(table.dtypes.iloc[0]), list(table.iloc[:, 0])
    if isinstance(table, pl.DataFrame):
        return str(table.dtypes[0]), table.to_series(0).to_list()
    return str(table.schema.types[0]), table.column(0).to_pylist()


def is_gone(cell: Any) -> bool:
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return cell is np.ma.masked or bool(pd.isna(cell)) or cell in ("", "?", b"")


@pytest.mark.parametrize("name", TABLES)
def test_the_imputer_keeps_types_and_observed_cells(name):
    table = TABLES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        imputer = Imputer("marginal", random_state=0).fit(table)
    low, high = imputer.interval(table)
    for full in (imputer.transform(table), imputer.sample(table, 1)[0], low, high):
        assert type(full) is type(table)
        (dtype, cells), (expected, before) = cells_of(full), cells_of(table)
        assert dtype == expected
        kept = [not is_gone(cell) for cell in before]
        assert [repr(cell) for cell, seen in zip(cells, kept, strict=True) if seen] == [
            repr(cell) for cell, seen in zip(before, kept, strict=True) if seen
        ]
        assert not any(is_gone(cell) for cell in cells)
        if isinstance(cells[0], (str, int)):
            types = {type(cell) for cell, seen in zip(cells, kept, strict=True) if seen}
            assert {type(cell) for cell in cells} == types
    assert inspect_table(table).n_rows == N


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("method", ["lip-gamma", "std-none"])
def test_the_scaler_gives_types_and_values_back(name, method):
    table = TABLES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        scaler = LipschitzScaler(method, passthrough="keep", random_state=0).fit(table)
    back = scaler.inverse_transform(scaler.transform(table))
    assert type(back) is type(table)
    (dtype, cells), (expected, before) = cells_of(back), cells_of(table)
    assert dtype == expected
    assert [is_gone(cell) for cell in cells] == [is_gone(cell) for cell in before]
    for cell, first in zip(cells, before, strict=True):
        if is_gone(first):
            continue
        if isinstance(first, (int, float, np.number)) and not isinstance(first, bool):
            assert float(cell) == pytest.approx(float(first), rel=1e-9)
        else:
            assert (repr(cell), type(cell)) == (repr(first), type(first))


def test_missing_features_of_a_masked_array_are_nan():
    table = TABLES["NumPy masked integers"]()
    scaled = LipschitzScaler("std-none").fit_transform(table)
    assert type(scaled) is np.ndarray
    assert (np.isnan(scaled) == table.mask).all()


def test_filled_texts_are_spelled_as_the_others():
    for table in (TABLES["pandas texts of numbers"](), TABLES["polars texts of numbers"]()):
        full = Imputer("marginal", random_state=0).fit_transform(table)
        assert all(len(cell.partition(".")[2]) == 2 for cell in full["a"])


def test_identifiers_beyond_double_precision_pass_through_an_array_as_they_are():
    table = np.column_stack([2**60 + 1000 * np.arange(N), RNG.poisson(3.0, N)])
    scaler = LipschitzScaler("lip-none", kinds={0: "ignore"}, passthrough="keep").fit(table)
    scaled = scaler.transform(table)
    assert scaled[:, 0].tolist() == table[:, 0].tolist()
    assert (scaler.inverse_transform(scaled) == table).all()


class Grumpy:
    """A cell that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


def test_cells_that_cannot_be_compared_pass_through():
    cells = [Grumpy() for _ in range(4)]
    for table in (
        pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": [1.5, 2.5, np.nan, 4.0]}),
        np.array(list(zip(cells, [1.5, 2.5, None, 4.0], strict=True)), object),
    ):
        with pytest.warns(EvenlyWarning, match="neither numbers nor texts"):
            full = Imputer("marginal").fit_transform(table)
        column = full[:, 0] if isinstance(full, np.ndarray) else full["a"].array
        assert all(cell is first for cell, first in zip(column, cells, strict=True))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "arrow duplicate names": (
        lambda: pa.Table.from_arrays([pa.array([1.5]), pa.array([2.5])], names=["a", "a"]),
        "Column 'a': got the name more than once",
    ),
    "names that are equal": (
        lambda: pd.DataFrame(np.ones((3, 2)), columns=pd.Index([1, True], dtype=object)),
        "Column 'True': got a name equal to another",
    ),
    "whole numbers beyond floats": (
        lambda: pd.DataFrame({"a": pd.Series([10**400, 3, None], dtype=object)}),
        "Column 'a': got a whole number beyond 1.8e308",
    ),
    "surrogate in a class": (
        lambda: pd.DataFrame({"a": pd.Series(["a\ud800", "b"] * 9, dtype=object)}),
        "Column 'a': got a text with a lone surrogate, 'a.ud800'",
    ),
    "surrogate in a name": (
        lambda: pd.DataFrame(np.ones((3, 1)), columns=pd.Index(["\ud800"], dtype=object)),
        "a name with a lone surrogate",
    ),
    "sparse": (lambda: sparse.csr_matrix(np.eye(3)), "got a sparse csr_matrix, but dense data is required"),
    "sparse array": (lambda: sparse.coo_array(np.eye(3)), "got a sparse coo_array, but dense data is required"),
    "matrix": (lambda: np.zeros((2, 1)).view(np.matrix), "got an np.matrix"),
    "pandas series": (lambda: pd.Series([1.0, 2.0], name="a"), r"got a pandas Series.*series.to_frame\(\)"),
    "polars series": (lambda: pl.Series("a", [1.0, 2.0]), r"got a polars Series.*series.to_frame\(\)"),
    "arrow array": (lambda: pa.array([1.0, 2.0]), "got a pyarrow DoubleArray"),
    "bytes that are no UTF-8": (lambda: np.array([[b"\xff"], [b"a"]]), "Column 'x0': got bytes that are not UTF-8"),
    "structured": (lambda: np.zeros(3, dtype=[("a", "f8")]), "got a structured array"),
    "complex": (lambda: np.ones((2, 2)) + 1j, "got complex values"),
    "one dimension": (lambda: np.ma.array([1.0, 2.0]), "Expected 2D array"),
    "no rows": (lambda: np.ma.empty((0, 3)), "0 sample"),
    "ragged": (lambda: [[1.0], [1.0, 2.0]], "got a list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_treated_is_named(name):
    make, message = REFUSED[name]
    for use in (LipschitzScaler().fit, Imputer("marginal").fit, inspect_table):
        if name.startswith("surrogate in a class") and use is inspect_table:
            continue
        with pytest.raises(TableError, match=message):
            use(make())


def test_dates_of_any_unit_pass_through_an_array_of_objects():
    days = np.datetime64("2024-01-01", "ns") + np.arange(4)
    table = np.empty((4, 2), object)
    table[:, 0], table[:, 1] = list(days), [1.5, 2.5, None, 4.0]
    with pytest.warns(EvenlyWarning, match="x0"):
        full = Imputer("marginal").fit_transform(table)
    assert full[:, 0].tolist() == list(days)


def test_object_cells_without_a_number_are_no_numbers():
    table = pd.DataFrame({"a": pd.Series([np.timedelta64(1, "s"), np.timedelta64(2, "s")] * 5, dtype=object)})
    table["b"] = [datetime.time(12)] * 10
    assert [one.kind for one in inspect_table(table).columns] == ["ignore", "ignore"]
    assert decimal.getcontext().prec == 28  # as it was
