"""Ibis: tables of the databases that it knows."""

from __future__ import annotations

from typing import Any

from narwhals.dependencies import is_ibis_table

from evenly.engines.base import Engine


class Ibis(Engine):
    """Tables of Ibis; it has no files of its own."""

    name = "ibis"

    @classmethod
    def recognizes(cls, native: Any) -> bool:
        """Say whether an object is an Ibis table."""
        return is_ibis_table(native)
