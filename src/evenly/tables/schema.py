"""Which kind each column is, and so which likelihood it gets: inferred from a table, edited by hand, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evenly._support import TableError, align, write_text
from evenly.likelihoods import FAMILIES, Likelihood, get_likelihood, likelihood_name
from evenly.tables.columns import TableColumn
from evenly.tables.frames import open_table
from evenly.tables.kinds import NO_DATA, decide_kind, find_classes
from evenly.tables.profile import ColumnProfile, Value, profile_column, read_number

Kind = Literal["real", "positive", "count", "binary", "categorical", "ordinal", "ignore"]
KINDS: tuple[Kind, ...] = ("real", "positive", "count", "binary", "categorical", "ordinal", "ignore")
CLASS_KINDS = ("binary", "categorical", "ordinal")

DEFAULT_LIKELIHOOD = {kind: name for name, family in FAMILIES.items() for kind in family.default_for}
"""The paper's likelihood of each kind; ordinal columns are modelled as categorical."""

PAPER_CLIP = 1e-30
"""Where the paper's code puts the zeros of a positive column; kept for reproducing it, never a default."""

LEAST_SHIFT = 1e-6
"""The shift of a column with zeros is never less than this share of its maximum: at most 14 nats of log x."""


class Column(BaseModel):
    """What is known of one column, and what was decided.

    Attributes
    ----------
    kind : str
        `real`, `positive`, `count`, `binary`, `categorical`, `ordinal`, or `ignore` (passed through).
    likelihood : str or None
        The name of its likelihood; None for an ignored column.
    classes : list or None
        The classes of a binary, categorical or ordinal column, in the order of their codes.
    shift : float
        Added to every cell before the likelihood: a positive column with zeros keeps a proper density.
    clip : float or None
        Cells below are raised to it (the paper's treatment of zeros).
    lower, upper : float or None
        Declared bounds; a cell outside is an error.
    missing : list
        Markers that are read as missing cells.
    note : str
        Why, in words.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    kind: Kind
    likelihood: str | None = None
    classes: list[Value] | None = None
    shift: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    clip: float | None = Field(default=None, gt=0.0)
    lower: float | None = None
    upper: float | None = None
    missing: list[Value] = []
    note: str = ""

    @field_validator("classes")
    @classmethod
    def _classes_differ(cls, classes: list[Value] | None) -> list[Value] | None:
        if classes is not None and len({str(value) for value in classes}) < len(classes):
            raise ValueError("classes must differ")
        return classes

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.kind == "ignore":
            return self
        if self.likelihood is None:
            self.likelihood = DEFAULT_LIKELIHOOD[self.kind]
        if not self.has_classes:
            self.classes = None
        elif self.kind == "binary" and self.classes is not None and len(self.classes) > 2:
            raise ValueError(f"binary expects at most 2 classes, got {len(self.classes)}; declare it categorical")
        if self.likelihood in FAMILIES and not _fits(self.likelihood, self.kind):
            raise ValueError(
                f"the likelihood {self.likelihood!r} does not go with the kind {self.kind!r}; leave the likelihood out "
                f"to get {DEFAULT_LIKELIHOOD[self.kind]!r}"
            )
        if self.shift and self.clip is not None:
            raise ValueError("shift and clip exclude each other")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower:g} lies above upper = {self.upper:g}")
        return self

    @property
    def has_classes(self) -> bool:
        """Whether the column is a choice among classes."""
        return self.kind in CLASS_KINDS


class Schema(BaseModel):
    """The columns of a table, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(size=50), rng.poisson(4, 50), rng.random(50) < 0.3])
    >>> schema = infer_schema(table)
    >>> print(schema)
    column  kind    likelihood  details  note
    x0      real    normal
    x1      count   poisson              whole numbers 1 to 10
    x2      binary  bernoulli   0 | 1
    >>> Schema.model_validate_json(schema.model_dump_json()) == schema
    True
    """

    model_config = ConfigDict(extra="forbid")

    columns: list[Column]

    @field_validator("columns")
    @classmethod
    def _names_differ(cls, columns: list[Column]) -> list[Column]:
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise ValueError(f"the column {next(n for n in names if names.count(n) > 1)!r} is there twice")
        return columns

    def __str__(self) -> str:
        rows = [("column", "kind", "likelihood", "details", "note")]
        rows += [(c.name, c.kind, c.likelihood or "-", _details(c), c.note) for c in self.columns]
        return "\n".join(align(rows))

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def save(self, path: str | Path) -> None:
        """Write the schema to a JSON file that a person can edit."""
        plain = self.model_dump(exclude_defaults=True)
        for column in plain["columns"]:
            # The default likelihood follows the kind: whoever edits the kind need not edit both.
            if column.get("likelihood") == DEFAULT_LIKELIHOOD.get(column["kind"]):
                column.pop("likelihood", None)
        write_text(path, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a JSON file; what is wrong in it is said by column and field."""
        try:
            return cls.model_validate_json(Path(path).read_text(encoding="utf-8"))
        except ValidationError as error:
            first = error.errors()[0]
            where = " > ".join(str(part) for part in first["loc"])
            raise TableError(
                f"{first['msg']} at {where or 'the top'} of {path}", "expected a schema", "see docs/schema.md"
            ) from None


