"""A standardized program: called as the model is."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from evenly._support import EvenlyWarning
from evenly.integrations.explaining import Explanation, explain
from evenly.integrations.moving import Missing, check_missing_option
from evenly.integrations.sites import Columns, Site, read_sites
from evenly.scaling import LipschitzScaler


class Program:
    """A model whose sites run in scaled units; made by `standardize`, and called as the model is.

    Attributes
    ----------
    sites : mapping of str to Site
        What it standardizes.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        sites: Mapping[str, Site],
        handler: Callable[..., Any],
        missing: str,
        scaler: LipschitzScaler,
    ) -> None:
        self.model, self.sites = model, dict(sites)
        self._handler, self._missing, self._container = handler, missing, scaler.container_
        functools.update_wrapper(self, model, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model."""
        met: set[str] = set()
        with self._handler(self.sites, self._missing, met):
            result = self.model(*args, **kwargs)
        absent = [name for name in self.sites if name not in met]
        if absent:
            what = f"the model ran without the sites {absent}, which are to be standardized; check their names"
            warnings.warn(what, EvenlyWarning, stacklevel=2)
        return result

    def explain(self) -> Explanation:
        """Return a table of site, likelihood, scale, smoothness before and after, with what became of the priors."""
        return explain(self.sites, self._container)


class OneSite:
    """What a reparametrization of a single site is given, whatever the library."""

    def __init__(
        self, scaler: LipschitzScaler, column: Columns, *, tricks: bool = False, missing: Missing = "error"
    ) -> None:
        self._given = scaler, column, tricks
        self.site("column")  # refuses what no site can observe, before the model runs
        self.missing = check_missing_option(missing)

    def site(self, name: str) -> Site:
        """Return the site that it is asked for."""
        scaler, column, tricks = self._given
        return read_sites(scaler, {name: column}, tricks=tricks)[name]
