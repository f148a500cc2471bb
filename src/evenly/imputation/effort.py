"""How much work a fit does: sizes of the ensemble and the forests, and how long networks are trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Factors and additions to what is usual for a table.

    Examples
    --------
    >>> [(EFFORTS[name].networks(3), EFFORTS[name].epochs(150)) for name in EFFORTS]
    [(1, 60), (3, 150), (5, 225)]
    >>> EFFORTS["quick"].epochs(1)
    1
    """

    epoch_share: float = 1.0
    more_networks: int = 0
    n_trees: int = 100
    """Trees of a forest."""

    def networks(self, usual: int) -> int:
        """Return the number of networks, given the usual one."""
        return max(1, usual + self.more_networks)

    def epochs(self, usual: int) -> int:
        """Return the number of epochs, given the usual one."""
        return max(1, round(self.epoch_share * usual)) if usual else 0


USUAL = Effort()
EFFORTS = {"quick": Effort(0.4, -2, 50), "default": USUAL, "best": Effort(1.5, 2, 300)}
"""Efforts by name."""
