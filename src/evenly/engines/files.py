"""Parquet files to Parquet files of scaled features, on an engine: the table never enters memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly._support import TableError, replacing, replacing_folder, require
from evenly.engines.base import FileEngine, arrow_settings, get_file_engine, part_name
from evenly.io import EXTENSIONS, as_table_error, check_alike, check_writable, count_rows, find_files, write_parts
from evenly.scaling import LipschitzScaler, check_key, get_method

PART_BYTES = 256 << 20
"""Input files are grouped up to this size, and each group becomes a file: an engine reads several files at a time."""
BATCH_CELLS = 1 << 22
"""Cells of a batch in memory, and of a row group that is written: 32 MiB."""
MOST_ROWS = 1 << 17
"""Rows of a row group at most, about as many as DuckDB writes by default."""
SOUND = "expected whole Parquet files, and space to write"


def scale_files(
    source: str | Path, out: str | Path, scaler: LipschitzScaler, *, engine: str = "polars", key: str | None = None
) -> LipschitzScaler:
    """Scale Parquet files to Parquet files, on an engine, whatever their size.

    All or nothing: output is written under a temporary name and renamed when it is complete. Files keep columns
    that are no variables, whatever the scaler's `passthrough`, and `inverse_transform` of them gives all columns back.

    Parameters
    ----------
    source : str or Path
        A file, a folder of files, or a pattern such as `data/*.parquet`; all with the same columns.
    out : str or Path
        A folder, new or empty, for files whose names sort in the order of the rows; or, with Polars or DuckDB, the name
        of one file that ends in `.parquet`.
    scaler : LipschitzScaler
        Fitted on the engine first, unless it is fitted already.
    engine : {"polars", "duckdb", "dask", "spark"}
        The engine that reads, computes and writes. Spark runs in the active session if there is one.
    key : str, optional
        A column of whole numbers that determines the noise of the Gamma trick. Without it, a scaler with
        `noise="drawn"` draws noise by the row's position, as in memory, batch by batch in this process; Dask and
        Spark, which do not keep the order of rows, then need a key.

    Returns
    -------
    LipschitzScaler
        The scaler, fitted.

    Examples
    --------
    Needs `pip install "evenly[all]"`.

    >>> import tempfile
    >>> import polars as pl
    >>> table = pl.DataFrame({"n": [0, 3, 1, 1, 2, 5] * 9, "x": [0.5, 1.5, -2.0] * 18})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(3):
    ...         table[18 * k : 18 * k + 18].write_parquet(f"{folder}/{k}.parquet")
    ...     scaler = scale_files(folder, f"{folder}/out", LipschitzScaler(random_state=0))
    ...     pl.read_parquet(f"{folder}/out").equals(scaler.transform(table))
    True
    """
    files, chosen = find_files(source), get_file_engine(engine)
    folder = _check_target(out, chosen, files)
    _check_key(scaler, chosen, key, check_alike(files))
    if not count_rows(files):
        raise TableError(f"{source} with 0 rows", "expected at least 1 row")
    job = _Job(scaler, chosen, files, key)
    with chosen.connect() as job.connection, as_table_error(f"{source}, read by {engine}", SOUND, chosen.errors()):
        if not _is_fitted(scaler):
            scaler.fit(chosen.read(job.connection, files))
        job.scaler = copy(scaler).set_params(passthrough="keep")  # files lose no column
        job.write(Path(out), folder=folder)
    return scaler


def scale_parts(
    source: str | Path, out: str | Path, scaler: LipschitzScaler, *, key: str | None = None, form: str | None = None
) -> LipschitzScaler:
    """Scale Parquet files to one file of any format that can be written part by part, such as CSV.

    Rows are read and scaled by Polars, a batch in memory at a time; noise is as in memory. All or nothing.

    Parameters
    ----------
    source : str or Path
        As in `scale_files`.
    out : str or Path
        The file to write.
    scaler : LipschitzScaler
        Fitted on the files first, unless it is fitted already.
    key : str, optional
        As in `scale_files`.
    form : str, optional
        The format to write, if the name does not say.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> table = pl.DataFrame({"n": [0, 3, 1, 1, 2, 5] * 9, "x": [0.5, 1.5, -2.0] * 18})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.write_parquet(f"{folder}/a.parquet")
    ...     scaler = scale_parts(f"{folder}/a.parquet", f"{folder}/b.csv", LipschitzScaler(random_state=0))
    ...     pl.read_csv(f"{folder}/b.csv").equals(scaler.transform(table))
    True
    """
    files, engine = find_files(source), get_file_engine("polars")
    _check_key(scaler, engine, key, check_alike(files))
    with as_table_error(str(source), SOUND, (*engine.errors(), *_arrow_errors())):
        if not _is_fitted(scaler):
            scaler.fit(engine.read(None, files))
        rows = max(min(BATCH_CELLS // len(scaler.get_feature_names_out()), MOST_ROWS), 1)
        write_parts(scaler.transform_parts(_read_batches(files, rows), key=key), out, form=form)
    return scaler


@dataclass
class _Job:
    """Files to scale, and what scales them."""

    scaler: LipschitzScaler
    engine: FileEngine
    files: Sequence[Path]
    key: str | None
    connection: Any = None

    def write(self, target: Path, *, folder: bool) -> None:
        """Scale all files, to one file or to the files of a folder."""
        if not folder:
            with replacing(target) as temporary:
                self._write_groups([self.files], [temporary])
            return
        with replacing_folder(target) as temporary:
            if self.engine.keeps_order:
                groups = _groups(self.files)
                self._write_groups(groups, [temporary / part_name(place) for place in range(len(groups))])
            else:
                self._write_lazily(self.files, temporary)

    def _write_groups(self, groups: Sequence[Sequence[Path]], parts: Sequence[Path]) -> None:
        """Scale each group of files to a file."""
        pairs = zip(groups, parts, strict=True)
        if self.key is not None or not _draws_noise(self.scaler):
            for files, part in pairs:
                self._write_lazily(files, part)
            return
        start = 0
        with as_table_error("a file", SOUND, _arrow_errors()):
            for files, part in pairs:
                start += self._write_batches(files, part, start)

    def _write_lazily(self, files: Sequence[Path], target: Path) -> None:
        frame = self.engine.read(self.connection, files)
        self.engine.write(self.scaler.transform(frame, key=self.key), target, self._rows)

    def _write_batches(self, files: Sequence[Path], part: Path, start: int) -> int:
        """Scale files batch by batch in memory, with noise by row position; returns the number of rows."""
        n_rows = 0
        with _writing(part) as write:
            for scaled in self.scaler.transform_parts(_read_batches(files, self._rows), start=start):
                write(scaled.to_arrow())
                n_rows += scaled.height
        return n_rows

    @property
    def _rows(self) -> int:
        """Rows of a batch, and of a row group."""
        return max(min(BATCH_CELLS // len(self.scaler.get_feature_names_out()), MOST_ROWS), 1)


def _check_target(out: str | Path, engine: FileEngine, files: Sequence[Path]) -> bool:
    """Return whether the target is a folder; refuse, before any work, one that cannot be written."""
    path = Path(out)
    folder = str(out).endswith("/") or path.is_dir() or not path.suffix
    if str(out) == "-" or (not folder and not path.name.lower().endswith(EXTENSIONS)):
        raise TableError(f"the target {str(out)!r}", "an engine expects a folder, or a file that ends in .parquet")
    if not folder and not engine.keeps_order:
        raise TableError(f"the file {str(out)!r}", f"{engine.name} writes a folder of files", f"name one: {path.stem}/")
    if not folder and path.resolve() in [file.resolve() for file in files]:
        raise TableError(f"the file {str(out)!r}, which is read as well", "expected another one", "name another")
    if folder and path.exists() and not path.is_dir():
        raise TableError(f"the file {str(out)!r}", "expected a folder", "name another")
    if folder and path.is_dir() and any(path.iterdir()):
        raise TableError(
            f"the folder {str(out)!r}, which is not empty",
            "expected a new or an empty one",
            "name another, or empty it",
        )
    check_writable(path / part_name(0) if folder else path)
    return folder


def _check_key(scaler: LipschitzScaler, engine: FileEngine, key: str | None, columns: Mapping[str, Any]) -> None:
    """Refuse, before any work, a key that cannot be one, or a missing key where one is needed."""
    if key is not None:
        if key not in columns:
            raise TableError("no such column", f"expected the key to be one of {list(columns)}", column=key)
        check_key(key, "integer" if columns[key].is_integer() else str(columns[key]))
    elif not engine.keeps_order and _draws_noise(scaler):
        raise TableError(
            f"no key, and {engine.name} does not keep the order of rows",
            "drawn noise of the Gamma trick needs one of them",
            "name a column of whole numbers that identifies rows (key, --key), choose the mean of the noise "
            '(noise="mean", --noise mean) or a method without noise, such as lip-bern, or use polars or duckdb',
        )


def _is_fitted(scaler: LipschitzScaler) -> bool:
    return hasattr(scaler, "schema_")


def _draws_noise(scaler: LipschitzScaler) -> bool:
    if scaler.noise != "drawn":
        return False
    if not _is_fitted(scaler):  # the fit may turn out to need none, but nobody wants to wait for that
        return get_method(scaler.method).trick == "gamma"
    return any(feature.trick == "gamma" for fitted in scaler.columns_ for feature in fitted.features)


def _groups(files: Sequence[Path]) -> list[list[Path]]:
    """Group neighbouring files until they are large enough."""
    groups, size = [[files[0]]], files[0].stat().st_size
    for file in files[1:]:
        if size >= PART_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.stat().st_size
    return groups


def _read_batches(files: Sequence[Path], rows: int) -> Iterator[Any]:
    parquet, pl = require("pyarrow.parquet", "engines"), require("polars", "tool")
    for file in files:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(rows):
                if batch.num_rows:
                    yield pl.from_arrow(batch)


@contextmanager
def _writing(part: Path) -> Iterator[Callable[[Any], None]]:
    """Give a function that appends tables to a file; the first table decides the types of the columns."""
    parquet, types = require("pyarrow.parquet", "engines"), require("pyarrow.types", "engines")
    writer = None

    def write(table: Any) -> None:
        nonlocal writer
        if writer is None:
            repeated = (field.name for field in table.schema if not types.is_floating(field.type))
            writer = parquet.ParquetWriter(part, table.schema, **arrow_settings(repeated))
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arrow_errors() -> tuple[type[BaseException], ...]:
    return (OSError, require("pyarrow", "engines").ArrowException)
