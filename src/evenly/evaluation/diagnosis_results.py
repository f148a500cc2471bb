"""The results of a diagnosis: the balance of columns, short trainings and a verdict, as data and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenly._support import align, bars, html_table, to_plain

SCALINGS = ("none", "std", "max", "iqr", "lip")
"""The scalings that are compared."""
SHOWN = ("none", "std", "lip")
"""Those that a notebook shows."""
MOST_NAMES = 6
"""The largest number of columns that a sentence names."""


@dataclass(frozen=True)
class ColumnBalance:
    """The smoothness and gradient share of a column under each of `SCALINGS`.

    Attributes
    ----------
    column, kind, likelihood : str
        As in the schema; under `lip` a discrete column is modelled by the features of the Gamma trick.
    smoothness : mapping of scaling to float
        The smoothness of the scaled features, summed over them; infinite where it overflows.
    gradient_share : mapping of scaling to float
        The column's share of the gradient, from 0 to 1; the shares of all columns sum to 1.
    """

    column: str
    kind: str
    likelihood: str
    smoothness: Mapping[str, float]
    gradient_share: Mapping[str, float]


@dataclass(frozen=True)
class ShortTraining:
    """What a short training learned about each column.

    Columns that are not modelled, because they are too far from 0 for their spread, are only in `error` and
    `baseline_error`; columns without a hidden cell are not in these.

    Attributes
    ----------
    method : str
        The scaling method, such as `std-none`.
    epochs, n_rows : int
        The numbers of epochs and of rows.
    log_likelihood : mapping of column to tuple
        The mean over the observed cells after each epoch, in the table's units. Under a trick, that of the column's
        features: compare it with `baseline`, not with another method.
    baseline : mapping of column to float
        The log-likelihood of each column under its marginal.
    error, baseline_error : mapping of column to float
        The errors of the model, and of the mean or the mode, on hidden cells: error rate for classes, NRMSE for
        numbers.
    scored : mapping of column to int
        The number of hidden cells.
    gradient_share : mapping of column to float
        At the start of the training: the norm of the column's gradient in the shared parameters, divided by their sum.
    overlooked : tuple of str
        Columns whose log-likelihood and error are both no better than the column's own average.
    notes : tuple of str
        The warnings of the training.
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
    """How evenly the columns of a table would be learned; `print` shows all of it.

    Attributes
    ----------
    n_rows : int
        The number of rows of the table.
    columns : tuple of ColumnBalance
        The columns that can be modelled, in the table's order.
    trainings : tuple of ShortTraining
        One per method; empty if nothing was trained.
    passed_through : mapping of column to str
        The other columns, with the reason why they are not modelled.
    verdict : str
        A summary in one sentence.
    """

    n_rows: int
    columns: tuple[ColumnBalance, ...]
    trainings: tuple[ShortTraining, ...]
    passed_through: Mapping[str, str]
    verdict: str

    def to_plain(self) -> dict[str, Any]:
        """Return the diagnosis as plain JSON types; infinite numbers are None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def _repr_html_(self) -> str:
        """Show each column's share of the gradient under three scalings, and by which trainings it is overlooked."""
        shares = [bars([one.gradient_share[name] for one in self.columns], ".1%") for name in SHOWN]
        rows = [
            [one.column, one.kind, one.likelihood, *found, self._overlooked_by(one.column)]
            for one, *found in zip(self.columns, *shares, strict=True)
        ]
        headers = ["column", "kind", "likelihood", *(f"gradient share: {name}" for name in SHOWN), "overlooked by"]
        return html_table(self.verdict, headers, rows)

    def _overlooked_by(self, column: str) -> str:
        return ", ".join(one.method for one in self.trainings if column in one.overlooked) or "–"

    def __str__(self) -> str:
        parts = [self.verdict]
        if self.columns:
            parts += [_show("smoothness", self.columns, _number), _show("gradient_share", self.columns, _percent)]
        parts += [_show_training(one) for one in self.trainings]
        if self.passed_through:
            lines = [f"  {name}: {reason}" for name, reason in self.passed_through.items()]
            parts.append("\n".join(["Not modelled:", *lines]))
        return "\n\n".join(parts)


# --- as text ------------------------------------------------------------------------------------------------------


def _names(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        shown.append(f"{len(names) - MOST_NAMES} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def give_verdict(columns: Sequence[ColumnBalance], trainings: Sequence[ShortTraining]) -> str:
    """Return one sentence on the overlooked columns or, without a training, on the largest and smallest gradients."""
    if not columns:
        return "Nothing can be learned: the table has no column to model."
    if not trainings:
        return _compare_shares(columns)
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
    """Return what another method changes."""
    if not other.overlooked:
        return f"; {other.method} overlooks nothing"
    gained = [name for name in first.overlooked if name not in other.overlooked]
    still = [name for name in other.overlooked if name in first.overlooked]
    lost = [name for name in other.overlooked if name not in first.overlooked]
    better = f"learns {_names(gained)}" if gained else ""
    worse = [f"overlooks {_names(still)} too"] if still else []
    worse += [f"overlooks {_names(lost)}, which {first.method} does not"] if lost else []
    return f"; {other.method} " + ", but ".join(filter(None, [better, " and ".join(worse)]))


def _compare_shares(columns: Sequence[ColumnBalance]) -> str:
    """Compare the largest and the smallest gradient share under std with those under lip."""
    if len(columns) == 1:
        return f"{columns[0].column!r} is the only column to model: it gets all of the gradient."
    ordered = sorted(columns, key=lambda one: one.gradient_share["std"])
    largest, smallest = ordered[-1], ordered[0]
    lip = [one.gradient_share["lip"] for one in columns]
    return (
        f"Standardized, {largest.column!r} would get {_percent(largest.gradient_share['std'])} of the gradient and "
        f"{smallest.column!r} {_percent(smallest.gradient_share['std'])}; under lip the columns would get "
        f"{_percent(min(lip))} to {_percent(max(lip))} each."
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100.0 * value:.2g} %" if value < 0.0995 else f"{100.0 * value:.0f} %"


TITLES = {
    "smoothness": "Smoothness of each column, by scaling:",
    "gradient_share": "Share of the gradient that each column would get, by scaling:",
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
