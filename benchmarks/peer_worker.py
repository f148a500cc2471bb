"""Impute a table with a package that is installed in this environment: python peer_worker.py JOB FOLDER.

FOLDER has `visible.npy` (rows x columns, classes as codes from 0, NaN where missing) and `settings.json`: the number of
classes of each column (0 for numbers), a seed, and how many tables to draw. The tables are written to `filled.npy`
(tables x rows x columns), and notes for the record to `notes.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Settings = Mapping[str, Any]


def miceforest(visible: Floats, settings: Settings) -> list[Floats]:
    """Draw tables by predictive mean matching, its default."""
    import miceforest
    import pandas as pd

    frame = pd.DataFrame({f"x{j}": visible[:, j] for j in range(visible.shape[1])})
    for j, n_classes in enumerate(settings["n_classes"]):
        if n_classes:
            frame[f"x{j}"] = frame[f"x{j}"].astype("Int64").astype("category")
    matched = {} if settings["tables"] > 1 else {"mean_match_candidates": 0}
    kernel = miceforest.ImputationKernel(
        frame, num_datasets=settings["tables"], random_state=settings["seed"], **matched
    )
    kernel.mice(5)
    return [kernel.complete_data(i).astype(float).to_numpy() for i in range(settings["tables"])]


def utrees(visible: Floats, settings: Settings) -> list[Floats]:
    """Draw tables by trees that unmask cells; numbers are quantized, classes are not."""
    import utrees

    kinds = ["categorical" if n_classes else "continuous" for n_classes in settings["n_classes"]]
    model = utrees.UnmaskingTrees(random_state=settings["seed"])
    model.fit(visible.copy(), quantize_cols=kinds)
    return list(model.impute(n_impute=settings["tables"]))


def forestdiffusion(visible: Floats, settings: Settings) -> list[Floats]:
    """Draw tables by diffusion; the flow, its default, cannot impute."""
    from ForestDiffusion import ForestDiffusionModel

    n_classes = settings["n_classes"]
    model = ForestDiffusionModel(
        visible.copy(),
        diffusion_type="vp",
        bin_indexes=[j for j, n in enumerate(n_classes) if n == 2],
        cat_indexes=[j for j, n in enumerate(n_classes) if n > 2],
        n_batch=0,
        seed=settings["seed"],
    )
    return list(np.reshape(model.impute(k=settings["tables"]), (-1, *visible.shape)))


def hyperimpute(visible: Floats, settings: Settings) -> list[Floats]:
    """Impute by a plugin of HyperImpute, on codes of classes as if they were numbers."""
    import pandas as pd
    from hyperimpute.plugins.imputers import Imputers

    imputer = Imputers().get(settings["plugin"], random_state=settings["seed"])
    return [np.asarray(imputer.fit_transform(pd.DataFrame(visible)), float)]


JOBS: Mapping[str, tuple[Callable[[Floats, Settings], list[Floats]], str]] = {
    "miceforest": (miceforest, "miceforest"),
    "utrees": (utrees, "utrees"),
    "forestdiffusion": (forestdiffusion, "ForestDiffusion"),
    "hyperimpute": (hyperimpute, "hyperimpute"),
}
"""The function of each job, and the package whose version is noted."""


def main() -> None:
    job, folder = sys.argv[1], Path(sys.argv[2])
    settings = json.loads((folder / "settings.json").read_text())
    impute, package = JOBS[job]
    filled = np.asarray(impute(np.load(folder / "visible.npy"), settings), float)
    np.save(folder / "filled.npy", filled)
    (folder / "notes.json").write_text(json.dumps({"package": f"{package} {version(package)}"}))


if __name__ == "__main__":
    main()
