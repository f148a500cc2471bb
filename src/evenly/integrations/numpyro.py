"""NumPyro: a model written by hand runs with the parameters of its observed sites in scaled units."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evenly._support import EvenlyError, TableError, require
from evenly.integrations.explaining import Explanation
from evenly.integrations.numpyro_distributions import (
    GammaTrick,
    LikelihoodDistribution,
    Multiply,
    ScaleLaw,
    from_likelihood,
)
from evenly.integrations.peeling import both, is_discrete, peel, seen_cells
from evenly.integrations.priors import prior_factor
from evenly.integrations.programs import Program
from evenly.integrations.sites import Columns, Site, check_shapes, family_of, read_sites
from evenly.integrations.tricks import Gammas
from evenly.likelihoods import Array
from evenly.scaling import LipschitzScaler

numpyro = require("numpyro", "numpyro")
jax, jnp = require("jax", "numpyro"), require("jax.numpy", "numpyro")
dist = require("numpyro.distributions", "numpyro")
constraints, transforms = dist.constraints, dist.transforms
Messenger: Any = require("numpyro.primitives", "numpyro").Messenger
Reparam: Any = require("numpyro.infer.reparam", "numpyro").Reparam

__all__ = ["Explanation", "LipschitzReparam", "Program", "from_likelihood", "rescale_prior", "standardize"]

Missing = Literal["error", "mask"]


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


def check_missing_option(missing: Missing) -> Missing:
    """Refuse another word."""
    if missing not in ("error", "mask"):
        raise TableError(f"missing={missing!r}", "expected 'error' or 'mask'")
    return missing


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
        name, whole = msg["name"], _whole_name(msg["name"], self.sites)
        if self.inside is not None:
            self.inside.add(name)
        elif name in self.done:
            return
        if whole is not None:
            self.met.add(whole)
            msg["fn"] = in_table_units(self.sites[whole], msg["fn"], msg["value"], self.missing)

    def _within(self, body: Callable[..., Any]) -> Callable[..., Any]:
        done = self.done if self.inside is None else self.inside

        @functools.wraps(body)
        def run(*args: Any) -> Any:
            with _Sites(self.sites, self.missing, self.met, done):
                return body(*args)

        return run


def _whole_name(name: str, sites: Mapping[str, Site]) -> str | None:
    """Return the site that a name belongs to: `obs_mask` splits a site into two."""
    for end in ("", "_observed", "_unobserved"):
        if name.endswith(end) and name.removesuffix(end) in sites:
            return name.removesuffix(end)
    return None


def in_table_units(site: Site, fn: Any, value: Array | None, missing: Missing) -> Any:
    """Return the distribution of a site in the table's units, from its own, which is one of scaled units."""
    peeled = peel(fn)
    kind = type(peeled.core).__name__
    if site.is_left:
        if not is_discrete(kind):
            expected = f"its {site.columns_said} was declared {site.family.name}"
            raise site.error(f"the distribution {kind}", expected, "with the Gamma trick, pass tricks=True")
        return fn
    if site.is_tricked:
        core: Any = GammaTrick(site, Gammas(site).natural(peeled.core))
        if core.batch_shape != peeled.core.batch_shape and tuple(fn.batch_shape):  # an axis of classes
            peeled = peel(_without_classes(fn, core))
        wrapped = peeled
    else:
        core, wrapped = None, peeled
        check_shapes(site, tuple(fn.shape()), None if value is None else tuple(np.shape(value)))
        core = _move(site, peeled.core)
    if value is None:
        return wrapped.wrap(core)
    seen = seen_cells(site, wrapped, jnp.asarray(value), missing, _numbers)
    if seen is not True:
        wrapped = type(wrapped)(wrapped.core, wrapped.batch_shape, wrapped.n_event, both(wrapped.mask, seen))
    return wrapped.wrap(core)


def _without_classes(fn: Any, core: Any) -> Any:
    """Return a distribution of the shape of `fn` without its last axis, that of classes."""
    return core.expand(tuple(fn.shape())[:-1])


def _numbers(x: Any) -> Any:
    """Return an array as NumPy has it; None inside a compiled function."""
    return None if isinstance(x, jax.core.Tracer) else np.asarray(x)


def _move(site: Site, core: Any) -> Any:
    """Return a distribution without wrappers in the table's units."""
    kind = type(core).__name__
    if kind == "MixtureSameFamily":
        inner = peel(core.component_distribution)
        wide = site if inner.n_event + inner.core.event_dim else site.widened()
        return type(core)(core.mixing_distribution, inner.wrap(_move(wide, inner.core)))
    if isinstance(core, LikelihoodDistribution):
        if core.likelihood is not site.family:
            expected = f"its {site.columns_said} was scaled for the {site.family.name} likelihood"
            raise site.error(f"the {core.likelihood.name} likelihood", expected)
        scale = site.scale_like(core.natural)
        moved: Any = LikelihoodDistribution(core.likelihood, core.likelihood.unscale_natural(core.natural, scale))
    else:
        family = family_of(site, kind)
        if family is None:
            law = ScaleLaw(site.family, site.scale, core.support)
            moved = dist.TransformedDistribution(core, law)
        else:
            moved = type(core)(**family.unscale(core, site), validate_args=core._validate_args)
    if not np.any(site.shift):
        return moved
    back = transforms.AffineTransform(-np.asarray(site.shift), 1.0, domain=moved.support)
    return dist.TransformedDistribution(moved, back)


# --- beside other handlers --------------------------------------------------------------------------------------------


class LipschitzReparam(Reparam):  # type: ignore[misc]  # as above
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

    def __init__(
        self, scaler: LipschitzScaler, column: Columns, *, tricks: bool = False, missing: Missing = "error"
    ) -> None:
        self._given = scaler, column, tricks
        read_sites(scaler, {"column": column}, tricks=tricks)
        self.missing = check_missing_option(missing)

    def __call__(self, name: str, fn: Any, obs: Any) -> tuple[Any, Any]:
        scaler, column, tricks = self._given
        site = read_sites(scaler, {name: column}, tricks=tricks)[name]
        return in_table_units(site, fn, obs, self.missing), obs


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
    return peeled.wrap(dist.TransformedDistribution(peeled.core, move))
