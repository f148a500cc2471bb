"""Column and Schema: the kind and the likelihood of each column, saved as JSON that can be edited by hand."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evenly._support import TableError, align, html_table, one_line, parse_json, read_limited, show, write_text
from evenly.likelihoods import FAMILIES, Likelihood, likelihood_name
from evenly.tables.checking import Problem, first_problem
from evenly.tables.dates import days_of
from evenly.tables.formats import get_format
from evenly.tables.profile import Value

Kind = Literal["real", "positive", "count", "binary", "categorical", "ordinal", "date", "ignore"]
KINDS: tuple[Kind, ...] = ("real", "positive", "count", "binary", "categorical", "ordinal", "date", "ignore")
CLASS_KINDS = ("binary", "categorical", "ordinal")
Confidence = Literal["sure", "likely", "doubtful"]
DOUBTFUL_FIRST = ("doubtful", "likely", "sure")
"""How sure an inferred kind is."""
MOST_BYTES, MOST_VALUES = 1 << 26, 10_000
"""The largest file of a schema, and the largest number of classes or markers of a column in it."""
SEE = "see docs/schema.md"
MOST_SINGLE = 100
"""Classes of a categorical column that are modelled one by one; those after them in its list are modelled as one."""

DEFAULT_LIKELIHOOD = {kind: name for name, family in FAMILIES.items() for kind in family.default_for}
"""The paper's likelihood of each kind; ordinal columns are modelled as categorical."""


