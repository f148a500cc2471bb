"""Write the costs in `docs/scaling_out.md` from the lines that three benchmarks left.

They are `benchmarks/engines.py` (scalers), `benchmarks/imputer_engines.py` (imputers) and `benchmarks/streaming.py`.

Run: python docs/make_engines.py. Text stays; what stands between `<!-- NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from make_results import fill

from evenly._support import write_text

DOCS = Path(__file__).parent
RUNS = DOCS / "results" / "engines.jsonl"
STREAMED = DOCS / "results" / "streaming.jsonl"
IMPUTED = DOCS / "results" / "imputer_engines.jsonl"
PAGE = DOCS / "scaling_out.md"
RIVAL = "StandardScaler"
GOALS = ((1_000_000_000, 12), (1_000_000, 1000), (1_000_000_000, 1000))
"""Rows and columns to project to."""
IN_MEMORY = "memory"
BILLION, CORES = 1_000_000_000, 64
"""What imputing is projected to: so many rows, on so many cores."""
Record = dict[str, Any]


def read(runs: Path = RUNS) -> list[Record]:
    """Return the recorded jobs."""
    return [json.loads(line) for line in runs.read_text(encoding="utf-8").splitlines()]


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def sizes(records: Sequence[Record]) -> list[tuple[int, int]]:
    """List the sizes that were measured, narrow ones first."""
    return sorted({(one["columns"], one["rows"]) for one in records})


def find(records: Sequence[Record], job: str, columns: int, rows: int) -> Record | None:
    """Return the record of a job at a size."""
    return next((one for one in records if (one["job"], one["columns"], one["rows"]) == (job, columns, rows)), None)


def seconds(record: Record) -> float:
    """Return how long a job took."""
    return float(record["fit"] + record["write"])


def costs(records: Sequence[Record]) -> str:
    """What was measured: time a million rows, memory, and both as ratios to the rival."""
    lines = []
    for columns, rows in sizes(records):
        rival = find(records, RIVAL, columns, rows)
        for one in records:
            if (one["columns"], one["rows"]) == (columns, rows) and rival is not None:
                millions = rows / 1e6
                lines.append(
                    [
                        f"{millions:g} M x {columns}",
                        one["job"],
                        str(one["features"]),
                        *(f"{one[part] / millions:.2f}" for part in ("fit", "write", "cpu")),
                        f"{seconds(one) / seconds(rival):.2f}",
                        f"{one['cpu'] / rival['cpu']:.2f}",
                        f"{one['peak'] / 2**20:.0f}",
                        f"{one['peak'] / rival['peak']:.2f}",
                    ]
                )
    header = ["table", "job", "features", "fit, s", "write, s", "processor, s"]
    return table([*header, "time / rival's", "processor / rival's", "peak, MiB", "peak / rival's"], lines)


def project(records: Sequence[Record], job: str, rows: int, columns: int) -> float | None:
    """Return the seconds that a job takes: a fixed part, and one a row that is a straight line in the columns.

    The first comes from the two sizes of the narrowest table, the other from the shortest table of another width.
    """
    own = {(one["columns"], one["rows"]): one for one in records if one["job"] == job}
    width = min((width for width, _ in own), default=0)
    short, *longer = sorted(length for narrow, length in own if narrow == width)
    if not longer:
        return None
    least, most = (seconds(own[width, length]) for length in (short, longer[-1]))
    a_row = (most - least) / (longer[-1] - short)
    fixed = max(least - a_row * short, 0.0)
    if columns != width:
        wider = [(other, length) for other, length in own if other > width]
        if not wider:
            return None
        other, length = min(wider)
        a_wide_row = (seconds(own[other, length]) - fixed) / length
        a_row += (a_wide_row - a_row) / (other - width) * (columns - width)
    return float(fixed + a_row * rows)


def duration(time: float | None) -> str:
    """Say how long something takes."""
    if time is None:
        return "not measured"
    return f"{time / 3600:.1f} h" if time >= 3600 else f"{time / 60:.0f} min" if time >= 90 else f"{time:.0f} s"


def projections(records: Sequence[Record]) -> str:
    """How cost grows with rows and columns, by job."""
    jobs = dict.fromkeys(one["job"] for one in records if one["job"] != RIVAL)
    lines = [[job, *(duration(project(records, job, *goal)) for goal in GOALS)] for job in jobs]
    return table(["job", *(f"{rows:,} rows x {columns}" for rows, columns in GOALS)], lines)


def streaming(record: Record) -> str:
    """How fast a table is trained on that does not fit into memory, beside one that does."""
    checked, memory, streamed = record["checked"], record["memory"], record["streamed"]
    hours = duration(1e9 / streamed["rate"])
    return (
        f"Error on hidden cells of a small table: {checked['error_streamed']:.4f} streamed, "
        f"{checked['error_in_memory']:.4f} in memory. On two cores with nothing else running, with "
        f"{streamed['rows']:,} rows of 12 columns, an epoch trains on {streamed['rate']:,.0f} rows per second, "
        f"{streamed['rate'] / memory['rate']:.2f} of the {memory['rate']:,.0f} in memory (on {memory['rows']:,} rows). "
        f"The peak is {streamed['peak_gib']:.2f} GiB, and the whole fit of one epoch takes "
        f"{streamed['seconds']:.0f} s. At that speed an epoch of a billion rows would take {hours}, in the same memory."
    )


def imputed(records: Sequence[Record]) -> str:
    """What imputing costs: rows a second and core, beside the same in memory, and how long a billion rows take."""
    lines = []
    for one in sorted(records, key=lambda one: one["rows"]):
        rate = one["rows"] / one["cpu"]
        rival = next((of for of in records if of["engine"] == IN_MEMORY and _same_table(of, one)), None)
        lines.append(
            [
                "in memory" if one["engine"] == IN_MEMORY else one["engine"],
                f"{one['rows'] * one['columns'] / 1e6:g} M",
                f"{one['incomplete'] / one['rows']:.0%}" if "incomplete" in one else "–",
                "yes" if one["killed"] else "no",
                f"{rate:,.0f}",
                "–" if rival is None else f"{one['cpu'] / rival['cpu']:.2f}",
                f"{one['peak'] / 2**20:,.0f}",
                f"{one['checked']:,}",
                duration(BILLION / rate / CORES),
            ]
        )
    header = ["engine", "cells", "rows with a gap", "a worker killed", "rows a second and core"]
    header += ["processor time / in memory's", "peak of a worker, MiB", "rows compared", f"10⁹ rows on {CORES} cores"]
    return table(header, lines)


def _same_table(one: Record, other: Record) -> bool:
    return all(one.get(name) == other.get(name) for name in ("rows", "columns", "gaps"))


def page(text: str, records: Sequence[Record], imputing: Sequence[Record]) -> str:
    """Return the page with its costs made again."""
    streamed = json.loads(STREAMED.read_text(encoding="utf-8").splitlines()[-1])
    made = {"engine costs": costs(records), "engine projections": projections(records)}
    return fill(text, made | {"imputer engines": imputed(imputing), "streaming": streaming(streamed)})


def main() -> None:
    """Write the page."""
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), read(), read(IMPUTED)))


if __name__ == "__main__":
    main()
