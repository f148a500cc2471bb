"""The models, by name."""

from __future__ import annotations

from evenly.models.bbvi import Model
from evenly.models.factorization import Factorization
from evenly.models.masked import Masked
from evenly.models.mixture import Mixture
from evenly.models.vae import VAE

MODELS: dict[str, type[Model]] = {"mixture": Mixture, "factorization": Factorization, "vae": VAE, "masked": Masked}
"""The paper's three models, and one that is trained to predict cells from the others."""
PAPERS = tuple(name for name, model in MODELS.items() if not model.by_cell)
"""The names of the paper's models."""
