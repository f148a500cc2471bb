"""How long to train a table, by its rows: epochs, rows a step, networks. Without JAX."""

from __future__ import annotations

VISITS = 3_000_000
"""How many rows a masked network sees of a large table, the same row counted as often as it comes."""
MOST_EPOCHS, SOME_ROWS, MANY_ROWS = 300, 20_000, 30_000
"""Up to some rows a masked network may see each of them so often, from many on it sees `VISITS` rows in all: the more
the better, but for the time it takes, which is longest at 20,000 rows (some five minutes on two cores)."""
FEW_ROWS = 2_000
"""Fewer rows are learned by several small trainings instead of a long one."""


def auto_epochs(n_rows: int, batch_size: int, paper: bool, by_cell: bool = False, streamed: bool = False) -> int:
    """Return how often to see every row.

    The paper's: 3,000 below 1,000 rows (breast), 2,000 below 10,000 (wine, spam), 400 otherwise. Ours: some 3,000
    steps, in 20 to 1,000 epochs; of a masked network, 300 epochs up to 20,000 rows (150 if rows are few), and some 3
    million rows, in 4 epochs at least, from 30,000 on; in between epochs fall in a straight line.
    A table that is streamed has so many rows that they need not come again: 1 epoch may do.

    Examples
    --------
    >>> auto_epochs(700, 1024, True), auto_epochs(700, 1024, False), auto_epochs(32_000, 1024, False)
    (3000, 1000, 93)
    >>> [auto_epochs(n, 256, False, by_cell=True) for n in (700, 20_000, 25_000, 30_000, 300_000)]
    [150, 300, 200, 100, 10]
    """
    if paper:
        return 3000 if n_rows < 1000 else 2000 if n_rows < 10_000 else 400
    if by_cell:
        if n_rows < FEW_ROWS:
            return 150
        fallen = (n_rows - SOME_ROWS) / (MANY_ROWS - SOME_ROWS)
        falling = round(MOST_EPOCHS - fallen * (MOST_EPOCHS - VISITS // MANY_ROWS))
        return min(MOST_EPOCHS, max(1 if streamed else 4, VISITS // n_rows, falling))
    return min(1000, max(1 if streamed else 20, 3000 // -(-n_rows // batch_size)))


def auto_batch_size(n_rows: int, by_cell: bool) -> int:
    """Return how many rows a step takes: 1024; of a masked network fewer, where there are few."""
    if not by_cell:
        return 1024
    return 128 if n_rows < FEW_ROWS else 256


def auto_networks(n_rows: int) -> int:
    """Return how many masked networks to average."""
    return 3 if n_rows < FEW_ROWS else 1
