"""Exponential families: densities, statistics, Fisher matrices and scale laws, by name or defined by a user.

Arrays come in and go out, of NumPy, JAX or PyTorch alike, and expressions of table engines. Tables, columns and scales
are not known here.
"""

from evenly.likelihoods.arrays import Array, namespace, to_numpy
from evenly.likelihoods.custom import define_likelihood
from evenly.likelihoods.families import (
    BERNOULLI,
    GAMMA,
    LIKELIHOODS,
    LOG_NORMAL,
    NORMAL,
    STANDARD,
    UNIT_NORMAL,
    Bernoulli,
    Categorical,
    Likelihood,
    Pivot,
    Poisson,
    Support,
    get_likelihood,
)

__all__ = [
    "BERNOULLI",
    "GAMMA",
    "LIKELIHOODS",
    "LOG_NORMAL",
    "NORMAL",
    "STANDARD",
    "UNIT_NORMAL",
    "Array",
    "Bernoulli",
    "Categorical",
    "Likelihood",
    "Pivot",
    "Poisson",
    "Support",
    "define_likelihood",
    "get_likelihood",
    "namespace",
    "to_numpy",
]
