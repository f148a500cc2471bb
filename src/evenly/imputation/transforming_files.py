"""Parquet files of any size through a fitted imputer, piece by piece."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evenly._support import EvenlyWarning, Stages
from evenly.engines import open_lazy
from evenly.imputation.cost import fill_seconds
from evenly.imputation.filling import warn_of_cells
from evenly.imputation.rules import RuleLog
from evenly.scaling import left_out
from evenly.tables import Change, select

if TYPE_CHECKING:
    from evenly.imputation.imputer import Imputer
    from evenly.io import Parquet


def transform_parts(imputer: Imputer, files: Parquet, delta: Mapping[Any, Any] | None = None) -> Iterator[Any]:
    """Fill the rows of Parquet files, about 65,000 at a time; warns of columns and cells that the model cannot take."""
    lazy = open_lazy(files.scan())
    assert lazy is not None
    scaler = imputer.scaler_
    columns, extra = select(lazy, [one.label for one in scaler.columns_], by_position=scaler.container_ == "numpy")
    if extra:
        warnings.warn(left_out(extra), EvenlyWarning, stacklevel=3)
    return _transform_batches(imputer, files.batches([column.name for column in columns]), files.n_rows, delta)


def _transform_batches(
    imputer: Imputer, frames: Iterator[Any], n_rows: int, delta: Mapping[Any, Any] | None
) -> Iterator[Any]:
    """Fill Polars frames, split so that predictions use the same chunks of rows, and rounding, as for the whole."""
    rest, size, done, name = None, imputer.ensemble_.chunk_size, 0, f"filling {n_rows:,} rows"
    stages = Stages({name: fill_seconds(n_rows, imputer.n_features_in_, len(imputer.ensemble_.networks))})
    changes, log = list[Change](), RuleLog()
    for frame in frames:
        whole = frame if rest is None else rest.vstack(frame)
        opened = imputer._open_quietly(whole)
        n = len(opened.rows) // size * size
        at = int(opened.rows[n - 1]) + 1 if n else len(whole)  # without a full chunk, all rows are done
        rest = whole[at:]
        if opened.changes and len(rest):  # those of the rest are counted when it is done
            changes += imputer._open_quietly(whole[:at]).changes
        else:
            changes += opened.changes
        with stages.at(name, done / n_rows, (done + at) / n_rows):
            filled = imputer._transform(opened.head(at), delta)
        log.add(opened.rules.log, done)
        done += at
        yield filled
    if rest is not None and len(rest):
        opened = imputer._open_quietly(rest)
        changes += opened.changes
        yield imputer._transform(opened, delta)
        log.add(opened.rules.log, done)
    warn_of_cells(changes, stacklevel=3)
    log.warn(stacklevel=3)
