"""Errors keep their message however they are made again."""

from __future__ import annotations

import pickle

from evenly import TableError


def test_an_error_can_be_made_again_from_its_message():
    """As Pyro does, to add the shapes of a trace."""
    error = TableError("minimum -3.0", "gamma expects values > 0", column="income")
    assert str(type(error)(f"{error}\nshapes")) == f"{error}\nshapes"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
