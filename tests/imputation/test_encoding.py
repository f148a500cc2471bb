"""A table as a model sees it: what an encoder is shown, and how columns are weighted."""

from __future__ import annotations

import numpy as np
import pytest
from imputers import TABLE, hide, linked_table

from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.scaling.methods import METHODS
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables.frames import open_table


def test_an_encoder_sees_the_same_under_every_method():
    found = []
    for method in METHODS:
        columns = LipschitzScaler(method, random_state=0).fit(TABLE).columns_
        values = [one.encode(cells)[0] for one, cells in zip(columns, open_table(TABLE).columns, strict=True)]
        specs = [describe(one, own) for one, own in zip(columns, values, strict=True)]
        found.append(EncodedTable(tuple(map(EncodedColumn, specs, values)), lay_out(specs)).data(seed=0).inputs)
    assert len({inputs.tobytes() for inputs in found}) == 1
    inputs = found[0]
    assert inputs.shape == (len(TABLE), 1 + 1 + 1 + 1 + 3 + 3)
    for j, name in enumerate([*list(TABLE)[:4], *["class"] * 3, *["grade"] * 3]):
        seen = TABLE[name].notna().to_numpy()
        assert (inputs[~seen, j] == 0.0).all()
        assert inputs[seen, j].mean() == pytest.approx(0.0, abs=1e-6)
        assert inputs[seen, j].std() == pytest.approx(1.0, abs=1e-6)


def test_weighted_columns_are_equally_smooth():
    holed, _ = hide(linked_table())
    scaler = LipschitzScaler("lip-none", random_state=0).fit(holed)
    opened = open_table(holed)
    values = [one.encode(cells)[0] for one, cells in zip(scaler.columns_, opened.columns, strict=True)]
    specs = [describe(one, own, binned=True) for one, own in zip(scaler.columns_, values, strict=True)]
    layout = lay_out(specs)
    weights = EncodedTable(tuple(map(EncodedColumn, specs, values)), layout).balancing_weights()
    naturals = [one for spec in specs for one in spec.marginal_naturals]
    smoothness = np.zeros(layout.n_columns)
    for family, column, natural in zip(layout.likelihoods, layout.columns, naturals, strict=True):
        # By finite differences of the log-partition, not by `fisher`.
        at, step, n = np.asarray(natural, np.float64), 1e-3, len(natural)
        for i in range(n):
            for j in range(n):
                e, f = np.eye(n)[i] * step, np.eye(n)[j] * step
                a = [float(family.log_partition(at + u + v)) for u, v in ((e, f), (e, -f), (-e, f), (-e, -f))]
                smoothness[column] += abs(a[0] - a[1] - a[2] + a[3]) / (4.0 * step * step)
    weighted = weights * smoothness
    inside = (weights > 0.25) & (weights < 4.0)
    assert inside.sum() >= 3
    np.testing.assert_allclose(weighted[inside], weighted[inside][0], rtol=1e-3)
