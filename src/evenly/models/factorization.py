"""Matrix factorization: the first natural parameter of every feature is a product of row and feature factors.

Prior: standard normal factors. Posterior: normal; the standard deviations of row factors are learned and shared by all
rows, as are the other natural parameters of each likelihood. For a categorical, the parameters of all classes are
products: with the first one alone, rows could only distinguish the first class from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from evenly.likelihoods import ExponentialFamily, Likelihood, constrain
from evenly.models.base import Expected
from evenly.models.bbvi import Start
from evenly.models.layers import draw_parameters, inverse_softplus, normal_kl, padded, share_of
from evenly.models.layout import Data, Layout
from evenly.models.shared_output import Head, Shared, SharesOutput
from evenly.models.spec import SPECS
from evenly.models.wiring import Wiring, wire


@dataclass(frozen=True)
class Factorization(SharesOutput):
    """The paper's matrix factorization with `latent_size` factors."""

    latent_size: int = 6
    spec: ClassVar = SPECS["factorization"]
    inference_steps: int = 200

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Factorization:
        """Return the model with half as many factors as columns, rounded up."""
        return cls(sizes.get("latent_size", share_of(0.5, n_columns)))

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return means and spreads of the factors, the other parameters, and the spreads of the rows' factors."""
        factors = Expected((self.latent_size, layout.n_raw))
        return {
            "mean": factors,
            "rho": factors,
            "others": Expected((layout.n_raw,)),
            "row_rho": Expected((self.latent_size,)),
        }

    @property
    def expected_row_variables(self) -> Mapping[str, Expected]:
        """Return the mean factors of each row."""
        return {"mean": Expected(("rows", self.latent_size))}

    def init(self, rng: np.random.Generator, layout: Layout, data: Data) -> Start:
        dtype, n_rows = data.targets.dtype, len(data.mask)
        factors = 0.1 * rng.standard_normal((layout.n_parameters, self.latent_size)).T
        shape = (self.latent_size, layout.n_raw)
        shared = {
            "mean": (padded(factors, 1, layout.n_raw, layout.parameters) * wire(layout).followed).astype(dtype),
            "rho": np.full(shape, -3.0, dtype),
            "others": layout.flat(_starts(layout, data)).astype(dtype),
            "row_rho": np.full((self.latent_size,), -1.0, dtype),
        }
        return Start(shared, {"mean": rng.standard_normal((n_rows, self.latent_size)).astype(dtype)}, {})

    def share(self, shared: Any, local: Any, key: jax.Array, wiring: Wiring, data: Data, epoch: jax.Array) -> Shared:
        rows, _ = jax.random.split(key)
        std, row_std = jax.nn.softplus(shared["rho"]), jax.nn.softplus(shared["row_rho"])
        z = local["mean"] + row_std * jax.random.normal(rows, local["mean"].shape, row_std.dtype)
        local_kl = normal_kl(local["mean"], row_std).sum(-1)
        shared_kl = jnp.where(wiring.followed, normal_kl(shared["mean"], std), 0.0).sum()
        return Shared(z, data.mask, 1.0, local_kl, shared_kl)

    def head(self, shared: Any, key: jax.Array, wiring: Wiring) -> Head:
        _, factors = jax.random.split(key)
        std = jax.nn.softplus(shared["rho"])
        beta = shared["mean"] + std * draw_parameters(factors, wiring, self.latent_size, std.dtype)
        return Head(beta, shared["others"], wiring.followed)

    def rescale(self, shared: Any, factors: jax.Array) -> Any:
        std = jax.nn.softplus(shared["rho"]) / factors
        divided = {name: shared[name] / factors for name in ("mean", "others")}
        return {**shared, **divided, "rho": inverse_softplus(std)}

    def predict(self, shared: Any, local: Any, key: jax.Array | None, wiring: Wiring, data: Data) -> jax.Array:
        z, beta = local["mean"], shared["mean"]
        if key is not None:
            rows, factors = jax.random.split(key)
            z = z + jax.nn.softplus(shared["row_rho"]) * jax.random.normal(rows, z.shape, z.dtype)
            drawn = draw_parameters(factors, wiring, self.latent_size, beta.dtype)
            beta = beta + jax.nn.softplus(shared["rho"]) * drawn
        return jnp.where(wiring.followed, z @ beta, shared["others"])

    def infer_local(self, shared: Any, key: jax.Array, wiring: Wiring, data: Data) -> Any:
        """Maximize the local part of the ELBO at the mean factors, by Adam from 0."""
        adam = optax.adam(0.1)

        def loss(local: Any) -> jax.Array:
            raw = self.predict(shared, local, None, wiring, data)
            seen = wiring.cell_log_likelihood(raw, data.targets, data.mask).sum()
            return jnp.asarray(0.5 * (local["mean"] ** 2).sum() - seen)

        def body(carry: Any, _: None) -> tuple[Any, None]:
            local, moments = carry
            updates, moments = adam.update(jax.grad(loss)(local), moments)
            return (optax.apply_updates(local, updates), moments), None

        first = {"mean": jnp.zeros((data.targets.shape[0], self.latent_size), data.targets.dtype)}
        (local, _), _ = jax.lax.scan(body, (first, adam.init(first)), None, length=self.inference_steps)
        return local


def _starts(layout: Layout, data: Data) -> list[npt.NDArray[Any]]:
    """Return initial natural parameters by feature: the first at raw products of 0, the second at its best given that.

    The product of the factors starts near 0, whatever the column's location. The second parameter of the column's
    marginal fit does not suit that: gamma(0.7, b) with the marginal b has about a hundredth of the column's mean, and
    training takes long to recover. The maximum-likelihood second parameter given the first one matches the mean of its
    statistic: a gamma starts at the column's mean, a normal at its mean square.
    """
    starts = []
    for f, one in enumerate(layout.likelihoods):
        natural = constrain(one, np.zeros(len(one.natural_bounds)))
        bounds = one.natural_bounds
        if len(bounds) == 2 and bounds[1] != (-np.inf, np.inf):
            mean, _ = layout.mean_statistics(data, f)
            if isinstance(one, ExponentialFamily):
                natural = _best_second(one, natural[:1], mean[1:2])[0]
            else:  # the second parameter does not affect the mean
                natural = np.append(natural[:1], one.fit(mean)[1])
        starts.append(natural)
    return starts


def _best_second(
    likelihood: Likelihood, first: npt.NDArray[Any], statistic: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Find the second natural parameter with this mean statistic, by bisection of its log-distance to the bound."""
    low, high = likelihood.natural_bounds[1]

    def natural(log_distance: npt.NDArray[Any]) -> npt.NDArray[Any]:
        second = low + np.exp(log_distance) if low > -np.inf else high - np.exp(log_distance)
        return np.stack([first, second], -1)

    near, far = np.full_like(first, -30.0), np.full_like(first, 30.0)
    for _ in range(40):
        middle = (near + far) / 2
        # The mean of a statistic increases with its own parameter.
        beyond = (np.asarray(likelihood.mean_statistics(natural(middle)))[:, 1] > statistic) == (low > -np.inf)
        near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
    return natural((near + far) / 2)
