"""Models by name: arrays of features and a mask come in, natural parameters of every cell go out.

The interface, the specs and the array layout do not import JAX; a model's class is imported when it is first used.
Models know nothing about tables, scales and scaling methods.
"""

from evenly.models.base import (
    Expected,
    Fitted,
    History,
    Info,
    Model,
    Plan,
    RowVariables,
    Stream,
    Trace,
    Watchers,
    check_arrays,
    flatten,
    unflatten,
)
from evenly.models.budget import published_epochs
from evenly.models.layout import ALWAYS, Data, Layout
from evenly.models.rules import rule_for
from evenly.models.spec import MODELS, PAPERS, PAPERS_METHOD, SPECS, ModelSpec

__all__ = [
    "ALWAYS",
    "MODELS",
    "PAPERS",
    "PAPERS_METHOD",
    "SPECS",
    "Data",
    "Expected",
    "Fitted",
    "History",
    "Info",
    "Layout",
    "Model",
    "ModelSpec",
    "Plan",
    "RowVariables",
    "Stream",
    "Trace",
    "Watchers",
    "check_arrays",
    "flatten",
    "published_epochs",
    "rule_for",
    "unflatten",
]
