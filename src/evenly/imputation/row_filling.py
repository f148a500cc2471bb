"""Filling rows of the table of fit by what networks expect, to fit experts that read complete rows.

What networks expect is nearer to the truth than conditional means of a joint normal, so that trees which read it
predict better. Where a column is to be predicted, its own cells are hidden: what is filled into the others must not
know them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, chunk_size, chunks
from evenly.imputation.expected_cells import blend, fill_expected
from evenly.imputation.gaussian import Gaussian, expect, feature_owners, gaussian_features
from evenly.imputation.predictors import Pass
from evenly.models import Data
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

FEW_ROWS = 2_000
"""Below this number of rows, the Gaussian expert helps to fill, and filled rows are kept for the next expert."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A set of cells to predict as if they were missing, and the networks that fill the others; None: all."""

    cells: Flags
    """Rows x columns."""
    networks: Sequence[Any] | None = None


class Filler(Protocol):
    """Fills the missing cells of the rows of a table, for experts that read complete rows."""

    def fill_held(self, held: HeldOut, one: Pass) -> Floats:
        """Return the features of the rows with held-out cells, all filled that a pass does not show."""

    def fill_without(self, one: Pass, j: int) -> Floats:
        """Return the features of all rows, filled without the own cells of a column of a pass.

        The features of the column itself are as they are in the table.
        """


@dataclass(frozen=True)
class RowFiller:
    """A filler that asks networks, and in small tables the Gaussian expert."""

    ensemble: Ensemble
    table: EncodedTable
    data: Data
    """The model's arrays of the table; inputs from other rows leave out the row's own cells."""
    gaussian: Gaussian
    weights: Floats
    """The weight of the Gaussian expert in what is filled into each column's cells."""
    kept: dict[Any, Floats] = field(default_factory=dict)
    """Filled rows of small tables, which several experts read."""

    def _fill(self, rows: Rows, hidden: Flags, wanted: Flags, networks: Sequence[Any] | None = None) -> Floats:
        """Return the features of some rows, those of wanted cells as networks expect them.

        Parameters
        ----------
        hidden, wanted : array
            Cells that the networks do not see, and those to fill, which are hidden or missing: rows x columns.
        networks : sequence, optional
            The networks that are asked; by default, all.
        """
        model, layout = self.ensemble.model, self.ensemble.layout
        some = self.table.rows(rows)
        found = gaussian_features(some)
        for where, padded in chunks(np.flatnonzero(wanted.any(1)), chunk_size(self.table.n_rows)):
            data = self.data.rows(rows[padded])
            mask = data.mask.copy()
            mask[:, : hidden.shape[1]] &= ~hidden[padded]
            asked = (
                model.predict_natural(layout, one, data._replace(mask=mask))
                for one in networks or self.ensemble.networks
            )
            naturals = [[of[: len(where)] for of in one] for one in asked]
            found[where] = fill_expected(some.rows(where), wanted[where], naturals)
        if not self.weights.any():
            return found
        owners = feature_owners(self.table)
        features = np.where(hidden[:, owners], np.nan, gaussian_features(some))
        return blend(found, expect(self.gaussian, features)[0], (self.weights * wanted)[:, owners])

    def fill_held(self, held: HeldOut, one: Pass) -> Floats:
        def fill() -> Floats:
            rows = np.flatnonzero(held.cells.any(1))
            hidden = held.cells[rows] | one.hides
            return self._fill(rows, hidden, hidden | self._missing(rows), held.networks)

        return self._keep((held, one.targets), fill)

    def fill_without(self, one: Pass, j: int) -> Floats:
        def fill() -> Floats:
            rows = np.arange(self.table.n_rows)
            hidden = np.broadcast_to(np.asarray(one.hides), (len(rows), len(self.table.columns))).copy()
            wanted = self._missing(rows) | hidden
            hidden[:, j], wanted[:, j] = True, False
            return self._fill(rows, hidden, wanted)

        return self._keep((j,), fill)

    def _keep(self, key: tuple[Any, ...], fill: Callable[[], Floats]) -> Floats:
        if self.table.n_rows >= FEW_ROWS:
            return fill()
        if key not in self.kept:
            self.kept[key] = fill()
        return self.kept[key]

    def _missing(self, rows: Rows) -> Flags:
        return np.isnan(np.column_stack([one[rows] for one in self.table.values]))
