"""The charts: the data that the page draws each one from, and the same numbers as a table for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenly.report.content import ColumnContent
from evenly.report.curves import OwnTraining
from evenly.report.formatting import count, number, percent


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
    """Compare the observed with the imputed cells of one column, as shares of each."""
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
    what = "imputed, drawn at random" if cells.drawn else "imputed, best guesses"
    counts = [cells.observed, cells.imputed] if imputed else [cells.observed]
    rows = [(name, *(f"{n:,}" for n in own)) for name, *own in zip(names, *counts, strict=True)]
    header = ("class" if cells.classes else "value", "observed", what)[: len(counts) + 1]
    n_imputed = sum(cells.imputed)
    drawn = count(n_imputed, "draw") + " of imputed cells" if cells.drawn else count(n_imputed, "imputed cell")
    against = f" against {drawn}" if imputed else ""
    return Chart(
        "Observed and imputed cells" if imputed else "Observed cells",
        f"Chart: how {count(cells.n_observed, 'observed cell')}{against} are distributed.",
        data | {"observed": observed, "imputed": imputed, "imputed_name": what},
        NumbersTable(header, rows, "class" if cells.classes else "text"),
        f"{count(cells.beyond, 'cell')} with far values not drawn." if cells.beyond else "",
    )


def draw_own_curve(column: ColumnContent) -> Chart | None:
    """Draw the learning curve of one column in the imputer's training."""
    curve = column.curve
    if curve is None:
        return None
    lines = [{"method": curve.method, "epochs": curve.epochs, "gain": curve.gain}]
    ends = map(number, (curve.gain[-1] + curve.baseline, curve.baseline))
    numbers = NumbersTable(
        ("training", "length", "log-likelihood", "of the column alone"),
        [("the imputer", count(curve.epochs[-1], "epoch"), *ends)],
    )
    about = f"Chart: log-likelihood by epoch, above that of the column alone; it ends {number(curve.gain[-1])}."
    data = {"type": "curves", "lines": lines, "own": True}
    return Chart("Learning curve of the imputer", about, data, numbers)


def draw_short_curves(column: ColumnContent) -> Chart | None:
    """Draw the learning curves of one column in the short trainings of a diagnosis."""
    if not column.short_curves:
        return None
    curves = column.short_curves
    lines = [{"method": one.method, "epochs": one.epochs, "gain": one.gain} for one in curves]
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
        for one in curves
    ]
    header = ("training", "length", "log-likelihood", "of the column alone", "error", "baseline", "gradient share")
    ends = "; ".join(f"{one.method} ends {number(one.gain[-1])}" for one in curves)
    about = f"Chart: log-likelihood by epoch, above that of the column alone: {ends}."
    title = "Learning curves of the short trainings"
    return Chart(title, about, {"type": "curves", "lines": lines}, NumbersTable(header, rows))


def draw_training(training: OwnTraining) -> Chart:
    """Draw the ELBO of the imputer's training."""
    curve = training.curve
    rows = [(count(epoch, "epoch"), number(value)) for epoch, value in zip(curve.epochs, curve.gain, strict=True)]
    data = {"type": "elbo", "epochs": curve.epochs, "values": curve.gain}
    about = f"Chart: the ELBO by epoch, from {number(curve.gain[0])} to {number(curve.gain[-1])}."
    return Chart("ELBO by epoch, more is better", about, data, NumbersTable(("after", "ELBO"), rows))
