"""The learned variables of the rows of fit, found again by the cells of a row.

A mixture or a factorization learns variables of every row. A row that is imputed is known if fit has seen it, cell for
cell, wherever it stands: so its prediction depends on no other row. Of equal rows, the first one's variables count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.models import Expected, RowVariables, check_arrays
from evenly.tables import Floats

HASHES = "row_hashes"
"""The name of the hashes among saved arrays."""


@dataclass(frozen=True)
class LearnedRows:
    """The variables of the rows of fit, by the hash of their cells.

    Examples
    --------
    >>> cells = [np.array([1.0, np.nan, 1.0]), np.array([0.0, 2.0, 0.0])]  # the third row is the first one again
    >>> rows = LearnedRows.of(cells, [{"mean": np.array([[0.1], [0.2], [0.3]])}])
    >>> found = rows.find([np.array([np.nan, 5.0, 1.0]), np.array([2.0, 2.0, 0.0])], 0)
    >>> found.known, found.variables["mean"][found.known].ravel()
    (array([ True, False,  True]), array([0.2, 0.1]))
    """

    hashes: npt.NDArray[np.uint64]
    """Ascending, each once."""
    variables: tuple[Mapping[str, npt.NDArray[Any]], ...]
    """Of each network, by name: rows in the order of their hashes."""

    @classmethod
    def of(cls, values: Sequence[Floats], variables: Sequence[Mapping[str, npt.NDArray[Any]]]) -> LearnedRows:
        """Return the variables of a table's rows, given its modelled columns and the variables of each network."""
        hashes, first = np.unique(hash_cells(values), return_index=True)
        return cls(hashes, tuple({name: np.asarray(one)[first] for name, one in own.items()} for own in variables))

    def find(self, values: Sequence[Floats], network: int) -> RowVariables:
        """Return a network's variables of the rows of a table, and which rows are known."""
        hashes = hash_cells(values)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return RowVariables({name: one[at] for name, one in self.variables[network].items()}, self.hashes[at] == hashes)

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to save, by name; `from_tensors` takes them back."""
        found: dict[str, npt.NDArray[Any]] = {HASHES: self.hashes.view(np.int64)}
        for i, own in enumerate(self.variables):
            found |= {f"row_variables{i}_{name}": one for name, one in own.items()}
        return found

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, npt.NDArray[Any]], expected: Mapping[str, Expected], n_networks: int
    ) -> LearnedRows | None:
        """Rebuild it from a file's arrays: None if they hold none; ValueError if they are not as expected."""
        held = {name: one for name, one in tensors.items() if name.startswith("row_")}
        if not held:
            return None
        wanted = {f"row_variables{i}_{name}": one for i in range(n_networks) for name, one in expected.items()}
        hashes = held.pop(HASHES, np.zeros(0))
        if hashes.dtype != np.int64 or hashes.ndim != 1 or not len(hashes):
            raise ValueError(f"{HASHES}: no whole numbers of 64 bits")
        check_arrays(wanted, held)
        hashes = hashes.view(np.uint64)
        if any(len(one) != len(hashes) for one in held.values()) or (hashes[1:] <= hashes[:-1]).any():
            raise ValueError(f"{HASHES}: not in order, or of other rows")
        own = [{name: held[f"row_variables{i}_{name}"] for name in expected} for i in range(n_networks)]
        return cls(hashes, tuple(own))


def hash_cells(values: Sequence[Floats]) -> npt.NDArray[np.uint64]:
    """Return a hash of 64 bits of each row's cells: equal for equal rows, where missing cells equal each other.

    A new row is taken for one of a million of fit by chance once in 2e13.
    """
    found = np.full(len(values[0]), 0x9E3779B97F4A7C15, np.uint64)
    for own in values:
        # One bit pattern for NaN, and one for 0 and -0.
        cells = np.where(np.isnan(own), np.nan, np.asarray(own, np.float64) + 0.0).view(np.uint64)
        for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # the mixing of splitmix64
            found = (found ^ cells) * np.uint64(factor)
            found = found ^ (found >> np.uint64(29))
    return found
