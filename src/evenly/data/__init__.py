"""The embedded table: read from the file beside this one, without knowledge of anything else here."""

from __future__ import annotations

import csv
from importlib import resources
from typing import Any

__all__ = ["load_heart"]


def load_heart() -> Any:
    """Return the embedded table: 303 patients of the Cleveland heart-disease study, 14 columns of several kinds.

    Six cells are really missing. The result is a pandas or a Polars frame, whichever is installed (in this order),
    and otherwise a NumPy array of objects. Source and licence (CC BY 4.0) stand beside the file.

    Examples
    --------
    >>> heart = load_heart()
    >>> heart.shape
    (303, 14)
    """
    source = resources.files("evenly.data") / "heart.csv"
    header, *rows = csv.reader(source.read_text(encoding="utf-8").splitlines())
    columns = {name: _typed([row[j] for row in rows]) for j, name in enumerate(header)}
    try:
        import pandas as pd

        return pd.DataFrame(columns)
    except ModuleNotFoundError:
        pass
    try:
        import polars as pl

        return pl.DataFrame(columns)
    except ModuleNotFoundError:
        import numpy as np

        return np.array(list(zip(*columns.values(), strict=True)), dtype=object)


def _typed(cells: list[str]) -> list[Any]:
    for convert in (int, float):
        try:
            return [None if cell == "" else convert(cell) for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]
