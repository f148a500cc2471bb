"""The models, by name; each is imported when it is asked for, and JAX with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import ClassVar

from evenly.models.base import Model


class _Registry(Mapping[str, type[Model]]):
    """Names and classes, as a dictionary has them; which names there are is known without importing any."""

    _classes: ClassVar = {
        "mixture": "Mixture",
        "factorization": "Factorization",
        "vae": "VAE",
        "masked": "Masked",
        "marginal": "Marginal",
    }

    def __getitem__(self, name: str) -> type[Model]:
        own = self._classes[name]
        found: type[Model] = getattr(import_module(f"evenly.models.{name}"), own)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


MODELS: Mapping[str, type[Model]] = _Registry()
"""The paper's three models, one that learns to predict cells from the others, and one that knows each column alone."""
PAPERS = ("mixture", "factorization", "vae")
"""The names of the paper's models."""
