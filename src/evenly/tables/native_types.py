"""Types of columns: by their names, as they are saved, and what cells each of them holds."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np

Wants = Literal["float", "integer", "decimal", "boolean", "text", "anything"]

_PLAIN_ARROW = {
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float", "double", "bool", "string"),
}
"""Arrow types that the name of Narwhals' type stands for."""


class CellType(NamedTuple):
    """What cells a type holds, and between which bounds."""

    wants: Wants
    low: int = 0
    high: int = 0
    scale: int = 0
    """Decimals of a type of decimal numbers."""


def arrow_name(native: Any, known: str) -> str:
    """Return the name of an Arrow type: Narwhals' one, `known`, if that says everything."""
    return known if str(native) in _PLAIN_ARROW else str(native)


def arrow_type(name: str) -> Any:
    """Return the Arrow type of a name, as Arrow or Narwhals spells it; None if there is none.

    Examples
    --------
    >>> arrow_type("decimal128(12, 2)"), arrow_type("Int64"), arrow_type("list<item: int64>")
    (Decimal128Type(decimal128(12, 2)), DataType(int64), None)
    >>> arrow_type("dictionary<values=int64, indices=int32, ordered=0>").value_type
    DataType(int64)
    """
    import pyarrow as pa

    if name in ("Categorical", "Enum"):
        return pa.dictionary(pa.uint32(), pa.string())
    if found := re.fullmatch(r"dictionary<values=(.+), indices=(\w+), ordered=(\d)>", name):
        return pa.dictionary(arrow_type(found[2]), arrow_type(found[1]), found[3] == "1")
    if found := re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)", name):
        return getattr(pa, found[1])(int(found[2]), int(found[3]))
    if found := re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", name):
        return pa.timestamp(found[1], found[2])
    try:
        return pa.type_for_alias({"Float64": "double", "Float32": "float", "Boolean": "bool"}.get(name, name.lower()))
    except ValueError:
        return None


def polars_type(name: str, classes: list[Any] | None) -> Any:
    """Return the Polars type of a name, as Polars or Narwhals spells it; None if there is none.

    Examples
    --------
    >>> polars_type("Decimal(precision=20, scale=2)", None), polars_type("Enum", ["a"]), polars_type("Unknown", None)
    (Decimal(precision=20, scale=2), Enum(categories=['a']), None)
    """
    import polars as pl

    base = name.partition("(")[0]
    if name == "object":
        return pl.Object
    if base == "Enum":
        return pl.Enum(classes) if classes else None
    if found := re.fullmatch(r"Decimal\(precision=(\d+), scale=(\d+)\)", name):
        return pl.Decimal(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"Datetime\(time_unit='(\w+)', time_zone=(?:None|'([^']+)')\)", name):
        return pl.Datetime(found[1], found[2])  # type: ignore[arg-type]  # one of three units
    return None if base in ("Unknown", "Object", "Decimal") else getattr(pl, base, None)


def pandas_name(dtype: Any) -> str:
    """Return the name of a pandas type; those of texts say where they are kept, if that is not the default.

    Examples
    --------
    >>> import pandas as pd
    >>> pandas_name(pd.StringDtype("python")), pandas_name(np.dtype("int64"))
    ('StringDtype(python)', 'int64')
    """
    # Texts whose missing cells are NaN, `str`, are the usual ones of pandas 3: wherever it keeps them by default.
    return f"StringDtype({dtype.storage})" if str(dtype) == "string" and hasattr(dtype, "storage") else str(dtype)


def pandas_type(name: str, classes: list[Any] | None, *, ordered: bool) -> Any:
    """Return the pandas type of a name.

    Examples
    --------
    >>> pandas_type("decimal128(12, 2)[pyarrow]", None, ordered=False)
    decimal128(12, 2)[pyarrow]
    """
    import pandas as pd

    if name == "category":
        return pd.CategoricalDtype(classes, ordered=ordered)
    if name.endswith("[pyarrow]") and (found := arrow_type(name.removesuffix("[pyarrow]"))) is not None:
        return pd.ArrowDtype(found)
    if found := re.fullmatch(r"StringDtype\((\w+)\)", name):
        return pd.StringDtype(found[1])
    if name == "str":  # which pandas 2 takes for NumPy's texts
        return pd.StringDtype(na_value=np.nan)
    return pd.api.types.pandas_dtype(name)


def numpy_type(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a name.

    Examples
    --------
    >>> numpy_type(">f8"), numpy_type("<U3")
    (dtype('>f8'), dtype('<U3'))
    """
    return np.dtypes.StringDType() if name.startswith("StringDType") else np.dtype(name)


# --- cells ------------------------------------------------------------------------------------------------------------


def cell_type(dtype: Any) -> CellType:
    """Return what cells a type of NumPy, pandas, Polars or Arrow holds; what is unknown holds anything.

    Examples
    --------
    >>> cell_type(np.dtype("int8"))
    CellType(wants='integer', low=-128, high=127, scale=0)
    """
    module = type(dtype).__module__ if not isinstance(dtype, type) else dtype.__module__
    if module.startswith("polars"):
        return _of_polars(dtype)
    if module.startswith("pyarrow"):
        return _of_arrow(dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(dtype.pyarrow_dtype)
    if type(dtype).__name__ == "StringDtype":
        return CellType("text")
    dtype = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))
    return _of_numpy(dtype) if isinstance(dtype, np.dtype) else CellType("anything")


def _of_numpy(dtype: np.dtype[Any]) -> CellType:
    if dtype.kind in "iu":
        return _integer(dtype.itemsize * 8, dtype.kind == "i")
    by_kind: dict[str, Wants] = {"f": "float", "b": "boolean", "U": "text", "S": "text", "T": "text"}
    return CellType(by_kind.get(dtype.kind, "anything"))


def _of_polars(dtype: Any) -> CellType:
    import polars as pl

    if dtype.is_integer():
        return _integer(int(re.sub(r"\D", "", str(dtype))), not str(dtype).startswith("U"))
    if dtype.base_type() == pl.Decimal:
        return _decimal(dtype.precision, dtype.scale)
    if dtype.is_float():
        return CellType("float")
    if dtype == pl.Boolean:
        return CellType("boolean")
    return CellType("text" if dtype in (pl.String, pl.Categorical, pl.Enum) else "anything")


def _of_arrow(dtype: Any) -> CellType:
    import pyarrow as pa

    if pa.types.is_dictionary(dtype):
        return _of_arrow(dtype.value_type)
    if pa.types.is_integer(dtype):
        return _integer(dtype.bit_width, pa.types.is_signed_integer(dtype))
    if pa.types.is_decimal(dtype):
        return _decimal(dtype.precision, dtype.scale)
    if pa.types.is_floating(dtype):
        return CellType("float")
    if pa.types.is_boolean(dtype):
        return CellType("boolean")
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return CellType("text" if any(test(dtype) for test in texts) else "anything")


def _integer(bits: int, signed: bool) -> CellType:
    return CellType("integer", -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - 1 if signed else bits) - 1)


def _decimal(precision: int, scale: int) -> CellType:
    return CellType("decimal", -(10**precision) + 1, 10**precision - 1, scale)
