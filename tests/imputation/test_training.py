"""Training: how long and with which sizes, as one object."""

from __future__ import annotations

import pytest
from imputers import holed_table, make_imputer

from evenly import TableError


def test_a_strange_number_of_draws_is_an_error() -> None:
    with pytest.raises(TableError, match=r"n_draws = -1.*whole number from 0"):
        make_imputer(n_draws=-1).fit(holed_table())
