"""A decision on the kind of a column: what inference answers."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.tables.schema import Confidence, Kind


@dataclass(frozen=True)
class Decision:
    """What a column is taken for, why, and how sure that is.

    Attributes
    ----------
    kind : str
        The kind.
    reason : str
        Why, in words; empty if nothing needs to be said.
    confidence : {"sure", "likely", "doubtful"}
        `sure`: the cells, their type or a name that says so leave no choice. `likely`: the usual case. `doubtful`: a
        person who knows the column may well say `alternative`.
    alternative : str or None
        The kind that it may be instead.
    groups : bool
        Whether the column names units that have several rows each, such as the persons of a panel.
    """

    kind: Kind
    reason: str = ""
    confidence: Confidence = "sure"
    alternative: Kind | None = None
    groups: bool = False
