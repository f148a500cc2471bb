"""LipschitzScaler: schema, statistics, scales and recovery behind the face of a scikit-learn transformer."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config  # the only way to learn what set_output asked for
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from evenly._support import EvenlyWarning, TableError, read_json, readable, saved_path, write_json
from evenly._version import __version__
from evenly.likelihoods import FAMILIES, Array, Likelihood, is_registered
from evenly.scaling.feature_fit import FittedScale
from evenly.scaling.lazily import lazy_scaling
from evenly.scaling.merging import Part, merge_parts
from evenly.scaling.methods import METHODS, get_method
from evenly.scaling.outcomes import Outcome
from evenly.scaling.recover import recover_column
from evenly.scaling.statistics import (
    ColumnStatistics,
    Request,
    from_counts,
    measure_counts,
    measure_frame,
    measure_values,
    prepare,
)
from evenly.scaling.tricks import Feature, check_key, feature_statistics, feature_values, features_of, undo_values
from evenly.tables import (
    Column,
    Facts,
    Floats,
    LazyTable,
    Rule,
    Schema,
    Stored,
    Table,
    TableColumn,
    Value,
    build_table,
    check_values,
    column_likelihood,
    decode,
    encode,
    encode_counts,
    encode_growing,
    look,
    make_rules,
    map_columns,
    open_lazy,
    open_table,
    restore_column,
    select,
)

SUMMARY_COLUMNS = (
    "column",
    "feature",
    "kind",
    "likelihood",
    "smoothness_before",
    "scale",
    "smoothness_after",
    "outcome",
)


class FittedColumn(NamedTuple):
    """One column of a fitted table: its label, what it is, its features with their scales, and its statistics."""

    label: Any
    column: Column
    family: Likelihood | None
    """Its own likelihood, whatever the trick; None if it is ignored."""
    features: list[Feature]
    fits: list[FittedScale]
    statistics: ColumnStatistics
    frequencies: Floats
    stored: Stored
    originals: tuple[Any, ...]

    def encode(self, cells: TableColumn) -> tuple[Floats, list[Any]]:
        """Return the checked values or codes of cells, and the classes that fit did not see."""
        assert self.family is not None
        values, unknown = encode(self.column, TableColumn(cells.name, cells.native))
        check_values(self.column, values, self.family)
        return values, unknown

    def unseen(self, unknown: Sequence[Any], what: str) -> str:
        """Say what becomes of classes that fit did not see."""
        return f"column {self.column.name!r}: classes not seen in fit {what}: {list(unknown[:5])}"

    def scale(
        self, values: Floats, seed: int | None, keys: npt.NDArray[np.int64] | None = None, start: int = 0
    ) -> list[Floats]:
        """Return the scaled features from values or codes; without a seed, with the mean of the noise."""
        prepared = prepare(self.column, values)
        return [
            one.likelihood.scale_data(feature_values(one, prepared, seed, keys, start), fit.scale)
            for one, fit in zip(self.features, self.fits, strict=True)
        ]

    def recover(self, naturals: Sequence[Array]) -> dict[str, Array]:
        """Return usual parameters from the natural ones of its scaled features."""
        scales = [fit.scale for fit in self.fits]
        return recover_column(self.column, self.features, scales, naturals, self.frequencies)


class LipschitzScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scale every column so that the local smoothness of its log-likelihood is the same.

    Parameters
    ----------
    method : str
        One of `std-none`, `max-none`, `iqr-none`, `lip-none`, `lip-bern`, `std-gamma`, `lip-gamma`: how continuous
        features are scaled, and which trick discrete columns get.
    learning_rate : float
        Of the training to come; the default target is 1 / (scaled columns * learning_rate).
    target : float, optional
        The smoothness that every column is to have.
    kinds : mapping of column to kind, optional
        Overrides what is inferred: `{"age": "count", "id": "ignore"}`.
    likelihoods : mapping of column to likelihood, optional
        A name such as `"gamma"`, or a likelihood from `define_likelihood`.
    bound : {"exact", "paper"}
        The smoothness of the scaled feature itself, or the paper's upper bound of it, taken after standardizing.
    schema : Schema, path or None
        A schema, for example edited by hand; columns that it leaves out are inferred. `kinds` and `likelihoods` come
        first; the markers and bounds of the schema stay.
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

    A table without anything to scale is no error; the outcome says so:

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     LipschitzScaler().fit([[1.0], [1.0]]).summary_["outcome"][0]
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
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        # The Gamma trick's noise belongs to a row's position: rows in another order get other noise.
        tags.non_deterministic = getattr(METHODS.get(str(self.method)), "trick", None) == "gamma"
        return tags

    # --- fitting ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> LipschitzScaler:
        """Infer the schema, take the statistics and find the scales. Missing cells are ignored."""
        lazy, fresh = open_lazy(X), self._unfitted()
        if lazy is not None:
            fresh._take_lazily(lazy)
            return self._become(fresh)
        opened = open_table(X)
        fresh._take(opened, fresh._start(opened), first=True)
        return self._become(fresh)

    def _take_lazily(self, table: LazyTable) -> None:
        """Infer the schema and take the statistics on the table's own engine, then settle the scales."""
        quartiles = get_method(self.method).needs_quartiles
        columns, inferred, statistics = zip(
            *lazy_scaling().measure_lazily(table, self._rules(table), self._family, quartiles=quartiles), strict=True
        )
        self._remember(table, columns, inferred)
        self._statistics: list[ColumnStatistics] = list(statistics)
        self._settle()

    def partial_fit(self, X: Any, y: Any = None) -> LipschitzScaler:
        """Add a part of a table; the first part decides the schema, later ones may bring new classes."""
        if open_lazy(X) is not None:
            raise TableError("a lazy frame", "expected a part in memory", "fit each part and add the scalers: a + b")
        opened = open_table(X)
        fresh = self._unfitted()
        if not hasattr(self, "schema_"):
            fresh._take(opened, fresh._start(opened), first=True)
            return self._become(fresh)
        check_width(self, opened)
        if not get_method(self.method).mergeable:
            raise TableError("parts of a table", "quartiles need all rows at once", "use fit, or another method")
        fresh.__dict__.update(self.__dict__ | {"schema_": self.schema_.model_copy(deep=True)})
        fresh._take(opened, [None] * len(self._labels), first=False)
        return self._become(fresh)

    def __add__(self, other: LipschitzScaler) -> LipschitzScaler:
        """Return what the two parts of a table that these were fitted on give together, exactly.

        Kinds, classes and likelihoods are those of the whole, as far as the parts tell; parts that cannot be merged
        are refused. The noise is the first one's.

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
            check_is_fitted(one, "schema_")
        _check_alike(self, other)
        fresh = self._unfitted()
        fresh.__dict__.update(self.__dict__)
        order = [other._labels.index(label) for label in self._labels]
        parts = zip(self.schema_.columns, self._statistics, order, strict=True)
        names = [column.name for column in self.schema_.columns]
        rules = fresh._rules(Table([TableColumn(name, None) for name in names], self._labels, 0, self.container_))
        merged = [
            merge_parts(
                Part(column, statistics),
                Part(other.schema_.columns[j], other._statistics[j]),
                rule,
                stored,
                fresh._family,
            )
            for (column, statistics, j), rule, stored in zip(parts, rules, self._stored, strict=True)
        ]
        fresh.schema_ = Schema(columns=[part.column for part in merged])
        fresh._statistics = [part.statistics for part in merged]
        fresh._originals = [
            tuple(dict.fromkeys([*own, *other._originals[j]])) for own, j in zip(self._originals, order, strict=True)
        ]
        fresh._found_ignored = self._found_ignored | other._found_ignored
        fresh._found_ignored &= {part.column.name for part in merged if part.column.kind == "ignore"}
        fresh._settle()
        return self._unfitted()._become(fresh)

    def __radd__(self, other: Any) -> LipschitzScaler:
        """Let `sum` add up scalers, which starts with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _unfitted(self) -> LipschitzScaler:
        """Return a scaler with the same settings to fit: if that fails, this one is as it was."""
        return type(self)(**self.get_params(deep=False))

    def _become(self, fitted: LipschitzScaler) -> LipschitzScaler:
        settings = self.get_params(deep=False)
        self.__dict__.pop("feature_names_in_", None)  # the new table may have no names
        self.__dict__.update({name: value for name, value in fitted.__dict__.items() if name not in settings})
        self._tell()
        return self

    def _check(self) -> None:
        """Refuse settings that mean nothing."""
        get_method(self.method)
        for name, value in (("learning_rate", self.learning_rate), ("target", self.target)):
            if value is not None and not (isinstance(value, numbers.Real) and np.isfinite(value) and value > 0):
                raise TableError(f"{name} = {value!r}", "expected a positive number")
        if self.bound not in ("exact", "paper"):
            raise TableError(f"bound = {self.bound!r}", "expected 'exact' or 'paper'")
        if self.zeros not in ("shift", "clip"):
            raise TableError(f"zeros = {self.zeros!r}", "expected 'shift' or 'clip'")

    def _rules(self, opened: Table | LazyTable) -> list[Rule]:
        """Check the settings; returns what is declared of each column."""
        self._check()
        self._own = _own_likelihoods(self.likelihoods)
        return make_rules(
            opened,
            kinds=self.kinds,
            likelihoods=self.likelihoods,
            schema=self.schema,
            missing=self.missing,
            zeros=self.zeros,
        )

    def _start(self, opened: Table) -> list[Facts | None]:
        """Check the settings and infer the schema; returns what was seen of each column on the way."""

        def infer(rule: Rule, cells: TableColumn) -> tuple[Column, Facts | None]:
            fresh = TableColumn(cells.name, cells.native)  # what it caches goes when it goes
            column, facts = rule.infer(fresh, lambda: look(fresh, rule.missing))
            return column, None if facts is None else replace(facts, numbers=None)

        pairs = map_columns(infer, self._rules(opened), opened.columns, n_rows=opened.n_rows)
        self._remember(opened, *zip(*((column, facts is not None) for column, facts in pairs), strict=True))
        return [facts for _, facts in pairs]

    def _remember(self, opened: Table | LazyTable, columns: Sequence[Column], inferred: Sequence[bool]) -> None:
        """Keep what the fitted table was, and what was decided of its columns."""
        self.schema_ = Schema(columns=list(columns))
        self.container_ = opened.container
        self.n_features_in_ = len(opened.columns)
        if opened.container != "numpy" and all(isinstance(label, str) for label in opened.labels):
            self.feature_names_in_ = np.array(opened.labels, dtype=object)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._labels = opened.labels
        self._stored = [cells.stored for cells in opened.columns]
        self._originals = [_originals(cells) for cells in opened.columns]
        # Columns that were found to be no variable are told once; those that the user ignores are not.
        found = zip(columns, inferred, strict=True)
        self._found_ignored = {column.name for column, asked in found if asked and column.kind == "ignore"}

    def _family(self, column: Column) -> Likelihood:
        return column_likelihood(column, self._own)

    def _take(self, opened: Table, seen: Sequence[Facts | None], *, first: bool) -> None:
        """Take the statistics of a table or of a part of one, then settle the scales."""
        cells, _ = select(opened, self._labels, by_position=self.container_ == "numpy")
        quartiles = get_method(self.method).needs_quartiles

        def measure(column: Column, stored: TableColumn, facts: Facts | None) -> ColumnStatistics | Request:
            fresh = TableColumn(stored.name, stored.native)
            if column.kind == "ignore":
                return ColumnStatistics(fresh.n_observed, 0.0, 0.0)
            family = self._family(column)
            bounded = column.lower is not None or column.upper is not None
            counts = None
            if facts is not None and not family.scalable and not bounded:
                counts = encode_counts(column, facts)
            if counts is not None:
                return from_counts(counts)
            if facts is None and not column.has_classes:
                facts = look(fresh, column.missing)
            values = encode_growing(column, fresh)
            family = self._family(column)  # a third class makes it another
            check_values(column, values, family)
            if not family.scalable:
                return measure_counts(values)
            assert facts is not None
            extent = (facts.minimum, facts.maximum)
            by_engine = opened.container == "polars" and fresh.storage in ("integer", "float") and not quartiles
            if by_engine and not column.missing and facts.n:
                return (column.name, column, family, facts.mean, extent)
            return measure_values(column, family, values, facts.mean, extent, quartiles)

        parts = map_columns(measure, self.schema_.columns, cells, seen, n_rows=opened.n_rows)
        requests = [part for part in parts if isinstance(part, tuple)]
        answers = iter(measure_frame(opened.frame.lazy(), requests) if requests else [])
        parts = [next(answers) if isinstance(part, tuple) else part for part in parts]
        if not first:
            parts = [
                old.merge(new, None if column.kind == "ignore" else self._family(column))
                for column, old, new in zip(self.schema_.columns, self._statistics, parts, strict=True)
            ]
        self._statistics = parts
        self._settle()

    def _settle(self) -> None:
        """Find the scales from the statistics."""
        method = get_method(self.method)
        features = [
            [] if column.kind == "ignore" else features_of(j, column, self._family(column), method.trick)
            for j, column in enumerate(self.schema_.columns)
        ]
        # Columns keep their names; a feature `a=b` of a column `a` gives way to a column of that name.
        split = [bool(group) and group[0].code is not None for group in features]
        taken = {column.name for column, apart in zip(self.schema_.columns, split, strict=True) if not apart}
        features = [
            [replace(one, name=_unused(one.name, taken)) for one in group] if apart else group
            for group, apart in zip(features, split, strict=True)
        ]
        scaled = sum(
            bool(group) and stats.n > 0 and not stats.constant and group[0].likelihood.scalable
            for group, stats in zip(features, self._statistics, strict=True)
        )
        self.target_ = float(self.target or 1.0 / (max(scaled, 1) * self.learning_rate))
        self._features = features
        self._fitted = [
            [
                method.fit_scale(
                    one,
                    feature_statistics(one, stats),
                    self.target_ / len(group),
                    bound=self.bound,
                    constant=stats.constant,
                )
                for one in group
            ]
            for group, stats in zip(features, self._statistics, strict=True)
        ]

    def _tell(self) -> None:
        """Warn of every outcome that a user may not expect, once each, with the columns concerned."""
        concerned: dict[Outcome, dict[str, None]] = {}
        for column, group, stats in zip(self.schema_.columns, self._fitted, self._statistics, strict=True):
            if column.name in self._found_ignored:
                if stats.n == 0:
                    concerned.setdefault(Outcome.NO_DATA, {})[repr(column.name)] = None
                else:
                    concerned.setdefault(Outcome.PASSED_THROUGH, {})[f"{column.name!r} ({column.note})"] = None
            for one in group:
                if one.outcome not in (Outcome.REACHED, Outcome.SCALED, Outcome.PASSED_THROUGH):
                    concerned.setdefault(one.outcome, {})[repr(column.name)] = None
        for outcome, names in concerned.items():
            shown = ", ".join(list(names)[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
            remedy = outcome.remedy
            if outcome is Outcome.PASSED_THROUGH:
                remedy = "no variable, left as it is; declare a kind to use it, or `ignore` to be silent"
            warnings.warn(f"{outcome.value}: {shown}: {remedy}", EvenlyWarning, stacklevel=4)

    @property
    def summary_(self) -> Any:
        """One row a feature: a Polars table for one, else a pandas table if it is installed, else a record array."""
        check_is_fitted(self, "schema_")
        rows = []
        for j, (column, group, fits) in enumerate(zip(self.schema_.columns, self._features, self._fitted, strict=True)):
            if not group:
                outcome = Outcome.PASSED_THROUGH if self._statistics[j].n else Outcome.NO_DATA
                rows.append((column.name, column.name, "ignore", "-", 0.0, 1.0, 0.0, outcome.value, 0.0))
            for one, fit in zip(group, fits, strict=True):
                after = (fit.smoothness_before, fit.scale, fit.smoothness_after, fit.outcome.value, fit.bound_after)
                rows.append((column.name, one.name, column.kind, one.likelihood.name, *after))
        names = (*SUMMARY_COLUMNS, "bound_after")[: None if self.bound == "paper" else -1]
        data = {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}
        for container in ("polars",) if self.container_ == "polars" else ("pandas", "polars"):
            with suppress(ModuleNotFoundError):
                return build_table(data, container)
        return np.rec.fromarrays(list(data.values()), names=",".join(names))  # type: ignore[call-overload]  # stubs

    @property
    def natural_(self) -> dict[str, Floats]:
        """Maximum-likelihood natural parameters of the scaled features, by feature."""
        check_is_fitted(self, "schema_")
        pairs = zip(chain(*self._features), chain(*self._fitted), strict=True)
        return {one.name: fit.natural for one, fit in pairs if fit.natural is not None}

    # --- using --------------------------------------------------------------------------------------------------

    @property
    def columns_(self) -> list[FittedColumn]:
        """All that is known of each column, for the rooms that build on the scaler."""
        check_is_fitted(self, "schema_")
        return [
            FittedColumn(
                self._labels[j],
                column,
                None if column.kind == "ignore" else self._family(column),
                self._features[j],
                self._fitted[j],
                self._statistics[j],
                self._frequencies(j),
                self._stored[j],
                self._originals[j],
            )
            for j, column in enumerate(self.schema_.columns)
        ]

    def transform(self, X: Any, key: Any = None) -> Any:
        """Scale a table. Missing cells stay missing; columns are found by name, in any order.

        Classes that were not there in fit become missing cells, with a warning. Passed-through columns come back as
        they are.

        Parameters
        ----------
        X : table
            A lazy frame gives a lazy frame of its engine, scaled by expressions: nothing runs yet, and so nothing can
            be checked. What is an error or a warning in memory is a missing cell there.
        key : column, optional
            A column of whole numbers that tells rows apart: the noise of the Gamma trick goes by it, and is the same
            on every engine. A lazy frame needs it; else, without it, noise goes by a row's position.

        Examples
        --------
        >>> import polars as pl
        >>> table = pl.DataFrame({"id": range(7, 31), "x": [0.5, -2.0] * 12, "c": ["a", "b", "b"] * 8})
        >>> scaler = LipschitzScaler(kinds={"id": "ignore"}, random_state=0).fit(table.lazy())
        >>> lazy = scaler.transform(table.lazy(), key="id")
        >>> bool(np.allclose(lazy.collect(), scaler.transform(table, key="id")))
        True
        """
        check_is_fitted(self, "schema_")
        lazy = open_lazy(X)
        if lazy is not None:
            return self._transform_lazily(lazy, key)
        return self._transform_part(open_table(X), key, 0)

    def transform_parts(self, parts: Iterable[Any], key: Any = None, start: int = 0) -> Iterator[Any]:
        """Scale a table that comes in parts, one after another: together they are what `transform` gives of the whole.

        Parameters
        ----------
        parts : iterable of tables
            In memory, one at a time; rows are counted on from part to part, so that the noise is that of the whole.
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
        check_is_fitted(self, "schema_")
        for part in parts:
            opened = open_table(part)
            yield self._transform_part(opened, key, start)
            start += opened.n_rows

    def _transform_part(self, opened: Table, key: Any, start: int) -> Any:
        """Scale a table in memory whose rows are counted from a start."""
        wanted = _get_output_config("transform", self)["dense"]
        check_width(self, opened)
        cells, extra = select(opened, self._labels, by_position=self.container_ == "numpy")
        container = opened.container if wanted == "default" else wanted
        keys = None if key is None else _keys(opened, key)
        extra = [label for label in extra if label != key]
        messages = [left_out(extra)] if extra else []

        def one(fitted: FittedColumn, stored: TableColumn) -> list[Any]:
            if not fitted.features:
                return [pass_through(stored, opened.container, container)]
            values, unknown = fitted.encode(stored)
            if unknown:
                messages.append(fitted.unseen(unknown, "become missing"))
            # A column that is not scaled may still be the table's own memory, which is not ours to give away.
            scaled = fitted.scale(values, self.seed_, keys, start)
            return [part if part.flags.owndata else part.copy() for part in scaled]

        results = map_columns(one, self.columns_, cells, n_rows=opened.n_rows)
        for message in messages:
            warnings.warn(message, EvenlyWarning, stacklevel=3)
        data = dict(zip(self.get_feature_names_out(), chain(*results), strict=True))
        return build_table(data, container, opened.native)

    def _transform_lazily(self, table: LazyTable, key: Any) -> Any:
        wanted = _get_output_config("transform", self)["dense"]
        if wanted != "default":
            raise TableError(
                f"set_output(transform={wanted!r}) and a lazy frame", "its output is a lazy frame too", "collect it"
            )
        cells, extra = select(table, self._labels, by_position=self.container_ == "numpy")
        extra = [label for label in extra if label != key]
        if extra:
            warnings.warn(left_out(extra), EvenlyWarning, stacklevel=3)
        return lazy_scaling().scale_lazily(
            table, cells, self.columns_, list(self.get_feature_names_out()), self.seed_, key
        )

    def inverse_transform(self, X: Any) -> Any:
        """Return the original columns, with their types and classes, from scaled features."""
        check_is_fitted(self, "schema_")
        opened = open_table(X)
        names = list(self.get_feature_names_out())
        if opened.container == "numpy" and len(opened.columns) != len(names):
            raise TableError(f"{len(opened.columns)} columns", f"expected the {len(names)} features of transform")
        cells = iter(select(opened, names)[0])
        data = {}
        for j, (column, group) in enumerate(zip(self.schema_.columns, self._features, strict=True)):
            if not group:
                data[self._labels[j]] = pass_through(next(cells), opened.container, self.container_)
                continue
            parts = [_unscale(one, fit, next(cells).numbers) for one, fit in zip(group, self._fitted[j], strict=True)]
            originals = self._originals[j]
            restored = decode(column, _join(column, group, parts), originals)
            classes = list(originals) or column.classes
            data[self._labels[j]] = restore_column(restored, self.container_, self._stored[j], classes)
        return build_table(data, self.container_, opened.native)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the features: the column's, or `column=class` where a column was split."""
        check_is_fitted(self, "schema_")
        _check_feature_names_in(self, input_features)
        groups = zip(self.schema_.columns, self._features, strict=True)
        names = [[one.name for one in group] or [column.name] for column, group in groups]
        return np.array(list(chain(*names)), dtype=object)

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
        check_is_fitted(self, "schema_")
        unknown = set(natural) - set(self.get_feature_names_out())
        if unknown:
            raise TableError(f"the feature {min(unknown)!r}", f"expected some of {list(self.get_feature_names_out())}")
        recovered = {}
        for fitted in self.columns_:
            group, name = fitted.features, fitted.column.name
            given = [one.name for one in group if one.name in natural]
            if not given:
                continue
            if len(given) < len(group):
                absent = next(one.name for one in group if one.name not in natural)
                raise TableError(f"no parameters of {absent!r}", "expected all features of it", column=name)
            recovered[name] = fitted.recover([natural[one.name] for one in group])
        return recovered

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted scaler to a JSON file (`scaler.json` inside it, if the path is a folder)."""
        write_json(saved_path(path, "scaler.json"), self.to_plain())

    def to_plain(self) -> dict[str, Any]:
        """Return all of the fitted scaler as JSON holds it."""
        check_is_fitted(self, "schema_")
        return {
            "evenly": __version__,
            "saved": type(self).__name__,
            "settings": plain_settings(self),
            "own_likelihoods": sorted(self._own),
            "schema": self.schema_.model_dump(exclude_defaults=True),
            "labels": [label if isinstance(label, (str, int, float)) else str(label) for label in self._labels],
            "container": self.container_,
            "stored": self._stored,
            "seed": self.seed_,
            "target": self.target_,
            "statistics": [one.to_plain() for one in self._statistics],
            "scales": [[fit.scale for fit in group] for group in self._fitted],
        }

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
        given = likelihoods.values() if isinstance(likelihoods, Mapping) else likelihoods
        own = {one.name: one for one in given if isinstance(one, Likelihood)}
        absent = [name for name in saved.get("own_likelihoods", ()) if name not in own]
        if absent:
            raise TableError(f"a scaler with the likelihood {absent[0]!r} of your own", "expected it in `likelihoods`")
        with readable(file, saved):
            return cls._from_saved(saved, own)

    @classmethod
    def _from_saved(cls, saved: dict[str, Any], own: dict[str, Likelihood]) -> LipschitzScaler:
        settings = saved["settings"]
        if settings.get("likelihoods"):
            settings["likelihoods"] = {label: own.get(one, one) for label, one in settings["likelihoods"].items()}
        scaler = cls(**settings)
        scaler._own = own
        scaler.schema_ = Schema.model_validate(saved["schema"])
        scaler._labels, scaler.container_, scaler.seed_ = saved["labels"], saved["container"], saved["seed"]
        scaler._stored = [Stored(*one) for one in saved["stored"]]
        scaler._originals = [()] * len(scaler._labels)
        scaler._found_ignored = set()
        scaler.n_features_in_ = len(scaler._labels)
        if scaler.container_ != "numpy" and all(isinstance(label, str) for label in scaler._labels):
            scaler.feature_names_in_ = np.array(scaler._labels, dtype=object)
        scaler._statistics = [ColumnStatistics.from_plain(one) for one in saved["statistics"]]
        scaler._settle()
        scaler.target_ = saved["target"]
        # The saved scales count: solving again with another version of a library may round otherwise.
        scaler._fitted = [
            [replace(fit, scale=scale) for fit, scale in zip(fits, scales, strict=True)]
            for fits, scales in zip(scaler._fitted, saved["scales"], strict=True)
        ]
        return scaler

    def _frequencies(self, j: int) -> Floats:
        counts, classes = self._statistics[j].counts or {}, self.schema_.columns[j].classes or []
        shares = np.array([counts.get(float(k), 0) for k in range(len(classes))], np.float64)
        return np.asarray(shares / max(shares.sum(), 1.0))


def plain_settings(estimator: Any) -> dict[str, Any]:
    """Return an estimator's settings as JSON holds them."""
    settings: dict[str, Any] = estimator.get_params(deep=False) | {"schema": None}  # that is in the fitted schema
    settings["likelihoods"] = {
        label: one.name if isinstance(one, Likelihood) else one
        for label, one in (settings["likelihoods"] or {}).items()
    } or None
    if not isinstance(estimator.random_state, (int, np.integer, type(None))):
        settings["random_state"] = None  # a generator; the seed that it gave is saved
    for name in ("kinds", "likelihoods", "missing"):
        if isinstance(settings[name], Mapping):
            settings[name] = {str(label): value for label, value in settings[name].items()}
    return settings


def check_width(estimator: Any, opened: Table) -> None:
    """Refuse an array that is wider or narrower than the fitted table."""
    if opened.container == "numpy" and len(opened.columns) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(opened.columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _check_alike(a: LipschitzScaler, b: LipschitzScaler) -> None:
    """Refuse to merge scalers that were not fitted alike, on parts of one table."""
    if not get_method(a.method).mergeable:
        raise TableError("parts of a table", "quartiles need all rows at once", "use fit, or another method")
    mine, others = (plain_settings(one) for one in (a, b))
    for name in mine:
        if name != "random_state" and mine[name] != others[name]:
            raise TableError(
                f"{name} = {mine[name]!r} in one scaler and {others[name]!r} in the other",
                "expected the same settings",
                "fit both alike",
            )
    apart = set(a._labels) ^ set(b._labels)
    if apart:
        hint = "add it, with missing cells"
        raise TableError("it in one scaler only", "expected the same columns", hint, column=min(apart, key=str))


def left_out(extra: Sequence[Any]) -> str:
    """Say that columns are left out."""
    return f"columns that were not there in fit are left out: {[str(label) for label in extra]}"


def _unused(name: str, taken: set[str]) -> str:
    """Keep a feature called `a=b` apart from a column of that name."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _keys(opened: Table, key: Any) -> npt.NDArray[np.int64]:
    """Return the keys of rows; a row without one gets -1."""
    (column,), _ = select(opened, [key]) if opened.container != "numpy" else ([opened.columns[key]], [])
    check_key(column.name, column.storage)
    if isinstance(column.native, np.ndarray):
        return column.native.astype(np.int64)
    return np.asarray(column.native.cast(nw.Int64).fill_null(-1).to_numpy(), np.int64)


def pass_through(cells: TableColumn, source: str, container: str) -> Any:
    """Pass a column through: as it is into its own kind of table, as a list of cells into another."""
    if isinstance(cells.native, np.ndarray):
        return cells.native
    if source == container:
        return nw.to_native(cells.native)
    return cells.native.to_list()


def _own_likelihoods(likelihoods: Mapping[Any, Any] | None) -> dict[str, Likelihood]:
    """Collect the user's own likelihoods by name, which must tell them apart from each other and from ours."""
    own: dict[str, Likelihood] = {}
    for column, one in (likelihoods or {}).items():
        if not isinstance(one, Likelihood) or (is_registered(one) and not one.one_per_class):
            continue
        if one.name in FAMILIES or own.setdefault(one.name, one) is not one:
            raise TableError(
                f"another likelihood called {one.name!r}", "expected names to differ", "rename it", column=column
            )
    return own


def _originals(cells: TableColumn) -> tuple[Any, ...]:
    """Return declared classes that JSON cannot hold (intervals, dates): a schema has only their texts."""
    classes = tuple(cells.categories or ())
    return () if all(isinstance(value, (bool, int, float, str)) for value in classes) else classes


def _unscale(feature: Feature, fit: FittedScale, values: Floats) -> Floats:
    """Undo the scale of a feature; a value below the support, which no data gave, becomes its lower end."""
    if feature.likelihood.support.lower == 0.0:
        values = np.where(values < 0.0, 0.0, values)
    return np.asarray(feature.likelihood.unscale_data(values, fit.scale))


def _join(column: Column, group: Sequence[Feature], parts: Sequence[Floats]) -> Floats:
    """Return the column's numbers or codes from its unscaled features."""
    if group[0].code is not None:
        stacked = np.stack(parts, axis=-1)
        missing = np.isnan(stacked).any(axis=-1)
        return np.where(missing, np.nan, np.nan_to_num(stacked).argmax(axis=-1))
    values = undo_values(group[0], parts[0])
    if column.has_classes:
        return np.clip(np.rint(values), 0.0, len(column.classes or ()) - 1.0)
    if group[0].likelihood.support.lower == 0.0:
        values = np.where(values - column.shift < 0.0, 0.0, values - column.shift)
    if column.clip is not None:  # what was raised to the clip was 0
        values = np.where(values <= column.clip * (1.0 + 1e-9), 0.0, values)
    return values
