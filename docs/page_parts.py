"""What scripts that write pages share: a table in Markdown, a picture as bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, or a sentence if it has no lines."""
    if not lines:
        return "No runs yet."
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def as_png(figure: Any) -> bytes:
    """Return a picture as PNG, with the same bytes whenever it is drawn."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()
