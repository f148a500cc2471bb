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
from evenly.report import formatting, sections
from evenly.report.charts import ChartList
from evenly.report.content import ReportInput, collect


def make_report(
    table: Any,
    *,
    filled: Any = None,
    imputer: Any = None,
    trial: Any = None,
    diagnosis: Any = None,
    comparison: Sequence[Sequence[Any]] | None = None,
    title: str = "",
    command: str = "",
    seed: int | None = None,
) -> str:
    """Return a report on a table as the text of one HTML file, which loads nothing from the network.

    Sections that nothing was given for are left out. The same arguments give the same text.

    Parameters
    ----------
    table : dataframe or array
        The table as given, with its missing cells. The report holds counts of its cells, not the cells.
    filled : dataframe or array, optional
        The same rows with imputed cells.
    imputer : Imputer, optional
        The fitted imputer: its settings, and its schema instead of an inferred one.
    trial : Trial, optional
        Errors on cells that were hidden, imputed and scored.
    diagnosis : Diagnosis, optional
        Which columns are learned and which are overlooked.
    comparison : sequence of (name, error, baseline, seconds), optional
        Candidates compared on the same hidden cells.
    title, command : str
        The heading, and the command that makes this report again.
    seed : int, optional
        By default the imputer's.

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
    return _render(ReportInput(table, filled, imputer, trial, diagnosis, comparison, title, command, seed))


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
    templates.globals |= {name: getattr(sections, name) for name in ("mean_of", "name_some", "summarize", "whiskers")}
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
