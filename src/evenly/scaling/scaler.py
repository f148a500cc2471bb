"""LipschitzScaler: schema, statistics, scales and recovery behind the face of a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
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
from evenly.likelihoods import Array, Likelihood
from evenly.scaling.fitted import fit_scales
from evenly.scaling.inputs import check_width
from evenly.scaling.lazy_frames import open_lazy
from evenly.scaling.measuring import MeasuredColumn, Measurer
from evenly.scaling.merging import merge_columns
from evenly.scaling.methods import METHODS, get_method
from evenly.scaling.saving import scaler_from_plain, scaler_to_plain
from evenly.scaling.settings import check_alike, check_mergeable, check_settings, own_likelihoods
from evenly.scaling.summary import summary_table, warn_of_outcomes
from evenly.scaling.transforming import Transformation
from evenly.tables import (
    Floats,
    LazyTable,
    Rule,
    Schema,
    Table,
    TableColumn,
    Value,
    make_rules,
    open_table,
)


class LipschitzScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
    bound : {"exact", "paper"}
        The smoothness of the scaled feature itself, or the paper's upper bound of it, taken after standardizing.
    schema : Schema, path or None
        A schema, for example edited by hand; columns that it leaves out are inferred. `kinds` and `likelihoods`
        override it; its markers and bounds stay.
    missing : markers, or mapping of column to markers, optional
        Values that mean a missing cell, such as `[-999]`, beside `?`, `NA` and empty texts.
    zeros : {"shift", "clip"}
        What to do with zeros in a positive column: shift it by its smallest positive value, or clip them to 1e-30 as
        the paper's code does.
    random_state : int, RandomState or None
        Seeds the noise of the Gamma trick. Fitting draws no noise.

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
        bound: Literal["exact", "paper"] = "exact",
        schema: Schema | str | Path | None = None,
        missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
        zeros: Literal["shift", "clip"] = "shift",
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.learning_rate = learning_rate
        self.target = target
        self.kinds = kinds
        self.likelihoods = likelihoods
        self.bound = bound
        self.schema = schema
        self.missing = missing
        self.zeros = zeros
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = table_tags(super().__sklearn_tags__())
        # The Gamma trick's noise belongs to a row's position: rows in another order get other noise.
        tags.non_deterministic = getattr(METHODS.get(str(self.method)), "trick", None) == "gamma"
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
        warn_of_outcomes(self.columns_, stacklevel=2)
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
        for one in (self, other):
            check_is_fitted(one, "columns_")
        check_alike(self, other)
        theirs = {one.label: one for one in other.columns_}
        names = [TableColumn(one.column.name, None) for one in self.columns_]
        measurer, rules = self._start(Table(names, [one.label for one in self.columns_], 0, self.container_))
        columns = [
            merge_columns(one, theirs[one.label], rule, measurer)
            for one, rule in zip(self.columns_, rules, strict=True)
        ]
        merged = copy(self)
        merged._fit_scales(columns, measurer.own)
        warn_of_outcomes(merged.columns_, stacklevel=2)
        return merged

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
        warn_of_outcomes(self.columns_, stacklevel=3)
        return self

    def _start(self, opened: Table | LazyTable) -> tuple[Measurer, list[Rule]]:
        """Check the settings; returns what measures columns, and what is declared of each."""
        check_settings(self)
        rules = make_rules(
            opened,
            kinds=self.kinds,
            likelihoods=self.likelihoods,
            schema=self.schema,
            missing=self.missing,
            zeros=self.zeros,
        )
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

    @property
    def schema_(self) -> Schema:
        """What was inferred or declared of each column."""
        check_is_fitted(self, "columns_")
        return Schema(columns=[one.column for one in self.columns_])

    @property
    def summary_(self) -> Any:
        """One row a feature: a Polars table for one, else a pandas table if it is installed, else a record array."""
        check_is_fitted(self, "columns_")
        return summary_table(self.columns_, self.container_, with_bound=self.bound == "paper")

    @property
    def natural_(self) -> dict[str, Floats]:
        """Maximum-likelihood natural parameters of the scaled features, by feature."""
        check_is_fitted(self, "columns_")
        pairs = [pair for one in self.columns_ for pair in zip(one.features, one.fits, strict=True)]
        return {one.name: fit.natural for one, fit in pairs if fit.natural is not None}

    # --- using --------------------------------------------------------------------------------------------------

    @property
    def _transformation(self) -> Transformation:
        check_is_fitted(self, "columns_")
        return Transformation(self.columns_, self.container_, self.seed_)

    def transform(self, X: Any, key: Any = None) -> Any:
        """Scale a table. Missing cells stay missing; columns are found by name, in any order.

        Classes that were not there in fit become missing cells, with a warning. Passed-through columns come back as
        they are.

        Parameters
        ----------
        X : table
            A lazy frame gives a lazy frame of its engine, scaled by expressions: nothing is computed yet, so nothing
            can be checked. What would be an error or a warning in memory becomes a missing cell.
        key : column, optional
            A column of whole numbers that identifies rows. The noise of the Gamma trick is drawn by it, the same on
            every engine; without it, by a row's position. A lazy frame needs it.

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
        opened = open_table(X)
        check_width(self, opened)
        return fitted.scale(opened, output_container(self), key, 0)

    def transform_parts(self, parts: Iterable[Any], key: Any = None, start: int = 0) -> Iterator[Any]:
        """Scale a table that comes in parts, one after another; together they equal `transform` of the whole.

        Parameters
        ----------
        parts : iterable of tables
            In memory, one at a time. Rows are numbered across parts, so that the noise is that of the whole.
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
        for part in parts:
            opened = open_table(part)
            check_width(self, opened)
            yield fitted.scale(opened, output_container(self), key, start)
            start += opened.n_rows

    def inverse_transform(self, X: Any) -> Any:
        """Return the original columns, with their types and classes, from scaled features."""
        return self._transformation.restore(open_table(X))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the features: the column's, or `column=class` where a column was split."""
        check_is_fitted(self, "columns_")
        check_input_names(self, input_features)
        return np.array(self._transformation.names_out, dtype=object)

    def unscale(self, natural: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
        """Return usual parameters per column, in the table's units, tricks undone.

        Parameters
        ----------
        natural : mapping of feature to array
            Natural parameters of the scaled features, along the last axis (NumPy, JAX or PyTorch).

        Returns
        -------
        dict of column to dict of parameter to array
            Columns none of whose features are given are left out.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> table = np.column_stack([rng.normal(0.0, 2.0, 500), rng.poisson(3.0, 500)])
        >>> scaler = LipschitzScaler(random_state=0).fit(table)
        >>> usual = scaler.unscale(scaler.natural_)
        >>> bool(np.isclose(usual["x0"]["mean"], table[:, 0].mean()))
        True
        >>> bool(np.isclose(usual["x1"]["rate"], table[:, 1].mean()))
        True
        """
        return self._transformation.recover(natural)

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
