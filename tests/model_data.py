"""Tables for tests of models: arrays of features, put at their places in a layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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


def listen_to_compilations(into: list[float]) -> Callable[..., None]:
    """Collect how long each compilation takes, those that a cache on disk spares included; returns who listens."""
    import jax

    def hear(event: str, seconds: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            into.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(hear)
    return hear


@contextmanager
def counting_compilations(into: list[float]) -> Iterator[None]:
    """Collect compilations for a while."""
    import jax

    hear = listen_to_compilations(into)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
