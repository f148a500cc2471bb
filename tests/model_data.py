"""Tables for tests of models: arrays of features, put at their places in a layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evenly.likelihoods.continuous import UNIT_NORMAL
from evenly.likelihoods.discrete import BERNOULLI
from evenly.likelihoods.registry import get_likelihood
from evenly.models.layout import Data, Layout


def place(layout: Layout, inputs: Any, targets: Any, mask: Any) -> Data:
    """Return a model's arrays from inputs, features and a mask by feature; that of a column is its first feature's."""
    targets, mask = np.asarray(targets), np.asarray(mask)
    data = layout.empty(len(targets), targets.dtype)
    data.inputs[:, : inputs.shape[1]] = inputs
    for f in reversed(range(layout.n_features)):
        data.targets[:, layout.places[f][0]] = targets[:, f]
        data.mask[:, layout.columns[f]] = mask[:, f]
    return data


def collect_compilations(into: list[float]) -> Callable[..., None]:
    """Collect how long each compilation takes, those that a cache on disk saves included; returns the listener."""
    import jax

    def collect(event: str, seconds: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            into.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(collect)
    return collect


@contextmanager
def counting_compilations(into: list[float]) -> Iterator[None]:
    """Collect compilations for a while."""
    import jax

    collect = collect_compilations(into)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(collect)


LAYOUT = Layout((UNIT_NORMAL, get_likelihood("categorical", 4), BERNOULLI), (0, 0, 1), (0, 1), (0,))


def two_columns(n: int = 400, seed: int = 0) -> Data:
    """A number and a yes or no that goes with it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    yes = (x > 0.0).astype(float)
    mask = np.ones((n, 3), bool)
    mask[: n // 10, :2] = False
    targets = np.column_stack([x, np.digitize(x, [-1.0, 0.0, 1.0]), yes]).astype(np.float32)
    inputs = np.column_stack([x, (yes - yes.mean()) / yes.std()]).astype(np.float32)
    return place(LAYOUT, np.where(mask[:, [0, 2]], inputs, 0.0), targets, mask)
