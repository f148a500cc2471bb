"""Classes that differ only by case or spaces: found, and read as one."""

from __future__ import annotations

from collections.abc import Sequence

from evenly.tables.profile import ColumnProfile
from evenly.tables.schema import DEFAULT_LIKELIHOOD, Column
from evenly.tables.word_scales import find_order


def order_classes(column: Column, profile: ColumnProfile) -> Column:
    """Return a column with its classes in the order that everybody knows, and words for the same as one class.

    Examples
    --------
    >>> column = Column(name="smoker", kind="binary", same={}, classes=["Yes", "no"])
    >>> profile = ColumnProfile("text", 9, 9, distinct=("Yes", "no", "YES"), counts=(5, 3, 1))
    >>> ordered = order_classes(column, profile)
    >>> ordered.classes, ordered.same
    (['no', 'Yes'], {'YES': 'Yes'})
    """
    found = find_order(profile.distinct or ())
    if found is None or profile.counts is None:
        return column
    count = dict(zip(map(str, profile.distinct or ()), profile.counts, strict=True))
    texts = sorted(found.places, key=lambda text: (found.places[text], -count[text]))
    first: dict[float, str] = {}
    for text in texts:
        first.setdefault(found.places[text], text)
    same = {text: first[place] for text in texts if (place := found.places[text]) in first and first[place] != text}
    return column.model_copy(update={"classes": [*first.values()], "same": {**column.same, **same}})


def find_spellings(profile: ColumnProfile) -> list[dict[str, int]]:
    """Return groups of texts that differ only by case or spaces: the counts of each group's texts, largest first.

    Examples
    --------
    >>> find_spellings(ColumnProfile("text", 9, 9, distinct=("no", "Yes", "yes ", "YES"), counts=(4, 3, 1, 1)))
    [{'Yes': 3, 'yes ': 1, 'YES': 1}]
    """
    groups: dict[str, list[tuple[str, int]]] = {}
    for text, n in zip(profile.distinct or (), profile.counts or (), strict=True):
        if isinstance(text, str):
            groups.setdefault(" ".join(text.casefold().split()), []).append((text, int(n)))
    several = (sorted(group, key=lambda pair: -pair[1]) for group in groups.values() if len(group) > 1)
    return [dict(group) for group in several]


def merge_classes(column: Column, profile: ColumnProfile) -> Column:
    """Return a column that reads classes which differ only by case or spaces as the most frequent of their spellings.

    Examples
    --------
    >>> column = Column(name="smoker", kind="categorical", classes=["YES", "Yes", "no", "yes "])
    >>> profile = ColumnProfile("text", 9, 9, distinct=("no", "Yes", "yes ", "YES"), counts=(4, 3, 1, 1))
    >>> merged = merge_classes(column, profile)
    >>> merged.kind, merged.classes, merged.same
    ('binary', ['Yes', 'no'], {'yes ': 'Yes', 'YES': 'Yes'})
    """
    if not column.has_classes or column.classes is None:
        return column
    groups = [group for group in find_spellings(profile) if next(iter(group)) not in column.same]
    same = {other: kept for kept, *others in groups for other in others}
    if not same:
        return column
    classes = [one for one in column.classes if one not in same]
    changes: dict[str, object] = {"classes": classes, "same": {**column.same, **same}}
    if column.kind == "categorical" and len(classes) == 2 and column.likelihood == DEFAULT_LIKELIHOOD["categorical"]:
        changes |= {"kind": "binary", "likelihood": DEFAULT_LIKELIHOOD["binary"]}
    return column.model_copy(update=changes)


def describe_spellings(groups: Sequence[dict[str, int]]) -> list[str]:
    """Return what to say about classes that differ only by case or spaces, and how to merge them."""
    listed = [", ".join(f"{text!r} ({n})" for text, n in group.items()) for group in groups]
    return [
        f"{texts} differ only by case or spaces: if they are one class, `evenly inspect TABLE --merge-classes -o "
        "schema.json` writes a schema that reads them as the first (`infer_schema(table, merge_classes=True)`)"
        for texts in listed
    ]
