"""Default training budget by number of rows: epochs, batch size, networks. Does not import JAX."""

from __future__ import annotations

from typing import Protocol

VISITS = 3_000_000
"""Row visits (rows x epochs) of a masked network on a large table."""
MOST_EPOCHS, SOME_ROWS, MANY_ROWS = 300, 20_000, 30_000
"""At most 300 epochs up to 20,000 rows; a fixed budget of row visits from 30,000. More epochs would
still help, but 20,000 rows, the slowest case, already take about five minutes on two cores."""
FEW_ROWS = 2_000
"""Below this number of rows, several small networks are trained instead of a large one."""


class Budget(Protocol):
    """The default training budget of a model."""

    def epochs(self, n_rows: int, batch_size: int, *, streamed: bool = False) -> int:
        """Return the number of epochs; a streamed table may get a single one."""

    def batch_size(self, n_rows: int) -> int:
        """Return the number of rows per step."""

    def networks(self, n_rows: int) -> int:
        """Return the number of networks to train and average."""


class _Paper:
    """The budget of the paper's models: about 3,000 steps of 1,024 rows, in 20 to 1,000 epochs.

    Examples
    --------
    >>> PAPER.epochs(700, 1024), PAPER.epochs(32_000, 1024)
    (1000, 93)
    """

    def epochs(self, n_rows: int, batch_size: int, *, streamed: bool = False) -> int:
        return min(1000, max(1 if streamed else 20, 3000 // -(-n_rows // batch_size)))

    def batch_size(self, n_rows: int) -> int:
        return 1024

    def networks(self, n_rows: int) -> int:
        return 1


class _Masked:
    """The budget of masked networks: 300 epochs up to 20,000 rows, about 3 million row visits from 30,000 rows.

    In between, the number of epochs decreases linearly. Tables below 2,000 rows get 150 epochs.

    Examples
    --------
    >>> [MASKED.epochs(n, 256) for n in (700, 20_000, 25_000, 30_000, 300_000)]
    [150, 300, 200, 100, 10]
    """

    def epochs(self, n_rows: int, batch_size: int, *, streamed: bool = False) -> int:
        if n_rows < FEW_ROWS:
            return 150
        fallen = (n_rows - SOME_ROWS) / (MANY_ROWS - SOME_ROWS)
        falling = round(MOST_EPOCHS - fallen * (MOST_EPOCHS - VISITS // MANY_ROWS))
        return min(MOST_EPOCHS, max(1 if streamed else 4, VISITS // n_rows, falling))

    def batch_size(self, n_rows: int) -> int:
        return 128 if n_rows < FEW_ROWS else 256

    def networks(self, n_rows: int) -> int:
        return 3 if n_rows < FEW_ROWS else 1


class _Hivae:
    """The budget of HI-VAE: 2,000 epochs in batches of 1,000 rows, as published, but about 15,000 steps at most.

    Examples
    --------
    >>> [HIVAE.epochs(n, 1000) for n in (700, 6_500, 32_000)]
    [2000, 2000, 468]
    """

    def epochs(self, n_rows: int, batch_size: int, *, streamed: bool = False) -> int:
        return min(2000, max(1 if streamed else 20, 15_000 // -(-n_rows // batch_size)))

    def batch_size(self, n_rows: int) -> int:
        return 1000

    def networks(self, n_rows: int) -> int:
        return 1


PAPER: Budget = _Paper()
MASKED: Budget = _Masked()
HIVAE: Budget = _Hivae()


def published_epochs(n_rows: int) -> int:
    """Return the paper's epochs: 3,000 below 1,000 rows (breast), 2,000 below 10,000 (wine, spam), 400 otherwise.

    Examples
    --------
    >>> [published_epochs(n) for n in (700, 5_000, 32_000)]
    [3000, 2000, 400]
    """
    return 3000 if n_rows < 1000 else 2000 if n_rows < 10_000 else 400
