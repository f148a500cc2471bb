"""Without its package, a module of the integrations says how to install it."""

from __future__ import annotations

import importlib
import sys

import pytest

from evenly import MissingExtraError


@pytest.mark.parametrize("name", ["numpyro", "pyro", "pymc"])
def test_an_absent_package_is_named_with_the_line_that_installs_it(name, monkeypatch):
    if name == "pyro":
        pytest.importorskip("torch")
    elif name == "numpyro":
        pytest.importorskip("jax")
    for module in [one for one in sys.modules if one.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    for module in [one for one in sys.modules if one.startswith(f"evenly.integrations.{name}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf'pip install "evenly\[{name}\]"'):
        importlib.import_module(f"evenly.integrations.{name}")
