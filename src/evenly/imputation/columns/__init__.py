"""One object per column: its targets and inputs for a model, and predictive distributions from a model's parameters.

A fitted column and its values come in; targets and inputs of a model go out, and natural parameters come back as
predictive distributions. The calibration of these is a separate object, `Calibration`.
"""

from evenly.imputation.columns.base import ColumnSpec, ModelledColumn, UnmodelledColumn, encoder_inputs, standardize
from evenly.imputation.columns.binned import BinnedColumn, tilt
from evenly.imputation.columns.by_likelihood import LikelihoodColumn
from evenly.imputation.columns.dates import DateColumn
from evenly.imputation.columns.describing import describe, spec_from_plain

__all__ = [
    "BinnedColumn",
    "ColumnSpec",
    "DateColumn",
    "LikelihoodColumn",
    "ModelledColumn",
    "UnmodelledColumn",
    "describe",
    "encoder_inputs",
    "spec_from_plain",
    "standardize",
    "tilt",
]
