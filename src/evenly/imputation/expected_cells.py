"""What networks expect of missing cells, as features for experts that read complete rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenly.imputation.encoding import EncodedTable
from evenly.imputation.gaussian import feature_owners, gaussian_features
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Naturals = Sequence[npt.NDArray[np.floating]]
"""The natural parameters of each feature, for all rows."""


def fill_expected(table: EncodedTable, wanted: Flags, naturals: Sequence[Naturals]) -> Floats:
    """Return the features of the Gaussian expert, those of wanted cells as networks expect them: rows x features.

    Parameters
    ----------
    wanted : array
        Which cells to fill: rows x columns. Other missing cells stay NaN.
    naturals : sequence
        What each network predicts of the rows.
    """
    found, owners = gaussian_features(table), feature_owners(table)
    for j, (spec, of_column) in enumerate(zip(table.specs, table.features, strict=True)):
        rows = np.flatnonzero(wanted[:, j])
        if len(rows):
            by_network = ([np.asarray(of[rows], np.float64) for of in one[of_column]] for one in naturals)
            first, *others = (spec.predict(one) for one in by_network)
            found[np.ix_(rows, owners == j)] = spec.expected_features(first.mix(others))
    return found


def blend(filled: Floats, means: Floats, weights: Floats) -> Floats:
    """Return filled features, moved by weights towards other means where there are any.

    Examples
    --------
    >>> blend(np.array([[1.0, 2.0]]), np.array([[3.0, np.nan]]), np.array([[0.5, 0.5]]))
    array([[2., 2.]])
    """
    return np.where((weights > 0.0) & ~np.isnan(means), filled + weights * (means - filled), filled)
