"""Tables that live elsewhere: lazy frames of Polars, DuckDB, Dask, Spark and Ibis, and files too large for memory.

A lazy frame comes in; aggregates come back from queries, and scaled features go out as expressions or files. Rows never
enter this process unless an engine needs it; models are not known here.
"""

# isort: off
# Engines register themselves, in the order in which messages list them.
from evenly.engines.polars import Polars
from evenly.engines.duckdb import DuckDB
from evenly.engines.dask import Dask
from evenly.engines.spark import Spark
from evenly.engines.ibis import Ibis

# isort: on
from evenly.engines.base import Engine, FileEngine, get_file_engine, open_lazy
from evenly.engines.expressions import scale_lazily
from evenly.engines.files import scale_files
from evenly.engines.queries import measure_lazily

__all__ = [
    "Dask",
    "DuckDB",
    "Engine",
    "FileEngine",
    "Ibis",
    "Polars",
    "Spark",
    "get_file_engine",
    "measure_lazily",
    "open_lazy",
    "scale_files",
    "scale_lazily",
]