class Column(BaseModel):
    """The kind and the likelihood of one column, and how its cells are read.

    Attributes
    ----------
    kind : str
        `real`, `positive`, `count`, `binary`, `categorical`, `ordinal`, `date`, or `ignore` (no variable).
    likelihood : str or None
        The name of its likelihood; None for an ignored column.
    classes : list or None
        The classes of a binary, categorical or ordinal column, in the order of their codes. If a categorical column has
        more than a hundred, the first hundred are modelled one by one and the others as one; where classes are taken
        from the table, they are then listed by how often they occur.
    shift : float
        Added to every cell before the likelihood, so that a positive column may have zeros.
    clip : float or None
        Smaller cells are raised to it (the paper's treatment of zeros).
    lower, upper : float or None
        Declared bounds; a cell outside is an error in fit, and clipped to them in new rows.
    missing : list
        Markers that are read as missing cells.
    format : str or None
        How texts spell the numbers of the column, as a pattern: `$#,##0.00`, `0 %`, `%d.%m.%Y`.
    origin : str or None
        The day that a column of dates counts its days from, such as `2024-01-31`.
    same : dict
        Other spellings of a class, each with that class: `{"YES": "Yes"}`. Cells keep theirs.
    note : str
        The reason, in words.
    confidence : {"sure", "likely", "doubtful"}
        How sure the kind is; what was declared is sure.
    alternative : str or None
        The kind that the column may be instead, if that is not sure.
    groups : bool
        Whether the column names units that have several rows each, such as the persons of a panel.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    kind: Kind
    likelihood: str | None = None
    classes: list[Value] | None = None
    shift: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    clip: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    lower: float | None = None
    upper: float | None = None
    missing: list[Value] = []
    format: str | None = None
    origin: str | None = None
    same: dict[str, Value] = {}
    note: str = ""
    confidence: Confidence = "sure"
    alternative: Kind | None = None
    groups: bool = False

    @field_validator("classes")
    @classmethod
    def _classes_differ(cls, classes: list[Value] | None) -> list[Value] | None:
        if classes is not None and len({str(value) for value in classes}) < len(classes):
            raise ValueError("classes must differ")
        return classes

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        self._check_format()
        if self.kind == "ignore":
            return self
        if self.likelihood is None:
            self.likelihood = DEFAULT_LIKELIHOOD[self.kind]
        if not self.has_classes:
            self.classes = None
        elif self.kind == "binary" and self.classes is not None and len(self.classes) > 2:
            raise ValueError(f"binary expects at most 2 classes, got {len(self.classes)}; declare it categorical")
        if self.likelihood in FAMILIES and not fits(self.likelihood, self.kind):
            raise ValueError(
                f"the likelihood {self.likelihood!r} does not go with the kind {self.kind!r}; leave the likelihood out "
                f"to get {DEFAULT_LIKELIHOOD[self.kind]!r}"
            )
        self._check_spellings()
        if self.shift and self.clip is not None:
            raise ValueError("shift and clip exclude each other")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower:g} lies above upper = {self.upper:g}")
        return self

    def _check_format(self) -> None:
        """Refuse a format that is none of the column; editing the kind alone is enough to lose it."""
        if self.kind == "ignore" or self.has_classes:
            self.format = None
        elif self.format is not None and get_format(self.format).reads_dates != (self.kind == "date"):
            of = "dates" if self.kind == "date" else "numbers"
            raise ValueError(f"the format {self.format!r} is none of {of}")
        if self.kind != "date":
            self.origin = None
        days_of(self.origin)  # refuses what is no date

    def _check_spellings(self) -> None:
        if self.classes is None:
            return
        known = {str(value) for value in self.classes}
        for spelling, one in self.same.items():
            if str(one) not in known or spelling in known:
                raise ValueError(f"`same` reads {spelling!r} as {one!r}: expected a class, and {spelling!r} to be none")

    @property
    def is_spelled(self) -> bool:
        """Whether its cells stand for numbers that they are not themselves: dates, or texts in a format."""
        return self.format is not None or self.kind == "date"

    @property
    def has_classes(self) -> bool:
        """Whether the column is a choice among classes."""
        return self.kind in CLASS_KINDS

    @property
    def may_have_classes(self) -> bool:
        """Whether it is taken for numbers, which may as well be codes of classes."""
        return not self.has_classes and self.confidence == "doubtful" and self.alternative in CLASS_KINDS

    @property
    def has_rest(self) -> bool:
        """Whether it has so many classes that those after the first hundred are modelled as one."""
        return self.kind == "categorical" and len(self.classes or ()) > MOST_SINGLE

    @property
    def n_single(self) -> int:
        """How many of its classes are modelled one by one; the code of the rest, if there is one."""
        return MOST_SINGLE if self.has_rest else len(self.classes or ())

    @property
    def n_outcomes(self) -> int:
        """How many outcomes are told apart: the classes that are modelled one by one, and the rest."""
        return self.n_single + self.has_rest

    def lump(self, codes: Any) -> Any:
        """Return codes with those of the rest as one; missing cells stay.

        Examples
        --------
        >>> town = Column(name="town", kind="categorical", classes=[f"town {i}" for i in range(400)])
        >>> town.n_outcomes, town.lump(np.array([7.0, 99.0, 312.0, np.nan])).tolist()
        (101, [7.0, 99.0, 100.0, nan])
        """
        return np.minimum(codes, self.n_single) if self.has_rest else codes


class Schema(BaseModel):
    """The columns of a table, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(size=50), rng.poisson(4, 50), rng.random(50) < 0.3])
    >>> from evenly import infer_schema
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

    def _repr_html_(self) -> str:
        """Show one row a column, those first whose kind is least sure."""
        order = sorted(self.columns, key=lambda one: DOUBTFUL_FIRST.index(one.confidence))
        rows = [[c.name, c.kind, c.likelihood or "–", c.confidence, _details(c), c.note] for c in order]
        headers = ["column", "kind", "likelihood", "confidence", "details", "note"]
        return html_table(f"Schema of {len(rows)} columns", headers, rows)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def save(self, path: str | Path) -> None:
        """Write the schema to a JSON file that a person can edit."""
        plain = self.model_dump(exclude_defaults=True)
        for column in plain["columns"]:
            # The default likelihood follows the kind, so that editing the kind is enough.
            if column.get("likelihood") == DEFAULT_LIKELIHOOD.get(column["kind"]):
                column.pop("likelihood", None)
        write_text(path, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a JSON file, edited by hand or not; an error names the column, the field and the file."""
        try:
            plain = parse_json(read_limited(path, MOST_BYTES))
        except ValueError as error:
            raise TableError(f"{error} in {path}", "expected a schema", SEE) from None
        try:
            schema = cls.model_validate_json(json.dumps(plain), strict=True)
        except ValidationError as error:
            raise _wrong(first_problem(error), plain, path) from None
        _refuse_absurd(schema, path)
        return schema


def _wrong(problem: Problem, plain: Any, path: str | Path) -> TableError:
    """Return the error for a field that a schema cannot have."""
    where, got, expected = problem
    if len(where) < 2 or where[0] != "columns":
        of = f" of {where[0]}" if where else ""
        return TableError(f"{one_line(got)}{of} in {path}", one_line(expected), SEE)
    name = plain["columns"][where[1]].get("name") if isinstance(plain["columns"][where[1]], dict) else None
    field, hint = str(got).removeprefix("the field ").strip("'"), SEE
    if expected == "expected no such field":
        expected = f"expected one of {', '.join(Column.model_fields)}"
        if near := get_close_matches(field, Column.model_fields, 1):
            hint = f"{near[0]}, perhaps"
    return TableError(
        f"{one_line(got)} in {path}", one_line(expected), hint, column=name if isinstance(name, str) else where[1]
    )


def _refuse_absurd(schema: Schema, path: str | Path) -> None:
    """Refuse more classes than any model has, and whole numbers that no column holds."""
    for column in schema.columns:
        for field, values in (("classes", column.classes or []), ("missing", column.missing)):
            if len(values) > MOST_VALUES:
                got = f"{len(values)} {field} in {path}"
                raise TableError(got, f"expected up to {MOST_VALUES}", "`ignore` it", column=column.name)
            if large := [one for one in values if isinstance(one, int) and abs(one) > 2**64]:
                got = f"{show(large[0])} among {field} in {path}"
                raise TableError(got, "expected 64 bits", "write it as text", column=column.name)


def _details(column: Column) -> str:
    parts = []
    if column.classes is not None:
        shown = [str(value) for value in column.classes[:4]]
        parts.append(" | ".join(shown) + (f" | ... ({len(column.classes)})" if len(column.classes) > 4 else ""))
    if column.format is not None:
        parts.append(f"format: {column.format}")
    if column.origin is not None:
        parts.append(f"days from {column.origin}")
    if column.shift:
        parts.append(f"shift {column.shift:g}")
    if column.clip:
        parts.append(f"clip {column.clip:g}")
    if column.lower is not None or column.upper is not None:
        parts.append(f"from {column.lower} to {column.upper}")
    if column.same:
        parts.append("same: " + " ".join(f"{spelling!r} = {one!r}" for spelling, one in column.same.items()))
    if column.missing:
        parts.append("missing: " + " ".join(repr(marker) for marker in column.missing))
    return ", ".join(parts)


def declared_name(likelihood: str | Likelihood) -> str:
    """Return the name of a declared likelihood; refuse what is neither a name nor a likelihood."""
    if isinstance(likelihood, Likelihood):
        return likelihood.name
    if not isinstance(likelihood, str):
        raise TableError(f"the likelihood {likelihood!r}", "expected a name, or one from define_likelihood")
    return likelihood_name(likelihood)


def implied_kind(likelihood: str | Likelihood) -> str:
    """Return the kind that a declared likelihood implies."""
    return _kinds(likelihood)[0]


def fits(likelihood: str | Likelihood, kind: str) -> bool:
    """Whether a column of that kind may have the likelihood."""
    return kind in _kinds(likelihood)


def _kinds(likelihood: str | Likelihood) -> tuple[str, ...]:
    return likelihood.kinds if isinstance(likelihood, Likelihood) else FAMILIES[declared_name(likelihood)].kinds


def outside(name: str, got: str, family: Likelihood) -> TableError:
    """Return the error for values outside the support of a likelihood."""
    hint = "declare it `real`, or give its schema a `shift`"
    return TableError(got, f"{family.name} expects {family.support}", hint, column=name)
