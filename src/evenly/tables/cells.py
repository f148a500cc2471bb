"""Cells into numbers and back, by a schema: values, codes of classes, missing markers; and checks of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Likelihood, get_likelihood
from evenly.tables.codes import ClassCodes, class_codes
from evenly.tables.columns import BLOCK, Floats, Storage, TableColumn, blocks
from evenly.tables.dates import days_of, make_dates, read_days
from evenly.tables.formats import get_format
from evenly.tables.profile import MISSING_MARKERS, ColumnProfile, read_number
from evenly.tables.schema import Column, outside


def encode(column: Column, cells: TableColumn) -> tuple[Floats, list[Any]]:
    """Turn cells into numbers: the value itself, or the code of its class; NaN where missing.

    Returns the numbers and the classes that the column does not know (encoded as missing). Texts in a column of numbers
    are refused.
    """
    values, unknown = read_cells(column, cells)
    if unknown and not column.has_classes:
        raise TableError(f"the text {unknown[0]!r}", f"{column.kind} expects numbers", "", column=column.name)
    return values, unknown


def read_cells(column: Column, cells: TableColumn) -> tuple[Floats, list[Any]]:
    """Turn cells into numbers as `encode` does, but return texts in a column of numbers as unknown, too."""
    return cells.remember(("codes", column.model_dump_json(exclude={"note"})), lambda: _encode(column, cells))


def _encode(column: Column, cells: TableColumn) -> tuple[Floats, list[Any]]:
    classes = class_codes(column)
    if column.kind == "date" and (days := read_days(cells)) is not None:
        return days - days_of(column.origin), []
    if cells.storage == "boolean" and not classes.all_numbers:  # True is "True"
        texts = [None if np.isnan(v) else str(bool(v)) for v in cells.numbers]
        cells = TableColumn(cells.name, np.array(texts, object))
    elif cells.storage in ("boolean", "integer", "float"):
        numbers = cells.numbers
        declared = [number for number in map(read_number, column.missing) if number is not None]
        if declared:
            numbers = np.where(np.isin(numbers, declared), np.nan, numbers)
        return _encode_numbers(classes, numbers) if column.has_classes else (numbers, [])
    codes, distinct = cells.factorized
    gone = {str(marker) for marker in (*MISSING_MARKERS, *column.missing)}
    read, origin = _reader(column), days_of(column.origin)
    unknown, lookup = [], np.full(len(distinct) + 1, np.nan)
    for code, value in enumerate(distinct):
        if isinstance(value, str) and value.strip() in gone and value not in classes.by_text:
            continue
        number = read(value)
        if column.has_classes:
            number = classes.by_text.get(str(value), None if number is None else classes.by_number.get(number))
        if number is None:
            unknown.append(value)
        else:
            lookup[code] = number - origin
    return lookup[codes], unknown


def _reader(column: Column) -> Callable[[Any], float | None]:
    """Return what reads the number of a cell."""
    if column.format is None:
        return read_number if column.kind != "date" else lambda value: None
    read = get_format(column.format).read
    return lambda value: read(value) if isinstance(value, str) else None


def encode_growing(column: Column, cells: TableColumn) -> tuple[Column, Floats]:
    """Turn cells into numbers; returns the column too, with the classes that it did not know at the end of its own.

    Examples
    --------
    >>> yes = Column(name="yes", kind="binary", classes=["n", "y"])
    >>> grown, codes = encode_growing(yes, TableColumn("yes", np.array(["y", "?", "maybe"], object)))
    >>> grown.kind, grown.classes, codes.tolist()
    ('categorical', ['n', 'y', 'maybe'], [1.0, nan, 2.0])
    >>> yes.kind, yes.classes
    ('binary', ['n', 'y'])
    """
    values, unknown = encode(column, cells)
    if not unknown or column.classes is None:
        return column, values
    changes: dict[str, Any] = {"classes": [*column.classes, *unknown]}
    if column.kind == "binary" and len(changes["classes"]) > 2:
        changes |= {"kind": "categorical", "likelihood": "categorical", "note": "a third class came"}
    grown = column.model_copy(update=changes)
    return grown, encode(grown, cells)[0]


def cells_among(cells: TableColumn, some: Sequence[Any]) -> npt.NDArray[np.bool_]:
    """Return which cells hold one of some values, given as `encode` returns unknown ones."""
    if not some:
        return np.zeros(len(cells.native), bool)
    if cells.storage in ("boolean", "integer", "float") and not isinstance(some[0], str):
        return np.isin(cells.numbers, np.asarray(some, np.float64))
    codes, distinct = cells.factorized
    texts = {str(value) for value in some}
    return np.isin(codes, [code for code, value in enumerate(distinct) if str(value) in texts])


def encode_counts(column: Column, profile: ColumnProfile) -> dict[float, int] | None:
    """Return the counts of a discrete column's values or codes, if its profile has them."""
    if profile.distinct is None or profile.counts is None:
        return None
    codes: Sequence[float | None] = profile.distinct
    if column.has_classes:
        known = class_codes(column)
        codes = [
            known.by_text.get(str(v), None if isinstance(v, str) else known.by_number.get(v)) for v in profile.distinct
        ]
    if any(code is None for code in codes):
        return None
    counts: dict[float, int] = {}
    for code, n in zip(codes, profile.counts, strict=True):
        if code is not None:  # several spellings may be one class
            counts[float(code)] = counts.get(float(code), 0) + int(n)
    return counts


