"""Lipschitz standardization: a table comes in, scaled features go out, and natural parameters of these come back as
parameters in the table's units.

Statistics, tricks, smoothness and the scale solver; `LipschitzScaler` is their face. Models are not known here.
"""

from evenly.scaling.feature_fit import FittedScale
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.head import Head
from evenly.scaling.head_cells import Cells
from evenly.scaling.heads import Heads
from evenly.scaling.inputs import check_width, left_out, pass_through
from evenly.scaling.methods import METHODS, Method, get_method
from evenly.scaling.outcomes import Outcome, Solved
from evenly.scaling.scaler import LipschitzScaler
from evenly.scaling.settings import check_strict, plain_settings
from evenly.scaling.smoothness import (
    balancing_weights,
    ball_smoothness,
    scaled_smoothness,
    smoothness_at,
    smoothness_by_parameter,
)
from evenly.scaling.statistics import (
    ColumnStatistics,
    Request,
    choose_pivot,
    counted_quartiles,
    finite,
    measure_counted,
    measure_expressions,
    measure_values,
    prepared_cells,
    read_measures,
    take_moments,
)
from evenly.scaling.targets import settle
from evenly.scaling.transforming import NewRows, warn_of_changes
from evenly.scaling.tricks import (
    NOISE_A,
    NOISE_B,
    NOISE_MEAN,
    OFFSET,
    Feature,
    check_key,
    feature_statistics,
    features_of,
    noise_steps,
    undo_binary,
    undo_moments,
)

__all__ = [
    "METHODS",
    "NOISE_A",
    "NOISE_B",
    "NOISE_MEAN",
    "OFFSET",
    "Cells",
    "ColumnStatistics",
    "Feature",
    "FittedColumn",
    "FittedScale",
    "Head",
    "Heads",
    "LipschitzScaler",
    "Method",
    "NewRows",
    "Outcome",
    "Request",
    "Solved",
    "balancing_weights",
    "ball_smoothness",
    "check_key",
    "check_strict",
    "check_width",
    "choose_pivot",
    "counted_quartiles",
    "feature_statistics",
    "features_of",
    "finite",
    "get_method",
    "left_out",
    "measure_counted",
    "measure_expressions",
    "measure_values",
    "noise_steps",
    "pass_through",
    "plain_settings",
    "prepared_cells",
    "read_measures",
    "scaled_smoothness",
    "settle",
    "smoothness_at",
    "smoothness_by_parameter",
    "take_moments",
    "undo_binary",
    "undo_moments",
    "warn_of_changes",
]
