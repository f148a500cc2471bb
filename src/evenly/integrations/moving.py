"""From the distribution of a site, which is one of scaled units, to that in the table's units; for any library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenly._support import TableError
from evenly.integrations.peeling import both, is_discrete, peel, seen_cells
from evenly.integrations.sites import Site, check_shapes, family_of
from evenly.integrations.tricks import Gammas
from evenly.likelihoods import Array

Missing = Literal["error", "mask"]


@dataclass(frozen=True)
class Library:
    """What a library of probabilistic programs does in its own way."""

    asarray: Callable[[Any], Array]
    numbers: Callable[[Any], Any]
    """Returns an array as NumPy has it, or None inside a compiled function."""
    mask: Callable[[Any, Any], Any]
    """Masks a distribution; cells that are masked may be NaN."""
    by_likelihood: type
    """The distribution of a likelihood, by natural parameters."""
    by_law: Callable[[Any, Site], Any]
    """Moves a distribution by the scale law of the column's likelihood."""
    gamma_trick: Callable[[Site, Array], Any]
    shifted: Callable[[Any, Any], Any]
    """Subtracts a shift."""

    def in_table_units(self, site: Site, fn: Any, value: Array | None, missing: Missing, hidden: Any = True) -> Any:
        """Return the distribution of a site in the table's units.

        Parameters
        ----------
        site : Site
            What it observes.
        fn : Distribution
            What the model gives it.
        value : array or None
            What is observed.
        missing : {"error", "mask"}
            What becomes of missing cells that no mask hides.
        hidden : bool or array
            A mask besides that of the distribution; True where a cell counts.
        """
        peeled = peel(fn)
        kind = type(peeled.core).__name__
        if site.is_left:
            if not is_discrete(kind):
                expected = f"its {site.columns_said} was declared {site.family.name}"
                raise site.error(f"the distribution {kind}", expected, "with the Gamma trick, pass tricks=True")
            return fn
        if site.is_tricked:
            core = self.gamma_trick(site, Gammas(site).natural(peeled.core))
            if kind == "Gamma" and site.columns[0].features[0].code is not None:
                peeled = peeled.without_last_axis()
            shape = peeled.batch_shape
        else:
            shape = tuple(fn.shape())
        check_shapes(site, shape, None if value is None else tuple(np.shape(value)))
        if not site.is_tricked:
            core = self._move(site, peeled.core)
        if value is not None:
            if hidden is not True and hidden is not False:
                hidden = hidden.reshape((*hidden.shape, *(1,) * peeled.n_event))
            counted = both(peeled.mask, hidden)
            seen = seen_cells(site, peeled.core, self.asarray(value), missing, counted, self.numbers)
            peeled = peeled.masked(seen)
        return peeled.wrap(core, self.mask)

    def _move(self, site: Site, core: Any) -> Any:
        """Return a distribution without wrappers in the table's units."""
        kind = type(core).__name__
        if kind == "MixtureSameFamily":
            inner = peel(core.component_distribution)
            wide = site if inner.n_event + inner.core.event_dim else site.widened()
            weights = getattr(core, "mixing_distribution", None) or core.mixture_distribution
            return type(core)(weights, inner.wrap(self._move(wide, inner.core), self.mask))
        if isinstance(core, self.by_likelihood):
            likelihood = core.likelihood  # type: ignore[attr-defined]  # every library's has it
            if likelihood is not site.family:
                expected = f"its {site.columns_said} was scaled for the {site.family.name} likelihood"
                raise site.error(f"the {likelihood.name} likelihood", expected)
            natural = core.natural  # type: ignore[attr-defined]  # as above
            moved: Any = self.by_likelihood(likelihood, likelihood.unscale_natural(natural, site.scale_like(natural)))
        else:
            family = family_of(site, kind)
            if family is None:
                moved = self.by_law(core, site)
            else:
                moved = type(core)(**family.unscale(core, site), validate_args=core._validate_args)
        return self.shifted(moved, site.shift) if np.any(site.shift) else moved


def whole_name(name: str, sites: Mapping[str, Site]) -> str | None:
    """Return the site that a name belongs to: `obs_mask` splits a site into two."""
    for end in ("", "_observed", "_unobserved"):
        if name.endswith(end) and name.removesuffix(end) in sites:
            return name.removesuffix(end)
    return None


def check_missing_option(missing: Missing) -> Missing:
    """Refuse another word."""
    if missing not in ("error", "mask"):
        raise TableError(f"missing={missing!r}", "expected 'error' or 'mask'")
    return missing
