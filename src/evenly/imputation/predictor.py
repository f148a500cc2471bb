"""Predictions of a fitted ensemble: distributions of cells, values chosen from them, draws and intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import advance, part
from evenly.imputation.calibration_choice import mix_neighbours
from evenly.imputation.columns import ModelledColumn, UnmodelledColumn
from evenly.imputation.deltas import NO_DELTA, Delta
from evenly.imputation.encoding import EncodedTable
from evenly.imputation.ensemble import Ensemble, chunks
from evenly.imputation.expected_cells import Naturals
from evenly.imputation.predictors import Pass
from evenly.imputation.rules import Limits, truncate, visible
from evenly.imputation.tilts import N_DRAWS, Tilt
from evenly.models import Data
from evenly.predictive import Predictive, TruncatedPredictive
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Choice = Callable[[Predictive], Floats]
Prepared = dict[tuple[int, int], Data]
"""The model's arrays of a chunk of rows, for columns that have the same predictors."""

FEWEST_DRAWS, MOST_DRAWS = 100, 1_000
"""Limits on the number of draws for an interval of a model with latent variables."""
MOST_PREPARED = 16
"""Chunks of rows whose arrays are kept while the same rows are drawn again and again."""
BEYOND = 2
"""Draws at or beyond each end of an interval: the position of a single extreme draw is too noisy."""


class Parameters(NamedTuple):
    """The parameters that predictions are made with."""

    networks: Sequence[Any]
    tilts: Mapping[str, Tilt]
    """Those of columns that have one."""


class _Chunk(NamedTuple):
    """Rows that are predicted at once."""

    table: EncodedTable
    """Padded to the size of a chunk."""
    n_rows: int
    """How many of its rows are wanted."""
    cells: list[Flags]
    """Which of these rows are wanted in each modelled column."""
    draws: list[tuple[tuple[int, ...] | None, bool]]
    """Seeds of the latent variables, and whether all rows use the same random numbers."""
    parameters: Parameters


