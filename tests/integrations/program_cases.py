"""What the tests of all libraries share: columns of every continuous likelihood, and a scaler fitted to them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from evenly import LipschitzScaler, Support, define_likelihood

N = 12
DRAWS: dict[str, Any] = {
    "normal": lambda rng: rng.normal(170.0, 8.0, N),
    "log-normal": lambda rng: rng.lognormal(3.0, 0.4, N),
    "gamma": lambda rng: rng.gamma(3.0, 20.0, N),
    "inverse-gamma": lambda rng: 30.0 / rng.gamma(4.0, 1.0, N),
    "inverse-gaussian": lambda rng: rng.wald(40.0, 90.0, N),
    "exponential": lambda rng: rng.exponential(50.0, N),
    "rayleigh": lambda rng: rng.rayleigh(25.0, N),
}
"""Cells of a column of each likelihood."""


@functools.cache
def weibull() -> Any:
    """A Weibull of shape 1.5, which Evenly does not have."""
    return define_likelihood(
        "weibull-1.5",
        support=Support(0.0),
        statistics=lambda x, xp: (x**1.5,),
        log_base=lambda x, xp: np.log(1.5) + 0.5 * xp.log(x),
        log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
        factors=lambda scale, xp: (scale**1.5,),
    )


@functools.cache
def fitted(method: str = "lip-none") -> tuple[LipschitzScaler, dict[str, Any]]:
    """A scaler of a column of each likelihood, named by it, beside normals, counts and classes; and the cells."""
    import pandas as pd

    rng = np.random.default_rng(0)
    cells = {name: draw(rng) for name, draw in DRAWS.items()} | {"weibull-1.5": 40.0 * rng.weibull(1.5, N)}
    cells["height"], cells["weight"] = rng.normal(100.0, 30.0, N), rng.normal(-5.0, 0.1, N)
    cells["visits"] = np.array([0, 2, 1, 3, 0, 5, 2, 1, 0, 4, 2, 1])
    cells["calls"] = np.array([0, 9, 1, 3, 0, 14, 2, 1, 0, 30, 2, 1])
    cells["smoker"] = np.array(["no", "yes", "no", "no"] * 3)
    cells["color"] = np.array(["blue", "red", "green", "red"] * 3)
    kinds = {
        "visits": "count",
        "calls": "count",
        "smoker": "binary",
        "color": "categorical",
        "height": "real",
        "weight": "real",
    }
    likelihoods: dict[str, Any] = {name: name for name in DRAWS} | {
        "weibull-1.5": weibull(),
        "calls": "negative-binomial",
    }
    scaler = LipschitzScaler(method, kinds=kinds, likelihoods=likelihoods, random_state=0).fit(pd.DataFrame(cells))
    return scaler, cells


def scale_of(scaler: LipschitzScaler, column: str) -> float:
    return float(next(one for one in scaler.columns_ if one.column.name == column).fits[0].scale)


def scaled(name: str, cells: Any, scale: float) -> tuple[Any, Any]:
    """What a person would write: scaled cells, and the log of the derivative."""
    if name == "log-normal":
        return cells**scale, np.log(scale) + (scale - 1.0) * np.log(cells)
    return cells * scale, np.full(np.shape(cells), np.log(scale))
