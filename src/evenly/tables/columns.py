"""One column of a table as it is stored: numbers, texts, classes and missing cells, read on demand as NumPy arrays."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import NUMBER

Floats = npt.NDArray[np.float64]
Found = TypeVar("Found")
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
    memo: dict[Any, Any] | None = field(default=None, kw_only=True, repr=False, compare=False)
    """What was found in the cells, for whoever asks next; None if nothing is kept."""

    def fresh(self) -> TableColumn:
        """Return the column without the arrays that it caches, which go with the copy; its memo stays."""
        return TableColumn(self.name, self.native, memo=self.memo)

    def remember(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """Return what was found under a key before; else find it, and keep it if anything is kept."""
        if self.memo is None:
            return find()
        if key not in self.memo:
            self.memo[key] = find()
        found: Found = self.memo[key]
        return found

    @cached_property
    def storage(self) -> Storage:
        """How the cells are stored, whatever they mean."""
        if isinstance(self.native, np.ndarray):
            return _array_storage(self.native)
        dtype = self.native.dtype
        if self.native.null_count() == len(self.native) and not dtype.is_numeric():
            return "text"  # a text column without an observed cell
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
            return int((~(missing_cells(self.native) if objects else self.native != self.native)).sum())
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
                missing = missing_cells(self.native)
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
        """Return the numbers that texts spell, NaN where missing, and the markers among them; None if one spells none.

        Only for texts of Polars, which reads a whole column at once instead of one distinct text after the other.
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
    """Return how a dataframe's type stores its cells."""
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


def missing_cells(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
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
    seen = values[~missing_cells(values)]
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
    missing = missing_cells(values) if values.dtype == object else np.zeros(len(values), bool)
    cells = values.tolist()
    codes = [-1 if gone else seen.setdefault(cell, len(seen)) for cell, gone in zip(cells, missing, strict=True)]
    return np.asarray(codes, dtype=np.intp), list(seen)


class Stored(NamedTuple):
    """How a column was stored, to store it the same way again."""

    dtype: str
    ordered: bool
    text: bool
    storage: Storage = "other"


def as_column(name: str, native: Any) -> TableColumn:
    """View a native column, or an array, as a column."""
    if not isinstance(native, np.ndarray):
        native = nw.from_native(native, series_only=True, allow_series=True)
    return TableColumn(name, native)
