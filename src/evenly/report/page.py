"""The report: one HTML file that needs no network, with charts that a browser draws by Plotly."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from evenly._support import require, write_text
from evenly.report.charts import Charts
from evenly.report.facts import gather
from evenly.report.markup import escape, join, json_block, tag
from evenly.report.sections import write_sections, write_summary


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
    """Return a report on a table as the text of one HTML file, which loads nothing from anywhere.

    What is not given is left out. The same arguments give the same text.

    Parameters
    ----------
    table : dataframe or array
        The table as given, with its missing cells. The report holds counts of its cells, not the cells.
    filled : dataframe or array, optional
        The same rows with imputed cells.
    imputer : Imputer, optional
        The fitted imputer: its settings, and its schema in place of an inferred one.
    trial : Trial, optional
        Errors on cells that were hidden, imputed and scored.
    diagnosis : Diagnosis, optional
        Who is learned and who is overlooked.
    comparison : sequence of (name, error, baseline, seconds), optional
        What was compared on the same hidden cells.
    title, command : str
        The heading, and the command that makes this report again.
    seed : int, optional
        By default the imputer's.

    Examples
    --------
    >>> import numpy as np
    >>> page = make_report([[1.0, 5.0], [2.0, np.nan], [4.0, 7.0]], title="Three rows")
    >>> "<h1>Three rows</h1>" in page, "http-equiv" in page
    (True, True)
    >>> "1 cell of the table" in page, "Nothing was missing" in make_report([[1.0], [2.0]])
    (True, True)
    """
    facts = gather(
        table,
        filled=filled,
        imputer=imputer,
        trial=trial,
        diagnosis=diagnosis,
        comparison=comparison,
        title=title or "Report on a table",
        command=command,
        seed=seed,
    )
    drawn = Charts()
    sections = list(write_sections(facts, drawn))
    packed, plotly_hash = _plotly()
    script = f"\n{_asset('page.js')}"
    # Scripts run by their hash alone: a text of the table that became markup would still not run.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' '{plotly_hash}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    menu = [tag("a", section.title, href=f"#{section.anchor}") for section in sections]
    bodies = [
        tag(
            "section",
            tag("h2", s.title, id=f"{s.anchor}-title"),
            s.body,
            id=s.anchor,
            aria_labelledby=f"{s.anchor}-title",
        )
        for s in sections
    ]
    return Template(_asset("page.html")).substitute(
        policy=policy,
        title=escape(facts.title),
        style=_asset("style.css"),
        menu=join(menu),
        summary=write_summary(facts),
        sections=join(bodies),
        data=json_block(drawn.data),
        plotly=packed,
        script=script,
    )


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
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", [[1.0], [2.0]])
    ...     (Path(folder) / "report.html").stat().st_size < 6e6
    True
    """
    write_text(path, make_report(table, **parts))


def _asset(name: str) -> str:
    return (resources.files("evenly.report") / name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """Return Plotly's script, compressed to a third, and its hash."""
    code: str = require("plotly.offline", "tool").get_plotlyjs()
    return base64.b64encode(gzip.compress(code.encode("utf-8"), 9, mtime=0)).decode("ascii"), _hash(code)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}"
