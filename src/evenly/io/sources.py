"""Parquet files as one table on an engine: which files a path means, and how each engine reads and writes them.

The engines read CSV each in a way of its own (whether 02139 is a number, what is missing), so that the same files would
be other tables: only Parquet, which says what its columns are, is taken.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evenly._support import TableError, require

EXTENSIONS = (".parquet", ".pq")
DUCKDB_MEMORY = "512MB"
"""What DuckDB may hold, beside what it reads and writes: more goes to a temporary folder."""

REWRITE = "distinct_aggregate_rewrite"
"""An optimizer of DuckDB's that holds a table in memory to count the distinct cells of a column beside its mean."""
COMPRESSION = "snappy"
"""Scaled features hardly get smaller: zstd takes three times as long for a twelfth of the size."""
PIECE_CELLS = 1 << 22
"""What Dask holds of a table at a time in each thread, where row groups are not larger: 32 MiB."""


class Engine(NamedTuple):
    """An engine that is ready: what it reads and writes, and how it fails."""

    read: Callable[[Sequence[Path]], Any]
    """Files as one lazy frame."""
    write: Callable[[Any, Path, int], None]
    """A lazy frame to one Parquet file of row groups of so many rows, or to a folder of files."""
    damage: tuple[type[BaseException], ...]
    """What it raises if a file cannot be read or written."""


# --- files -------------------------------------------------------------------------------------------------------


def is_many(source: str | Path) -> bool:
    """Whether a path means several files: a folder, or a pattern such as `data/*.parquet`.

    Examples
    --------
    >>> is_many("data/*.parquet"), is_many("data.parquet")
    (True, False)
    """
    return os.path.isdir(source) or (glob.has_magic(str(source)) and not os.path.exists(source))


def find_files(source: str | Path) -> list[Path]:
    """List the Parquet files that a path means, in the order of their names.

    Parameters
    ----------
    source : str or Path
        A file; a folder, for the files in it (not in folders below it, nor those whose names begin with `.` or `_`);
        or a pattern: `data/*.parquet`, `data/**/*.parquet`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.parquet", "a.parquet", "_SUCCESS"):
    ...         _ = (Path(folder) / name).write_bytes(b"")
    ...     [file.name for file in find_files(folder)]
    ['a.parquet', 'b.parquet']
    >>> find_files("no/such/*.parquet")
    Traceback (most recent call last):
    evenly.TableError: got the pattern 'no/such/*.parquet', which matches no file, but expected Parquet files.
    """
    path = Path(source)
    if path.is_dir():
        shown = (file for file in path.iterdir() if not file.name.startswith((".", "_")))
        files = [file for file in shown if file.is_file()]
        found = [file for file in files if is_parquet(file)]
        if not found and files:
            raise _no_parquet(min(files))
        told = f"the folder {str(source)!r}, which has no file"
    elif is_many(source):
        found = [file for file in map(Path, glob.glob(str(source), recursive=True)) if file.is_file()]
        told = f"the pattern {str(source)!r}, which matches no file"
    else:
        found = [path] if path.exists() else []
        told = f"no file {str(source)!r}"
    if not found:
        raise TableError(told, "expected Parquet files")
    for file in found:
        if not is_parquet(file):
            raise _no_parquet(file)
    return sorted(found)


def is_parquet(file: Path) -> bool:
    """Whether a file is named as Parquet is."""
    return file.name.lower().endswith(EXTENSIONS)


def _no_parquet(file: Path) -> TableError:
    return TableError(
        f"the file {str(file)!r}",
        "expected Parquet, which says of what type a column is",
        "write it as Parquet first: evenly.write_table(evenly.read_table(...), ...)",
    )


