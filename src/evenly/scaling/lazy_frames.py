"""Lazy frames are measured and scaled by `evenly.engines`, which builds on this folder and is imported when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from evenly.likelihoods import Likelihood
from evenly.tables import Column, LazyColumn, LazyTable, Rule


class LazyScaling(Protocol):
    """What a scaler asks of the engines."""

    def open_lazy(self, table: Any) -> LazyTable | None:
        """View a lazy frame as columns; None if the table is not one."""

    def measure_lazily(
        self, table: LazyTable, rules: Sequence[Rule], family: Callable[[Column], Likelihood], *, quartiles: bool
    ) -> Sequence[Any]:
        """Infer the schema of a lazy frame and take its statistics."""

    def scale_lazily(
        self,
        table: LazyTable,
        columns: Sequence[LazyColumn],
        fitted: Sequence[Any],
        rows: Any,
        seed: int | None,
        key: Any,
    ) -> Any:
        """Return a lazy frame of the scaled features; without a seed, with the mean of the noise."""


def lazy_scaling() -> LazyScaling:
    """Import `evenly.engines`, once a lazy frame is given."""
    engines: Any = import_module("evenly.engines")
    return engines  # type: ignore[no-any-return]  # a module that has these functions


def open_lazy(table: Any) -> LazyTable | None:
    """View a lazy frame of any engine as columns; None if the table is not one."""
    return lazy_scaling().open_lazy(table)
