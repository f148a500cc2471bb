"""Would the tests notice? Deliberate faults, each in a copy of the source, against the tests of the touched area.

    python tests/faults.py [--only NAME ...] [--list]

The checkout is never changed. A fault counts as caught if a test fails with it that passes without it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKERS = "not more"
"""The tests that `make test` runs."""
LEAST_SHARE = 0.9
"""Of the faults that have to be caught: 18 of 20."""


@dataclass(frozen=True)
class Fault:
    """One thing done wrong: `old` occurs exactly once in `file`, below `src/evenly`, and becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Files of the touched area, below `tests`."""


FAULTS = [
    Fault(  # covariance of x and 1/x with the wrong sign
        "fisher-sign",
        "likelihoods/continuous.py",
        "mean**3 / shape, -mean / shape, corner)",
        "mean**3 / shape, mean / shape, corner)",
        ("likelihoods/test_likelihoods.py",),
    ),
    Fault(  # the baseline sees the cells that it is scored on
        "baseline-peeks",
        "metrics/errors.py",
        "visible = truth[~np.isnan(truth[:, j]) & ~hidden[:, j], j]",
        "visible = truth[~np.isnan(truth[:, j]), j]",
        ("metrics/test_metrics.py",),
    ),
    Fault(  # a class called `<script>` becomes markup
        "unescaped-class",
        "report/templates/macros.html",
        "<bdi>{{ row[0] }}</bdi>",
        "<bdi>{{ row[0] | safe }}</bdi>",
        ("report/test_report.py",),
    ),
    Fault(  # a row is lost where one batch ends and the next begins
        "row-between-batches",
        "imputation/transforming_files.py",
        "        rest = whole[at:]",
        "        rest = whole[at + 1 :]",
        ("imputation/test_streaming.py",),
    ),
    Fault(  # codes in the order of the numbers, not in that of the declared classes
        "class-order",
        "tables/cells.py",
        "codes = np.array([k for _, k in ordered] or [0], np.float64)",
        "codes = np.arange(max(len(ordered), 1), dtype=np.float64)",
        ("tables/test_schema.py", "scaling/test_scaler.py"),
    ),
    Fault(  # a column that passes through an engine's transform comes out as the first one
        "lost-column",
        "engines/expressions.py",
        'scaled.append(nw.col(f"x{j}"))',
        'scaled.append(nw.col("x0"))',
        ("engines/test_engines.py",),
    ),
    Fault(  # quantiles of x + shift instead of x
        "interval-shift",
        "predictive/numbers.py",
        "self.family.quantile(self._natural, level) - self.column.shift)",
        "self.family.quantile(self._natural, level))",
        ("predictive/test_predictive.py",),
    ),
    Fault(  # outputs of missing cells reach the formula, whose gradient may be no number
        "head-of-missing",
        "scaling/heads.py",
        "xp.where(there[..., None], raw[..., places], 0.0)",
        "raw[..., places] + xp.zeros_like(there[..., None] * 1.0)",
        ("scaling/test_heads.py",),
    ),
    Fault(
        "unscale-shift",
        "scaling/fitted.py",
        "values = np.where(values - column.shift < 0.0, 0.0, values - column.shift)",
        "values = np.where(values < 0.0, 0.0, values)",
        ("scaling/test_scaler.py",),
    ),
    Fault(
        "ignored-seed",
        "scaling/tricks.py",
        "np.random.Philox(key=[seed, key])",
        "np.random.Philox(key=[0, key])",
        ("scaling/test_tricks.py", "scaling/test_scaler.py"),
    ),
    Fault(  # the noise's mean stays in the rate
        "gamma-offset",
        "scaling/tricks.py",
        "return GAMMA.mean(natural) - OFFSET - NOISE_MEAN",
        "return GAMMA.mean(natural) - OFFSET",
        ("scaling/test_tricks.py",),
    ),
    Fault(  # whoever reads while a file is written sees half of it
        "written-in-place",
        "_support/files.py",
        "yield Path(temporary)\n        os.chmod(temporary, 0o666 & ~_umask())\n        os.replace(temporary, path)",
        "yield path\n        Path(temporary).unlink()",
        ("_support/test_files.py", "io/test_formats.py"),
    ),
    Fault(  # the error of a column that was never scored is a perfect 0
        "null-error",
        "_support/plain.py",
        'return float(f"{value:.{digits}g}") if math.isfinite(value) else None',
        'return float(f"{value:.{digits}g}") if math.isfinite(value) else 0.0',
        ("paper/test_sweep.py",),
    ),
    Fault(  # the variance between tables divided by n instead of n - 1
        "rubin-n",
        "imputation/rubin.py",
        "np.var(shifts / unit, 0, ddof=1)",
        "np.var(shifts / unit, 0, ddof=0)",
        ("imputation/test_pooling.py",),
    ),
    Fault(  # two parts of a column, each with the other's weight
        "merged-weights",
        "scaling/statistics.py",
        "self.means + (means - self.means) * (other.n / n))",
        "self.means + (means - self.means) * (self.n / n))",
        ("scaling/test_statistics.py", "scaling/test_merging.py"),
    ),
    Fault(  # the commonest marker of UCI's files becomes a class
        "marker-lost",
        "tables/profile.py",
        'MISSING_MARKERS = ("", "?", "NA",',
        'MISSING_MARKERS = ("", "NA",',
        ("tables/test_schema.py", "tables/test_inspection.py"),
    ),
    Fault(  # two quotes within a cell are two quotes
        "csv-quote",
        "io/delimited.py",
        "reader = csv.reader(lines, delimiter=dialect.delimiter)",
        "reader = csv.reader(lines, delimiter=dialect.delimiter, doublequote=False)",
        ("io/test_formats.py",),
    ),
    Fault(  # ordered categories lose their order
        "ordinal-unordered",
        "tables/kind_inference.py",
        "if cells.ordered and n <= MOST_SINGLE:",
        "if False:",
        ("tables/test_schema.py",),
    ),
    Fault(  # blocks of classes that no column uses take part in the gradient of the first
        "padding-learns",
        "models/wiring.py",
        "first = np.full(sizes.blocks, -BLOCK, np.int32)",
        "first = np.full(sizes.blocks, 0, np.int32)",
        ("models/test_models.py",),
    ),
    Fault(  # the network sees the cells that it is to predict
        "hidden-cells-seen",
        "models/masked.py",
        "output = self._hidden(shared, data.inputs, visible, numbers[:, :n_drops])",
        "output = self._hidden(shared, data.inputs, data.mask, numbers[:, :n_drops])",
        ("models/test_masked.py",),
    ),
    Fault(  # validation cells are trained on, so that their score rises for ever
        "held-out-trained",
        "imputation/fitting.py",
        "shown = shown._replace(mask=without(data.mask, held))",
        "shown = shown._replace(mask=data.mask)",
        ("imputation/test_fitting.py",),
    ),
    Fault(  # predictions of a number keep the scale that they were learned in
        "unit-lost",
        "imputation/columns/binned.py",
        "away = normal / (self.scale * self.std)",
        "away = normal / self.std",
        ("imputation/test_columns.py", "imputation/test_calibration_choice.py"),
    ),
    Fault(  # what is drawn for a cell is written over observed ones
        "observed-overwritten",
        "imputation/filling.py",
        "gone, fitted = one.missing & ~np.isnan(values), one.fitted",
        "gone, fitted = ~np.isnan(values), one.fitted",
        ("imputation/test_imputer.py",),
    ),
]


@dataclass(frozen=True)
class Found:
    """What the tests found of a fault."""

    fault: Fault
    test: str
    """The first that failed; empty if none did."""
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Inject faults into copies of the source and count those that tests catch."
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults only")
    parser.add_argument("--list", action="store_true", help="list the faults and stop")
    arguments = parser.parse_args()
    names = [fault.name for fault in FAULTS]
    if len(set(names)) < len(names):
        parser.error("two faults have the same name")
    for name in arguments.only or ():
        if name not in names:
            parser.error(f"no fault {name!r}; there are {', '.join(names)}")
    chosen = [fault for fault in FAULTS if not arguments.only or fault.name in arguments.only]
    changed = {fault.name: faulty_text(fault) for fault in chosen}  # all of them, before the first test runs
    if arguments.list:
        for fault in chosen:
            print(f"{fault.name:20}  {fault.file:32}  {' '.join(fault.tests)}")
        return 0
    found = []
    for fault in chosen:
        found.append(inject(fault, changed[fault.name]))
        print(as_line(found[-1]), flush=True)
    caught = sum(bool(one.test) for one in found)
    print(f"\n{'fault':20}  {'file':32}  {'':10}  {'time':>6}  first test to fail")
    print("\n".join(map(as_line, found)))
    print(f"{caught} of {len(found)} caught")
    return int(caught < LEAST_SHARE * len(found))


def as_line(one: Found) -> str:
    outcome = "caught" if one.test else "NOT CAUGHT"
    return f"{one.fault.name:20}  {one.fault.file:32}  {outcome:10}  {one.seconds:4.0f} s  {one.test}".rstrip()


def faulty_text(fault: Fault) -> str:
    """Return the file with the fault in it; refuse one that no longer fits the source or the tests."""
    text = (ROOT / "src" / "evenly" / fault.file).read_text(encoding="utf-8")
    if (n := text.count(fault.old)) != 1:
        sys.exit(
            f"{fault.name}: expected its old text once in src/evenly/{fault.file}, found it {n} times:\n{fault.old}"
        )
    for test in fault.tests:
        if not (ROOT / "tests" / test).is_file():
            sys.exit(f"{fault.name}: no file tests/{test}")
    return text.replace(fault.old, fault.new)


def inject(fault: Fault, text: str) -> Found:
    """Run the tests of a fault's area on a copy of the source that has it."""
    with tempfile.TemporaryDirectory(prefix="evenly-fault-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / "evenly" / fault.file).write_text(text, encoding="utf-8")
        began = time.perf_counter()
        done = run_tests(source, Path(folder), fault.tests, "-x")
        seconds = time.perf_counter() - began
        if done.returncode == 0:
            return Found(fault, "", seconds)
        failed = json.loads((Path(folder) / "cache" / "v" / "cache" / "lastfailed").read_text())
        shutil.copy2(ROOT / "src" / "evenly" / fault.file, source / "evenly" / fault.file)
        without = run_tests(source, Path(folder), fault.tests, "--last-failed")
        if without.returncode:
            sys.exit(f"{fault.name}: tests fail without it, too:\n{without.stdout[-3000:]}{without.stderr[-3000:]}")
        return Found(fault, next(iter(failed)).removeprefix("tests/"), seconds)


def run_tests(source: Path, folder: Path, tests: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    """Run test files on a source; whatever else than passed or failed tests comes of it ends the script."""
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    where = [sys.executable, "-c", "import evenly; print(evenly.__file__)"]
    used = subprocess.run(where, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if not used.stdout.startswith(str(source)):
        sys.exit(f"the tests would not run on the copy but on {used.stdout or used.stderr}")
    files = [f"tests/{test}" for test in tests]
    command = [sys.executable, "-m", "pytest", "-m", MARKERS, "-o", f"cache_dir={folder / 'cache'}", *options, *files]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


if __name__ == "__main__":
    sys.exit(main())
