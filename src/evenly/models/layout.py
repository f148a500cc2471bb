"""Positions of a table's columns in a model's padded arrays, whose sizes many tables share. Does not import JAX.

A compiled program is specific to the shapes of its arrays. So tables of similar size are padded to the same size class,
and what differs between them (which column a feature belongs to, how many classes it has) is passed as arrays: a
program that was compiled for one table is reused for the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.likelihoods import BERNOULLI, UNIT_NORMAL, Likelihood, unconstrain

ALWAYS = -1
"""The column of inputs that belong to none, and that nothing hides."""
Array = Any
"""A NumPy array, or a JAX one inside a compiled program."""

BLOCK = 4
"""Classes are computed in blocks of 4: a categorical of K classes takes ceil(K / 4) of them."""
FEW_ROWS = 2_000
"""Fewer rows train in seconds, so that compilation dominates: size classes are coarse, for many tables to share."""
COARSE, FINE = 2, 8
"""Size classes per octave (from a power of 2 to the next): padding adds at most a half, or an eighth."""
LEAST_COLUMNS, LEAST_ROWS, LEAST_BLOCKS, LEAST_SLOTS = 8, 64, 16, 4
"""The smallest size classes of columns and inputs, rows, blocks, and features of one likelihood."""
BIN_BLOCKS = 16
"""Minimum of `most_blocks` where numbers are binned: a number has at most 48 bins."""
MANY_ROWS = 1 << 16
"""Above this number of rows, size classes are finer, since padding costs memory."""


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
    """Sizes of a model's padded arrays, apart from the number of rows."""

    columns: int
    inputs: int
    groups: tuple[tuple[Likelihood, int], ...]
    """The number of slots for features of each likelihood, except categoricals."""
    heads: int
    """The number of slots for categoricals."""
    blocks: int
    """The number of blocks for their classes."""
    most_blocks: int
    """The number of blocks of the largest categorical."""
    per_octave: int
    """Size classes per octave, for arrays that a model adds."""


class Data(NamedTuple):
    """A table as a model sees it: columns, inputs and features at their positions in padded arrays.

    `inputs` are standardized, the same under every method, 0 where missing. `targets` are the scaled features, with an
    arbitrary value of the support where missing. `mask` is True at observed cells: rows x columns.
    """

    inputs: Array
    targets: Array
    mask: Array

    def rows(self, which: Any) -> Data:
        """Return a selection of the rows."""
        return Data(*(part[which] for part in self))


@dataclass(frozen=True)
class Layout:
    """The likelihood and the column of every feature, and its position in padded arrays.

    The raw parameters of all features form one flat vector, grouped by likelihood, with classes in blocks at the end;
    `constrain` maps them into their bounds.
    """

    likelihoods: tuple[Likelihood, ...]
    columns: tuple[int, ...]
    inputs: tuple[int, ...] = ()
    """The column of each input, which is hidden with its cells; or `ALWAYS`."""
    numbers: tuple[int, ...] = ()
    """The inputs that are numbers; the others encode classes."""
    padded: Sizes | None = None
    """The sizes of the padded arrays; by default, no padding."""
    names: tuple[str, ...] = field(default=(), compare=False)
    """The names of the columns, for warnings."""

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
        """Return the sizes of the arrays, rounded up to size classes from the given minima; exact if these are 1."""

        def up(n: int, least: int) -> int:
            return n if least == 1 else size_class(n, least, per_octave)

        # Sorted by name, so that the order of the columns does not matter.
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
        """Return the layout padded to its size class.

        Parameters
        ----------
        n_rows : int
            Rows of the table: where they are few, size classes are coarse.
        in_bins : bool
            Whether numbers are binned: then every column has a slot as a number, as a binary and as a categorical, so
            that tables with other kinds of columns share the layout.
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
        """Return the first slot and the first parameter of each likelihood, and those of categoricals."""
        starts, at, into = {}, 0, 0
        for one, n in self.sizes.groups:
            starts[one] = (at, into)
            at, into = at + n, into + n * len(one.natural_bounds)
        return starts, (at, into)

    @property
    def n_slots(self) -> int:
        """Number of feature slots."""
        return self._starts[1][0] + self.sizes.heads

    @property
    def n_raw(self) -> int:
        """Length of the flat vector of raw parameters."""
        return self._starts[1][1] + BLOCK * self.sizes.blocks

    @cached_property
    def places(self) -> tuple[tuple[int, npt.NDArray[np.intp]], ...]:
        """The slot of each feature, and the positions of its parameters in the flat vector."""
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
        """The positions of all parameters in the flat vector, feature by feature."""
        return np.concatenate([places for _, places in self.places])

    def empty(self, n_rows: int, dtype: Any, *, with_inputs: bool = True) -> Data:
        """Return arrays of `n_rows` rows without an observed cell."""
        targets = np.zeros((n_rows, self.n_slots), dtype)
        for one, n in self.sizes.groups:
            at = self._starts[0][one][0]
            targets[:, at : at + n] = one.support.typical
        inputs = np.zeros((n_rows, self.sizes.inputs if with_inputs else 0), dtype)
        return Data(inputs, targets, np.zeros((n_rows, self.sizes.columns), bool))

    def by_feature(self, flat: Array) -> list[Array]:
        """Split flat parameters, along the last axis, into those of each feature."""
        return [flat[..., places] for _, places in self.places]

    def flat(self, naturals: Sequence[Array]) -> npt.NDArray[np.float64]:
        """Return the flat raw parameters for the natural ones of each feature; 0 in unused slots."""
        found = np.zeros((*np.shape(naturals[0])[:-1], self.n_raw))
        for one, (_, places), natural in zip(self.likelihoods, self.places, naturals, strict=True):
            found[..., places] = unconstrain(one, np.asarray(natural, np.float64))
        return found

    def target(self, data: Data, f: int) -> Array:
        """Return a feature's targets."""
        return data.targets[..., self.places[f][0]]

    def log_likelihood(self, naturals: Sequence[Array], data: Data) -> npt.NDArray[np.float64]:
        """Return the log-likelihood of each column's observed cells by row, given the features' natural parameters.

        In NumPy, for occasional use; compiled programs use `Wiring.log_likelihood`.
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
            Of each row in each cluster, rows x clusters: then returns weighted sums by cluster, and total weights.
        """
        seen = np.asarray(data.mask[:, self.columns[f]])
        statistics = self.likelihoods[f].statistics(np.asarray(self.target(data, f), np.float64)[seen])
        if weights is not None:
            return weights[seen].T @ statistics, weights[seen].sum(0)
        return statistics.sum(0) / max(1, int(seen.sum())), seen.sum()

    def constant(self, data: Data, *, unseen: float = 0.5) -> npt.NDArray[np.float64]:
        """Return the raw parameters of the marginal model: the maximum-likelihood estimate of each feature.

        Parameters
        ----------
        unseen : float
            Pseudo-count of each class, so that unobserved classes are not impossible.
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
    """Pad arrays to `n_rows` rows, without observed cells in the padding."""
    lacking = n_rows - len(data.mask)
    if not lacking:
        return data
    more = layout.empty(lacking, data.targets.dtype, with_inputs=data.inputs.shape[1] > 0)
    return Data(*(np.concatenate([one, other]) for one, other in zip(data, more, strict=True)))
