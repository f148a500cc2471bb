"""Environments of peers: a virtual environment for each, made when it is first needed, that runs a peer through files.

Packages of peers need other versions than evenly does, and than each other. They lie in `EVENLY_ENVIRONMENTS`, or in
`~/.cache/evenly/environments`; a folder's name has a hash of what is installed in it, so that another version gets a
folder of its own. `peer_worker.py` is what runs in them; it knows nothing of evenly.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
WORKER = Path(__file__).with_name("peer_worker.py")
LONGEST = 300
"""The most letters of a reason."""


class Failed(RuntimeError):
    """Why an environment could not be made, or a peer could not run in it: in one line."""


def environments_folder() -> Path:
    """Return the folder that holds all environments."""
    return Path(os.environ.get("EVENLY_ENVIRONMENTS") or Path.home() / ".cache" / "evenly" / "environments")


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Examples
    --------
    >>> Environment("numbers", ("numpy==2.0.0",)).folder.name
    'numbers-6a51ccde'
    """

    name: str
    packages: tuple[str, ...]
    """What pip installs."""

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        wanted = json.dumps([self.packages, sys.version_info[:2]])
        return environments_folder() / f"{self.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"

    def make(self) -> Path:
        """Make it, unless it is there; return its Python."""
        python = self.folder / "bin" / "python"
        complete = self.folder / "complete"
        if not complete.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            run([sys.executable, "-m", "venv", str(self.folder)], "venv")
            run([str(python), "-m", "pip", "install", "-q", *self.packages], "pip")
            complete.write_text("\n".join(self.packages) + "\n", encoding="utf-8")
        return python

    def impute(self, job: str, visible: Floats, settings: Mapping[str, Any]) -> tuple[list[Floats], dict[str, Any]]:
        """Let a function of the worker impute a table; return one or several tables, and its notes.

        Parameters
        ----------
        settings : mapping
            Plain JSON types.
        """
        python = self.make()
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "visible.npy", visible)
            (Path(folder) / "settings.json").write_text(json.dumps(dict(settings)), encoding="utf-8")
            run([str(python), str(WORKER), job, folder], self.name)
            notes = json.loads((Path(folder) / "notes.json").read_text(encoding="utf-8"))
            return list(np.load(Path(folder) / "filled.npy")), notes


def run(command: list[str], what: str) -> None:
    """Run a command, without the caller's Python path; raise `Failed` with the last line of its errors."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if made.returncode:
        lines = [line for line in made.stderr.strip().splitlines() if line.strip()]
        raise Failed(f"{what}: {(lines or [f'ended with {made.returncode}'])[-1]}"[:LONGEST])
