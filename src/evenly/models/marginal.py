"""Marginal model: columns are independent of each other. A baseline that needs neither JAX nor training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenly.likelihoods import constrain
from evenly.models.base import NOBODY, Expected, Fitted, History, Model, Plan, RowVariables, Stream, Trace, Watchers
from evenly.models.layout import Data, Layout
from evenly.models.spec import SPECS

UNSEEN = 1e-9
"""Pseudo-count of each class: negligible, but it keeps the log-probability of an unobserved class finite."""


@dataclass(frozen=True)
class Marginal(Model):
    """Predicts the marginal distribution of each column: mean and quantiles of numbers, frequencies of classes."""

    spec: ClassVar = SPECS["marginal"]

    @classmethod
    def of_size(cls, n_rows: int, n_columns: int, sizes: Mapping[str, int]) -> Marginal:
        """Return the model, which has no sizes."""
        return cls()

    def expected_arrays(self, layout: Layout) -> Mapping[str, Expected]:
        """Return the raw parameters."""
        return {"raw": Expected((layout.n_raw,))}

    def fit(
        self,
        layout: Layout,
        data: Data,
        seed: int,
        plan: Plan,
        watchers: Watchers = NOBODY,
        stream: Stream | None = None,
    ) -> Fitted:
        """Estimate each feature's parameters by maximum likelihood; training settings are ignored."""
        nothing = Trace(np.zeros(0), np.zeros((0, layout.n_columns)), np.zeros((0, layout.n_columns)))
        raw = layout.constant(data, unseen=UNSEEN)
        return Fitted({"raw": raw}, History(np.zeros(0), np.zeros((0, layout.n_columns))), nothing)

    def predict_natural(
        self,
        layout: Layout,
        shared: Mapping[str, Any],
        data: Data,
        draw: Sequence[int] | None = None,
        *,
        alike: bool = False,
        rows: RowVariables | None = None,
    ) -> list[npt.NDArray[Any]]:
        """Return the same parameters for every row."""
        raws = layout.by_feature(np.asarray(shared["raw"]))
        naturals = [constrain(one, raw) for one, raw in zip(layout.likelihoods, raws, strict=True)]
        return [np.broadcast_to(one, (len(data.mask), *one.shape)) for one in naturals]
