"""LipschitzScaler: schema, statistics, scales and recovery behind the face of a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evenly._support import (
    TableError,
    check_input_names,
    output_container,
    read_json,
    saved_path,
    table_tags,
    write_json,
)
from evenly.likelihoods import Likelihood
from evenly.scaling.fitted import fit_scales
from evenly.scaling.inputs import check_width, open_checked
from evenly.scaling.lazy_frames import open_lazy
from evenly.scaling.measuring import MeasuredColumn, Measurer
from evenly.scaling.merging import merge_scalers
from evenly.scaling.methods import METHODS, get_method
from evenly.scaling.model_side import ModelSide
from evenly.scaling.saving import scaler_from_plain, scaler_to_plain
from evenly.scaling.settings import check_mergeable, check_settings, own_likelihoods
from evenly.scaling.summary import Reported, warn_of_outcomes
from evenly.scaling.transforming import NewRows, Transformation, warn_of_changes
from evenly.tables import (
    DECLARED,
    Bounds,
    LazyTable,
    Markers,
    Rule,
    Schema,
    Table,
    make_rules,
    open_table,
)


class LipschitzScaler(Reported, ModelSide, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scale every column so that the local smoothness of its log-likelihood is the same.

    Parameters
    ----------
    method : str
        One of `std-none`, `max-none`, `iqr-none`, `lip-none`, `lip-bern`, `std-gamma`, `lip-gamma`: how continuous
        features are scaled, and which trick discrete columns get.
    learning_rate : float
        Of the training that follows; the default target is 1 / (scaled columns * learning_rate).
    target : float, optional
        The smoothness that every column should have.
    kinds : mapping of column to kind, optional
        Overrides what is inferred: `{"age": "count", "id": "ignore"}`.
    likelihoods : mapping of column to likelihood, optional
        A name such as `"gamma"`, or a likelihood from `define_likelihood`.
    bounds : mapping of column to (lower, upper), optional
        The smallest and the largest number that a column may hold; None leaves an end open. Cells outside are errors.
    bound : {"exact", "paper"}
        The smoothness of the scaled feature itself, or the paper's upper bound of it, taken after standardizing.
    schema : Schema, path or None
        A schema, for example edited by hand; columns that it leaves out are inferred. `kinds`, `likelihoods` and
        `bounds` override it; `missing` adds to its markers.
    missing : markers, or mapping of column to markers, optional
        Values that mean a missing cell, such as `[-999]`, beside `?`, `NA` and empty texts. `[-999, {"age": [-1]}]` has
        markers of all columns and of one.
    zeros : {"shift", "clip"}
        What to do with zeros in a positive column: shift it by its smallest positive value, or clip them to 1e-30 as
        the paper's code does.
    noise : {"mean", "drawn"}
        What the Gamma trick adds to discrete values in `transform`: the mean of its noise, so that the features of a
        row depend on that row alone, or noise drawn by the row's position or key, as the paper trains its models on.
    strict : bool
        Whether `transform` refuses the cells that `fit` refuses. By default, a value without a density is used as the
        nearest one that has it, and what is no finite number counts as missing, with a warning.
    handle_unknown : {"ignore", "error"}
        What `transform` does with classes that were not there in fit: 0 in all features of a split column, else the
        most frequent class, with a warning; or an error.
    passthrough : {"drop", "keep"}
        Whether `transform` leaves out columns that are no variables (identifiers, dates, free text, no observed cell),
        or returns them as they are.
    dates : {"ignore", "model"}
        Whether columns that are found to be dates are variables: days since the column's mean, as real numbers. Columns
        that are declared to be of the kind `date` always are.
    random_state : int, RandomState or None
        Seeds noise that is drawn. Fitting draws none.

    Attributes
    ----------
    summary_ : table
        One row a feature: column, feature, kind, likelihood, smoothness_before, scale, smoothness_after, outcome; with
        `bound="paper"` also bound_after.
    schema_ : Schema
        What was inferred or declared.
    target_ : float
        The smoothness aimed at.
    natural_ : dict of feature to array
        Maximum-likelihood natural parameters of the scaled features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(50.0, 2.0, 500), rng.poisson(3.0, 500)])
    >>> scaler = LipschitzScaler(random_state=0).fit(table)
    >>> [str(value) for value in scaler.summary_["outcome"]]
    ['reached', 'reached']
    >>> scaled = scaler.transform(table)
    >>> bool(np.allclose(scaler.inverse_transform(scaled), table))
    True

    A table with nothing to scale is no error; the outcome is named:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     str(LipschitzScaler().fit([[1.0], [1.0]]).summary_["outcome"][0])
    'constant'
    """

    def __init__(
        self,
        method: str = "lip-gamma",
        *,
        learning_rate: float = 1e-3,
        target: float | None = None,
        kinds: Mapping[Any, str] | None = None,
        likelihoods: Mapping[Any, str | Likelihood] | None = None,
        bounds: Mapping[Any, Bounds] | None = None,
        bound: Literal["exact", "paper"] = "exact",
        schema: Schema | str | Path | None = None,
        missing: Markers | None = None,
        zeros: Literal["shift", "clip"] = "shift",
        noise: Literal["mean", "drawn"] = "mean",
        strict: bool = False,
        handle_unknown: Literal["ignore", "error"] = "ignore",
        passthrough: Literal["drop", "keep"] = "drop",
        dates: Literal["ignore", "model"] = "ignore",
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.learning_rate = learning_rate
        self.target = target
        self.kinds = kinds
        self.likelihoods = likelihoods
        self.bounds = bounds
        self.bound = bound
        self.schema = schema
        self.missing = missing
        self.zeros = zeros
        self.noise = noise
        self.strict = strict
        self.handle_unknown = handle_unknown
        self.passthrough = passthrough
        self.dates = dates
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = table_tags(super().__sklearn_tags__())
        # Drawn noise belongs to a row's position: rows in another order get other noise.
        tricked = getattr(METHODS.get(str(self.method)), "trick", None) == "gamma"
        tags.non_deterministic = tricked and self.noise == "drawn"
        return tags

    # --- fitting ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> LipschitzScaler:
        """Infer the schema, take the statistics and find the scales. Missing cells are ignored."""
        lazy = open_lazy(X)
        return self._fit_first(open_table(X) if lazy is None else lazy)

    def partial_fit(self, X: Any, y: Any = None) -> LipschitzScaler:
        """Add a part of a table; the first part decides the schema, later ones may bring new classes."""
        if open_lazy(X) is not None:
            raise TableError("a lazy frame", "expected a part in memory", "fit each part and add the scalers: a + b")
        opened = open_table(X)
        if not hasattr(self, "columns_"):
            return self._fit_first(opened)
        check_width(self, opened)
        check_mergeable(self.method)
        measurer = Measurer(self._own, quartiles=False)
        columns = measurer.measure_more(opened, self.columns_, by_position=self.container_ == "numpy")
        self._fit_scales(columns, self._own)
        warn_of_outcomes(self.columns_, self.passthrough, stacklevel=2)
        return self

    def __add__(self, other: LipschitzScaler) -> LipschitzScaler:
        """Return what the two parts of a table that these were fitted on give together, exactly.

        Kinds, classes and likelihoods are inferred for the whole, as far as the parts allow; parts that cannot be
        merged are refused. The noise is that of the first.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> table = np.column_stack([rng.normal(50.0, 2.0, 500), rng.poisson(3.0, 500)])
        >>> both = LipschitzScaler(random_state=0).fit(table[:100]) + LipschitzScaler(random_state=0).fit(table[100:])
        >>> whole = LipschitzScaler(random_state=0).fit(table)
        >>> bool(np.allclose(both.summary_["scale"], whole.summary_["scale"], rtol=1e-12))
        True
        """
        if not isinstance(other, LipschitzScaler):
            return NotImplemented
        return merge_scalers(self, other)

    def __radd__(self, other: Any) -> LipschitzScaler:
        """Let `sum` add up scalers, which starts with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _fit_first(self, opened: Table | LazyTable) -> LipschitzScaler:
        """Fit a table, forgetting what was fitted before; if that fails, the scaler is as it was."""
        measurer, rules = self._start(opened)
        columns = measurer.measure(opened, rules)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._fit_scales(columns, measurer.own)
        self.seed_, self.container_, self.n_features_in_ = seed, opened.container, len(opened.columns)
        self.__dict__.pop("feature_names_in_", None)  # the new table may have no names
        if opened.container != "numpy" and all(isinstance(label, str) for label in opened.labels):
            self.feature_names_in_ = np.array(opened.labels, dtype=object)
        warn_of_outcomes(self.columns_, self.passthrough, stacklevel=3)
        return self

    def _start(self, opened: Table | LazyTable) -> tuple[Measurer, list[Rule]]:
        """Check the settings; returns what measures columns, and what is declared of each."""
        check_settings(self)
        rules = make_rules(opened, zeros=self.zeros, **{name: getattr(self, name) for name in DECLARED})
        rules = [replace(one, dates=self.dates == "model") for one in rules]
        return Measurer(own_likelihoods(self.likelihoods), get_method(self.method).needs_quartiles), rules

    def _fit_scales(self, columns: Sequence[MeasuredColumn], own: Mapping[str, Likelihood]) -> None:
        """Find the scales of measured columns, and keep them."""
        self.target_, self.columns_ = fit_scales(
            columns,
            get_method(self.method),
            target=self.target,
            learning_rate=self.learning_rate,
            bound=self.bound,
        )
        self._own = own

    # --- using --------------------------------------------------------------------------------------------------

    @property
    def _transformation(self) -> Transformation:
        check_is_fitted(self, "columns_")
        rows = NewRows(self.strict, self.handle_unknown, self.passthrough)
        return Transformation(self.columns_, self.container_, self.seed_, drawn=self.noise == "drawn", rows=rows)

    def transform(self, X: Any, key: Any = None) -> Any:
        """Scale a table. Missing cells stay missing; columns are found by name, in any order.

        Any row goes through: what a likelihood has no density for, and classes that were not there in fit, are changed
        as `strict` and `handle_unknown` say, with one warning for each column. A number outside an open end of the
        support, such as 0 in a column of positive ones, is used as the outermost value of fit; in a count, numbers are
        rounded, and raised to 0; numbers outside declared bounds are used as the nearer one.

        Parameters
        ----------
        X : table
            A lazy frame gives a lazy frame of its engine, scaled by expressions, to the same numbers. Nothing is
            computed yet, so there are no warnings; where memory would raise an error, cells are missing.
        key : column, optional
            A column of whole numbers that identifies rows. The noise of the Gamma trick is then drawn by it, the same
            on every engine, whatever `noise` is. Drawn noise on a lazy frame, which has no positions, needs it.

        Examples
        --------
        Needs `pip install "evenly[tool]"`.

        >>> import polars as pl
        >>> table = pl.DataFrame({"id": range(7, 31), "x": [0.5, -2.0] * 12, "c": ["a", "b", "b"] * 8})
        >>> scaler = LipschitzScaler(kinds={"id": "ignore"}, random_state=0).fit(table.lazy())
        >>> lazy = scaler.transform(table.lazy(), key="id")
        >>> bool(np.allclose(lazy.collect(), scaler.transform(table, key="id")))
        True
        """
        fitted, lazy = self._transformation, open_lazy(X)
        if lazy is not None:
            return fitted.scale_lazily(lazy, output_container(self), key)
        scaled, changes = fitted.scale(open_checked(self, X), output_container(self), key, 0)
        warn_of_changes(changes, stacklevel=2)
        return scaled

    def transform_parts(self, parts: Iterable[Any], key: Any = None, start: int = 0) -> Iterator[Any]:
        """Scale a table that comes in parts, one after another; together they equal `transform` of the whole.

        Warnings of changed cells come after the last part.

        Parameters
        ----------
        parts : iterable of tables
            In memory, one at a time. Rows are numbered across parts, so that drawn noise is that of the whole.
        key : column, optional
            As for `transform`.
        start : int
            The position of the first row.

        Examples
        --------
        >>> table = np.random.default_rng(0).poisson(3.0, (500, 2))
        >>> scaler = LipschitzScaler(random_state=0).fit(table)
        >>> parts = list(scaler.transform_parts([table[:7], table[7:]]))
        >>> bool((np.concatenate(parts) == scaler.transform(table)).all())
        True
        """
        fitted = self._transformation
        return fitted.scale_parts(map(partial(open_checked, self), parts), output_container(self), key, start)

    def inverse_transform(self, X: Any) -> Any:
        """Return the original columns, with their types and classes, from scaled features.

        Columns that `transform` dropped are absent, unless the table has them. A split column's cell is missing where
        its features are all 0, which a class gives that was not there in fit; for other changed cells of new rows, the
        value comes back that was used.
        """
        return self._transformation.restore(open_table(X))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the features: the column's, or `column=class` where a column was split."""
        check_is_fitted(self, "columns_")
        check_input_names(self, input_features)
        return np.array(self._transformation.names_out, dtype=object)

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted scaler to a JSON file (`scaler.json` inside it, if the path is a folder)."""
        write_json(saved_path(path, "scaler.json"), self.to_plain())

    def to_plain(self) -> dict[str, Any]:
        """Return all of the fitted scaler as JSON holds it."""
        check_is_fitted(self, "columns_")
        return scaler_to_plain(self)

    @classmethod
    def load(cls, path: str | Path, *, likelihoods: Sequence[Likelihood] | Mapping[Any, Any] = ()) -> LipschitzScaler:
        """Read a scaler that `save` wrote; no code of the file is run.

        Likelihoods of your own are code, so they are not in the file: give them again.

        Examples
        --------
        >>> import tempfile
        >>> scaler = LipschitzScaler("lip-none").fit([[1.5], [2.5], [4.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scaler.save(folder)
        ...     again = LipschitzScaler.load(folder)
        >>> bool((again.transform([[3.0]]) == scaler.transform([[3.0]])).all())
        True
        """
        file = saved_path(path, "scaler.json")
        saved = read_json(file, cls.__name__)
        return cls.from_plain(saved, likelihoods, file)

    @classmethod
    def from_plain(
        cls, saved: dict[str, Any], likelihoods: Sequence[Likelihood] | Mapping[Any, Any], file: Path
    ) -> LipschitzScaler:
        """Return a scaler from what `to_plain` gave; `file` is for messages."""
        return scaler_from_plain(cls, saved, likelihoods, file)
