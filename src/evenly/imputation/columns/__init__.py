"""One object a column: how it is modelled, what a model sees of it, and what comes back from a model's parameters.

A fitted column and its values come in; targets and inputs of a model go out, and natural parameters come back as
predictive distributions. What is learned of a column's predictions is kept apart, in `Calibration`.
"""

from evenly.imputation.columns.base import ColumnSpec, ModelledColumn, UnmodelledColumn, encoder_inputs, standardize
from evenly.imputation.columns.binned import BinnedColumn, tilt
from evenly.imputation.columns.by_likelihood import LikelihoodColumn
from evenly.imputation.columns.describing import describe, spec_from_plain

__all__ = [
    "BinnedColumn",
    "ColumnSpec",
    "LikelihoodColumn",
    "ModelledColumn",
    "UnmodelledColumn",
    "describe",
    "encoder_inputs",
    "spec_from_plain",
    "standardize",
    "tilt",
]
