"""Lines, tables, JSON and warnings on the terminal, and errors of writing files."""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenly._support import EvenlyWarning, TableError, paused, to_plain

MOST_LETTERS = 900
"""Letters of a warning that are printed."""

LEAST_WIDTH = 16
"""Letters in a line of a folded name or note, at least."""


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print each of Evenly's warnings once, as one line; hide those of other packages."""
    printed: set[str] = set()

    def show(message: Any, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, EvenlyWarning) and str(message) not in printed:
            printed.add(str(message))
            text = str(message)  # which may quote names of any length
            shown = text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 2]} …"
            with paused():
                print(f"evenly: warning: {shown}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvenlyWarning)
        warnings.showwarning = show  # type: ignore[assignment]  # it takes more
        yield


def print_json(content: Any) -> None:
    """Print one line of JSON; NaN and infinity are null."""
    print(json.dumps(to_plain(content), ensure_ascii=False, allow_nan=False))


def show_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", right: Sequence[str] = ()
) -> None:
    """Print a table; nothing in its cells is markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=None, padding=(0, 2, 0, 0))
    listed = list(rows)
    for j, name in enumerate(headers):
        wraps = name in ("column", "note", "worst column", "values")
        # Where there is too little space, names and notes are folded, and not squeezed out.
        least = min(LEAST_WIDTH, max((len(row[j]) for row in listed), default=0)) if wraps else None
        table.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=not wraps,
            min_width=least,
            header_style="bold",
        )
    for row in listed:
        table.add_row(*(Text(cell) for cell in row))
    with paused():
        console().print(table)


def console() -> Any:
    """Return standard output as Rich writes to it."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str) -> None:
    """Print a line as it is, however long."""
    with paused():
        console().print(text, markup=False, soft_wrap=True)


def say_files(*files: tuple[str, Any]) -> None:
    """Print what was written, and where; what has no place was not."""
    for what, place in files:
        if place is not None:
            say(f"{what}: {place}")


@contextmanager
def writing(out: Path | str, what: str) -> Iterator[None]:
    """Turn an error of writing into one line that names the place."""
    try:
        yield
    except OSError as error:
        expected = f"expected a {what} that can be written to ({error.strerror or error})"
        raise TableError(f"--out {str(out)!r}", expected) from None
