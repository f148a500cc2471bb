"""Saying in a schema which estimate is imputed for columns of numbers that may be codes of classes."""

from __future__ import annotations

from collections.abc import Mapping

from evenly.imputation.calibration import Calibration
from evenly.tables import Schema

REASONS = {
    "mean": "imputed by the mean, as validation cells are not predicted clearly better by the most probable level",
    "mode": "imputed by the most probable level, which predicts validation cells better than the mean",
}


def explain_estimates(schema: Schema, calibrations: Mapping[str, Calibration]) -> Schema:
    """Return the schema with notes about the estimates that were chosen on validation cells.

    Examples
    --------
    >>> from evenly.tables import Column
    >>> region = Column(name="region", kind="count", note="0 to 3", confidence="doubtful", alternative="categorical")
    >>> explained = explain_estimates(Schema(columns=[region]), {"region": Calibration(estimate="mode")})
    >>> explained["region"].note
    '0 to 3; imputed by the most probable level, which predicts validation cells better than the mean'
    """
    columns = []
    for one in schema.columns:
        if one.may_have_classes and one.name in calibrations:
            reason = REASONS[calibrations[one.name].estimate]
            one = one.model_copy(update={"note": f"{one.note}; {reason}" if one.note else reason})
        columns.append(one)
    return schema.model_copy(update={"columns": columns})
