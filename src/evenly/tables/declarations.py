"""Which kind and likelihood each column gets: inferred from its profile, unless settings or a schema declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenly._support import TableError
from evenly.likelihoods import Likelihood, get_likelihood
from evenly.tables.columns import TableColumn
from evenly.tables.dates import NO_DATES, find_origin
from evenly.tables.frames import open_table
from evenly.tables.kind_inference import NO_DATA, Decision, decide_kind, find_classes
from evenly.tables.lazy import LazyColumn
from evenly.tables.many_classes import in_order
from evenly.tables.non_answers import describe_non_answers, without_non_answers
from evenly.tables.profile import ColumnProfile, Value, profile_column, read_number
from evenly.tables.schema import CLASS_KINDS, KINDS, Column, Schema, declared_name, fits, implied_kind, outside
from evenly.tables.settings import Bounds, Markers, check_bounds, check_markers, check_settings, pick, split_markers
from evenly.tables.spellings import merge_classes as merge_spellings
from evenly.tables.spellings import order_classes

PAPER_CLIP = 1e-30
"""The paper's code raises the zeros of a positive column to this; kept to reproduce it, never a default."""

DECLARED = ("kinds", "likelihoods", "bounds", "schema", "missing")
"""The settings by which scaler, imputer, inspection and diagnosis are told about columns."""

LEAST_SHIFT = 1e-6
"""The shift of a column with zeros, as a share of its maximum, at least: log x then spans at most 14 nats."""


def infer_schema(
    table: Any,
    *,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    bounds: Mapping[Any, Bounds] | None = None,
    missing: Markers | None = None,
    zeros: Literal["shift", "clip"] = "shift",
    merge_classes: bool = False,
) -> Schema:
    """Infer the kind of every column; each choice can be overridden by column.

    Parameters
    ----------
    table : dataframe or array
        Texts, classes, booleans, numbers (also as codes of classes), with missing cells.
    kinds : mapping of column to kind, optional
        `{"age": "count", "id": "ignore"}`.
    likelihoods : mapping of column to likelihood, optional
        A name, or a likelihood of your own.
    bounds : mapping of column to (lower, upper), optional
        Cells outside are errors; None leaves an end open.
    missing : markers, or mapping of column to markers, optional
        Values that mean a missing cell, in addition to `?`, `NA`, empty texts and the like: `[-999]` for all columns,
        `{"age": [-1]}` for some, `[-999, {"age": [-1]}]` for both.
    zeros : {"shift", "clip"}
        A positive column with zeros is shifted by its smallest positive value; "clip" raises the zeros to 1e-30
        as the paper's code does, which puts them 69 nats below 1.
    merge_classes : bool
        Whether classes that differ only by case or spaces are one: the most frequent of their spellings. The others
        are in the schema's `same`; cells keep theirs.

    Examples
    --------
    >>> table = np.array([["3", "red"], ["?", "blue"], ["5", "red"], ["4", "blue"]], dtype=object)
    >>> print(infer_schema(table, kinds={"x0": "real"}))
    column  kind    likelihood  details       note
    x0      real    normal      missing: '?'  declared
    x1      binary  bernoulli   blue | red
    """
    opened = open_table(table, estimator="infer_schema")
    if zeros not in ("shift", "clip"):
        raise TableError(f"zeros = {zeros!r}", "expected 'shift' or 'clip'")
    rules = make_rules(opened, kinds=kinds, likelihoods=likelihoods, bounds=bounds, missing=missing, zeros=zeros)
    columns = []
    for cells, rule in zip(opened.columns, rules, strict=True):
        profile = rule.read(cells, profile_column(cells, rule.markers))
        column = infer_column(
            cells, profile, kind=rule.kind, likelihood=rule.likelihood, bounds=rule.bounds, zeros=zeros
        )
        rule.check_bounded(column)
        columns.append(merge_spellings(column, profile) if merge_classes else column)
    return Schema(columns=columns)


