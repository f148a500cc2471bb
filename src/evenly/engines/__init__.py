"""Tables larger than memory: lazy frames of Polars, DuckDB, Dask, Spark, Ibis and Ray, and Parquet files.

Queries return aggregates of a lazy frame, and scaled features go out as expressions or files. Rows enter this process
only where an engine cannot do without; nothing here knows models.
"""

import pkgutil
from importlib import import_module

from evenly.engines.base import Engine, EngineTable, FileEngine, get_file_engine, open_lazy
from evenly.engines.batches import ROWS_AT_ONCE
from evenly.engines.expressions import scale_lazily
from evenly.engines.files import scale_files, scale_parts
from evenly.engines.queries import measure_lazily

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)  # each engine registers itself

__all__ = [
    "ROWS_AT_ONCE",
    "Engine",
    "EngineTable",
    "FileEngine",
    "get_file_engine",
    "measure_lazily",
    "open_lazy",
    "scale_files",
    "scale_lazily",
    "scale_parts",
]
