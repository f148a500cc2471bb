"""How long to train a table, by its rows: epochs, rows a step, networks. Without JAX."""

from __future__ import annotations

VISITS = 3_000_000
"""How many rows a masked network sees in its training, the same row counted as often as it comes."""
FEW_ROWS = 2_000
"""Fewer rows are learned by several small trainings instead of a long one."""


def auto_epochs(n_rows: int, batch_size: int, paper: bool, by_cell: bool = False, streamed: bool = False) -> int:
    """Return how often to see every row.

    The paper's: 3,000 below 1,000 rows (breast), 2,000 below 10,000 (wine, spam), 400 otherwise. Ours: some 3,000
    steps, in 20 to 1,000 epochs; of a masked network, some 3 million rows, in 4 to 300 epochs (150 if rows are few).
    A table that is streamed has so many rows that they need not come again: 1 epoch may do.

    Examples
    --------
    >>> auto_epochs(700, 1024, True), auto_epochs(700, 1024, False), auto_epochs(32_000, 1024, False)
    (3000, 1000, 93)
    """
    if paper:
        return 3000 if n_rows < 1000 else 2000 if n_rows < 10_000 else 400
    if by_cell:
        return 150 if n_rows < FEW_ROWS else min(300, max(1 if streamed else 4, VISITS // n_rows))
    return min(1000, max(1 if streamed else 20, 3000 // -(-n_rows // batch_size)))


def auto_batch_size(n_rows: int, by_cell: bool) -> int:
    """Return how many rows a step takes: 1024; of a masked network fewer, where there are few."""
    if not by_cell:
        return 1024
    return 128 if n_rows < FEW_ROWS else 256


def auto_networks(n_rows: int) -> int:
    """Return how many masked networks to average."""
    return 3 if n_rows < FEW_ROWS else 1