def check_alike(files: Sequence[Path]) -> dict[str, Any]:
    """Return the columns with their types, or refuse files that are not parts of one table; reads no rows."""
    first: dict[str, Any] = {}
    for file in files:
        with clear_file(file):
            columns = dict(scan([file]).collect_schema())
        first = first or columns
        if list(columns) == list(first) and columns == first:
            continue
        apart = [name for name in (*first, *columns) if first.get(name) != columns.get(name)]
        name = apart[0] if apart else next(a for a, b in zip(columns, first, strict=True) if a != b)
        told = [str(one[name]) if name in one else "no such column" for one in (first, columns)]
        here = (
            f"{told[0]} in {files[0].name} and {told[1]} in {file.name}" if apart else f"another order in {file.name}"
        )
        raise TableError(here, "expected the same columns in every file", "write them alike", column=name)
    return first


def count_rows(files: Sequence[Path]) -> int:
    """Return how many rows Parquet files have, by their ends alone."""
    return int(scan(files).select(require("polars", "tool").len()).collect().item())


@contextmanager
def clear(what: str, expected: str, damage: tuple[type[BaseException], ...]) -> Iterator[None]:
    """Turn whatever an engine says of a file into one clear error."""
    try:
        yield
    except TableError:
        raise
    except damage as error:
        message = getattr(error, "strerror", None) or str(error)
        first = next((line for line in message.splitlines() if line.strip()), type(error).__name__)
        raise TableError(f"{what}: {' '.join(first.split()).rstrip('.')}", expected) from error


def clear_file(file: Path, *damage: type[BaseException]) -> AbstractContextManager[None]:
    """Turn whatever Polars, or a reader that fails otherwise, says of a file into one clear error."""
    return clear(f"the file {str(file)!r}", "expected a whole Parquet file", (*_polars_damage(), *damage))


def scan(files: Sequence[Path]) -> Any:
    """Return files as one lazy frame of Polars; what stands in their names is no pattern, and no column."""
    return require("polars", "tool").scan_parquet(list(files), glob=False, hive_partitioning=False)


def _polars_damage() -> tuple[type[BaseException], ...]:
    errors = require("polars", "tool").exceptions
    return (OSError, errors.PolarsError, errors.PanicException)


# --- engines -----------------------------------------------------------------------------------------------------


@contextmanager
def _polars() -> Iterator[Engine]:
    def write(frame: Any, path: Path, rows: int) -> None:
        frame.sink_parquet(path, row_group_size=rows, compression=COMPRESSION)

    yield Engine(scan, write, _polars_damage())


@contextmanager
def _duckdb() -> Iterator[Engine]:
    duckdb = require("duckdb", "engines")
    settings = {"memory_limit": DUCKDB_MEMORY}
    with tempfile.TemporaryDirectory() as spilled, duckdb.connect(config=settings) as connection:
        connection.execute("set enable_progress_bar = false")
        connection.execute("set temp_directory = $folder", {"folder": spilled})
        known = connection.execute("select name from duckdb_optimizers()").fetchall()
        if (REWRITE,) in known:
            connection.execute(f"set disabled_optimizers = '{REWRITE}'")

        def read(files: Sequence[Path]) -> Any:
            return connection.read_parquet([glob.escape(str(file)) for file in files], hive_partitioning=False)

        def write(frame: Any, path: Path, rows: int) -> None:
            frame.write_parquet(str(path), row_group_size=rows, compression=COMPRESSION)

        yield Engine(read, write, (OSError, duckdb.Error))


@contextmanager
def _dask() -> Iterator[Engine]:
    dd, arrow = require("dask.dataframe", "engines"), require("pyarrow", "engines")

    def read(files: Sequence[Path]) -> Any:
        # Dask's own reader takes names for patterns, and whole numbers with a missing one for fractions.
        pieces = [*chain(*map(_pieces, files))]
        meta = _to_pandas(require("pyarrow.parquet", "engines").read_schema(files[0]).empty_table())
        return dd.from_map(read_piece, pieces or [Piece(str(files[0]), [])], meta=meta)

    def write(frame: Any, path: Path, rows: int) -> None:
        settings = arrow_settings(name for name, dtype in frame.dtypes.items() if dtype.kind != "f")
        frame.to_parquet(str(path), write_index=False, name_function=part_name, row_group_size=rows, **settings)

    yield Engine(read, write, (OSError, arrow.ArrowException))


