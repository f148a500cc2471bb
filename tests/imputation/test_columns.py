"""How a column is modelled: numbers far from 0 or near the largest, whole ones, and declared likelihoods."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imputers import hide, linked_table, make_imputer
from scipy import stats

from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables.frames import open_table


def nearly_infinite(n: int = 200) -> pd.DataFrame:
    """Numbers as large as they can be, on both sides of 0: the difference of two is none."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, n)
    return pd.DataFrame({"x": 1.7e308 * np.append(x[:-2], [-1.0, 1.0]), "y": x + 0.1 * rng.normal(size=n)})


@pytest.mark.parametrize("method", ["lip-none", "max-none", "iqr-none"])
def test_numbers_near_the_largest_are_standardized_and_come_back_within_the_column(method):
    table = nearly_infinite()
    fitted = LipschitzScaler("lip-none").fit(table).columns_[0]
    values = fitted.encode(open_table(table).columns[0])[0]
    spec = describe(fitted, values, binned=True, method=method)
    assert spec.scale > 0.0
    layout = lay_out([spec])
    data = EncodedTable((EncodedColumn(spec, values),), layout).data(seed=None)
    standard = (values / 1e308 - (values / 1e308).mean()) / (values / 1e308).std()
    np.testing.assert_allclose(data.inputs[:, 0], standard, rtol=1e-5)
    np.testing.assert_allclose(layout.target(data, 0) / (spec.scale * spec.std), standard, rtol=1e-5)
    far = np.array([[-20.0], [0.0], [20.0]]) * spec.scale * spec.std
    found = spec.predict([far, np.zeros((3, len(spec.bins)))])
    for one in (found, found.mix([found] * 2)):
        assert (np.abs(one.mean()) <= 1.7e308).all()
        assert (np.diff(one.mean()) > 0.0).all()
        assert np.isfinite(one.std).all()


@pytest.mark.more
def test_numbers_near_the_largest_are_imputed_without_a_warning():
    holed, _ = hide(nearly_infinite())
    imputer = make_imputer(epochs=2, hidden_size=8, n_networks=2, random_state=0).fit(holed)
    for full in (imputer.transform(holed), *imputer.interval(holed), *imputer.sample(holed, 1)):
        assert (full["x"].abs() <= 1.7e308).all()


@pytest.mark.more
def test_columns_far_from_zero_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = pd.DataFrame({"year": 1e9 + x, "y": x + 0.1 * rng.normal(size=400)})
    holed, hidden = hide(table)
    full = make_imputer(epochs=60, hidden_size=32, n_networks=1, random_state=0).fit_transform(holed)
    cells = hidden[:, 0] & ~hidden[:, 1]
    assert np.corrcoef(full["year"][cells] - 1e9, table["year"][cells] - 1e9)[0, 1] > 0.9


@pytest.mark.more
def test_whole_numbers_in_float_columns_get_their_mean_rounded_unless_asked():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    counts = rng.poisson(np.exp(1.0 + 0.5 * x)).astype(float)
    counts[:60] = np.nan
    floats = pd.DataFrame({"x": x, "n": counts})
    settings = {"epochs": 5, "hidden_size": 16, "n_networks": 1, "random_state": 0}
    full = make_imputer(precision="full", **settings).fit_transform(floats)
    assert (full["n"] != full["n"].round())[:60].any()
    rounded = make_imputer(**settings).fit_transform(floats)
    pd.testing.assert_frame_equal(rounded, full.round({"n": 0}))
    integers = make_imputer(**settings).fit_transform(floats.astype({"n": "Int64"}))
    assert integers["n"].dtype == "Int64"
    assert (integers["n"][:60] - full["n"][:60].round()).abs().max() <= 1
    median = make_imputer(estimate="median", **settings).fit_transform(floats)
    assert median["n"].eq(median["n"].round()).all()


@pytest.mark.more
def test_a_declared_likelihood_is_used():
    holed, _ = hide(linked_table(200))
    imputer = make_imputer(likelihoods={"x": "normal"}, epochs=1, hidden_size=8, random_state=0).fit(holed)
    assert "x" not in imputer.bins_
    assert set(imputer.distribution(holed)["x"].parameters) == {"mean", "std"}
    assert "double" in imputer.bins_
    gone, usual = holed["x"].isna(), imputer.distribution(holed)["x"].parameters
    law = stats.norm(usual["mean"][gone], usual["std"][gone])
    for level in (0.05, 0.99):  # narrow ones must not change places, wide ones reach as far as they should
        for end, at in zip(imputer.interval(holed, level), (0.5 - 0.5 * level, 0.5 + 0.5 * level), strict=True):
            expected = np.clip(law.ppf(at), holed["x"].min(), holed["x"].max())
            np.testing.assert_allclose(end["x"][gone], expected, rtol=1e-9)
