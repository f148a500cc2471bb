"""One column of a table as it is stored: numbers, texts, classes and missing cells, read on demand as NumPy arrays."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import NUMBER, TELEPHONE, TableError
from evenly.tables.native_types import arrow_name, pandas_name

if TYPE_CHECKING:
    from evenly.tables.order_evidence import Companions

Floats = npt.NDArray[np.float64]
Found = TypeVar("Found")
Storage = Literal["boolean", "integer", "float", "text", "time", "other"]

_TIMES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)


MOST_SPELLED = 1000
"""Texts, at most, that the spelling of a column's numbers is taken from."""
_SPELLED = re.compile(r"^\s*[+-]?[0-9]+(?:\.([0-9]+))?\s*$")
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
    companions: Companions | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The columns of the table, which may show what the column's numbers are; None if it has none in memory."""

    def fresh(self) -> TableColumn:
        """Return the column without the arrays that it caches, which go with the copy; its memo stays."""
        return TableColumn(self.name, self.native, memo=self.memo, companions=self.companions)

    def remember(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """Return what was found under a key before; else find it, and keep it if anything is kept."""
        if self.memo is None:
            return find()
        if key not in self.memo:
            self.memo[key] = find()
        found: Found = self.memo[key]
        return found

    @cached_property
    def readable(self) -> Any:
        """The cells in a type to read them from: dictionaries and sparse columns decoded, bytes of arrays as texts,
        objects that are dates as an array of dates, periods as the times at which they start."""
        if isinstance(self.native, np.ndarray):
            return _dates_among(_readable_array(self.native, self.name))
        # Libraries look into objects, and may fail there.
        return _dates_among(self.native.to_numpy()) if self.native.dtype == nw.Object else _readable_series(self.native)

    @cached_property
    def storage(self) -> Storage:
        """How the cells are stored, whatever they mean."""
        cells = self.readable
        if isinstance(cells, np.ndarray):
            return _array_storage(cells)
        dtype = cells.dtype
        if cells.null_count() == len(cells) and not dtype.is_numeric():
            return "text"  # a text column without an observed cell
        return dtype_storage(dtype)

    @property
    def stored(self) -> Stored:
        """How the column is stored, to restore it later."""
        decimals, exact = self._decimals
        masked = isinstance(self.native, np.ma.MaskedArray)
        days = self.storage == "time" and self.dtype == "object" and not _any_moment(self.native)
        return Stored(self.dtype, self.ordered, self.storage == "text", self.storage, decimals, exact, masked, days)

    @cached_property
    def _decimals(self) -> tuple[int | None, bool]:
        """The decimals of texts of numbers and of decimal objects, if all have as many; and whether they are such."""
        if self.storage not in ("text", "float") or (self.storage == "float" and self.dtype != "object"):
            return None, False
        some = self.readable[: 2 * MOST_SPELLED]
        cells = some.tolist() if isinstance(some, np.ndarray) else some.to_list()
        exact = [cell for cell in cells if isinstance(cell, decimal.Decimal) and cell.is_finite()]
        texts = [_SPELLED.match(cell) for cell in cells if isinstance(cell, str)][:MOST_SPELLED]
        found = {len(text[1] or "") for text in texts if text is not None}
        found |= {max(0, -int(cell.as_tuple().exponent)) for cell in exact}
        return (max(found) if len(found) == 1 or (exact and found) else None), bool(exact)

    @property
    def n_observed(self) -> int:
        """Number of cells that are not missing."""
        if isinstance(self.readable, np.ndarray):
            return int((~missing_cells(self.readable)).sum())
        return len(self.native) - int(self.native.null_count())

    @property
    def dtype(self) -> str:
        """The stored type by its own name, to restore it later."""
        if isinstance(self.native, np.ndarray):
            return str(self.native.dtype)
        native, known = nw.to_native(self.native), str(self.native.dtype)
        if _is_pandas_like(self.native):
            return pandas_name(native.dtype)
        if self.native.implementation.is_pyarrow():
            return arrow_name(native.type, known)
        return "object" if known == "Object" else str(native.dtype) if self.native.dtype.is_decimal() else known

    @cached_property
    def categories(self) -> list[Any] | None:
        """The declared classes in their order, if the type declares them (pandas categories, Polars enumerations)."""
        if isinstance(self.native, np.ndarray):
            return None
        native = nw.to_native(self.native)
        if _is_pandas_like(self.native) and hasattr(native.dtype, "categories") and hasattr(native, "cat"):
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
        series = self.readable
        if isinstance(series, np.ndarray):
            return _array_numbers(series, self.name)
        native = nw.to_native(series)
        if series.implementation.is_pyarrow():  # refuses whole numbers that are not exact as floats, unless told not to
            native = native.cast("double", safe=False)
            return np.asarray(native.to_numpy(), np.float64)
        if _is_pandas_like(series) and not isinstance(native.dtype, np.dtype):
            return np.asarray(native.to_numpy(np.float64, na_value=np.nan))
        if series.dtype != nw.Float64:
            series = series.cast(nw.Float64)
        return np.asarray(series.to_numpy(), dtype=np.float64)

    @cached_property
    def factorized(self) -> tuple[npt.NDArray[np.integer[Any]], list[Any]]:
        """Codes (-1 where missing) into the list of distinct cells, in order of appearance."""
        cells = self.readable
        if isinstance(cells, np.ndarray):
            return _factorize_objects(cells)
        if cells.null_count() == len(cells):  # of any type, also of those that have no distinct cells
            return np.full(len(cells), -1), []
        native = nw.to_native(cells)
        if cells.implementation.is_pandas():
            import pandas as pd

            codes, distinct = pd.factorize(native, use_na_sentinel=True)
            return codes, list(distinct)
        if cells.implementation.is_polars():
            import polars as pl

            texts = native.cast(pl.String)
            distinct = texts.drop_nulls().unique(maintain_order=True)
            codes = texts.cast(pl.Enum(distinct)).to_physical()  # an enumeration's codes are its places
            return codes.cast(pl.Int32).fill_null(-1).to_numpy(), distinct.to_list()
        return _factorize_objects(np.asarray([*cells.to_list(), None], dtype=object)[:-1])

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
        if kept.head(100).str.contains(TELEPHONE).all() and kept.str.contains(TELEPHONE).all():
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
    """Which cells of an array are masked, None, NaN or another value that is not equal to itself."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values) | missing_cells(values.data)
    if values.dtype == object:
        return np.fromiter((v is None or _unequal_to_itself(v) for v in values), bool, len(values))
    return values != values if values.dtype.kind in "fcmM" else np.zeros(len(values), bool)


def _unequal_to_itself(value: Any) -> bool:
    try:
        return bool(value != value)
    except Exception:  # any code may run in a comparison; a signalling NaN and pandas.NA have no truth value
        return value.is_nan() if isinstance(value, decimal.Decimal) else type(value).__name__ == "NAType"


def _readable_array(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    gone = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind == "S":
        try:
            plain = np.char.decode(plain, "utf-8")
        except UnicodeDecodeError:
            raise TableError(
                "bytes that are not UTF-8", "expected texts", "np.char.decode(array, encoding)", column=name
            ) from None
    elif plain.dtype.kind == "T":
        plain = plain.astype(object)
    if gone is None or not gone.any():
        return plain
    if plain.dtype.kind in "iu":
        return np.ma.array(plain, mask=gone)  # floats would not hold all of them
    if plain.dtype.kind in "fmM":
        return np.where(gone, np.array("nan", plain.dtype), plain)
    objects = plain.astype(object)
    objects[gone] = None
    return objects


def _readable_series(series: Any) -> Any:
    native = nw.to_native(series)
    if series.implementation.is_pyarrow():
        import pyarrow as pa

        if pa.types.is_dictionary(native.type):
            native = native.cast(native.type.value_type)
        elif native.type == pa.string_view():
            native = native.cast(pa.string())
    elif _is_pandas_like(series) and type(native.dtype).__name__ == "SparseDtype":
        native = native.sparse.to_dense()
    elif _is_pandas_like(series) and type(native.dtype).__name__ == "PeriodDtype":
        return nw.from_native(native.dt.to_timestamp(), series_only=True)
    elif _is_pandas_like(series) and hasattr(getattr(native.dtype, "pyarrow_dtype", None), "value_type"):
        return _readable_arrow_dtype(series, native)
    return nw.from_native(native, series_only=True)


def _readable_arrow_dtype(series: Any, native: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    own = native.dtype.pyarrow_dtype
    if not pa.types.is_dictionary(own):  # a list has a type of values, too
        return series
    plain = pa.chunked_array(pa.array(native)).cast(own.value_type)
    return nw.from_native(pd.Series(pd.arrays.ArrowExtensionArray(plain), index=native.index), series_only=True)


def _array_numbers(values: npt.NDArray[Any], name: str) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, values.data.astype(np.float64))
    if values.dtype != object:
        return np.asarray(values.astype(np.float64, copy=False))
    missing = missing_cells(values)
    try:
        return np.where(missing, np.nan, np.where(missing, 0, values)).astype(np.float64)
    except OverflowError:
        raise TableError(
            "a whole number beyond 1.8e308", "double precision holds none", "make it a missing cell", column=name
        ) from None


def _dates_among(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return objects that are dates, or dates with a time but without a zone, as an array of dates."""
    first = next((v for v in values if v is not None), None) if values.dtype == object else None
    if not isinstance(first, datetime.date):  # NaT is one, too
        return values
    missing = missing_cells(values)
    seen = values[~missing].tolist()
    if not seen or not all(isinstance(v, datetime.date) and getattr(v, "tzinfo", None) is None for v in seen):
        return values
    dates = np.full(len(values), np.datetime64("NaT", "us"))
    dates[~missing] = np.array(seen, dtype="datetime64[us]")
    return dates


def _any_moment(native: Any) -> bool:
    """Whether some objects that are dates have a time of the day; NaT has none."""
    cells = native.tolist() if isinstance(native, np.ndarray) else native.to_list()
    return any(isinstance(cell, datetime.datetime) and cell == cell for cell in cells)


def _array_storage(values: npt.NDArray[Any]) -> Storage:
    by_kind: dict[str, Storage] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
    by_kind |= {"U": "text", "M": "time", "m": "time", "V": "other", "c": "other"}
    if values.dtype.kind in by_kind:
        return by_kind[values.dtype.kind]
    seen = values[~missing_cells(values)]
    kinds = {type(v) for v in seen}
    if not kinds:
        return "text"
    if kinds <= {bool, np.bool_}:
        return "boolean"
    if any(issubclass(k, (np.timedelta64, np.complexfloating)) for k in kinds):  # numbers to NumPy
        return "other"
    if all(issubclass(k, (int, np.integer)) and k is not bool for k in kinds):
        return "integer"
    if all(issubclass(k, (int, float, np.number, decimal.Decimal)) for k in kinds):
        return "float"
    return "text" if all(issubclass(k, (str, int, float, np.number, np.bool_)) for k in kinds) else "other"


def _factorize_objects(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    seen: dict[Any, int] = {}
    missing, cells = missing_cells(values), values.tolist()
    codes = [-1 if gone else seen.setdefault(cell, len(seen)) for cell, gone in zip(cells, missing, strict=True)]
    return np.asarray(codes, dtype=np.intp), list(seen)


class Stored(NamedTuple):
    """How a column was stored, to store it the same way again."""

    dtype: str
    ordered: bool
    text: bool
    storage: Storage = "other"
    decimals: int | None = None
    """Of texts of numbers, if all are spelled with as many, and of decimal objects."""
    exact: bool = False
    """Whether cells of an object column are decimal numbers."""
    masked: bool = False
    """Whether it is a column of a masked array."""
    days: bool = False
    """Whether cells of an object column are dates without a time of the day."""

    def to_plain(self) -> tuple[Any, ...]:
        """Return it as JSON holds it; what few columns have is left out of the others."""
        return tuple(self) if any(self[4:]) or self.decimals is not None else tuple(self[:4])


def as_column(name: str, native: Any) -> TableColumn:
    """View a native column, or an array, as a column."""
    if not isinstance(native, np.ndarray):
        native = nw.from_native(native, series_only=True, allow_series=True)
    return TableColumn(name, native)
