from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.mark.more
def test_the_harness_notices_errors_crashes_hangs_and_hunger():
    # It checks itself before it runs cases, of which there are none here.
    subprocess.run([sys.executable, SCRIPT, "--files", "0", "--tables", "0", "--saved", "0"], check=True, timeout=120)
