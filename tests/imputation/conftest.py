"""Fitted imputers that several files share."""

from __future__ import annotations

from functools import cache

import pytest
from imputers import EACH, SMALL, TABLE, make_imputer

from evenly import Imputer
from evenly.models import SPECS


@pytest.fixture(scope="module")
def small_chunks():
    """Three chunks of rows in most tables, and less to compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.imputation.ensemble.CHUNK", 32)
        patch.setattr("evenly.imputation.ensemble.SMALL_CHUNK", 32)
        yield


@cache
def fit_small(model: str) -> Imputer:
    return make_imputer(model, **SMALL).fit(TABLE)


@pytest.fixture(scope="module", params=EACH)
def fitted(request, small_chunks) -> Imputer:
    """A small imputer of each model, fitted once for all files."""
    return fit_small(request.param)


@pytest.fixture(scope="module", params=[one for one in EACH if not SPECS[one.values[0]].bins_numbers])
def explaining(request, small_chunks) -> Imputer:
    """One of each model that explains numbers by their own likelihood; those in bins are in `test_predictor.py`."""
    return fit_small(request.param)
