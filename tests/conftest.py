"""What several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of the six UCI data sets: EVENLY_DATA, or else `../shared/uci`, beside the checkout.

    They are no part of the project, so tests that need them are skipped where they are not.
    """
    beside = Path(__file__).parents[2] / "shared" / "uci"
    folder = Path(os.environ.get("EVENLY_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}: set EVENLY_DATA to the folder that has adult/data.csv")
    return folder
