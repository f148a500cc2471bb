"""Charts of all columns, pairs of columns or candidates: the same numbers as a table for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from evenly.evaluation import error_interval
from evenly.report.associations import MOST_IN_MAP, Associations
from evenly.report.charts import Chart, NumbersTable
from evenly.report.content import ColumnContent, ReportContent
from evenly.report.curves import LearningCurve
from evenly.report.formatting import known, number, percent

MOST_ROWS = 40
"""Columns in a chart of all columns: the table of columns has the rest."""
Value = Callable[[ColumnContent], float | None]


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
    note = (
        f"The {half} largest and the {half} smallest of {len(found)} columns; the table of all columns has the others."
    )
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
    methods = list(dict.fromkeys(curve.method for column in content.columns for curve in column.short_curves))
    if not methods:
        return None

    def value(method: str) -> Value:
        return lambda column: next((_relative(c) for c in column.short_curves if c.method == method), None)

    words = (
        "Error after the short trainings, divided by that of imputing the mean or the mode",
        "Chart: error of every column on hidden cells after each short training, divided by that of mean or mode.",
    )
    return _all_columns("errors", words, content.columns, [Series(one, value(one)) for one in methods], number)


def _relative(curve: LearningCurve) -> float | None:
    error, baseline = known(curve.error), known(curve.baseline_error)
    return error / baseline if error is not None and baseline else None


# --- trials ---------------------------------------------------------------------------------------------------------


def _intervals(
    words: tuple[str, str], names: Sequence[str], found: Sequence[Sequence[Any]], *, of: str = "column", **more: Any
) -> Chart:
    """Make a chart of values with their intervals; `found` has the value and both ends of each."""
    values, lows, highs = ([known(one) for one in own] for own in zip(*found, strict=True))
    data = {"type": "intervals", "names": list(names), "values": values, "lows": lows, "highs": highs, **more}
    show = percent if more.get("share") else number
    rows = [(name, *(show(one) for one in own)) for name, *own in zip(names, values, lows, highs, strict=True)]
    header = (of, more["name"], "90 % interval from", "to")
    return Chart(*words, data, NumbersTable(header, rows, "column"))


RELATIVE: dict[str, Any] = {"reference": 1.0, "reference_name": "mean or mode", "name": "error / error of mean or mode"}


def draw_relative(content: ReportContent) -> Chart | None:
    """Draw the error of every column relative to that of mean or mode, worst first."""
    scored = [c for _, c in content.ranked if c.trial is not None and c.trial.baseline]
    if not scored:
        return None
    chosen, note = _both_ends(scored)
    words = (
        "Error of each column on hidden cells, relative to mean or mode, with its 90 % interval",
        "Chart: error of every column divided by that of mean or mode, from the worst to the best.",
    )
    ends = [(one.trial.normalized, one.trial.normalized_low, one.trial.normalized_high) for one in chosen]
    return _with_note(_intervals(words, [one.name for one in chosen], ends, **RELATIVE), note)


def draw_coverage(content: ReportContent) -> Chart | None:
    """Draw how many hidden numbers lie inside their 90 % intervals, for every column of numbers."""
    scored = [c for _, c in content.ranked if c.trial is not None and c.trial.covered is not None]
    if not scored:
        return None
    chosen, note = _both_ends(sorted(scored, key=lambda column: column.trial.covered))
    words = (
        "Hidden numbers inside their own 90 % intervals",
        "Chart: share of the hidden numbers of every column that lie inside their 90 % intervals, fewest first.",
    )
    ends = [(one.trial.covered, *covered_interval(one.trial.covered, one.trial.n_cells)) for one in chosen]
    more: dict[str, Any] = {
        "reference": 0.9,
        "reference_name": "aim",
        "name": "share of hidden numbers inside",
        "share": True,
    }
    return _with_note(_intervals(words, [one.name for one in chosen], ends, **more), note)


def covered_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 90 % interval of a share of cells, by Wilson."""
    return error_interval(share, np.zeros(n), rate=True)


def draw_comparison(content: ReportContent) -> Chart:
    """Draw the errors of the candidates of a comparison, relative to mean or mode, best first."""
    candidates = content.comparison
    names = [one.name for one in candidates]
    about = "Chart: " + "; ".join(f"{name} {number(c.normalized)}" for name, c in zip(names, candidates, strict=True))
    words = ("Error on hidden cells, relative to mean or mode, with its 90 % interval", f"{about}.")
    return _intervals(
        words, names, [one.normalized_interval for one in candidates], of="candidate", longest=24, **RELATIVE
    )


def _both_ends(columns: Sequence[ColumnContent]) -> tuple[list[ColumnContent], str]:
    if len(columns) <= MOST_ROWS:
        return list(columns), ""
    half = MOST_ROWS // 2
    note = f"The first and the last {half} of {len(columns)} columns; the table of all columns has the others."
    return [*columns[:half], *columns[-half:]], note


def _with_note(chart: Chart, note: str) -> Chart:
    return replace(chart, note=note)


# --- the table ------------------------------------------------------------------------------------------------------


def draw_missing(content: ReportContent) -> Chart | None:
    """Draw the share of missing cells of every column that has any."""

    def value(column: ColumnContent) -> float | None:
        return column.cells.n_missing / column.cells.n_rows if column.cells.n_missing else None

    words = ("Missing cells of each column", "Chart: share of missing cells of every column that has any.")
    return _all_columns("bars", words, content.columns, [Series("missing cells", value)], percent)


def draw_associations(found: Associations) -> Chart | None:
    """Draw a heat map of all pairs, if there are few enough columns."""
    if len(found.names) > MOST_IN_MAP:
        return None
    values = [[None if np.isnan(one) else round(float(one), 2) for one in row] for row in found.strength]
    pairs = found.strongest()
    rows = [(f"{one.first} – {one.second}", f"{one.strength:.2f}", one.measure) for one in pairs]
    about = "Chart: how strongly each pair of columns goes together" + (
        f"; most strongly {pairs[0].first} and {pairs[0].second}, {pairs[0].strength:.2f}." if pairs else "."
    )
    header = ("strongest pairs", "association", "measure")
    return Chart(
        "Associations of columns",
        about,
        {"type": "heat", "names": found.names, "values": values},
        NumbersTable(header, rows, "class"),
    )
