"""The sections of the page, in their order; one that nothing was given for is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from evenly.report import charts
from evenly.report.facts import ColumnFacts, Facts
from evenly.report.markup import Html, cell, count, join, known, number, percent, show_name, table, tag

NAMED = 8
"""Columns named in a sentence; of more, their number is told."""


class Section(NamedTuple):
    """A part of the page that the menu leads to."""

    anchor: str
    title: str
    body: Html


def write_sections(facts: Facts, drawn: charts.Charts) -> Iterator[Section]:
    """Go through the sections of the report."""
    yield Section("columns", "All columns", _columns_table(facts))
    if facts.diagnosis is not None:
        yield Section("diagnosis", "Who is learned, and who is overlooked", _diagnosis(facts, drawn))
    cards = [_card(j, column, drawn) for j, column in enumerate(facts.columns) if not column.passed_through]
    if cards:
        yield Section("each", "Column by column", join([_tell_cards(facts), tag("div", *cards, id="cards")]))
    if facts.comparison:
        yield Section("comparison", "Side by side", _comparison(facts, drawn))
    yield Section("settings", "Settings", _settings(facts))


# --- the summary ------------------------------------------------------------------------------------------------


def write_summary(facts: Facts) -> Html:
    """Return the numbers that matter and what they mean, in plain words."""
    tiles = [
        (f"{facts.n_rows:,}", "rows"),
        (f"{len(facts.columns):,}", "columns"),
        (f"{facts.n_missing:,}", "cells missing"),
    ]
    if facts.filled:
        tiles.append((f"{facts.n_filled:,}", "cells filled"))
    if facts.trial is not None and known(facts.trial.error) is not None:
        tiles.append((number(facts.trial.error), f"error, against {number(facts.trial.baseline)} of mean or mode"))
    shown = [tag("div", tag("dt", what), tag("dd", value), class_="tile") for value, what in tiles]
    sentences = [s for s in (_tell_missing(facts), _tell_error(facts), _tell_worse(facts)) if s]
    verdict = None
    if facts.diagnosis is not None and facts.diagnosis.verdict:
        verdict = tag("p", tag("strong", "Verdict. "), facts.diagnosis.verdict, class_="verdict")
    return join([tag("dl", *shown, class_="tiles"), *(tag("p", s) for s in sentences), verdict])


def _tell_missing(facts: Facts) -> str:
    if facts.n_missing == 0:
        return "Nothing was missing: there was no cell to fill."
    share = percent(facts.n_missing / (facts.n_rows * len(facts.columns)))
    told = (
        f"{count(facts.n_missing, 'cell')} of the table ({share}) {'was' if facts.n_missing == 1 else 'were'} missing."
    )
    left = facts.n_missing - facts.n_filled
    if not facts.filled:
        return told
    if not left:
        return f"{told} All of them were filled; observed cells are untouched."
    why = "in columns that are passed through or have no observed cell"
    were = "was" if facts.n_filled == 1 else "were"
    return f"{told} {count(facts.n_filled, 'cell')} {were} filled; {left:,} stay missing, {why}."


def _tell_error(facts: Facts) -> str:
    trial = facts.trial
    if trial is None or not trial.columns or known(trial.error) is None:
        return ""
    n_cells = sum(one.n_cells for one in trial.columns)
    told = (
        f"To see how far imputed cells can be trusted, {percent(trial.share)} of the observed cells ({n_cells:,}) were "
        f"hidden, imputed and compared with the truth. The error is {number(trial.error)} on average over columns; "
        f"imputing the mean or the most frequent class gives {number(trial.baseline)}"
    )
    gain = 1.0 - trial.error / trial.baseline if trial.baseline else 0.0
    return f"{told}: {percent(gain)} less." if gain > 0.0 else f"{told}, which is no worse."


def _tell_worse(facts: Facts) -> str:
    """Say which columns the model is of no use for."""
    scored = [column for column in facts.columns if column.trial is not None]
    worse = [column.name for column in scored if not column.trial.error < column.trial.baseline]
    if not worse:
        return ""
    return f"No better than that: {name_some(worse)}."


def name_some(names: Sequence[str]) -> str:
    """Name a few columns, and count the others.

    Examples
    --------
    >>> name_some(["a", "b"]), name_some([str(j) for j in range(100)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 92 more')
    """
    shown = ", ".join(name if name.strip() else "(no name)" for name in names[:NAMED])
    return shown + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")


# --- the table of columns ---------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A column of the table of columns: what it shows, and what it is sorted by."""

    title: str
    about: str
    value: Callable[[ColumnFacts], Any]
    show: Callable[[Any], Any] = str


def _of(part: str, name: str, method: str = "") -> Callable[[ColumnFacts], Any]:
    """Return what reads a column's trial or balance, if it has one."""

    def value(column: ColumnFacts) -> Any:
        found = getattr(column, part)
        found = None if found is None else getattr(found, name)
        return found.get(method) if method and found is not None else found

    return value


def _fields(facts: Facts) -> list[Field]:
    fields = [
        Field("Kind", "What the column holds", lambda c: "passed through" if c.passed_through else c.kind),
        Field("Likelihood", "What the model explains it by", lambda c: c.likelihood),
        Field("Missing", "Share of missing cells", lambda c: c.cells.n_missing / c.cells.n_rows, percent),
    ]
    if facts.trial is not None:
        fields += [
            Field("Error", "On hidden cells, with its 90 % interval", _of("trial", "error")),
            Field(
                "Mean or mode",
                "Error of imputing the mean or the most frequent class",
                _of("trial", "baseline"),
                number,
            ),
            Field("Covered", "Hidden numbers inside their 90 % intervals", _of("trial", "covered"), percent),
        ]
    if facts.diagnosis is not None:
        fields += [
            Field("Smoothness, std", "After standardizing", _of("balance", "smoothness", "std"), number),
            Field("Smoothness, lip", "After Lipschitz standardization", _of("balance", "smoothness", "lip"), number),
            Field("Gradient, std", "Share of the gradient", _of("balance", "gradient_share", "std"), percent),
            Field("Gradient, lip", "Share of the gradient", _of("balance", "gradient_share", "lip"), percent),
            Field("Overlooked", "In a short training under these methods", lambda c: ", ".join(c.overlooked)),
        ]
    return fields


def _columns_table(facts: Facts) -> Html:
    fields = _fields(facts)
    titles = [("Column", "Name"), *((field.title, field.about) for field in fields)]
    head = tag("tr", *(_sortable(title, about) for title, about in titles))
    body = [_row(j, column, fields) for j, column in enumerate(facts.columns)]
    search = tag(
        "div",
        tag("label", "Find columns", for_="search"),
        tag("input", id="search", type="search", autocomplete="off", spellcheck="false", placeholder="name, kind, …"),
        tag("span", id="found", role="status"),
        class_="search script",
    )
    inner = tag("table", tag("thead", head), tag("tbody", *body), id="overview")
    area = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label="Table of all columns")
    key = tag(
        "p",
        _whiskers(KEY),
        "error on hidden cells with its 90 % interval, from 0; ",
        tag("span", "┊", class_="tick"),
        " mean or mode",
    )
    return join([search, area, tag("div", key, class_="key") if facts.trial is not None else None])


def _sortable(title: str, about: str) -> Html:
    return tag("th", tag("button", title, type="button", title=about), scope="col", aria_sort="none")


def _row(j: int, column: ColumnFacts, fields: Sequence[Field]) -> Html:
    name = show_name(column.name)
    link = name if column.passed_through else tag("a", name, href=f"#c{j}")
    note = tag("small", column.note) if column.passed_through and column.note else None
    cells = [tag("th", link, note, scope="row", data_value=column.name)]
    for field in fields:
        value = field.value(column)
        if isinstance(value, str):
            shown = _marks(column) if field.title == "Overlooked" else value
            cells.append(tag("td", shown, data_value=value))
        else:
            shown = _error(column.trial) if field.title == "Error" else field.show(value)
            cells.append(tag("td", shown, class_="number", data_value=known(value)))
    return tag("tr", *cells, data_column=j)


def _marks(column: ColumnFacts) -> Html:
    return join([join([tag("span", method, class_="mark"), " "]) for method in column.overlooked])


def _error(trial: Any) -> Html | str:
    if trial is None:
        return "–"
    interval = tag("small", f"{number(trial.low)} to {number(trial.high)}")
    return join([tag("span", number(trial.error), _whiskers(trial), class_="error"), interval])


WHISKERS_WIDTH = 72
KEY = SimpleNamespace(error=0.6, low=0.4, high=0.8, baseline=1.0)
"""The error that the drawings are explained by."""


def _whiskers(trial: Any) -> Html | None:
    """Draw an error with its interval, and the baseline as a tick, from 0 on."""
    values = [known(value) for value in (trial.error, trial.low, trial.high, trial.baseline)]
    top = max((value for value in values if value is not None), default=0.0)
    if None in values or not top > 0.0:
        return None
    error, low, high, baseline = (f"{3 + (WHISKERS_WIDTH - 6) * max(v or 0.0, 0.0) / top:.1f}" for v in values)
    return tag(
        "svg",
        tag("line", class_="axis", x1=3, x2=WHISKERS_WIDTH - 3, y1=6, y2=6),
        tag("line", class_="interval", x1=low, x2=high, y1=6, y2=6),
        tag("circle", class_="dot", cx=error, cy=6, r=3),
        tag("line", class_="baseline", x1=baseline, x2=baseline, y1=1, y2=11),
        class_="whiskers",
        viewBox=f"0 0 {WHISKERS_WIDTH} 12",
        width=WHISKERS_WIDTH,
        height=12,
        aria_hidden="true",
    )


# --- the diagnosis ----------------------------------------------------------------------------------------------


def _diagnosis(facts: Facts, drawn: charts.Charts) -> Html:
    intro = (
        "A model that is trained by gradients listens to the columns whose log-likelihoods are most curved: their "
        "smoothness is a number for that. Lipschitz standardization (lip) scales them so that it is the same for all."
    )
    wide = [drawn.write(draw(facts)) for draw in (charts.draw_smoothness, charts.draw_gradient, charts.draw_errors)]
    trainings = None
    if facts.diagnosis.trainings:
        rows = [
            (t.method, f"{t.epochs:,}", number(_mean(t.error)), number(_mean(t.baseline_error)), _overlooked(t))
            for t in facts.diagnosis.trainings
        ]
        header = ("training", "epochs", "error", "mean or mode", "overlooked columns")
        trainings = join([tag("h3", "Short trainings"), table(header, rows, class_="numbers wide")])
    return join([tag("p", intro, class_="lead"), *wide, trainings])


def _mean(errors: Any) -> float | None:
    values = [value for value in map(known, errors.values()) if value is not None]
    return sum(values) / len(values) if values else None


def _overlooked(training: Any) -> str:
    return name_some(training.overlooked) if training.overlooked else "none"


# --- column by column -------------------------------------------------------------------------------------------


def _tell_cards(facts: Facts) -> Html:
    order = tag("span", "In the order of the table above, and only those that its search finds. ", class_="script")
    guesses = "Imputed cells are best guesses: they spread less than observed ones do. " if facts.n_filled else None
    tricks = {curve.method.partition("-")[2] for column in facts.columns for curve in column.curves}
    curves = None
    if len(tricks) > 1:
        curves = "Under a trick a discrete column’s features are learned: its curve compares with 0, not with another."
    return tag("p", order, guesses, curves, class_="lead")


def _card(j: int, column: ColumnFacts, drawn: charts.Charts) -> Html:
    mark = tag("span", f"overlooked under {', '.join(column.overlooked)}", class_="mark") if column.overlooked else None
    facts = [column.kind, column.likelihood, _tell_cells(column)]
    sub = tag("p", " · ".join(fact for fact in facts if fact), class_="sub")
    figures = [drawn.write(chart) for chart in (charts.draw_distribution(column), charts.draw_curves(column))]
    shown = tag("div", *figures, class_="figures") if any(figures) else None
    empty = None if column.cells.observed else tag("p", "No observed cell: there is nothing to learn from.")
    title = tag("h3", show_name(column.name), mark, id=f"c{j}", tabindex="-1")
    return tag(
        "article", title, sub, empty, shown, _trial(column), class_="card", data_column=j, aria_labelledby=f"c{j}"
    )


def _tell_cells(column: ColumnFacts) -> str:
    cells = column.cells
    if not cells.n_missing:
        return "no cell missing"
    filled = f", {cells.n_filled:,} filled" if cells.n_filled else ""
    return f"{cells.n_missing:,} of {cells.n_rows:,} cells missing ({percent(cells.n_missing / cells.n_rows)}){filled}"


def _trial(column: ColumnFacts) -> Html | None:
    trial = column.trial
    if trial is None:
        return None
    plain = "the most frequent class" if trial.measure == "error rate" else "the mean"
    measure = trial.measure[:1].upper() + trial.measure[1:]
    told = tag(
        "p",
        f"{measure} ",
        tag("strong", number(trial.error)),
        f" (90 % interval {number(trial.low)} to {number(trial.high)}) on {count(trial.n_cells, 'hidden cell')}; "
        f"{plain} gives {number(trial.baseline)}.",
    )
    covered = None
    if known(trial.covered) is not None:
        covered = tag("p", f"{percent(trial.covered)} of the hidden numbers lie inside their 90 % intervals.")
    examples = None
    if trial.examples:
        rows = [("true", *(cell(true) for true, _ in trial.examples))]
        rows.append(("imputed", *(cell(imputed) for _, imputed in trial.examples)))
        shown = [
            tag("tr", tag("th", row[0], scope="row"), *(tag("td", tag("bdi", c)) for c in row[1:])) for row in rows
        ]
        inner = tag("table", tag("caption", "Hidden cells, for example"), tag("tbody", *shown), class_="examples")
        examples = tag("div", inner, class_="scroll", tabindex="0", role="group", aria_label="examples")
    return tag("div", tag("div", told, covered), examples, class_="trial")


# --- the rest ---------------------------------------------------------------------------------------------------


def _comparison(facts: Facts, drawn: charts.Charts) -> Html:
    lead = "The same hidden cells of this table, imputed in several ways."
    return join([tag("p", lead, class_="lead"), drawn.write(charts.draw_comparison(facts))])


def _settings(facts: Facts) -> Html:
    parts: list[Html | None] = []
    if facts.command:
        parts.append(join([tag("h3", "Once more"), tag("pre", tag("code", facts.command), tabindex="0")]))
    if facts.seed:
        parts.append(tag("p", f"Seed: {facts.seed}. The same table, settings, versions and seed give the same cells."))
    if facts.settings:
        parts.append(join([tag("h3", "The imputer"), table(("setting", "value"), facts.settings)]))
    if facts.trial is not None:
        trial = facts.trial
        parts.append(tag("p", f"Hidden cells were imputed by {trial.model}, {trial.method}, in {trial.seconds:.1f} s."))
    parts.append(join([tag("h3", "Versions"), table(("package", "version"), facts.versions)]))
    return join(parts)
