"""The charts: the data that the page draws each one from, and the same numbers as a table for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from evenly.report.content import ColumnContent, LearningCurve, ReportContent
from evenly.report.formatting import count, known, number, percent

MOST_ROWS = 40
"""Columns in a chart of all columns: the table of columns has the rest."""
Value = Callable[[ColumnContent], float | None]


@dataclass(frozen=True)
class NumbersTable:
    """The numbers behind a chart; `named` says what the first cell of each row is."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    named: Literal["text", "class", "column"] = "text"


@dataclass(frozen=True)
class Chart:
    """One chart: `data` for the page's script, and its title, description and numbers for everyone."""

    title: str
    about: str
    data: dict[str, Any]
    numbers: NumbersTable
    note: str = ""
    place: int = 0
    """Where its data are among those of all charts."""


class ChartList:
    """The charts of a page in their order."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def add(self, *charts: Chart | None) -> tuple[Chart, ...]:
        """Give charts their places; those that there is nothing to draw for are left out."""
        placed = []
        for chart in charts:
            if chart is not None:
                placed.append(replace(chart, place=len(self.data)))
                self.data.append(chart.data)
        return tuple(placed)


def _shares(counts: Sequence[int]) -> list[float] | None:
    """Return counts as shares of their sum; None if that is 0."""
    total = sum(counts)
    return [float(f"{n / total:.5g}") for n in counts] if total else None


def draw_distribution(column: ColumnContent) -> Chart | None:
    """Compare the observed with the imputed cells of one column."""
    cells = column.cells
    if not cells.observed:
        return None
    observed, imputed = _shares(cells.observed), _shares(cells.imputed)
    names: Sequence[str]
    if cells.classes:
        names = cells.classes
        data: dict[str, Any] = {"type": "classes", "labels": names}
    else:
        data = {"type": "numbers", "edges": cells.edges}
        pairs = zip(cells.edges[:-1], cells.edges[1:], strict=True)
        names = [f"{low:.5g} to {high:.5g}" for low, high in pairs]
    counts = [cells.observed, cells.imputed] if imputed else [cells.observed]
    rows = [(name, *(f"{n:,}" for n in own)) for name, *own in zip(names, *counts, strict=True)]
    header = ("class" if cells.classes else "value", "observed cells", "imputed cells")[: len(counts) + 1]
    against = f" against {count(cells.n_filled, 'imputed cell')}" if imputed else ""
    return Chart(
        "Observed and imputed cells" if imputed else "Observed cells",
        f"Chart: how {count(cells.n_observed, 'observed cell')}{against} are distributed.",
        data | {"observed": observed, "imputed": imputed},
        NumbersTable(header, rows, "class" if cells.classes else "text"),
        f"{count(cells.beyond, 'cell')} with far values not drawn." if cells.beyond else "",
    )


def draw_curves(column: ColumnContent) -> Chart | None:
    """Draw the learning curves of one column."""
    if not column.curves:
        return None
    lines = [{"method": one.method, "epochs": one.epochs, "gain": one.gain} for one in column.curves]
    rows = [
        (
            one.method,
            count(one.epochs[-1], "epoch"),
            number(one.gain[-1] + one.baseline),
            number(one.baseline),
            number(one.error),
            number(one.baseline_error),
            percent(one.gradient_share),
        )
        for one in column.curves
    ]
    header = ("training", "length", "log-likelihood", "of the column alone", "error", "baseline", "gradient share")
    ends = "; ".join(f"{one.method} ends {number(one.gain[-1])}" for one in column.curves)
    about = f"Chart: log-likelihood by epoch, above that of the column alone: {ends}."
    return Chart("Learning curve", about, {"type": "curves", "lines": lines}, NumbersTable(header, rows))


class Series(NamedTuple):
    """One mark of every row in a chart of all columns."""

    name: str
    value: Value
    key: str = ""
    """What the page's script knows it by, if not by its name."""