def infer_column(
    cells: TableColumn,
    profile: ColumnProfile,
    *,
    kind: str | None = None,
    likelihood: str | Likelihood | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    classes: Sequence[Value] | None = None,
    zeros: str = "shift",
) -> Column:
    """Decide on one column, from its profile and what is declared about it."""
    if kind is not None and kind not in KINDS:
        raise TableError(f"the kind {kind!r}", f"expected one of {', '.join(KINDS)}", column=cells.name)
    if kind == "ignore":
        return Column(name=cells.name, kind="ignore", note="declared")
    wanted = kind or (implied_kind(likelihood) if likelihood is not None else None)
    if profile.spelled is not None and _may_be(wanted, profile.spelled):
        profile = profile.spelled
    chosen = _choose_kind(cells, profile, kind, likelihood)
    column = Column(
        name=cells.name,
        kind=chosen.kind,
        missing=list(dict.fromkeys([*profile.markers, *(text.strip() for text, _ in profile.non_answers)])),
        format=profile.format,
        origin=find_origin(profile.mean) if profile.dates else None,
        note=f"{chosen.reason}; {_read_as_missing(profile)}".strip("; "),
        confidence=chosen.confidence,
        alternative=chosen.alternative,
        groups=chosen.groups,
    )
    if column.kind == "ignore":
        return column
    _refuse_cells(column, profile)
    if column.has_classes:
        column.classes = list(classes) if classes else in_order(column, find_classes(cells, profile), profile)
        if not classes and cells.categories is None:
            column = order_classes(column, profile)
        if not column.classes:
            return Column(name=cells.name, kind="ignore", note=NO_DATA)
        if column.kind == "binary" and len(column.classes) > 2:
            raise TableError(
                f"{len(column.classes)} classes",
                "binary expects at most 2",
                "declare it `categorical`",
                column=cells.name,
            )
    if likelihood is not None:
        column.likelihood = declared_name(likelihood)
    if bounds is not None:
        column.lower, column.upper = bounds
    if not column.has_classes and profile.n:
        family = likelihood if isinstance(likelihood, Likelihood) else get_likelihood(column.likelihood or "")
        _fit_support(column, profile, family, zeros)
    return column


def _read_as_missing(profile: ColumnProfile) -> str:
    return f"{describe_non_answers(profile.non_answers)} read as missing" if profile.non_answers else ""


def _may_be(kind: str | None, spelled: ColumnProfile) -> bool:
    """Whether a kind, declared or to be inferred, is one of the numbers or dates that cells stand for."""
    return kind is None or (kind == "date" if spelled.dates else kind not in (*CLASS_KINDS, "date"))


def _choose_kind(
    cells: TableColumn, profile: ColumnProfile, kind: str | None, likelihood: str | Likelihood | None
) -> Decision:
    """Return the kind of a column, declared or inferred, and the reason for it; refuse a likelihood of another kind."""
    if kind is not None:
        decision = Decision(kind, "declared")  # type: ignore[arg-type]  # one of KINDS
    else:
        decision = decide_kind(cells, profile)
        if likelihood is not None:
            implied = decision.kind if fits(likelihood, decision.kind) else implied_kind(likelihood)
            decision = Decision(implied, f"declared {declared_name(likelihood)}")  # type: ignore[arg-type]
    if likelihood is not None and not fits(likelihood, decision.kind):
        name = declared_name(likelihood)
        raise TableError(
            f"the kind {decision.kind!r} and the likelihood {name!r}",
            f"{name} goes with {implied_kind(likelihood)!r}",
            "declare one of the two only",
            column=cells.name,
        )
    return decision


def _refuse_cells(column: Column, profile: ColumnProfile) -> None:
    """Refuse cells that a column of its kind cannot hold."""
    if not profile.n:
        return
    if column.kind == "date":
        if profile.dates:
            return
        raise TableError("no dates", "date expects dates, or texts of them in one format", column=column.name)
    if profile.storage in ("time", "other"):
        what = "dates or times" if profile.storage == "time" else "cells that are neither numbers nor texts"
        raise TableError(
            what, f"{column.kind} expects numbers or texts", "convert them, or `ignore`", column=column.name
        )
    if not column.has_classes and not profile.numeric:
        example = next(value for value in profile.distinct or ("",) if read_number(value) is None)
        raise TableError(
            f"the text {example!r}", f"{column.kind} expects numbers", "declare it `categorical`", column=column.name
        )


