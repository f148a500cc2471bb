"""A deadline: when work has to be done, and how much of the time to it a part may take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A moment, in seconds of a clock that never goes back; infinite if there is no hurry.

    Examples
    --------
    >>> NEVER.left(), NEVER.share(0.5) == NEVER, Deadline.after(None) == NEVER
    (inf, True, True)
    >>> soon = Deadline.after(60.0)
    >>> 29.0 < soon.share(0.5).left() < 30.1 < soon.left() <= 60.0
    True
    """

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the moment that is so many seconds from now; None is never."""
        return NEVER if seconds is None else cls(time.monotonic() + seconds)

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self.at < math.inf

    def left(self) -> float:
        """Return the seconds that are left; negative if it has passed."""
        return self.at - time.monotonic()

    def share(self, share: float) -> Deadline:
        """Return the moment at which a share of the time that is left will have passed."""
        return Deadline.after(share * self.left()) if self.exists else self


NEVER = Deadline()
