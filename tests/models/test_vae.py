"""The VAE trained by hiding cells: it learns how columns depend on each other, and sees no validation cell."""

from __future__ import annotations

import numpy as np
import pytest
from imputers import MASKED_VAE, holed_table, make_imputer
from model_data import LAYOUT, two_columns

from evenly.models import MODELS, bbvi
from evenly.models.loop import train


@pytest.mark.more
def test_the_vae_learns_from_hidden_cells_too():
    data = two_columns()
    for masked in (False, True):
        model = MODELS["vae"](2, 32, masked)
        state = bbvi.start(model, LAYOUT, data, 0, 1e-3)
        state, _ = train(model, LAYOUT, data, state, epochs=60, batch_size=64)
        dark = data._replace(mask=data.mask & [True, False], inputs=data.inputs * [1.0, 0.0])
        yes = model.predict_natural(LAYOUT, state.shared, dark)[2][:, 0] > 0.0
        right = yes == (LAYOUT.target(data, 2) > 0.5)
        assert right[data.mask[:, 0]].mean() > (0.9 if masked else 0.5)


@pytest.mark.more
def test_columns_that_depend_a_little_on_each_other_are_learned() -> None:
    """At least half of what a straight line through all other columns would gain over the mean is gained."""
    rng = np.random.default_rng(0)
    covariance = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    whole = rng.multivariate_normal(np.zeros(6), covariance, 1500)
    hidden = rng.random(whole.shape) < 0.1
    imputer = make_imputer(epochs=150, **MASKED_VAE | {"hidden_size": 64}).fit(np.where(hidden, np.nan, whole))
    found = imputer.transform(np.where(hidden, np.nan, whole))
    left = np.sqrt(np.mean((found - whole)[hidden] ** 2)) / whole[hidden].std()
    line = np.sqrt(1.0 - covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], covariance[1:, 0]))
    assert left < 0.5 * (1.0 + line)


@pytest.mark.more
def test_validation_cells_are_not_shown_when_they_are_scored() -> None:
    imputer = make_imputer(epochs=2, **MASKED_VAE).fit(holed_table())
    ensemble, rng = imputer.ensemble_, np.random.default_rng(0)
    layout = ensemble.layout
    data = layout.empty(5, "float32")
    data.inputs[:, : len(layout.inputs)] = rng.normal(size=(5, len(layout.inputs)))
    data.mask[:] = np.arange(layout.sizes.columns) != 1
    others = data.inputs.copy()
    others[:, np.flatnonzero(np.array(layout.inputs) == 1)] = 9.0

    def predicted(**parts: np.ndarray) -> list[np.ndarray]:
        return ensemble.model.predict_natural(layout, ensemble.networks[0], data._replace(**parts))

    for one, other in zip(predicted(), predicted(inputs=others), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (predicted(mask=np.ones_like(data.mask))[0] != predicted()[0]).any()
