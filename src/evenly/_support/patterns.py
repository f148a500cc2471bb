"""Regular expressions for cells that spell a number or a date.

Without lookaround, which Polars does not have, and with ASCII digits in numbers, as engines differ in what a digit is.
"""

from __future__ import annotations

_NUMBER = r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

NUMBER = f"^{_NUMBER}$"
"""A number in ASCII, without leading zeros."""
SPACED_NUMBER = rf"^\s*{_NUMBER}\s*$"
"""The same, with spaces around it."""
TELEPHONE = r"^\s*\+[0-9]{7,15}\s*$"
"""A telephone number with the code of its country."""
DATE = (
    r"^\s*(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}(?:[T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?:[T ].*)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?)\s*$"
)
"""A date, with or without a time, or a time of the day."""
