"""The log-likelihood of each column during a training, in the table's units and so comparable between methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.models import Data, Model, RowVariables
from evenly.tables import Floats

MOST_ROWS = 4_096
"""Rows that are scored, drawn at random from larger tables: the standard error is then a few hundredths of a nat."""
ScoreColumns = Callable[[Any, Mapping[str, npt.NDArray[Any]]], Floats]


def score_columns(model: Model, table: EncodedTable, data: Data, seed: int) -> ScoreColumns:
    """Return a function of shared parameters and rows' variables: the mean over each column's observed cells.

    Predictions are those of the imputer, at the mean of the latent variables: tricks are undone and scales, so that
    every method is scored by the likelihood of the column itself. Of a column without an observed cell it is NaN.
    """
    rows = np.arange(table.n_rows)
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))
    some, shown = table.rows(rows), data.rows(rows)

    def score(shared: Any, variables: Mapping[str, npt.NDArray[Any]]) -> Floats:
        own = {name: np.asarray(one)[rows] for name, one in variables.items()}
        known: dict[str, Any] = {"rows": RowVariables(own, np.ones(len(rows), bool))} if own else {}
        naturals = model.predict_natural(table.layout, shared, shown, **known)
        found = np.full(len(table.columns), np.nan)
        for j, (spec, values, _) in enumerate(some.columns):
            seen = ~np.isnan(values)
            if seen.any():
                cells = [np.asarray(natural, np.float64)[seen] for natural in naturals[table.features[j]]]
                with np.errstate(all="ignore"):  # of a prediction that is not finite it is NaN
                    found[j] = spec.predict(cells).log_prob(values[seen]).mean()
        return found

    return score
