"""What a fitted scaler reports: the summary of its features, and warnings of outcomes that a user may not expect."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import Bar, EvenlyWarning, ScaleWarning, bars, estimator_html, html_table
from evenly.scaling.fitted import FittedColumn, SummaryRow
from evenly.scaling.outcomes import Outcome
from evenly.scaling.smoothness import Bound
from evenly.tables import Schema, build_table

EXPECTED = (Outcome.REACHED, Outcome.SCALED, Outcome.LEARNED, Outcome.PASSED_THROUGH)
"""Outcomes that need no warning."""
OF_SCALES = (Outcome.BELOW_FLOOR, Outcome.NO_SPREAD, Outcome.OUT_OF_RANGE)
"""Outcomes of columns that could be scaled, but not as asked for."""
MOST_NAMES = 10
"""Columns that a warning names."""


class Reported:
    """What a fitted scaler says of itself."""

    columns_: list[FittedColumn]
    container_: str
    bound: Bound

    @property
    def schema_(self) -> Schema:
        """What was inferred or declared of each column."""
        check_is_fitted(self, "columns_")
        return Schema(columns=[one.column for one in self.columns_])

    @property
    def summary_(self) -> Any:
        """One row a feature: a Polars table for one, else a pandas table if it is installed, else a record array."""
        check_is_fitted(self, "columns_")
        return summary_table(self.columns_, self.container_, with_bound=self.bound == "paper")

    def _repr_html_(self) -> str:
        """Show the parameters and, once fitted, one row a feature."""
        if not hasattr(self, "columns_"):
            return estimator_html(self)
        rows = list(chain.from_iterable(one.summary() for one in self.columns_))
        # Smoothness spans orders of magnitude: the lengths of bars are logarithms.
        before, after = (_log_bars([getattr(row, name) for row in rows]) for name in SMOOTHNESS)
        shown: list[list[str | Bar]] = [
            [row.feature, row.kind, row.likelihood, f"{row.scale:.3g}", *both, row.outcome]
            for row, *both in zip(rows, before, after, strict=True)
        ]
        headers = ["feature", "kind", "likelihood", "scale", "smoothness before", "after", "outcome"]
        return estimator_html(self) + html_table(
            f"{len(rows)} features of {len(self.columns_)} columns", headers, shown
        )

    def _repr_mimebundle_(self, **wanted: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


SMOOTHNESS = ("smoothness_before", "smoothness_after")


def _log_bars(values: Sequence[float]) -> list[Bar]:
    found = np.array(values, np.float64)
    known = np.isfinite(found) & (found > 0.0)
    logs = np.where(known, np.log(found, out=np.zeros_like(found), where=known), -np.inf)
    least = logs[known].min() if known.any() else 0.0
    texts = bars(found.tolist())
    lengths = bars(np.where(known, logs - least + 1.0, 0.0).tolist())
    return [Bar(text.text, length.share) for text, length in zip(texts, lengths, strict=True)]


def summary_table(columns: Sequence[FittedColumn], container: str, *, with_bound: bool) -> Any:
    """Return one row a feature: a Polars table for one, else a pandas table if it is installed, else a record array."""
    rows = list(chain.from_iterable(one.summary() for one in columns))
    names = [name for name in SummaryRow._fields if with_bound or name != "bound_after"]
    data = {name: np.array([getattr(row, name) for row in rows]) for name in names}
    for wanted in ("polars",) if container == "polars" else ("pandas", "polars"):
        with suppress(ModuleNotFoundError):
            return build_table(data, wanted)
    return np.rec.fromarrays(list(data.values()), names=",".join(names))  # type: ignore[call-overload]  # stubs


def warn_of_outcomes(columns: Sequence[FittedColumn], passthrough: str, stacklevel: int) -> None:
    """Warn of every outcome that a user may not expect, once each, with the columns concerned.

    `passthrough` is what becomes of columns that are no variables, as the setting of a scaler has it.
    """
    concerned: dict[Outcome, dict[str, None]] = {}
    for one in columns:
        name = repr(one.column.name)
        if one.found_ignored and one.statistics.n:
            concerned.setdefault(Outcome.PASSED_THROUGH, {})[f"{name} ({one.column.note})"] = None
        elif one.found_ignored:
            concerned.setdefault(Outcome.NO_DATA, {})[name] = None
        if one.non_answers:
            concerned.setdefault(Outcome.READ_AS_MISSING, {})[f"{name} ({one.non_answers})"] = None
        for fit in one.fits:
            if fit.outcome not in EXPECTED:
                concerned.setdefault(fit.outcome, {})[name] = None
    for outcome, names in concerned.items():
        shown = ", ".join(list(names)[:MOST_NAMES])
        if len(names) > MOST_NAMES:
            shown += f" and {len(names) - MOST_NAMES} more"
        remedy = outcome.remedy
        if outcome is Outcome.PASSED_THROUGH:
            remedy = "no variable, left as it is; declare a kind to use it, or `ignore` to be silent"
        if outcome in (Outcome.PASSED_THROUGH, Outcome.NO_DATA) and passthrough == "drop":
            remedy = remedy.replace("left as it is", 'dropped by transform (passthrough="keep" keeps it)')
        category = ScaleWarning if outcome in OF_SCALES else EvenlyWarning
        warnings.warn(f"{outcome.value}: {shown}: {remedy}", category, stacklevel=stacklevel + 1)
