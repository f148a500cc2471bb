"""A fitted scaler as expressions: what `transform` does to a lazy frame, on the frame's own engine.

Expressions see no cells, so what a table in memory refuses (infinite values, or values outside a likelihood's support)
becomes a missing cell here, and so do classes that were not there in fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from evenly._support import SPACED_NUMBER, TableError
from evenly.engines.base import Engine, EngineTable
from evenly.engines.profiling import present
from evenly.likelihoods import Likelihood
from evenly.scaling import NOISE_MEAN, OFFSET, Feature, FittedScale, check_key, finite, noise_steps, prepare
from evenly.tables import Column, LazyColumn, class_codes, read_number, select

INF = float("inf")


class Fitted(Protocol):
    """What the expressions need to know about a fitted column."""

    @property
    def column(self) -> Column: ...
    @property
    def family(self) -> Likelihood | None: ...
    @property
    def features(self) -> list[Feature]: ...
    @property
    def fits(self) -> list[FittedScale]: ...


def scale_lazily(
    table: EngineTable,
    columns: Sequence[LazyColumn],
    fitted: Sequence[Fitted],
    names: Sequence[str],
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
    names : sequence of str
        Names of the features and of the columns that are passed through.
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
            code(each.column, cells, comparing=engine.compares_classes)
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
        coded = {name: code(each.column, replace(cells, name=name)) for name, (each, cells) in late.items()}
        frame = engine.map_batches(frame, coded)
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
        inside = _inside(feature.likelihood, values)
        values = values if inside is None else nw.when(inside).then(values)
    elif feature.code is not None:
        values = nw.when(cells == float(feature.code)).then(1.0).otherwise(0.0 * cells)
    if _noisy(feature):
        values = values + OFFSET + noise
    scaled: nw.Expr = feature.likelihood.scale_data(values, scale)
    return scaled


def _inside(family: Likelihood, values: nw.Expr) -> nw.Expr | None:
    low, high = family.support.lower, family.support.upper
    conditions = []
    if low > -INF:
        conditions.append(values >= low if family.support.contains(np.float64(low)) else values > low)
    if high < INF:
        conditions.append(values < high)
    return nw.all_horizontal(*conditions, ignore_nulls=False) if conditions else None


def code(column: Column, cells: LazyColumn, *, comparing: bool = False) -> nw.Expr:
    """Return the values of a column, or the codes of its classes, as `encode` does; null where missing or unknown.

    Classes are found by comparisons where an engine handles those better than a lookup in a list.
    """
    raw = present(cells, column.missing)
    if not column.has_classes:
        return _spelled(raw, column.missing) if cells.storage == "text" else finite(raw)
    find = _compare if comparing else _look_up
    classes = class_codes(column)
    if cells.storage == "text":
        codes = find(raw, classes.by_text)
        return (
            nw.coalesce(codes, find(_spelled(raw, column.missing), classes.by_number)) if classes.by_number else codes
        )
    return find(raw, classes.by_boolean if cells.storage == "boolean" else classes.by_number)


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
        return nw.when(cells.is_null() & ~cells.is_null()).then(0.0)
    # Dask cannot put nulls where it replaces texts: NaN stands in for them.
    codes_or_nan = cells.replace_strict(
        list(codes), list(codes.values()), default=float("nan"), return_dtype=nw.Float64
    )
    return finite(codes_or_nan)


def _spelled(texts: nw.Expr, missing: Sequence[Any]) -> nw.Expr:
    """Return the numbers that texts spell; null where they spell none, or one that marks a missing cell."""
    stripped = texts.str.strip_chars()
    markers = [str(marker) for marker in missing if read_number(str(marker)) is not None]
    readable = texts.str.contains(SPACED_NUMBER)
    if markers:
        readable = readable & ~nw.any_horizontal(*(stripped == marker for marker in markers), ignore_nulls=False)
    # Engines refuse to cast a text that is no number, and Dask a null.
    return finite(nw.when(readable).then(stripped).otherwise(nw.lit("NaN")))
