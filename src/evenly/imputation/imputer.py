"""The imputer: fills the missing cells of a table from a model of all its columns, keeping its types."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evenly._support import (
    TableError,
    check_input_names,
    output_container,
    showing,
    table_tags,
)
from evenly.engines import open_lazy
from evenly.imputation.callbacks import Callback
from evenly.imputation.columns import BinnedColumn
from evenly.imputation.deltas import read_deltas
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.estimates import explain_estimates
from evenly.imputation.filling import OpenedTable, fill, filling, open_for, warn_of_cells
from evenly.imputation.fitting import fit_ensemble
from evenly.imputation.lazy_filling import transform_lazily
from evenly.imputation.predictor import Predictor
from evenly.imputation.saving import Saved
from evenly.imputation.scored import Scored
from evenly.imputation.settings import check, resolve
from evenly.imputation.shown import Shown
from evenly.imputation.streaming import open_source
from evenly.imputation.training import MOVED, Training, hide_moved, with_moved
from evenly.imputation.transforming_files import transform_parts
from evenly.io import open_parquet, write_parts
from evenly.likelihoods import Likelihood
from evenly.predictive import Predictive
from evenly.scaling import LipschitzScaler
from evenly.tables import Bounds, Floats, Markers, Schema


class Imputer(Saved, Scored, Shown, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fill the missing cells of a mixed table from a model of all its columns.

    Parameters
    ----------
    model : {"auto", "masked", "vae", "mixture", "factorization", "hivae", "marginal"}
        The model of the table. `masked` ("auto") is trained to predict cells that are hidden from it; `marginal`, a
        baseline, imputes each column's mean, quantiles or most frequent class and needs neither JAX nor training;
        `hivae` is HI-VAE; the others are the paper's. With a preset, "auto" is `vae`.
    method : str
        How columns are scaled, as in `LipschitzScaler`; "auto" is `lip-gamma` for `vae` and `factorization` and
        with a preset, `std-none` for `hivae`, else `lip-none`.
    preset : {"paper", "paper-plus"}, optional
        The paper's settings: its bound, zeros clipped to 1e-30, the mode as estimate, its epochs by the number of rows.
        Imputed values are then clipped to the support only, not to the observed range. "paper" has the paper's VAE to
        the letter, "paper-plus" encodes its inputs as well as without a preset.
    kinds, likelihoods, bounds, schema, missing
        As in `LipschitzScaler`; imputed numbers stay within the bounds. `masked` models numbers by a normal and by
        bins, whatever their kind, unless `likelihoods` has one for them.
    balance : str
        How columns are weighed in training, so that loud ones do not drown others: "none", "lip" (one over their
        smoothness; "auto" under `masked` and a method that equalizes it, else "none"), or a rule that weighs anew at
        every step: `uncertainty`, `priority`, `famo`, `gradnorm`, `mgda`, `pcgrad`, `cagrad`, `imtl`, `nash`. A setting
        follows a colon: "cagrad:0.8". See the page on balancing.
    estimate : {"mean", "median", "mode"}
        Which value of a number's distribution is imputed. For classes it is the most probable one (with "median", the
        median class if they are ordered); for numbers that may be codes, instead of the mean, if the note of `schema_`
        says so.
    precision : {"column", "full"}
        Whether imputed numbers are rounded to the precision that the column was recorded with: 38.4 stays at one
        decimal, multiples of 50 stay such. With "full", only a column's type rounds.
    strict : bool
        Whether new rows are refused if they have cells that `fit` refuses, as in `LipschitzScaler`.
    training : Training, optional
        How the model is trained, and its sizes; by default, chosen for the table.
    effort : {"quick", "default", "best"}
        How many networks are trained, for how long, and how many trees a forest has.
    time_limit : float, optional
        Seconds that `fit` may take, up to a fifth more: training ends early. A seed's result depends on the machine.
    callbacks : sequence of Callback, optional
        See `evenly.Callback`.
    random_state : int, RandomState or None
        Seeds all random numbers: the same seed gives the same bytes.
    predictors : mapping of column to columns, optional
        `{"income": ["age", "job"]}` predicts income from age and job alone, and other columns from all.
    groups : column, "auto" or None
        The column that names each row's person, or another unit: other rows of a unit predict, too. "auto" finds a key.
    rules : sequence of str, optional
        What filled tables obey: `"bmi = weight / height**2"`, `"start <= end"`, `"visits only if insured == 'yes'"`.
        Cells that follow from others are not imputed. See the page on rules.
    verbose : int
        1 shows progress, in percent, and the time left. 2 shows the ELBO and the column that is learned worst, too.

    Attributes
    ----------
    scaler_ : LipschitzScaler
        The fitted scaler; `scaler_.summary_` shows how every column was treated.
    schema_ : Schema
        The schema.
    ensemble_ : Ensemble
        The fitted networks, column specs, calibrations and experts.
    history_ : dict
        `elbo`, an array by epoch, and `log_likelihood`, a dict of column to array: the mean over the cells that are
        trained on, in the table's units. Under a trick, and for binned numbers, that of the column's features: for a
        binned number, minus half the squared error of its scaled value plus the log-probability of its bin.
    baseline_ : dict of column to float
        The same under each column's marginal: a column that stays below it is overlooked.
    bins_ : dict of column to Bins
        The bins of each binned number, under `masked` and `marginal`.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

    >>> import numpy as np
    >>> from evenly import Training
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(50.0, 2.0, 200)
    >>> table = np.column_stack([x, 3.0 * x + rng.normal(size=200)])
    >>> table[:20, 1] = np.nan
    >>> imputer = Imputer(training=Training(epochs=20, sizes={"hidden_size": 16}), random_state=0)
    >>> full = imputer.fit_transform(table)
    >>> bool(np.isnan(full).any()), bool((full[20:] == table[20:]).all())
    (False, True)
    """

    def __init__(
        self,
        model: str = "auto",
        method: str = "auto",
        *,
        balance: str = "auto",
        preset: Literal["paper", "paper-plus"] | None = None,
        kinds: Mapping[Any, str] | None = None,
        likelihoods: Mapping[Any, str | Likelihood] | None = None,
        bounds: Mapping[Any, Bounds] | None = None,
        schema: Schema | str | Path | None = None,
        missing: Markers | None = None,
        estimate: Literal["mean", "median", "mode"] = "mean",
        precision: Literal["column", "full"] = "column",
        strict: bool = False,
        training: Training | None = None,
        effort: Literal["quick", "default", "best"] = "default",
        time_limit: float | None = None,
        callbacks: Sequence[Callback] | None = None,
        random_state: Any = None,
        predictors: Mapping[Any, Sequence[Any]] | None = None,
        groups: Any = "auto",
        rules: Sequence[str] | None = None,
        verbose: int = 0,
        **moved: Any,
    ) -> None:
        if unknown := [name for name in moved if name not in MOVED]:
            raise TypeError(f"Imputer() has no parameter {unknown[0]!r}")
        self.model, self.method, self.balance, self.preset = model, method, balance, preset
        self.kinds, self.likelihoods, self.bounds = kinds, likelihoods, bounds
        self.schema, self.missing = schema, missing
        self.estimate, self.precision, self.strict = estimate, precision, strict
        self.training = with_moved(training, moved) if moved else training
        self.effort, self.time_limit = effort, time_limit
        self.callbacks, self.random_state = callbacks, random_state
        self.predictors, self.groups, self.rules, self.verbose = predictors, groups, rules, verbose

    def set_params(self, **params: Any) -> Imputer:
        """Set parameters as in any scikit-learn estimator; those of the training as `training__epochs`."""
        if moved := {name: params.pop(name) for name in MOVED if name in params}:
            self.training = with_moved(self.training, moved)
        if self.training is None and any(name.startswith("training__") for name in params):
            self.training = Training()
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        return table_tags(super().__sklearn_tags__())

    # --- fitting ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Scale the table and train the model on its observed cells. Ctrl-C stops training and keeps the model so far.

        Parameters
        ----------
        X : dataframe, array, lazy frame of an engine, or the path of Parquet files
            A path may be a file, a pattern such as `data/*.parquet`, or a folder. Large files are not read into memory
            at once: `masked`, `vae` and `hivae` are trained on them in parts. Of a large lazy frame, models see a
            random sample.
        """
        settings = resolve(self)
        with showing(self.verbose):
            source = open_source(X, type(self).__name__, settings.seed)
            settings.check_source(source)
            self._remember(X)
            scaler = settings.fit_scaler(source.table)
            return self._become(scaler, fit_ensemble(source, scaler, settings))

    def check_settings(self) -> None:
        """Raise an error for invalid settings, before any long work."""
        check(self)

    @property
    def model_name(self) -> str:
        """The name of the model, with "auto" resolved."""
        return ("vae" if self.preset else "masked") if self.model == "auto" else self.model

    def _become(self, scaler: LipschitzScaler, ensemble: Ensemble) -> Imputer:
        self.__dict__.pop("feature_names_in_", None)  # the new table may have no column names
        if hasattr(scaler, "feature_names_in_"):
            self.feature_names_in_ = scaler.feature_names_in_
        self.n_features_in_, self.seed_ = scaler.n_features_in_, scaler.seed_
        self.scaler_, self.ensemble_ = scaler, ensemble
        self.schema_ = explain_estimates(scaler.schema_, ensemble.calibrations)
        curves = ensemble.curves
        self.history_: dict[str, Any] = {"elbo": curves.elbo, "log_likelihood": dict(curves.log_likelihood)}
        self.baseline_ = dict(curves.baseline)
        self.bins_ = {one.name: one.bins for one in ensemble.specs if isinstance(one, BinnedColumn)}
        return self

    @property
    def online_scaler_(self) -> LipschitzScaler:
        """Under `balance="online"`, the scaler with the scales that training ended with; its summary shows them.

        It is there for models of one's own and for looking at: the imputer's own predictions go by `scaler_`, in whose
        units its model was saved.
        """
        check_is_fitted(self, "scaler_")
        return self.scaler_.rescaled(self.ensemble_.scales)

    # --- using --------------------------------------------------------------------------------------------------

    def transform(self, X: Any, *, delta: Mapping[Any, Any] | None = None) -> Any:
        """Return the table with its missing cells filled; observed cells, types and ignored columns are untouched.

        New rows are treated like those of fit; `mixture` and `factorization` infer the variables that they learned of
        those. Columns are found by name, in any order, and returned in the order of fit; columns that were not in fit
        are dropped, with a warning. A frame of Polars (lazy), DuckDB, Dask, Spark or Ray gives one of the same engine,
        which its workers fill, to the same bytes, when it is asked for; they do not warn of cells.

        Any row goes through, with one warning for each column that needs it. Observed cells stay as they are, but the
        model sees numbers outside a likelihood's support as the nearest inside (in a binned count it takes any), and a
        class that was not seen in fit, an infinite number or a text among numbers as missing. With `strict=True`,
        numbers and texts that it cannot take are errors.

        Parameters
        ----------
        delta : mapping of column to shift, optional
            What to add to imputed numbers, to see what depends on them: `{"income": -5000}`; for classes, to the
            log-odds of some of them: `{"smokes": {"yes": 0.5}}`. See `evenly.delta_sensitivity`.
        """
        if (lazy := open_lazy(X)) is not None:
            return transform_lazily(self, lazy, delta)
        with filling(self, opened := self._open(X)):
            return self._transform(opened, delta)

    def _transform(self, opened: OpenedTable, delta: Mapping[Any, Any] | None = None) -> Any:
        filled = self._predictor(delta).choose(opened.encoded, opened.missing, [self._choose])
        return self._fill(opened, filled[0])

    def transform_file(
        self, source: str | Path, out: str | Path, *, form: str | None = None, delta: Mapping[Any, Any] | None = None
    ) -> None:
        """Fill the missing cells of Parquet files, however large, and write the result to one file.

        Every row is imputed as by `transform`, about 65,000 at a time; columns keep their types. If anything fails, no
        file is written.

        Parameters
        ----------
        source : path
            A Parquet file, a pattern such as `data/*.parquet`, or a folder.
        out : path
            The file to write, in the format of its name or of `form`, as in `evenly.write_table`.
        delta
            As in `transform`.

        Examples
        --------
        Needs `pip install "evenly[all]"`.

        >>> import tempfile
        >>> import polars as pl
        >>> x = np.random.default_rng(0).normal(size=60)
        >>> table = pl.DataFrame({"a": x, "b": 2.0 * x}).with_columns(pl.when(pl.col("a") < 1.0).then("a").alias("a"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.write_parquet(f"{folder}/some.parquet")
        ...     imputer = Imputer("marginal").fit(f"{folder}/some.parquet")
        ...     imputer.transform_file(f"{folder}/some.parquet", f"{folder}/full.parquet")
        ...     pl.read_parquet(f"{folder}/full.parquet").equals(imputer.transform(table))
        True
        """
        check_is_fitted(self, "scaler_")
        self._predictor(delta)  # refuses a wrong delta before any work
        with showing(self.verbose):
            write_parts(transform_parts(self, open_parquet(source), delta), out, form=form)

    def sample(self, X: Any, n: int = 5, *, delta: Mapping[Any, Any] | None = None) -> list[Any]:
        """Return n complete tables, for multiple imputation; see `evenly.pool`.

        In each, latent variables and missing cells are drawn at random; under `masked`, parameters are drawn too, and a
        row's missing cells one after the other, in random order, each given those before. `delta` shifts drawn cells,
        as in `transform`; cells that are drawn later are given the shifted ones.
        """
        if not (isinstance(n, numbers.Integral) and int(n) >= 1):
            raise TableError(f"n = {n!r}", "expected a whole number from 1")
        opened, predictor = self._open(X), self._predictor(delta)
        with filling(self, opened, times=int(n)):
            return [self._fill(opened, one) for one in predictor.draw_some(opened.encoded, opened.missing, int(n))]

    def interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return two tables with the lower and the upper ends of central intervals of the missing cells.

        A missing number lies between them with the probability `level`, if the model is right. Observed cells and
        imputed classes are the same in both. Ends are rounded like imputed numbers, to the nearest. For the paper's
        models, they are quantiles of up to 1,000 draws: levels above 0.998 give the smallest and the largest draw.
        """
        opened = self._open(X)
        low, high = self._ends(opened, level)
        return self._fill(opened, low), self._fill(opened, high)

    def _ends(self, opened: OpenedTable, level: float) -> list[list[Floats]]:
        if not (isinstance(level, numbers.Real) and 0.0 < float(level) < 1.0):
            raise TableError(f"level = {level!r}", "expected a number between 0 and 1")
        return self._predictor().interval(opened.encoded, opened.missing, float(level), self._choose)

    def distribution(self, X: Any) -> dict[str, Predictive]:
        """Return the distribution of every cell of each modelled column, in the table's units.

        Observed cells have one too, as predicted by the model. Ignored, constant and empty columns are left out. See
        `evenly.Predictive`: mean, mode, quantiles, intervals, samples, log-probabilities, and `to_frame`.
        """
        return self._predictor().distributions(self._open(X).encoded)

    def _choose(self, found: Predictive) -> Floats:
        """Return the values to impute."""
        return found.estimate("mode" if self.preset else self.estimate)

    def _predictor(self, delta: Mapping[Any, Any] | None = None) -> Predictor:
        check_is_fitted(self, "scaler_")
        n_draws = int((self.training or Training()).n_draws)
        deltas = read_deltas(delta, {one.fitted.label: one.column for one in self.ensemble_.modelled})
        rounds = self.precision == "column"
        return Predictor(self.ensemble_, self.seed_, n_draws, self.preset is not None, rounds, deltas)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns, as in fit."""
        check_is_fitted(self, "scaler_")
        return np.asarray(check_input_names(self, input_features), dtype=object)

    def _open(self, X: Any) -> OpenedTable:
        opened = self._open_quietly(X)
        warn_of_cells(opened.changes, stacklevel=3)
        return opened

    def _open_quietly(self, X: Any) -> OpenedTable:
        check_is_fitted(self, "scaler_")
        return open_for(self, self.scaler_, self.ensemble_, X)

    def _fill(self, opened: OpenedTable, filled: Sequence[Floats]) -> Any:
        return fill(opened, filled, self.scaler_, output_container(self))


hide_moved(Imputer)