def _details(column: Column) -> str:
    parts = []
    if column.classes is not None:
        shown = [str(value) for value in column.classes[:4]]
        parts.append(" | ".join(shown) + (f" | ... ({len(column.classes)})" if len(column.classes) > 4 else ""))
    if column.shift:
        parts.append(f"shift {column.shift:g}")
    if column.clip:
        parts.append(f"clip {column.clip:g}")
    if column.lower is not None or column.upper is not None:
        parts.append(f"from {column.lower} to {column.upper}")
    if column.missing:
        parts.append("missing: " + " ".join(repr(marker) for marker in column.missing))
    return ", ".join(parts)


# --- decisions ------------------------------------------------------------------------------------------------


def infer_schema(
    table: Any,
    *,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
    missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
    zeros: Literal["shift", "clip"] = "shift",
) -> Schema:
    """Infer the kind of every column; each choice can be overridden by column.

    Parameters
    ----------
    table : dataframe or array
        As people have them: texts, classes, booleans, whole numbers that are codes, missing cells.
    kinds : mapping of column to kind, optional
        `{"age": "count", "id": "ignore"}`.
    likelihoods : mapping of column to likelihood, optional
        A name, or a likelihood of your own.
    bounds : mapping of column to (lower, upper), optional
        Values outside are errors; None leaves an end open.
    missing : markers, or mapping of column to markers, optional
        Values that mean a missing cell, beside `?`, `NA`, empty texts and the like.
    zeros : {"shift", "clip"}
        A positive column with zeros is shifted by its smallest positive value; "clip" raises the zeros to 1e-30
        as the paper's code does, which puts them 69 nats below 1.

    Examples
    --------
    >>> table = np.array([["3", "red"], ["?", "blue"], ["5", "red"], ["4", "blue"]], dtype=object)
    >>> print(infer_schema(table, kinds={"x0": "real"}))
    column  kind    likelihood  details       note
    x0      real    normal      missing: '?'  declared
    x1      binary  bernoulli   blue | red
    """
    opened = open_table(table)
    by_column = missing if isinstance(missing, Mapping) else None
    check_settings(opened, kinds=kinds, likelihoods=likelihoods, bounds=bounds, missing=by_column)
    markers = check_markers(missing)
    if zeros not in ("shift", "clip"):
        raise TableError(f"zeros = {zeros!r}", "expected 'shift' or 'clip'")
    columns = dict(zip(opened.labels, opened.columns, strict=True))
    return Schema(
        columns=[
            infer_column(
                column,
                profile_column(column, markers(label, column.name)),
                kind=pick(kinds, label, column.name),
                likelihood=pick(likelihoods, label, column.name),
                bounds=pick(bounds, label, column.name),
                zeros=zeros,
            )
            for label, column in columns.items()
        ]
    )