def _pick(columns: Sequence[ColumnContent], size: Value) -> tuple[list[ColumnContent], str]:
    """Return columns by size, the largest first; of too many, those at both ends."""
    found = sorted((c for c in columns if size(c) is not None), key=lambda c: -(size(c) or 0.0))
    if len(found) <= MOST_ROWS:
        return found, ""
    half = MOST_ROWS // 2
    note = f"The {half} largest and the {half} smallest of {len(found)} columns; the table above has all of them."
    return found[:half] + found[-half:], note


def _all_columns(
    kind: str,
    words: tuple[str, str],
    columns: Sequence[ColumnContent],
    series: Sequence[Series],
    show: Callable[[Any], str],
    *,
    sort_by: int = 0,
    **more: Any,
) -> Chart | None:
    """Make a chart with a row for every column; `words` are its title and description."""
    chosen, note = _pick(columns, series[sort_by].value)
    if not chosen:
        return None
    data = {
        "type": kind,
        "names": [column.name for column in chosen],
        "series": [
            {"key": one.key or one.name, "name": one.name, "values": [one.value(c) for c in chosen]} for one in series
        ],
        **more,
    }
    rows = [(c.name, *(show(one.value(c)) for one in series)) for c in chosen]
    return Chart(*words, data, NumbersTable(("column", *(one.name for one in series)), rows, "column"), note)


def draw_smoothness(content: ReportContent) -> Chart | None:
    """Draw the smoothness of every column before and after scaling."""

    def value(method: str) -> Value:
        return lambda column: positive(column.balance.smoothness.get(method)) if column.balance else None

    series = [Series("as it is", value("none"), "none"), Series("std", value("std")), Series("lip", value("lip"))]
    words = (
        "Smoothness of each column’s log-likelihood, before and after scaling",
        "Chart: smoothness of every column as it is, standardized, and under Lipschitz standardization.",
    )
    return _all_columns("smoothness", words, content.columns, series, number, sort_by=1)


def positive(value: Any) -> float | None:
    """Return a number if a log axis can show it."""
    found = known(value)
    return found if found is not None and found > 0.0 else None


def draw_gradient(content: ReportContent) -> Chart | None:
    """Draw the share of the gradient that every column gets."""

    def value(method: str) -> Value:
        return lambda column: known(column.balance.gradient_share.get(method)) if column.balance else None

    n_columns = sum(column.balance is not None for column in content.columns)
    words = (
        "Share of the gradient that each column gets",
        "Chart: share of the gradient of every column, standardized and under Lipschitz standardization.",
    )
    series = [Series(method, value(method)) for method in ("std", "lip")]
    return _all_columns("gradient", words, content.columns, series, percent, equal=1.0 / max(n_columns, 1))


def draw_errors(content: ReportContent) -> Chart | None:
    """Draw the error of every column after each short training, relative to that of the mean or the mode."""
    methods = list(dict.fromkeys(curve.method for column in content.columns for curve in column.curves))
    if not methods:
        return None

    def value(method: str) -> Value:
        return lambda column: next((_relative(c) for c in column.curves if c.method == method), None)

    words = (
        "Error after the short trainings, divided by that of imputing the mean or the mode",
        "Chart: error of every column on hidden cells after each short training, divided by that of mean or mode.",
    )
    return _all_columns("errors", words, content.columns, [Series(one, value(one)) for one in methods], number)


def _relative(curve: LearningCurve) -> float | None:
    error, baseline = known(curve.error), known(curve.baseline_error)
    return error / baseline if error is not None and baseline else None


def draw_comparison(content: ReportContent) -> Chart:
    """Draw the errors of a comparison."""
    candidates = content.comparison
    data = {
        "type": "comparison",
        "names": [one.name for one in candidates],
        "errors": [known(one.error) for one in candidates],
        "baselines": [known(one.baseline) for one in candidates],
    }
    rows = [(one.name, number(one.error), number(one.baseline), number(one.seconds)) for one in candidates]
    about = "Chart: " + "; ".join(f"{one.name} {number(one.error)}" for one in candidates) + "."
    numbers = NumbersTable(("", "error", "baseline", "seconds"), rows)
    return Chart("Error on hidden cells, less is better", about, data, numbers)
