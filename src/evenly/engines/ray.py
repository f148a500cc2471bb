"""Ray: datasets in blocks of Arrow, whose rows are mapped by its workers; it answers no queries."""

from __future__ import annotations

import sys
from typing import Any

import narwhals as nw

from evenly._support import require
from evenly.engines.base import Engine
from evenly.engines.batches import ROWS_AT_ONCE, RowFunction
from evenly.tables import LazyColumn


class Ray(Engine):
    """Datasets of Ray."""

    name = "ray"
    answers_queries = False
    maps_rows = True

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a `ray.data.Dataset`; whoever has one has imported Ray."""
        dataset = getattr(sys.modules.get("ray.data"), "Dataset", None)
        return dataset is not None and isinstance(native, dataset)

    def labels(self, native: Any) -> list[Any]:
        """Return the names of a dataset's columns."""
        return list(native.columns() or ())

    def columns(self, native: Any) -> list[LazyColumn]:
        """Describe the columns by an empty table."""
        types = nw.from_native(self.empty(native), eager_only=True).schema
        return [self.describe(native, name, dtype) for name, dtype in types.items()]

    def count_rows(self, native: Any) -> int:
        """Return the number of rows of a dataset."""
        return int(native.count())

    def empty(self, native: Any) -> Any:
        """Return an Arrow table without rows; blocks of pandas do not say which objects are texts."""
        arrow, known = require("pyarrow", "engines"), native.schema().base_schema
        if not isinstance(known, arrow.Schema):
            known = arrow.schema([(name, _arrow_type(one)) for name, one in zip(known.names, known.types, strict=True)])
        return known.remove_metadata().empty_table()

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Apply the function to batches; it is put into Ray's store once, where each worker finds it."""
        sent = _Sent(require("ray", "ray").put(function), function.key)
        columns = native.select_columns(like.column_names)
        return columns.map_batches(sent, batch_format="pyarrow", batch_size=ROWS_AT_ONCE)

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return a random share of each block."""
        chosen = native if share >= 1.0 else native.random_sample(share, seed=seed)
        arrow, ray = require("pyarrow", "engines"), require("ray", "ray")
        tables = [one for one in ray.get(chosen.to_arrow_refs()) if one.num_rows]
        return arrow.concat_tables(tables).replace_schema_metadata(None)


MOST_RECEIVED = 4
"""Functions that a worker keeps."""
_RECEIVED: dict[str, RowFunction] = {}
"""The functions that this worker received last, by their keys."""


class _Sent:
    """A function in Ray's store, as workers get it."""

    def __init__(self, place: Any, key: str) -> None:
        self.place, self.key = place, key

    def __call__(self, rows: Any) -> Any:
        if self.key not in _RECEIVED:
            while len(_RECEIVED) >= MOST_RECEIVED:
                del _RECEIVED[next(iter(_RECEIVED))]
            _RECEIVED[self.key] = require("ray", "ray").get(self.place)
        return _RECEIVED[self.key](rows)


def _arrow_type(dtype: Any) -> Any:
    """Return Arrow's type of a column of pandas; null, if only its cells know."""
    arrow, pd = require("pyarrow", "engines"), require("pandas", "engines")
    return arrow.Array.from_pandas(pd.Series([], dtype=dtype)).type
