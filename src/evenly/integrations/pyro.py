"""Pyro: a model written by hand runs with the parameters of its observed sites in scaled units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenly._support import EvenlyError, require
from evenly.integrations.explaining import Explanation
from evenly.integrations.moving import Library, Missing, check_missing_option, whole_name
from evenly.integrations.peeling import peel
from evenly.integrations.priors import prior_factor
from evenly.integrations.programs import OneSite, Program
from evenly.integrations.pyro_distributions import (
    Affine,
    Filled,
    GammaTrick,
    LikelihoodDistribution,
    ScaleLaw,
    from_likelihood,
    moved_support,
)
from evenly.integrations.sites import Columns, Site, read_sites
from evenly.scaling import LipschitzScaler

require("pyro", "pyro")
torch, dist = require("torch", "pyro"), require("pyro.distributions", "pyro")
Messenger: Any = require("pyro.poutine.messenger", "pyro").Messenger
Reparam: Any = require("pyro.infer.reparam.reparam", "pyro").Reparam

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

    What it means, and what parameters do, is as for `evenly.integrations.numpyro.standardize`.

    Parameters
    ----------
    model : callable
        Any Pyro model, also a module. The result is called as it is, by SVI, autoguides, NUTS, `Predictive` and the
        like.
    scaler : LipschitzScaler
        Fitted to the table that the observations are from.
    sites : mapping of site to column
        Or, for a site whose last axis holds several columns, to their list. A loop that names its sites one by one
        needs each of them: `{f"x_{t}": "income" for t in range(10)}`.
    tricks : bool
        Whether a Poisson, Bernoulli or categorical site is replaced by the gammas of the Gamma trick, which the scaler
        must have; else such sites are left as they are.
    missing : {"error", "mask"}
        What becomes of observations that are NaN where no mask hides them: refused, or masked cell by cell.
    skip : list of site
        Sites of the mapping that are left as they are.

    Examples
    --------
    Needs `pip install "evenly[pyro]"`.

    >>> import pyro, pyro.distributions as dist, torch
    >>> from evenly.integrations.pyro import standardize
    >>> incomes = torch.tensor([12000.0, 30000.0, 54000.0])
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit(incomes.numpy()[:, None])
    >>> def model(income):
    ...     pyro.sample("income", dist.Normal(2.0, 1.0).expand([3]).to_event(1), obs=income)  # in scaled units
    >>> program = standardize(model, scaler, {"income": "x0"})
    >>> traces = [pyro.poutine.trace(one).get_trace(incomes) for one in (model, program)]
    >>> raw, standardized = (one.log_prob_sum() for one in traces)
    >>> bool(raw < -1e8), bool(standardized > -1e2)
    (True, True)

    A model without an observed site of that name runs as it is, with a warning.
    """
    read = read_sites(scaler, sites, tricks=tricks, skip=skip)
    return Program(model, read, _Sites, check_missing_option(missing), scaler)


class _Sites(Messenger):  # type: ignore[misc]  # a class of Pyro, which is not looked into
    """Replaces the distributions of sites."""

    def __init__(self, sites: Mapping[str, Site], missing: Missing, met: set[str]) -> None:
        super().__init__()
        self.sites, self.missing, self.met = sites, missing, met

    def _pyro_sample(self, msg: dict[str, Any]) -> None:
        whole = whole_name(msg["name"], self.sites)
        if whole is not None and not msg["infer"].get("_deterministic"):  # as the two parts of `obs_mask` put together
            self.met.add(whole)
            mask = True if msg["mask"] is None else msg["mask"]
            msg["fn"] = PYRO.in_table_units(self.sites[whole], msg["fn"], msg["value"], self.missing, mask)


def _numbers(x: Any) -> Any:
    """Return a tensor or a bool as NumPy has it."""
    return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


PYRO = Library(
    asarray=torch.as_tensor,
    numbers=_numbers,
    mask=lambda core, mask: core.mask(mask) if isinstance(mask, bool) else Filled(core, mask).mask(mask),
    by_likelihood=LikelihoodDistribution,
    by_law=lambda core, site: dist.TransformedDistribution(core, [ScaleLaw(site.family, site.scale, core.support)]),
    gamma_trick=lambda site, natural: GammaTrick(site, natural),
    shifted=lambda moved, shift: dist.TransformedDistribution(
        moved, [Affine(-torch.as_tensor(shift), torch.tensor(1.0), moved.support, -shift)]
    ),
)


class LipschitzReparam(OneSite, Reparam):  # type: ignore[misc]  # as above
    """Standardize one site by `pyro.poutine.reparam`, beside reparametrizations of others.

    Parameters
    ----------
    scaler : LipschitzScaler
        Fitted.
    column : column or list of columns
        What the site observes.
    tricks, missing
        As for `standardize`.

    Examples
    --------
    >>> import pyro, pyro.distributions as dist
    >>> from evenly.integrations.pyro import LipschitzReparam
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit([[300.0], [500.0], [700.0]])
    >>> model = lambda: pyro.sample("x", dist.Normal(3.0, 1e-3))
    >>> program = pyro.poutine.reparam(model, config={"x": LipschitzReparam(scaler, "x0")})
    >>> bool(abs(program() / 489.9 - 1.0) < 0.05)
    True
    """

    def apply(self, msg: Any) -> Any:
        """Change the distribution of a site, observed or not."""
        value = msg["value"] if msg["is_observed"] else None
        return {**msg, "fn": PYRO.in_table_units(self.site(msg["name"]), msg["fn"], value, self.missing)}


def rescale_prior(
    distribution: Any, scaler: LipschitzScaler, column: Columns, parameter: str, *, log: bool = False
) -> Any:
    """Carry a prior in the table's units along: the prior of the same parameter of the scaled column.

    What it means, and what parameters do, is as for `evenly.integrations.numpyro.rescale_prior`.

    Examples
    --------
    >>> import pyro.distributions as dist
    >>> from evenly.integrations.pyro import rescale_prior
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit([[300.0], [500.0], [700.0]])
    >>> prior = rescale_prior(dist.HalfNormal(100.0), scaler, "x0", "std")
    >>> prior.support, bool(abs(prior.sample([20000]).mean() - 0.8 * 100.0 / 163.3) < 0.02)
    (GreaterThanEq(lower_bound=0.0), True)
    """
    factor = prior_factor(scaler, column, parameter)
    if np.all(factor == 1.0):
        return distribution
    peeled = peel(distribution)
    support = peeled.core.support
    loc, scale = (np.log(factor), np.ones_like(factor)) if log else (np.zeros_like(factor), np.asarray(factor))
    if moved_support(support, 0.0, 1.0) is None:
        raise EvenlyError(f"a prior on {support} cannot be rescaled: it is no interval of numbers.")
    move = Affine(torch.as_tensor(loc), torch.as_tensor(scale), support, loc, scale)
    return peeled.wrap(dist.TransformedDistribution(peeled.core, [move]), PYRO.mask)
