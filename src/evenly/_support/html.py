"""Small tables in HTML, as notebooks show them: everything is escaped, and colours follow the page's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

MOST_ROWS = 60
"""Rows of a table that are shown."""
CELL = "text-align:left;padding:0.2em 1em 0.2em 0"
"""The style of a cell: columns of text must not touch, whatever the page says of tables."""


class Bar(NamedTuple):
    """A cell with a number that is drawn as a bar, too."""

    text: str
    share: float
    """The length of the bar, from 0 to 1; nothing is drawn if it is not finite."""


def bars(values: Sequence[float], form: str = ".3g") -> list[Bar]:
    """Return numbers as bars of which the longest fills the cell; there are none for numbers below 0.

    Examples
    --------
    >>> bars([2.0, 1.0, float("nan")])
    [Bar(text='2', share=1.0), Bar(text='1', share=0.5), Bar(text='–', share=0.0)]
    """
    most = max((one for one in values if math.isfinite(one)), default=0.0)
    texts = [f"{one:{form}}" if math.isfinite(one) else "–" for one in values]
    lengths = [max(0.0, one / most) if most > 0.0 and math.isfinite(one) else 0.0 for one in values]
    return [Bar(*both) for both in zip(texts, lengths, strict=True)]


def html_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str | Bar]]) -> str:
    """Return a table in HTML, cut after `MOST_ROWS` rows.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table("Columns", ["column", "error"], [["<b>", Bar("0.5", 0.5)]])
    True
    """
    head = "".join(f'<th style="{CELL}">{escape(one)}</th>' for one in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more rows</p>" if len(rows) > MOST_ROWS else ""
    shown = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto"><p><strong>{escape(title)}</strong></p>{shown}{more}</div>'


def _cell(cell: str | Bar) -> str:
    if not isinstance(cell, Bar):
        return f'<td style="{CELL}">{escape(cell)}</td>'
    share = min(1.0, max(0.0, cell.share)) if math.isfinite(cell.share) else 0.0
    bar = f"display:inline-block;height:0.6em;width:{6.0 * share:.2f}em;background:currentColor;opacity:0.45"
    return (
        f'<td style="{CELL};white-space:nowrap"><span style="display:inline-block;width:6em">'
        f'<span style="{bar}"></span></span> {escape(cell.text)}</td>'
    )
