"""Imputer: a table with missing cells in, a complete one of the same types out, through a model of all its columns."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config  # the only way to learn what set_output asked for
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from evenly._support import EvenlyWarning, TableError, read_tensors, readable, require, saved_path, write_tensors
from evenly._version import __version__
from evenly.imputation.encoding import (
    Part,
    arrange,
    average,
    balancing_weights,
    constant_naturals,
    describe,
    draw_part,
    estimate_part,
    lay_out,
    mix_twins,
    quantile_part,
    recover_part,
)
from evenly.imputation.ensemble import chunk_size, chunks, learn, modelled_values, remember_table
from evenly.imputation.gaussian import Joint, Usual, place_cells, speak
from evenly.imputation.neighbours import Memory, Twins, find_twins
from evenly.imputation.streaming import Feed, open_source
from evenly.io import open_parquet, write_parts
from evenly.likelihoods import NORMAL, Likelihood
from evenly.metrics import count_held, log_likelihood
from evenly.models import MODELS, Info, Layout, Model, auto_batch_size, auto_epochs, auto_networks, flatten, unflatten
from evenly.scaling import (
    FittedColumn,
    LipschitzScaler,
    check_width,
    get_method,
    left_out,
    pass_through,
    plain_settings,
)
from evenly.tables import (
    Floats,
    Schema,
    Table,
    TableColumn,
    Value,
    as_column,
    build_table,
    cells_among,
    decode,
    fill_cells,
    open_lazy,
    open_table,
    pick,
    select,
)

Auto = Literal["auto"]
Flags = npt.NDArray[np.bool_]
ESTIMATES = ("mean", "median", "mode")
FEWEST_DRAWS, MOST_DRAWS = 100, 1_000
"""Draws behind an interval of a model with variables of rows."""
BEYOND = 2
"""Draws that are to lie at or beyond each of its ends: a single one would be as far off as it happens to be."""
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
    model : {"auto", "masked", "vae", "mixture", "factorization", "marginal"}
        The model that explains the table. `masked` ("auto") learns to predict cells that it hides from itself;
        `marginal` knows each column alone (its mean, quantiles or shares) and needs neither JAX nor training, as a
        baseline; the others are the paper's, and "auto" under its preset is `vae`.
    method : str
        How columns are scaled before, as in `LipschitzScaler`; "auto" is `lip-none` for `masked`, else `lip-gamma`.
    preset : {"paper"}, optional
        The paper's settings: its bound, zeros clipped to 1e-30, the mode as estimate, its epochs by the number of rows.
        Imputed values are then cut to the support only, not to the observed range.
    kinds, likelihoods, target, bound, schema, missing
        As in `LipschitzScaler`. `masked` explains numbers by a normal and by bins, whatever their kind, unless
        `likelihoods` names one.
    epochs : int or "auto"
        How often every row is seen; "auto" goes by the number of rows. `masked` stops before, where cells that it
        holds out say so.
    batch_size : int or "auto"
        Rows a step.
    learning_rate, latent_size, n_clusters, hidden_size
        Of the model; "auto" as in the paper: latent size 75 % (VAE) or half (factorization) of the number of columns,
        10 clusters, or 5 below 10,000 rows.
    n_networks : int or "auto"
        How many models to train, from different starts and on different held-out cells; their distributions are
        averaged. "auto": more where rows are few.
    masked_training : bool
        Train the VAE by hiding cells, as `masked` is, and stop where cells that it holds out say so.
    n_draws : int
        How many draws of a row's variables a prediction of the paper's models is averaged over; 0: one prediction, at
        their mean.
    estimate : {"mean", "median", "mode"}
        Which value of a cell's distribution is imputed for numbers. Classes: the most probable one (the median one, if
        ordered, under "median"). The mean of whole numbers is rounded where the column's type holds nothing else
        (integers), and is left as it is in a column of floats.
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
        `elbo`, an array by epoch, and `log_likelihood`, a dict of column to array: mean per cell that is trained on,
        in the table's units. Under a trick, and of a number in bins, that of the column's features: of a number,
        minus half the squared error of its scaled value plus the log-probability of its bin.
    baseline_ : dict of column to float
        The same log-likelihood of a model that knows each column alone: who stays below it is overlooked.
    bins_ : dict of column to Bins
        Under `masked`: the bins of each number, to read `distribution` by.

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
    ...     full = Imputer("marginal").fit_transform([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan]])
    >>> bool(np.isnan(full[:, 1]).all()), "'x1'" in str(caught[0].message)
    (True, True)
    """

    def __init__(
        self,
        model: str = "auto",
        method: str = "auto",
        *,
        preset: Literal["paper"] | None = None,
        kinds: Mapping[Any, str] | None = None,
        likelihoods: Mapping[Any, str | Likelihood] | None = None,
        target: float | None = None,
        bound: Literal["exact", "paper"] = "exact",
        schema: Schema | str | Path | None = None,
        missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        latent_size: int | Auto = "auto",
        n_clusters: int | Auto = "auto",
        hidden_size: int | Auto = "auto",
        n_networks: int | Auto = "auto",
        masked_training: bool = False,
        n_draws: int = 0,
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
        self.n_networks = n_networks
        self.masked_training = masked_training
        self.n_draws = n_draws
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
        """Scale the table and train the model on its observed cells. Ctrl-C keeps what was learned so far.

        Parameters
        ----------
        X : dataframe, array, or the path of Parquet files
            A path may be a file, a pattern such as `data/*.parquet`, or a folder. A table of many rows is not read
            into memory then: `masked` and `vae` are trained on it piece by piece.
        """
        return self._fit(X, None)

    def _fit(self, X: Any, n_points: int | None) -> Imputer:
        """Fit, and watch the columns' gradients at some points of the training (`_watched`), as `fit_model` does."""
        self._check_settings()
        paper = self.preset == "paper"
        kind = MODELS[self.model_name]
        source = open_source(X, type(self).__name__)
        if source.files is not None and kind.by_row:
            raise TableError(
                f"model = {self.model_name!r} for {source.n_rows} rows of Parquet",
                "it has variables of every row, which do not fit into memory",
                "choose 'masked' or 'vae', or read some of the rows",
            )
        rate = kind.learning_rate if self.learning_rate == "auto" else float(self.learning_rate)
        method = ("lip-none" if kind.by_cell else "lip-gamma") if self.method == "auto" else self.method
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scaler = LipschitzScaler(
            method,
            learning_rate=rate,
            target=self.target,
            kinds=self.kinds,
            likelihoods=self.likelihoods,
            bound="paper" if paper else self.bound,
            schema=self.schema,
            missing=self.missing,
            zeros="clip" if paper else "shift",
            random_state=seed,
        )
        with warnings.catch_warnings():
            if kind.by_cell and not self.likelihoods:  # numbers are standardized, whatever became of their own scale
                warnings.filterwarnings("ignore", "(below_floor|no_spread|out_of_range):", EvenlyWarning)
            scaler.fit(source.table)
        columns = scaler.columns_
        rows, values = source.sample(columns, np.random.default_rng(seed))
        parts = [
            describe(
                one,
                own,
                binned=kind.by_cell and pick(self.likelihoods, one.label, one.column.name) is None,
                scaling=get_method(method).scaling,
            )
            for one, own in zip(columns, values, strict=True)
        ]
        far = [one.column.name for one, part in zip(columns, parts, strict=True) if part.too_far]
        if far:
            warnings.warn(
                f"too far from 0 for their spread: {far}: the median is imputed; subtract a constant first",
                EvenlyWarning,
                stacklevel=2,
            )
        layout = lay_out(columns, parts)
        modelled = [j for j, part in enumerate(parts) if part.modelled]
        if modelled:
            layout = layout.in_class(source.n_rows, by_cell=kind.by_cell)
        names = tuple(columns[j].column.name for j in modelled)
        given = {name: getattr(self, name) for name in ("latent_size", "n_clusters", "hidden_size")}
        sizes = {name: int(size) for name, size in given.items() if size != "auto"}
        model = kind.of_size(source.n_rows, len(modelled), sizes | {"masked": int(self.masked_training)})
        networks: list[Any] = []
        watched = joint = memory = None
        elbo, gained, baseline = np.zeros(0), np.zeros((0, len(modelled))), np.zeros(len(modelled))
        if modelled:
            reads = model.reads_inputs
            data = arrange(layout, columns, parts, values, seed=scaler.seed_, with_inputs=reads, keys=rows)
            observed = np.array([parts[j].observed for j in modelled])
            units = np.array([parts[j].log_jacobian for j in modelled])
            naturals = [one for j in modelled for one in constant_naturals(columns[j], parts[j])]
            baseline = layout.log_likelihood(naturals, data).mean(0) / observed + units
            # Epochs tell of the cells that are trained on: those that are held out do not count.
            held = count_held(data.mask[:, : layout.n_columns]) if model.hides else 0
            shown = (np.array([columns[j].statistics.n for j in modelled]) - held) / source.n_rows
            size = auto_batch_size(source.n_rows, kind.by_cell) if self.batch_size == "auto" else int(self.batch_size)
            epochs = self.epochs
            if epochs == "auto":
                epochs = auto_epochs(source.n_rows, size, paper, kind.by_cell, source.files is not None)
            n_networks = self.n_networks
            if n_networks == "auto":
                n_networks = auto_networks(source.n_rows) if kind.by_cell and kind.trains else 1
            feed = None
            if source.files is not None and rows is not None:
                size = min(size, source.n_rows)
                feed = Feed(source.files, columns, parts, layout, rows, size, seed, scaler.seed_, reads)
            balanced = kind.by_cell and get_method(method).scaling == "lip"
            with _progress(
                self.verbose * kind.trains,
                int(epochs),
                int(n_networks),
                names,
                lambda ll: ll / shown + units - baseline,
            ) as callback:
                fit = partial(
                    model.fit,
                    layout,
                    learning_rate=rate,
                    epochs=int(epochs),
                    batch_size=size,
                    names=names,
                    n_points=n_points,
                    weights=balancing_weights(columns, parts) if balanced else 1.0,
                )
                learned = learn(
                    fit,
                    model,
                    layout,
                    data,
                    columns,
                    parts,
                    values,
                    n_networks=int(n_networks),
                    seed=seed,
                    told=callback,
                    feed=feed,
                )
            networks, parts, history, watched, joint, memory = learned
            elbo, gained = history.elbo, history.log_likelihood.reshape(-1, len(modelled)) / shown + units
        self._become(scaler, model, parts, layout, networks, joint, memory)
        self._watched, self._n_rows = watched, source.n_rows
        self.history_: dict[str, Any] = {
            "elbo": elbo,
            "log_likelihood": {name: gained[:, i] for i, name in enumerate(names)},
        }
        self.baseline_ = dict(zip(names, baseline.tolist(), strict=True))
        return self

    @property
    def model_name(self) -> str:
        """The model that "auto" stands for, or the one that was chosen."""
        return ("vae" if self.preset == "paper" else "masked") if self.model == "auto" else self.model

    def _become(
        self,
        scaler: LipschitzScaler,
        model: Model,
        parts: list[Part],
        layout: Layout,
        networks: list[Any],
        joint: Joint | None,
        memory: Memory | None,
    ) -> None:
        self.__dict__.pop("feature_names_in_", None)  # the new table may have no names
        if hasattr(scaler, "feature_names_in_"):
            self.feature_names_in_ = scaler.feature_names_in_
        self.n_features_in_, self.seed_ = scaler.n_features_in_, scaler.seed_
        self.scaler_, self.schema_ = scaler, scaler.schema_
        self._columns: list[FittedColumn] = scaler.columns_
        self._model, self._parts, self._layout, self._networks = model, parts, layout, networks
        self._joint, self._memory = joint, memory
        self._modelled = [j for j, part in enumerate(parts) if part.modelled]
        self.bins_ = {
            one.column.name: part.bins for one, part in zip(self._columns, parts, strict=True) if part.bins is not None
        }

    def _check_settings(self) -> None:
        choices = (("model", ("auto", *MODELS)), ("estimate", ESTIMATES), ("preset", (None, "paper")))
        for name, known in choices:
            if getattr(self, name) not in known:
                raise TableError(f"{name} = {getattr(self, name)!r}", f"expected one of {', '.join(map(str, known))}")
        for name in ("epochs", "batch_size", "latent_size", "n_clusters", "hidden_size", "n_networks", "n_draws"):
            value, least = getattr(self, name), int(name not in ("epochs", "n_draws"))
            auto = isinstance(value, str) and value == "auto" and name != "n_draws"
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
        return self._fill(opened, self._impute(opened, [self._pick()], means=self.estimate == "mean")[0])

    def transform_file(self, source: str | Path, out: str | Path, *, form: str | None = None) -> None:
        """Fill the missing cells of Parquet files, however large, and write them to one file, all or nothing.

        Every row is imputed as `transform` does, some 65,000 at a time; columns keep their types.

        Parameters
        ----------
        source : path
            A Parquet file, a pattern such as `data/*.parquet`, or a folder.
        out : path
            The file to write; its name says the format, or `form` does, as in `evenly.write_table`.

        Examples
        --------
        >>> import tempfile
        >>> import polars as pl
        >>> x = np.random.default_rng(0).normal(size=60)
        >>> table = pl.DataFrame({"a": x, "b": 2.0 * x}).with_columns(pl.when(pl.col("a") < 1.0).then("a").alias("a"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.write_parquet(f"{folder}/some.parquet")
        ...     imputer = Imputer(epochs=1, hidden_size=16, random_state=0).fit(f"{folder}/some.parquet")
        ...     imputer.transform_file(f"{folder}/some.parquet", f"{folder}/full.parquet")
        ...     pl.read_parquet(f"{folder}/full.parquet").equals(imputer.transform(table))
        True
        """
        check_is_fitted(self, "scaler_")
        files = open_parquet(source)
        lazy = open_lazy(files.scan())
        assert lazy is not None
        labels = [one.label for one in self._columns]
        columns, extra = select(lazy, labels, by_position=self.scaler_.container_ == "numpy")
        if extra:
            warnings.warn(left_out(extra), EvenlyWarning, stacklevel=2)
        names = [column.name for column in columns]
        write_parts((self.transform(frame) for frame in files.batches(names, self._cut)), out, form=form)

    def _cut(self, frame: Any) -> int:
        """Say where to cut a table so that the chunks of rows to predict are those of the whole: rounding is the same.

        Where so few cells are missing that there is no chunk, all rows may go.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvenlyWarning)  # said when it is imputed
            rows = self._open(frame).rows(self._modelled)
        size = chunk_size(self._n_rows)
        whole = len(rows) // size * size
        return int(rows[whole - 1]) + 1 if whole else len(frame)

    def sample(self, X: Any, n: int = 5) -> list[Any]:
        """Return n complete tables, for multiple imputation; see `evenly.pool`.

        Each is a draw of the rows' variables and of the cells; under `masked`, a row's missing cells are drawn one
        after the other, in random order, each given those before.
        """
        if not (isinstance(n, numbers.Integral) and int(n) >= 1):
            raise TableError(f"n = {n!r}", "expected a whole number from 1")
        opened = self._open(X)
        return [self._fill(opened, self._draw(opened, i)) for i in range(int(n))]

    def interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return two tables, the lower and the upper ends of central intervals of the missing cells.

        A missing number lies between them with the probability `level`, if the model is right. Observed cells, and
        imputed classes, are the same in both. Under the paper's models the ends are those of draws, 1,000 at most:
        levels above 0.998 give the smallest and the largest of them.
        """
        if not (isinstance(level, numbers.Real) and 0.0 < float(level) < 1.0):
            raise TableError(f"level = {level!r}", "expected a number between 0 and 1")
        opened = self._open(X)
        if self._model.by_cell:
            levels = (0.5 - 0.5 * float(level), 0.5 + 0.5 * float(level))
            ends = self._impute(opened, [partial(quantile_part, level=one) for one in levels])
        else:
            ends = self._drawn_ends(opened, float(level))
        return self._fill(opened, ends[0]), self._fill(opened, ends[1])

    def _drawn_ends(self, opened: Opened, level: float) -> list[list[Floats]]:
        """Return the ends of intervals by draws: they know of the rows' variables too. Classes: the most probable."""
        found = self._impute(opened, [self._pick()] * 2)
        numbers = [j for j in self._modelled if not self._columns[j].column.has_classes and opened.missing[j].any()]
        n_draws = count_draws(level)
        drawn = {j: np.empty((n_draws, opened.missing[j].sum())) for j in numbers}
        for i in range(n_draws):
            full = self._draw(opened, i)
            for j in numbers:
                drawn[j][i] = full[j][opened.missing[j]]
        for j in numbers:
            for one, end in zip(found, central_draws(drawn[j], level), strict=True):
                one[j][opened.missing[j]] = end
        return found

    def _draw(self, opened: Opened, i: int) -> list[Floats]:
        """Draw the missing cells: at once, or one after the other where the model predicts cell by cell."""
        rng = np.random.default_rng((self.seed_, i))
        if not self._model.by_cell:
            return self._impute(opened, [partial(draw_part, rng=rng)], i)[0]
        values = [None if own is None else own.copy() for own in opened.values]
        filled = [np.full(opened.table.n_rows, part.constant) for part in self._parts]
        if not self._modelled:
            return filled
        missing = np.column_stack([opened.missing[j] for j in self._modelled])
        turns = np.argsort(np.argsort(np.where(missing, rng.random(missing.shape), 2.0), axis=1), axis=1)
        counts = missing.sum(1)
        network = self._networks[i % len(self._networks)]
        for turn in range(int(counts.max(initial=0))):
            now = replace(opened, values=values)
            wanted = missing & (turns == turn)
            for where, usual in self._predict(now, np.flatnonzero(counts > turn), networks=[network], wanted=wanted):
                for place, j in enumerate(self._modelled):
                    mine, cells = where[wanted[where, place]], values[j]
                    if len(mine):
                        assert cells is not None
                        drawn = self._bounded(j, draw_part(self._columns[j], self._parts[j], usual[j], rng), True)
                        filled[j][mine] = cells[mine] = drawn
        return filled

    def distribution(self, X: Any) -> dict[str, dict[str, Any]]:
        """Return the usual parameters of every cell's distribution, in the table's units: column, parameter, array.

        For observed cells too: what the model makes of them. Ignored, constant and empty columns are left out.
        """
        return self._distribution(self._open(X))

    def score(self, X: Any, y: Any = None) -> dict[str, float]:
        """Return the mean log-likelihood of each column's observed cells, in the table's units.

        The model sees the cells that it is scored on; for an honest score, hide cells from it and use
        `evenly.imputation_error` or `evenly.metrics.errors.log_likelihood` on those. A number that none of a column's
        bins holds counts with a probability of 1e-12.
        """
        opened = self._open(X)
        found, scores = self._distribution(opened), {}
        for j in self._modelled:
            fitted, values = self._columns[j], opened.values[j]
            assert values is not None
            if not np.isnan(values).all():
                name, bins = fitted.column.name, self._parts[j].bins
                scores[name] = float(
                    np.nanmean(
                        log_likelihood(fitted.column, found[name], values, fitted.family)
                        if bins is None
                        else bins.log_density(found[name]["probabilities"], values)
                    )
                )
        return scores

    def predict_cells(self, X: Any) -> Floats:
        """Return an estimate of every cell, observed ones too, as numbers or codes: rows x columns of fit.

        For scoring: neither rounded nor put into types. NaN in ignored and empty columns.
        """
        opened = self._open(X)
        every = np.arange(opened.table.n_rows)
        return np.column_stack(self._impute(opened, [self._pick()], rows=every, rounded=False)[0])

    def _pick(self) -> Callable[..., Floats]:
        """Return what makes one value of a distribution."""
        return partial(estimate_part, which="mode" if self.preset == "paper" else self.estimate)

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
        self,
        opened: Opened,
        rows: npt.NDArray[np.intp],
        draw: int | None = None,
        networks: Sequence[Any] | None = None,
        wanted: Flags | None = None,
    ) -> Iterator[tuple[npt.NDArray[np.intp], dict[int, Usual]]]:
        """Go through rows in chunks: which they are, and the usual parameters of every modelled column.

        Where only some cells are `wanted`, all rows x modelled columns, each column's parameters are those of its own.
        """
        for number, (where, padded) in enumerate(
            chunks(rows if self._modelled else rows[:0], chunk_size(self._n_rows))
        ):
            some = [None if own is None else own[padded] for own in opened.values]
            reads = self._model.reads_inputs
            data = arrange(self._layout, self._columns, self._parts, some, seed=None, with_inputs=reads)
            # What is averaged over draws must be the row's own: all rows draw alike.
            n_draws = 0 if self._model.by_cell else int(self.n_draws)
            seeds: list[tuple[int, ...] | None] = [(self.seed_, i) for i in range(n_draws)] or [None]
            if draw is not None:
                seeds = [(self.seed_, draw, number)]
            found: dict[int, list[Usual]] = {j: [] for j in self._modelled}
            mine: dict[int, Any] = {
                j: slice(None) if wanted is None else wanted[where, at] for at, j in enumerate(self._modelled)
            }
            said: dict[int, Usual] = {}
            if self._joint is not None:
                placed = place_cells(self._columns, self._parts, some)[: len(where)]
                lines = speak(self._columns, self._parts, self._joint, placed)
                said = {
                    j: {name: one[mine[j]] for name, one in usual.items()}
                    for j, usual in zip(self._modelled, lines, strict=True)
                }
            for shared, seed in product(networks or self._networks, seeds):
                alike = seed is not None and draw is None
                naturals = iter(self._model.predict_natural(self._layout, shared, data, seed, alike=alike))
                for j in self._modelled:
                    own = [np.asarray(next(naturals)[: len(where)][mine[j]], np.float64) for _ in self._parts[j].fill]
                    found[j].append(recover_part(self._columns[j], self._parts[j], own, said.get(j)))
            usual = {j: average(self._columns[j], self._parts[j], usuals) for j, usuals in found.items()}
            if self._memory is not None:
                values = [own[where] for own in modelled_values(self._parts, opened.values)]
                twins = find_twins(self._memory, values)
                for at, j in enumerate(self._modelled):
                    near = Twins(*(one[mine[j]] for one in twins))
                    usual[j] = mix_twins(self._parts[j], usual[j], near, at)
            yield where, usual

    def _impute(
        self,
        opened: Opened,
        chosen: Sequence[Callable[..., Floats]],
        draw: int | None = None,
        *,
        rows: npt.NDArray[np.intp] | None = None,
        rounded: bool = True,
        means: bool = False,
    ) -> list[list[Floats]]:
        """Return values or codes of every column in some rows, by default in those with missing cells.

        Predicted once, and chosen in each of some ways. Whole numbers are `rounded`; `means` of them only where the
        column's type holds nothing else.
        """
        filled = [[np.full(opened.table.n_rows, part.constant) for part in self._parts] for _ in chosen]
        for where, usual in self._predict(opened, opened.rows(self._modelled) if rows is None else rows, draw):
            for j in self._modelled:
                fitted = self._columns[j]
                whole = rounded and not (means and self.preset != "paper" and opened.cells[j].storage == "float")
                for one, choose in zip(filled, chosen, strict=True):
                    one[j][where] = self._bounded(j, choose(fitted, self._parts[j], usual[j]), whole)
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
        support, (low, high) = (NORMAL.support if part.bins else fitted.family.support), part.extent
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
        tensors = {
            f"network{i}/{name}": array for i, one in enumerate(self._networks) for name, array in flatten(one).items()
        }
        tensors |= {"elbo": elbo, "log_likelihood": curves}
        if self._joint is not None:
            tensors |= {f"joint_{name}": array for name, array in self._joint._asdict().items()}
        if self._memory is not None:
            tensors["memory"] = self._memory.values
        content = {
            "evenly": __version__,
            "saved": type(self).__name__,
            "settings": plain_settings(self),
            "model": asdict(self._model),  # type: ignore[call-overload]  # every model is a dataclass
            "n_networks": len(self._networks),
            "n_rows": self._n_rows,
            "shapes": {name: list(array.shape) for name, array in tensors.items()},
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
        >>> imputer = Imputer(epochs=1, hidden_size=16, random_state=0).fit(table)
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
            found = {name: list(array.shape) for name, array in tensors.items()}
            if wrong := [name for name, shape in content["shapes"].items() if found.get(name) != shape]:
                raise ValueError(f"arrays that lack or have another shape: {wrong}")
            settings = content["settings"]
            if settings["likelihoods"]:
                settings["likelihoods"] = scaler.likelihoods
            imputer = cls(**settings)
            parts = [Part.from_plain(one) for one in content["parts"]]
            layout = lay_out(scaler.columns_, parts)
            model = MODELS[imputer.model_name](**content["model"])
            if any(part.modelled for part in parts):
                layout = layout.in_class(content["n_rows"], by_cell=model.by_cell)
            networks = []
            for start in (f"network{i}/" for i in range(content["n_networks"])):
                mine = {name.removeprefix(start): one for name, one in tensors.items() if name.startswith(start)}
                networks.append(unflatten(mine))
            joint = Joint(*(tensors[f"joint_{name}"] for name in Joint._fields)) if "joint_mean" in tensors else None
            memory = None
            if "memory" in tensors:
                columns = iter(tensors["memory"].T)
                values = [next(columns) if part.modelled else None for part in parts]
                memory = remember_table(scaler.columns_, parts, values, np.random.default_rng(0))
            imputer._become(scaler, model, parts, layout, networks, joint, memory)
            imputer._n_rows = content["n_rows"]
            curves = dict(zip(content["baseline"], tensors["log_likelihood"], strict=True))
            imputer.history_ = {"elbo": tensors["elbo"], "log_likelihood": curves}
            imputer.baseline_ = content["baseline"]
        return imputer


def count_draws(level: float) -> int:
    """Return how many draws an interval takes.

    Examples
    --------
    >>> [count_draws(level) for level in (0.5, 0.9, 0.99, 0.9999)]
    [100, 100, 399, 1000]
    """
    return int(np.clip(np.ceil(2.0 * BEYOND / (1.0 - level)) - 1, FEWEST_DRAWS, MOST_DRAWS))


def central_draws(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return, column by column, two draws that one more would lie between with the probability `level`, or just above.

    One more draw is as likely to fall into any of the gaps between n draws, or beyond them: n + 1 places.

    Examples
    --------
    >>> low, high = central_draws(np.arange(1.0, 100.0)[:, None], 0.9)
    >>> float(low[0]), float(high[0])
    (5.0, 95.0)
    """
    n = len(drawn)
    # Rounded first: 0.05 * 100 must not be just below 5.
    at = max(1, int(np.floor(np.round(0.5 * (1.0 - level) * (n + 1), 6))))
    ordered = np.partition(drawn, (at - 1, n - at), axis=0)
    return ordered[at - 1], ordered[n - at]


@contextmanager
def _progress(
    verbose: int, epochs: int, n_networks: int, names: Sequence[str], gain: Callable[[Any], Any]
) -> Iterator[Callable[[int, float, Info], None] | None]:
    """Show a bar with the ELBO and the column that gains least over knowing its own average."""
    if not verbose:
        yield None
        return
    progress = require("rich.progress", "tool")
    escape = require("rich.markup", "tool").escape
    parts = ("[progress.description]{task.description}", progress.BarColumn(), "{task.completed:g}/{task.total} epochs")
    console = require("rich.console", "tool").Console(stderr=True)  # standard output may be a table
    with progress.Progress(*parts, progress.TimeRemainingColumn(), "{task.fields[state]}", console=console) as bar:
        task = bar.add_task("training", total=epochs * n_networks, state="compiling")

        def show(network: int, epoch: float, info: Info) -> None:
            gains = gain(np.asarray(info.log_likelihood))
            worst = int(np.argmin(gains))
            state = f"ELBO {float(info.elbo):.2f}, worst column {names[worst]} ({gains[worst]:+.2f} nats)"
            bar.update(task, completed=round(network * epochs + epoch + 1, 2), state=escape(state))

        yield show
