"""Tables that live elsewhere: lazy frames of Polars, DuckDB, Dask, Spark and Ibis, and files too large for memory.

A lazy frame comes in; aggregates come back from queries, and scaled features go out as expressions or files. Rows never
enter this process unless an engine needs it; models are not known here.
"""

from evenly.engines.expressions import scale_lazily
from evenly.engines.files import scale_files
from evenly.engines.queries import measure_lazily

__all__ = ["measure_lazily", "scale_files", "scale_lazily"]
