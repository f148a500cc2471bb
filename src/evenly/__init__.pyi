"""The public names, and the folder that each comes from."""

from ._support import EvenlyError as EvenlyError
from ._support import EvenlyWarning as EvenlyWarning
from ._support import MissingExtraError as MissingExtraError
from ._support import TableError as TableError
from .data import load_heart as load_heart
from .engines import scale_files as scale_files
from .evaluation import Diagnosis as Diagnosis
from .evaluation import LikelihoodChoice as LikelihoodChoice
from .evaluation import Trial as Trial
from .evaluation import choose_likelihoods as choose_likelihoods
from .evaluation import compare_imputers as compare_imputers
from .evaluation import diagnose as diagnose
from .evaluation import draw_cells as draw_cells
from .evaluation import try_imputer as try_imputer
from .imputation import Callback as Callback
from .imputation import GradientTrace as GradientTrace
from .imputation import Imputer as Imputer
from .imputation import Pooled as Pooled
from .imputation import Sensitivity as Sensitivity
from .imputation import Training as Training
from .imputation import delta_sensitivity as delta_sensitivity
from .imputation import pool as pool
from .io import read_table as read_table
from .io import write_table as write_table
from .likelihoods import Likelihood as Likelihood
from .likelihoods import Support as Support
from .likelihoods import define_likelihood as define_likelihood
from .likelihoods import get_likelihood as get_likelihood
from .metrics import imputation_error as imputation_error
from .predictive import Predictive as Predictive
from .report import make_report as make_report
from .report import plot_missing as plot_missing
from .report import plot_smoothness as plot_smoothness
from .report import write_report as write_report
from .scaling import Heads as Heads
from .scaling import LipschitzScaler as LipschitzScaler
from .scaling import ball_smoothness as ball_smoothness
from .scaling import smoothness_at as smoothness_at
from .tables import Column as Column
from .tables import Schema as Schema
from .tables import infer_schema as infer_schema
from .tables import inspect_table as inspect_table

__version__: str