def _encode_numbers(classes: ClassCodes, numbers: Floats) -> tuple[Floats, list[Any]]:
    ordered = sorted(classes.by_number.items())
    values = np.array([value for value, _ in ordered] or [np.nan])
    codes = np.array([k for _, k in ordered] or [0], np.float64)
    encoded, unknown = np.empty(len(numbers)), set()
    for start in range(0, len(numbers), BLOCK):
        block = numbers[start : start + BLOCK]
        where = np.minimum(np.searchsorted(values, block), len(values) - 1)
        hit = values[where] == block
        encoded[start : start + BLOCK] = np.where(hit, codes[where], np.nan)
        unknown.update(block[~hit & ~np.isnan(block)].tolist())
    return encoded, sorted(unknown)


def decode(
    column: Column, numbers: Floats, originals: Sequence[Any] = (), storage: Storage = "text"
) -> npt.NDArray[Any]:
    """Turn numbers back into cells: values as they are, or spelled in the column's format, and codes into classes.

    Missing cells are None, NaT, or NaN among numbers. `originals` are the cells that classes were read from, where a
    class is only the text of its cell; `storage` is how the cells are to be stored: numbers are not spelled.
    """
    if not column.has_classes:
        absolute = numbers + days_of(column.origin)
        if column.format is not None and storage == "text":
            return _spell(column.format, absolute)
        return make_dates(absolute) if column.kind == "date" and storage == "time" else numbers
    by_text = {str(value): value for value in originals}
    classes = np.empty(len(column.classes or ()) + 1, dtype=object)
    classes[:-1] = [by_text.get(str(value), value) for value in column.classes or ()]
    codes = np.where(np.isnan(numbers), len(classes) - 1, numbers).astype(np.intp)
    return classes[np.clip(codes, 0, len(classes) - 1)]


def _spell(pattern: str, numbers: Floats) -> npt.NDArray[Any]:
    write = get_format(pattern).write
    texts = np.empty(len(numbers), object)
    texts[:] = [None if np.isnan(number) else write(number) for number in numbers.tolist()]
    return texts


def coded(column: Column) -> Column:
    """Return the column of a table that holds codes instead of classes, and no markers.

    Examples
    --------
    >>> coded(Column(name="colour", kind="categorical", classes=["blue", "red"], missing=["?"])).classes
    [0, 1]
    """
    classes = None if column.classes is None else list(range(len(column.classes)))
    return column.model_copy(update={"classes": classes, "missing": [], "same": {}, "format": None})


def column_likelihood(column: Column, own: Mapping[str, Likelihood] | None = None) -> Likelihood:
    """Return the likelihood of a column; `own` holds the user's own by name."""
    assert column.likelihood is not None
    if own and column.likelihood in own:
        return own[column.likelihood]
    return get_likelihood(column.likelihood, column.n_outcomes)


def check_values(column: Column, values: Floats, family: Likelihood) -> None:
    """Refuse values that the likelihood has no density for, or that lie outside the declared bounds."""
    for block in blocks(values):
        if not len(block):
            continue
        low, high = float(block.min()), float(block.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise TableError(
                "infinite values",
                "expected finite numbers (Input X contains infinity)",
                "make them missing",
                column=column.name,
            )
        if column.has_classes:
            continue
        if (column.lower is not None and low < column.lower) or (column.upper is not None and high > column.upper):
            raise TableError(
                f"values from {low:g} to {high:g}",
                f"the schema declares {column.lower} to {column.upper}",
                "correct the cells or the bounds",
                column=column.name,
            )
        shifted = low + column.shift if column.clip is None or low < 0.0 else max(low, column.clip)
        if not family.support.contains(np.float64(np.rint(shifted) if family.support.whole else shifted)):
            raise outside(column.name, f"minimum {low:g}", family)
        beyond = high + column.shift > family.support.upper
        if beyond or (not family.support.whole and high + column.shift == family.support.upper):
            raise outside(column.name, f"maximum {high:g}", family)
        if family.support.whole and not (block == np.rint(block)).all():
            raise outside(column.name, "values that are not whole numbers", family)


def prepare(column: Column, values: Any) -> Any:
    """Apply the shift or the clip of a column; `values` may be a Narwhals expression."""
    if column.clip is not None:
        if isinstance(values, nw.Expr):
            return nw.when(values < column.clip).then(column.clip).otherwise(values)
        return np.maximum(values, column.clip)
    return values + column.shift if column.shift else values
