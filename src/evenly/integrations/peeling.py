"""Masks, event dimensions and expansions around a distribution: taken off, and put on again.

A transformation outside of a mask would add its Jacobian unmasked, and a plate has expanded what an outer handler sees:
so distributions are changed inside of all that, and everything is put on again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly.integrations.sites import Site, check_missing
from evenly.likelihoods import Array

WRAPPERS = ("MaskedDistribution", "Independent", "ExpandedDistribution")
"""What NumPyro and Pyro call them alike."""
DISCRETE = ("Bernoulli", "Categorical", "Poisson", "Binomial", "NegativeBinomial", "Ordered", "Geometric")


@dataclass(frozen=True)
class Peeled:
    """A distribution without what was around it."""

    core: Any
    batch_shape: tuple[int, ...]
    """The batch shape that the core had in there."""
    n_event: int
    """How many of its axes belonged to the event."""
    mask: Any
    """Which of its cells counted: a bool or an array."""

    def wrap(self, core: Any) -> Any:
        """Put everything on again, around another core."""
        if tuple(core.batch_shape) != self.batch_shape:
            core = core.expand(self.batch_shape)
        if self.mask is not True:
            core = core.mask(self.mask)
        return core.to_event(self.n_event) if self.n_event else core


def peel(fn: Any) -> Peeled:
    """Take masks, event dimensions and expansions off a distribution.

    Examples
    --------
    >>> class Plain:
    ...     batch_shape, event_dim = (3,), 0
    ...     shape = lambda self: (3,)
    >>> peel(Plain()).batch_shape, peel(Plain()).mask
    ((3,), True)
    """
    shape, event_dim, masks = tuple(fn.shape()), fn.event_dim, []
    while type(fn).__name__ in WRAPPERS:
        if type(fn).__name__ == "MaskedDistribution":
            masks.append((fn._mask, fn.event_dim))
        fn = fn.base_dist
    mask: Any = True
    for one, axes in masks:
        if not isinstance(one, bool):
            one = one.reshape((*one.shape, *(1,) * (axes - fn.event_dim)))
        mask = one if mask is True else mask if one is True else one & mask
    return Peeled(fn, shape[: len(shape) - fn.event_dim], event_dim - fn.event_dim, mask)


def both(mask: Any, seen: Any) -> Any:
    """Return where two masks hold."""
    return seen if mask is True else mask & seen


def seen_cells(site: Site, peeled: Peeled, value: Array, missing: str, to_numpy: Any) -> Any:
    """Return which cells of an observation are there; True if all are, or if none may be missing.

    Parameters
    ----------
    missing : str
        `error` refuses missing cells that no mask hides, `mask` masks them.
    to_numpy : function
        Returns an array's numbers, or None where there are none yet, inside a compiled function.
    """
    seen = value == value
    for _ in range(peeled.core.event_dim):
        seen = seen.any(-1)
    known = to_numpy(value)
    if known is not None and peeled.core.event_dim:
        _check_rows(site, peeled, np.isnan(known), to_numpy)
    if known is None or not np.isnan(known).any():
        return seen if known is None and missing == "mask" else True
    if missing == "mask":
        return seen
    mask = to_numpy(peeled.mask)
    if mask is not None:
        check_missing(site, int((np.broadcast_to(mask, np.shape(seen)) & ~to_numpy(seen)).sum()))
    return True


def _check_rows(site: Site, peeled: Peeled, gaps: Any, to_numpy: Any) -> None:
    """Refuse rows of a joint distribution that lack some of their cells."""
    axes = tuple(range(-peeled.core.event_dim, 0))
    torn = gaps.any(axis=axes) & ~gaps.all(axis=axes)
    mask = to_numpy(peeled.mask)
    torn = torn if mask is None else torn & mask
    if torn.any():
        kind = type(peeled.core).__name__
        raise site.error(f"{int(torn.sum())} rows with some cells missing", f"a {kind} needs whole rows", "mask them")


def is_discrete(name: str) -> bool:
    """Whether a class of distributions is one of discrete values, by its name.

    Examples
    --------
    >>> is_discrete("BernoulliLogits"), is_discrete("Gamma")
    (True, False)
    """
    return name.startswith(DISCRETE)
