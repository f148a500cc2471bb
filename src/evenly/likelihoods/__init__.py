"""Likelihoods: densities, statistics, Fisher matrices and scale laws, by name or defined by a user.

Arrays come in and go out, of NumPy, JAX or PyTorch alike, and expressions of table engines. Tables, columns and scales
belong to other folders.
"""

from evenly.likelihoods.arrays import Array, namespace, to_numpy
from evenly.likelihoods.base import ExponentialFamily, Likelihood, Pivot, Support
from evenly.likelihoods.bounds import constrain, unconstrain
from evenly.likelihoods.continuous import GAMMA, LOG_NORMAL, NORMAL, STANDARD, UNIT_NORMAL
from evenly.likelihoods.custom import define_likelihood
from evenly.likelihoods.discrete import BERNOULLI, POISSON
from evenly.likelihoods.registry import FAMILIES, get_likelihood, is_registered, likelihood_name

__all__ = [
    "BERNOULLI",
    "FAMILIES",
    "GAMMA",
    "LOG_NORMAL",
    "NORMAL",
    "POISSON",
    "STANDARD",
    "UNIT_NORMAL",
    "Array",
    "ExponentialFamily",
    "Likelihood",
    "Pivot",
    "Support",
    "constrain",
    "define_likelihood",
    "get_likelihood",
    "is_registered",
    "likelihood_name",
    "namespace",
    "to_numpy",
    "unconstrain",
]
