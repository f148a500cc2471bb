"""The names that other folders use, and the module that each comes from."""

from .datasets import NAMES as NAMES
from .datasets import PERCENTS as PERCENTS
from .datasets import QUICK as QUICK
from .datasets import load as load
from .figures import draw_figures as draw_figures
from .grid import Plan as Plan
from .grid import design_runs as design_runs
from .records import describe_record as describe_record
from .records import is_recorded as is_recorded
from .records import pack_records as pack_records
from .records import read_records as read_records
from .schedule import Progress as Progress
from .schedule import Schedule as Schedule
from .schedule import cover as cover
from .schedule import make_schedule as make_schedule
from .sweep import run_sweep as run_sweep
from .tables import FORMATS as FORMATS
from .tables import render_tables as render_tables
