"""Predictive distributions of the cells of a column, in the units of the table, one per row.

Usual parameters come in; means, modes, quantiles, samples and log-probabilities go out, in the table's units. Numbers
have a likelihood's distribution or one over bins, classes have probabilities. Values of classes are codes: their
indices in `column.classes`.
"""

from evenly.predictive.base import Predictive
from evenly.predictive.bins import Bins, make_bins
from evenly.predictive.choice import predictive_of
from evenly.predictive.classes import BinaryPredictive, CategoricalPredictive, ClassPredictive
from evenly.predictive.many_classes import ManyClassesPredictive
from evenly.predictive.numbers import BinnedPredictive, ParametricPredictive, mix_parameters
from evenly.predictive.scores import log_likelihood
from evenly.predictive.truncated import TruncatedPredictive

__all__ = [
    "BinaryPredictive",
    "BinnedPredictive",
    "Bins",
    "CategoricalPredictive",
    "ClassPredictive",
    "ManyClassesPredictive",
    "ParametricPredictive",
    "Predictive",
    "TruncatedPredictive",
    "log_likelihood",
    "make_bins",
    "mix_parameters",
    "predictive_of",
]
