"""A fitted imputer as JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from evenly._support import read_tensors, readable, saved_path, write_tensors
from evenly._version import __version__
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.rules import Rules
from evenly.imputation.training import Training
from evenly.likelihoods import Likelihood
from evenly.scaling import LipschitzScaler, plain_settings
from evenly.tables import Content, check, check_parameters

if TYPE_CHECKING:
    from evenly.imputation.imputer import Imputer


def imputer_to_saved(imputer: Imputer) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return all of a fitted imputer as plain JSON types and arrays."""
    learned, tensors = imputer.ensemble_.to_saved()
    training = None if imputer.training is None else imputer.training.get_params()
    content = {
        "evenly": __version__,
        "saved": type(imputer).__name__,
        "settings": plain_settings(imputer) | {"training": training, "callbacks": None},
        "scaler": imputer.scaler_.to_plain(),
        **learned,
    }
    return content, tensors


def imputer_from_saved(
    kind: type[Imputer],
    content: dict[str, Any],
    tensors: Mapping[str, npt.NDArray[Any]],
    likelihoods: Sequence[Likelihood] | Mapping[Any, Any],
    file: Path,
) -> Imputer:
    """Return the fitted imputer that `imputer_to_saved` took apart; `file` is for messages."""
    with readable(file, content):
        saved = check(SavedImputer, {name: content.get(name) for name in SavedImputer.model_fields})
    scaler = LipschitzScaler.from_plain(saved.scaler, likelihoods, file)
    with readable(file, content):
        training = saved.settings.pop("training", None)
        imputer = kind(**check_parameters(kind, saved.settings))
        if training is not None:
            imputer.training = Training(**check_parameters(Training, training))
        if imputer.likelihoods:
            imputer.likelihoods = scaler.likelihoods
        imputer.check_settings()
        Rules.read(imputer.rules).bind(scaler.columns_)  # refuses rules of other columns
        learned = {name: value for name, value in content.items() if name not in SavedImputer.model_fields}
        return imputer._become(scaler, Ensemble.from_saved(learned, tensors, scaler.columns_))


class Saved:
    """An imputer's side that is written to a file and read from it."""

    def save(self, path: str | Path) -> None:
        """Write the fitted imputer to one file (`imputer.safetensors` inside it, if the path is a folder)."""
        check_is_fitted(self, "scaler_")
        write_tensors(saved_path(path, "imputer.safetensors"), *imputer_to_saved(cast("Imputer", self)))

    @classmethod
    def load(cls, path: str | Path, *, likelihoods: Sequence[Likelihood] | Mapping[Any, Any] = ()) -> Self:
        """Read an imputer that `save` wrote; it imputes the same, to the byte. Loading runs no code from the file.

        Custom likelihoods and callbacks are code, and not saved: pass the likelihoods again.

        Examples
        --------
        Needs `pip install "evenly[models]"`.

        >>> import tempfile
        >>> import numpy as np
        >>> from evenly import Imputer
        >>> table = np.random.default_rng(0).normal(size=(30, 2))
        >>> imputer = Imputer("marginal").fit(table)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     imputer.save(folder)
        ...     again = Imputer.load(folder)
        >>> bool((again.transform([[np.nan, 0.5]]) == imputer.transform([[np.nan, 0.5]])).all())
        True
        """
        file = saved_path(path, "imputer.safetensors")
        content, tensors = read_tensors(file, cls.__name__)
        kind = cast("type[Imputer]", cls)
        return cast(Self, imputer_from_saved(kind, content, tensors, likelihoods, file))


class SavedImputer(Content):
    """The JSON of a saved imputer, beside that of its ensemble."""

    evenly: str
    saved: str
    settings: dict[str, Any]
    scaler: dict[str, Any]
