"""Lazy frames of any engine seen as named columns; the engines themselves are in `evenly.engines`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenly.tables.columns import Storage, TableColumn


@dataclass(frozen=True)
class LazyColumn(TableColumn):
    """A column of a lazy frame. Its cells are not here: `native` is empty, or its distinct cells once counted."""

    native: Any = field(default_factory=lambda: np.zeros(0))
    dtype: str = ""
    storage: Storage = "other"
    categories: list[Any] | None = None
    ordered: bool = False


@dataclass(frozen=True)
class LazyTable:
    """A lazy frame seen as named columns."""

    columns: list[LazyColumn]
    labels: list[Hashable]
    container: str
    """The kind of table in memory that the engine's answers come as."""

    @property
    def names(self) -> list[str]:
        """The columns' names as text."""
        return [column.name for column in self.columns]
