"""Readers in C may crash on a damaged file, and take the process with them: a copy of the process tries first."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
import warnings
from collections.abc import Callable

SECONDS = 60.0
"""How long the copy may take; one that takes longer has not crashed."""


def crashes(action: Callable[[], object]) -> bool:
    """Whether an action ends its process by a signal; it is tried in a copy of this process, where that is possible.

    Examples
    --------
    >>> crashes(lambda: None), crashes(os.abort)
    (False, True)
    """
    if not hasattr(os, "fork"):
        return False
    with warnings.catch_warnings():
        # Forking warns of threads, whose locks the copy may wait for: none of them is needed to read a file.
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            faulthandler.disable()  # it would print where the copy crashed
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            action()
        except BaseException:  # which is no crash
            os._exit(0)
        os._exit(0)
    end, pause = time.monotonic() + SECONDS, 0.001
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.WIFSIGNALED(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
