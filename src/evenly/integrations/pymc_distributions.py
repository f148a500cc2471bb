"""PyMC: the parameters of random variables in the table's units, and of priors in scaled units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from evenly._support import require
from evenly.integrations.sites import OWN, Family, OfKnownShape, Site, family_of

require("pymc", "pymc")
pytensor = require("pytensor", "pymc")
MinibatchRandomVariable: Any = require("pymc.variational.minibatch_rv", "pymc").MinibatchRandomVariable
SymbolicRandomVariable: Any = require("pymc.distributions.distribution", "pymc").SymbolicRandomVariable
constant_fold: Any = require("pymc.pytensorf", "pymc").constant_fold


def number(x: Any) -> Any:
    """Return a number or an array in PyTensor's precision."""
    return np.asarray(x, pytensor.config.floatX)


@dataclass(frozen=True)
class Multiplied(Family):
    """A random variable whose parameters the scale law multiplies."""

    inverse: str = ""
    """A parameter that PyMC keeps as one over the likelihood's."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Any]:
        """Return the parameters in the table's units."""
        scale = np.asarray(site.scale)
        ones = np.ones((*scale.shape, len(site.family.usual_names)))
        factors = np.asarray(site.family.unscale_usual(ones, scale))
        moved = {}
        for i, name in enumerate(self.arguments):
            factor = 1.0 / factors[..., i] if name == self.inverse else factors[..., i]
            moved[name] = getattr(fn, name) * number(factor)
        return moved


@dataclass(frozen=True)
class FromZero(Multiplied):
    """PyMC's inverse Gaussian has a third parameter, where it begins."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Any]:
        """Refuse one that does not begin at 0."""
        (start,) = constant_fold([fn.alpha], raise_not_constant=False)
        if np.any(getattr(start, "data", 1.0)):
            raise site.error("a Wald with alpha", "the inverse-gaussian likelihood begins at 0")
        return super().unscale(fn, site)


@dataclass(frozen=True)
class Joint(Family):
    """A normal of several columns at once."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Any]:
        """Divide means by the scale, covariances by the product of two."""
        scale = np.broadcast_to(site.scale, len(site.columns))
        return {"mu": fn.mu / number(scale), "cov": fn.cov / number(scale[:, None] * scale)}


@dataclass(frozen=True)
class Weibull(OfKnownShape):
    """PyMC's names for the parameters of a Weibull."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Any]:
        """Unscale the scale as a cell of the column."""
        scale = np.asarray(site.scale)
        return {"beta": fn.beta * number(site.family.unscale_data(np.ones(scale.shape), scale))}


FAMILIES: dict[str, tuple[Family, tuple[str, ...]]] = {
    "Normal": (Multiplied("normal", ("mu", "sigma")), ("mu", "sigma")),
    "MultivariateNormal": (Joint("normal", ("mu", "cov")), ("mu", "cov")),
    "LogNormal": (Multiplied("log-normal", ("mu", "sigma")), ("mu", "sigma")),
    "Gamma": (Multiplied("gamma", ("alpha", "scale"), "scale"), ("alpha", "scale")),
    "InverseGamma": (Multiplied("inverse-gamma", ("alpha", "beta")), ("alpha", "beta")),
    "Exponential": (Multiplied("exponential", ("scale",), "scale"), ("scale",)),
    "Wald": (FromZero("inverse-gaussian", ("mu", "lam")), ("mu", "lam", "alpha")),
    "Weibull": (Weibull(OWN, ("beta",)), ("alpha", "beta")),
}
"""How a random variable is unscaled, by the name that PyMC prints, and what its parameters are, in their order."""


def kind_of(variable: Any) -> str:
    """Return the name of a random variable's distribution, as PyMC prints it."""
    if variable.owner is None:
        return str(variable)
    return str(getattr(variable.owner.op, "_print_name", [type(variable.owner.op).__name__])[0])


def unscale(site: Site, variable: Any) -> Any:
    """Return a random variable in the table's units from one whose parameters are those of the scaled column."""
    if variable.owner is not None and isinstance(variable.owner.op, MinibatchRandomVariable):
        inner, *sizes = variable.owner.inputs
        return variable.owner.op(unscale(site, inner), *sizes)
    kind = kind_of(variable)
    if site.is_left:
        if np.dtype(variable.dtype).kind not in "iub":
            raise site.error(f"the distribution {kind}", f"its {site.columns_said} was declared {site.family.name}")
        return variable
    if np.any(site.shift):
        raise site.error(f"the shift of {site.columns_said}", "PyMC's distributions begin at 0", "add it beforehand")
    family = family_of(site, kind, {name: one for name, (one, _) in FAMILIES.items()}, beside="")
    if family is None:
        hint = "of likelihoods of your own, PyMC can have a Weibull"
        raise site.error(f"the distribution {kind}", f"{site.columns_said} has a likelihood of your own", hint)
    names, given = FAMILIES[kind][1], parameters_of(variable)
    moved = family.unscale(SimpleNamespace(**dict(zip(names, given, strict=True))), site)
    return rebuild(variable, [moved.get(name, one) for name, one in zip(names, given, strict=True)])


def parameters_of(variable: Any) -> Sequence[Any]:
    """Return the parameters of a random variable, in the order of its operation."""
    return tuple(variable.owner.op.dist_params(variable.owner))


def rebuild(variable: Any, parameters: Sequence[Any]) -> Any:
    """Return the same random variable with other parameters."""
    node, op = variable.owner, variable.owner.op
    if isinstance(op, SymbolicRandomVariable):
        (rng,) = op.rng_params(node)
        return op.rebuild_rv(*parameters, size=op.size_param(node), rng=rng)
    return op.make_node(*node.inputs[:2], *parameters).outputs[1]


# --- priors -----------------------------------------------------------------------------------------------------------

ROLES = {
    "Normal": "ls",
    "StudentT": "-ls",
    "Cauchy": "ls",
    "Laplace": "ls",
    "Logistic": "ls",
    "Gumbel": "ls",
    "Uniform": "ll",
    "TruncatedNormal": "lsll",
    "HalfNormal": "ss",
    "HalfStudentT": "-s",
    "HalfCauchy": "s",
    "Exponential": "s",
    "Gamma": "-s",
    "InverseGamma": "-s",
    "Wald": "sss",
    "Weibull": "-s",
}
"""What each parameter of a prior is: a location (l), a scale (s), or neither."""


def moved_prior(variable: Any, factor: Any, log: bool) -> Any | None:
    """Return a prior that is multiplied by a factor, or shifted by its logarithm; None if that is not known."""
    kind = kind_of(variable)
    roles = ROLES.get(kind, "")
    if kind == "LogNormal" and not log:
        mu, sigma = parameters_of(variable)
        return rebuild(variable, [mu + number(np.log(factor)), sigma])
    if not roles or (log and "l" not in roles):
        return None
    moved = []
    for role, given in zip(roles, parameters_of(variable), strict=True):
        if log:
            moved.append(given + number(np.log(factor)) if role == "l" else given)
        else:
            moved.append(given * number(factor) if role in "ls" else given)
    return rebuild(variable, moved)
