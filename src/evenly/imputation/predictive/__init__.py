"""Predictive distributions of the cells of a column, one per row.

Usual parameters come in; means, modes, quantiles, samples and log-probabilities go out, in the table's units. Numbers
have a likelihood's distribution or one over bins, classes have probabilities. Values of classes are codes: their
indices in `column.classes`.
"""

from evenly.imputation.predictive.base import Predictive
from evenly.imputation.predictive.choice import predictive_of
from evenly.imputation.predictive.classes import BinaryPredictive, CategoricalPredictive, ClassPredictive
from evenly.imputation.predictive.many_classes import ManyClassesPredictive
from evenly.imputation.predictive.numbers import BinnedPredictive, ParametricPredictive, mix_parameters

__all__ = [
    "BinaryPredictive",
    "BinnedPredictive",
    "CategoricalPredictive",
    "ClassPredictive",
    "ManyClassesPredictive",
    "ParametricPredictive",
    "Predictive",
    "mix_parameters",
    "predictive_of",
]
