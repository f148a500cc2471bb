"""What experts predict beside the networks: distributions of the same cells, stacked by weights of a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evenly.imputation.calibration import Calibration
from evenly.predictive import Predictive


class Experts(NamedTuple):
    """The experts' predictions of a column's cells, if there are any; NaN in cells that they do not predict.

    Examples
    --------
    >>> NO_EXPERTS.weighted(Calibration(tree_weight=0.5))
    []
    """

    gaussian: Predictive | None = None
    trees: Predictive | None = None
    kernel: Predictive | None = None

    def weighted(self, calibration: Calibration) -> list[tuple[Predictive, float]]:
        """Return the experts that have a weight."""
        pairs = zip(self, calibration.expert_weights, strict=True)
        return [(one, weight) for one, weight in pairs if one is not None and weight]

    def take(self, rows: Any) -> Experts:
        """Return a selection of the cells."""
        return Experts(*(None if one is None else one.take(rows) for one in self))


NO_EXPERTS = Experts()


def join(parts: Sequence[Experts]) -> Experts:
    """Return predictions of several sets of cells, one after the other."""
    found = []
    for by_expert in zip(*parts, strict=True):
        some = [one for one in by_expert if one is not None]
        found.append(some[0].append(some[1:]) if some else None)
    return Experts(*found)
