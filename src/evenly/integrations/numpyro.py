"""NumPyro: a model written by hand runs with the parameters of its observed sites in scaled units."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenly._support import EvenlyError, require
from evenly.integrations.explaining import Explanation
from evenly.integrations.moving import Library, Missing, check_missing_option, whole_name
from evenly.integrations.numpyro_distributions import (
    GammaTrick,
    LikelihoodDistribution,
    Multiply,
    ScaleLaw,
    from_likelihood,
)
from evenly.integrations.peeling import peel
from evenly.integrations.priors import prior_factor
from evenly.integrations.programs import OneSite, Program
from evenly.integrations.sites import Columns, Site, read_sites
from evenly.scaling import LipschitzScaler

numpyro = require("numpyro", "numpyro")
jax, jnp = require("jax", "numpyro"), require("jax.numpy", "numpyro")
dist = require("numpyro.distributions", "numpyro")
constraints, transforms = dist.constraints, dist.transforms
Messenger: Any = require("numpyro.primitives", "numpyro").Messenger
Reparam: Any = require("numpyro.infer.reparam", "numpyro").Reparam

__all__ = ["Explanation", "LipschitzReparam", "Program", "from_likelihood", "rescale_prior", "standardize"]


def standardize(
    model: Callable[..., Any],
    scaler: LipschitzScaler,
    sites: Mapping[str, Columns],
    *,
    tricks: bool = False,
    missing: Missing = "error",
    skip: Sequence[str] = (),
) -> Program:
    """Return a model with the parameters of its observed sites in scaled units.

    The parameters that the model gives a site are read as those of the scaled column: the site's distribution becomes
    the same one with its parameters unscaled. Observations are given in the table's units, and draws and
    log-likelihoods come back in them. Priors of these parameters now live in scaled units; `rescale_prior` carries one
    over.

    Parameters
    ----------
    model : callable
        Any NumPyro model. The result is called as it is, by SVI, autoguides, NUTS, `Predictive` and the like.
    scaler : LipschitzScaler
        Fitted to the table that the observations are from.
    sites : mapping of site to column
        Or, for a site whose last axis holds several columns, to their list.
    tricks : bool
        Whether a Poisson, Bernoulli or categorical site is replaced by the gammas of the Gamma trick, which the scaler
        must have; else such sites are left as they are.
    missing : {"error", "mask"}
        What becomes of observations that are NaN where no mask hides them: refused, or masked cell by cell.
    skip : list of site
        Sites of the mapping that are left as they are.

    Examples
    --------
    Needs `pip install "evenly[numpyro]"`.

    >>> import numpyro, numpyro.distributions as dist
    >>> from numpyro.infer.util import log_density
    >>> from evenly.integrations.numpyro import standardize
    >>> incomes = np.array([12000.0, 30000.0, 54000.0])
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit(incomes[:, None])
    >>> def model(income):
    ...     mean = numpyro.sample("mean", dist.Normal(2.0, 1.0))  # of incomes in scaled units
    ...     numpyro.sample("income", dist.Normal(mean, 1.0), obs=income)
    >>> program = standardize(model, scaler, {"income": "x0"})
    >>> raw, standardized = (log_density(one, (incomes,), {}, {"mean": 2.0})[0] for one in (model, program))
    >>> bool(raw < -1e8), bool(standardized > -1e2)
    (True, True)

    A model without an observed site of that name runs as it is, with a warning.
    """
    read = read_sites(scaler, sites, tricks=tricks, skip=skip)
    return Program(model, read, _Sites, check_missing_option(missing), scaler)


class _Sites(Messenger):  # type: ignore[misc]  # a class of NumPyro, which has no types
    """Replaces the distributions of sites, also of those within `scan` and `cond`, whose handlers see them too late."""

    def __init__(self, sites: Mapping[str, Site], missing: Missing, met: set[str], inside: set[str] | None = None):
        super().__init__(None)
        self.sites, self.missing, self.met = sites, missing, met
        self.done: set[str] = set()
        """Sites that were replaced within a loop, which come by again behind it."""
        self.inside = inside

    def process_message(self, msg: dict[str, Any]) -> None:
        """Change the distribution of a site, or the handlers of a loop's body."""
        if msg["type"] == "control_flow":
            msg["args"] = tuple(self._within(one) if callable(one) else one for one in msg["args"])
        if msg["type"] != "sample":
            return
        name, whole = msg["name"], whole_name(msg["name"], self.sites)
        if self.inside is not None:
            self.inside.add(name)
        elif name in self.done:
            return
        if whole is not None:
            self.met.add(whole)
            msg["fn"] = NUMPYRO.in_table_units(self.sites[whole], msg["fn"], msg["value"], self.missing)

    def _within(self, body: Callable[..., Any]) -> Callable[..., Any]:
        done = self.done if self.inside is None else self.inside

        @functools.wraps(body)
        def run(*args: Any) -> Any:
            with _Sites(self.sites, self.missing, self.met, done):
                return body(*args)

        return run


