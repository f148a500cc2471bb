"""Tables in files: reading any usual format, writing all or nothing, and Parquet files larger than memory.

What columns mean is not known here.
"""

from evenly.io.errors import as_table_error, polars_errors
from evenly.io.large_text import as_parquet, is_large_text, writes_parts
from evenly.io.parquet import Parquet, Piece, is_dataset, open_parquet
from evenly.io.reading import read_table
from evenly.io.sources import (
    EXTENSIONS,
    check_alike,
    count_rows,
    find_files,
    is_many,
    scan,
)
from evenly.io.types import infer_types
from evenly.io.writing import check_writable, write_parts, write_table

__all__ = [
    "EXTENSIONS",
    "Parquet",
    "Piece",
    "as_parquet",
    "as_table_error",
    "check_alike",
    "check_writable",
    "count_rows",
    "find_files",
    "infer_types",
    "is_dataset",
    "is_large_text",
    "is_many",
    "open_parquet",
    "polars_errors",
    "read_table",
    "scan",
    "write_parts",
    "write_table",
    "writes_parts",
]