def check_settings(opened: Any, **settings: Any) -> None:
    """Refuse settings that are no mapping by column, or are for columns that the table does not have."""
    known: set[Any] = {*opened.labels, *opened.names}
    for setting, mapping in settings.items():
        if mapping is not None and not isinstance(mapping, Mapping):
            raise TableError(f"{setting} = {mapping!r}", "expected a mapping by column", '{"age": ...}')
        for name in mapping or ():
            if name not in known:
                raise TableError(
                    f"{setting} for it", f"expected one of {opened.names[:20]}", "check the spelling", column=name
                )


def check_markers(missing: Any) -> Callable[[Any, str], Sequence[Value]]:
    """Return the markers of missing cells by column: one list for all columns, or a mapping."""
    if isinstance(missing, Mapping):
        return lambda label, name: check_markers(pick(missing, label, name))(label, name)
    if missing is not None and (isinstance(missing, str) or not isinstance(missing, Sequence)):
        raise TableError(
            f"missing = {missing!r}", "expected a list of markers, or a mapping of column to one", "[-999]"
        )
    return lambda label, name: missing or ()


def pick(mapping: Mapping[Any, Any] | None, label: Any, name: str) -> Any:
    """Return what a mapping by column says of one, by its label or its name."""
    if not mapping:
        return None
    return mapping[label] if label in mapping else mapping.get(name)


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
    if kind is not None:
        note = "declared"
    else:
        kind, note = decide_kind(cells, profile)
        if likelihood is not None:
            kind, note = kind if _fits(likelihood, kind) else _kind_of(likelihood), f"declared {_name(likelihood)}"
    if likelihood is not None and not _fits(likelihood, kind):
        raise TableError(
            f"the kind {kind!r} and the likelihood {_name(likelihood)!r}",
            f"{_name(likelihood)} goes with {_kind_of(likelihood)!r}",
            "declare one of the two only",
            column=cells.name,
        )
    markers = list(profile.markers)
    column = Column(name=cells.name, kind=kind, missing=markers, note=note)  # type: ignore[arg-type]  # one of KINDS
    if column.kind == "ignore":
        return column
    if profile.storage in ("time", "other") and profile.n:
        what = "dates or times" if profile.storage == "time" else "cells that are neither numbers nor texts"
        raise TableError(
            what, f"{column.kind} expects numbers or texts", "convert them, or `ignore`", column=cells.name
        )
    if column.has_classes:
        column.classes = list(classes) if classes else find_classes(cells, profile)
        if not column.classes:
            return Column(name=cells.name, kind="ignore", note=NO_DATA)
        if column.kind == "binary" and len(column.classes) > 2:
            raise TableError(
                f"{len(column.classes)} classes",
                "binary expects at most 2",
                "declare it `categorical`",
                column=cells.name,
            )
    elif not profile.numeric and profile.n:
        example = next(value for value in profile.distinct or ("",) if read_number(value) is None)
        raise TableError(
            f"the text {example!r}", f"{column.kind} expects numbers", "declare it `categorical`", column=cells.name
        )
    if likelihood is not None:
        column.likelihood = _name(likelihood)
    if bounds is not None:
        column.lower, column.upper = bounds
    if not column.has_classes and profile.n:
        family = likelihood if isinstance(likelihood, Likelihood) else get_likelihood(column.likelihood or "")
        _fit_support(column, profile, family, zeros)
    return column


def _name(likelihood: str | Likelihood) -> str:
    if isinstance(likelihood, Likelihood):
        return likelihood.name
    if not isinstance(likelihood, str):
        raise TableError(f"the likelihood {likelihood!r}", "expected a name, or one from define_likelihood")
    return likelihood_name(likelihood)


def _kind_of(likelihood: str | Likelihood) -> str:
    """Return the kind that a declared likelihood implies."""
    return _kinds(likelihood)[0]


def _fits(likelihood: str | Likelihood, kind: str) -> bool:
    """Whether a column of that kind may have the likelihood."""
    return kind in _kinds(likelihood)


def _kinds(likelihood: str | Likelihood) -> tuple[str, ...]:
    return likelihood.kinds if isinstance(likelihood, Likelihood) else FAMILIES[_name(likelihood)].kinds


