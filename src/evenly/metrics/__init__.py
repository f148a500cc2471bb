"""Errors and log-likelihoods by column, in the table's units, on hidden cells; and the cells that are hidden.

Truth and predictions come in as arrays or tables, numbers by column go out, whoever predicted.
"""

from evenly.metrics.errors import (
    GROUPS,
    PROTOCOLS,
    baseline_errors,
    clearly_better,
    column_errors,
    count_far_off,
    mean_errors,
    mean_or_mode,
    ratio_to_baseline,
)
from evenly.metrics.held_out_cells import (
    count_held,
    hide_by_rank,
    hide_keeping_two,
    hide_share,
    hold_out,
)
from evenly.metrics.table_errors import imputation_error
from evenly.predictive import log_likelihood

__all__ = [
    "GROUPS",
    "PROTOCOLS",
    "baseline_errors",
    "clearly_better",
    "column_errors",
    "count_far_off",
    "count_held",
    "hide_by_rank",
    "hide_keeping_two",
    "hide_share",
    "hold_out",
    "imputation_error",
    "log_likelihood",
    "mean_errors",
    "mean_or_mode",
    "ratio_to_baseline",
]
