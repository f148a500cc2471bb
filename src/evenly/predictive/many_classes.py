"""Predictive distributions of columns with so many classes that only the first hundred are modelled one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from evenly.predictive.base import add_mass, average
from evenly.predictive.classes import ClassPredictive
from evenly.tables import Column, Floats

LEAST = 1e-6
"""The smallest probability of an outcome whose logarithm is taken."""


@dataclass(frozen=True)
class ManyClassesPredictive(ClassPredictive):
    """Probabilities of the classes that are modelled one by one, and of the rest, which is divided by frequency.

    The rest is no class: values are classes of the column, always.

    Examples
    --------
    >>> towns = Column(name="town", kind="categorical", classes=[f"town {i}" for i in range(102)])
    >>> shares = np.append(np.full(100, 0.009), [0.07, 0.03])  # town 100 is more than twice as frequent as town 101
    >>> likely = np.append([0.4], np.full(100, 0.006))
    >>> likely[-1] = 1.0 - likely[:-1].sum()
    >>> cells = ManyClassesPredictive.of(towns, likely[None], shares)
    >>> cells.mode(), np.exp(cells.log_prob(np.array([101.0]))).round(4)  # 0.006 and 0.0018
    (array([0.]), array([0.0018]))
    """

    column: Column
    probabilities: Floats
    """Rows x outcomes; the last is the rest."""
    rest: Floats
    """How the rest divides among its classes, in the order of their codes; adds up to 1."""
    known: Floats
    """A class of the rest, by its code, for which a row has evidence of its own; any where it has none."""
    known_mass: Floats
    """The probability that goes to this class alone, out of that of the rest."""

    @classmethod
    def of(cls, column: Column, probabilities: Floats, shares: Floats) -> Self:
        """Return distributions, given the observed shares of all classes."""
        rest = shares[column.n_single :]
        rest = rest / rest.sum() if rest.sum() > 0.0 else np.full(len(rest), 1.0 / len(rest))
        n = probabilities.shape[:-1]
        return cls(column, probabilities, rest, np.full(n, float(column.n_single)), np.zeros(n))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"probabilities": self.probabilities}

    def _with(self, probabilities: Floats) -> Self:
        return replace(
            self, probabilities=probabilities, known_mass=np.minimum(self.known_mass, probabilities[..., -1])
        )

    def tilted(self, log_odds: Floats) -> Self:
        """As of few classes; with a number for each outcome, all of the rest are shifted alike."""
        if log_odds.shape[-1] == self.probabilities.shape[-1]:
            found, before = super().tilted(log_odds), np.maximum(self.probabilities[..., -1], 1e-300)
            return replace(found, known_mass=self.known_mass / before * found.probabilities[..., -1])
        n, most = self.column.n_single, log_odds.max()
        single, rest = np.exp(log_odds[:n] - most), np.exp(log_odds[n:] - most)
        divided = self.rest * rest
        known_mass = self.known_mass * rest[self._place]
        other = (self.probabilities[..., -1] - self.known_mass) * divided.sum() + known_mass
        shares = np.concatenate([self.probabilities[..., :-1] * single, other[..., None]], -1)
        total = shares.sum(-1)
        return replace(
            self,
            probabilities=shares / total[..., None],
            rest=divided / divided.sum(),
            known_mass=known_mass / total,
        )

    @property
    def _place(self) -> Any:
        """The place of the class with evidence of its own among those of the rest."""
        return self.known.astype(np.intp) - self.column.n_single

    def _of_rest(self, place: Any) -> Floats:
        """Return the probability of a class of the rest in each row."""
        divided = (self.probabilities[..., -1] - self.known_mass) * self.rest[place]
        return np.asarray(divided + np.where(place == self._place, self.known_mass, 0.0))

    def mode(self) -> Floats:
        """Return the most probable class; one of the rest only if it is more probable than each of the others."""
        n, most = self.column.n_single, int(self.rest.argmax())
        single = self.probabilities[..., :-1]
        found, likely = single.argmax(-1).astype(np.float64), single.max(-1)
        for place in (np.full(self.known.shape, most), self._place):
            of_rest = self._of_rest(place)
            found, likely = np.where(of_rest > likely, n + place, found), np.maximum(of_rest, likely)
        return np.asarray(found)

    def median(self) -> Floats:
        return self.mode()

    def sample(self, rng: np.random.Generator) -> Floats:
        shares, (drawn, within) = self.probabilities, rng.random((2, *self.known.shape))
        outcome = (np.cumsum(shares, -1)[..., :-1] < drawn[..., None]).sum(-1)
        other = np.maximum(shares[..., -1], 1e-300)
        by_evidence = within < self.known_mass / other
        level = (within - self.known_mass / other) / np.maximum(1.0 - self.known_mass / other, 1e-300)
        place = np.minimum(np.searchsorted(np.cumsum(self.rest), level, side="right"), len(self.rest) - 1)
        of_rest = np.where(by_evidence, self.known, self.column.n_single + place)
        return np.where(outcome == self.column.n_single, of_rest, outcome)

    def log_prob(self, values: Floats) -> Floats:
        n = self.column.n_single
        codes = np.nan_to_num(values).astype(np.intp)
        single = np.take_along_axis(self.probabilities, np.minimum(codes, n)[..., None], -1)[..., 0]
        likely = np.where(codes < n, single, self._of_rest(np.maximum(codes - n, 0)))
        least = np.where(codes < n, LEAST, LEAST / len(self.rest))
        return np.where(np.isnan(values), np.nan, np.log(np.maximum(likely, least)))

    def mix(self, others: Sequence[Self]) -> Self:
        return self._with(average([one.probabilities for one in (self, *others)]))

    def with_values(self, share: Floats, weights: Floats, values: Floats) -> Self:
        lumped = np.asarray(self.column.lump(values))
        mixed = add_mass(self.probabilities, share, weights, lumped)
        of_rest = np.where(lumped == self.column.n_single, weights, 0.0)
        # The class of the rest that most weight speaks for; what speaks for others of the rest stays with the rest.
        together = np.stack([np.where(values == one[:, None], of_rest, 0.0).sum(1) for one in values.T], 1)
        best = together.argmax(1)[:, None]
        mass = np.take_along_axis(together, best, 1)[:, 0]
        known = np.where(mass > 0.0, np.take_along_axis(values, best, 1)[:, 0], self.known)
        return replace(self, probabilities=mixed, known=known, known_mass=mass)

    def take(self, rows: Any) -> Self:
        return replace(
            self, probabilities=self.probabilities[rows], known=self.known[rows], known_mass=self.known_mass[rows]
        )

    def append(self, others: Sequence[Self]) -> Self:
        every = (self, *others)
        return replace(
            self,
            probabilities=np.concatenate([one.probabilities for one in every]),
            known=np.concatenate([one.known for one in every]),
            known_mass=np.concatenate([one.known_mass for one in every]),
        )

    def _shown(self) -> dict[str, Floats]:
        classes, n = self.column.classes or [], self.column.n_single
        shown = {str(value): self.probabilities[:, k] for k, value in enumerate(classes[:n])}
        return {**shown, f"{len(classes) - n} other classes": self.probabilities[:, -1]}
