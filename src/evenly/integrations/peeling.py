"""Masks, event dimensions and expansions around a distribution: taken off, and put on again.

A transformation outside of a mask would add its Jacobian unmasked, and a plate has expanded what an outer handler sees:
so distributions are changed inside of all that, and everything is put on again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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

    def masked(self, mask: Any) -> Peeled:
        """Return it with another mask, too."""
        return replace(self, mask=both(self.mask, mask))

    def without_last_axis(self) -> Peeled:
        """Return it without the last axis of its shape."""
        mask = self.mask if isinstance(self.mask, bool) else self.mask[..., 0]
        return replace(self, batch_shape=self.batch_shape[:-1], n_event=max(self.n_event - 1, 0), mask=mask)

    def wrap(self, core: Any, masking: Callable[[Any, Any], Any]) -> Any:
        """Put everything on again, around another core; `masking` masks a distribution."""
        if tuple(core.batch_shape) != self.batch_shape:
            core = core.expand(self.batch_shape)
        if self.mask is not True:
            core = masking(core, self.mask)
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


def both(mask: Any, other: Any) -> Any:
    """Return where two masks hold, which are arrays or bools."""
    if mask is True or other is False:
        return other
    return mask if other is True or mask is False else mask & other


def seen_cells(site: Site, core: Any, value: Array, missing: str, counted: Any, to_numpy: Callable[[Any], Any]) -> Any:
    """Return which cells of an observation are there; True if all are.

    Parameters
    ----------
    missing : str
        `error` refuses missing cells that count, `mask` leaves them out.
    counted : bool or array
        Which cells count.
    to_numpy : function
        Returns an array's numbers, or None where there are none yet, inside a compiled function.
    """
    seen = value == value
    for _ in range(core.event_dim):
        seen = seen.any(-1)
    known, mask = to_numpy(value), to_numpy(counted)
    if known is None:
        return seen if missing == "mask" else True
    gaps = np.isnan(known)
    if not gaps.any():
        return True
    axes = tuple(range(-core.event_dim, 0))
    absent = gaps.all(axis=axes) if axes else gaps
    if mask is not None:
        torn = (gaps.any(axis=axes) & ~absent & mask).sum() if axes else 0
        if torn:
            expected = f"a {type(core).__name__} needs whole rows"
            raise site.error(f"{int(torn)} rows with some cells missing", expected, "mask them")
        if missing == "error":
            check_missing(site, int((absent & mask).sum()))
    return seen


def is_discrete(name: str) -> bool:
    """Whether a class of distributions is one of discrete values, by its name.

    Examples
    --------
    >>> is_discrete("BernoulliLogits"), is_discrete("Gamma")
    (True, False)
    """
    return name.startswith(DISCRETE)
