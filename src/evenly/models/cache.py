"""The persistent compilation cache: JAX keeps compiled programs on disk for later processes."""

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
"""Environment variable with the cache folder; `off` disables the cache."""
MOST_BYTES = 1 << 30
"""Beyond 1 GiB, the least recently used programs are deleted; with a limit, JAX also locks the folder for writing."""
LEAST_SECONDS = 0.05
"""Programs that compile faster than this are not cached."""


def keep_compiled() -> Path | None:
    """Enable JAX's compilation cache and return its folder.

    Returns None and changes nothing if the cache is disabled, already configured, or its folder is not writable.
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
    # A full disk, or an unfinished file of another process, costs a recompilation and nothing else.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache", UserWarning)
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": MOST_BYTES,
        "jax_persistent_cache_min_compile_time_secs": LEAST_SECONDS,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]  # JAX has no types here
    compilation_cache.reset_cache()  # JAX may have compiled something before the cache was enabled
    return folder


def _machine() -> str:
    """Return an identifier of the machine: home folders are shared by machines with different processors."""
    details = [jax.__version__, platform.machine(), platform.system()]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        details += [line for line in lines if line.startswith(("flags", "Features"))][:1]
    except OSError:
        details.append(platform.processor())
    return hashlib.sha256("\n".join(details).encode()).hexdigest()[:12]