@dataclass(frozen=True)
class Predictor:
    """Predicts cells of encoded tables.

    Encoded tables contain the modelled columns; values are returned for every column of the table of fit.
    """

    ensemble: Ensemble
    seed: int
    n_draws: int = 0
    """The number of draws of the latent variables that predictions are averaged over; 0 predicts at their mean."""
    to_support: bool = False
    """Whether numbers are clipped to the likelihood's support instead of the observed range, as the paper does."""
    rounds: bool = True
    """Whether numbers are rounded to the precision of their column."""
    deltas: Mapping[str, Delta] = field(default_factory=dict)
    """Shifts of imputed cells, by column."""

    def _value(self, spec: ModelledColumn, found: Predictive, choice: Choice) -> Floats:
        """Return the values to impute in a column, shifted if asked."""
        delta = self.deltas.get(spec.name, NO_DELTA)
        values = delta.bounded(spec, choice(delta.tilted(found)), rounded=self.rounds, to_support=self.to_support)
        return np.clip(values, found.low, found.high) if isinstance(found, TruncatedPredictive) else values

    def predict(
        self,
        table: EncodedTable,
        rows: Rows,
        *,
        draw: int | None = None,
        parameters: Parameters | None = None,
        wanted: Flags | None = None,
        prepared: Prepared | None = None,
    ) -> Iterator[tuple[Rows, list[Predictive]]]:
        """Yield chunks of rows, with the distributions of their cells in every modelled column.

        Parameters
        ----------
        draw : int, optional
            The index of a draw of the latent variables; by default, predictions are at their mean, or averaged.
        parameters : Parameters, optional
            The networks and tilts to use; by default, all networks of the ensemble, and no tilts.
        wanted : array, optional
            The cells to predict, rows x modelled columns; by default, all cells of the rows. Columns that have the same
            predictors as no wanted cell are None.
        prepared : dict, optional
            Keeps the model's arrays of each chunk, for more predictions of the same rows.
        """
        every = rows if table.columns else rows[:0]
        for number, (where, padded) in enumerate(chunks(every, self.ensemble.chunk_size)):
            chunk = _Chunk(
                table.rows(padded),
                len(where),
                [np.ones(len(where), bool) if wanted is None else wanted[where, j] for j in range(len(table.columns))],
                self._draws(draw, number),
                parameters or Parameters(self.ensemble.networks, {}),
            )
            found: list[Any] = [None] * len(table.columns)
            for turn, one in enumerate(self.ensemble.passes):
                if wanted is None or wanted[where][:, one.targets].any():
                    data = self._prepare(chunk, one, (number, turn), prepared)
                    for j, cells in zip(one.targets, self._predict_together(chunk, one, data), strict=True):
                        found[j] = cells
            advance(min(1.0, (number + 1) * self.ensemble.chunk_size / len(rows)))
            yield where, found

    def _prepare(self, chunk: _Chunk, one: Pass, key: tuple[int, int], prepared: Prepared | None) -> Data:
        """Return the model's arrays of a chunk, those kept from before or new ones."""
        kept = None if prepared is None else prepared.get(key)
        if kept is not None:
            return kept
        data = chunk.table.showing(one.shown).data(seed=None, with_inputs=self.ensemble.model.spec.reads_inputs)
        if prepared is not None and len(prepared) < MOST_PREPARED:
            prepared[key] = data
        return data

    def _predict_together(self, chunk: _Chunk, one: Pass, data: Data) -> list[Predictive]:
        """Return the distributions of columns that have the same predictors."""
        ensemble, model = self.ensemble, self.ensemble.model
        table = chunk.table.showing(one.shown)
        some = table.rows(slice(chunk.n_rows))
        by_draw: list[Naturals] = []
        for (i, shared), (seed, alike) in product(enumerate(chunk.parameters.networks), chunk.draws):
            known = {} if ensemble.learned is None else {"rows": ensemble.learned.find(table.values, i)}
            naturals = model.predict_natural(table.layout, shared, data, seed, alike=alike, **known)
            by_draw.append([of[: chunk.n_rows] for of in naturals])
        experts, places = ensemble.ask_experts(some, {j: chunk.cells[j] for j in one.targets}, by_draw)
        found: list[list[Predictive]] = [[] for _ in one.targets]
        for predicted, (j, own) in product(by_draw, zip(one.targets, found, strict=True)):
            spec, _, calibration = table.columns[j]
            cells = [np.asarray(of[chunk.cells[j]], np.float64) for of in predicted[table.features[j]]]
            own.append(spec.predict(cells, calibration, experts[j]))
        mixed = [first.mix(others) for first, *others in found]
        for at, j in enumerate(one.targets):
            spec = table.columns[j].spec
            tilt = chunk.parameters.tilts.get(spec.name)
            if tilt is not None:
                mixed[at] = tilt.apply(spec, mixed[at], places[j])
        return self._with_neighbours(some, mixed, one.targets, chunk.cells)

    def _draws(self, draw: int | None, chunk: int) -> list[tuple[tuple[int, ...] | None, bool]]:
        """Return the seeds of draws of the latent variables, and whether all rows use the same random numbers."""
        if draw is not None:
            return [((self.seed, draw, chunk), False)]
        if self.ensemble.model.spec.cell_by_cell or not self.n_draws:
            return [(None, False)]
        # A row's average over draws must not depend on other rows: all use the same random numbers.
        return [((self.seed, i), True) for i in range(self.n_draws)]

    def _with_neighbours(
        self, table: EncodedTable, found: list[Predictive], targets: Sequence[int], cells: Sequence[Any]
    ) -> list[Predictive]:
        """Mix each column's distributions with the cells of near-duplicates."""
        if self.ensemble.neighbours is None:
            return found
        near = self.ensemble.neighbours.find(table.values)
        return [
            mix_neighbours(one, table.columns[j].calibration.neighbours, near.take(cells[j]), j)
            for one, j in zip(found, targets, strict=True)
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
        """Return the constants of unmodelled columns, and NaN in modelled ones."""
        specs = self.ensemble.specs
        return [np.full(n_rows, one.constant if isinstance(one, UnmodelledColumn) else np.nan) for one in specs]

    @property
    def _modelled(self) -> list[int]:
        """The indices of the modelled columns among all."""
        return [j for j, one in enumerate(self.ensemble.specs) if one.modelled]

    def choose(
        self,
        table: EncodedTable,
        missing: Flags,
        choices: Sequence[Choice],
        draw: int | None = None,
        prepared: Prepared | None = None,
        *,
        ends: bool = False,
    ) -> list[list[Floats]]:
        """Predict rows once, and return values or codes of every column for each way of choosing them.

        Parameters
        ----------
        missing : array
            The cells to predict, rows x modelled columns. Others stay NaN, but for what rules may ask for.
        ends : bool
            Whether only the first way is an estimate; the others give the ends of intervals around it.
        """
        filled = [self.constants(len(missing)) for _ in choices]
        limits, widths, rows = table.rules.limits(), table.rules.widths, np.flatnonzero(missing.any(1))
        wanted = np.ones_like(missing) if table.rules.book else missing
        for where, found in self.predict(table, rows, draw=draw, wanted=wanted, prepared=prepared):
            for j, (index, column, whole) in enumerate(zip(self._modelled, table.columns, found, strict=True)):
                some = where[wanted[where, j]]
                if not len(some):
                    continue
                one = truncate(whole, limits_at(limits, index, some))
                for values, choice in zip(filled, choices, strict=True):
                    values[index][some] = self._value(column.spec, one, choice)
                if index in widths:
                    widths[index][some] = one.quantile(0.75) - one.quantile(0.25)
        if ends:
            estimates = table.rules.settle(filled[0], widths)
            return [estimates, *table.rules.settle_ends(filled[1:], estimates)]
        return [table.rules.settle(one, widths) for one in filled]

    def draw(self, table: EncodedTable, missing: Flags, i: int, prepared: Prepared | None = None) -> list[Floats]:
        """Return the i-th draw of the missing cells (rows x modelled columns).

        If the model predicts cell by cell, the cells of a row are drawn one after the other, each given those before,
        with tilts that are drawn once. Without tilts, the networks take turns.
        """
        rng = np.random.default_rng((self.seed, i))
        n_rows = len(missing)
        if not self.ensemble.model.spec.cell_by_cell:
            return self.choose(table, missing, [lambda one: one.sample(rng)], i, prepared)[0]
        filled = self.constants(n_rows)
        if not table.columns:
            return filled
        table = replace(table, columns=tuple(one._replace(values=one.values.copy()) for one in table.columns))
        turns = np.argsort(np.argsort(np.where(missing, rng.random(missing.shape), 2.0), axis=1), axis=1)
        counts, left, drawing = missing.sum(1), missing.copy(), table.rules.drawing()
        parameters = self._draw_parameters(i)
        for turn in range(int(counts.max(initial=0))):
            wanted = left & (turns == turn)
            rows, limits = np.flatnonzero(counts > turn), drawing.limits()
            with part(*(np.minimum(counts, turn + k).sum() / counts.sum() for k in (0, 1))):
                for where, found in self.predict(table, rows, parameters=parameters, wanted=wanted):
                    for j, (index, column, one) in enumerate(zip(self._modelled, table.columns, found, strict=True)):
                        drawn_rows = where[wanted[where, j]]
                        if len(drawn_rows):
                            one = truncate(one, limits_at(limits, index, drawn_rows))
                            drawn = self._value(column.spec, one, methodcaller("sample", rng))
                            filled[index][drawn_rows] = column.values[drawn_rows] = drawn
            done = {index: wanted[:, j] for j, index in enumerate(self._modelled)}
            for index, (closed, follows) in drawing.drawn(dict(enumerate(filled)), done).items():
                filled[index] = np.where(closed, follows, filled[index])
                if index in done:
                    j = self._modelled.index(index)
                    table.columns[j].values[closed] = visible(table.columns[j].spec.fitted, follows)[closed]
                    left[:, j] &= ~closed
        return table.rules.settle(filled)

    def _draw_parameters(self, i: int) -> Parameters:
        """Return the parameters of the i-th draw."""
        networks, tilts = self.ensemble.networks, self.ensemble.tilts
        if not tilts:
            return Parameters([networks[i % len(networks)]], {})
        which = int(np.random.default_rng(self.seed).permutation(N_DRAWS)[i % N_DRAWS])
        return Parameters(networks, {name: one.drawn(which) for name, one in tilts.items()})

    def draw_some(
        self, table: EncodedTable, missing: Flags, n: int, prepared: Prepared | None = None
    ) -> Iterator[list[Floats]]:
        """Yield the first n draws of the missing cells."""
        for i in range(n):
            with part(i / n, (i + 1) / n):
                drawn = self.draw(table, missing, i, prepared)
            yield drawn

    def interval(self, table: EncodedTable, missing: Flags, level: float, estimate: Choice) -> list[list[Floats]]:
        """Return the ends of central intervals of the missing cells; for classes, the estimate.

        Models with latent variables use draws, which include the uncertainty of the latent variables.
        """
        if self.ensemble.model.spec.cell_by_cell:
            levels = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
            choices: list[Choice] = [estimate, *(methodcaller("quantile", at) for at in levels)]
            return self.choose(table, missing, choices, ends=True)[1:]
        found = self.choose(table, missing, [estimate] * 2)
        numbers = {
            index: missing[:, j]
            for j, (index, column) in enumerate(zip(self._modelled, table.columns, strict=True))
            if not column.spec.column.has_classes and missing[:, j].any()
        }
        n_draws = count_draws(level)
        drawn = {index: np.empty((n_draws, cells.sum())) for index, cells in numbers.items()}
        for i, full in enumerate(self.draw_some(table, missing, n_draws, Prepared())):
            for index, cells in numbers.items():
                own, middle = full[index][cells], found[0][index][cells]  # by rules, one of them may be missing
                drawn[index][i] = np.where(np.isnan(own) | np.isnan(middle), middle, own)
        for index, cells in numbers.items():
            for one, end in zip(found, central_draws(drawn[index], level), strict=True):
                one[index][cells] = end
        return found


def limits_at(limits: Limits, index: int, rows: Rows) -> tuple[Floats, Floats] | None:
    """Return the limits of some rows of a column, if it has any."""
    own = limits.get(index)
    return None if own is None else (own[0][rows], own[1][rows])


def count_draws(level: float) -> int:
    """Return the number of draws for an interval.

    Examples
    --------
    >>> [count_draws(level) for level in (0.5, 0.9, 0.99, 0.9999)]
    [100, 100, 399, 1000]
    """
    return int(np.clip(np.ceil(2.0 * BEYOND / (1.0 - level)) - 1, FEWEST_DRAWS, MOST_DRAWS))


def central_draws(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return, for each column, two draws between which another draw lies with a probability of at least `level`.

    Another draw is equally likely to fall into each of the n + 1 gaps between and beyond n draws.

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
