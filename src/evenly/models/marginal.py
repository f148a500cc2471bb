"""Marginal: every column by itself, as if no other said anything about it. The baseline, without JAX or training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenly.models.base import NOBODY, Fitted, History, Model, Plan, Stream, Trace, Watchers
from evenly.models.layout import Data, Layout, constrain
from evenly.models.spec import SPECS

UNSEEN = 1e-9
"""How many cells a class counts for that was not seen: nothing, but a number."""


@dataclass(frozen=True)
class Marginal(Model):
    """A number has its column's mean and quantiles, a class its column's shares."""

    spec: ClassVar = SPECS["marginal"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Marginal:
        """It has no sizes."""
        return cls()

    def fit(
        self,
        layout: Layout,
        data: Data,
        seed: int,
        plan: Plan,
        watchers: Watchers = NOBODY,
        stream: Stream | None = None,
    ) -> Fitted:
        """Take each feature's maximum-likelihood parameters; how to train does not matter."""
        nothing = Trace(np.zeros(0), np.zeros((0, layout.n_columns)), np.zeros((0, layout.n_columns)))
        known = layout.constant(data, unseen=UNSEEN)
        return Fitted({"raw": known}, History(np.zeros(0), np.zeros((0, layout.n_columns))), nothing)

    def predict_natural(
        self,
        layout: Layout,
        shared: Mapping[str, Any],
        data: Data,
        draw: Sequence[int] | None = None,
        *,
        alike: bool = False,
    ) -> list[npt.NDArray[Any]]:
        """Return the same parameters for every row."""
        raws = layout.by_feature(np.asarray(shared["raw"]))
        naturals = [constrain(one, raw) for one, raw in zip(layout.likelihoods, raws, strict=True)]
        return [np.broadcast_to(one, (len(data.mask), *one.shape)) for one in naturals]
