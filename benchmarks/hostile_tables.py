"""Hostile tables of every container and type, one for each seed, for `fuzz_tables.py`."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

Rng = np.random.Generator
Cells = list[Any]

EXTREMES = (1.7e308, -1.7e308, 5e-324, -5e-324, 1e-300, 1e300, 2.0**53, 2.0**53 + 2, -0.0, 0.0, 1e16, 0.1)
BOUNDS = (2**63 - 1, -(2**63), 2**63 - 2, 2**53 + 1, -(2**53) - 1, 0, -1, 1)
WORDS = (
    "Yes",
    "yes ",
    "YES",
    "",
    " ",
    "?",
    "NA",
    "é😀",
    "<b>&amp;</b>",
    "a\x00b",
    "1.50",
    "01",
    "-",
    "nan",
    "True",
    "\n",
)


class Grumpy:
    """A cell whose comparison raises."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __ne__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


# --- cells ------------------------------------------------------------------------------------------------------------


def some_floats(rng: Rng, n: int) -> Cells:
    style = rng.integers(9)
    if style == 0:
        cells = rng.choice(EXTREMES, n)
    elif style == 1:
        cells = np.full(n, rng.choice([0.0, 1.5, -3.0, 1e300]))
    elif style == 2:
        cells = rng.normal(size=n).round(1)
    elif style == 3:
        cells = np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n))
    elif style == 4:
        cells = rng.poisson(3.0, n).astype(float)
    elif style == 5:
        cells = rng.lognormal(0.0, 3.0, n)
    elif style == 6:
        cells = 50.0 * rng.integers(1, 40, n)
    elif style == 7:
        cells = np.where(rng.random(n) < 0.5, -0.0, 0.0) + rng.integers(0, 2, n)
    else:
        cells = rng.normal(1e9, 1e-3, n)
    return cells.tolist()  # type: ignore[no-any-return]


def some_ints(rng: Rng, n: int, low: int = -(2**63), high: int = 2**63 - 1) -> Cells:
    style = rng.integers(5)
    if style == 0:
        cells = [rng.choice(np.array([low, high, high - 1, low + 1], object)) for _ in range(n)]
    elif style == 1:
        cells = rng.integers(0, 3, n).tolist()
    elif style == 2:
        cells = (rng.permutation(n) + 1).tolist()
    elif style == 3:
        cells = (10 * rng.integers(0, 12, n)).tolist()
    else:
        cells = [
            rng.choice(np.array([one for one in (*BOUNDS, high, low) if low <= one <= high], object)) for _ in range(n)
        ]
    return [min(max(int(one), low), high) for one in cells]


def some_texts(rng: Rng, n: int) -> Cells:
    style = rng.integers(6)
    if style == 0:
        return [str(one) for one in rng.choice(WORDS, n)]
    if style == 1:
        return [f"{one:.2f}" for one in rng.normal(10.0, 3.0, n)]
    if style == 2:
        return [f"text {i} of many words" for i in range(n)]
    if style == 3:
        return [f"2024-01-{1 + i % 28:02d}" for i in range(n)]
    if style == 4:
        return [str(one) for one in some_ints(rng, n)]
    return [str(one) for one in rng.choice(["a", "b", "c"], n)]


def some_objects(rng: Rng, n: int) -> Cells:
    pools: list[Callable[[], Any]] = [
        lambda: [10**400, -(10**309), 2**70, 3, 5][rng.integers(5)],
        lambda: [2**70, 2**64 + 1, 3, 5, -(2**80)][rng.integers(5)],
        lambda: decimal.Decimal(["1.50", "2.25", "-3.00", "1E+400", "0.01"][rng.integers(5)]),
        lambda: decimal.Decimal(["1.50", "2.25", "3.75", "10.00"][rng.integers(4)]),
        lambda: decimal.Decimal(["sNaN", "NaN", "1.5", "2.5", "-sNaN12"][rng.integers(5)]),
        lambda: decimal.Decimal(["Infinity", "1.5"][rng.integers(2)]),
        lambda: ["a\ud800", "b", "\udfff"][rng.integers(3)],
        lambda: [b"a", b"\xff", b""][rng.integers(3)],
        lambda: [Grumpy(), "a", 1.5][rng.integers(3)],
        lambda: [1, "1", 1.0, True, "a"][rng.integers(5)],
        lambda: [True, False, np.True_][rng.integers(3)],
        lambda: [1.5, 2, np.float32(0.1), np.int8(3), decimal.Decimal("0.5")][rng.integers(5)],
        lambda: [1 + 2j, 1.0][rng.integers(2)],
        lambda: [[1], (2, 3), {"a": 1}, {4}][rng.integers(4)],
        lambda: [datetime.date(2024, 1, 3), datetime.datetime(2024, 1, 3)][rng.integers(2)],
        lambda: [np.datetime64("2024-01-03"), pd.NaT, pd.Timestamp("2024")][rng.integers(3)],
        lambda: [np.zeros(2), np.ones(3)][rng.integers(2)],
        lambda: [np.str_("a"), "b", "c"][rng.integers(3)],
        lambda: [np.float64("nan"), np.float64(2.5), 1.5][rng.integers(3)],
        lambda: ["1.50", 1.5, 2][rng.integers(3)],
    ]
    pool = pools[rng.integers(len(pools))]
    return [pool() for _ in range(n)]


