"""Which method and which noise should a scaler have by default? Classifiers in Pipelines, and a mixture of one's own.

    python benchmarks/default_method.py [--data DIR] [--rows 600] [--only mixture] [--out FILE]

First the answer is checked: which preprocessings give a row the same features alone and in a batch. Then classifiers
are cross-validated behind each of them, on the embedded table and, with --data, on three of UCI, with log-losses
relative to those behind OneHotEncoder and StandardScaler. Last, a mixture of two clusters is fitted by expectation
maximization (EM) to scaled features, and its parameters are compared with those that the data were drawn from; and
the paper's models impute hidden cells of the same data. FILE gets a line for each result.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenly import EvenlyWarning, Imputer, LipschitzScaler, Schema, Training, infer_schema, load_heart
from evenly.likelihoods import GAMMA
from evenly.paper.datasets import as_table, load_dataset, schema
from evenly.scaling import NOISE_A, NOISE_B

Floats = npt.NDArray[np.float64]
Record = dict[str, Any]

RIVAL = "one-hot, standardized"
TARGETS = {"adult": "sex", "credit": "default", "wine": "color"}
CLASSIFIERS = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "15 neighbours": KNeighborsClassifier(15),
    "network": MLPClassifier((32,), alpha=0.1, max_iter=150, random_state=0),
}
ROW_ALONE = {"lip-gamma, mean": True, "lip-gamma, drawn": False, "lip-gamma, by content": True}
"""What is claimed of a row's features; of all others, that they depend on the row alone."""


# --- Pipelines ----------------------------------------------------------------------------------------------------


