"""Evaluation: trials on hidden cells, comparison of imputers, choice of likelihoods, diagnosis of balance.

Tables and settings come in, records with numbers and verdicts go out; reports and the command line show them.
"""

from evenly.evaluation.assessment import Assessment, assessment_seconds, fit_and_assess, fits_once
from evenly.evaluation.choosing import LikelihoodChoice, choose_likelihoods
from evenly.evaluation.comparison import (
    candidates,
    errors_by_column,
    rank_trials,
    say_winner,
    too_wide_for,
    worst_column,
)
from evenly.evaluation.diagnosis import diagnose
from evenly.evaluation.diagnosis_results import Diagnosis
from evenly.evaluation.draws import Draws, draw_cells
from evenly.evaluation.intervals import error_interval
from evenly.evaluation.peers import PEER_IMPUTERS, Forest, NearestNeighbours, PeerImputer, to_classes
from evenly.evaluation.trial_results import Trial
from evenly.evaluation.trials import compare_imputers, comparison_seconds, try_imputer
from evenly.evaluation.wording import say_range, say_ratio, say_trial, verdict_of

__all__ = [
    "PEER_IMPUTERS",
    "Assessment",
    "Diagnosis",
    "Draws",
    "Forest",
    "LikelihoodChoice",
    "NearestNeighbours",
    "PeerImputer",
    "Trial",
    "assessment_seconds",
    "candidates",
    "choose_likelihoods",
    "compare_imputers",
    "comparison_seconds",
    "diagnose",
    "draw_cells",
    "error_interval",
    "errors_by_column",
    "fit_and_assess",
    "fits_once",
    "rank_trials",
    "say_range",
    "say_ratio",
    "say_trial",
    "say_winner",
    "to_classes",
    "too_wide_for",
    "try_imputer",
    "verdict_of",
    "worst_column",
]
