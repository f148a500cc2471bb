"""Model specs: the sizes, defaults and capabilities of each model, known without importing it or JAX.

Code that plans, lists or checks trainings uses the spec; the model's class is imported when it is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenly._support import require
from evenly.models.budget import HIVAE, MASKED, PAPER, Budget

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
    """The names of the sizes that can be set."""
    learning_rate: float = 1e-3
    """The default learning rate; that of the paper for the paper's models."""
    method: str = "lip-gamma"
    """The default scaling method."""
    budget: Budget = PAPER
    """The default training budget, by number of rows."""
    visit_seconds: tuple[float, float] = (1.5e-5, 2e-6)
    """About how many seconds a row takes in an epoch, and each of its cells, on two cores: for the time left."""
    from_paper: bool = False
    """Whether it is one of the paper's models."""
    needs_jax: bool = True
    """Whether it needs the packages of the extra `models`."""
    trains: bool = True
    """Whether it is trained by gradient steps; if not, there are no epochs, validation cells or ensembles."""
    reads_inputs: bool = False
    """Whether it reads `Data.inputs`; if not, they may be empty."""
    row_variables: bool = False
    """Whether every row has latent variables, which must fit into memory; if not, rows may be streamed."""
    latent_classes: bool = False
    """Whether rows belong to latent classes, between which densities decide: gammas of discrete values mislead them."""
    bins_numbers: bool = False
    """Whether it models numbers by bins too, unless a likelihood is given for them."""
    cell_by_cell: bool = False
    """Whether it predicts each cell from the others, without latent variables; cells are then drawn sequentially."""
    calibrated: bool = False
    """Whether its predictions are calibrated on validation cells and combined with those of the experts."""
    balanced: bool = False
    """Whether columns are weighted by inverse smoothness, under a method that equalizes it."""
    shared_output: bool = False
    """Whether all columns are predicted linearly from one output, where balancing rules can weigh their gradients."""

    def load(self) -> type[Model]:
        """Return the model's class, imported on first use (with JAX, if the model needs it)."""
        if self.name not in _CLASSES:
            if self.needs_jax:
                require("jax", "models")
                require("optax", "models")
            import_module(f"evenly.models.{self.name}")
        return _CLASSES[self.name]


def register(spec: ModelSpec, model: type[Model]) -> None:
    """Register a model under its name."""
    SPECS.setdefault(spec.name, spec)
    _CLASSES[spec.name] = model


_CLASSES: dict[str, type[Model]] = {}
SPECS: dict[str, ModelSpec] = {
    one.name: one
    for one in (
        ModelSpec(
            "mixture",
            ("n_clusters",),
            method="lip-none",
            visit_seconds=(8e-7, 4e-8),
            row_variables=True,
            latent_classes=True,
            from_paper=True,
        ),
        ModelSpec(
            "factorization",
            ("latent_size",),
            1e-2,
            visit_seconds=(1e-6, 1.2e-7),
            row_variables=True,
            from_paper=True,
            shared_output=True,
        ),
        ModelSpec(
            "vae",
            ("latent_size", "hidden_size"),
            visit_seconds=(1.4e-5, 1e-7),
            reads_inputs=True,
            from_paper=True,
            shared_output=True,
        ),
        ModelSpec(
            "hivae",
            ("latent_size", "n_clusters", "column_size"),
            method="std-none",
            budget=HIVAE,
            visit_seconds=(1.5e-6, 6e-8),
            reads_inputs=True,
            shared_output=True,
        ),
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
            shared_output=True,
        ),
        ModelSpec("marginal", method="lip-none", needs_jax=False, trains=False, bins_numbers=True, cell_by_cell=True),
    )
}
"""The models by name: the paper's three, HI-VAE, the masked network, and the marginal baseline."""
PAPERS_METHOD = "lip-gamma"
"""The method that the paper proposes, for all of its models."""
PAPERS = tuple(one.name for one in SPECS.values() if one.from_paper)
"""The names of the paper's models."""


class _Models(Mapping[str, Any]):
    """A mapping of names to classes, each imported when it is accessed."""

    def __getitem__(self, name: str) -> type[Model]:
        return SPECS[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(SPECS)

    def __len__(self) -> int:
        return len(SPECS)


MODELS: Mapping[str, type[Model]] = _Models()
"""The classes of the models by name."""
