"""The models of `benchmarks/programs.py`, their data, and the priors that are carried along.

Each model is written once, as a user would, for cells in the table's units. A sample site of a parameter asks `Carry`
for its prior: that of raw parameters, or, for a standardized program, the same one in scaled units.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd

from evenly import LipschitzScaler, load_heart
from evenly.integrations.numpyro import rescale_prior, standardize

METHODS = {"raw": None, "std": "std-none", "lip": "lip-none"}
HEART = {
    "age": "normal",
    "rest_bp": "normal",
    "cholesterol": "log-normal",
    "max_hr": "gamma",
    "st_depression": "exponential",
}
ADULT = {"education_num": "normal", "hours_per_week": "normal", "age": "gamma", "fnlwgt": "log-normal"}
"""Columns and their likelihoods. Without gains of capital: nine of ten are zero, which no likelihood here suits."""
OUTCOMES = ("rest_bp", "cholesterol", "max_hr", "st_depression")
ADULT_ROWS = 1000
CELLS = dict[str, Any]
"""Arrays of cells by column; NaN where a cell is hidden."""


@dataclass
class Carry:
    """Samples parameters by priors that are those of raw parameters, carried along; remembers how to undo it."""

    scaler: LipschitzScaler | None
    factors: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def __call__(self, name: str, prior: Any, column: str, parameter: str, log: bool = False) -> Any:
        if self.scaler is not None:
            scale = next(one for one in self.scaler.columns_ if one.column.name == column).fits[0].scale
            power = {"rate": -1.0, "shape": 0.0}.get(parameter, 1.0)
            self.factors[name] = scale**power, log
            prior = rescale_prior(prior, self.scaler, column, parameter, log=log)
        return numpyro.sample(name, prior)

    def scaled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters in scaled units from raw ones."""
        moved = dict(values)
        for name, (factor, log) in self.factors.items():
            moved[name] = values[name] + np.log(factor) if log else values[name] * factor
        return moved

    def raw(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters in the table's units from scaled ones."""
        moved = dict(values)
        for name, (factor, log) in self.factors.items():
            moved[name] = values[name] - np.log(factor) if log else values[name] / factor
        return moved


@dataclass(frozen=True)
class Linear:
    """What the location of an outcome is linear in."""

    known: Any = None
    """Covariates, along the last axis."""
    latent: Any = None
    """Latent variables, along the last axis; their coefficients are called loadings."""
    positive: bool = False
    """Whether loadings are positive, so that the sign of a latent variable is known."""


def observe(carry: Carry, cells: CELLS, column: str, family: str, of: Linear) -> None:
    """Give one column a likelihood whose location is linear: of the mean, of log x, or of the log of the rate."""
    x = cells[column]
    seen = ~jnp.isnan(x)
    width, parameter = {"normal": (30.0, "mean"), "log-normal": (0.5, "log_mean")}.get(family, (0.5, None))

    def coefficients(name: str, n: int, positive: bool) -> Any:
        prior = (dist.HalfNormal(width) if positive else dist.Normal(0.0, width)).expand([n]).to_event(1)
        return carry(name, prior, column, parameter) if parameter else numpyro.sample(name, prior)

    linear = 0.0
    if of.known is not None:
        linear = of.known @ coefficients(f"slope_{column}", of.known.shape[-1], False)
    if of.latent is not None:
        linear = linear + of.latent @ coefficients(f"loading_{column}", of.latent.shape[-1], of.positive)
    if family == "normal":
        level = carry(f"level_{column}", dist.Normal(100.0, 100.0), column, "mean")
        fn: Any = dist.Normal(level + linear, carry(f"spread_{column}", dist.HalfNormal(30.0), column, "std"))
    elif family == "log-normal":
        level = carry(f"level_{column}", dist.Normal(5.0, 5.0), column, "log_mean")
        fn = dist.LogNormal(level + linear, carry(f"spread_{column}", dist.HalfNormal(1.0), column, "log_std"))
    else:
        rate = jnp.exp(carry(f"level_{column}", dist.Normal(-3.0, 3.0), column, "rate", log=True) + linear)
        if family == "exponential":
            fn = dist.Exponential(rate)
        else:
            shape = numpyro.sample(f"shape_{column}", dist.LogNormal(2.0, 1.5))
            fn = dist.Gamma(shape, shape * rate)
    numpyro.sample(column, fn.expand(x.shape).mask(seen), obs=x)


# --- the models -------------------------------------------------------------------------------------------------------


def regression(carry: Carry, cells: CELLS) -> None:
    """Four outcomes of different kinds by age and sex; nothing is shared."""
    known = jnp.stack([(cells["age"] - 54.0) / 9.0, cells["sex"] - 0.5], axis=-1)
    for column in OUTCOMES:
        observe(carry, cells, column, HEART[column], Linear(known))


def hierarchical(sign: str | None) -> Callable[[Carry, CELLS], None]:
    """Return the model of four outcomes of different kinds by age and a severity, which types of chest pain share.

    The loading of one outcome may be positive, so that the severity has a sign.
    """

    def model(carry: Carry, cells: CELLS) -> None:
        with numpyro.plate("types", 4):
            severity = numpyro.sample("severity", dist.Normal(0.0, 1.0))
        age = (cells["age"] - 54.0)[:, None] / 9.0
        for column in OUTCOMES:
            latent = severity[cells["chest_pain"]][:, None]
            observe(carry, cells, column, HEART[column], Linear(age, latent, column == sign))

    return model


def varying(carry: Carry, cells: CELLS) -> None:
    """Four outcomes of different kinds, each with levels of its own by type of chest pain around a common one."""
    age = (cells["age"] - 54.0)[:, None] / 9.0
    for column in OUTCOMES:
        level = numpyro.sample(f"of_type_{column}", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        observe(carry, cells, column, HEART[column], Linear(age, level[cells["chest_pain"]][:, None], True))


def smooth(carry: Carry, cells: CELLS) -> None:
    """Four outcomes of different kinds by a random walk along age, which they share."""
    steps = numpyro.sample("steps", dist.Normal(0.0, 1.0).expand([12]).to_event(1))
    walk = jnp.cumsum(steps) / np.sqrt(12.0)
    decade = jnp.clip((cells["age"] - 29.0) // 4.0, 0, 11).astype(int)
    for column in OUTCOMES:
        observe(carry, cells, column, HEART[column], Linear(None, walk[decade][:, None]))


def factor(families: Mapping[str, str], n_latent: int) -> Callable[[Carry, CELLS], None]:
    """Return the model of columns by latent variables of each row."""

    def model(carry: Carry, cells: CELLS) -> None:
        latent = numpyro.sample("latent", dist.Normal(0.0, 1.0).expand([len(cells["age"]), n_latent]).to_event(2))
        for column, family in families.items():
            observe(carry, cells, column, family, Linear(None, latent))

    return model


@dataclass(frozen=True)
class Model:
    """A model and the columns that it observes."""

    write: Callable[[Carry, CELLS], None]
    families: Mapping[str, str]
    adult: bool = False


def _some(families: Mapping[str, str], columns: tuple[str, ...]) -> dict[str, str]:
    return {name: families[name] for name in columns}


MODELS = {
    "regression": Model(regression, _some(HEART, OUTCOMES)),
    "hierarchical": Model(hierarchical("st_depression"), _some(HEART, OUTCOMES)),
    "shared": Model(hierarchical(None), _some(HEART, OUTCOMES)),
    "varying": Model(varying, _some(HEART, OUTCOMES)),
    "smooth": Model(smooth, _some(HEART, OUTCOMES)),
    "factor": Model(factor(HEART, 1), HEART),
    "heart-factors": Model(factor(HEART, 2), HEART),
    "adult-factors": Model(factor(ADULT, 2), ADULT, adult=True),
}


# --- data -------------------------------------------------------------------------------------------------------------


@cache
def _heart() -> CELLS:
    heart = load_heart()
    cells: CELLS = {name: np.asarray(heart[name], np.float64) for name in HEART}
    cells["st_depression"] = cells["st_depression"] + 0.1  # an exponential of NumPyro has no density at 0
    cells["chest_pain"] = np.unique(np.asarray(heart["chest_pain"]).astype(str), return_inverse=True)[1]
    cells["sex"] = np.asarray(np.asarray(heart["sex"]).astype(str) == "male", np.float64)
    return cells


@cache
def _adult() -> CELLS:
    folder = Path(os.environ.get("EVENLY_DATA") or Path(__file__).parents[2] / "shared" / "uci")
    table = pd.read_csv(folder / "adult" / "data.csv", usecols=list(ADULT), nrows=ADULT_ROWS)
    return {name: table[name].to_numpy(np.float64) for name in ADULT}


def load(name: str, n_rows: int | None = None) -> CELLS:
    """Return the cells of a model: those of the first rows, or all."""
    model = MODELS[name]
    return {column: cells[:n_rows] for column, cells in (_adult() if model.adult else _heart()).items()}


def split(name: str, seed: int) -> tuple[CELLS, CELLS, CELLS]:
    """Return cells for training, validation and test: 10 % of the cells of each column for each of the latter."""
    cells, families = load(name), MODELS[name].families
    rng = np.random.default_rng(seed)
    parts = rng.choice(3, size=(len(families), len(cells["age"])), p=[0.8, 0.1, 0.1])
    hidden: list[CELLS] = [dict(cells) for _ in range(3)]
    for part, own in enumerate(hidden):
        for column, where in zip(families, parts, strict=True):
            own[column] = np.where(where == part, cells[column], np.nan)
    return hidden[0], hidden[1], hidden[2]


def program(name: str, method: str, cells: CELLS) -> tuple[Callable[..., Any], Carry]:
    """Return a program, whose scaler is fitted to these cells, and what carries its priors along."""
    model = MODELS[name]
    if METHODS[method] is None:
        raw = Carry(None)
        return (lambda cells: model.write(raw, cells)), raw
    table = pd.DataFrame({column: cells[column] for column in model.families})
    scaler = LipschitzScaler(METHODS[method] or "", likelihoods=dict(model.families)).fit(table)
    carry = Carry(scaler)
    sites = {column: column for column in model.families}
    return standardize(lambda cells: model.write(carry, cells), scaler, sites, missing="mask"), carry
