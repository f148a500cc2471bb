"""Tables larger than memory: lazy frames of Polars, DuckDB, Dask, Spark and Ibis, and Parquet files.

Queries return aggregates of a lazy frame, and scaled features go out as expressions or files. Rows enter this process
only where an engine cannot do without; nothing here knows models.
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
