"""Distributions of likelihoods have the likelihoods' supports and parameters, in either library."""

import pytest

from evenly import TableError
from evenly.likelihoods import FAMILIES

USUAL = {"exponential": {"rate": 2.0}, "gamma": {"shape": 2.0, "rate": 3.0}, "normal": {"mean": 0.0, "std": 1.0}}
INSIDE = {"exponential": True, "gamma": False, "normal": True}
"""Whether 0 is in the support."""


def library(name):
    return pytest.importorskip(f"evenly.integrations.{name}")


@pytest.mark.parametrize("name", ["numpyro", "pyro"])
@pytest.mark.parametrize("family", USUAL)
def test_zero_is_in_the_support_where_the_likelihood_has_a_density_there(name, family):
    pytest.importorskip(name)
    made = library(name).from_likelihood(family, **USUAL[family])
    zero = 0.0 if name == "numpyro" else pytest.importorskip("torch").tensor(0.0)
    found = made.support(zero) if name == "numpyro" else made.support.check(zero)
    assert bool(found) == INSIDE[family]
    assert FAMILIES[family].support.closed or not INSIDE[family] or family == "normal"


@pytest.mark.parametrize("name", ["numpyro", "pyro"])
@pytest.mark.parametrize("given", [{}, {"shape": 2.0}, {"mean": 1.0, "rate": 2.0}])
def test_other_parameters_are_refused_by_name(name, given):
    pytest.importorskip(name)
    with pytest.raises(TableError, match="gamma expects shape, rate"):
        library(name).from_likelihood("gamma", **given)
