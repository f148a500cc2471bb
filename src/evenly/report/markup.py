"""Text into HTML and JSON that cannot be anything but text, and numbers as people read them."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from evenly._support import to_plain

NO_NAME = "(no name)"
LONGEST_CELL = 80
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""What no HTML document may hold, and halves of characters, which no file can."""


class Html(str):
    """Markup: text that is escaped already."""

    __slots__ = ()


def printable(text: Any) -> str:
    """Return a text with a visible mark in place of what cannot be written."""
    return _UNPRINTABLE.sub("\ufffd", str(text))


def escape(text: Any) -> Html:
    """Escape a text, unless it is markup.

    Examples
    --------
    >>> escape("<b>")
    '&lt;b&gt;'
    >>> escape(Html("<b>"))
    '<b>'
    """
    return text if isinstance(text, Html) else Html(html.escape(printable(text)))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; children and attributes are escaped, and None is left out.

    Examples
    --------
    >>> tag("td", "a < b", class_="number", data_value=1.5, title=None)
    '<td class="number" data-value="1.5">a &lt; b</td>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("input", "path", "line", "circle"):
        return Html(f"<{name}{written}>" if name == "input" else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[Any]) -> Html:
    """Put escaped parts one after the other; None is left out."""
    return Html("".join(escape(part) for part in parts if part is not None))


def show_name(name: str) -> Html:
    """Return a column's name, kept apart from the direction of the text around it."""
    return tag("bdi", name, class_="name") if name.strip() else tag("em", NO_NAME, class_="name")


def table(header: Iterable[Any], rows: Iterable[Iterable[Any]], *, class_: str = "numbers") -> Html:
    """Return a plain table whose first column names the rows."""
    head = tag("tr", *(tag("th", cell, scope="col") for cell in header))
    body = [
        tag("tr", *(tag("td" if i else "th", c, scope=None if i else "row") for i, c in enumerate(row))) for row in rows
    ]
    inner = tag("table", tag("thead", head), tag("tbody", *body), class_=class_)
    return tag("div", inner, class_="scroll", tabindex="0", role="group", aria_label="table")


def json_block(data: Any) -> Html:
    """Return JSON that can stand in a script element: no character of it can end one.

    Examples
    --------
    >>> json_block({"</script>": float("nan")})
    '{"\\\\u003c/script\\\\u003e":null}'
    """
    text = json.dumps(to_plain(data, text=printable), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


# --- numbers ----------------------------------------------------------------------------------------------------


def known(value: Any) -> float | None:
    """Return a number, or None for what is none or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def number(value: Any) -> str:
    """Return a number with three digits that count, a dash where there is none.

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
    """Return a share in percent, never rounded to nothing or to all.

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


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number of things with its word.

    Examples
    --------
    >>> count(1, "row"), count(30000, "row")
    ('1 row', '30,000 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def cell(value: Any) -> str:
    """Return a cell as text: numbers with four digits that count, long texts cut.

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
