"""The sections of the page in their order. One is left out if nothing was given for it.

`templates/<anchor>.html` shows a section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenly.evaluation import say_ratio, say_trial, say_winner, verdict_of
from evenly.report import charts, wide_charts
from evenly.report.charts import Chart, ChartList
from evenly.report.content import ColumnContent, ReportContent
from evenly.report.formatting import count, known, percent

MOST_ROWS = 40
"""Columns in a table of ratios by candidate."""
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
    menu: str = ""
    """What the menu calls it, if not by its title."""


def make_sections(content: ReportContent, drawn: ChartList) -> Iterator[Section]:
    """Go through the sections of the report; their charts are added to those that are drawn."""
    if content.comparison:
        yield Section("comparison", "Side by side", drawn.add(wide_charts.draw_comparison(content)))
    yield Section("columns", "All columns")
    yield from _about_the_imputer(content, drawn)
    yield from _about_the_table(content, drawn)
    if content.diagnosis is not None:
        wide = (wide_charts.draw_smoothness, wide_charts.draw_gradient, wide_charts.draw_errors)
        title = "Training by gradients: who is learned, and who is overlooked"
        yield Section("diagnosis", title, drawn.add(*(draw(content) for draw in wide)), menu="Who is overlooked")
    own = (charts.draw_distribution, charts.draw_own_curve, charts.draw_short_curves)
    cards = tuple(
        Card(place, one, describe(one), drawn.add(*(draw(one) for draw in own)))
        for place, one in content.ranked
        if not one.passed_through
    )
    if cards:
        yield Section("each", "Column by column", cards=cards)
    yield Section("settings", "Settings")


def _about_the_imputer(content: ReportContent, drawn: ChartList) -> Iterator[Section]:
    if content.trial is not None:
        found = drawn.add(wide_charts.draw_relative(content), wide_charts.draw_coverage(content))
        if found:
            yield Section("accuracy", "How far imputed cells can be trusted", found, menu="Errors")
    if content.shown_rows is not None:
        yield Section("rows", "Some rows, with their imputed cells", menu="Rows")
    if content.rules:
        yield Section("rules", "Rules that rows obey", menu="Rules")
    if content.training is not None:
        curve = drawn.add(charts.draw_training(content.training))
        yield Section("training", "How the imputer was trained", curve, menu="Training")


def _about_the_table(content: ReportContent, drawn: ChartList) -> Iterator[Section]:
    if content.missingness is not None:
        yield Section("missing", "What is missing", drawn.add(wide_charts.draw_missing(content)), menu="Missing")
    if content.associations is not None:
        found = drawn.add(wide_charts.draw_associations(content.associations))
        yield Section("associations", "Which columns go together", found, menu="Associations")


# --- sentences --------------------------------------------------------------------------------------------------


def headline(content: ReportContent) -> str:
    """Return the first sentence: what was gained over mean or mode."""
    if content.comparison:
        return unbroken(say_winner(content.comparison))
    return "" if content.trial is None else unbroken(say_trial(content.trial))


def summarize(content: ReportContent) -> list[str]:
    """Return the sentences of the summary after the first."""
    found = (_worse(content), _covered(content), _missing(content), _ruled(content), _repeated(content))
    return [text for text in found if text]


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


def _ruled(content: ReportContent) -> str:
    """Say whether all filled rows obey the rules, and whether observed cells do."""
    n, n_against = len(content.rules), sum(one.n_against > 0 for one in content.rules)
    if not n:
        return ""
    which = "the rule" if n == 1 else f"each of the {n} rules"
    text = f"Filled rows obey {which}." if not n_against else f"Not all filled rows obey {which}."
    against = sum(one.n_observed > 0 for one in content.rules)
    whose = "it" if n == 1 else f"{against} of them" if against < n else "them"
    return f"{text} Observed cells, which stay as they are, contradict {whose}." if against else text


def _covered(content: ReportContent) -> str:
    scored = [one for one in (content.trial.columns if content.trial else ()) if one.covered is not None]
    n_cells = sum(one.n_cells for one in scored)
    if not n_cells:
        return ""
    share = sum(one.covered * one.n_cells for one in scored) / n_cells
    return unbroken(f"Of the {n_cells:,} hidden numbers, {percent(share)} lie inside their own 90 % intervals.")


def _worse(content: ReportContent) -> str:
    """Name the columns for which mean or mode are better."""
    scored = content.trial.columns if content.trial else ()
    worse = [one.column for one in scored if verdict_of(one) == "worse"]
    return f"Better filled by their mean or most frequent class: {name_some(worse)}." if worse else ""


def _repeated(content: ReportContent) -> str:
    found = content.repeated
    if not (found.n_rows or found.n_modelled):
        return ""
    if found.n_rows == found.n_modelled:
        return f"{count(found.n_rows, 'row')} {'repeats' if found.n_rows == 1 else 'repeat'} an earlier one."
    start = count(found.n_modelled, "row")
    repeat = "repeats" if found.n_modelled == 1 else "repeat"
    return (
        f"{start} {repeat} an earlier one except in columns that are passed through; {found.n_rows:,} in all columns."
    )


def unbroken(text: str) -> str:
    """Keep per cent signs on the line of their numbers."""
    return text.replace(" %", "\u00a0%")


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
    classes = count(cells.n_classes, "class") if cells.n_classes else ""
    return " · ".join(filter(None, (column.kind, column.modelled_by, column.unit, classes, missing)))


def ratio_in_words(trial: Any) -> str:
    """Say how the error of one column compares with that of mean or mode."""
    ratio = say_ratio(trial.normalized)
    if ratio.startswith("0 "):
        return "the error is the same"
    level = ", level with it within the interval" if verdict_of(trial) == "level" else ""
    return unbroken(f"the error is {ratio}{level}")


def drawn(content: ReportContent) -> bool:
    """Whether the imputed cells that are shown were drawn at random."""
    return any(column.cells.drawn for column in content.columns)


def ratios_by_column(content: ReportContent) -> list[tuple[str, list[tuple[float | None, bool]]]]:
    """Return the ratio of each column under each candidate, and whether it is the best; of many columns, the worst."""
    found = []
    scored = [one.name for _, one in content.ranked if one.trial is not None][:MOST_ROWS]
    by_trial = [{one.column: one.normalized for one in trial.columns} for trial in content.comparison]
    for name in scored:
        own = [known(one.get(name)) for one in by_trial]
        best = min((value for value in own if value is not None), default=None)
        found.append((name, [(value, value is not None and value == best) for value in own]))
    return found


def gain(trial: Any) -> tuple[str, str] | None:
    """Return how much lower or higher the error of a trial is, and the word for it; None if unknown."""
    if trial is None or known(trial.normalized) is None:
        return None
    amount, _, word = unbroken(say_ratio(trial.normalized)).rpartition(" ")
    return amount, word


def mean_of(errors: Mapping[str, Any]) -> float | None:
    """Return the mean of the finite errors."""
    values = [value for value in map(known, errors.values()) if value is not None]
    return sum(values) / len(values) if values else None


# --- errors drawn in the table ----------------------------------------------------------------------------------

WHISKERS_WIDTH = 72


def whiskers(ratio: Any, low: Any, high: Any) -> tuple[str, ...] | None:
    """Return where to draw a ratio, both ends of its interval, and 1, on an axis from 0 to 2 or the ratio."""
    value, start, end = known(ratio), known(low), known(high)
    if value is None or start is None:
        return None
    top = max(2.0, value)
    return tuple(
        f"{3 + (WHISKERS_WIDTH - 6) * min(max(one, 0.0), top) / top:.1f}"
        for one in (value, start, top if end is None else end, 1.0)
    )
