"""Where the columns of a table stand in a model's arrays, in sizes that many tables share. Without JAX.

A compiled program knows the shapes of its arrays and nothing else. So tables of like size are put into arrays of one
size class, whose last places stay empty, and what differs between them (which column a feature belongs to, how many
classes it has) is passed as arrays too: the program that was compiled for one table serves the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.likelihoods import BERNOULLI, UNIT_NORMAL, Likelihood, namespace

Array = Any
"""A NumPy array, or inside of a compiled program a JAX one."""

BLOCK = 4
"""Classes are computed in blocks of so many: a head of K classes takes as many blocks as hold it."""
FLOOR = 1e-6
"""How far from a bound of 1 a constrained parameter stays: ten rounding steps of single precision."""
FLOOR_AT_ZERO = 1e-12
"""The same at a bound of 0, where single precision resolves far smaller numbers; its inverse square is still finite."""
FEW_ROWS = 2_000
"""Fewer rows are trained in seconds, so that compiling counts: their size classes are coarse and shared by many."""
COARSE, FINE = 2, 8
"""Size classes between a power of 2 and the next: padding adds a half, or an eighth, at most."""
LEAST_COLUMNS, LEAST_ROWS, LEAST_BLOCKS, LEAST_SLOTS = 8, 64, 16, 4
"""The smallest size classes."""
BIN_BLOCKS = 16
"""Blocks of the largest categorical, at the least: those of a number in bins, which are 48 at most."""
MANY_ROWS = 1 << 16
"""More rows have finer size classes: their memory counts."""


def size_class(n: int, least: int, per_octave: int) -> int:
    """Return the smallest size class that holds n.

    Examples
    --------
    >>> [size_class(n, 8, 2) for n in (1, 8, 9, 13, 17, 100)], [size_class(n, 8, 8) for n in (9, 17, 100)]
    ([8, 8, 12, 16, 24, 128], [9, 18, 104])
    """
    if n <= least:
        return least
    step = max(1, (1 << (n - 1).bit_length() - 1) // per_octave)
    return -(-n // step) * step


class Sizes(NamedTuple):
    """How large a model's arrays are, apart from their rows."""

    columns: int
    inputs: int
    groups: tuple[tuple[Likelihood, int], ...]
    """Places for features of each likelihood, categoricals left out."""
    heads: int
    """Places for categoricals."""
    blocks: int
    """Blocks that their classes are in."""
    most_blocks: int
    """Blocks of the largest of them."""
    per_octave: int
    """Size classes between a power of 2 and the next, for what a model adds of its own."""


class Data(NamedTuple):
    """A table as a model sees it, each column, input and feature at its place.

    `inputs` are standardized, the same under every method, 0 where missing. `targets` are the scaled features, with any
    value inside the support where there is none. `mask` says which cells are observed: rows x columns.
    """

    inputs: Array
    targets: Array
    mask: Array

    def rows(self, which: Any) -> Data:
        """Return some of the rows."""
        return Data(*(part[which] for part in self))


