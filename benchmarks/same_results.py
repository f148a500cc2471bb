"""Do the same tables, settings and seeds still give the same results? Twelve small cases, written down and compared.

    python benchmarks/same_results.py --out before.json          # on one commit
    python benchmarks/same_results.py --compare before.json      # on another

Each case gives digests of bytes (scales, imputed cells, files) beside a few numbers for the eye. Only public names are
used, so that the script runs on any commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenly

METHODS = ("std-none", "max-none", "iqr-none", "lip-none", "lip-bern", "std-gamma", "lip-gamma")


def digest(value: Any) -> str:
    """Return a digest of bytes, arrays, tables and texts."""
    if isinstance(value, pl.DataFrame):
        value = value.write_csv(float_precision=None)
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).tobytes()
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(value).hexdigest()[:16]


def table() -> pl.DataFrame:
    """Return the embedded table with one cell in seven missing, beside those that were."""
    heart = pl.DataFrame(evenly.load_heart())
    gone = np.random.default_rng(7).random(heart.shape) < 1 / 7
    return heart.with_columns(
        pl.when(pl.Series(~gone[:, j])).then(pl.col(name)).otherwise(None).alias(name)
        for j, name in enumerate(heart.columns)
    )


def imputer(model: str = "auto", method: str = "auto", **settings: Any) -> evenly.Imputer:
    """Return an imputer that trains for a moment."""
    own = {"epochs": 6, "hidden_size": 24, "n_networks": 2} | settings
    preset = own.pop("preset", None)
    estimate = own.pop("estimate", "mean")
    if hasattr(evenly, "Training"):
        sizes = {k: own.pop(k) for k in ("latent_size", "n_clusters", "hidden_size") if k in own}
        own = {"training": evenly.Training(sizes=sizes, **own)}
    return evenly.Imputer(model, method, preset=preset, estimate=estimate, random_state=3, **own)


def of_model(model: str, method: str = "auto", **settings: Any) -> Callable[[], dict[str, Any]]:
    """Return a case: a model fitted, its imputed cells, draws, intervals, and what it was told while training."""

    def case() -> dict[str, Any]:
        holes = table()
        fitted = imputer(model, method, **settings).fit(holes)
        low, high = fitted.interval(holes, 0.8)
        history = fitted.history_["log_likelihood"]
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(folder)
            again = evenly.Imputer.load(folder).transform(holes)
        full = fitted.transform(holes)
        return {
            "imputed": digest(full),
            "loaded": digest(again),
            "intervals": [digest(low), digest(high)],
            "draws": [digest(one) for one in fitted.sample(holes, 2)],
            "history": digest(np.array([history[name] for name in history])),
            "elbo": [float(x) for x in np.asarray(fitted.history_["elbo"])[-2:]],
            "baseline": digest({name: float(x) for name, x in fitted.baseline_.items()}),
        }

    return case


def scales() -> dict[str, Any]:
    """Every method, both bounds, on the embedded table."""
    found: dict[str, Any] = {}
    for method in METHODS:
        for bound in ("exact", "paper"):
            scaler = evenly.LipschitzScaler(method, bound=bound, random_state=1).fit(table())
            out = scaler.transform(table())
            found[f"{method} {bound}"] = [
                digest(np.asarray(scaler.summary_["scale"], float)),
                digest(pl.DataFrame(out)),
                digest(pl.DataFrame(scaler.inverse_transform(out))),
            ]
    return found


def all_methods() -> dict[str, Any]:
    """The mixture under every method, and the error of its hidden cells."""
    found: dict[str, Any] = {}
    for method in METHODS:
        fitted = imputer("mixture", method, epochs=3).fit(table())
        found[method] = digest(fitted.transform(table()))
    return found


def trials() -> dict[str, Any]:
    """Errors of hidden cells, the diagnosis, the chosen likelihoods."""
    trial = evenly.try_imputer(imputer(), table(), random_state=2).to_plain()
    trial.pop("seconds")
    found = evenly.diagnose(table(), methods=["std-none", "lip-gamma"], epochs=2, random_state=0).to_plain()
    text = re.sub(r'"seconds": [0-9.e+-]+', "", json.dumps(found, default=str))
    chosen = evenly.choose_likelihoods(table().select("age", "rest_bp", "cholesterol"))
    return {
        "error": trial["error"],
        "trial": digest(trial),
        "diagnosis": digest(text),
        "chosen": digest(str(chosen)),
    }


def engines() -> dict[str, Any]:
    """Scales of lazy frames, and files scaled to files."""
    found: dict[str, Any] = {}
    lazy = table().lazy()
    scaler = evenly.LipschitzScaler("lip-gamma", random_state=1).fit(lazy)
    found["lazy"] = digest(np.asarray(scaler.summary_["scale"], float))
    with tempfile.TemporaryDirectory() as folder:
        table().write_parquet(f"{folder}/a.parquet")
        for engine in ("polars", "duckdb"):
            evenly.scale_files(
                f"{folder}/a.parquet", f"{folder}/{engine}.parquet", evenly.LipschitzScaler("lip-none"), engine=engine
            )
            found[engine] = digest(pl.read_parquet(f"{folder}/{engine}.parquet"))
        fitted = imputer().fit(f"{folder}/a.parquet")
        fitted.transform_file(f"{folder}/a.parquet", f"{folder}/full.parquet")
        found["file"] = digest(pl.read_parquet(f"{folder}/full.parquet"))
    return found


def commands() -> dict[str, Any]:
    """What the command line writes: the table, the report's text, the lines on the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        table().write_csv(at / "survey.csv")
        call = (
            [sys.executable, "-m", "evenly.cli"]
            if (Path(evenly.__file__).parent / "cli/__main__.py").exists()
            else [
                sys.executable,
                "-c",
                "from evenly.cli import main; main()",
            ]
        )
        done = subprocess.run(
            [
                *call,
                "impute",
                "survey.csv",
                "--out",
                "full.csv",
                "--report",
                "report.html",
                "--epochs",
                "4",
                "--seed",
                "5",
                "--quiet",
            ],
            cwd=at,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        page = (at / "report.html").read_text()
        return {
            "table": digest((at / "full.csv").read_bytes()),
            "report": digest(visible(page)),
            "words": len(visible(page).split()),
            "printed": digest(re.sub(r"[0-9.]+ (s|ms|min)\b", "", done.stdout + done.stderr)),
        }


def visible(page: str) -> str:
    """Return a page's text without scripts, styles, times and the version."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    page = re.sub(r"<[^>]+>", " ", page).replace("&#39;", "&#x27;")  # two spellings of an apostrophe
    page = re.sub(r"\b[0-9.]+ (s|seconds|min|minutes)\b|20\d\d-\d\d-\d\d( \d\d:\d\d)?", "", page)
    return " ".join(page.split())


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "scaler, all methods": scales,
    "masked": of_model("auto"),
    "vae": of_model("vae"),
    "vae, masked training": of_model("vae", masked_training=True),
    "vae, paper": of_model("auto", preset="paper"),
    "mixture": of_model("mixture", n_draws=2),
    "factorization": of_model("factorization", "lip-bern"),
    "marginal": of_model("marginal", estimate="median"),
    "mixture, all methods": all_methods,
    "trials": trials,
    "engines and files": engines,
    "command line": commands,
}


def main() -> None:
    """Run the cases; write them down or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--case", action="append", choices=CASES)
    given = parser.parse_args()
    before = json.loads(given.compare.read_text()) if given.compare else {}
    found: dict[str, Any] = {}
    n_apart = 0
    for name in given.case or CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = json.loads(json.dumps(CASES[name]()))
        if before:
            apart = [key for key in found[name] if found[name][key] != before[name].get(key)]
            n_apart += bool(apart)
            print(f"{name:24}", "the same" if not apart else f"DIFFERS in {', '.join(apart)}", flush=True)
        else:
            print(f"{name:24}", digest(found[name]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(bool(n_apart))


if __name__ == "__main__":
    main()
