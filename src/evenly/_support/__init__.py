"""What everybody may use: errors and warnings, optional packages, files written all or nothing.

Nothing of Evenly is known here.
"""

from evenly._support.deadline import NEVER, Deadline
from evenly._support.displays import showing
from evenly._support.errors import (
    EvenlyError,
    EvenlyWarning,
    InterruptedWarning,
    MissingExtraError,
    ScaleWarning,
    TableError,
)
from evenly._support.files import (
    read_json,
    read_tensors,
    readable,
    replacing,
    replacing_folder,
    saved_path,
    write_bytes,
    write_json,
    write_tensors,
    write_text,
)
from evenly._support.html import Bar, bars, html_table
from evenly._support.interrupts import finishing
from evenly._support.labels import as_text, refuse_duplicates, refuse_surrogates
from evenly._support.optional import require, require_later
from evenly._support.patterns import DATE, NUMBER, SPACED_NUMBER, TELEPHONE
from evenly._support.pictures import new_axes
from evenly._support.plain import align, to_plain
from evenly._support.progress import (
    Display,
    Snapshot,
    Stages,
    add_note,
    advance,
    announce,
    duration,
    part,
    paused,
    show_on,
)
from evenly._support.sklearn_compat import (
    boost,
    boosted_arrays,
    check_input_names,
    estimator_html,
    output_container,
    table_tags,
)
from evenly._support.strict_json import one_line, parse_json, read_limited, show

__all__ = [
    "DATE",
    "NEVER",
    "NUMBER",
    "SPACED_NUMBER",
    "TELEPHONE",
    "Bar",
    "Deadline",
    "Display",
    "EvenlyError",
    "EvenlyWarning",
    "InterruptedWarning",
    "MissingExtraError",
    "ScaleWarning",
    "Snapshot",
    "Stages",
    "TableError",
    "add_note",
    "advance",
    "align",
    "announce",
    "as_text",
    "bars",
    "boost",
    "boosted_arrays",
    "check_input_names",
    "duration",
    "estimator_html",
    "finishing",
    "html_table",
    "new_axes",
    "one_line",
    "output_container",
    "parse_json",
    "part",
    "paused",
    "read_json",
    "read_limited",
    "read_tensors",
    "readable",
    "refuse_duplicates",
    "refuse_surrogates",
    "replacing",
    "replacing_folder",
    "require",
    "require_later",
    "saved_path",
    "show",
    "show_on",
    "showing",
    "table_tags",
    "to_plain",
    "write_bytes",
    "write_json",
    "write_tensors",
    "write_text",
]
