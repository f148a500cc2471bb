"""How many examples a property is tested on: few in `make test`, all of them in `make test-more`."""

from __future__ import annotations

from hypothesis import settings

FULL = 100
"""The examples of a test that asks for no number, at full size."""


def examples(full: int) -> int:
    """Return how many of `full` examples to try, by the profile that `conftest.py` loads."""
    return -(-full * settings.default.max_examples // FULL)
