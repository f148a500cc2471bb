"""The charts: for each, the data that the page draws it from and the same as a table for those who cannot see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenly.report.facts import ColumnFacts, Curve, Facts
from evenly.report.markup import Html, count, known, number, percent, show_name, table, tag

MOST_ROWS = 40
"""Columns in a chart of all columns: the table of columns has the others."""


@dataclass(frozen=True)
class Chart:
    """One chart: `data` for the page's script, and its title, description and numbers for everyone."""

    title: str
    about: str
    data: dict[str, Any]
    numbers: Html
    note: str = ""


class Charts:
    """Writes charts into the page and keeps their data for its script."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def write(self, chart: Chart | None) -> Html | None:
        """Return the chart's place in the page."""
        if chart is None:
            return None
        self.data.append(chart.data)
        place = tag("div", class_="plot", data_chart=len(self.data) - 1, role="img", aria_label=chart.about)
        return tag(
            "figure",
            tag("figcaption", chart.title),
            place,
            tag("p", chart.note, class_="note") if chart.note else None,
            tag("details", tag("summary", "The numbers"), chart.numbers),
            class_="chart",
        )


def _shares(counts: Sequence[int]) -> list[float] | None:
    """Return counts as shares of all; None where there is nothing."""
    total = sum(counts)
    return [float(f"{n / total:.5g}") for n in counts] if total else None


def draw_distribution(column: ColumnFacts) -> Chart | None:
    """Observed against imputed cells of one column."""
    cells = column.cells
    if not cells.observed:
        return None
    observed, imputed = _shares(cells.observed), _shares(cells.imputed)
    if cells.classes:
        data: dict[str, Any] = {"type": "classes", "labels": cells.classes}
        names: Sequence[Any] = [tag("bdi", label) for label in cells.classes]
    else:
        data = {"type": "numbers", "edges": cells.edges}
        pairs = zip(cells.edges[:-1], cells.edges[1:], strict=True)
        names = [f"{low:.5g} to {high:.5g}" for low, high in pairs]
    data |= {"observed": observed, "imputed": imputed}
    rows = [
        (name, f"{one:,}", *([f"{other:,}"] if imputed else []))
        for name, one, other in zip(names, cells.observed, cells.imputed, strict=True)
    ]
    header = ("class" if cells.classes else "value", "observed cells", *(["imputed cells"] if imputed else []))
    against = f" against {count(cells.n_filled, 'imputed cell')}" if imputed else ""
    about = f"Chart: how {count(cells.n_observed, 'observed cell')}{against} are distributed."
    note = f"{count(cells.beyond, 'cell')} with far values not drawn." if cells.beyond else ""
    return Chart("Observed and imputed cells" if imputed else "Observed cells", about, data, table(header, rows), note)


def draw_curves(column: ColumnFacts) -> Chart | None:
    """Return the learning curves of one column."""
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
    return Chart("Learning curve", about, {"type": "curves", "lines": lines}, table(header, rows))


def _pick(columns: Sequence[ColumnFacts], size: Callable[[ColumnFacts], float | None]) -> tuple[list[ColumnFacts], str]:
    """Return columns by size, the largest first; of too many, those at both ends."""
    found = sorted((c for c in columns if size(c) is not None), key=lambda c: -(size(c) or 0.0))
    if len(found) <= MOST_ROWS:
        return found, ""
    half = MOST_ROWS // 2
    note = f"The {half} largest and the {half} smallest of {len(found)} columns; the table above has all of them."
    return found[:half] + found[-half:], note


def _all_columns(
    kind: str,
    title: str,
    about: str,
    columns: Sequence[ColumnFacts],
    series: Sequence[tuple[str, str, Callable[[ColumnFacts], float | None]]],
    show: Callable[[Any], str],
    sort_by: int = 0,
    **more: Any,
) -> Chart | None:
    """Make a chart with a row for every column; `series` are (key, name, value of a column)."""
    chosen, note = _pick(columns, series[sort_by][2])
    if not chosen:
        return None
    data = {
        "type": kind,
        "names": [column.name for column in chosen],
        "series": [{"key": key, "name": name, "values": [value(c) for c in chosen]} for key, name, value in series],
        **more,
    }
    rows = [(show_name(c.name), *(show(value(c)) for _, _, value in series)) for c in chosen]
    return Chart(title, about, data, table(("column", *(name for _, name, _ in series)), rows), note)


def draw_smoothness(facts: Facts) -> Chart | None:
    """Return the smoothness of every column before and after."""

    def value(method: str) -> Callable[[ColumnFacts], float | None]:
        return lambda column: positive(column.balance.smoothness.get(method)) if column.balance else None

    series = [("none", "as it is", value("none")), ("std", "std", value("std")), ("lip", "lip", value("lip"))]
    title = "Smoothness of each column’s log-likelihood, before and after scaling"
    about = "Chart: smoothness of every column as it is, standardized, and under Lipschitz standardization."
    return _all_columns("smoothness", title, about, facts.columns, series, number, sort_by=1)


def positive(value: Any) -> float | None:
    """Return a number that a log axis has a place for."""
    found = known(value)
    return found if found is not None and found > 0.0 else None


def draw_gradient(facts: Facts) -> Chart | None:
    """Return the share of the gradient that every column gets."""

    def value(method: str) -> Callable[[ColumnFacts], float | None]:
        return lambda column: known(column.balance.gradient_share.get(method)) if column.balance else None

    series = [("std", "std", value("std")), ("lip", "lip", value("lip"))]
    n_columns = sum(column.balance is not None for column in facts.columns)
    about = "Chart: share of the gradient of every column, standardized and under Lipschitz standardization."
    title = "Share of the gradient that each column gets"
    return _all_columns("gradient", title, about, facts.columns, series, percent, equal=1.0 / max(n_columns, 1))


def draw_errors(facts: Facts) -> Chart | None:
    """Return the error of every column after each short training, as a share of what the mean or the mode gets."""
    methods = list(dict.fromkeys(curve.method for column in facts.columns for curve in column.curves))
    if not methods:
        return None

    def value(method: str) -> Callable[[ColumnFacts], float | None]:
        return lambda column: next((_relative(c) for c in column.curves if c.method == method), None)

    series = [(method, method, value(method)) for method in methods]
    about = "Chart: error of every column on hidden cells after each short training, divided by that of mean or mode."
    title = "Error after the short trainings, divided by that of imputing the mean or the mode"
    return _all_columns("errors", title, about, facts.columns, series, number)


def _relative(curve: Curve) -> float | None:
    error, baseline = known(curve.error), known(curve.baseline_error)
    return error / baseline if error is not None and baseline else None


def draw_comparison(facts: Facts) -> Chart | None:
    """Return the errors of what was compared."""
    if not facts.comparison:
        return None
    names = [name for name, *_ in facts.comparison]
    errors, baselines = ([known(row[k]) for row in facts.comparison] for k in (1, 2))
    data = {"type": "comparison", "names": names, "errors": errors, "baselines": baselines}
    rows = [(name, number(e), number(b), number(s)) for name, e, b, s in facts.comparison]
    numbers = table(("", "error", "baseline", "seconds"), rows)
    about = "Chart: " + "; ".join(f"{name} {number(error)}" for name, error, *_ in facts.comparison) + "."
    return Chart("Error on hidden cells, less is better", about, data, numbers)
