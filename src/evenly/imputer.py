"""Imputer: a table with missing cells in, a complete one of the same types out, through a model of all its columns."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config  # the only way to learn what set_output asked for
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from evenly._support import EvenlyWarning, TableError, require
from evenly._version import __version__
from evenly.cells import cells_among, decode
from evenly.features import Part, arrange, describe, lay_out
from evenly.files import read_tensors, readable, saved_path, write_tensors
from evenly.likelihoods import Likelihood
from evenly.metrics import log_likelihood
from evenly.models import MODELS
from evenly.models.bbvi import (
    Info,
    Layout,
    Model,
    constant_log_likelihood,
    fit_model,
    flatten,
    predict_natural,
    unflatten,
)
from evenly.recover import draw_column, estimate_column
from evenly.scaler import FittedColumn, LipschitzScaler, check_width, left_out, pass_through, plain_settings
from evenly.schema import Schema, Value
from evenly.tables import Floats, Table, TableColumn, as_column, build_table, fill_cells, open_table, select

Auto = Literal["auto"]
Flags = npt.NDArray[np.bool_]
Usual = dict[str, Any]
ESTIMATES = ("mean", "median", "mode")
CHUNK = 4096
"""Rows predicted at once. Always as many, so that a row's imputation does not go by the rows around it."""
LARGEST = 1e300
"""An imputed number is never larger, whatever the model says."""


@dataclass(frozen=True)
class Opened:
    """A table to impute: its cells, their values or codes, and which of them are to be filled."""

    table: Table
    cells: list[TableColumn]
    values: list[Floats | None]
    missing: list[Flags]

    def rows(self, modelled: Sequence[int]) -> npt.NDArray[np.intp]:
        """Return the rows that have a missing cell in one of some columns."""
        some = np.zeros(self.table.n_rows, bool)
        for j in modelled:
            some |= self.missing[j]
        return np.flatnonzero(some)


class Imputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fill the missing cells of a mixed table from a model of all its columns.

    Parameters
    ----------
    model : {"vae", "mixture", "factorization"}
        The model that explains the table.
    method : str
        How columns are scaled before, as in `LipschitzScaler`.
    preset : {"paper"}, optional
        The paper's settings: its bound, zeros clipped to 1e-30, the mode as estimate, its epochs by the number of rows.
        Imputed values are then cut to the support only, not to the observed range.
    kinds, likelihoods, target, bound, schema, missing
        As in `LipschitzScaler`.
    epochs : int or "auto"
        How often every row is seen; "auto" takes some 3,000 steps, in 20 to 1,000 epochs.
    batch_size : int
        Rows a step.
    learning_rate, latent_size, n_clusters, hidden_size
        Of the model; "auto" as in the paper: latent size 75 % (VAE) or half (factorization) of the number of columns,
        10 clusters, or 5 below 10,000 rows.
    estimate : {"mean", "median", "mode"}
        Which value of a cell's distribution is imputed for numbers. Classes: the most probable one (the median one, if
        ordered, under "median").
    random_state : int, RandomState or None
        Seeds everything that is random: the same seed gives the same bytes.
    verbose : int
        Show a progress bar.

    Attributes
    ----------
    scaler_ : LipschitzScaler
        The fitted scaler; `scaler_.summary_` tells how every column was treated.
    schema_ : Schema
        What was inferred or declared.
    history_ : dict
        `elbo`, an array by epoch, and `log_likelihood`, a dict of column to array: mean per observed cell, in the
        table's units (under a trick: of the column's features).
    baseline_ : dict of column to float
        The same log-likelihood of a model that knows each column alone: who stays below it is overlooked.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(50.0, 2.0, 200)
    >>> table = np.column_stack([x, 3.0 * x + rng.normal(size=200)])
    >>> table[:20, 1] = np.nan
    >>> imputer = Imputer(epochs=20, hidden_size=16, random_state=0)
    >>> full = imputer.fit_transform(table)
    >>> bool(np.isnan(full).any()), bool((full[20:] == table[20:]).all())
    (False, True)

    A column without an observed cell stays missing, and is named:

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     full = Imputer(epochs=1, random_state=0).fit_transform([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan]])
    >>> bool(np.isnan(full[:, 1]).all()), "'x1'" in str(caught[0].message)
    (True, True)
    """

    def __init__(
        self,
        model: str = "vae",
        method: str = "lip-gamma",
        *,
        preset: Literal["paper"] | None = None,
        kinds: Mapping[Any, str] | None = None,
        likelihoods: Mapping[Any, str | Likelihood] | None = None,
        target: float | None = None,
        bound: Literal["exact", "paper"] = "exact",
        schema: Schema | str | Path | None = None,
        missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
        epochs: int | Auto = "auto",
        batch_size: int = 1024,
        learning_rate: float | Auto = "auto",
        latent_size: int | Auto = "auto",
        n_clusters: int | Auto = "auto",
        hidden_size: int = 256,
        estimate: Literal["mean", "median", "mode"] = "mean",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.method = method
        self.preset = preset
        self.kinds = kinds
        self.likelihoods = likelihoods
        self.target = target
        self.bound = bound
        self.schema = schema
        self.missing = missing
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.latent_size = latent_size
        self.n_clusters = n_clusters
        self.hidden_size = hidden_size
        self.estimate = estimate
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # --- fitting ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Scale the table and train the model on its observed cells. Ctrl-C keeps what was learned so far."""
        return self._fit(X, 0)

    def _fit(self, X: Any, n_points: int) -> Imputer:
        """Fit, and watch the columns' gradients at some points of the training (`_watched`)."""
        self._check_settings()
        opened = open_table(X, estimator=type(self).__name__)
        paper = self.preset == "paper"
        rate = MODELS[self.model].learning_rate if self.learning_rate == "auto" else float(self.learning_rate)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scaler = LipschitzScaler(
            self.method,
            learning_rate=rate,
            target=self.target,
            kinds=self.kinds,
            likelihoods=self.likelihoods,
            bound="paper" if paper else self.bound,
            schema=self.schema,
            missing=self.missing,
            zeros="clip" if paper else "shift",
            random_state=seed,
        ).fit(X)
        columns = scaler.columns_
        values = [
            one.encode(cells)[0] if one.features else None for one, cells in zip(columns, opened.columns, strict=True)
        ]
        parts = [describe(one, own) for one, own in zip(columns, values, strict=True)]
        far = [one.column.name for one, part in zip(columns, parts, strict=True) if part.too_far]
        if far:
            warnings.warn(
                f"too far from 0 for their spread: {far}: the median is imputed; subtract a constant first",
                EvenlyWarning,
                stacklevel=2,
            )
        layout = lay_out(columns, parts)
        modelled = [j for j, part in enumerate(parts) if part.modelled]
        names = tuple(columns[j].column.name for j in modelled)
        given = {name: getattr(self, name) for name in ("latent_size", "n_clusters", "hidden_size")}
        sizes = {name: int(size) for name, size in given.items() if size != "auto"}
        model = MODELS[self.model].of_size(opened.n_rows, len(modelled), sizes)
        epochs = auto_epochs(opened.n_rows, self.batch_size, paper) if self.epochs == "auto" else int(self.epochs)
        shared: Any = {}
        watched = None
        elbo, gained, baseline = np.zeros(0), np.zeros((0, len(modelled))), np.zeros(len(modelled))
        if modelled:
            data = arrange(columns, parts, values, seed=scaler.seed_, with_inputs=model.reads_inputs)
            observed = np.array([parts[j].observed for j in modelled])
            units = np.array([parts[j].log_jacobian for j in modelled])
            naturals = [fit.natural for j in modelled for fit in columns[j].fits]
            baseline = constant_log_likelihood(layout, naturals, data) / observed + units
            with _progress(self.verbose, epochs, names, lambda ll: ll / observed + units - baseline) as callback:
                shared, history, watched = fit_model(
                    model,
                    layout,
                    data,
                    seed,
                    rate,
                    epochs=epochs,
                    batch_size=int(self.batch_size),
                    names=names,
                    callback=callback,
                    n_points=n_points,
                )
            elbo, gained = history.elbo, history.log_likelihood.reshape(-1, len(modelled)) / observed + units
        self._become(scaler, model, parts, layout, shared)
        self._watched = watched
        self.history_: dict[str, Any] = {
            "elbo": elbo,
            "log_likelihood": {name: gained[:, i] for i, name in enumerate(names)},
        }
        self.baseline_ = dict(zip(names, baseline.tolist(), strict=True))
        return self

    def _become(self, scaler: LipschitzScaler, model: Model, parts: list[Part], layout: Layout, shared: Any) -> None:
        self.__dict__.pop("feature_names_in_", None)  # the new table may have no names
        if hasattr(scaler, "feature_names_in_"):
            self.feature_names_in_ = scaler.feature_names_in_
        self.n_features_in_, self.seed_ = scaler.n_features_in_, scaler.seed_
        self.scaler_, self.schema_ = scaler, scaler.schema_
        self._columns: list[FittedColumn] = scaler.columns_
        self._model, self._parts, self._layout, self._shared = model, parts, layout, shared
        self._modelled = [j for j, part in enumerate(parts) if part.modelled]

    def _check_settings(self) -> None:
        choices = (("model", tuple(MODELS)), ("estimate", ESTIMATES), ("preset", (None, "paper")))
        for name, known in choices:
            if getattr(self, name) not in known:
                raise TableError(f"{name} = {getattr(self, name)!r}", f"expected one of {', '.join(map(str, known))}")
        for name in ("epochs", "batch_size", "latent_size", "n_clusters", "hidden_size"):
            value, least = getattr(self, name), int(name != "epochs")
            auto = value == "auto" and name not in ("batch_size", "hidden_size")
            if not auto and not (isinstance(value, numbers.Integral) and int(value) >= least):
                raise TableError(f"{name} = {value!r}", f"expected a whole number from {least}")
        rate = self.learning_rate
        if rate != "auto" and not (isinstance(rate, numbers.Real) and np.isfinite(rate) and rate > 0):
            raise TableError(f"learning_rate = {rate!r}", "expected a positive number or 'auto'")

    # --- using --------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Return the table with its missing cells filled; observed cells, types and ignored columns are untouched.

        New rows are treated like those of fit. Columns are found by name, in any order, and come back in that of fit;
        columns that were not there in fit are left out, with a warning. Cells with a class that fit did
        not see are left as they are, with a warning, and the model does without them.
        """
        opened = self._open(X)
        return self._fill(opened, self._impute(opened, self._pick()))

    def sample(self, X: Any, n: int = 5) -> list[Any]:
        """Return n complete tables, for multiple imputation: each a draw of the rows' variables and of the cells."""
        if not (isinstance(n, numbers.Integral) and int(n) >= 1):
            raise TableError(f"n = {n!r}", "expected a whole number from 1")
        opened = self._open(X)
        draws = [partial(draw_column, rng=np.random.default_rng((self.seed_, i))) for i in range(n)]
        return [self._fill(opened, self._impute(opened, draw, i)) for i, draw in enumerate(draws)]

    def distribution(self, X: Any) -> dict[str, dict[str, Any]]:
        """Return the usual parameters of every cell's distribution, in the table's units: column, parameter, array.

        For observed cells too: what the model makes of them. Ignored, constant and empty columns are left out.
        """
        return self._distribution(self._open(X))

    def score(self, X: Any, y: Any = None) -> dict[str, float]:
        """Return the mean log-likelihood of each column's observed cells, in the table's units.

        The model sees the cells that it is scored on; for an honest score, hide cells from it and use
        `evenly.imputation_error` or `evenly.metrics.log_likelihood` on those.
        """
        opened = self._open(X)
        found, scores = self._distribution(opened), {}
        for j in self._modelled:
            fitted, values = self._columns[j], opened.values[j]
            assert values is not None
            if not np.isnan(values).all():
                name = fitted.column.name
                scores[name] = float(np.nanmean(log_likelihood(fitted.column, found[name], values, fitted.family)))
        return scores

    def predict_cells(self, X: Any) -> Floats:
        """Return an estimate of every cell, observed ones too, as numbers or codes: rows x columns of fit.

        For scoring: neither rounded nor put into types. NaN in ignored and empty columns.
        """
        opened = self._open(X)
        every = np.arange(opened.table.n_rows)
        return np.column_stack(self._impute(opened, self._pick(), rows=every, whole=False))

    def _pick(self) -> Callable[..., Floats]:
        """Return what makes one value of a distribution."""
        return partial(estimate_column, which="mode" if self.preset == "paper" else self.estimate)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns, as in fit."""
        check_is_fitted(self, "scaler_")
        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)

    def _open(self, X: Any) -> Opened:
        check_is_fitted(self, "scaler_")
        table = open_table(X, estimator=type(self).__name__)
        check_width(self, table)
        labels = [one.label for one in self._columns]
        cells, extra = select(table, labels, by_position=self.scaler_.container_ == "numpy")
        messages = [left_out(extra)] if extra else []
        values: list[Floats | None] = []
        missing: list[Flags] = []
        for fitted, stored in zip(self._columns, cells, strict=True):
            own, unknown = fitted.encode(stored) if fitted.features else (None, [])
            values.append(own)
            missing.append(
                np.zeros(table.n_rows, bool) if own is None else np.isnan(own) & ~cells_among(stored, unknown)
            )
            if unknown:
                messages.append(fitted.unseen(unknown, "are left as they are, and the model does without them"))
        for message in messages:
            warnings.warn(message, EvenlyWarning, stacklevel=3)
        return Opened(table, cells, values, missing)

    def _predict(
        self, opened: Opened, rows: npt.NDArray[np.intp], draw: int | None = None
    ) -> Iterator[tuple[npt.NDArray[np.intp], dict[int, Usual]]]:
        """Go through rows in chunks: which they are, and the usual parameters of every modelled column."""
        for start in range(0, len(rows) if self._modelled else 0, CHUNK):
            where = rows[start : start + CHUNK]
            padded = np.concatenate([where, np.repeat(where[:1], CHUNK - len(where))])
            some = [None if own is None else own[padded] for own in opened.values]
            data = arrange(self._columns, self._parts, some, seed=None, with_inputs=self._model.reads_inputs)
            seeds = None if draw is None else (self.seed_, draw, start)
            naturals = iter(predict_natural(self._model, self._layout, self._shared, data, seeds))
            usual = {}
            for j in self._modelled:
                own = [np.asarray(next(naturals)[: len(where)], np.float64) for _ in self._columns[j].features]
                usual[j] = self._columns[j].recover(own)
            yield where, usual

    def _impute(
        self,
        opened: Opened,
        pick: Callable[..., Floats],
        draw: int | None = None,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        whole: bool = True,
    ) -> list[Floats]:
        """Return the values or codes of every column in some rows, by default in those with missing cells."""
        filled = [np.full(opened.table.n_rows, part.constant) for part in self._parts]
        for where, usual in self._predict(opened, opened.rows(self._modelled) if rows is None else rows, draw):
            for j in self._modelled:
                fitted = self._columns[j]
                filled[j][where] = self._bounded(j, pick(fitted.column, fitted.family, usual[j]), whole)
        return filled

    def _distribution(self, opened: Opened) -> dict[str, Usual]:
        found: dict[str, Usual] = {self._columns[j].column.name: {} for j in self._modelled}
        n_rows = opened.table.n_rows
        for where, usual in self._predict(opened, np.arange(n_rows)):
            for j, parameters in usual.items():
                own = found[self._columns[j].column.name]
                for name, value in parameters.items():
                    if np.ndim(value):
                        own.setdefault(name, np.empty((n_rows, *value.shape[1:])))[where] = value
                    else:
                        own[name] = value
        return found

    def _bounded(self, j: int, values: Floats, whole: bool) -> Floats:
        """Bring imputed numbers into what the column holds: its bounds or observed range, whole numbers."""
        fitted, part = self._columns[j], self._parts[j]
        column = fitted.column
        if column.has_classes:
            return values
        assert fitted.family is not None
        support, (low, high) = fitted.family.support, part.extent
        # An open end of the support has no density: the smallest observed number stands there.
        open_end = support.lower - column.shift if not (support.closed or support.whole) else -np.inf
        if self.preset == "paper":
            low, high = max(support.lower - column.shift, -LARGEST), min(support.upper, LARGEST)
        low = low if column.lower is None else column.lower
        high = high if column.upper is None else column.upper
        values = np.clip(values, low, high)
        values = np.where(values > open_end, values, part.extent[0])
        return np.clip(np.rint(values), np.ceil(low), np.floor(high)) if whole and part.whole else values

    def _fill(self, opened: Opened, filled: Sequence[Floats]) -> Any:
        wanted = _get_output_config("transform", self)["dense"]
        source = opened.table.container
        container = source if wanted == "default" else wanted
        labels = dict(zip(opened.table.names, opened.table.labels, strict=True)) if source == container else {}
        data = {}
        for fitted, cells, values, gone in zip(self._columns, opened.cells, filled, opened.missing, strict=True):
            label = labels.get(cells.name, fitted.column.name)
            gone = gone & ~np.isnan(values)
            if gone.any():
                stored = fitted.stored if source == self.scaler_.container_ else None
                # A loaded imputer knows classes that JSON cannot hold (intervals, dates) by their texts only.
                originals = fitted.originals or tuple(cells.categories or ())
                classes = decode(fitted.column, np.arange(float(len(fitted.column.classes or ()))), originals).tolist()
                new = decode(fitted.column, values[gone], originals)
                cells = as_column(cells.name, fill_cells(cells, gone, new, source, stored, classes or None))
            data[label] = pass_through(cells, source, container)
        table = build_table(data, container, opened.table.native)
        if container == source == "pandas":  # the levels and names of its labels
            table.columns = opened.table.native.columns[[opened.table.names.index(one.name) for one in opened.cells]]
        return table

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted imputer to one file (`imputer.safetensors` inside it, if the path is a folder)."""
        check_is_fitted(self, "scaler_")
        names, elbo = list(self.baseline_), np.asarray(self.history_["elbo"], np.float64)
        curves = np.array([self.history_["log_likelihood"][name] for name in names]).reshape(len(names), len(elbo))
        tensors = {f"shared{name}": array for name, array in flatten(self._shared).items()}
        tensors |= {"elbo": elbo, "log_likelihood": curves}
        content = {
            "evenly": __version__,
            "saved": type(self).__name__,
            "settings": plain_settings(self),
            "model": asdict(self._model),  # type: ignore[call-overload]  # every model is a dataclass
            "parts": [asdict(part) for part in self._parts],
            "baseline": self.baseline_,
            "scaler": self.scaler_.to_plain(),
        }
        write_tensors(saved_path(path, "imputer.safetensors"), content, tensors)

    @classmethod
    def load(cls, path: str | Path, *, likelihoods: Sequence[Likelihood] | Mapping[Any, Any] = ()) -> Imputer:
        """Read an imputer that `save` wrote; it imputes the same, to the byte. No code of the file is run.

        Likelihoods of your own are code, so they are not in the file: give them again.

        Examples
        --------
        >>> import tempfile
        >>> table = np.random.default_rng(0).normal(size=(30, 2))
        >>> imputer = Imputer(epochs=1, hidden_size=4, random_state=0).fit(table)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     imputer.save(folder)
        ...     again = Imputer.load(folder)
        >>> bool((again.transform([[np.nan, 0.5]]) == imputer.transform([[np.nan, 0.5]])).all())
        True
        """
        file = saved_path(path, "imputer.safetensors")
        content, tensors = read_tensors(file, cls.__name__)
        with readable(file, content):
            scaler = LipschitzScaler.from_plain(content["scaler"], likelihoods, file)
            settings = content["settings"]
            if settings["likelihoods"]:
                settings["likelihoods"] = scaler.likelihoods
            imputer = cls(**settings)
            parts = [Part(**one) for one in content["parts"]]
            layout = lay_out(scaler.columns_, parts)
            model = MODELS[imputer.model](**content["model"])
            shared = {name.removeprefix("shared"): one for name, one in tensors.items() if name.startswith("shared")}
            n_inputs = sum(len(part.centers) for part in parts) if model.reads_inputs else 0
            tree = unflatten(model, layout, n_inputs, shared) if layout.likelihoods else {}
            imputer._become(scaler, model, parts, layout, tree)
            curves = dict(zip(content["baseline"], tensors["log_likelihood"], strict=True))
            imputer.history_ = {"elbo": tensors["elbo"], "log_likelihood": curves}
            imputer.baseline_ = content["baseline"]
        return imputer


