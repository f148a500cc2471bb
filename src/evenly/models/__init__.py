"""The models, by name."""

from __future__ import annotations

from evenly.models.bbvi import Model
from evenly.models.factorization import Factorization
from evenly.models.mixture import Mixture
from evenly.models.vae import VAE

MODELS: dict[str, type[Model]] = {"mixture": Mixture, "factorization": Factorization, "vae": VAE}
"""The paper's three models."""
