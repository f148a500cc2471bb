"""What comes to likelihood heads: tables to encode, cells that were encoded before, and raw outputs to check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import Array, namespace
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.lazy_frames import open_lazy
from evenly.scaling.targets import settle
from evenly.scaling.transforming import Transformation, warn_of_changes
from evenly.tables import Change, Floats, TableColumn, map_columns, open_table, select


class Cells(NamedTuple):
    """The cells of a table as a network takes them: a pair of arrays, so that JAX and data loaders take it apart."""

    values: Array
    """Scaled features, rows x features; finite also where a cell is missing."""
    mask: Array
    """True = observed: rows x columns."""


@dataclass(frozen=True)
class CellReader:
    """Encodes the cells of tables like the fitted one."""

    transformation: Transformation

    @property
    def container(self) -> str:
        """What the fitted table was."""
        return self.transformation.container

    def encode(self, table: Any, fitted: Sequence[FittedColumn], rng: Any, dtype: str) -> Cells:
        """Return the cells of some columns of a table."""
        if dtype not in ("float32", "float64"):
            raise TableError(f"dtype = {dtype!r}", "expected 'float32' or 'float64'")
        seed = self._seed(rng)
        if open_lazy(table) is not None:
            raise TableError("a lazy frame", "heads expect a table in memory", "collect it, or a part of it")
        opened, rows = open_table(table), self.transformation.rows
        by_position = self.container == "numpy"
        every = by_position or opened.container == "numpy"  # an array is read by position
        labels = [one.label for one in (self.transformation.columns if every else fitted)]
        if opened.container == "numpy" and len(opened.columns) != len(labels):
            raise TableError(f"an array of {len(opened.columns)} columns", f"expected the {len(labels)} of fit")
        cells = dict(zip(labels, select(opened, labels, by_position=by_position)[0], strict=True))

        def read(one: FittedColumn, stored: TableColumn) -> tuple[Floats, list[Floats], list[Change]]:
            values, changes = one.read_known(stored, strict=rows.strict, handle_unknown=rows.handle_unknown)
            features = zip(one.features, one.targets(values, seed), strict=True)
            families = [(feature.likelihood.modelled_as, target) for feature, target in features]
            settled = [settle(family, target, family.support.typical, dtype) for family, target in families]
            return ~np.isnan(values), settled, changes

        found = map_columns(read, fitted, [cells[one.label] for one in fitted], n_rows=opened.n_rows)
        warn_of_changes([change for _, _, changes in found for change in changes], stacklevel=4)
        values = np.stack([part for _, parts, _ in found for part in parts], axis=-1).astype(dtype)
        return Cells(values, np.stack([mask for mask, _, _ in found], axis=-1))

    def _seed(self, rng: Any) -> int | None:
        """Return the seed of the noise; None for its mean."""
        if rng is None:
            return self.transformation.seed if self.transformation.drawn else None
        if isinstance(rng, np.random.Generator):
            return int(rng.integers(2**31 - 1))
        if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and 0 <= rng < 2**63:
            return int(rng)
        raise TableError(f"rng = {rng!r}", "expected a whole number from 0, a NumPy Generator, or None")


def check_raw(raw: Any, n_outputs: int) -> Array:
    """Return raw outputs as an array of single or double precision; refuse other shapes."""
    if namespace(raw) is namespace(0.0):
        try:
            array = np.asarray(raw)
            raw = array if array.dtype in (np.float16, np.float32) else array.astype(np.float64)
        except (TypeError, ValueError):
            got = f"raw outputs of type {type(raw).__name__}"
            raise TableError(got, "expected an array of numbers") from None
    shape, kind = tuple(raw.shape), str(raw.dtype).rpartition(".")[2]
    if shape[-1:] != (n_outputs,):
        got = f"raw outputs of shape {shape}"
        raise TableError(got, f"expected {n_outputs} along the last axis", "heads.n_outputs is their number")
    if kind not in ("float32", "float64"):
        # The bounds of parameters keep distances of 1e-6, and log-gammas lose all digits in less.
        expected = "a likelihood expects float32 or float64"
        raise TableError(f"raw outputs of type {kind}", expected, "convert them first, as by raw.float() in PyTorch")
    return raw


def is_encoded(cells: Any, mask: Any) -> bool:
    """Whether these are encoded cells; else they are a table. An array without a mask might be either: refused."""
    pair = isinstance(cells, (tuple, list)) and len(cells) == 2 and all(getattr(one, "ndim", 0) > 1 for one in cells)
    if isinstance(cells, Cells) or pair:  # a data loader gives the pair as a list
        if mask is not None:
            raise TableError("encoded cells and another mask", "expected one mask", "pass values and mask, or the pair")
        return True
    if mask is not None:
        return True
    if namespace(cells) is not namespace(0.0):
        got, hint = f"an array of {type(cells).__module__.partition('.')[0]} without a mask", "pass values and mask"
        raise TableError(got, "expected a table, or what heads.encode gives", hint)
    return False


def check_cells(cells: Any, mask: Any, widths: tuple[int, int]) -> Cells:
    """Return encoded cells as a pair; refuse those of other columns.

    Parameters
    ----------
    widths : pair of int
        The number of features and of columns.
    """
    pair = cells if mask is None else (cells, mask)
    found = Cells(*(one if hasattr(one, "shape") else np.asarray(one) for one in pair))
    for name, array, width, unit in zip(Cells._fields, found, widths, ("feature", "column"), strict=True):
        if tuple(array.shape)[-1:] != (width,):
            expected = f"expected {width} along the last axis, one a {unit}"
            raise TableError(f"{name} of shape {tuple(array.shape)}", expected, "encode the table by these heads")
    return found


def check_rows(**arrays: Array) -> None:
    """Refuse arrays whose axes before the last do not fit together."""
    shapes = {name: tuple(one.shape) for name, one in arrays.items() if one is not None}
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        got = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise TableError(got, "expected as many rows, or axes that broadcast") from None
