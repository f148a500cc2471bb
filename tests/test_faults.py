"""The deliberate faults of `faults.py` stand where they say: else they would test nothing."""

from pathlib import Path

import pytest
from faults import FAULTS, ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_each_fault_has_its_place_and_its_tests(fault):
    assert (ROOT / "src/evenly" / fault.file).read_text().count(fault.old) == 1
    assert fault.old != fault.new
    for name in fault.tests:
        assert (Path(__file__).parent / name).exists()
