"""Spark, in the active session if there is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from narwhals.dependencies import is_pyspark_connect_dataframe, is_pyspark_dataframe

from evenly._support import require
from evenly.engines.base import FileEngine
from evenly.engines.batches import RowFunction, map_record_batches
from evenly.io import as_table_error

SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
"""Of a session that is started here."""


class Spark(FileEngine):
    """Dataframes of PySpark, classic or by Spark Connect."""

    name = "spark"
    maps_rows = True

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is a dataframe of PySpark."""
        return is_pyspark_dataframe(native) or is_pyspark_connect_dataframe(native)

    def empty(self, native: Any) -> Any:
        """Return an Arrow table without rows."""
        return native.limit(0).toArrow()

    def map_rows(self, native: Any, function: RowFunction, like: Any) -> Any:
        """Apply the function to the batches of each partition; it is broadcast, and else sent with the query."""
        types = require("pyspark.sql.types", "spark")
        columns = native.select([f"`{name.replace('`', '``')}`" for name in like.column_names])
        schema = types.StructType([types.StructField(one.name, one.dataType) for one in columns.schema.fields])
        if not is_pyspark_dataframe(native):  # Spark Connect has no broadcasts
            return columns.mapInArrow(_mapper(lambda: function), schema)
        shared = native.sparkSession.sparkContext.broadcast(function)
        return columns.mapInArrow(_mapper(lambda: shared.value), schema)

    def sample_rows(self, native: Any, share: float, seed: int) -> Any:
        """Return a random share of each partition."""
        chosen = native if share >= 1.0 else native.sample(fraction=share, seed=seed)
        return chosen.toArrow()

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """Give the active session, or start one that stops in the end."""
        sql = require("pyspark.sql", "spark")
        active = session = sql.SparkSession.getActiveSession()
        if session is None:
            with as_table_error("Spark", "expected Java 17 or newer", self.errors()):
                session = sql.SparkSession.builder.config(map=SETTINGS).getOrCreate()
        try:
            yield session
        finally:
            if active is None:
                session.stop()

    def errors(self) -> tuple[type[BaseException], ...]:
        """Return what Spark, and the bridge to its JVM, raise of files."""
        errors, java = require("pyspark.errors", "spark"), require("py4j.protocol", "spark")
        return (OSError, errors.PySparkException, java.Py4JError)

    def read(self, connection: Any, files: Sequence[Path]) -> Any:
        """Return files as one dataframe; nothing in their names is a pattern."""
        names = (re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute())) for file in files)
        return connection.read.parquet(*names)

    def write(self, frame: Any, path: Path, rows: int) -> None:
        """Write a folder with one file for each partition."""
        frame.write.mode("overwrite").parquet(str(path.absolute()))
        for aside in path.glob("[._]*"):  # checksums and a mark of success, which other readers take for parts
            aside.unlink()


def _mapper(receive: Callable[[], RowFunction]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a worker does with the batches of a partition."""

    def apply(batches: Iterator[Any]) -> Iterator[Any]:
        yield from map_record_batches(batches, receive())

    return apply
