"""What several test files share."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings
from model_data import collect_compilations
from sizes import FULL

from evenly.likelihoods.base import Likelihood, Support
from evenly.likelihoods.custom import define_likelihood

pytest.register_assert_rewrite("commands")

settings.register_profile("few", max_examples=FULL // 5, deadline=None)
settings.register_profile("more", max_examples=FULL, deadline=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "few")
settings.load_profile(PROFILE)


COMPILED: list[float] = []
"""How long each compilation since the last report took."""


def pytest_configure(config: pytest.Config) -> None:
    """Share what one worker or command has compiled with all others: compiling is most of the tests' time."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.rootpath / ".pytest_cache" / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    # XLA's older way to emit loops takes 0.6 of the time to compile; the numbers are the same, up to rounding.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
    if config.getoption("--compilations"):
        collect_compilations(COMPILED)
    if not hasattr(config, "workerinput"):
        note_that_arviz_warned()


def note_that_arviz_warned() -> None:
    """Make ArviZ's note of its daily warning: workers that import it at once would each move one into place."""
    if find_spec("arviz") is None or find_spec("platformdirs") is None:
        return
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("arviz", "arviz"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "daily_warning").write_text(datetime.date.today().isoformat())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that shows where models are compiled."""
    parser.addoption("--compilations", action="store_true", help="count compilations, and show them by file")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add to every report what was compiled since the last one, fixtures included."""
    outcome = yield
    if COMPILED:
        outcome.get_result().user_properties.append(("compilations", [*COMPILED]))
        COMPILED.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the compilations of each file: how many, and seconds; with the seconds of all of its tests."""
    if not config.getoption("--compilations"):
        return
    files: dict[str, list[float]] = {}
    for reports in terminalreporter.stats.values():
        for one in reports:
            if isinstance(one, pytest.TestReport):
                took = files.setdefault(one.nodeid.partition("::")[0], [0, 0.0, 0.0])
                mine = [seconds for name, some in one.user_properties if name == "compilations" for seconds in some]
                took[:] = took[0] + len(mine), took[1] + sum(mine), took[2] + one.duration
    terminalreporter.section("compilations, their seconds, all seconds")
    for name, (n, compiling, all_of_it) in sorted(files.items(), key=lambda item: -item[1][2]):
        terminalreporter.write_line(f"{n:5.0f} {compiling:7.1f} {all_of_it:7.1f}  {name}")


LONG_PAGES = (
    "README.md",
    "balancing.md",
    "diagnosis.md",
    "five_minutes.md",
    "how_it_works.md",
    "imputer.md",
    "multiple_imputation.md",
    "programs.md",
    "scaling_out.md",
)
"""Pages whose examples train models. `test_examples.py` runs them in every environment, so `make test-more` leaves them
out here; `pytest docs/imputer.md` runs one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run tests whose size depends on the profile in `make test` and, at full size, in `make test-more`."""
    long = [item for item in items if item.path.name in LONG_PAGES]
    if PROFILE != "more":
        for item in long:
            item.add_marker("more")
        return
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)) or item.get_closest_marker("sized"):
            item.add_marker("more")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of the six UCI data sets: EVENLY_DATA, or else `../shared/uci`, beside the checkout.

    They are no part of the project, so tests that need them are skipped where they are not.
    """
    beside = Path(__file__).parents[2] / "shared" / "uci"
    folder = Path(os.environ.get("EVENLY_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}: set EVENLY_DATA to the folder that has adult/data.csv")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java 17")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where its workers find Evenly
    # A task may fail once. Small tables: compiling a query's Java costs more than running it.
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    session = SparkSession.builder.master("local[1,2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def pareto() -> Likelihood:
    """A user's Pareto from 1 on: its logarithm is exponential, and a power of x scales that."""
    pytest.importorskip("jax")
    return define_likelihood(
        "pareto",
        support=Support(1.0),
        statistics=lambda x, xp: (xp.log(x),),
        log_base=lambda x, xp: -xp.log(x),
        log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
        factors=lambda scale, xp: (scale,),
        scale_data=lambda x, scale, xp: x**scale,
    )
