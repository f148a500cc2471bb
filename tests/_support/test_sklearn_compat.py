"""scikit-learn's private names, which may change with any release, are used in one module only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn import config_context
from sklearn.preprocessing import StandardScaler

import evenly
from evenly._support import check_input_names, output_container

SOURCE = Path(evenly.__file__).parent
PRIVATE = re.compile(r"from sklearn[\w.]*\._\w+[\w.]* import|from sklearn[\w.]* import .*\b_\w+")


def test_only_one_module_uses_private_names():
    files = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert files == {"_support/sklearn_compat.py"}


def test_what_set_output_and_the_configuration_ask_for():
    scaler = StandardScaler()
    assert output_container(scaler) == "default"
    with config_context(transform_output="polars"):
        assert output_container(scaler) == "polars"
        assert output_container(scaler.set_output(transform="pandas")) == "pandas"


def test_names_that_are_not_those_of_fit_are_refused():
    scaler = StandardScaler().fit([[1.0, 2.0]])
    assert check_input_names(scaler).tolist() == ["x0", "x1"]
    with pytest.raises(ValueError, match="input_features should have length"):
        check_input_names(scaler, ["a"])
