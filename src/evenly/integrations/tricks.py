"""The Gamma trick in a program: one gamma a feature stands in for a Poisson, a Bernoulli or a categorical site.

What the site emits is read as the mean of the scaled feature; the shape is the one that the scaler fitted:

- the rate of a Poisson is the mean;
- the odds of a Bernoulli, exp(logit), are the mean;
- the probabilities of a categorical are the shares of its classes in the sum of means, which stays the fitted one;
- a gamma gives shape and rate itself; for a categorical, along a last axis of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly.integrations.sites import Site
from evenly.likelihoods import GAMMA, Array, namespace
from evenly.scaling import NOISE_MEAN, OFFSET

EMITTED = {"count": "Poisson", "binary": "Bernoulli", "categorical": "Categorical", "ordinal": "Categorical"}
"""The discrete distribution that a column of a kind takes, by the start of its name."""


@dataclass(frozen=True)
class Gammas:
    """The gammas of a discrete column's features."""

    site: Site

    @property
    def _fits(self) -> list[tuple[float, float, float]]:
        """Scale, shape and mean of each scaled feature, as fitted."""
        fits = []
        for fit in self.site.columns[0].fits:
            if fit.natural is None:
                raise self.site.error("a feature without a fit", "expected one with observed cells")
            fits.append((fit.scale, float(fit.natural[0]) + 1.0, float(GAMMA.mean(fit.natural))))
        return fits

    def natural(self, fn: Any) -> Array:
        """Return natural parameters of the scaled features, along the last two axes, from what the site emits."""
        kind, column, n = type(fn).__name__, self.site.columns[0], len(self._fits)
        split = column.features[0].code is not None
        if kind == "Gamma":
            xp = namespace(fn.concentration, fn.rate)
            natural = xp.stack([xp.asarray(fn.concentration) - 1.0, -xp.asarray(fn.rate)])
            if not split:
                return natural[..., None, :]
            if tuple(natural.shape)[-2:-1] != (n,):
                got = f"gammas of shape {tuple(natural.shape)[:-1]}"
                raise self.site.error(got, f"its column has {n} classes, along the last axis")
            return natural
        wanted = EMITTED[column.column.kind]
        if not kind.startswith(wanted):
            raise self.site.error(f"the distribution {kind}", f"its {self.site.columns_said} takes {wanted} or Gamma")
        if wanted == "Poisson":
            mean = namespace(fn.rate).asarray(fn.rate)[..., None]
        elif wanted == "Bernoulli":
            mean = namespace(fn.logits).exp(fn.logits)[..., None]
        else:
            if tuple(fn.probs.shape)[-1:] != (n,):
                raise self.site.error(f"{tuple(fn.probs.shape)[-1]} probabilities", f"its column has {n} classes")
            mean = fn.probs * sum(mean for _, _, mean in self._fits)
        xp = namespace(mean)
        shape = xp.asarray(np.array([shape for _, shape, _ in self._fits]), mean)
        return xp.stack([shape - 1.0 + 0.0 * mean, -shape / mean])

    def log_prob(self, value: Array, natural: Array) -> Array:
        """Return the log-density of the features that a cell gives, in the units before the scale."""
        column, xp = self.site.columns[0], namespace(natural)
        total: Any = 0.0
        for k, (feature, (scale, _, _)) in enumerate(zip(column.features, self._fits, strict=True)):
            base = value if feature.code is None else value == feature.code
            base = xp.where(base == 1, 1.0 + 0.0 * natural[..., k, 0], 0.0) if feature.code is not None else base
            scaled = (base + OFFSET + NOISE_MEAN) * scale
            total = total + GAMMA.log_density(scaled, natural[..., k, :]) + float(np.log(scale))
        return total

    def recover(self, natural: Array) -> dict[str, Array]:
        """Return the usual parameters of the discrete column, the trick undone."""
        return self.site.columns[0].recover([natural[..., k, :] for k in range(natural.shape[-2])])