def with_gaps(rng: Rng, cells: Cells, gap: Any = None) -> Cells:
    share = rng.choice([0.0, 0.3, 0.3, 0.3, 0.9, 1.0], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05])
    return [gap if rng.random() < share else one for one in cells]


# --- columns of each library ------------------------------------------------------------------------------------------


def finite(cells: Cells, most: float) -> Cells:
    return [one if one is None or not abs(one) > most else 1.5 for one in cells]


def decimals(rng: Rng, n: int, scale: int = 2) -> Cells:
    return [decimal.Decimal(int(one)).scaleb(-scale) for one in rng.integers(-(10**6), 10**6, n)]


def dates(rng: Rng, n: int) -> Cells:
    return [datetime.datetime(2024, 1, 1) + datetime.timedelta(int(one)) for one in rng.integers(0, 900, n)]


INTS = {
    f"{sign}int{bits}": (-(2 ** (bits - 1)) if not sign else 0, 2 ** (bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def pandas_column(rng: Rng, n: int) -> Any:
    name = list(INTS)[rng.integers(len(INTS))]
    low, high = INTS[name]
    nullable = name.replace("u", "U").replace("int", "Int") if name[0] == "u" else name.capitalize()
    styles: list[Callable[[], Any]] = [
        lambda: pd.Series(with_gaps(rng, some_floats(rng, n), np.nan), dtype="float64"),
        lambda: pd.Series(with_gaps(rng, finite(some_floats(rng, n), 1e38), np.nan), dtype="float32"),
        lambda: pd.Series(with_gaps(rng, finite(some_floats(rng, n), 6e4), np.nan), dtype="float16"),
        lambda: pd.Series(some_ints(rng, n, low, high), dtype=name),
        lambda: pd.Series(with_gaps(rng, some_ints(rng, n, low, high)), dtype=nullable),
        lambda: pd.Series(with_gaps(rng, some_ints(rng, n, low, high)), dtype=f"{name}[pyarrow]"),
        lambda: pd.Series(with_gaps(rng, some_floats(rng, n)), dtype=str(rng.choice(["Float64", "double[pyarrow]"]))),
        lambda: pd.Series(with_gaps(rng, finite(some_floats(rng, n), 1e38)), dtype="Float32"),
        lambda: pd.Series(rng.random(n) < 0.5),
        lambda: pd.Series(
            with_gaps(rng, (rng.random(n) < 0.5).tolist()),
            dtype=str(rng.choice(["boolean", "bool[pyarrow]", "object"])),
        ),
        lambda: pd.Series(
            with_gaps(rng, some_texts(rng, n)), dtype=str(rng.choice(["object", "string", "string[pyarrow]", "str"]))
        ),
        lambda: pd.Series(with_gaps(rng, some_texts(rng, n)), dtype=pd.ArrowDtype(pa.string())),
        lambda: pd.Series(with_gaps(rng, some_texts(rng, n)), dtype="category"),
        lambda: pd.Series(pd.Categorical(with_gaps(rng, some_ints(rng, n, -4, 4)), ordered=bool(rng.integers(2)))),
        lambda: pd.Series(pd.cut(rng.normal(size=n), [-9.0, -0.5, 0.5, 9.0])),
        lambda: pd.Series(with_gaps(rng, dates(rng, n)), dtype="category"),
        lambda: pd.Series(with_gaps(rng, some_objects(rng, n)), dtype=object),
        lambda: pd.Series(with_gaps(rng, some_ints(rng, n)), dtype=object),
        lambda: pd.Series(with_gaps(rng, decimals(rng, n)), dtype=object),
        lambda: pd.Series(with_gaps(rng, decimals(rng, n)), dtype=pd.ArrowDtype(pa.decimal128(12, 2))),
        lambda: pd.Series(
            pd.arrays.ArrowExtensionArray(pa.array(with_gaps(rng, some_texts(rng, n)), pa.string()).dictionary_encode())
        ),
        lambda: pd.Series(
            pd.arrays.ArrowExtensionArray(
                pa.array(with_gaps(rng, some_ints(rng, n, -9, 9)), pa.int64()).dictionary_encode()
            )
        ),
        lambda: pd.Series(with_gaps(rng, dates(rng, n)), dtype="datetime64[ns]"),
        lambda: pd.Series(with_gaps(rng, dates(rng, n)), dtype="datetime64[s, UTC]"),
        lambda: pd.Series(with_gaps(rng, dates(rng, n)), dtype=pd.ArrowDtype(pa.timestamp("ns"))),
        lambda: pd.Series(pd.to_timedelta(rng.integers(0, 9, n), unit="s")),
        lambda: pd.Series(pd.period_range("2020", periods=n)),
        lambda: pd.Series(pd.arrays.SparseArray(with_gaps(rng, finite(some_floats(rng, n), 1e300), np.nan))),
        lambda: pd.Series(pd.arrays.SparseArray(rng.poisson(1.0, n))),
        lambda: pd.Series(rng.normal(size=n) + 1j),
        lambda: pd.Series(with_gaps(rng, [[1, 2]] * n), dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        lambda: pd.Series(with_gaps(rng, [b"a", b"b"] * n)[:n], dtype=pd.ArrowDtype(pa.binary())),
    ]
    return styles[rng.integers(len(styles))]()


def polars_column(rng: Rng, n: int) -> pl.Series:
    name = list(INTS)[rng.integers(len(INTS))]
    low, high = INTS[name]
    native = getattr(pl, name.replace("uint", "UInt") if name[0] == "u" else name.capitalize())
    gaps = rng.choice(["null", "nan"])
    styles: list[Callable[[], pl.Series]] = [
        lambda: pl.Series(
            with_gaps(rng, some_floats(rng, n), None if gaps == "null" else float("nan")), dtype=pl.Float64
        ),
        lambda: pl.Series(with_gaps(rng, finite(some_floats(rng, n), 1e38)), dtype=pl.Float32),
        lambda: pl.Series(with_gaps(rng, some_ints(rng, n, low, high)), dtype=native),
        lambda: pl.Series(with_gaps(rng, some_ints(rng, n, -(2**100), 2**100)), dtype=pl.Int128),
        lambda: pl.Series(with_gaps(rng, (rng.random(n) < 0.5).tolist()), dtype=pl.Boolean),
        lambda: pl.Series(with_gaps(rng, some_texts(rng, n)), dtype=pl.String),
        lambda: pl.Series(with_gaps(rng, some_texts(rng, n)), dtype=pl.Categorical),
        lambda: pl.Series(with_gaps(rng, rng.choice(["a", "b", "c"], n).tolist()), dtype=pl.Enum(["b", "a", "c", "d"])),
        lambda: pl.Series(with_gaps(rng, decimals(rng, n)), dtype=pl.Decimal(20, 2)),
        lambda: pl.Series(with_gaps(rng, decimals(rng, n, 0)), dtype=pl.Decimal(38, 0)),
        lambda: pl.Series(with_gaps(rng, [one.date() for one in dates(rng, n)]), dtype=pl.Date),
        lambda: pl.Series(with_gaps(rng, dates(rng, n)), dtype=pl.Datetime("ns")),
        lambda: pl.Series(with_gaps(rng, [datetime.timedelta(1)] * n), dtype=pl.Duration),
        lambda: pl.Series(with_gaps(rng, [datetime.time(1, 2)] * n), dtype=pl.Time),
        lambda: pl.Series(with_gaps(rng, [[1, 2], [3]] * n)[:n], dtype=pl.List(pl.Int64)),
        lambda: pl.Series(with_gaps(rng, [[1, 2]] * n), dtype=pl.Array(pl.Int64, 2)),
        lambda: pl.Series(with_gaps(rng, [{"a": 1}] * n), dtype=pl.Struct({"a": pl.Int64})),
        lambda: pl.Series(with_gaps(rng, [b"a", b"\xff"] * n)[:n], dtype=pl.Binary),
        lambda: pl.Series([None] * n, dtype=pl.Null),
        lambda: pl.Series(with_gaps(rng, some_objects(rng, n)), dtype=pl.Object),
        lambda: pl.Series(with_gaps(rng, some_ints(rng, n)), dtype=pl.Object),
    ]
    return styles[rng.integers(len(styles))]()


def arrow_column(rng: Rng, n: int) -> Any:
    name = list(INTS)[rng.integers(len(INTS))]
    low, high = INTS[name]
    texts = [pa.string(), pa.large_string(), pa.string_view()][rng.integers(3)]
    styles: list[Callable[[], Any]] = [
        lambda: pa.array(with_gaps(rng, some_floats(rng, n)), pa.float64()),
        lambda: pa.array(with_gaps(rng, finite(some_floats(rng, n), 1e38)), pa.float32()),
        lambda: pa.array(np.array(finite(some_floats(rng, n), 6e4), np.float16)),
        lambda: pa.array(with_gaps(rng, some_ints(rng, n, low, high)), pa.type_for_alias(name)),
        lambda: pa.array(with_gaps(rng, (rng.random(n) < 0.5).tolist()), pa.bool_()),
        lambda: pa.array(with_gaps(rng, some_texts(rng, n)), texts),
        lambda: pa.array(with_gaps(rng, some_texts(rng, n)), pa.string()).dictionary_encode(),
        lambda: pa.array(with_gaps(rng, some_ints(rng, n, -9, 9)), pa.int64()).dictionary_encode(),
        lambda: pa.array(with_gaps(rng, some_ints(rng, n)), pa.int64()).dictionary_encode(),
        lambda: pa.array(with_gaps(rng, finite(some_floats(rng, n), 1e300)), pa.float64()).dictionary_encode(),
        lambda: pa.array(with_gaps(rng, decimals(rng, n)), pa.decimal128(12, 2)),
        lambda: pa.array(with_gaps(rng, decimals(rng, n)), pa.decimal256(40, 5)),
        lambda: pa.array(with_gaps(rng, dates(rng, n)), pa.timestamp("ns", "UTC")),
        lambda: pa.array(with_gaps(rng, dates(rng, n)), pa.date32()),
        lambda: pa.array(with_gaps(rng, rng.integers(0, 9, n).tolist()), pa.duration("ns")),
        lambda: pa.array(with_gaps(rng, [[1, 2]] * n), pa.list_(pa.int64())),
        lambda: pa.array(with_gaps(rng, [{"a": 1}] * n), pa.struct([("a", pa.int64())])),
        lambda: pa.array(with_gaps(rng, [[("a", 1)]] * n), pa.map_(pa.string(), pa.int64())),
        lambda: pa.array(with_gaps(rng, [b"a", b"\xff"] * n)[:n], pa.binary()),
        lambda: pa.nulls(n),
        lambda: (
            pa.array(with_gaps(rng, some_texts(rng, n)), pa.string())
            .dictionary_encode()
            .cast(pa.dictionary(pa.int8(), pa.large_string()))
        ),
    ]
    column = styles[rng.integers(len(styles))]()
    return pa.chunked_array([column[: n // 2], column[n // 2 :]]) if n > 1 and rng.random() < 0.3 else column


NAMES: tuple[Any, ...] = (
    "a",
    "a",
    "",
    " ",
    "x0",
    "1",
    1,
    1.5,
    None,
    ("p", 1),
    "<script>alert(1)</script>",
    "é😀",
    "a=b",
    "\ud800",
    "a\nb",
    float("nan"),
    True,
    b"n",
    "id",
    "x" * 300,
)


def names(rng: Rng, k: int, *, texts: bool) -> list[Any]:
    if rng.random() < 0.7:
        return [f"c{j}" for j in range(k)]
    some = [one for one in NAMES if isinstance(one, str) or not texts]
    return (
        [some[i] for i in rng.choice(len(some), k, replace=bool(rng.random() < 0.3))]
        if k <= len(some)
        else [f"c{j}" for j in range(k)]
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def make_pandas(rng: Rng, n: int, k: int) -> Any:
    frame = pd.DataFrame({j: pandas_column(rng, n) for j in range(k)}, index=range(n))
    frame.columns = pd.Index(names(rng, k, texts=False), dtype=object, tupleize_cols=bool(rng.random() < 0.3))
    if rng.random() < 0.3:
        frame.index = pd.Index([["a", 1.5, None][rng.integers(3)] for _ in range(n)], dtype=object)
    if rng.random() < 0.03 and k:
        return frame.iloc[:, 0]
    return frame


def make_polars(rng: Rng, n: int, k: int) -> Any:
    labels = list(dict.fromkeys(names(rng, k, texts=True)))
    labels = [one for one in labels if "\ud800" not in one]
    frame = pl.DataFrame({label: polars_column(rng, n) for label in labels})
    return frame.to_series(0) if rng.random() < 0.03 and labels else frame


def make_arrow(rng: Rng, n: int, k: int) -> Any:
    labels = [one for one in names(rng, k, texts=True) if "\ud800" not in one]
    return pa.Table.from_arrays([arrow_column(rng, n) for _ in labels], names=labels)


def masked(plain: Any, mask: Any, *, hard_mask: bool = False) -> Any:
    return np.ma.MaskedArray(plain, mask=mask, hard_mask=hard_mask)


def make_numpy(rng: Rng, n: int, k: int) -> Any:
    def cells(some: Callable[[Rng, int], Cells]) -> Cells:
        return [some(rng, n) for _ in range(k)]

    def grid(some: Callable[[Rng, int], Cells], dtype: Any, gap: Any = None) -> Any:
        columns = [with_gaps(rng, one, gap) if gap is not None else one for one in cells(some)]
        out = np.empty((n, k), dtype)
        for j, one in enumerate(columns):
            for i, cell in enumerate(one):
                out[i, j] = cell
        return out

    name = list(INTS)[rng.integers(len(INTS))]
    low, high = INTS[name]
    mask = rng.random((n, k)) < 0.3

    def floats() -> Any:
        return grid(some_floats, np.float64, np.nan)

    styles: list[Callable[[], Any]] = [
        floats,
        lambda: np.asfortranarray(floats()),
        lambda: floats().astype(">f8"),
        lambda: grid(lambda r, m: finite(some_floats(r, m), 1e38), np.float32, np.nan),
        lambda: grid(lambda r, m: finite(some_floats(r, m), 6e4), np.float16, np.nan),
        lambda: floats().astype(np.longdouble),
        lambda: grid(lambda r, m: some_ints(r, m, low, high), name),
        lambda: grid(lambda r, m: some_ints(r, m, low, high), name).astype(np.dtype(name).newbyteorder(">")),
        lambda: rng.random((n, k)) < 0.5,
        lambda: grid(some_texts, "U24", "?"),
        lambda: np.char.encode(grid(some_texts, "U24", ""), "utf-8") if n * k else np.empty((n, k), "S3"),
        lambda: rng.choice(np.array([b"a", b"\xff\xfe"]), (n, k)),
        lambda: np.datetime64("2024-01-01", "ns") + rng.integers(0, 99, (n, k)),
        lambda: np.where(mask, np.datetime64("NaT"), np.datetime64("2024-01-01", "D") + rng.integers(0, 99, (n, k))),
        lambda: rng.integers(0, 99, (n, k)).astype("m8[s]"),
        lambda: grid(lambda r, m: with_gaps(r, some_objects(r, m)), object),
        lambda: grid(lambda r, m: with_gaps(r, some_ints(r, m)), object),
        lambda: grid(lambda r, m: with_gaps(r, some_texts(r, m)), object),
        lambda: masked(floats(), mask=mask),
        lambda: masked(grid(lambda r, m: some_ints(r, m, low, high), name), mask=mask, hard_mask=bool(rng.integers(2))),
        lambda: masked(grid(some_texts, "U24"), mask=mask),
        lambda: masked(grid(some_texts, object), mask=mask),
        lambda: masked(rng.integers(0, 2, (n, k)).astype(bool), mask=mask),
        lambda: np.matrix(floats()),
        lambda: sparse.csr_matrix(np.nan_to_num(floats())),
        lambda: sparse.coo_array(np.nan_to_num(floats())),
        lambda: floats().ravel(),
        lambda: floats()[None],
        lambda: floats() + 1j,
        lambda: np.zeros(n, dtype=[("a", "f8"), ("b", "U3")]),
        lambda: floats().tolist(),
        lambda: np.array([[b"ab"] * k] * n, "V2").reshape(n, k),
        lambda: grid(some_texts, np.dtypes.StringDType()),
    ]
    table = styles[rng.integers(len(styles))]()
    if isinstance(table, np.ndarray) and rng.random() < 0.3:
        table.flags.writeable = False
    return table


MAKERS = (make_pandas, make_pandas, make_polars, make_arrow, make_numpy)
SHAPES = ((0, 2), (1, 1), (3, 0), (2, 2), (1, 3), (12, 2), (30, 3), (30, 3), (60, 2), (60, 4))


def make_table(seed: int) -> Any:
    """Return the hostile table of a seed."""
    rng = np.random.default_rng(seed)
    n, k = SHAPES[rng.integers(len(SHAPES))]
    return MAKERS[rng.integers(len(MAKERS))](rng, n, k)
