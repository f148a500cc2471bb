"""Contents of files checked before use: their fields and types, errors as one sentence."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple, NotRequired, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from evenly._support import one_line, show

Checked = TypeVar("Checked", bound=BaseModel)


class Content(BaseModel):
    """The base of descriptions of saved content, which has no other fields."""

    model_config = ConfigDict(extra="forbid")


class Problem(NamedTuple):
    """The first thing that is wrong with checked content."""

    where: tuple[str | int, ...]
    got: str
    expected: str

    def __str__(self) -> str:
        place = " > ".join(map(str, self.where)) or "the top"
        return one_line(f"{place}: {self.got}, {self.expected}")


def first_problem(error: ValidationError) -> Problem:
    """Return the first thing that pydantic found wrong, in the words of this project."""
    first = error.errors(include_url=False)[0]
    where, message = first["loc"], first["msg"]
    if first["type"] == "missing":
        return Problem(where[:-1], f"no field {where[-1]!r}", "expected one")
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return Problem(where[:-1], f"the field {where[-1]!r}", "expected no such field")
    if first["type"] in ("value_error", "assertion_error"):
        return Problem(where, "what contradicts itself", message.partition(", ")[2] or message)
    field = where[-1] if where and isinstance(where[-1], str) else "value"
    words = message.replace("Input should", "expected it to", 1).replace("expected it to be ", "expected ", 1)
    return Problem(where, f"{field} = {show(first['input'])}", words)


def check(model: type[Checked], plain: Any) -> Checked:
    """Return content as a model describes it; ValueError, in one sentence, if it is anything else."""
    checked: Checked = _validate(_of_model(model), plain, strict=True)
    return checked


@cache
def _of_model(model: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _validate(adapter: TypeAdapter[Any], plain: Any, *, strict: bool) -> Any:
    """Validate by way of JSON, in which a list may be a tuple and nothing else may be something else."""
    try:
        return adapter.validate_json(json.dumps(plain), strict=strict)
    except ValidationError as error:
        raise ValueError(str(first_problem(error))) from None


def check_fields(kind: type, plain: Any, *, without: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass from plain content, checked against the types that it declares.

    A field that was added `later`, by its metadata, may be absent: older files do not have it.

    Parameters
    ----------
    without : str
        A field that the content does not have.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> check_fields(make_dataclass("Size", [("width", int)]), {"width": "3"})
    Traceback (most recent call last):
    ValueError: width: width = '3', expected a valid integer
    """
    found: dict[str, Any] = _validate(_fields_of(kind, without), plain, strict=True)
    return found


@cache
def _fields_of(kind: Any, without: str) -> TypeAdapter[Any]:
    hints = get_type_hints(kind)
    described = {
        one.name: NotRequired[hints[one.name]] if one.metadata.get("later") else hints[one.name]
        for one in fields(kind)
        if one.name != without
    }
    return _adapter(described, ConfigDict(extra="forbid"), total=True)


def check_parameters(estimator: Any, given: Any) -> dict[str, Any]:
    """Return the saved settings of an estimator, checked against the parameters of its constructor and their types.

    Settings that are absent have their defaults. Conversions are allowed, as they are in the constructor.
    """
    _validate(_parameters_of(estimator), given, strict=False)
    return dict(given)


@cache
def _parameters_of(estimator: Any) -> TypeAdapter[Any]:
    hints = get_type_hints(estimator.__init__)
    described = {name: hints.get(name, Any) for name in estimator._get_param_names()}
    return _adapter(described, ConfigDict(extra="forbid", arbitrary_types_allowed=True), total=False)


def _adapter(described: dict[str, Any], config: ConfigDict, *, total: bool) -> TypeAdapter[Any]:
    # A dictionary, not a model, in which some names are taken.
    make: Any = TypedDict
    content = make("content", described, total=total)
    content.__pydantic_config__ = config
    return TypeAdapter(content)