def complete(column: Column, cells: TableColumn, profile: Callable[[], ColumnProfile] | None = None) -> Column:
    """Return a copy of a column from a file; classes that it leaves out are those of the table."""
    column = column.model_copy(deep=True)
    if column.has_classes and column.classes is None:
        column.classes = find_classes(cells, profile_column(cells, column.missing) if profile is None else profile())
    return column


@dataclass(frozen=True)
class Rule:
    """What is declared of one column: by settings, which come first, and by a schema."""

    name: str
    kind: str | None = None
    likelihood: str | Likelihood | None = None
    declared: Column | None = None
    markers: tuple[Value, ...] = ()
    zeros: str = "shift"

    @property
    def decided(self) -> bool:
        """Whether nothing is to be inferred, but for classes that a schema leaves out."""
        return self.kind == "ignore" or (self.declared is not None and self.kind is None and self.likelihood is None)

    @property
    def ignored(self) -> bool:
        """Whether the column is declared to be none of the table's variables."""
        return self.kind == "ignore" or (self.decided and self.declared is not None and self.declared.kind == "ignore")

    @property
    def missing(self) -> Sequence[Value]:
        """The markers of missing cells."""
        return self.markers if self.declared is None else self.declared.missing

    @property
    def wants_classes(self) -> bool:
        """Whether the column is declared to be a choice among classes."""
        kind = self.kind or (_kind_of(self.likelihood) if self.likelihood is not None else None)
        return (self.declared.kind if kind is None and self.declared is not None else kind) in CLASS_KINDS

    def infer(self, cells: TableColumn, profile: Callable[[], ColumnProfile]) -> tuple[Column, ColumnProfile | None]:
        """Decide on the column; returns its profile too, if it was needed."""
        if self.kind == "ignore":
            return Column(name=self.name, kind="ignore", note="declared"), None
        if self.decided and self.declared is not None:
            return complete(self.declared, cells, profile), None
        seen, declared = profile(), self.declared
        kind = self.kind
        if kind is None and self.likelihood and declared is not None and _fits(self.likelihood, declared.kind):
            kind = declared.kind
        column = infer_column(
            cells,
            seen,
            kind=kind,
            likelihood=self.likelihood,
            bounds=None if declared is None else (declared.lower, declared.upper),
            classes=None if declared is None else declared.classes,
            zeros=self.zeros,
        )
        if column.kind != "ignore":  # later tables may hold what this one does not
            column.missing = list(dict.fromkeys([*column.missing, *self.missing]))
        return column, seen


def make_rules(
    opened: Any,
    *,
    kinds: Mapping[Any, str] | None = None,
    likelihoods: Mapping[Any, str | Likelihood] | None = None,
    schema: Schema | str | Path | None = None,
    missing: Mapping[Any, Sequence[Value]] | Sequence[Value] | None = None,
    zeros: str = "shift",
) -> list[Rule]:
    """Check settings; returns what they and a schema declare of each column of an opened table."""
    if not (schema is None or isinstance(schema, (str, Path, Schema))):
        raise TableError(f"schema = {schema!r}", "expected a Schema or the path of one")
    given = Schema.load(schema) if isinstance(schema, (str, Path)) else schema
    known = {column.name: column for column in given.columns} if given else {}
    by_column = missing if isinstance(missing, Mapping) else None
    check_settings(opened, kinds=kinds, likelihoods=likelihoods, schema=known, missing=by_column)
    markers = check_markers(missing)
    return [
        Rule(
            name,
            pick(kinds, label, name),
            pick(likelihoods, label, name),
            known.get(name),
            tuple(markers(label, name)),
            zeros,
        )
        for label, name in zip(opened.labels, opened.names, strict=True)
    ]


def _fit_support(column: Column, profile: ColumnProfile, family: Likelihood, zeros: str) -> None:
    """Shift or clip zeros; refuse what the likelihood has no density for."""
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


def outside(name: str, got: str, family: Likelihood) -> TableError:
    """Return the error for values that a likelihood has no density for."""
    hint = "declare it `real`, or give its schema a `shift`"
    return TableError(got, f"{family.name} expects {family.support}", hint, column=name)
