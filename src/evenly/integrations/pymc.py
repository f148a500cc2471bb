"""PyMC: a model written by hand, made anew with the parameters of its observed variables in scaled units."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenly._support import EvenlyError, TableError, require
from evenly.integrations.explaining import Explanation, explain
from evenly.integrations.priors import prior_factor
from evenly.integrations.pymc_distributions import kind_of, moved_prior, unscale
from evenly.integrations.sites import Columns, Site, check_shapes, read_sites, site_error
from evenly.scaling import LipschitzScaler

pm = require("pymc", "pymc")
fgraph: Any = require("pymc.model.fgraph", "pymc")

__all__ = ["Explanation", "rescale_prior", "standardize"]


def standardize(model: Any, scaler: LipschitzScaler, sites: Mapping[str, Columns], *, skip: Sequence[str] = ()) -> Any:
    """Return a copy of a PyMC model with the parameters of its observed variables in scaled units.

    What it means, and what parameters do, is as for `evenly.integrations.numpyro.standardize`. The model itself is left
    as it is.

    Parameters
    ----------
    model : pymc.Model
        Any model. The result is another one, for `pm.sample`, `pm.fit`, `pm.sample_posterior_predictive` and the like;
        its `explain()` returns a table of what was done.
    scaler : LipschitzScaler
        Fitted to the table that the observations are from.
    sites : mapping of observed variable to column
        Or, for a variable whose last axis holds several columns, to their list.
    skip : list of site
        Sites of the mapping that are left as they are.

    Examples
    --------
    Needs `pip install "evenly[pymc]"`.

    >>> import pymc as pm
    >>> from evenly.integrations.pymc import standardize
    >>> incomes = np.array([12000.0, 30000.0, 54000.0])
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit(incomes[:, None])
    >>> with pm.Model() as model:
    ...     mean = pm.Normal("mean", 2.0, 1.0)  # of incomes in scaled units
    ...     income = pm.Normal("income", mean, 1.0, observed=incomes)
    >>> program = standardize(model, scaler, {"income": "x0"})
    >>> raw, standardized = (one.compile_logp()({"mean": 2.0}) for one in (model, program))
    >>> bool(raw < -1e8), bool(standardized > -1e2)
    (True, True)

    A name that the model does not observe is an error.
    """
    if not isinstance(model, pm.Model):
        raise TableError(f"a {type(model).__name__} as model", "expected a pymc.Model", "the one that `with` has made")
    read = read_sites(scaler, sites, skip=skip)
    try:
        graph, copies = fgraph.fgraph_from_model(model)
    except (NotImplementedError, ValueError) as error:
        raise EvenlyError(f"PyMC cannot copy this model: {error}") from None
    for site in read.values():
        for variable in _variables(model, site):
            _check(site, variable, model.rvs_to_values[variable])
            distribution = copies[variable].owner.inputs[0]
            moved = unscale(site, distribution)
            if moved is not distribution:
                graph.replace(distribution, moved, import_missing=True)
    made = fgraph.model_from_fgraph(graph, mutate_fgraph=True)
    made.explain = functools.partial(explain, read, scaler.container_)
    return made


def _variables(model: Any, site: Site) -> list[Any]:
    """Return the random variables of a site: two, if PyMC samples its missing cells."""
    observed = {one.name: one for one in model.observed_RVs}
    if site.name in observed:
        return [observed[site.name]]
    split = [f"{site.name}_{part}" for part in ("observed", "unobserved")]
    if split[0] not in observed:
        listed = ", ".join(repr(name.removesuffix("_observed")) for name in observed) or "none"
        raise site_error(site.name, "no observed variable", f"those of the model are {listed}")
    if site.several:
        raise site.error("missing cells of several columns", "PyMC lines them up", "write a variable for each column")
    return [model[name] for name in split if name in model.named_vars]


def _check(site: Site, variable: Any, value: Any) -> None:
    """Refuse shapes that do not fit, and missing cells that PyMC does not sample."""
    cells = getattr(value, "data", None) if not hasattr(value, "get_value") else value.get_value(borrow=True)
    known = None if cells is None else tuple(np.shape(cells))
    guess = known or (*[1] * (variable.ndim - 1), len(site.columns))
    shape = tuple(guess[i] if n is None else n for i, n in enumerate(variable.type.shape))
    check_shapes(site, shape, known)
    if cells is not None and np.asarray(cells).dtype.kind == "f" and np.isnan(cells).any():
        n = int(np.isnan(cells).sum())
        raise site.error(f"{n} missing cells", "PyMC samples those of arrays only", "pass the array, not pm.Data")


def rescale_prior(
    distribution: Any, scaler: LipschitzScaler, column: Columns, parameter: str, *, log: bool = False
) -> Any:
    """Carry a prior in the table's units along: the prior of the same parameter of the scaled column.

    What it means, and what parameters do, is as for `evenly.integrations.numpyro.rescale_prior`.

    The prior is given as `pm.Normal.dist(130.0, 20.0)`, without a name, and the result is named by `model.register_rv`.

    Examples
    --------
    >>> import pymc as pm
    >>> from evenly.integrations.pymc import rescale_prior
    >>> scaler = LipschitzScaler("std-none", kinds={0: "real"}).fit([[300.0], [500.0], [700.0]])
    >>> with pm.Model() as model:
    ...     prior = rescale_prior(pm.HalfNormal.dist(100.0), scaler, "x0", "std")
    ...     spread = model.register_rv(prior, "spread")
    >>> draws = pm.draw(spread, 2000, random_seed=0)
    >>> bool(abs(draws.mean() - 0.8 * 100.0 / 163.3) < 0.02)
    True
    """
    factor = prior_factor(scaler, column, parameter)
    if np.all(factor == 1.0):
        return distribution
    moved = moved_prior(distribution, factor, log)
    if moved is None:
        kind = kind_of(distribution)
        raise EvenlyError(
            f"a prior {kind} cannot be {'shifted' if log else 'multiplied'}: its parameters do not say how."
        )
    return moved