def complete(column: Column, cells: TableColumn, profile: Callable[[], ColumnProfile] | None = None) -> Column:
    """Return a copy of a declared column; if it leaves out its classes or its format, they are taken from the table."""
    column = column.model_copy(deep=True)
    if column.has_classes or column.kind == "ignore" or cells.storage not in ("text", "time"):
        pass
    elif column.format is None or (column.kind == "date" and column.origin is None):
        seen = profile_column(cells, column.missing) if profile is None else profile()
        if seen.spelled is not None and _may_be(column.kind, seen.spelled):
            column.format = column.format or seen.spelled.format
            column.origin = column.origin or (find_origin(seen.spelled.mean) if seen.spelled.dates else None)
    if column.has_classes and column.classes is None:
        seen = profile_column(cells, column.missing) if profile is None else profile()
        _refuse_cells(column, seen)
        given = column.model_copy(update={"classes": in_order(column, find_classes(cells, seen), seen)})
        found = given if cells.categories is not None or column.same else order_classes(given, seen)
        column.classes = [one for one in found.classes or () if str(one) not in column.same]
        column.same = found.same
    return column


@dataclass(frozen=True)
class Rule:
    """What is declared about one column, by settings and by a schema; settings take precedence."""

    name: str
    kind: str | None = None
    likelihood: str | Likelihood | None = None
    declared: Column | None = None
    markers: tuple[Value, ...] = ()
    bounds: Bounds | None = None
    zeros: str = "shift"
    dates: bool = True
    """Whether columns that are found to be dates are variables."""

    @property
    def decided(self) -> bool:
        """Whether nothing is left to infer, except classes that a schema leaves out."""
        return self.kind == "ignore" or (self.declared is not None and self.kind is None and self.likelihood is None)

    @property
    def ignored(self) -> bool:
        """Whether the column is declared `ignore`."""
        return self.kind == "ignore" or (self.decided and self.declared is not None and self.declared.kind == "ignore")

    @property
    def missing(self) -> Sequence[Value]:
        """The markers of missing cells."""
        return tuple(dict.fromkeys((*(self.declared.missing if self.declared else ()), *self.markers)))

    @property
    def limits(self) -> Bounds | None:
        """The bounds of the column: those of the settings, else those of the schema."""
        if self.bounds is not None or self.declared is None:
            return self.bounds
        return self.declared.lower, self.declared.upper

    def _where_it_is(self, column: Column, profile: ColumnProfile, cells: TableColumn) -> Column:
        """Return an inferred column as its estimator and its engine can use it, with the reason."""
        if column.kind == "date" and not self.dates:
            return Column(name=self.name, kind="ignore", note=NO_DATES)
        lost = profile.about or (NO_DATES if column.note == NO_DATES and self.dates else "")
        if isinstance(cells, LazyColumn) and lost and not column.is_spelled:
            note = f"{column.note}; {lost}".removeprefix("; ") if lost != column.note else lost
            return column.model_copy(update={"note": f"{note}, which a lazy frame does not read"})
        return column

    def _with_settings(self, declared: Column) -> Column:
        """Return the column of the schema, with the markers and the bounds of the settings."""
        own: dict[str, Any] = {"missing": list(self.missing)} if declared.kind != "ignore" else {}
        if self.bounds is not None:
            own["lower"], own["upper"] = self.bounds
        return declared.model_copy(update=own)

    def check_bounded(self, column: Column) -> None:
        """Refuse bounds in the settings that would have no effect."""
        if self.bounds is not None and (column.has_classes or column.kind in ("date", "ignore")):
            raise TableError(
                f"bounds for a column of the kind {column.kind!r}",
                "expected real, positive or count",
                "declare its kind as well",
                column=self.name,
            )

    @property
    def wants_classes(self) -> bool:
        """Whether the column is declared to have classes."""
        kind = self.kind or (implied_kind(self.likelihood) if self.likelihood is not None else None)
        return (self.declared.kind if kind is None and self.declared is not None else kind) in CLASS_KINDS

    def read(self, cells: TableColumn, profile: ColumnProfile) -> ColumnProfile:
        """Return a profile that was taken with the markers, without texts for no answer if these are no classes."""
        return profile if self.wants_classes else without_non_answers(cells, profile, self.missing)

    def infer(self, cells: TableColumn, profile: Callable[[], ColumnProfile]) -> tuple[Column, ColumnProfile | None]:
        """Decide on the column; returns its profile too, if it was needed."""
        if self.kind == "ignore":
            return Column(name=self.name, kind="ignore", note="declared"), None
        if self.decided and self.declared is not None:
            column = complete(self._with_settings(self.declared), cells, profile)
            self.check_bounded(column)
            return column, None
        seen, declared = self.read(cells, profile()), self.declared
        kind = self.kind
        if kind is None and self.likelihood and declared is not None and fits(self.likelihood, declared.kind):
            kind = declared.kind
        column = infer_column(
            cells,
            seen,
            kind=kind,
            likelihood=self.likelihood,
            bounds=self.limits,
            classes=None if declared is None else declared.classes,
            zeros=self.zeros,
        )
        if kind is None and self.likelihood is None:
            column = self._where_it_is(column, seen, cells)
        self.check_bounded(column)
        if column.kind != "ignore":  # later tables may hold what this one does not
            column.missing = list(dict.fromkeys([*column.missing, *self.missing]))
            if declared is not None and declared.classes and column.has_classes:
                column.same = dict(declared.same)
            if declared is not None and declared.format and column.is_spelled:
                column.format, column.origin = declared.format, declared.origin or column.origin
        return column, seen


