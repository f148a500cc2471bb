"""Formats: how the texts of a column spell its numbers or dates, as patterns such as `$#,##0.00` or `%d.%m.%Y`.

Texts come in and numbers go out, and back in the same spelling. A format is a class in a file of its own, which
registers itself; columns and their kinds are not known.
"""

from evenly.tables.formats.base import FORMATS, Format, find_format, get_format
from evenly.tables.formats.dates import EPOCH, DateFormat, nearest_start
from evenly.tables.formats.numbers import NumberFormat

__all__ = ["EPOCH", "FORMATS", "DateFormat", "Format", "NumberFormat", "find_format", "get_format", "nearest_start"]