def _numbers(x: Any) -> Any:
    """Return an array as NumPy has it; None inside a compiled function."""
    return None if isinstance(x, jax.core.Tracer) else np.asarray(x)


def _shifted(moved: Any, shift: Any) -> Any:
    """Subtract the shift of columns."""
    back = transforms.AffineTransform(-np.asarray(shift), 1.0, domain=moved.support)
    return dist.TransformedDistribution(moved, back)


NUMPYRO = Library(
    asarray=jnp.asarray,
    numbers=_numbers,
    mask=lambda core, mask: core.mask(mask),
    by_likelihood=LikelihoodDistribution,
    by_law=lambda core, site: dist.TransformedDistribution(core, ScaleLaw(site.family, site.scale, core.support)),
    gamma_trick=lambda site, natural: GammaTrick(site, jnp.asarray(natural)),
    shifted=_shifted,
)


# --- beside other handlers --------------------------------------------------------------------------------------------


class LipschitzReparam(OneSite, Reparam):  # type: ignore[misc]  # as above
    """Standardize one site by `numpyro.handlers.reparam`, beside reparametrizations of others.

    Parameters
    ----------
    scaler : LipschitzScaler
        Fitted.
    column : column or list of columns
        What the site observes.
    tricks, missing
        As for `standardize`. Sites within `scan` need that.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from numpyro.infer.reparam import LocScaleReparam
    >>> from evenly.integrations.numpyro import LipschitzReparam
    >>> def model(x=None):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     return numpyro.sample("x", dist.Normal(mean, 1e-3), obs=x)
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit([[300.0], [500.0], [700.0]])
    >>> config = {"mean": LocScaleReparam(0.0), "x": LipschitzReparam(scaler, "x0")}
    >>> program = numpyro.handlers.reparam(model, config=config)
    >>> trace = numpyro.handlers.trace(numpyro.handlers.seed(program, 0)).get_trace()
    >>> bool(abs(trace["x"]["value"] / trace["mean"]["value"] / 163.3 - 1.0) < 0.05)
    True
    """

    def __call__(self, name: str, fn: Any, obs: Any) -> tuple[Any, Any]:
        return NUMPYRO.in_table_units(self.site(name), fn, obs, self.missing), obs


def rescale_prior(
    distribution: Any, scaler: LipschitzScaler, column: Columns, parameter: str, *, log: bool = False
) -> Any:
    """Carry a prior in the table's units along: the prior of the same parameter of the scaled column.

    With all priors carried along, the posterior of a standardized program is that of the raw one, in scaled units.

    Parameters
    ----------
    distribution : Distribution
        The prior of a parameter, or of what adds up to it, such as coefficients and intercept of a mean.
    scaler, column
        As for `standardize`; a list of columns along the last axis.
    parameter : str
        Its name in the likelihood (`mean`) or in the distribution (`loc`).
    log : bool
        Whether the prior is that of the parameter's logarithm: it is shifted then, not multiplied. Of a sum that is a
        logarithm, only the intercept's prior changes.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from evenly.integrations.numpyro import rescale_prior
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit([[300.0], [500.0], [700.0]])
    >>> prior = rescale_prior(dist.Normal(500.0, 100.0), scaler, "x0", "mean")
    >>> bool(abs(prior.log_prob(500.0 / 163.299) - dist.Normal(0.0, 100.0 / 163.299).log_prob(0.0)) < 1e-3)
    True

    A parameter that no scale changes, such as the shape of a gamma, keeps its prior as it is.
    """
    factor = prior_factor(scaler, column, parameter)
    if np.all(factor == 1.0):
        return distribution
    peeled = peel(distribution)
    domain = peeled.core.support
    loc, scale = (np.log(factor), np.ones_like(factor)) if log else (0.0, factor)
    if log or isinstance(domain, (type(constraints.greater_than(0.0)), type(constraints.interval(0.0, 1.0)))):
        move: Any = transforms.AffineTransform(loc, scale, domain=domain)
    else:
        move = Multiply(scale, domain)
    try:
        move.codomain  # noqa: B018  (whether there is one is the question)
    except NotImplementedError:
        raise EvenlyError(f"a prior on {domain} cannot be rescaled: it is no interval of numbers.") from None
    return peeled.wrap(dist.TransformedDistribution(peeled.core, move), NUMPYRO.mask)
