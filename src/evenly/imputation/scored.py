"""What an imputer gives for scoring: estimates, ends of intervals and log-likelihoods, as numbers and codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.imputation.filling import OpenedTable
from evenly.imputation.predictor import Predictor
from evenly.predictive import Predictive
from evenly.tables import Floats


class Scored:
    """An imputer's side that scores are computed from."""

    if TYPE_CHECKING:

        def _open(self, X: Any) -> OpenedTable: ...
        def _ends(self, opened: OpenedTable, level: float) -> Sequence[list[Floats]]: ...
        def _predictor(self) -> Predictor: ...
        def _choose(self, found: Predictive) -> Floats: ...

    def interval_cells(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of `interval` as numbers or codes: rows x columns of fit, for scoring."""
        opened = self._open(X)
        low, high = (np.column_stack(opened.with_values(end)) for end in self._ends(opened, level))
        return low, high

    def log_likelihood(self, X: Any) -> dict[str, float]:
        """Return the mean log-likelihood of each column's observed cells, in the table's units.

        The model sees the cells that it is scored on; for an unbiased score, hide cells from it and use
        `evenly.imputation_error`. A number outside all bins of its column counts with a probability of 1e-12.
        """
        table = self._open(X).encoded
        found = self._predictor().distributions(table)
        observed = [one for one in table.columns if not np.isnan(one.values).all()]
        return {one.spec.name: float(np.nanmean(found[one.spec.name].log_prob(one.values))) for one in observed}

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean over columns of `log_likelihood`, higher is better; NaN without a column to score."""
        return float(np.mean(list(self.log_likelihood(X).values()) or [np.nan]))

    def predict_cells(self, X: Any) -> Floats:
        """Return an estimate of every cell, observed ones included, as numbers or codes: rows x columns of fit.

        For scoring: neither rounded nor converted to the columns' types. NaN in ignored and empty columns.
        """
        opened = self._open(X)
        predictor, every = replace(self._predictor(), rounds=False), np.ones_like(opened.missing)
        encoded = replace(opened.encoded, rules=opened.rules.filling_all())
        return np.column_stack(predictor.choose(encoded, every, [self._choose])[0])
