"""What a trial of an imputer found, column by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenly._support import Bar, bars, html_table
from evenly.evaluation.intervals import mean_with_interval
from evenly.evaluation.wording import say_trial
from evenly.metrics import ratio_to_baseline


@dataclass(frozen=True)
class ColumnTrial:
    """How one column's hidden cells were imputed."""

    column: str
    kind: str
    measure: str
    """`error rate` for classes, `NRMSE` (root mean square error / range) for numbers."""
    n_cells: int
    """The number of hidden cells, which are scored."""
    error: float
    low: float
    high: float
    """A 90 % interval of the error, for the random choice of hidden cells."""
    baseline: float
    """The error of the mean or the most frequent class, on the same cells."""
    covered: float | None
    """The share of numbers inside their 90 % intervals; None for classes, and for imputers without intervals."""
    examples: tuple[tuple[Any, Any], ...]
    """Some hidden cells: true and imputed values."""
    normalized_low: float = 0.0
    normalized_high: float = math.inf
    """A 90 % interval of `normalized`: both errors are taken on the same cells, so that it is narrower than theirs."""

    @property
    def normalized(self) -> float:
        """The error divided by the baseline: below 1 is better than the mean or the most frequent class."""
        return float(ratio_to_baseline(np.array([self.error]), np.array([self.baseline]))[0])


@dataclass(frozen=True)
class Trial:
    """The errors of an imputer on cells that were hidden from it; `print` says them in one sentence.

    Examples
    --------
    >>> Trial((), 0.1, "masked", "lip-none", 0.0).error
    nan
    """

    columns: tuple[ColumnTrial, ...]
    share: float
    model: str
    method: str
    seconds: float
    final: bool = False
    """Whether the imputer that was tried also fills the table: it was not fitted again to all cells."""
    balance: str = "auto"
    """The balancing rule, if one was named."""
    n_rows: int | None = None
    """The number of rows, drawn at random from a larger table, that it was made on; None for all rows."""

    @property
    def name(self) -> str:
        """The model, the method and, if one was named, the balancing rule."""
        return " ".join([self.model, self.method, *([] if self.balance == "auto" else [self.balance])])

    @property
    def error(self) -> float:
        """The mean error over columns."""
        return _mean([one.error for one in self.columns])

    @property
    def baseline(self) -> float:
        """The mean over columns of the error of the mean or the most frequent class."""
        return _mean([one.baseline for one in self.columns])

    @property
    def normalized(self) -> float:
        """The mean over columns of error / baseline: how much of the error of the mean or the mode is left.

        Columns whose baseline makes no error are left out; NaN if all are.
        """
        return self.normalized_interval[0]

    @property
    def normalized_interval(self) -> tuple[float, float, float]:
        """`normalized`, and both ends of its 90 % interval."""
        scored = [one for one in self.columns if one.baseline > 0.0 and math.isfinite(one.error)]
        return mean_with_interval([(one.normalized, one.normalized_low, one.normalized_high) for one in scored])

    def __str__(self) -> str:
        return say_trial(self)

    def _repr_html_(self) -> str:
        """Show one row a column, the worst first."""
        order = sorted(self.columns, key=lambda one: -one.normalized if math.isfinite(one.normalized) else -math.inf)
        relative = bars([one.normalized for one in order], ".2f")
        rows: list[list[str | Bar]] = [
            [one.column, one.kind, one.measure, f"{one.error:.3g}", f"{one.baseline:.3g}", bar, _share(one.covered)]
            for one, bar in zip(order, relative, strict=True)
        ]
        headers = ["column", "kind", "measure", "error", "of mean or mode", "relative", "90 % intervals hold"]
        return html_table(say_trial(self), headers, rows)

    def to_plain(self) -> dict[str, Any]:
        """Return the trial as plain JSON types."""
        value, low, high = self.normalized_interval
        found = asdict(self)
        for one, own in zip(self.columns, found["columns"], strict=True):
            own["normalized"] = one.normalized
        return {
            "error": self.error,
            "baseline": self.baseline,
            "normalized": value,
            "normalized_low": low,
            "normalized_high": high,
            **found,
        }


def _share(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.0%}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
