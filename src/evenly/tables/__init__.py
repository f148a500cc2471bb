"""Dataframes and arrays in and out: named columns, their kinds and likelihoods, and cells as numbers.

What a column means is decided here; files, scales and models are not known.
"""

from evenly.tables.cells import (
    cells_among,
    check_values,
    coded,
    column_likelihood,
    decode,
    encode,
    encode_counts,
    encode_growing,
    prepare,
)
from evenly.tables.checking import Content, check, check_fields, check_parameters
from evenly.tables.codes import ClassCodes, class_codes
from evenly.tables.columns import BLOCK, Floats, Storage, Stored, TableColumn, as_column, blocks, dtype_storage
from evenly.tables.dates import DAY, NO_DATES, days_of, make_dates, read_days, show_day
from evenly.tables.declarations import (
    DECLARED,
    Rule,
    complete,
    infer_column,
    infer_schema,
    make_rules,
)
from evenly.tables.duplicates import cell_codes
from evenly.tables.encoded import encode_columns, number_table
from evenly.tables.formats import get_format
from evenly.tables.frames import Table, build_table, map_columns, open_table, select
from evenly.tables.inspection import inspect_table
from evenly.tables.kind_inference import is_wordy
from evenly.tables.kind_names import read_name
from evenly.tables.lazy import LazyColumn, LazyTable
from evenly.tables.new_rows import Change, NewCells, Reading, Step, describe_changes, quote
from evenly.tables.non_answers import describe_non_answers
from evenly.tables.number_kinds import may_be_identifier
from evenly.tables.precision import Precision, find_precision
from evenly.tables.profile import (
    MISSING_MARKERS,
    MOST_SPAN,
    ColumnProfile,
    NumberSummary,
    TextSummary,
    Value,
    between,
    profile_column,
    read_number,
    refuse_infinite,
)
from evenly.tables.restore import fill_cells, restore_column, retype
from evenly.tables.schema import CLASS_KINDS, Column, Kind, Schema
from evenly.tables.settings import Bounds, Markers, check_settings, pick

__all__ = [
    "BLOCK",
    "CLASS_KINDS",
    "DAY",
    "DECLARED",
    "MISSING_MARKERS",
    "MOST_SPAN",
    "NO_DATES",
    "Bounds",
    "Change",
    "ClassCodes",
    "Column",
    "ColumnProfile",
    "Content",
    "Floats",
    "Kind",
    "LazyColumn",
    "LazyTable",
    "Markers",
    "NewCells",
    "NumberSummary",
    "Precision",
    "Reading",
    "Rule",
    "Schema",
    "Step",
    "Storage",
    "Stored",
    "Table",
    "TableColumn",
    "TextSummary",
    "Value",
    "as_column",
    "between",
    "blocks",
    "build_table",
    "cell_codes",
    "cells_among",
    "check",
    "check_fields",
    "check_parameters",
    "check_settings",
    "check_values",
    "class_codes",
    "coded",
    "column_likelihood",
    "complete",
    "days_of",
    "decode",
    "describe_changes",
    "describe_non_answers",
    "dtype_storage",
    "encode",
    "encode_columns",
    "encode_counts",
    "encode_growing",
    "fill_cells",
    "find_precision",
    "get_format",
    "infer_column",
    "infer_schema",
    "inspect_table",
    "is_wordy",
    "make_dates",
    "make_rules",
    "map_columns",
    "may_be_identifier",
    "number_table",
    "open_table",
    "pick",
    "prepare",
    "profile_column",
    "quote",
    "read_days",
    "read_name",
    "read_number",
    "refuse_infinite",
    "restore_column",
    "retype",
    "select",
    "show_day",
]
