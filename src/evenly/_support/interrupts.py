"""Ctrl-C while something should be finished first."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenly._support.errors import InterruptedWarning


@contextmanager
def finishing(what: str) -> Iterator[None]:
    """Go on after a first Ctrl-C, with a warning; a second one interrupts.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught, finishing("the table is written first"):
    ...     warnings.simplefilter("always")
    ...     signal.raise_signal(signal.SIGINT)
    ...     done = True
    >>> done, str(caught[0].message)
    (True, 'interrupted: the table is written first; Ctrl-C again gives up')
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def go_on(*ignored: Any) -> None:
        signal.signal(signal.SIGINT, before)
        warnings.warn(f"interrupted: {what}; Ctrl-C again gives up", InterruptedWarning, stacklevel=2)

    signal.signal(signal.SIGINT, go_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
