"""The report: one HTML file that needs no network, with charts that a browser draws by Plotly."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from evenly._support import require, to_plain, write_text
from evenly.evaluation import Draws, worst_column
from evenly.report import formatting, sections
from evenly.report.charts import ChartList
from evenly.report.content import ReportInput, collect

SENTENCES = ("drawn", "gain", "headline", "mean_of", "name_some", "ratio_in_words", "ratios_by_column", "summarize")
"""Functions of `sections` that the templates call."""


def make_report(
    table: Any,
    *,
    filled: Any = None,
    draws: Draws | Sequence[Any] | None = None,
    imputer: Any = None,
    trial: Any = None,
    diagnosis: Any = None,
    comparison: Sequence[Any] | None = None,
    title: str = "",
    command: str = "",
    seed: int | None = None,
    rows: int = 6,
) -> str:
    """Return a report on a table as the text of one HTML file, which loads nothing from the network.

    Sections that nothing was given for are left out. The same arguments give the same text.

    Parameters
    ----------
    table : dataframe or array
        The table as given, with its missing cells.
    filled : dataframe or array, optional
        The same rows with imputed cells.
    draws : Draws or list of tables, optional
        Imputed cells drawn at random, from `draw_cells` or `Imputer.sample`: how imputed cells are distributed. Without
        them the report shows the distribution of the best guesses, and says so.
    imputer : Imputer, optional
        The fitted imputer: its training, its settings, and its schema instead of an inferred one.
    trial : Trial, optional
        Errors on cells that were hidden, imputed and scored.
    diagnosis : Diagnosis, optional
        Which columns training by gradients learns, and which it overlooks.
    comparison : sequence of Trial, optional
        Candidates compared on the same hidden cells; the best one is the `trial`, unless one is given.
    title, command : str
        The heading, and the command that makes this report again.
    seed : int, optional
        By default the imputer's.
    rows : int
        How many rows to show with their imputed cells; 0 for none. Beside these the report holds counts and quantiles
        and, with a trial, a few hidden cells of each column.

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> import numpy as np
    >>> page = make_report([[1.0, 5.0], [2.0, np.nan], [4.0, 7.0]], title="Three rows")
    >>> "<h1>Three rows</h1>" in page, "http-equiv" in page
    (True, True)
    >>> "1 cell of the table" in page, "Nothing was missing" in make_report([[1.0], [2.0]])
    (True, True)
    """
    parts = (filled, draws, imputer, trial, diagnosis, comparison)
    return _render(ReportInput(table, *parts, title=title, command=command, seed=seed, rows=rows))


def write_report(path: str | Path, table: Any, **parts: Any) -> None:
    """Write a report on a table to a file, all or nothing.

    Parameters
    ----------
    path : path
        Of the HTML file.
    table, **parts
        As in `make_report`.

    Examples
    --------
    Needs `pip install "evenly[tool]"`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", [[1.0], [2.0]])
    ...     (Path(folder) / "report.html").stat().st_size < 6e6
    True
    """
    write_text(path, make_report(table, **parts))


def _render(given: ReportInput) -> str:
    content, drawn = collect(given), ChartList()
    shown = list(sections.make_sections(content, drawn))
    packed, plotly_hash = _plotly()
    script = f"\n{_asset('page.js')}"
    template = _templates().get_template("page.html")
    page: str = template.render(
        content=content,
        sections=shown,
        charts=to_plain(drawn.data, text=formatting.printable),
        script=script,
        # Scripts run by their hash alone: text of the table that became markup would still not run.
        script_hashes=(_hash(script), plotly_hash),
        style=_asset("style.css"),
        plotly=packed,
    )
    return page


@cache
def _templates() -> Any:
    """Return the templates, which escape every value that they show."""
    jinja = require("jinja2", "tool")
    templates = jinja.Environment(
        loader=jinja.PackageLoader("evenly.report"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else formatting.printable(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    templates.filters |= {name: getattr(formatting, name) for name in ("cell", "count", "known", "number", "percent")}
    templates.globals |= {name: getattr(sections, name) for name in (*SENTENCES, "whiskers")}
    templates.globals["worst_column"] = worst_column
    templates.filters["unbroken"] = sections.unbroken
    return templates


def _asset(name: str) -> str:
    return (resources.files("evenly.report") / name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """Return Plotly's script, compressed to a third, and its hash."""
    code: str = require("plotly.offline", "tool").get_plotlyjs()
    return base64.b64encode(gzip.compress(code.encode("utf-8"), 9, mtime=0)).decode("ascii"), _hash(code)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}"
