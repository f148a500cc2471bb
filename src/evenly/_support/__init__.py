"""What everybody may use: errors and warnings, optional packages, files written all or nothing.

Nothing of Evenly is known here.
"""

from evenly._support.errors import EvenlyError, EvenlyWarning, MissingExtraError, TableError
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
from evenly._support.optional import require, require_later

__all__ = [
    "EvenlyError",
    "EvenlyWarning",
    "MissingExtraError",
    "TableError",
    "read_json",
    "read_tensors",
    "readable",
    "replacing",
    "replacing_folder",
    "require",
    "require_later",
    "saved_path",
    "write_bytes",
    "write_json",
    "write_tensors",
    "write_text",
]
