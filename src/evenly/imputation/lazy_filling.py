"""Tables on engines through a fitted imputer: each worker gets the imputer once, and fills the rows that it has.

What is imputed in a row depends on the row and on what was learned in fit alone, so that partitions and batches get the
same bytes as the whole table in memory.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import EvenlyWarning, TableError, output_container
from evenly.engines import ROWS_AT_ONCE, EngineTable
from evenly.imputation.filling import OpenedColumn, fill, fill_column
from evenly.likelihoods import Likelihood
from evenly.scaling import left_out
from evenly.tables import LazyColumn, as_column, select

if TYPE_CHECKING:
    from evenly.imputation.imputer import Imputer

MOST_SAMPLED = 500_000
"""Rows that are fitted on; of a larger table it is a random sample."""
UNTYPED = ("Null", "null", "Unknown")
"""Types of columns that hold nothing."""


def transform_lazily(imputer: Imputer, table: EngineTable, delta: Mapping[Any, Any] | None) -> Any:
    """Return a frame of the same engine with its missing cells filled, once it is asked for."""
    check_is_fitted(imputer, "scaler_")
    imputer._predictor(delta)  # refuses a wrong delta before any work
    if (wanted := output_container(imputer)) != "default":
        raise TableError(
            f"set_output(transform={wanted!r}) and a lazy frame", "its output is a lazy frame too", "collect it"
        )
    if not table.engine.maps_rows:
        raise TableError(
            f"a frame of {table.engine.name}",
            "imputing maps a function over batches of rows, which is not known for it",
            "give the table to another engine, or collect it",
        )
    if imputer.rules:
        warnings.warn(
            "rules: workers follow them, but do not name rows whose observed cells contradict them",
            EvenlyWarning,
            stacklevel=4,
        )
    scaler = imputer.scaler_
    columns, extra = select(table, [one.label for one in scaler.columns_], by_position=scaler.container_ == "numpy")
    if extra:
        warnings.warn(left_out(extra), EvenlyWarning, stacklevel=4)
    like = _like(imputer, table.engine.empty(table.native), columns)
    return table.engine.map_rows(table.native, FillRows(imputer, delta, like), like)


def sample_table(table: EngineTable, seed: int) -> Any:
    """Return a table on an engine in memory: all of it if it is small, else a random sample, with a warning."""
    if not table.engine.maps_rows:
        raise TableError(f"a frame of {table.engine.name}", "expected a table in memory", "collect it, or some rows")
    n_rows = table.engine.count_rows(table.native)
    if n_rows > MOST_SAMPLED:
        warnings.warn(
            f"fitted to a random sample of about {MOST_SAMPLED:,} of {n_rows:,} rows; classes and rows of groups that "
            "are not in it are unknown. Parquet files are trained on as a whole: fit their path",
            EvenlyWarning,
            stacklevel=4,
        )
    return table.engine.sample_rows(table.native, min(1.0, MOST_SAMPLED / max(n_rows, 1)), seed)


class FillRows:
    """Fills the missing cells of rows, wherever they are.

    Pickled, it is the bytes that `Imputer.save` writes: no code of the imputer is sent but for custom likelihoods, and
    each process that gets it reads it once.
    """

    def __init__(self, imputer: Imputer, delta: Mapping[Any, Any] | None, like: Any) -> None:
        self._imputer: Imputer | None = copy(imputer)  # which another fit does not change
        self.delta = None if delta is None else dict(delta)
        self.like = like
        self.kind = type(imputer)
        given = imputer.likelihoods.values() if isinstance(imputer.likelihoods, Mapping) else ()
        self.likelihoods = tuple(one for one in given if isinstance(one, Likelihood))

    def __call__(self, rows: Any) -> Any:
        frame = nw.from_native(rows, eager_only=True)
        if not len(frame):
            return _retype(nw.to_native(frame), self.like)
        parts = [self._fill(nw.to_native(frame[at : at + ROWS_AT_ONCE])) for at in range(0, len(frame), ROWS_AT_ONCE)]
        if len(parts) == 1:
            return parts[0]
        return nw.to_native(nw.concat([nw.from_native(one, eager_only=True) for one in parts]))

    def _fill(self, rows: Any) -> Any:
        imputer = self._imputer or _load(self)
        opened = imputer._open_quietly(rows)
        filled = imputer._predictor(self.delta).choose(opened.encoded, opened.missing, [imputer._choose])
        return _retype(fill(opened, filled[0], imputer.scaler_, "default"), self.like)

    @cached_property
    def saved(self) -> bytes:
        """The imputer as a file."""
        assert self._imputer is not None
        with tempfile.TemporaryDirectory() as folder:
            self._imputer.save(file := Path(folder) / "imputer.safetensors")
            return file.read_bytes()

    @cached_property
    def checksum(self) -> str:
        """What the imputer is known by."""
        return hashlib.sha256(self.saved).hexdigest()

    @property
    def key(self) -> str:
        """What names the function: the imputer, and what it is asked for."""
        asked = repr((self.delta, nw.from_native(self.like, eager_only=True).schema))
        return hashlib.sha256((self.checksum + asked).encode()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {"saved": self.saved, "checksum": self.checksum} | {**vars(self), "_imputer": None}


MOST_LOADED = 4
"""Imputers that a process keeps of those that it received."""
_LOADED: dict[str, Any] = {}
"""The imputers that this process received last, by their checksums."""
_LOADING = Lock()


def _load(sent: FillRows) -> Imputer:
    """Return the imputer that was sent; a process reads it once."""
    with _LOADING:
        if sent.checksum not in _LOADED:
            while len(_LOADED) >= MOST_LOADED:
                del _LOADED[next(iter(_LOADED))]
            with tempfile.TemporaryDirectory() as folder:
                (file := Path(folder) / "imputer.safetensors").write_bytes(sent.saved)
                _LOADED[sent.checksum] = sent.kind.load(file, likelihoods=sent.likelihoods)
        loaded: Imputer = _LOADED[sent.checksum]
        return loaded


# --- types --------------------------------------------------------------------------------------------------------


def _like(imputer: Imputer, empty: Any, columns: Sequence[LazyColumn]) -> Any:
    """Return an empty table of the columns of fit, in the types that they have once they are filled.

    These are the types of the engine, but for columns that hold nothing, and for types that list their classes and lack
    some of fit.
    """
    frame = nw.from_native(empty, eager_only=True).select([one.name for one in columns])
    filled = {}
    for spec, found in zip(imputer.ensemble_.specs, columns, strict=True):
        name = found.name
        if spec.fitted.features and (found.categories is not None or str(frame[name].dtype) in UNTYPED):
            cells = as_column(name, _one_missing(frame[name]))
            one = OpenedColumn(spec.fitted, cells, np.array([np.nan]), np.array([True]))
            container = frame.implementation.name.lower()
            column = fill_column(one, np.zeros(1), container, imputer.scaler_).native
            filled[name] = nw.to_native(column)[:0]
    return _with_columns(nw.to_native(frame), filled)


def _one_missing(series: Any) -> Any:
    """Return a native column of one missing cell, of the type of another."""
    native = nw.to_native(series)
    if series.implementation.is_polars():
        return native.clear(1)
    if series.implementation.is_pyarrow():
        import pyarrow as pa

        return pa.chunked_array([pa.nulls(1, native.type)])
    return native.reindex([0])


def _with_columns(empty: Any, columns: Mapping[str, Any]) -> Any:
    """Return an empty table with some columns replaced."""
    if not columns:
        return empty
    if hasattr(empty, "with_columns"):
        return empty.with_columns(**columns)
    if hasattr(empty, "assign"):
        return empty.assign(**columns)
    for name, one in columns.items():
        empty = empty.set_column(empty.column_names.index(name), name, one)
    return empty


def _retype(table: Any, like: Any) -> Any:
    """Return a table in the types of another with the same columns."""
    if hasattr(table, "iloc"):
        pairs = [(name, table[name].dtype, like[name].dtype) for name in table.columns]
        # Of classes that Dask does not know, partitions have other ones than its empty frame.
        other = {
            name: wanted
            for name, own, wanted in pairs
            if own != wanted and set(getattr(own, "categories", ())) <= set(getattr(wanted, "categories", ()))
        }
        return table.astype(other) if other else table
    if hasattr(table, "column_names"):
        return table if table.schema == like.schema else table.cast(like.schema)
    return table if table.schema == like.schema else table.cast(like.schema)
