"""The imputer: a table with missing cells comes in, a complete one and the distribution of every cell go out.

Encoding, predictive distributions, the Gaussian and the neighbour expert, calibration, the ensemble. JAX is imported by
`evenly.models` only; evaluation, reports and the command line build on this package.
"""

from evenly.imputation.binding import bind
from evenly.imputation.callbacks import Callback, GradientTrace
from evenly.imputation.cost import fill_seconds, fit_seconds, read_seconds
from evenly.imputation.deltas import read_deltas
from evenly.imputation.imputer import Imputer
from evenly.imputation.pooling import Pooled, pool
from evenly.imputation.rule_counts import RuleCount, count_rules
from evenly.imputation.rules import Rules
from evenly.imputation.sensitivity import Sensitivity, delta_sensitivity
from evenly.imputation.settings import units_of
from evenly.imputation.training import Training

__all__ = [
    "Callback",
    "GradientTrace",
    "Imputer",
    "Pooled",
    "RuleCount",
    "Rules",
    "Sensitivity",
    "Training",
    "bind",
    "count_rules",
    "delta_sensitivity",
    "fill_seconds",
    "fit_seconds",
    "pool",
    "read_deltas",
    "read_seconds",
    "units_of",
]
