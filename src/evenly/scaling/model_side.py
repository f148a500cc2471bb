"""What a fitted scaler tells a model of its features: where to start, how to weigh columns, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly.likelihoods import Array
from evenly.scaling.fitted import FittedColumn
from evenly.scaling.parameters import Given
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
