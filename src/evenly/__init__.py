"""Evenly: make probabilistic models learn every column of a mixed table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenly._version import __version__

if TYPE_CHECKING:
    from evenly._support import EvenlyError, EvenlyWarning, MissingExtraError, TableError
    from evenly.balance import Diagnosis, diagnose
    from evenly.choosing import LikelihoodChoice, choose_likelihoods
    from evenly.custom import define_likelihood
    from evenly.files import load_heart
    from evenly.formats import read_table, write_table
    from evenly.imputer import Imputer
    from evenly.inspection import inspect_table
    from evenly.likelihoods import Likelihood, Support, get_likelihood
    from evenly.metrics import imputation_error
    from evenly.plots import plot_smoothness
    from evenly.pooling import pool
    from evenly.report import make_report, write_report
    from evenly.scaled_files import scale_files
    from evenly.scaler import LipschitzScaler
    from evenly.schema import Column, Schema, infer_schema
    from evenly.smoothness import ball_smoothness, smoothness_at
    from evenly.trial import Trial, compare_imputers, try_imputer

_ROOMS = {
    "_support": ("EvenlyError", "EvenlyWarning", "MissingExtraError", "TableError"),
    "balance": ("Diagnosis", "diagnose"),
    "choosing": ("LikelihoodChoice", "choose_likelihoods"),
    "custom": ("define_likelihood",),
    "files": ("load_heart",),
    "formats": ("read_table", "write_table"),
    "imputer": ("Imputer",),
    "inspection": ("inspect_table",),
    "likelihoods": ("Likelihood", "Support", "get_likelihood"),
    "metrics": ("imputation_error",),
    "plots": ("plot_smoothness",),
    "pooling": ("pool",),
    "report": ("make_report", "write_report"),
    "scaled_files": ("scale_files",),
    "scaler": ("LipschitzScaler",),
    "schema": ("Column", "Schema", "infer_schema"),
    "smoothness": ("ball_smoothness", "smoothness_at"),
    "trial": ("Trial", "compare_imputers", "try_imputer"),
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
