"""One HTML page about a table, and pictures: results of the other folders come in, files go out.

Nothing is computed here that others need.
"""

from evenly.report.missing_plot import plot_missing
from evenly.report.page import make_report, write_report
from evenly.report.smoothness_plot import plot_smoothness

__all__ = ["make_report", "plot_missing", "plot_smoothness", "write_report"]
