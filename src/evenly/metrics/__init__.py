"""Errors and log-likelihoods by column, in the table's units, on hidden cells; and the cells that are hidden.

Truth and predictions come in as arrays or tables, numbers by column go out. Who predicted is not known here.
"""

from evenly.metrics.errors import (
    GROUPS,
    PROTOCOLS,
    baseline_errors,
    clearly_better,
    column_errors,
    imputation_error,
    log_likelihood,
    mean_errors,
    mean_or_mode,
    ratio_to_baseline,
)

__all__ = [
    "GROUPS",
    "PROTOCOLS",
    "baseline_errors",
    "clearly_better",
    "column_errors",
    "imputation_error",
    "log_likelihood",
    "mean_errors",
    "mean_or_mode",
    "ratio_to_baseline",
]
