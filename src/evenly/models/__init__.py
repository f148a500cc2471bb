"""The models by name: arrays of features and a mask come in, natural parameters of every cell go out.

What a model is, what it can do and how its arrays are laid out is known without JAX; the models themselves are imported
when they are asked for. Tables, scales and methods are not known here.
"""

from evenly.models.base import Fitted, History, Info, Model, Stream, Watched, flatten, unflatten
from evenly.models.budget import auto_batch_size, auto_epochs, auto_networks
from evenly.models.layout import Data, Layout
from evenly.models.registry import MODELS, PAPERS

__all__ = [
    "MODELS",
    "PAPERS",
    "Data",
    "Fitted",
    "History",
    "Info",
    "Layout",
    "Model",
    "Stream",
    "Watched",
    "auto_batch_size",
    "auto_epochs",
    "auto_networks",
    "flatten",
    "unflatten",
]
