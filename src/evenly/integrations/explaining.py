"""What standardizing did to a program, in a table and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenly._support import align
from evenly.integrations.sites import Site
from evenly.tables import build_table

SENTENCE = (
    "The parameters of these sites are in scaled units now, and so are the priors that the model gives them: "
    "rescale_prior carries one over. Observations, draws and log-likelihoods stay in the table's units."
)


class ExplainedRow(NamedTuple):
    """One feature that a site observes."""

    site: str
    feature: str
    likelihood: str
    scale: float
    smoothness_before: float
    smoothness_after: float
    how: str


@dataclass(frozen=True)
class Explanation:
    """A table of sites, and the sentence that belongs to it; prints as both."""

    rows: tuple[ExplainedRow, ...]
    container: str

    def to_frame(self) -> Any:
        """Return the table as a dataframe of the kind that the scaler was fitted on, or a dictionary of arrays."""
        data = {name: np.array([getattr(row, name) for row in self.rows]) for name in ExplainedRow._fields}
        return data if self.container == "numpy" else build_table(data, self.container)

    def __str__(self) -> str:
        head = ("site", "feature", "likelihood", "how", "scale", "smoothness before", "after")
        lines = [
            (
                row.site,
                row.feature,
                row.likelihood,
                row.how,
                f"{row.scale:.3g}",
                f"{row.smoothness_before:.3g}",
                f"{row.smoothness_after:.3g}",
            )
            for row in self.rows
        ]
        return "\n".join([*align([head, *lines], 4), "", SENTENCE])

    __repr__ = __str__


def explain(sites: Mapping[str, Site], container: str) -> Explanation:
    """Return the table of a standardized program's sites."""
    return Explanation(tuple(row for one in sites.values() for row in _rows(one)), container)


def _rows(site: Site) -> Iterator[ExplainedRow]:
    for column in site.columns:
        if site.is_left:
            before = sum(fit.smoothness_before for fit in column.fits if column.features[0].trick == "none")
            name = column.column.name
            yield ExplainedRow(site.name, name, site.family.name, 1.0, before, before, "left as it is")
            continue
        for feature, fit in zip(column.features, column.fits, strict=True):
            how = "Gamma trick" if site.is_tricked else "scaled"
            before, after = fit.smoothness_before, fit.smoothness_after
            yield ExplainedRow(site.name, feature.name, feature.likelihood.name, fit.scale, before, after, how)
