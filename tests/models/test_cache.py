"""Compiled programs on disk: where they go, who decides it, and what happens if they cannot be kept."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import platformdirs
import pytest
from jax.experimental.compilation_cache import compilation_cache

from evenly.models.cache import keep_compiled

NAMES = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
)


@pytest.fixture
def nothing_set(monkeypatch):
    """JAX before anybody has set where it keeps what it compiles."""
    before = {name: getattr(jax.config, name) for name in NAMES}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.delenv("EVENLY_CACHE", raising=False)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def compiled_files(folder):
    return [one for one in folder.rglob("*-cache") if one.is_file()]


def test_programs_are_kept_in_the_folder_that_the_variable_names(nothing_set, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path))
    monkeypatch.setattr("evenly.models.cache.LEAST_SECONDS", 0.0)
    assert tmp_path in keep_compiled().parents
    jax.jit(lambda x: x * 3.0 + 14.0)(1.0)
    assert len(compiled_files(tmp_path)) == 1


def test_by_default_it_is_the_users_cache_folder(nothing_set, tmp_path, monkeypatch):
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    assert tmp_path / "evenly" in keep_compiled().parents


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_it_can_be_turned_off(nothing_set, word, monkeypatch):
    monkeypatch.setenv("EVENLY_CACHE", word)
    assert keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_of_jaxs_own_is_left_alone(nothing_set, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    assert keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir == str(tmp_path)


def test_without_a_folder_that_can_be_written_nothing_is_kept(nothing_set, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path / "file"))
    assert keep_compiled() is None
    assert float(jax.jit(lambda x: x * 3.0 + 15.0)(1.0)) == 18.0


def test_a_damaged_file_costs_a_compilation_and_nothing_else(nothing_set, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path))
    monkeypatch.setattr("evenly.models.cache.LEAST_SECONDS", 0.0)
    keep_compiled()
    assert float(jax.jit(lambda x: x * 3.0 + 16.0)(1.0)) == 19.0
    for file in compiled_files(tmp_path):
        file.write_bytes(b"half a fi")
    jax.clear_caches()
    assert float(jax.jit(lambda x: x * 3.0 + 16.0)(1.0)) == 19.0


@pytest.mark.more
def test_several_processes_may_share_it(tmp_path):
    """Three at once, from an empty folder; then one that compiles nothing but what is too quick to keep."""
    code = (
        "import sys, numpy as np, jax; from evenly import Imputer, Training\n"
        "took = []\n"
        "jax.monitoring.register_event_duration_secs_listener(\n"
        "    lambda name, seconds, **_: took.append(name) if name.endswith('cache_retrieval_time_sec') else None)\n"
        "x = np.random.default_rng(0).normal(size=(80, 2)); x[0, 0] = np.nan\n"
        "small = Training(epochs=1, n_networks=1, sizes={'hidden_size': 4})\n"
        "full = Imputer(training=small, random_state=0).fit_transform(x)\n"
        "print(len(took), full[0, 0])"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment["EVENLY_CACHE"] = str(tmp_path)

    def start():
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    outputs = [one.communicate() for one in [start() for _ in range(3)]]
    outputs.append(start().communicate())
    assert [err for _, err in outputs] == [""] * 4
    assert len({out.split()[1] for out, _ in outputs}) == 1
    assert int(outputs[-1][0].split()[0]) >= 1
