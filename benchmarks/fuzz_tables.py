"""Checks the library's promises on hostile tables: `run_case(seed)` returns None, or one line that says what is wrong.

    python benchmarks/fuzz_tables.py 0 2000

The promises: the imputer returns the same container, labels and types; observed cells are untouched, to the bit; no
modelled column keeps a missing cell; the scaler's way there and back ends in the same types, classes and numbers; and
whatever cannot be treated is refused by an `EvenlyError`, not by an error of a dependency.
"""

from __future__ import annotations

import decimal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hostile_tables import Cells, make_table
from scipy import sparse

from evenly import EvenlyError, EvenlyWarning, Imputer, LipschitzScaler, inspect_table
from evenly.tables import MISSING_MARKERS

# --- what a table holds, for comparison -------------------------------------------------------------------------------


class Held(NamedTuple):
    """One column: its label, type, and cells as texts that differ if a bit differs."""

    label: str
    dtype: str
    cells: list[str]
    gone: list[bool]
    numbers: list[float | None]


def spell(cell: Any) -> str:
    if isinstance(cell, (np.bool_, np.float64, np.int64, np.str_)):
        cell = cell.item()
    if isinstance(cell, tuple):
        return f"tuple {[str(one) for one in cell]}"
    try:
        return f"{type(cell).__name__} {cell!r}"
    except Exception:
        return f"{type(cell).__name__} at {id(cell)}"


def is_gone(cell: Any) -> bool:
    if cell is None or cell is pd.NA or cell is pd.NaT or cell is np.ma.masked:
        return True
    if isinstance(cell, (str, bytes)):
        text = cell if isinstance(cell, str) else cell.decode("utf-8", "replace")
        return text.strip() in MISSING_MARKERS
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    return isinstance(cell, (float, np.floating, np.datetime64, np.timedelta64)) and bool(cell != cell)


def number(cell: Any) -> float | None:
    try:
        return None if is_gone(cell) or isinstance(cell, complex) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def held(label: Any, dtype: Any, cells: Cells) -> Held:
    return Held(
        spell(label),
        str(dtype),
        [spell(one) for one in cells],
        [is_gone(one) for one in cells],
        [number(one) for one in cells],
    )


def columns_of(table: Any) -> Iterator[Held]:
    """Yield what each column holds."""
    if isinstance(table, pd.DataFrame):
        for j in range(table.shape[1]):
            series = table.iloc[:, j]
            yield held(table.columns[j], repr(series.dtype), list(series.array))
    elif isinstance(table, pl.DataFrame):
        for series in table.get_columns():
            cells = series.to_physical().to_list() if series.dtype.is_temporal() else series.to_list()
            yield held(series.name, series.dtype, cells)
    elif isinstance(table, (pa.Table, pa.RecordBatch)):
        for label, column in zip(table.column_names, table.columns, strict=True):
            when = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
            yield held(label, column.type, [one.value if when else one.as_py() for one in column])
    else:
        for j in range(table.shape[1]):
            masked = isinstance(table, np.ma.MaskedArray)
            yield held(j, f"{table.dtype!r} {'masked' if masked else ''}", [table[i, j] for i in range(len(table))])


# --- promises ---------------------------------------------------------------------------------------------------------


def check_filled(before: list[Held], full: Any, kinds: Sequence[str], what: str) -> str | None:
    """Say what is wrong with a filled table."""
    after = list(columns_of(full))
    if [one.label for one in after] != [one.label for one in before]:
        return f"{what}: labels {[one.label for one in after]} instead of {[one.label for one in before]}"
    for old, new, kind in zip(before, after, kinds, strict=True):
        empty = all(old.gone)
        if new.dtype != old.dtype and not empty:
            return f"{what}: type {new.dtype} instead of {old.dtype}"
        if len(new.cells) != len(old.cells):
            return f"{what}: {len(new.cells)} rows instead of {len(old.cells)}"
        for i, gone in enumerate(old.gone):
            if (kind == "ignore" or not gone) and old.cells[i] != new.cells[i]:
                return f"{what}: {old.dtype} cell {old.cells[i]} became {new.cells[i]} ({kind})"
            if kind != "ignore" and not empty and new.gone[i]:
                return f"{what}: {old.dtype} cell {old.cells[i]} stayed missing ({kind})"
    return None


def check_restored(before: list[Held], back: Any, kinds: Sequence[str]) -> str | None:
    """Say what is wrong with a table that was scaled and restored."""
    after = list(columns_of(back))
    if [one.label for one in after] != [one.label for one in before]:
        return f"inverse_transform: labels {[one.label for one in after]} instead of {[one.label for one in before]}"
    for old, new, kind in zip(before, after, kinds, strict=True):
        if new.dtype != old.dtype and not all(old.gone):
            return f"inverse_transform: type {new.dtype} instead of {old.dtype}"
        size = max((abs(one) for one in old.numbers if one is not None), default=0.0)
        for i, gone in enumerate(old.gone):
            first, last = old.numbers[i], new.numbers[i]
            if kind in ("real", "positive", "count"):
                near = first is not None and last is not None and abs(last - first) <= 1e-6 * size + 1e-9
                if not gone and not near:
                    return f"inverse_transform: {old.dtype} cell {old.cells[i]} became {new.cells[i]} (up to {size})"
            elif not gone and old.cells[i] != new.cells[i] and (first is None or first != last):
                return f"inverse_transform: {old.dtype} cell {old.cells[i]} became {new.cells[i]} ({kind})"
            if gone and not new.gone[i]:
                return f"inverse_transform: missing {old.dtype} cell became {new.cells[i]} ({kind})"
    return None


