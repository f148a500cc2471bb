"""Compiled programs are kept on disk, by JAX, so that the next process need not compile them again."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
import warnings
from pathlib import Path

import jax
import platformdirs
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "EVENLY_CACHE"
"""The environment variable that names the folder; `off`, and nothing is kept."""
MOST_BYTES = 1 << 30
"""What was not used for longest goes when there is more; with a limit, JAX also locks the folder while it writes."""
LEAST_SECONDS = 0.05
"""What compiles faster is not worth a file."""


def keep_compiled() -> Path | None:
    """Let JAX keep what it compiles, unless it was told where, or not to; returns the folder.

    A folder that cannot be written is done without.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() in ("off", "0", "no") or jax.config.values["jax_compilation_cache_dir"]:
        return None
    folder = Path(wanted or platformdirs.user_cache_dir("evenly")) / "compiled" / _machine()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    # A full disk, or a file that another process did not finish, costs a compilation and nothing else.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache", UserWarning)
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": MOST_BYTES,
        "jax_persistent_cache_min_compile_time_secs": LEAST_SECONDS,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]  # JAX has no types here
    compilation_cache.reset_cache()  # something may have been compiled before, when nothing was kept
    return folder


def _machine() -> str:
    """Name what a compiled program runs on: homes are shared by machines whose processors differ."""
    facts = [jax.__version__, platform.machine(), platform.system()]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts += [line for line in lines if line.startswith(("flags", "Features"))][:1]
    except OSError:
        facts.append(platform.processor())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
