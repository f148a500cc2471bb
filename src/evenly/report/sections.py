"""The sections of the page in their order. One is left out if nothing was given for it.

`templates/<anchor>.html` shows a section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenly.report import charts
from evenly.report.charts import Chart, ChartList
from evenly.report.content import ColumnContent, ReportContent
from evenly.report.formatting import count, known, number, percent

MOST_NAMES = 8
"""Columns named in a sentence; of more, the rest are counted."""
NO_NAME = "(no name)"


class Card(NamedTuple):
    """One column by itself: its place in the table, its description and its charts."""

    place: int
    column: ColumnContent
    about: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Section:
    """A section of the page that the menu leads to: all that its template shows beside the report's content."""

    anchor: str
    title: str
    charts: tuple[Chart, ...] = ()
    cards: tuple[Card, ...] = ()


def make_sections(content: ReportContent, drawn: ChartList) -> Iterator[Section]:
    """Go through the sections of the report; their charts are added to those that are drawn."""
    yield Section("columns", "All columns")
    if content.diagnosis is not None:
        wide = (charts.draw_smoothness, charts.draw_gradient, charts.draw_errors)
        title = "Who is learned, and who is overlooked"
        yield Section("diagnosis", title, drawn.add(*(draw(content) for draw in wide)))
    cards = tuple(
        Card(j, one, describe(one), drawn.add(charts.draw_distribution(one), charts.draw_curves(one)))
        for j, one in enumerate(content.columns)
        if not one.passed_through
    )
    if cards:
        yield Section("each", "Column by column", cards=cards)
    if content.comparison:
        yield Section("comparison", "Side by side", drawn.add(charts.draw_comparison(content)))
    yield Section("settings", "Settings")


# --- sentences --------------------------------------------------------------------------------------------------


def summarize(content: ReportContent) -> list[str]:
    """Return the sentences of the summary."""
    return [text for text in (_missing(content), _error(content), _no_better(content)) if text]


def _missing(content: ReportContent) -> str:
    n_missing, n_filled = content.n_missing, content.n_filled
    if n_missing == 0:
        return "Nothing was missing: there was no cell to fill."
    share = percent(n_missing / (content.n_rows * len(content.columns)))
    text = f"{count(n_missing, 'cell')} of the table ({share}) {'was' if n_missing == 1 else 'were'} missing."
    if not content.filled:
        return text
    if n_filled == n_missing:
        return f"{text} All of them were filled; observed cells are untouched."
    why = "in columns that are passed through or have no observed cell"
    were = "was" if n_filled == 1 else "were"
    return f"{text} {count(n_filled, 'cell')} {were} filled; {n_missing - n_filled:,} stay missing, {why}."


def _error(content: ReportContent) -> str:
    trial = content.trial
    if trial is None or not trial.columns or known(trial.error) is None:
        return ""
    n_cells = sum(one.n_cells for one in trial.columns)
    text = (
        f"To see how far imputed cells can be trusted, {percent(trial.share)} of the observed cells ({n_cells:,}) were "
        f"hidden, imputed and compared with the truth. The error is {number(trial.error)} on average over columns; "
        f"imputing the mean or the most frequent class gives {number(trial.baseline)}"
    )
    gain = 1.0 - trial.error / trial.baseline if trial.baseline else 0.0
    return f"{text}: {percent(gain)} less." if gain > 0.0 else f"{text}, which is no worse."


def _no_better(content: ReportContent) -> str:
    """Name the columns that the model does not help with."""
    scored = [column for column in content.columns if column.trial is not None]
    worse = [column.name for column in scored if not column.trial.error < column.trial.baseline]
    return f"No better than that: {name_some(worse)}." if worse else ""


def name_some(names: Sequence[str]) -> str:
    """Name the first columns, and count the others.

    Examples
    --------
    >>> name_some(["a", "b"]), name_some([str(j) for j in range(100)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 92 more')
    """
    shown = ", ".join(name if name.strip() else NO_NAME for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "")


def describe(column: ColumnContent) -> str:
    """Return a column's kind, its likelihood and how many of its cells are missing."""
    cells, missing = column.cells, "no cell missing"
    if cells.n_missing:
        share = percent(cells.n_missing / cells.n_rows)
        filled = f", {cells.n_filled:,} filled" if cells.n_filled else ""
        missing = f"{cells.n_missing:,} of {cells.n_rows:,} cells missing ({share}){filled}"
    return " · ".join(filter(None, (column.kind, column.likelihood, missing)))


def mean_of(errors: Mapping[str, Any]) -> float | None:
    """Return the mean of the finite errors."""
    values = [value for value in map(known, errors.values()) if value is not None]
    return sum(values) / len(values) if values else None


# --- errors drawn in the table ----------------------------------------------------------------------------------

WHISKERS_WIDTH = 72


def whiskers(error: Any, low: Any, high: Any, baseline: Any) -> tuple[str, ...] | None:
    """Return where to draw an error, both ends of its interval, and the baseline, on an axis from 0."""
    values = [value for value in map(known, (error, low, high, baseline)) if value is not None]
    if len(values) < 4 or not max(values) > 0.0:
        return None
    return tuple(f"{3 + (WHISKERS_WIDTH - 6) * max(value, 0.0) / max(values):.1f}" for value in values)