@dataclass(frozen=True)
class Layout:
    """The likelihood of every feature, the column that each belongs to, and their places in arrays of some sizes.

    Raw parameters of all features form one flat vector: those of each likelihood together, classes in blocks at the
    end; `constrain` brings them into bounds.
    """

    likelihoods: tuple[Likelihood, ...]
    columns: tuple[int, ...]
    inputs: tuple[int, ...] = ()
    """The column of each input."""
    numbers: tuple[int, ...] = ()
    """The inputs that are numbers; the others tell classes apart."""
    padded: Sizes | None = None
    """The sizes of the arrays; by default no larger than needed."""
    names: tuple[str, ...] = field(default=(), compare=False)
    """The columns' names, for warnings."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.likelihoods)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return max(self.columns) + 1

    @property
    def n_parameters(self) -> int:
        """Number of raw parameters."""
        return sum(len(one.natural_bounds) for one in self.likelihoods)

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of the arrays."""
        return self.padded or self._needed(1, 1, 1, 1, FINE)

    def _needed(self, columns: int, inputs: int, slots: int, blocks: int, per_octave: int) -> Sizes:
        """Return how large the arrays must be, in size classes that start at some least sizes; exact if they are 1."""

        def up(n: int, least: int) -> int:
            return n if least == 1 else size_class(n, least, per_octave)

        # By name, so that it does not matter which kind of column comes first.
        counts = Counter(sorted((one for one in self.likelihoods if not one.one_per_class), key=lambda one: one.name))
        classes = [len(one.natural_bounds) for one in self.likelihoods if one.one_per_class]
        held = [-(-n // BLOCK) for n in classes]
        return Sizes(
            up(self.n_columns, columns),
            up(len(self.inputs), inputs),
            tuple((one, up(n, slots)) for one, n in counts.items()),
            up(len(classes), slots) if classes else 0,
            up(sum(held), blocks) if classes else 0,
            size_class(max(held), 4, 1) if held and slots > 1 else max(held, default=0),
            per_octave,
        )

    def in_class(self, n_rows: int, *, in_bins: bool = False) -> Layout:
        """Return the layout in a size class.

        Parameters
        ----------
        n_rows : int
            Of the table: where they are few, the classes are coarse.
        in_bins : bool
            Whether numbers are explained by bins: then there is a place for every column as a number, as a yes or no,
            and as classes, so that tables of other kinds have the same layout.
        """
        per_octave = COARSE if n_rows < FEW_ROWS else FINE
        sizes = self._needed(LEAST_COLUMNS, LEAST_COLUMNS, LEAST_SLOTS, LEAST_BLOCKS, per_octave)
        if in_bins:
            columns = size_class(self.n_columns, LEAST_COLUMNS, 1 if n_rows < FEW_ROWS else FINE)
            named = tuple((one, n) for one, n in sizes.groups if one not in (UNIT_NORMAL, BERNOULLI))
            sizes = sizes._replace(
                columns=columns,
                groups=((UNIT_NORMAL, columns), (BERNOULLI, columns), *named),
                heads=columns,
                blocks=max(sizes.blocks, LEAST_BLOCKS),
                most_blocks=max(sizes.most_blocks, BIN_BLOCKS),
            )
        return replace(self, padded=sizes)

    @cached_property
    def _starts(self) -> tuple[dict[Likelihood, tuple[int, int]], tuple[int, int]]:
        """Return where each likelihood's features and parameters start, and where those of categoricals do."""
        starts, at, into = {}, 0, 0
        for one, n in self.sizes.groups:
            starts[one] = (at, into)
            at, into = at + n, into + n * len(one.natural_bounds)
        return starts, (at, into)

    @property
    def n_slots(self) -> int:
        """Places for features."""
        return self._starts[1][0] + self.sizes.heads

    @property
    def n_raw(self) -> int:
        """Length of the flat vector of raw parameters."""
        return self._starts[1][1] + BLOCK * self.sizes.blocks

    @cached_property
    def places(self) -> tuple[tuple[int, npt.NDArray[np.intp]], ...]:
        """Return the place of each feature, and those of its parameters in the flat vector."""
        starts, (heads, blocks) = self._starts
        taken = dict.fromkeys(starts, 0)
        found, n_heads, n_blocks = [], 0, 0
        for one in self.likelihoods:
            k = len(one.natural_bounds)
            if one.one_per_class:
                found.append((heads + n_heads, blocks + BLOCK * n_blocks + np.arange(k)))
                n_heads, n_blocks = n_heads + 1, n_blocks - (-k // BLOCK)
            else:
                at, into = starts[one]
                found.append((at + taken[one], into + k * taken[one] + np.arange(k)))
                taken[one] += 1
        return tuple(found)

    @cached_property
    def parameters(self) -> npt.NDArray[np.intp]:
        """The places of all parameters, feature after feature."""
        return np.concatenate([places for _, places in self.places])

    def empty(self, n_rows: int, dtype: Any, *, with_inputs: bool = True) -> Data:
        """Return arrays for some rows without any observed cell."""
        targets = np.zeros((n_rows, self.n_slots), dtype)
        for one, n in self.sizes.groups:
            at = self._starts[0][one][0]
            targets[:, at : at + n] = one.support.typical
        inputs = np.zeros((n_rows, self.sizes.inputs if with_inputs else 0), dtype)
        return Data(inputs, targets, np.zeros((n_rows, self.sizes.columns), bool))

    def by_feature(self, flat: Array) -> list[Array]:
        """Return parameters one feature at a time, from flat ones along the last axis."""
        return [flat[..., places] for _, places in self.places]

    def flat(self, naturals: Sequence[Array]) -> npt.NDArray[np.float64]:
        """Return the flat vectors of raw parameters that give these natural ones of each feature; 0 at empty places."""
        found = np.zeros((*np.shape(naturals[0])[:-1], self.n_raw))
        for one, (_, places), natural in zip(self.likelihoods, self.places, naturals, strict=True):
            found[..., places] = unconstrain(one, np.asarray(natural, np.float64))
        return found

    def target(self, data: Data, f: int) -> Array:
        """Return a feature's targets."""
        return data.targets[..., self.places[f][0]]

    def log_likelihood(self, naturals: Sequence[Array], data: Data) -> npt.NDArray[np.float64]:
        """Return the log-likelihood of the observed cells of each column, per row, by natural parameters of features.

        For what is asked now and then; a program that is trained has its own.
        """
        found = np.zeros((len(data.mask), self.n_columns))
        for f, (one, natural) in enumerate(zip(self.likelihoods, naturals, strict=True)):
            cells = one.log_density(np.asarray(self.target(data, f), np.float64), np.asarray(natural, np.float64))
            found[:, self.columns[f]] += np.where(data.mask[:, self.columns[f]], cells, 0.0)
        return found

    def mean_statistics(self, data: Data, f: int, weights: Array | None = None) -> tuple[Array, Array]:
        """Return the mean statistics of a feature's observed cells, and their number.

        Parameters
        ----------
        weights : array, optional
            Of each row in some parts, rows x parts: then the sums are those of each part, divided by nothing.
        """
        seen = np.asarray(data.mask[:, self.columns[f]])
        statistics = self.likelihoods[f].statistics(np.asarray(self.target(data, f), np.float64)[seen])
        if weights is not None:
            return weights[seen].T @ statistics, weights[seen].sum(0)
        return statistics.sum(0) / max(1, int(seen.sum())), seen.sum()

    def constant(self, data: Data, *, unseen: float = 0.5) -> npt.NDArray[np.float64]:
        """Return the raw parameters of a model that knows each feature alone: its maximum-likelihood ones.

        Parameters
        ----------
        unseen : float
            How many cells more of each class are counted, so that one that was not seen is not impossible.
        """
        naturals = []
        for f, one in enumerate(self.likelihoods):
            mean, n = self.mean_statistics(data, f)
            if one.one_per_class:
                mean = (n * mean + unseen) / (n + unseen * len(mean))
            with np.errstate(all="ignore"):
                natural = np.asarray(one.fit(mean))
            naturals.append(natural if np.isfinite(natural).all() else np.zeros(len(one.natural_bounds)))
        return self.flat(naturals)


def pad_rows(data: Data, n_rows: int, layout: Layout) -> Data:
    """Return arrays of more rows, of which the last have no observed cell."""
    lacking = n_rows - len(data.mask)
    if not lacking:
        return data
    more = layout.empty(lacking, data.targets.dtype, with_inputs=data.inputs.shape[1] > 0)
    return Data(*(np.concatenate([one, other]) for one, other in zip(data, more, strict=True)))


# --- bounds -------------------------------------------------------------------------------------------------------


def _floor(bound: float) -> float:
    return FLOOR * abs(bound) if bound else FLOOR_AT_ZERO


def constrain(likelihood: Likelihood, raw: Array) -> Array:
    """Bring raw parameters into the likelihood's bounds by softplus."""
    if _unbounded(likelihood):
        return raw
    xp, parts = namespace(raw), []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = raw[..., i]
        if low > -np.inf:
            x = low + xp.softplus(x) + _floor(low)
        elif high < np.inf:
            x = high - xp.softplus(x) - _floor(high)
        parts.append(x)
    return xp.stack(parts)


def unconstrain(likelihood: Likelihood, natural: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Undo `constrain`."""
    if _unbounded(likelihood):
        return natural
    parts = []
    for i, (low, high) in enumerate(likelihood.natural_bounds):
        x = natural[..., i]
        if low > -np.inf:
            x = _inverse_softplus(x - low - _floor(low))
        elif high < np.inf:
            x = _inverse_softplus(high - x - _floor(high))
        parts.append(x)
    return np.stack(parts, axis=-1)


def _unbounded(likelihood: Likelihood) -> bool:
    return all(bounds == (-np.inf, np.inf) for bounds in likelihood.natural_bounds)


def _inverse_softplus(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    y = np.maximum(y, FLOOR)
    return np.asarray(y + np.log(-np.expm1(-y)))