def auto_epochs(n_rows: int, batch_size: int, paper: bool) -> int:
    """Return how often to see every row.

    The paper's: 3,000 below 1,000 rows (breast), 2,000 below 10,000 (wine, spam), 400 otherwise. Ours: some 3,000
    steps, in 20 to 1,000 epochs.

    Examples
    --------
    >>> auto_epochs(700, 1024, True), auto_epochs(700, 1024, False), auto_epochs(32_000, 1024, False)
    (3000, 1000, 93)
    """
    if paper:
        return 3000 if n_rows < 1000 else 2000 if n_rows < 10_000 else 400
    return min(1000, max(20, 3000 // -(-n_rows // batch_size)))


@contextmanager
def _progress(
    verbose: int, epochs: int, names: Sequence[str], gain: Callable[[Any], Any]
) -> Iterator[Callable[[int, Info], None] | None]:
    """Show a bar with the ELBO and the column that gains least over knowing its own average."""
    if not verbose:
        yield None
        return
    progress = require("rich.progress", "tool")
    escape = require("rich.markup", "tool").escape
    parts = ("[progress.description]{task.description}", progress.BarColumn(), "{task.completed}/{task.total} epochs")
    with progress.Progress(*parts, progress.TimeRemainingColumn(), "{task.fields[state]}") as bar:
        task = bar.add_task("training", total=epochs, state="compiling")

        def show(epoch: int, info: Info) -> None:
            gains = gain(np.asarray(info.log_likelihood))
            worst = int(np.argmin(gains))
            state = f"ELBO {float(info.elbo):.2f}, worst column {names[worst]} ({gains[worst]:+.2f} nats)"
            bar.update(task, completed=epoch + 1, state=escape(state))

        yield show
