"""Likelihood heads: what a network gives for the cells of a table, as log-probabilities and as distributions.

For whoever writes a decoder or a factor model of a mixed table, in JAX or PyTorch. A head is the part of one column;
arrays go through all of them at once, grouped by likelihood.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, constrain, namespace, to_numpy, unconstrain
from evenly.predictive import Predictive
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.head import Head, lay_out_heads
from evenly.scaling.head_cells import CellReader, Cells, check_cells, check_raw, check_rows, is_encoded
from evenly.tables import Floats, build_table


class _Group(NamedTuple):
    """The features of one likelihood."""

    likelihood: Likelihood
    features: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    parameters: npt.NDArray[np.intp]
    """Places among the raw outputs: features x parameters."""


@dataclass(frozen=True, eq=False, repr=False)
class Heads:
    """Likelihood heads of a fitted scaler's columns; `LipschitzScaler.heads` makes them.

    Arrays are those of NumPy, JAX or PyTorch, and results are of the same library. Columns come in the order of the
    table; those without a head (ignored, empty, or with a single value) are in `left_out`.

    Attributes
    ----------
    columns : tuple of Head
        One a column: its name, its slices, its likelihoods.
    weights : array
        The weight of each column that makes its smoothness that of the others, as
        `LipschitzScaler.balance_weights` gives it: about 1, except where a method leaves discrete columns unscaled.
    left_out : tuple of str
        The columns that have no head.

    Examples
    --------
    >>> from evenly import LipschitzScaler
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(0.0, 2.0, 500), rng.poisson(3.0, 500)])
    >>> heads = LipschitzScaler().fit(table).heads()
    >>> heads.n_outputs, heads.slices
    (4, {'x0': slice(0, 2, None), 'x1': slice(2, 4, None)})
    >>> raw = np.tile(heads.marginal, (500, 1))               # a network gives these, row by row
    >>> heads.log_prob(raw, table).shape                      # rows x columns
    (500, 2)
    >>> heads.distribution(raw)["x0"].mean()[0].round(3) == table[:, 0].mean().round(3)
    np.True_

    A missing cell counts nothing, whatever the network says:

    >>> heads.log_prob(np.array([0.0, 0.0, np.nan, np.inf]), [[0.5, np.nan]])[0, 1]
    np.float64(0.0)
    """

    columns: tuple[Head, ...]
    weights: Floats
    left_out: tuple[str, ...]
    reader: CellReader

    def __repr__(self) -> str:
        return f"<heads of {len(self.columns)} columns: {self.n_outputs} outputs>"

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [one.name for one in self.columns]

    @property
    def n_outputs(self) -> int:
        """How many raw outputs a network needs."""
        return int(self.columns[-1].outputs.stop)

    @property
    def n_features(self) -> int:
        """How many encoded features a row has."""
        return int(self.columns[-1].features.stop)

    @property
    def slices(self) -> dict[str, slice]:
        """Which raw outputs belong to which column."""
        return {one.name: one.outputs for one in self.columns}

    @property
    def marginal(self) -> Floats:
        """Raw outputs of the model that every row is alike: a good start for the bias of a network's last layer."""
        pairs = [pair for one in self.columns for pair in zip(one.likelihoods, one.marginal, strict=True)]
        return np.concatenate([unconstrain(family, natural) for family, natural in pairs])

    @cached_property
    def _groups(self) -> list[_Group]:
        held: dict[Likelihood, list[tuple[int, int, npt.NDArray[np.intp]]]] = defaultdict(list)
        for j, head in enumerate(self.columns):
            for k, (family, places) in enumerate(zip(head.likelihoods, head.parameters, strict=True)):
                held[family].append((head.features.start + k, j, places))
        return [
            _Group(family, *(np.array(part) for part in zip(*features, strict=True)))
            for family, features in held.items()
        ]

    # --- cells ----------------------------------------------------------------------------------------------------

    def encode(self, X: Any, rng: int | np.random.Generator | None = None, *, dtype: str = "float32") -> Cells:
        """Return the cells of a table as a network takes them: scaled features, and which cells are observed.

        Parameters
        ----------
        X : table
            In memory. Any row goes through, as in `LipschitzScaler.transform`; a class that fit did not see counts as
            missing.
        rng : int, Generator, optional
            Draws the noise of the Gamma trick, by its seed and the row's position; by default it is what `transform`
            adds, the mean of the noise unless the scaler has `noise="drawn"`.
        dtype : {"float32", "float64"}
            The precision of the network.

        Returns
        -------
        Cells
            `values`, rows x features (of a log-normal column the scaled logarithm), finite also where cells are
            missing, and `mask`, rows x columns, True = observed: a pair of NumPy arrays.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.array([[1.5, 0.0], [2.5, 1.0], [np.nan, 1.0], [4.0, 0.0]])
        >>> heads = LipschitzScaler().fit(table).heads()
        >>> values, mask = heads.encode(table, rng=0)
        >>> values.shape, mask.sum(axis=0).tolist()
        ((4, 2), [3, 4])
        """
        return self.reader.encode(X, [one.fitted for one in self.columns], rng, dtype)

    # --- log-probabilities ----------------------------------------------------------------------------------------

    def log_prob(self, raw: Array, cells: Any, mask: Array | None = None) -> Array:
        """Return the log-density, in scaled units, of every cell: rows x columns, 0 where it is missing.

        Differentiable, and ready for `jax.jit`, `jax.vmap` and PyTorch's autograd. Missing cells have a gradient of 0,
        whatever the raw outputs are.

        Parameters
        ----------
        raw : array
            Raw outputs along the last axis, any real numbers; axes before those of the cells (draws) are kept.
        cells : Cells, array or table
            What `encode` gave; or its values, with `mask`; or a table, which is encoded without drawing noise.
        mask : array, optional
            With the values of encoded cells: True = observed.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.random.default_rng(0).normal(0.0, 2.0, (4, 3))
        >>> heads = LipschitzScaler().fit(table).heads()
        >>> values, mask = heads.encode(table)
        >>> heads.log_prob(np.zeros((4, heads.n_outputs)), values, mask).shape
        (4, 3)
        """
        raw, values, seen = self._given(raw, cells, mask)
        xp, found = namespace(raw, values), []
        for family, features, columns, places in self._groups:
            there, x = seen[..., columns], values[..., features]
            there = there & (x == x)
            # Both are replaced where a cell is missing: a formula that fails there would make gradients NaN.
            own = xp.where(there[..., None], raw[..., places], 0.0)
            density = family.log_density(xp.where(there, x, family.support.typical), constrain(family, own))
            found.append(xp.where(there, density, 0.0))
        order = np.argsort(np.concatenate([one.features for one in self._groups]))
        ordered = xp.concatenate(found)[..., order]
        return xp.stack(
            [
                ordered[..., a] if b == a + 1 else ordered[..., a:b].sum(-1)
                for a, b in ((one.features.start, one.features.stop) for one in self.columns)
            ]
        )

    def log_jacobian(self, cells: Any, mask: Array | None = None) -> Array:
        """Return what turns `log_prob` into the log-density in the table's units, by addition: rows x columns.

        0 where a cell is missing, and for columns that are not scaled. Under a trick a feature is no function of the
        cell, and there is no such relation: 0 too; ask `distribution(raw)[column].log_prob`.

        Parameters
        ----------
        cells, mask
            As for `log_prob`.
        """
        _, values, seen = self._given(None, cells, mask)
        xp = namespace(values)
        found = xp.stack([one.log_jacobian(values) for one in self.columns])
        return xp.where(seen & (found == found), found, 0.0)

    def _given(self, raw: Any, cells: Any, mask: Any) -> tuple[Array, Array, Array]:
        """Return checked raw outputs, values and which cells are observed, as arrays of one library."""
        raw = None if raw is None else check_raw(raw, self.n_outputs)
        dtype = "float64" if raw is None else str(raw.dtype).rpartition(".")[2]
        if is_encoded(cells, mask):
            values, mask = check_cells(cells, mask, (self.n_features, len(self.columns)))
        else:
            values, mask = self.encode(cells, dtype=dtype)
        check_rows(raw=raw, values=values, mask=mask)
        like = values if raw is None or namespace(raw) is namespace(0.0) else raw
        xp = namespace(like)
        raw, values = (None if one is None else xp.asarray(one, like) for one in (raw, values))
        return raw, values, xp.asarray(mask, like) > 0.5

    # --- parameters and distributions -----------------------------------------------------------------------------

    def natural(self, raw: Array) -> dict[str, Array]:
        """Return the natural parameters of each scaled feature: `LipschitzScaler.unscale` takes them.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.random.default_rng(0).normal(0.0, 2.0, (100, 1))
        >>> scaler = LipschitzScaler().fit(table)
        >>> heads = scaler.heads()
        >>> usual = scaler.unscale(heads.natural(heads.marginal))
        >>> bool(np.isclose(usual["x0"]["mean"], table.mean()))
        True
        """
        raw = check_raw(raw, self.n_outputs)
        return {
            feature.name: natural
            for one in self.columns
            for feature, natural in zip(one.fitted.features, one.naturals(raw), strict=True)
        }

    def raw(self, natural: Mapping[str, Any]) -> Floats:
        """Return the raw outputs that give these natural parameters, by feature: the inverse of `natural`."""
        features = [pair for one in self.columns for pair in zip(one.fitted.features, one.likelihoods, strict=True)]
        names = [feature.name for feature, _ in features]
        unknown, absent = [name for name in natural if name not in names], [one for one in names if one not in natural]
        if unknown or absent:
            got = f"the feature {unknown[0]!r}" if unknown else f"no parameters of {absent[0]!r}"
            raise TableError(got, f"expected those of {names}")
        arrays = [to_numpy(natural[name]) for name in names]
        for (feature, family), array in zip(features, arrays, strict=True):
            if array.shape[-1:] != (len(family.natural_bounds),):
                expected = f"expected {len(family.natural_bounds)} of {family.name} along the last axis"
                raise TableError(f"natural parameters of shape {array.shape}", expected, column=feature.name)
        rows = np.broadcast_shapes(*(one.shape[:-1] for one in arrays))
        parts = [unconstrain(family, one) for (_, family), one in zip(features, arrays, strict=True)]
        return np.concatenate([np.broadcast_to(one, (*rows, one.shape[-1])) for one in parts], axis=-1)

    def distribution(self, raw: Array) -> dict[str, Predictive]:
        """Return the distributions of the cells, by column, in the table's units, tricks undone.

        Each has `mean()`, `mode()`, `quantile(level)`, `interval()`, `sample(rng)` and `log_prob(values)`, in NumPy;
        values of classes are codes, their places in `.column.classes`.

        Parameters
        ----------
        raw : array
            Raw outputs along the last axis. Their numbers are needed, so not within a function that JAX compiles:
            there, `scaler.unscale(heads.natural(raw))` gives parameters.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.random.default_rng(0).integers(0, 2, (50, 1))
        >>> heads = LipschitzScaler().fit(table).heads()
        >>> cells = heads.distribution(np.tile(heads.marginal, (3, 1)))["x0"]
        >>> bool(np.allclose(cells.probabilities[:, 1], table.mean(), atol=1e-3)), cells.mode().shape
        (True, (3,))
        """
        raw = check_raw(raw, self.n_outputs)
        try:
            numbers = to_numpy(raw)
        except (TypeError, RuntimeError):
            expected, hint = "a distribution expects numbers", "use scaler.unscale(heads.natural(raw)) there"
            raise TableError("raw outputs within a compiled function", expected, hint) from None
        return {one.name: one.distribution(numbers) for one in self.columns}

    def predict(self, raw: Array, estimate: str = "mean") -> Any:
        """Return a table of best guesses, in the container and the types of the fitted one: columns with a head.

        Parameters
        ----------
        raw : array
            Raw outputs: rows x outputs.
        estimate : {"mean", "median", "mode"}
            Of numbers; of classes, the mean is the most probable one.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.array([["a", 1.5], ["b", 2.5], ["a", 4.0]], object)
        >>> heads = LipschitzScaler("lip-none").fit(table).heads()
        >>> heads.predict(heads.marginal[None]).tolist()
        [['a', 2.67...]]
        """
        if estimate not in ("mean", "median", "mode"):
            raise TableError(f"estimate = {estimate!r}", "expected 'mean', 'median' or 'mode'")
        found = self.distribution(raw)
        if len(np.shape(found[self.names[0]].mean())) != 1:
            raise TableError(f"raw outputs of shape {tuple(np.shape(raw))}", "a table expects rows x outputs")
        container = self.reader.container
        cells = {
            one.fitted.label: one.fitted.decode(found[one.name].estimate(estimate), container) for one in self.columns
        }
        return build_table(cells, container)


def make_heads(
    columns: Sequence[FittedColumn], chosen: Sequence[Hashable] | None, weights: Mapping[str, float], reader: CellReader
) -> Heads:
    """Return the heads of fitted columns, or of the chosen ones.

    Parameters
    ----------
    chosen : sequence of column
        By name or label; by default all.
    weights : mapping of column to float
        As `balance_weights` returns them.
    """
    heads, left_out = lay_out_heads(columns, chosen)
    return Heads(tuple(heads), np.array([weights[one.name] for one in heads]), tuple(left_out), reader)
