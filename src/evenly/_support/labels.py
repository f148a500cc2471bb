"""Labels of columns as texts, which must differ."""

from __future__ import annotations

from typing import Any

from evenly._support.errors import TableError


def as_text(label: Any) -> str:
    """Return a label as text."""
    return label if isinstance(label, str) else str(label)


def refuse_duplicates(labels: list[Any]) -> list[str]:
    """Return names as texts; refuse duplicates."""
    texts = [as_text(label) for label in labels]
    if len(set(texts)) < len(texts):
        twice = next(text for j, text in enumerate(texts) if text in texts[:j])
        raise TableError("the name more than once", "expected names to differ", "rename one", column=twice)
    return texts
