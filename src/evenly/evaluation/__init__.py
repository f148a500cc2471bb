"""Evaluation: trials on hidden cells, comparison of imputers, choice of likelihoods, diagnosis of balance.

Tables and settings come in, records with numbers and verdicts go out; reports and the command line show them.
"""

from evenly.evaluation.assessment import Assessment, assessment_seconds, fit_and_assess
from evenly.evaluation.choosing import LikelihoodChoice, choose_likelihoods
from evenly.evaluation.comparison import candidates, errors_by_column, worst_column
from evenly.evaluation.diagnosis import diagnose
from evenly.evaluation.diagnosis_results import Diagnosis
from evenly.evaluation.trials import Trial, compare_imputers, try_imputer

__all__ = [
    "Assessment",
    "Diagnosis",
    "LikelihoodChoice",
    "Trial",
    "assessment_seconds",
    "candidates",
    "choose_likelihoods",
    "compare_imputers",
    "diagnose",
    "errors_by_column",
    "fit_and_assess",
    "try_imputer",
    "worst_column",
]
