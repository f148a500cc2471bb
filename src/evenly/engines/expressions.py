"""A fitted scaler as expressions: what `transform` does to a lazy frame, on the frame's own engine.

Expressions see no cells, so they can neither warn nor raise an error: what a table in memory refuses, if it is to be
strict, becomes a missing cell here. All else is as in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Protocol

import narwhals as nw

from evenly._support import SPACED_NUMBER, TableError
from evenly.engines.base import Engine, EngineTable
from evenly.engines.profiling import present
from evenly.scaling import NOISE_MEAN, OFFSET, Feature, FittedScale, NewRows, check_key, finite, noise_steps
from evenly.tables import (
    MISSING_MARKERS,
    Column,
    LazyColumn,
    NewCells,
    Step,
    class_codes,
    get_format,
    prepare,
    read_number,
    select,
)


class Fitted(Protocol):
    """What the expressions need to know about a fitted column."""

    @property
    def column(self) -> Column: ...
    @property
    def features(self) -> list[Feature]: ...
    @property
    def fits(self) -> list[FittedScale]: ...
    @property
    def names_out(self) -> list[str]: ...
    @property
    def new_cells(self) -> NewCells: ...
    @property
    def unseen_code(self) -> float: ...


def scale_lazily(
    table: EngineTable,
    columns: Sequence[LazyColumn],
    fitted: Sequence[Fitted],
    rows: NewRows,
    seed: int | None,
    key: Any,
) -> Any:
    """Return a lazy frame of the scaled features, of the same engine.

    Parameters
    ----------
    table : EngineTable
        From `open_lazy`.
    columns, fitted : sequences
        The columns to scale, in the fitted order, and what was fitted for each.
    rows : NewRows
        What to do with values and classes that fit did not see.
    seed : int or None
        Seed of the noise; None adds its mean.
    key : str or None
        The column of whole numbers that determines the noise of a row.
    """
    steps = [] if seed is None else [noise_steps(seed, one) for each in fitted for one in each.features if _noisy(one)]
    pairs = {f"x{j}": pair for j, pair in enumerate(zip(fitted, columns, strict=True))}
    engine = table.engine
    late = {name: pair for name, pair in pairs.items() if _is_late(engine, pair[0])}
    cells = [
        (
            code(each.column, cells, _unseen(each, rows), comparing=engine.compares_classes)
            if each.features and name not in late
            else nw.col(cells.name)
        ).alias(name)
        for name, (each, cells) in pairs.items()
    ]
    # An expression uses its inputs many times. Cells, keys and noise are made step by step, as named columns, so that
    # no engine computes the whole expression as many times.
    noise = [f"n{place}" for place in range(len(steps))]
    frame = table.frame.select(*cells, *(_key(table, key).alias(name) for name in noise[:1]))
    if late:
        coded = {
            name: code(each.column, replace(cells, name=name), _unseen(each, rows))
            for name, (each, cells) in late.items()
        }
        frame = engine.map_batches(frame, coded)
    frame = _move_all(frame, {name: each for name, (each, _) in pairs.items() if each.features}, rows)
    for turn, of_turn in enumerate(zip(*steps, strict=True)):
        sources = noise if turn else noise[:1] * len(noise)
        made = zip(of_turn, sources, noise, strict=True)
        frame = frame.with_columns(*(step(nw.col(source)).alias(name) for step, source, name in made))
    left = iter(noise)
    scaled = []
    for j, each in enumerate(fitted):
        if not each.features:
            scaled.append(nw.col(f"x{j}"))
        for one, fit in zip(each.features, each.fits, strict=True):
            added = nw.col(next(left)) if seed is not None and _noisy(one) else NOISE_MEAN
            scaled.append(_scale(one, each.column, nw.col(f"x{j}"), fit.scale, added))
    names = [name for each in fitted for name in each.names_out]
    return engine.unwrap(frame.select(*(each.alias(name) for each, name in zip(scaled, names, strict=True))))


def _noisy(feature: Feature) -> bool:
    return feature.trick == "gamma"


def _is_late(engine: Engine, fitted: Fitted) -> bool:
    """Whether a column is coded after the others, batch by batch."""
    many = engine.most_compared is not None and len(fitted.column.classes or ()) > engine.most_compared
    return many and fitted.column.has_classes and bool(fitted.features)


def _key(table: EngineTable, key: Any) -> nw.Expr:
    if key is None:
        raise TableError(
            "a lazy frame, which has no row numbers",
            "drawn noise of the Gamma trick needs a key",
            'name a column of whole numbers that identifies rows: transform(frame, key="id") or --key id; '
            'or choose noise="mean", or a method without noise, such as lip-bern',
        )
    (column,), _ = select(table, [key])
    check_key(column.name, column.storage)
    return nw.col(column.name).cast(nw.Int64).fill_null(-1)


def _scale(feature: Feature, column: Column, cells: nw.Expr, scale: float, noise: nw.Expr | float) -> nw.Expr:
    """Return a scaled feature from the values or codes of its column."""
    values = cells
    if feature.trick == "none" and feature.likelihood.scalable:
        values = prepare(column, cells)
    elif feature.code is not None:
        values = nw.when(cells == float(feature.code)).then(1.0).otherwise(0.0 * cells)
    elif feature.rest is not None:
        values = nw.when(cells > float(feature.rest)).then(float(feature.rest)).otherwise(cells)
    if _noisy(feature):
        values = values + OFFSET + noise
    scaled: nw.Expr = feature.likelihood.scale_data(values, scale)
    return scaled


def _unseen(fitted: Fitted, rows: NewRows) -> float | None:
    """Return the code of classes that fit did not see; None if they are missing cells."""
    return fitted.unseen_code if fitted.column.has_classes and rows.handle_unknown == "ignore" else None


def _move_all(frame: nw.LazyFrame[Any], columns: Mapping[str, Fitted], rows: NewRows) -> nw.LazyFrame[Any]:
    """Move the values of all columns to where their likelihoods have a density, step by step."""
    for steps in zip_longest(*(each.new_cells.steps for each in columns.values())):
        moved = [
            _move(step, nw.col(name), strict=rows.strict).alias(name)
            for name, step in zip(columns, steps, strict=True)
            if step is not None
        ]
        frame = frame.with_columns(*moved)
    return frame


def _move(step: Step, values: nw.Expr, *, strict: bool) -> nw.Expr:
    """Return values moved to where a likelihood has a density; null instead, if strict."""
    moved: nw.Expr = step.move(values)
    return nw.when(moved == values).then(values) if strict else moved


def code(column: Column, cells: LazyColumn, unseen: float | None = None, *, comparing: bool = False) -> nw.Expr:
    """Return the values of a column, or the codes of its classes, as `encode` does; null where missing or unknown.

    Unknown classes get the code `unseen`, if there is one. Classes are found by comparisons where an engine handles
    those better than a lookup in a list.
    """
    if column.kind == "date":
        raise _unreadable(column, "dates")
    if cells.storage in ("time", "other"):
        observed, codes = ~nw.col(cells.name).is_null(), _nothing(nw.col(cells.name))
        return codes if unseen is None else nw.when(observed).then(unseen)
    raw = present(cells, column.missing)
    if not column.has_classes:
        return _read(column, raw) if cells.storage == "text" else finite(raw)
    find = _compare if comparing else _look_up
    classes = class_codes(column)
    if cells.storage == "text":
        codes = find(raw, classes.by_text)
        if classes.by_number:
            codes = nw.coalesce(codes, find(_spelled(raw, column.missing), classes.by_number))
        # Few texts are none of the classes: only those are looked at again.
        rest = raw if comparing else nw.when(codes.is_null()).then(raw)
        observed = _is_observed(rest, column.missing, comparing=comparing)
    else:
        observed = ~raw.is_null()
        codes = find(raw, classes.by_boolean if cells.storage == "boolean" else classes.by_number)
    return codes if unseen is None else nw.coalesce(codes, nw.when(observed).then(unseen))


def _is_observed(texts: nw.Expr, missing: Sequence[Any], *, comparing: bool) -> nw.Expr:
    """Whether texts are neither null nor one of the markers of missing cells."""
    stripped = texts.str.strip_chars()
    markers = [*dict.fromkeys(str(marker) for marker in (*MISSING_MARKERS, *missing))]
    if comparing:
        marked = nw.any_horizontal(*(stripped == marker for marker in markers), ignore_nulls=False)
    else:
        marked = stripped.is_in(markers)
    return ~texts.is_null() & ~marked


def _compare(cells: nw.Expr, codes: Mapping[Any, float]) -> nw.Expr:
    """Return the codes of cells by comparisons that halve the ordered classes."""
    return _halve(cells, sorted(codes.items())) if codes else _look_up(cells, codes)


def _halve(cells: nw.Expr, codes: Sequence[tuple[Any, float]]) -> nw.Expr:
    if len(codes) == 1:
        return nw.when(cells == codes[0][0]).then(codes[0][1])
    middle = len(codes) // 2
    lower, upper = _halve(cells, codes[:middle]), _halve(cells, codes[middle:])
    return nw.when(cells < codes[middle][0]).then(lower).otherwise(upper)


def _look_up(cells: nw.Expr, codes: Mapping[Any, float]) -> nw.Expr:
    """Return the codes of cells by a lookup in the list of classes."""
    if not codes:
        return _nothing(cells)
    # Dask cannot put nulls where it replaces texts: NaN stands in for them.
    codes_or_nan = cells.replace_strict(
        list(codes), list(codes.values()), default=float("nan"), return_dtype=nw.Float64
    )
    return finite(codes_or_nan)


def _nothing(cells: nw.Expr) -> nw.Expr:
    """Return nulls."""
    return nw.when(cells.is_null() & ~cells.is_null()).then(0.0)


def _read(column: Column, texts: nw.Expr) -> nw.Expr:
    """Return the numbers that texts spell in the column's format."""
    if column.format is None:
        return _spelled(texts, column.missing)
    numbers = get_format(column.format).expression(texts)
    if numbers is None:
        raise _unreadable(column, f"texts in the format {column.format!r}")
    return finite(numbers)


def _unreadable(column: Column, got: str) -> TableError:
    return TableError(
        f"{got} in a lazy frame",
        "expected numbers, also with separators, a currency, a percent sign or a unit",
        "collect it first, or declare the column `ignore`",
        column=column.name,
    )


def _spelled(texts: nw.Expr, missing: Sequence[Any]) -> nw.Expr:
    """Return the numbers that texts spell; null where they spell none, or one that marks a missing cell."""
    stripped = texts.str.strip_chars()
    markers = [str(marker) for marker in missing if read_number(str(marker)) is not None]
    readable = texts.str.contains(SPACED_NUMBER)
    if markers:
        readable = readable & ~nw.any_horizontal(*(stripped == marker for marker in markers), ignore_nulls=False)
    # Engines refuse to cast a text that is no number, and Dask a null.
    return finite(nw.when(readable).then(stripped).otherwise(nw.lit("NaN")))
