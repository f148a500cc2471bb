"""All figures that there are records for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evenly._support import TableError, write_bytes
from evenly.metrics import PROTOCOLS
from evenly.paper.agreement import comparable
from evenly.paper.figures.columns import column_bars, stars
from evenly.paper.figures.errors import error_boxes
from evenly.paper.figures.histograms import marginals
from evenly.paper.figures.learning import balance
from evenly.paper.figures.ratios import ratios
from evenly.paper.figures.smoothness import gamma_smoothness, smoothness_by_method
from evenly.paper.figures.style import to_png
from evenly.paper.measures import Record, values_of


def draw_figures(records: Sequence[Record], out: Path) -> list[Path]:
    """Draw every figure that there are records for; returns the PNG files.

    Parameters
    ----------
    records : sequence of records
        Failed runs are left out, and those of other epochs than most methods of the same model and data set.
    out : path
        The folder to write to; files of the same name are replaced.
    """
    done = comparable(records)
    if not done:
        raise TableError(
            f"{len(records)} records, none of a finished run", "expected some", "run `evenly paper run` first"
        )
    datasets, models = values_of(done, "dataset"), values_of(done, "model")
    figures: dict[str, Callable[[], Any]] = {"marginals": partial(marginals, done)}
    for protocol in PROTOCOLS:
        for by in ("model", "percent"):
            name = f"error_by_{by}" + ("" if protocol == "honest" else "_as_published")
            figures[name] = partial(error_boxes, records, by=by, protocol=protocol)
    figures["ratios"] = partial(ratios, done)
    figures["stars"] = partial(stars, done)
    paper = [name for name in ("adult", "credit", "letter") if name in datasets]
    for dataset in paper or datasets[:1]:
        figures[f"columns_{dataset}"] = partial(column_bars, done, dataset=dataset)
    figures["gamma_smoothness"] = gamma_smoothness
    for model in models:
        figures[f"smoothness_{model}"] = partial(smoothness_by_method, done, model=model)
        for dataset in datasets:
            figures[f"balance_{dataset}_{model}"] = partial(balance, done, dataset=dataset, model=model)
    written = []
    for name, draw in figures.items():
        figure = draw()
        if figure is not None:
            path = Path(out) / f"{name}.png"
            write_bytes(path, to_png(figure))
            written.append(path)
    return written
