"""Records, one for each run: written, read and packed. Without JAX."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenly._support import EvenlyWarning, TableError, to_plain, write_text

REVISION = 2
"""Raised when a change to models, scaling, recovery or metrics changes recorded numbers. A run whose only record has
another revision is made again, and tables never mix revisions."""


@dataclass(frozen=True, order=True)
class Run:
    """One cell of the grid: which table, which of its cells are hidden, and what is trained on the others."""

    dataset: str
    percent: int
    mask: int
    model: str
    method: str
    seed: int
    epochs: int
    optimizer: Literal["adam", "sgd"] = "adam"
    """As in `Training`; the rate of gradient descent is tuned on validation cells."""
    preset: Literal["paper", "paper-plus"] = "paper"

    @property
    def name(self) -> str:
        """A unique name: that of its record's file; the paper's optimizer and preset are left out."""
        *usual, optimizer, preset = asdict(self).values()
        others = [one for one, default in ((optimizer, "adam"), (preset, "paper")) if one != default]
        return "_".join(map(str, (*usual, *others)))


def heading(run: Run) -> dict[str, Any]:
    """Return the fields that every record begins with."""
    return {"run": asdict(run), "revision": REVISION}


def is_current(record: Mapping[str, Any], revision: int | None = None) -> bool:
    """Whether a record's numbers may stand beside those that are computed now; the first ones have no revision."""
    return bool(record.get("revision", 1) == (REVISION if revision is None else revision))


def to_text(record: Mapping[str, Any]) -> str:
    """Return a record as one line of JSON; numbers keep six significant digits, NaN and infinity are null."""
    return json.dumps(to_plain(record, digits=6), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_records(*places: str | Path, revision: int | None = None) -> list[dict[str, Any]]:
    """Read records from folders (one a file) and from files (one a line); of equal runs, the first finished one.

    Those of another revision than the current one, or the given one, are left out, with a warning if a run has no
    other.
    """
    found: dict[str, dict[str, Any]] = {}
    others: dict[str, Any] = {}
    for place in map(Path, places):
        if not place.exists():
            raise TableError(f"{place}", "expected a folder or a file of records", "run `evenly paper run` first")
        for file in sorted(place.glob("*.json")) if place.is_dir() else [place]:
            for name, record in _read_file(file):
                if not is_current(record, revision):
                    others[name] = record.get("revision", 1)
                elif name not in found or ("failed" in found[name] and "failed" not in record):
                    found[name] = record
    left_out = [revision for name, revision in others.items() if name not in found]
    if left_out:
        known = ", ".join(sorted({str(one) for one in left_out}))
        warnings.warn(
            f"the records of {len(left_out)} runs are of revision {known} and not counted: revision "
            f"{revision or REVISION} computes other numbers; `evenly paper run` makes these runs again",
            EvenlyWarning,
            stacklevel=2,
        )
    return list(found.values())


def _read_file(file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of a file, each with the name of its run."""
    try:
        # Not splitlines: JSON texts may hold characters that it takes for the end of a line.
        lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise TableError(f"{file}: {error!r}", "expected records of runs") from error
    found = []
    for i, line in enumerate(lines, 1):
        try:
            record = json.loads(line.decode("utf-8"))
            found.append((Run(**record["run"]).name, record))
        except (ValueError, KeyError, TypeError) as error:
            alone = len(lines) == 1
            raise TableError(
                f"{file}{'' if alone else f', line {i}'}: {error!r}",
                "expected a record of a run",
                f"remove {'it' if alone else 'this line'}: the run is then made again",
            ) from error
    return found


def is_recorded(file: Path) -> bool:
    """Whether a file holds a record that counts."""
    return file.exists() and any(is_current(record) for _, record in _read_file(file))


def has_failed(file: Path) -> bool:
    """Whether a file holds the record of a run that failed."""
    return file.exists() and any("failed" in record for _, record in _read_file(file))


def pack_records(out: str | Path, *places: str | Path) -> list[dict[str, Any]]:
    """Write all records to one compact file; returns them.

    Those of runs that failed are among them, so that tables can say what they leave out.
    """
    records = read_records(*places)
    if not records:
        raise TableError("no record of a run", "expected some", "run `evenly paper run` first")
    records.sort(key=lambda one: Run(**one["run"]))
    try:
        write_text(out, "".join(to_text(one) + "\n" for one in records))
    except OSError as error:
        raise TableError(f"{out}", f"expected a file that can be written to ({error.strerror})") from None
    return records


def describe_record(record: Mapping[str, Any]) -> str:
    """Return one line about a record."""
    run = Run(**record["run"])
    name = f"{run.dataset} {run.percent} % mask {run.mask} {run.model} {run.method}"
    if "failed" in record:
        return f"{name}: FAILED: {record['failed']}"
    honest, baseline = (np.array(record[key], np.float64) for key in ("honest", "mean_or_mode"))
    seconds = record["seconds"]["fit"] + record["seconds"]["predict"]
    return f"{name}: honest error {np.nanmean(honest):.3f} (mean or mode {np.nanmean(baseline):.3f}), {seconds:.0f} s"
