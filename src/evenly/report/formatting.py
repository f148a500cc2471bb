"""Numbers and cells as people read them."""

from __future__ import annotations

import math
import re
from typing import Any

LONGEST_CELL = 80
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that no HTML document may hold, and halves of surrogate pairs, which no file can."""


def printable(text: Any) -> str:
    """Return a text with a replacement character for everything that cannot be written to a page."""
    return _UNPRINTABLE.sub("\ufffd", str(text))


def known(value: Any) -> float | None:
    """Return a number as a float, or None if there is none or it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def number(value: Any) -> str:
    """Return a number with three significant digits, or a dash where there is none.

    Examples
    --------
    >>> [number(x) for x in (0.0, 0.2, 136.4, 12345.6, 1e300, None, float("nan"))]
    ['0', '0.200', '136', '12,346', '1.00e+300', '–', '–']
    """
    found = known(value)
    if found is None:
        return "–"
    if found == 0.0 or 1e3 <= abs(found) < 1e7:
        return f"{found:,.0f}"
    return f"{found:#.3g}".rstrip(".")


def percent(share: Any) -> str:
    """Return a share in percent, never rounded to nothing or to everything.

    Examples
    --------
    >>> [percent(x).replace("\\u00a0", " ") for x in (0.0, 0.00001, 0.1234, 0.99999, 1.0, None)]
    ['0 %', '< 0.1 %', '12.3 %', '> 99.9 %', '100 %', '–']
    """
    found = known(share)
    if found is None:
        return "–"
    if 0.0 < found < 0.001:
        return "< 0.1\u00a0%"
    if 0.999 < found < 1.0:
        return "> 99.9\u00a0%"
    return f"{100.0 * found:.1f}".removesuffix(".0") + "\u00a0%"


def count(n: int, noun: str) -> str:
    """Return a number of things with their noun.

    Examples
    --------
    >>> count(1, "row"), count(30000, "row"), count(2, "class")
    ('1 row', '30,000 rows', '2 classes')
    """
    return f"{n:,} {noun if n == 1 else noun + ('es' if noun.endswith('s') else 's')}"


def cell(value: Any) -> str:
    """Return a cell as text: numbers with four significant digits, long texts shortened.

    Examples
    --------
    >>> cell(57.10263), cell(1234567.8), cell(30), cell("x" * 100)[-3:]
    ('57.1', '1,234,568', '30', 'xx…')
    """
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    else:
        text = str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
