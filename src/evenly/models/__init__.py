"""The models by name: arrays of features and a mask come in, natural parameters of every cell go out.

What a model is, what it can do and how its arrays are laid out is known without JAX; the models themselves are imported
when they are asked for. Tables, scales and methods are not known here.
"""

from evenly.models.base import Fitted, History, Info, Model, Plan, Stream, Trace, Watchers, flatten, unflatten
from evenly.models.budget import published_epochs
from evenly.models.layout import Data, Layout
from evenly.models.spec import MODELS, PAPERS, SPECS, ModelSpec

__all__ = [
    "MODELS",
    "PAPERS",
    "SPECS",
    "Data",
    "Fitted",
    "History",
    "Info",
    "Layout",
    "Model",
    "ModelSpec",
    "Plan",
    "Stream",
    "Trace",
    "Watchers",
    "flatten",
    "published_epochs",
    "unflatten",
]
