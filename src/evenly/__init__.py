"""Evenly: make probabilistic models learn every column of a mixed table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenly._version import __version__

if TYPE_CHECKING:
    from evenly._support.errors import EvenlyError, EvenlyWarning, MissingExtraError, TableError
    from evenly._support.files import load_heart
    from evenly.engines.files import scale_files
    from evenly.evaluation.balance import Diagnosis, diagnose
    from evenly.evaluation.choosing import LikelihoodChoice, choose_likelihoods
    from evenly.evaluation.trials import Trial, compare_imputers, try_imputer
    from evenly.imputation.imputer import Imputer
    from evenly.imputation.pooling import pool
    from evenly.io.formats import read_table, write_table
    from evenly.likelihoods.custom import define_likelihood
    from evenly.likelihoods.families import Likelihood, Support, get_likelihood
    from evenly.metrics.errors import imputation_error
    from evenly.report import make_report, write_report
    from evenly.report.plots import plot_smoothness
    from evenly.scaling.scaler import LipschitzScaler
    from evenly.scaling.smoothness import ball_smoothness, smoothness_at
    from evenly.tables.inspection import inspect_table
    from evenly.tables.schema import Column, Schema, infer_schema

_ROOMS = {
    "_support.errors": ("EvenlyError", "EvenlyWarning", "MissingExtraError", "TableError"),
    "evaluation.balance": ("Diagnosis", "diagnose"),
    "evaluation.choosing": ("LikelihoodChoice", "choose_likelihoods"),
    "likelihoods.custom": ("define_likelihood",),
    "_support.files": ("load_heart",),
    "io.formats": ("read_table", "write_table"),
    "imputation.imputer": ("Imputer",),
    "tables.inspection": ("inspect_table",),
    "likelihoods.families": ("Likelihood", "Support", "get_likelihood"),
    "metrics.errors": ("imputation_error",),
    "report.plots": ("plot_smoothness",),
    "imputation.pooling": ("pool",),
    "report": ("make_report", "write_report"),
    "engines.files": ("scale_files",),
    "scaling.scaler": ("LipschitzScaler",),
    "tables.schema": ("Column", "Schema", "infer_schema"),
    "scaling.smoothness": ("ball_smoothness", "smoothness_at"),
    "evaluation.trials": ("Trial", "compare_imputers", "try_imputer"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Column",
    "Diagnosis",
    "EvenlyError",
    "EvenlyWarning",
    "Imputer",
    "Likelihood",
    "LikelihoodChoice",
    "LipschitzScaler",
    "MissingExtraError",
    "Schema",
    "Support",
    "TableError",
    "Trial",
    "__version__",
    "ball_smoothness",
    "choose_likelihoods",
    "compare_imputers",
    "define_likelihood",
    "diagnose",
    "get_likelihood",
    "imputation_error",
    "infer_schema",
    "inspect_table",
    "load_heart",
    "make_report",
    "plot_smoothness",
    "pool",
    "read_table",
    "scale_files",
    "smoothness_at",
    "try_imputer",
    "write_report",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'evenly' has no attribute {name!r}")
    value = getattr(import_module(f"evenly.{_HOME[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return __all__