class Piece(NamedTuple):
    """Row groups of a file: one partition of Dask's."""

    file: str
    groups: list[int]


def _pieces(file: Path) -> Iterator[Piece]:
    """Put neighbouring row groups together as long as they are no larger than a piece is to be."""
    metadata = require("pyarrow.parquet", "engines").read_metadata(file)
    sizes = [metadata.row_group(place).num_rows * metadata.num_columns for place in range(metadata.num_row_groups)]
    groups: list[int] = []
    for place, size in enumerate(sizes):
        if groups and sum(sizes[one] for one in groups) + size > PIECE_CELLS:
            yield Piece(str(file), groups)
            groups = []
        groups.append(place)
    if groups:
        yield Piece(str(file), groups)


def read_piece(piece: Piece, columns: Sequence[str] | None = None) -> Any:
    """Read some columns of a piece, wherever a worker is."""
    with require("pyarrow.parquet", "engines").ParquetFile(piece.file) as opened:
        table = opened.read_row_groups(piece.groups, columns=columns)
    return _to_pandas(table if columns is None else table.select(columns))


def _to_pandas(table: Any) -> Any:
    """Return a pandas frame in which whole numbers and booleans stay such beside missing cells."""
    pd, arrow = require("pandas", "engines"), require("pyarrow", "engines")
    whole = {f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    types = {getattr(arrow, name)(): getattr(pd, f"{dtype}Dtype")() for name, dtype in whole.items()}
    return table.to_pandas(types_mapper={arrow.bool_(): pd.BooleanDtype(), **types}.get, ignore_metadata=True)


@contextmanager
def _spark() -> Iterator[Engine]:
    sql = require("pyspark.sql", "spark")
    errors, java = require("pyspark.errors", "spark"), require("py4j.protocol", "spark")
    session = own = sql.SparkSession.getActiveSession()
    if session is None:
        with clear("Spark", "expected Java 17 or newer", (OSError, errors.PySparkException, java.Py4JError)):
            settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
            session = sql.SparkSession.builder.config(map=settings).getOrCreate()

    def read(files: Sequence[Path]) -> Any:
        return session.read.parquet(*(re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute())) for file in files))

    def write(frame: Any, path: Path, rows: int) -> None:
        frame.write.mode("overwrite").parquet(str(path.absolute()))
        for aside in path.glob("[._]*"):  # checksums and a mark of success, which other readers take for parts
            aside.unlink()

    try:
        yield Engine(read, write, (OSError, errors.PySparkException, java.Py4JError))
    finally:
        if own is None:
            session.stop()


ENGINES: dict[str, Callable[[], AbstractContextManager[Engine]]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "dask": _dask,
    "spark": _spark,
}


def start_engine(name: str) -> AbstractContextManager[Engine]:
    """Start an engine, until the end of a `with` statement.

    Examples
    --------
    >>> start_engine("excel")
    Traceback (most recent call last):
    evenly.TableError: got the engine 'excel', but expected one of polars, duckdb, dask, spark.
    """
    if name not in ENGINES:
        raise TableError(f"the engine {name!r}", f"expected one of {', '.join(ENGINES)}")
    return ENGINES[name]()


def arrow_settings(repeated: Iterable[str]) -> dict[str, Any]:
    """Return how Arrow is to write: it would look for repeated cells in every column, which takes most of the time."""
    return {"compression": COMPRESSION, "use_dictionary": list(repeated)}


def part_name(place: int) -> str:
    """Return the name of a part of a table: names are in the order of the parts."""
    return f"part-{place:05d}.parquet"
