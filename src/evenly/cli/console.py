"""What the commands share: checking options, saying durations, and errors of writing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenly._support import TableError


@contextmanager
def writing(out: Path, what: str) -> Iterator[None]:
    """Say in one line where nothing can be written."""
    try:
        yield
    except OSError as error:
        expected = f"expected a {what} that can be written to ({error.strerror or error})"
        raise TableError(f"--out {str(out)!r}", expected) from None


def numbers(text: str, name: str) -> list[int]:
    """Read `1-3,5` as 1, 2, 3, 5."""
    ends = [part.split("-") for part in text.split(",")]
    if any(len(part) > 2 or not all(end.strip().isdecimal() for end in part) for part in ends):
        raise TableError(f"{name} = {text!r}", "expected numbers such as 1-3 or 1,4")
    return [n for part in ends for n in range(int(part[0]), int(part[-1]) + 1)]


def choice(given: Any, known: Any, name: str) -> list[Any]:
    """Return what was chosen, or all there is."""
    for one in given or ():
        if one not in known:
            raise TableError(f"{name} {one!r}", f"expected one of {', '.join(map(str, known))}")
    return list(given or known)


def duration(seconds: float) -> str:
    """Say how long something takes."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"
