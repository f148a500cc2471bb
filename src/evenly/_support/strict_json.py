"""JSON of files read strictly, and what was found in them as one line."""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 30
"""The largest text file that is read: a saved scaler of a thousand columns takes a megabyte."""
LONGEST = 400
"""The largest number of characters of a message that comes from the content of a file."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxdict = _short.maxlist = 3


def read_limited(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Read a file; ValueError if it is larger than any that Evenly writes."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"more than {most} bytes")
    return data


def parse_json(data: bytes, *, constants: bool = False) -> Any:
    """Read JSON in UTF-8; ValueError, in one sentence, for damage, duplicate keys and deep nesting.

    Parameters
    ----------
    constants : bool
        Whether `NaN` and `Infinity` are read as numbers, as Python's `json` writes them.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' twice
    """
    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a mark
        constant = None if constants else _refuse_constant
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"a byte that is no UTF-8 at position {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at line {error.lineno}, column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name}, which is no number in JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {show(next(name for name in names if names.count(name) > 1))} twice")
    return found


def show(value: Any) -> str:
    """Return a value for a message, shortened.

    Examples
    --------
    >>> show({"a": list(range(100))})
    "{'a': [0, 1, 2, ...]}"
    """
    return _short.repr(value)


def one_line(text: object) -> str:
    """Return a message as one line, shortened."""
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."
