"""Predictions of a fitted ensemble: distributions of cells, values chosen from them, draws and intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.imputation import gaussian as gaussian_expert
from evenly.imputation.calibration_choice import mix_neighbours
from evenly.imputation.columns import UnmodelledColumn
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, chunks
from evenly.imputation.predictive import Predictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Choice = Callable[[Predictive], Floats]

FEWEST_DRAWS, MOST_DRAWS = 100, 1_000
"""Draws behind an interval of a model with latent variables."""
BEYOND = 2
"""Draws that are to lie at or beyond each of its ends: a single one would be as far off as it happens to be."""


@dataclass(frozen=True)
class Predictor:
    """Predicts cells of encoded tables.

    Tables hold the modelled columns; what is returned has an array for every column of the table of fit.
    """

    ensemble: Ensemble
    seed: int
    n_draws: int = 0
    """Draws of a row's latent variables that a prediction is averaged over; 0: one prediction, at their mean."""
    to_support: bool = False
    """Whether numbers are clipped to the likelihood's support instead of the observed range, as the paper does."""

    def predict(
        self,
        table: EncodedTable,
        rows: Rows,
        *,
        draw: int | None = None,
        networks: Sequence[Any] | None = None,
        wanted: Flags | None = None,
    ) -> Iterator[tuple[Rows, list[Predictive]]]:
        """Go through rows in chunks: which they are, and the distributions of every modelled column's cells.

        Parameters
        ----------
        draw : int, optional
            The number of a draw of the latent variables; without, predictions are at their mean, or averaged.
        networks : sequence, optional
            Some of the ensemble's; by default all.
        wanted : array, optional
            Which cells are asked for, all rows x modelled columns: each column's distributions are those of its own.
        """
        ensemble, model = self.ensemble, self.ensemble.model
        for number, (where, padded) in enumerate(chunks(rows if table.columns else rows[:0], ensemble.chunk_size)):
            data = table.rows(padded).data(seed=None, with_inputs=model.spec.reads_inputs)
            some = table.rows(where)
            mine = [slice(None) if wanted is None else wanted[where, j] for j in range(len(table.columns))]
            experts: list[Predictive | None] = [None] * len(table.columns)
            if ensemble.gaussian is not None:
                said = gaussian_expert.predict_cells(ensemble.gaussian, some)
                experts = [None if one is None else one.take(own) for one, own in zip(said, mine, strict=True)]
            found: list[list[Predictive]] = [[] for _ in table.columns]
            for shared, (seed, alike) in product(networks or ensemble.networks, self._draws(draw, number)):
                naturals = model.predict_natural(table.layout, shared, data, seed, alike=alike)
                for j, (spec, _, calibration) in enumerate(table.columns):
                    own = [np.asarray(one[: len(where)][mine[j]], np.float64) for one in naturals[table.features[j]]]
                    found[j].append(spec.predict(own, calibration, experts[j]))
            mixed = [first.mix(others) for first, *others in found]
            yield where, self._with_neighbours(some, mixed, mine)

    def _draws(self, draw: int | None, chunk: int) -> list[tuple[tuple[int, ...] | None, bool]]:
        """Return the seeds of the latent variables' draws, and whether all rows draw alike."""
        if draw is not None:
            return [((self.seed, draw, chunk), False)]
        if self.ensemble.model.spec.cell_by_cell or not self.n_draws:
            return [(None, False)]
        # What is averaged over draws must not depend on the rows around: all rows draw alike.
        return [((self.seed, i), True) for i in range(self.n_draws)]

    def _with_neighbours(self, table: EncodedTable, found: list[Predictive], mine: list[Any]) -> list[Predictive]:
        """Mix distributions with the cells of near-duplicates."""
        if self.ensemble.neighbours is None:
            return found
        near = self.ensemble.neighbours.find(table.values)
        return [
            mix_neighbours(one, column.calibration.neighbours, near.take(own), j)
            for j, (one, column, own) in enumerate(zip(found, table.columns, mine, strict=True))
        ]

    def distributions(self, table: EncodedTable) -> dict[str, Predictive]:
        """Return the distributions of all cells of the modelled columns."""
        parts = [found for _, found in self.predict(table, np.arange(table.n_rows))] if table.columns else []
        if not parts:
            return {}
        return {
            name: first.append(others)
            for name, (first, *others) in zip(table.layout.names, zip(*parts, strict=True), strict=True)
        }

    # --- values ---------------------------------------------------------------------------------------------------

    def constants(self, n_rows: int) -> list[Floats]:
        """Return what is imputed in every column if no model says anything: the constant of unmodelled columns."""
        specs = self.ensemble.specs
        return [np.full(n_rows, one.constant if isinstance(one, UnmodelledColumn) else np.nan) for one in specs]

    @property
    def _places(self) -> list[int]:
        """The places of the modelled columns among all."""
        return [j for j, one in enumerate(self.ensemble.specs) if one.modelled]

    def choose(
        self,
        table: EncodedTable,
        rows: Rows,
        n_rows: int,
        choices: Sequence[Choice],
        rounded: Sequence[bool],
        draw: int | None = None,
    ) -> list[list[Floats]]:
        """Return values or codes of every column in some rows: predicted once, and chosen in each of some ways.

        Parameters
        ----------
        rounded : sequence of bool
            Whether to round whole numbers, of each modelled column.
        """
        filled = [self.constants(n_rows) for _ in choices]
        for where, found in self.predict(table, rows, draw=draw):
            for place, column, one, whole in zip(self._places, table.columns, found, rounded, strict=True):
                for values, choice in zip(filled, choices, strict=True):
                    values[place][where] = column.spec.bounded(choice(one), whole=whole, to_support=self.to_support)
        return filled

    def draw(self, table: EncodedTable, missing: Flags, i: int) -> list[Floats]:
        """Return the i-th draw of the missing cells (rows x modelled columns).

        At once, or one after the other, each given those before, where the model predicts cell by cell.
        """
        rng = np.random.default_rng((self.seed, i))
        n_rows = len(missing)
        if not self.ensemble.model.spec.cell_by_cell:
            rows = np.flatnonzero(missing.any(1))
            whole = [True] * len(table.columns)
            return self.choose(table, rows, n_rows, [lambda one: one.sample(rng)], whole, draw=i)[0]
        filled = self.constants(n_rows)
        if not table.columns:
            return filled
        table = replace(table, columns=tuple(one._replace(values=one.values.copy()) for one in table.columns))
        turns = np.argsort(np.argsort(np.where(missing, rng.random(missing.shape), 2.0), axis=1), axis=1)
        counts = missing.sum(1)
        network = self.ensemble.networks[i % len(self.ensemble.networks)]
        for turn in range(int(counts.max(initial=0))):
            wanted = missing & (turns == turn)
            rows = np.flatnonzero(counts > turn)
            for where, found in self.predict(table, rows, networks=[network], wanted=wanted):
                for j, (place, column, one) in enumerate(zip(self._places, table.columns, found, strict=True)):
                    mine = where[wanted[where, j]]
                    if len(mine):
                        drawn = column.spec.bounded(one.sample(rng), whole=True, to_support=self.to_support)
                        filled[place][mine] = column.values[mine] = drawn
        return filled

    def interval(self, table: EncodedTable, missing: Flags, level: float, estimate: Choice) -> list[list[Floats]]:
        """Return the ends of central intervals of the missing cells; of classes, the estimate.

        Of a model with latent variables, by draws: they know of the latent variables too.
        """
        rows, n_rows, whole = np.flatnonzero(missing.any(1)), len(missing), [True] * len(table.columns)
        if self.ensemble.model.spec.cell_by_cell:
            levels = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
            ends: list[Choice] = [lambda one, at=at: one.quantile(at) for at in levels]  # type: ignore[misc]
            return self.choose(table, rows, n_rows, ends, whole)
        found = self.choose(table, rows, n_rows, [estimate] * 2, whole)
        numbers = {
            place: missing[:, j]
            for j, (place, column) in enumerate(zip(self._places, table.columns, strict=True))
            if not column.spec.column.has_classes and missing[:, j].any()
        }
        n_draws = count_draws(level)
        drawn = {place: np.empty((n_draws, gone.sum())) for place, gone in numbers.items()}
        for i in range(n_draws):
            full = self.draw(table, missing, i)
            for place, gone in numbers.items():
                drawn[place][i] = full[place][gone]
        for place, gone in numbers.items():
            for one, end in zip(found, central_draws(drawn[place], level), strict=True):
                one[place][gone] = end
        return found


def count_draws(level: float) -> int:
    """Return how many draws an interval takes.

    Examples
    --------
    >>> [count_draws(level) for level in (0.5, 0.9, 0.99, 0.9999)]
    [100, 100, 399, 1000]
    """
    return int(np.clip(np.ceil(2.0 * BEYOND / (1.0 - level)) - 1, FEWEST_DRAWS, MOST_DRAWS))


def central_draws(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return, column by column, two draws that one more would lie between with the probability `level`, or just above.

    One more draw is as likely to fall into any of the gaps between n draws, or beyond them: n + 1 places.

    Examples
    --------
    >>> low, high = central_draws(np.arange(1.0, 100.0)[:, None], 0.9)
    >>> float(low[0]), float(high[0])
    (5.0, 95.0)
    """
    n = len(drawn)
    # Rounded first: 0.05 * 100 must not be just below 5.
    at = max(1, int(np.floor(np.round(0.5 * (1.0 - level) * (n + 1), 6))))
    ordered = np.partition(drawn, (at - 1, n - at), axis=0)
    return ordered[at - 1], ordered[n - at]
