"""The likelihoods by name. A family registers itself, on the line below its class; nothing else lists them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from evenly._support import TableError

if TYPE_CHECKING:
    from evenly.likelihoods.base import Likelihood

Family = TypeVar("Family", bound="Likelihood")

FAMILIES: dict[str, type[Likelihood]] = {}
"""Every registered family by the name of its likelihood, in the order of their definition."""
LIKELIHOODS: dict[str, Likelihood] = {}
"""The likelihoods that need nothing but their name; `categorical` also needs its number of classes."""
_BY_CLASSES: dict[str, Callable[[int], Likelihood]] = {}


def register(likelihood: Family) -> Family:
    """Make a likelihood available by its name; returns it."""
    FAMILIES[likelihood.name] = type(likelihood)
    LIKELIHOODS[likelihood.name] = likelihood
    return likelihood


def register_by_classes(family: type[Likelihood]) -> None:
    """Make a family available by its name and a number of classes, which it is made from.

    There is one object for each number: what is compiled for a table serves the next one like it.
    """
    FAMILIES[family.name] = family
    made: Any = family
    _BY_CLASSES[family.name] = cache(made)


def is_registered(likelihood: Likelihood) -> bool:
    """Whether the likelihood is the one that its name gives, not one of the user's own.

    Examples
    --------
    >>> is_registered(get_likelihood("gamma")), is_registered(get_likelihood("categorical", 3))
    (True, True)
    """
    return FAMILIES.get(likelihood.name) is type(likelihood)


def likelihood_name(name: str) -> str:
    """Return a registered likelihood's name as schemas have it, however it is spelt.

    Examples
    --------
    >>> likelihood_name("Log_Normal"), likelihood_name("lognormal")
    ('log-normal', 'log-normal')
    """
    key = "".join(letter for letter in name.lower() if letter not in "-_ ")
    for known in FAMILIES:
        if known.replace("-", "") == key:
            return known
    raise TableError(f"the likelihood {name!r}", f"expected one of {', '.join(FAMILIES)}")


def get_likelihood(name: str, n_classes: int | None = None) -> Likelihood:
    """Return the likelihood of that name.

    Examples
    --------
    >>> import numpy as np
    >>> get_likelihood("gamma").usual_names
    ('shape', 'rate')
    >>> get_likelihood("categorical", 3).to_usual(np.log([0.2, 0.3, 0.5]))
    array([0.2, 0.3, 0.5])
    >>> get_likelihood("gama")
    Traceback (most recent call last):
    evenly.TableError: got the likelihood 'gama', but expected one of normal, log-normal, gamma, ...
    """
    key = likelihood_name(name)
    if key in LIKELIHOODS:
        return LIKELIHOODS[key]
    if n_classes is None or n_classes < 1:
        raise TableError(f"n_classes={n_classes}", f"{key!r} needs the number of its classes")
    return _BY_CLASSES[key](int(n_classes))
