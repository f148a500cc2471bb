"""Tables in files: bytes of any usual format come in as a table, and tables go out to files, all or nothing.

What columns mean is not known here.
"""

from evenly.io.formats import check_writable, read_table, write_parts, write_table
from evenly.io.parquet import Parquet, Piece, is_dataset, open_parquet
from evenly.io.sources import (
    EXTENSIONS,
    Engine,
    arrow_settings,
    check_alike,
    clear,
    count_rows,
    find_files,
    is_many,
    part_name,
    start_engine,
)

__all__ = [
    "EXTENSIONS",
    "Engine",
    "Parquet",
    "Piece",
    "arrow_settings",
    "check_alike",
    "check_writable",
    "clear",
    "count_rows",
    "find_files",
    "is_dataset",
    "is_many",
    "open_parquet",
    "part_name",
    "read_table",
    "start_engine",
    "write_parts",
    "write_table",
]
