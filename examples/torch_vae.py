"""A VAE of the heart table in PyTorch: its decoder with likelihood heads, beside heads that are written by hand.

Run: python examples/torch_vae.py. A fifth of the cells is hidden; the errors of both are those on these cells: error
rates of classes, and of numbers the root mean square error divided by the range.
"""

import argparse

from heart import Standardized, compare

try:
    import torch
    from torch import distributions, nn
except ModuleNotFoundError:
    raise SystemExit("This example needs PyTorch. Install it with: pip install torch") from None


class ByHand(Standardized):
    """A normal of every standardized number, and a softmax of every class."""

    def log_prob(self, raw, values, mask):
        """Return log-densities by row and column."""
        found = []
        for x, (name, at) in zip(values.T, self.slices.items(), strict=True):
            normal = distributions.Normal(raw[:, at][:, 0], 1e-3 + nn.functional.softplus(raw[:, at][:, 1]))
            found.append((normal if name in self.mean else distributions.Categorical(logits=raw[:, at])).log_prob(x))
        return torch.where(mask, torch.stack(found, -1), 0.0)


def train(heads, table, inputs, epochs):
    """Train a VAE with the given heads; return its best guess of every cell."""
    torch.manual_seed(0)
    inputs, values, mask = map(torch.as_tensor, (inputs, *heads.encode(table)))
    encoder = nn.Sequential(nn.Linear(inputs.shape[1], 50), nn.Tanh(), nn.Linear(50, 2 * 5))
    decoder = nn.Sequential(nn.Linear(5, 50), nn.Tanh(), nn.Linear(50, heads.n_outputs))
    decoder[-1].bias.data = torch.as_tensor(heads.marginal, dtype=torch.float32)
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for rows in (rows for _ in range(epochs) for rows in torch.randperm(len(inputs)).split(32)):
        mean, log_std = encoder(inputs[rows]).chunk(2, -1)
        raw = decoder(mean + log_std.exp() * torch.randn_like(mean))
        kl = (0.5 * (mean**2 + (2.0 * log_std).exp() - 1.0) - log_std).sum()
        adam.zero_grad()
        ((kl - heads.log_prob(raw, values[rows], mask[rows]).sum()) / len(rows)).backward()
        adam.step()
    return heads.predict(decoder(encoder(inputs).chunk(2, -1)[0]).detach())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--method", default="lip-none")
    torch.set_num_threads(1)  # small products: more threads only wait for each other
    compare(ByHand, train, **vars(parser.parse_args()))