def make_rules(
    opened: Any,
    *,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    bounds: Mapping[Any, Bounds] | None = None,
    schema: Schema | str | Path | None = None,
    missing: Markers | None = None,
    zeros: str = "shift",
) -> list[Rule]:
    """Check settings, and return what they and a schema declare about each column of an opened table."""
    if not (schema is None or isinstance(schema, (str, Path, Schema))):
        raise TableError(f"schema = {schema!r}", "expected a Schema or the path of one")
    given = Schema.load(schema) if isinstance(schema, (str, Path)) else schema
    known = {column.name: column for column in given.columns} if given else {}
    check_settings(opened, kinds=kinds, likelihoods=likelihoods, bounds=bounds, schema=known)
    markers = check_markers(missing)
    for by_column in split_markers(missing)[1]:
        check_settings(opened, missing=by_column)
    return [
        Rule(
            name,
            pick(kinds, label, name),
            pick(likelihoods, label, name),
            known.get(name),
            markers(label, name),
            check_bounds(pick(bounds, label, name), name),
            zeros,
        )
        for label, name in zip(opened.labels, opened.names, strict=True)
    ]


def _fit_support(column: Column, profile: ColumnProfile, family: Likelihood, zeros: str) -> None:
    """Shift or clip zeros; refuse values outside the support of the likelihood."""
    support = family.support
    low = profile.minimum
    if support.whole and not profile.whole:
        raise outside(column.name, "values that are not whole numbers", family)
    if low == profile.maximum == 0.0 == support.lower and not support.whole:
        column.shift, column.note = 1.0, "all zero"
    elif low == 0.0 and support.lower == 0.0 and not support.contains(np.float64(0.0)):
        if zeros == "clip":
            column.clip = PAPER_CLIP
            column.note = (column.note + "; zeros clipped as in the paper").lstrip("; ")
            return
        column.shift = max(profile.least_positive, LEAST_SHIFT * profile.maximum)
        column.note = (column.note + "; has zeros").lstrip("; ")
    elif not support.contains(np.float64(low)):
        raise outside(column.name, f"minimum {low:g}", family)
