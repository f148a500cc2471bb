"""What a fitted scaler tells a model of its features: where to start, how to weigh columns, and the way back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import TableError
from evenly.likelihoods import Array
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.head_cells import CellReader
from evenly.scaling.heads import Heads, make_heads
from evenly.scaling.parameters import Given
from evenly.scaling.smoothness import balancing_weights
from evenly.scaling.transforming import Transformation
from evenly.tables import Floats


class ModelSide:
    """The part of `LipschitzScaler` that models of likelihoods use."""

    columns_: Sequence[FittedColumn]
    target_: float

    @property
    def _transformation(self) -> Transformation:
        raise NotImplementedError

    @property
    def natural_(self) -> dict[str, Floats]:
        """Maximum-likelihood natural parameters of the scaled features, by feature."""
        check_is_fitted(self, "columns_")
        pairs = [pair for one in self.columns_ for pair in zip(one.features, one.fits, strict=True)]
        return {one.name: fit.natural for one, fit in pairs if fit.natural is not None}

    def unscale(self, parameters: Mapping[str, Given]) -> dict[str, dict[str, Array]]:
        """Return usual parameters per column, in the table's units, tricks undone.

        Parameters
        ----------
        parameters : mapping of feature (or column) to array or to dict
            Of the scaled features: natural ones along the last axis, or usual ones by name (`{"mean": ..., "std":
            ...}`); arrays of NumPy, JAX or PyTorch with any axes before (rows, draws). A column of several features
            may be given at once, with an axis of features.

        Returns
        -------
        dict of column to dict of parameter to array
            With the leading axes of what was given. Columns none of whose features are given are left out.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> rng = np.random.default_rng(0)
        >>> table = np.column_stack([rng.normal(0.0, 2.0, 500), rng.poisson(3.0, 500)])
        >>> scaler = LipschitzScaler().fit(table)
        >>> usual = scaler.unscale(scaler.natural_)
        >>> bool(np.isclose(usual["x0"]["mean"], table[:, 0].mean()))
        True
        >>> bool(np.isclose(usual["x1"]["rate"], table[:, 1].mean()))
        True

        Draws of the parameters of 100 rows, by name:

        >>> draws = {"x0": {"mean": np.zeros((4, 100)), "std": np.ones((4, 100))}}
        >>> scaler.unscale(draws)["x0"]["mean"].shape
        (4, 100)

        Parameters along another axis are refused:

        >>> scaler.unscale({"x0": np.zeros((2, 100))})
        Traceback (most recent call last):
        evenly.TableError: Column 'x0': got natural parameters of shape (2, 100), but the normal likelihood of its \
scaled feature expects 2 along the last axis. Hint: or give usual parameters by name: mean, std.
        """
        return self._transformation.recover(parameters)

    def rescaled(self, scales: Mapping[str, float]) -> Self:
        """Return this scaler with other scales of some features, by name, as an online standardization ends with.

        Examples
        --------
        >>> from evenly import LipschitzScaler
        >>> table = np.random.default_rng(0).normal(0.0, 2.0, (500, 1))
        >>> scaler = LipschitzScaler("std-none").fit(table).rescaled({"x0": 3.0})
        >>> bool(np.allclose(scaler.transform(table), 3.0 * table))
        True
        >>> bool(np.isclose(scaler.unscale(scaler.natural_)["x0"]["mean"], table.mean()))
        True

        A feature that the table does not have:

        >>> scaler.rescaled({"x1": 3.0})
        Traceback (most recent call last):
        evenly.TableError: got a scale of 'x1', but expected one of the features x0.
        """
        check_is_fitted(self, "columns_")
        known = [feature.name for one in self.columns_ for feature in one.features]
        if unknown := [name for name in scales if name not in known]:
            raise TableError(f"a scale of {unknown[0]!r}", f"expected one of the features {', '.join(known[:10])}")
        found = copy(self)
        found.columns_ = [one.rescaled(scales) for one in self.columns_]
        return found

    def heads(self, columns: Sequence[Hashable] | None = None) -> Heads:
        """Return likelihood heads: what a network of one's own needs to model this table.

        A network gives `heads.n_outputs` numbers a row; `heads.log_prob` turns them into log-probabilities of cells,
        by column, and `heads.distribution` into distributions in the table's units. For JAX and PyTorch alike.

        Parameters
        ----------
        columns : sequence of column, optional
            Those to have a head; by default all that vary.

        Examples
        --------
        >>> from evenly import LipschitzScaler, load_heart
        >>> table = load_heart()
        >>> heads = LipschitzScaler().fit(table).heads()
        >>> heads
        <heads of 14 columns: 46 outputs>
        >>> values, mask = heads.encode(table)
        >>> raw = np.tile(heads.marginal, (303, 1))           # a network gives these, row by row
        >>> bool((heads.log_prob(raw, values, mask) * heads.weights).sum(axis=1).mean() < 0.0)
        True
        >>> heads.distribution(raw)["cholesterol"].mean()[0].round(1)
        np.float64(246.7)

        A column that fit did not see has no head:

        >>> LipschitzScaler().fit(table).heads(["height"])
        Traceback (most recent call last):
        evenly.TableError: Column 'height': got no such column among ['age', ...
        """
        check_is_fitted(self, "columns_")
        return make_heads(self.columns_, columns, self.balance_weights(), CellReader(self._transformation))

    def balance_weights(self, target: float | None = None) -> dict[str, float]:
        """Return weights of the columns' log-likelihoods that make their smoothness equal, by column.

        A method without the Gamma trick leaves discrete columns as they are. A factor on a log-likelihood is a factor
        on its smoothness, so that these weights do for a model's objective what scales do for its data:
        `sum(weights[column] * log_likelihood[column])`. A weight counts a column as if it had been seen so many times:
        use it to train networks, not where the objective decides between latent classes.

        Parameters
        ----------
        target : float, optional
            The smoothness that every column has when weighted; by default `target_`.

        Returns
        -------
        dict of column to float
            1 where a column's smoothness is 0 or unknown, as that of a constant one. Ignored columns are left out.

        Examples
        --------
        >>> from evenly import LipschitzScaler, load_heart
        >>> scaler = LipschitzScaler("lip-none").fit(load_heart())
        >>> weights = scaler.balance_weights()
        >>> {name: round(weight, 2) for name, weight in weights.items() if name in ("st_depression", "sex", "thal")}
        {'sex': 4594.59, 'st_depression': 1.0, 'thal': 923.9}

        Columns have the target's smoothness when weighted:

        >>> smoothness = scaler.summary_.groupby("column")["smoothness_after"].sum()
        >>> bool(np.allclose([weights[name] * value for name, value in smoothness.items()], scaler.target_))
        True
        """
        check_is_fitted(self, "columns_")
        target = self.target_ if target is None else target
        if not (np.isfinite(target) and target > 0.0):
            raise TableError(f"target = {target!r}", "expected a positive number")
        columns = [one for one in self.columns_ if one.features]
        smoothness = np.array([sum(fit.smoothness_after for fit in one.fits) for one in columns])
        weights = balancing_weights(smoothness, target).tolist()
        return {one.column.name: weight for one, weight in zip(columns, weights, strict=True)}