class ByContent(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Draws the Gamma trick's noise by a hash of each row's cells."""

    def __init__(self, columns: Schema | None = None) -> None:
        self.columns = columns

    def fit(self, table: pd.DataFrame, y: Any = None) -> ByContent:
        self.scaler_ = LipschitzScaler(schema=self.columns, random_state=0).fit(table)
        return self

    def transform(self, table: pd.DataFrame) -> Any:
        keys = pd.util.hash_pandas_object(table, index=False).to_numpy() >> np.uint64(1)
        return self.scaler_.transform(table.assign(key_=keys.astype(np.int64)), key="key_")


def preprocessings(columns: Schema) -> dict[str, Any]:
    """Return what is compared, by name; the rival comes last."""
    classes = [one.name for one in columns.columns if one.has_classes]
    found: dict[str, Any] = {
        f"lip-gamma, {noise}": LipschitzScaler(schema=columns, noise=noise, random_state=0)
        for noise in ("mean", "drawn")
    }
    found["lip-gamma, by content"] = ByContent(columns)
    found["lip-gamma, standardized"] = make_pipeline(LipschitzScaler(schema=columns), StandardScaler())
    found |= {method: LipschitzScaler(method, schema=columns) for method in ("lip-bern", "lip-none", "std-none")}
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    found[RIVAL] = make_column_transformer((one_hot, classes), remainder=StandardScaler())
    return found


def load(name: str, folder: str | None, n_rows: int) -> tuple[pd.DataFrame, Any, Schema]:
    """Return a table without its target, the target, and the schema of the table."""
    if name == "heart":
        table, target = load_heart().dropna(), "disease"
        columns = infer_schema(table).columns
    else:
        data, target = load_dataset(name, folder), TARGETS[name]
        table = as_table(data).to_pandas().dropna()
        columns = schema(data).columns
    table = table.sample(min(n_rows, len(table)), random_state=0).reset_index(drop=True)
    return table.drop(columns=target), table[target], Schema(columns=[one for one in columns if one.name != target])


def compare(name: str, folder: str | None, n_rows: int) -> list[Record]:
    """Cross-validate classifiers behind each preprocessing of a table, and return a record of each."""
    table, truth, columns = load(name, folder, n_rows)
    single = [table.iloc[[i]] for i in range(0, len(table), max(len(table) // 30, 1))]
    where = [int(one.index[0]) for one in single]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found: list[Record] = []
    for what, made in preprocessings(columns).items():
        scaled = clone(made).fit(table)
        whole = np.asarray(scaled.transform(table), float)
        alone = np.concatenate([np.asarray(scaled.transform(one), float) for one in single])
        same = bool(np.allclose(alone, whole[where], rtol=1e-12, atol=0.0))
        assert same == ROW_ALONE.get(what, True), f"{what}: a row's features are {'' if same else 'not '}its own"
        for classifier, model in CLASSIFIERS.items():
            pipeline = make_pipeline(clone(made), clone(model))
            predicted = cross_val_predict(pipeline, table, truth, cv=folds, method="predict_proba")
            labels = np.unique(truth)
            loss, right = log_loss(truth, predicted, labels=labels), accuracy_score(truth, labels[predicted.argmax(1)])
            pipeline.fit(table, truth)
            apart = np.concatenate([pipeline.predict_proba(one) for one in single])
            moved = float(np.abs(apart - pipeline.predict_proba(table)[where]).max())
            scores = {"accuracy": float(right), "log_loss": float(loss), "moved": moved}
            found.append({"part": "pipelines", "table": name, "rows": len(table), "preparation": what})
            found[-1] |= {"classifier": classifier, **scores}
    show_comparison(found)
    return found


def show_comparison(found: Sequence[Record]) -> None:
    """Print what was found on one table."""
    rival = {one["classifier"]: one["log_loss"] for one in found if one["preparation"] == RIVAL}
    print(f"\n{found[0]['table']}, {found[0]['rows']} rows: accuracy, log-loss and its ratio to the rival's; how far")
    print("the probabilities of a row alone are from those of the row in the whole table, at most")
    for one in found:
        ratio = f"{one['log_loss'] / rival[one['classifier']]:6.2f} x"
        name = f"{one['preparation']:24} {one['classifier']:20}"
        print(f"{name} {one['accuracy']:.3f}  {one['log_loss']:.3f} {ratio}  {one['moved']:.3f}")


# --- a mixture -----------------------------------------------------------------------------------------------------

MEANS, STD, SHARES = (120.0, 150.0), 12.0, (0.2, 0.7)
"""Of the two groups: their blood pressure, and how many of them smoke."""
NOISE_VARIANCE = NOISE_A * NOISE_B / ((NOISE_A + NOISE_B) ** 2 * (NOISE_A + NOISE_B + 1.0))


@dataclass(frozen=True)
class Remedy:
    """A change to EM: how the gamma of the yes/no column is fitted, or how much its log-likelihood counts."""

    method: str
    noise: Literal["mean", "drawn"] = "drawn"
    fit: Callable[[Floats, LipschitzScaler], Floats] | None = None
    weighted: bool = False


def draw_patients(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Return the blood pressure and the habit of patients of two groups, and which group each is of."""
    second = rng.random(n) < 0.5
    pressure = rng.normal(np.where(second, MEANS[1], MEANS[0]), STD)
    smoker = rng.random(n) < np.where(second, SHARES[1], SHARES[0])
    return pd.DataFrame({"pressure": pressure, "smoker": smoker}), second


def own_shape(mean: Floats, scaler: LipschitzScaler) -> Floats:
    """Fit gammas of the whole column's shape: only their mean is free."""
    shape = scaler.natural_["smoker"][0] + 1.0
    return np.stack([np.full(len(mean), shape - 1.0), -shape / mean[:, 1]], axis=-1)


def floored(factor: float) -> Callable[[Floats, LipschitzScaler], Floats]:
    """Fit gammas whose variance is at least a multiple of the noise's own."""

    def fit(mean: Floats, scaler: LipschitzScaler) -> Floats:
        least = factor * NOISE_VARIANCE * float(scaler.summary_["scale"][1]) ** 2
        natural = np.asarray(GAMMA.fit(mean))
        variance = np.nan_to_num((natural[:, 0] + 1.0) / natural[:, 1] ** 2)
        shape = mean[:, 1] ** 2 / np.maximum(variance, least)
        return np.stack([shape - 1.0, -shape / mean[:, 1]], axis=-1)

    return fit


REMEDIES = {
    "lip-none": Remedy("lip-none"),
    "lip-bern": Remedy("lip-bern"),
    "std-none": Remedy("std-none"),
    "std-gamma": Remedy("std-gamma"),
    "lip-gamma": Remedy("lip-gamma"),
    "lip-gamma, variance at least the noise's": Remedy("lip-gamma", fit=floored(1.0)),
    "lip-gamma, at least 100 times that": Remedy("lip-gamma", fit=floored(100.0)),
    "lip-gamma, the column's own shape": Remedy("lip-gamma", fit=own_shape),
    "lip-gamma, mean, the column's own shape": Remedy("lip-gamma", "mean", fit=own_shape),
    "lip-none, weighted to equal smoothness": Remedy("lip-none", weighted=True),
}


def fit_mixture(
    table: pd.DataFrame, remedy: Remedy, starts: Sequence[Floats]
) -> tuple[LipschitzScaler, list[Floats], float]:
    """Return the natural parameters of both clusters by feature, the best of several starts, and its log-likelihood."""
    scaler = LipschitzScaler(remedy.method, kinds={"pressure": "real"}, noise=remedy.noise, random_state=0).fit(table)
    cells = np.asarray(scaler.transform(table), float).T
    families = [column.features[0].likelihood for column in scaler.columns_]
    statistics = [family.statistics(x) for family, x in zip(families, cells, strict=True)]
    weights = list(scaler.balance_weights().values()) if remedy.weighted else [1.0, 1.0]
    best: tuple[float, list[Floats]] = (-np.inf, [])
    for start in starts:
        share = start
        for _ in range(300):
            log_joint, naturals = np.log(share.mean(0)) + np.zeros_like(share), []
            for family, x, terms, weight in zip(families, cells, statistics, weights, strict=True):
                mean = share.T @ terms / share.sum(0)[:, None]
                own = remedy.fit is not None and family is GAMMA
                naturals.append(remedy.fit(mean, scaler) if own and remedy.fit else np.asarray(family.fit(mean)))
                log_joint += weight * np.stack([family.log_density(x, one) for one in naturals[-1]], axis=-1)
            total = np.logaddexp.reduce(log_joint, axis=1)
            share = np.exp(log_joint - total[:, None])
        if total.sum() > best[0]:
            best = float(total.sum()), naturals
    return scaler, best[1], best[0]


def recover_clusters(seed: int, n: int) -> list[Record]:
    """Fit the mixture under each method and remedy, and print and return what became of the truth."""
    rng = np.random.default_rng(seed)
    table, second = draw_patients(n, rng)
    starts = [np.where(second[:, None], [0.1, 0.9], [0.9, 0.1]), *(rng.dirichlet([1.0, 1.0], n) for _ in range(4))]
    print(f"\nTwo clusters of {n} patients: the mean of `pressure`, its standard deviation, the share of smokers")
    print("truth: 120 (12) 0.20, 150 (12) 0.70; EM, the best of five starts, one of them at the truth")
    found: list[Record] = []
    for what, remedy in REMEDIES.items():
        with np.errstate(all="ignore"):
            scaler, naturals, _ = fit_mixture(table, remedy, starts)
        usual = scaler.unscale(dict(zip(scaler.get_feature_names_out(), naturals, strict=True)))
        clusters = np.column_stack([*usual["pressure"].values(), usual["smoker"]["probability"]])
        clusters = clusters[clusters[:, 0].argsort()]
        shown = ", ".join(f"{mean:.0f} ({std:.0f}) {share:.2f}" for mean, std, share in clusters)
        error = float(np.abs(clusters[:, 2] - SHARES).max())
        found.append({"part": "mixture", "rows": n, "remedy": what, "clusters": clusters.tolist(), "error": error})
        print(f"{what:42} {shown}   error of the shares {error / found[0]['error']:5.1f} x lip-none's")
    return found


# --- the paper's models --------------------------------------------------------------------------------------------

TRAININGS = {
    "mixture": Training(epochs=1000, learning_rate=1e-2, sizes={"n_clusters": 2}),
    "vae": Training(epochs=200, learning_rate=3e-3),
}
"""Longer steps than the paper's, so that two columns are learned in some seconds; the factorization does not."""


def try_models(seed: int, n: int) -> list[Record]:
    """Hide cells of the patients, and compare what the paper's models say of them with what the truth would say."""
    rng = np.random.default_rng(seed)
    table, _ = draw_patients(n, rng)
    fifth = rng.integers(0, 5, n)
    asked = {"pressure": fifth == 0, "smoker": fifth == 1}
    smokes = table["smoker"].to_numpy()
    given = table.assign(
        pressure=table["pressure"].mask(asked["pressure"]),
        smoker=pd.Series(np.where(smokes, "yes", "no")).mask(asked["smoker"]),
    )

    def judge(shares: Floats, means: Floats) -> tuple[float, float]:
        own = np.clip(shares[asked["smoker"]], 1e-6, 1.0 - 1e-6)
        off = (means - table["pressure"].to_numpy())[asked["pressure"]]
        return float(log_loss(smokes[asked["smoker"]], own)), float(np.sqrt(np.mean(off**2)))

    bell = [np.exp(-0.5 * ((table["pressure"].to_numpy() - mean) / STD) ** 2) for mean in MEANS]
    of_second = bell[1] / (bell[0] + bell[1])
    best = judge(0.2 + 0.5 * of_second, np.where(smokes, 129.0 / 0.9, 141.0 / 1.1))
    marginal = judge(np.full(n, smokes.mean()), np.full(n, table["pressure"].mean()))
    print(f"\nThe paper's models of {n} patients, a fifth of each column hidden: log-loss of the hidden cells of")
    print("`smoker`, root mean square error of those of `pressure`, and what part of the truth's gain over the")
    print("marginals was reached; in the mixture, the shares of smokers among the known cells of each cluster")
    records: list[Record] = []
    for what, (loss, error) in {"the truth": best, "the marginals": marginal}.items():
        records.append({"part": "models", "rows": n, "model": what, "log_loss": loss, "error": error})
        print(f"{what:26} {loss:.3f} {error:13.2f}")
    for model, training in TRAININGS.items():
        for method in ("lip-none", "lip-gamma"):
            imputer = Imputer(model, method, kinds={"pressure": "real"}, training=training, random_state=seed)
            found = imputer.fit(given).distribution(given)
            means = np.asarray(found["pressure"].mean())
            got = judge(np.asarray(found["smoker"].parameters["probability"]), means)
            gained = [(a - b) / (a - c) for a, b, c in zip(marginal, got, best, strict=True)]
            record = {"part": "models", "rows": n, "model": model, "method": method}
            records.append(record | {"log_loss": got[0], "error": got[1], "gained": gained})
            line = f"{model:14} {method:11} {got[0]:.3f} ({gained[0]:5.0%}) {got[1]:6.2f} ({gained[1]:5.0%})"
            if model == "mixture":
                known = ~asked["smoker"]
                shares = [float(smokes[known & (means == one)].mean()) for one in np.unique(means)]
                records[-1]["shares"] = shares
                line += "  " + ", ".join(f"{share:.2f}" for share in shares)
            print(line, flush=True)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("EVENLY_DATA"), help="folder of the UCI tables")
    parser.add_argument("--rows", type=int, default=600, help="rows of a table that are used")
    parser.add_argument("--table", nargs="*", choices=["heart", *TARGETS])
    parser.add_argument("--only", choices=["pipelines", "mixture", "models"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file of JSON lines that gets the results")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", EvenlyWarning)
    found: list[Record] = []
    if given.only in (None, "pipelines"):
        for name in given.table or ("heart", *(TARGETS if given.data else ())):
            found += compare(name, given.data, given.rows)
    if given.only in (None, "mixture"):
        found += recover_clusters(given.seed, 1000)
    if given.only in (None, "models"):
        found += try_models(given.seed, 3000)
    if given.out:
        given.out.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


if __name__ == "__main__":
    main()
