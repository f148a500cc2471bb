"""What a model is to the rest of the package, known without importing it, or JAX: its sizes, defaults and capabilities.

Whoever plans, lists or checks a training asks the spec. The model's own class is imported when it is to be fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenly.models.budget import MASKED, PAPER, Budget

if TYPE_CHECKING:
    from evenly.models.base import Model


@dataclass(frozen=True)
class ModelSpec:
    """A model's name, defaults and capabilities.

    Examples
    --------
    >>> SPECS["vae"].learning_rate, SPECS["vae"].sizes, SPECS["masked"].budget.networks(303)
    (0.001, ('latent_size', 'hidden_size'), 3)
    """

    name: str
    sizes: tuple[str, ...] = ()
    """The names of the sizes that may be given."""
    learning_rate: float = 1e-3
    """The default one; it is the paper's for the paper's models."""
    method: str = "lip-gamma"
    """The default scaling method."""
    budget: Budget = PAPER
    """How long to train, by the number of rows."""
    from_paper: bool = False
    """Whether the paper tests it."""
    needs_jax: bool = True
    """Whether it needs the packages of the extra `models`."""
    trains: bool = True
    """Whether it is trained by steps; otherwise there is nothing to wait for, to validate, or to average."""
    reads_inputs: bool = False
    """Whether it reads `Data.inputs`; otherwise there need not be any."""
    row_variables: bool = False
    """Whether every row has variables of its own, which must fit into memory; otherwise rows may be streamed."""
    bins_numbers: bool = False
    """Whether it explains numbers by bins too, unless a likelihood is named for them."""
    cell_by_cell: bool = False
    """Whether it predicts each cell from the others, without latent variables: then cells are drawn one by one."""
    calibrated: bool = False
    """Whether its predictions are calibrated on validation cells, and stacked with those of the experts."""
    balanced: bool = False
    """Whether columns are weighted by their smoothness under a method that equalizes it."""

    def load(self) -> type[Model]:
        """Import the model's class, and JAX with it."""
        if self.name not in _CLASSES:
            import_module(f"evenly.models.{self.name}")
        return _CLASSES[self.name]


def register(spec: ModelSpec, model: type[Model]) -> None:
    """Make a model known by its name."""
    SPECS.setdefault(spec.name, spec)
    _CLASSES[spec.name] = model


_CLASSES: dict[str, type[Model]] = {}
SPECS: dict[str, ModelSpec] = {
    one.name: one
    for one in (
        ModelSpec("mixture", ("n_clusters",), row_variables=True, from_paper=True),
        ModelSpec("factorization", ("latent_size",), 1e-2, row_variables=True, from_paper=True),
        ModelSpec("vae", ("latent_size", "hidden_size"), reads_inputs=True, from_paper=True),
        ModelSpec(
            "masked",
            ("hidden_size",),
            learning_rate=2e-3,
            method="lip-none",
            budget=MASKED,
            reads_inputs=True,
            bins_numbers=True,
            cell_by_cell=True,
            calibrated=True,
            balanced=True,
        ),
        ModelSpec("marginal", method="lip-none", needs_jax=False, trains=False, bins_numbers=True, cell_by_cell=True),
    )
}
"""The models by name: the paper's three, one that learns to predict cells from the others, and the baseline."""
PAPERS = tuple(one.name for one in SPECS.values() if one.from_paper)
"""The names of the paper's models."""


class _Models(Mapping[str, Any]):
    """Names and classes, as a dictionary has them; a class is imported when it is asked for."""

    def __getitem__(self, name: str) -> type[Model]:
        return SPECS[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(SPECS)

    def __len__(self) -> int:
        return len(SPECS)


MODELS: Mapping[str, type[Model]] = _Models()
"""The models' classes by name."""
