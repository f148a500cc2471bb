"""The site is built once for all of its tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_site import build


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("site"))
