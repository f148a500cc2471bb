"""Rules that filled tables obey: columns computed from others, orders of columns, and skip patterns.

Texts come in and are read by a grammar of their own; bound to the columns of a table, they say what follows from known
cells before a model predicts, between which limits it predicts, and how filled cells are changed so that rules hold.
Models are not known here.
"""

from evenly.imputation.rules.book import RuleBook
from evenly.imputation.rules.reading import Rules, complete, visible, with_passed_through, with_visible
from evenly.imputation.rules.rows import NO_RULES, Limits, RowRules, RuleLog, count_rows, truncate

__all__ = [
    "NO_RULES",
    "Limits",
    "RowRules",
    "RuleBook",
    "RuleLog",
    "Rules",
    "complete",
    "count_rows",
    "truncate",
    "visible",
    "with_passed_through",
    "with_visible",
]
