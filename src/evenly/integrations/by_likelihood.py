"""What the distribution of a likelihood is made of, whatever the library: its constraint and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenly._support import TableError
from evenly.likelihoods import Likelihood, Support


def constraint_of(support: Support, constraints: Any) -> Any:
    """Return the constraint of a support, from a library's module of constraints.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> some = SimpleNamespace(greater_than=lambda low: f"> {low}", greater_than_eq=lambda low: f">= {low}")
    >>> constraint_of(Support(0.0), some), constraint_of(Support(0.0, closed=True), some)
    ('> 0.0', '>= 0.0')
    """
    if support.whole:
        return constraints.nonnegative_integer
    low, high = support.lower, support.upper
    if high < float("inf"):
        return constraints.less_than(high) if low == -float("inf") else constraints.interval(low, high)
    if low == -float("inf"):
        return constraints.real
    return constraints.greater_than_eq(low) if support.closed else constraints.greater_than(low)


def usual_parameters(family: Likelihood, usual: Mapping[str, Any]) -> list[Any]:
    """Return the usual parameters of a likelihood in their order; refuse others, and none.

    Examples
    --------
    >>> from evenly import get_likelihood
    >>> usual_parameters(get_likelihood("gamma"), {"rate": 2.0, "shape": 3.0})
    [3.0, 2.0]
    """
    names = family.usual_names
    if set(usual) != set(names):
        raise TableError(f"the parameters {', '.join(usual) or 'none'}", f"{family.name} expects {', '.join(names)}")
    return [usual[name] for name in names]
