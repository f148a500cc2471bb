"""Labels of columns as texts, which must differ."""

from __future__ import annotations

from typing import Any

from evenly._support.errors import TableError


def as_text(label: Any) -> str:
    """Return a label as text."""
    return label if isinstance(label, str) else str(label)


def refuse_duplicates(labels: list[Any]) -> list[str]:
    """Return names as texts; refuse duplicates, and names that are no Unicode."""
    texts = [as_text(label) for label in labels]
    for text in texts:
        refuse_surrogates(text, "a name")
    if len(set(texts)) < len(texts):
        twice = next(text for j, text in enumerate(texts) if text in texts[:j])
        raise TableError("the name more than once", "expected names to differ", "rename one", column=twice)
    if len(set(labels)) < len(labels):
        twice = next(text for j, (text, label) in enumerate(zip(texts, labels, strict=True)) if label in labels[:j])
        raise TableError("a name equal to another, as 1 is to True", "expected names to differ", column=twice)
    return texts


def refuse_surrogates(text: str, what: str, column: Any = None) -> None:
    """Refuse a text with half a character, which no file can hold.

    Examples
    --------
    >>> refuse_surrogates("\\ud800", "a name")
    Traceback (most recent call last):
    evenly.TableError: got a name with a lone surrogate, '\\ud800', but expected Unicode. ...
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TableError(
            f"{what} with a lone surrogate, {text!r}",
            "expected Unicode",
            "text.encode('utf-8', 'replace').decode() replaces it",
            column=column,
        ) from None
