"""Values as JSON holds them, and as lines of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any


def to_plain(value: Any, *, digits: int = 17, text: Callable[[str], str] = str) -> Any:
    """Return a value as strict JSON holds it: a number that is not finite becomes None.

    Mappings and dataclasses become dictionaries whose keys are texts; tuples and arrays become lists, NumPy's numbers
    become Python's.

    Parameters
    ----------
    digits : int
        How many significant digits numbers keep; 17 keep all of a double.
    text : function of str
        What becomes of texts, but for keys.

    Examples
    --------
    >>> import numpy as np
    >>> to_plain({1: (0.1, float("nan")), "a": np.array([1, 2]), "b": np.float64(1 / 3)}, digits=3)
    {'1': [0.1, None], 'a': [1, 2], 'b': 0.333}
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(one, digits=digits, text=text) for key, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [to_plain(one, digits=digits, text=text) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return text(value) if isinstance(value, str) else value


def align(rows: Sequence[Sequence[str]], n_left: int | None = None) -> list[str]:
    """Return lines of text with columns of equal width.

    The cells of the first `n_left` columns, or of all, stand to the left; those of the others to the right.

    Examples
    --------
    >>> print("\\n".join(align([("column", "error"), ("age", "0.1"), ("sex", "12.5")], 1)))
    column  error
    age       0.1
    sex      12.5
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    pads = [str.ljust if n_left is None or j < n_left else str.rjust for j in range(len(widths))]
    lines = ([pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in lines]
