"""A VAE of the heart table in JAX and Equinox: its decoder with likelihood heads, beside heads written by hand.

Run: python examples/equinox_vae.py. A fifth of the cells is hidden; the errors of both are those on these cells: error
rates of classes, and of numbers the root mean square error divided by the range.
"""

import argparse

import numpy as np
from heart import Standardized, compare

try:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax
except ModuleNotFoundError:
    raise SystemExit('This example needs Equinox. Install it with: pip install "evenly[models]" equinox') from None


class ByHand(Standardized):
    """A normal of every standardized number, and a softmax of every class."""

    def log_prob(self, raw, values, mask):
        """Return log-densities of one row, by column."""
        found = []
        for x, (name, at) in zip(values, self.slices.items(), strict=True):
            normal = jax.scipy.stats.norm.logpdf(x, raw[at][0], 1e-3 + jax.nn.softplus(raw[at][1]))
            found.append(normal if name in self.mean else jax.nn.log_softmax(raw[at])[x.astype(int)])
        return jnp.where(mask, jnp.stack(found), 0.0)


class VAE(eqx.Module):
    """An encoder and a decoder of one hidden layer each, for one row."""

    encoder: eqx.nn.MLP
    decoder: eqx.nn.MLP

    def __init__(self, n_inputs, heads, key):
        self.encoder = eqx.nn.MLP(n_inputs, 2 * 5, 50, 1, jnp.tanh, key=key)
        decoder = eqx.nn.MLP(5, heads.n_outputs, 50, 1, jnp.tanh, key=jax.random.fold_in(key, 1))
        self.decoder = eqx.tree_at(lambda one: one.layers[-1].bias, decoder, jnp.asarray(heads.marginal, jnp.float32))

    def elbo(self, heads, row, values, mask, key):
        """Return the evidence lower bound of one row, by one draw."""
        mean, log_std = jnp.split(self.encoder(row), 2)
        raw = self.decoder(mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape))
        kl = 0.5 * (mean**2 + jnp.exp(2.0 * log_std) - 1.0) - log_std
        return heads.log_prob(raw, values, mask).sum() - kl.sum()


def train(heads, table, inputs, epochs):
    """Train a VAE with the given heads; return its best guess of every cell."""
    data, key, order = (inputs, *heads.encode(table)), jax.random.key(0), np.random.default_rng(0)
    model, adam = VAE(inputs.shape[1], heads, key), optax.adam(1e-3)
    state = adam.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, batch, key):
        keys = jax.random.split(key, len(batch[0]))
        slope = eqx.filter_grad(lambda one: -jax.vmap(lambda *row: one.elbo(heads, *row))(*batch, keys).mean())(model)
        updates, state = adam.update(slope, state)
        return eqx.apply_updates(model, updates), state

    for k in range(epochs * (len(inputs) // 32)):
        rows = order.choice(len(inputs), 32, replace=False)
        model, state = step(model, state, [one[rows] for one in data], jax.random.fold_in(key, k))
    return heads.predict(jax.vmap(lambda row: model.decoder(model.encoder(row)[:5]))(inputs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--method", default="lip-none")
    compare(ByHand, train, **vars(parser.parse_args()))
