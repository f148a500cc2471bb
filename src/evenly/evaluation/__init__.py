"""Evaluation: trials on hidden cells, comparison of imputers, choice of likelihoods, diagnosis of balance.

Tables and settings come in, records with numbers and verdicts go out; reports and the command line show them.
"""

from evenly.evaluation.assessment import Assessment, fit_and_assess
from evenly.evaluation.choosing import LikelihoodChoice, choose_likelihoods
from evenly.evaluation.comparison import candidates, errors_by_column, too_wide_for, worst_column
from evenly.evaluation.diagnosis import diagnose
from evenly.evaluation.diagnosis_results import Diagnosis
from evenly.evaluation.peers import PEER_IMPUTERS, Forest, NearestNeighbours, PeerImputer, to_classes
from evenly.evaluation.trials import Trial, compare_imputers, try_imputer

__all__ = [
    "PEER_IMPUTERS",
    "Assessment",
    "Diagnosis",
    "Forest",
    "LikelihoodChoice",
    "NearestNeighbours",
    "PeerImputer",
    "Trial",
    "candidates",
    "choose_likelihoods",
    "compare_imputers",
    "diagnose",
    "errors_by_column",
    "fit_and_assess",
    "to_classes",
    "too_wide_for",
    "try_imputer",
    "worst_column",
]