def expected_type(table: Any) -> type:
    if isinstance(table, (list, np.matrix)):
        return np.ndarray
    return pa.Table if isinstance(table, pa.RecordBatch) else type(table)


def check_imputer(table: Any, before: list[Held] | None) -> str | None:
    imputer = Imputer("marginal", random_state=0)
    full = imputer.fit_transform(table)
    if before is None:
        return f"fit took a {type(table).__name__} of shape {np.shape(table)}"
    kinds = [one.kind for one in imputer.schema_.columns]
    tables = {"transform": full, "sample": imputer.sample(table, 1)[0]}
    tables["low"], tables["high"] = imputer.interval(table)
    if wrong := check_new_rows(imputer, table, before, kinds):
        return wrong
    for what, one in tables.items():
        if type(one) is not expected_type(table):
            return f"{what}: a {type(one).__name__} instead of a {type(table).__name__}"
        if wrong := check_filled(before, one, kinds, what):
            return wrong
    return None


def check_new_rows(imputer: Imputer, table: Any, before: list[Held], kinds: Sequence[str]) -> str | None:
    """Say what is wrong with the first rows, imputed on their own by an imputer that was fitted on all."""
    n = 1 + len(before[0].cells) // 3
    some = table[:n] if not isinstance(table, pa.Table) else table.slice(0, n)
    full = imputer.transform(some)
    empty = [all(one.gone) for one in before]
    first = [one._replace(cells=one.cells[:n], gone=one.gone[:n], numbers=one.numbers[:n]) for one in before]
    for old, new, kind, never in zip(first, columns_of(full), kinds, empty, strict=True):
        if kind != "ignore" and not never and any(new.gone):
            return f"new rows: a {old.dtype} cell stayed missing ({kind})"
        if new.dtype != old.dtype and not all(old.gone):
            return f"new rows: type {new.dtype} instead of {old.dtype}"
        if any(a != b for a, b, gone in zip(old.cells, new.cells, old.gone, strict=True) if not gone):
            return f"new rows: an observed {old.dtype} cell changed ({kind})"
    return None


def check_scaler(table: Any, before: list[Held] | None, method: str) -> str | None:
    scaler = LipschitzScaler(method, passthrough="keep", random_state=0).fit(table)
    if before is None:
        return f"the scaler took a {type(table).__name__} of shape {np.shape(table)}"
    scaled = scaler.transform(table)
    back = scaler.inverse_transform(scaled)
    for what, one in (("transform", scaled), ("inverse_transform", back)):
        features = np.ndarray if what == "transform" and isinstance(table, np.ndarray) else expected_type(table)
        if type(one) is not features:  # missing features of a masked array are NaN
            return f"scaler's {what}: a {type(one).__name__} instead of a {type(table).__name__}"
    return check_restored(before, back, [one.kind for one in scaler.schema_.columns])


def check_inspection(table: Any) -> str | None:
    found = inspect_table(table)
    return None if found.n_rows == len(table) else f"inspect_table: {found.n_rows} rows instead of {len(table)}"


def run_case(seed: int) -> str | None:
    """Check all promises on the table of a seed; returns None if they hold, else what went wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = make_table(seed)
        before = None
        if hasattr(table, "shape") and len(table.shape) == 2 and not sparse.issparse(table):
            before = list(columns_of(np.asarray(table) if isinstance(table, np.matrix) else table))
        elif isinstance(table, list) and table and table[0]:
            before = list(columns_of(np.asarray(table)))
    method = ("lip-gamma", "lip-none", "std-none", "lip-bern")[seed % 4]
    checks: list[Callable[[], str | None]] = [
        lambda: check_imputer(table, before),
        lambda: check_scaler(table, before, method),
        lambda: check_inspection(table),
    ]
    for check in checks:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", EvenlyWarning)
            try:
                wrong = check()
            except EvenlyError as error:
                wrong = None if str(error).isprintable() or str(error) else f"an error without words: {error!r}"
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                wrong = f"{type(error).__name__}: {str(error)[:150]}"
        if wrong:
            return f"seed {seed}: {wrong}".encode("utf-8", "backslashreplace").decode().replace("\n", " ")
    return None


if __name__ == "__main__":
    first, last = int(sys.argv[1]), int(sys.argv[2])
    start = time.perf_counter()
    wrong = [found for seed in range(first, last) if (found := run_case(seed)) is not None]
    print(*wrong, sep="\n")
    each = 1e3 * (time.perf_counter() - start) / (last - first)
    print(f"{len(wrong)} of {last - first} cases went wrong; {each:.0f} ms each")
    sys.exit(bool(wrong))
