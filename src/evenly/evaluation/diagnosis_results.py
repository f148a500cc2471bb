"""What a diagnosis says of a table: the numbers of its columns and short trainings, as data, as text, as a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenly._support import align, to_plain

SCALINGS = ("none", "std", "max", "iqr", "lip")
"""What a table may have been scaled by before a training."""
MOST_NAMES = 6
"""Columns that a sentence names."""


@dataclass(frozen=True)
class ColumnBalance:
    """How loud a column would be, by what the table was scaled by (`SCALINGS`).

    Attributes
    ----------
    column, kind, likelihood : str
        Of the schema; under `lip` a discrete column has the features of the Gamma trick instead.
    smoothness : mapping of scaling to float
        The estimator on the scaled features, summed over them. Infinite where it leaves the range of numbers.
    gradient_share : mapping of scaling to float
        The share of the gradient that the column would get, from 0 to 1; over all columns they add up to 1.
    """

    column: str
    kind: str
    likelihood: str
    smoothness: Mapping[str, float]
    gradient_share: Mapping[str, float]


@dataclass(frozen=True)
class ShortTraining:
    """What a short training learned of each column.

    Columns that the model could not explain (too far from 0 for their spread) are in no mapping but `error` and
    `baseline_error`, and those without a hidden cell not in these.

    Attributes
    ----------
    method : str
        Such as `std-none`.
    epochs, n_rows : int
        How often it saw how many rows.
    log_likelihood : mapping of column to tuple
        Mean over the observed cells after each epoch, in the table's units (under a trick: of the column's features,
        to be compared with `baseline` but not with another method).
    baseline : mapping of column to float
        The same of a model that knows each column alone.
    error, baseline_error : mapping of column to float
        On cells hidden from the training, of the model and of the mean or the mode: error rate for classes, NRMSE for
        numbers.
    scored : mapping of column to int
        How many cells were hidden.
    gradient_share : mapping of column to float
        At the start of the training: the norm of the column's gradient in the shared parameters / their sum.
    overlooked : tuple of str
        Columns whose log-likelihood and error are both no better than the column's own average.
    notes : tuple of str
        What the training warned of.
    """

    method: str
    epochs: int
    n_rows: int
    log_likelihood: Mapping[str, tuple[float, ...]]
    baseline: Mapping[str, float]
    error: Mapping[str, float]
    baseline_error: Mapping[str, float]
    scored: Mapping[str, int]
    gradient_share: Mapping[str, float]
    overlooked: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """How evenly the columns of a table would be learned; printing it shows all of it.

    Attributes
    ----------
    n_rows : int
        Of the table.
    columns : tuple of ColumnBalance
        The columns that can be modelled, in the table's order.
    trainings : tuple of ShortTraining
        One a method; empty if nothing was trained.
    passed_through : mapping of column to str
        The other columns, and why they are not modelled.
    verdict : str
        One sentence.
    """

    n_rows: int
    columns: tuple[ColumnBalance, ...]
    trainings: tuple[ShortTraining, ...]
    passed_through: Mapping[str, str]
    verdict: str

    def to_plain(self) -> dict[str, Any]:
        """Return the diagnosis as JSON holds it; what is infinite is None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def __str__(self) -> str:
        parts = [self.verdict]
        if self.columns:
            parts += [_show("smoothness", self.columns, _number), _show("gradient_share", self.columns, _percent)]
        parts += [_show_training(one) for one in self.trainings]
        if self.passed_through:
            lines = [f"  {name}: {reason}" for name, reason in self.passed_through.items()]
            parts.append("\n".join(["Not modelled:", *lines]))
        return "\n\n".join(parts)


# --- in words -----------------------------------------------------------------------------------------------------


def _names(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        shown.append(f"{len(names) - MOST_NAMES} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def give_verdict(columns: Sequence[ColumnBalance], trainings: Sequence[ShortTraining]) -> str:
    """Return one sentence on who is overlooked, or, without a training, on who would be loud."""
    if not columns:
        return "Nothing can be learned: the table has no column to model."
    if not trainings:
        return _loudest(columns)
    if not any(one.overlooked for one in trainings):
        return (
            f"Nothing is overlooked: in a short training under {' and '.join(one.method for one in trainings)} every "
            "column is learned better than its own average."
        )
    first, *others = trainings
    start = _names(first.overlooked) if first.overlooked else "nothing"
    return (
        f"A short training under {first.method} overlooks {start}" + "".join(_changes(first, o) for o in others) + "."
    )


def _changes(first: ShortTraining, other: ShortTraining) -> str:
    """Say what another method changes."""
    if not other.overlooked:
        return f"; {other.method} overlooks nothing"
    gained = [name for name in first.overlooked if name not in other.overlooked]
    still = [name for name in other.overlooked if name in first.overlooked]
    lost = [name for name in other.overlooked if name not in first.overlooked]
    better = f"learns {_names(gained)}" if gained else ""
    worse = [f"overlooks {_names(still)} too"] if still else []
    worse += [f"overlooks {_names(lost)}, which {first.method} does not"] if lost else []
    return f"; {other.method} " + ", but ".join(filter(None, [better, " and ".join(worse)]))


def _loudest(columns: Sequence[ColumnBalance]) -> str:
    """Compare the loudest and the quietest column under std and under lip."""
    if len(columns) == 1:
        return f"{columns[0].column!r} is the only column to model, so that nothing is louder than it."
    ordered = sorted(columns, key=lambda one: one.gradient_share["std"])
    loud, quiet = ordered[-1], ordered[0]
    lip = [one.gradient_share["lip"] for one in columns]
    return (
        f"Standardized, {loud.column!r} would get {_percent(loud.gradient_share['std'])} of the gradient and "
        f"{quiet.column!r} {_percent(quiet.gradient_share['std'])}; under lip the columns would get "
        f"{_percent(min(lip))} to {_percent(max(lip))} each."
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100.0 * value:.2g} %" if value < 0.0995 else f"{100.0 * value:.0f} %"


TITLES = {
    "smoothness": "Smoothness of each column, by what the table is scaled by:",
    "gradient_share": "Share of the gradient that each column would get:",
}


def _show(what: str, columns: Sequence[ColumnBalance], text: Callable[[float], str]) -> str:
    rows: list[tuple[str, ...]] = [("column", "kind", "likelihood", *SCALINGS)]
    rows += [
        (one.column, one.kind, one.likelihood, *(text(getattr(one, what)[by]) for by in SCALINGS)) for one in columns
    ]
    return "\n".join([TITLES[what], *(f"  {line}" for line in align(rows, 3))])


def _show_training(one: ShortTraining) -> str:
    rows: list[tuple[str, ...]] = [("column", "gain in log-likelihood", "error", "mean or mode", "gradient", "")]
    names = list(dict.fromkeys([*one.log_likelihood, *one.error, *one.overlooked]))
    for name in names:
        curve = one.log_likelihood.get(name)
        gain = f"{curve[-1] - one.baseline[name]:+.3f}" if curve else "-"
        errors = (f"{by[name]:.4f}" if name in by else "-" for by in (one.error, one.baseline_error))
        share = _percent(one.gradient_share[name]) if name in one.gradient_share else "-"
        rows.append((name, gain, *errors, share, "overlooked" if name in one.overlooked else ""))
    title = f"A short training under {one.method}, {one.epochs} epochs of {one.n_rows} rows:"
    lines = [*align(rows, 1), *(f"note: {note}" for note in one.notes)]
    return "\n".join([title, *(f"  {line}" for line in lines)])
