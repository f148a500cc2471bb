"""Saving the parts of an ensemble that belong to one column each, such as its forest, as arrays by name; and back.

A part is a dataclass of arrays. Those of the first forest are named `trees0_left` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy.typing as npt

from evenly.imputation.columns import ModelledColumn

Array = npt.NDArray[Any]
Part = TypeVar("Part")


def parts_to_tensors(name: str, parts: Mapping[str, Any]) -> dict[str, Array]:
    """Return the arrays of all parts by name."""
    return {
        f"{name}{i}_{field.name}": getattr(one, field.name)
        for i, one in enumerate(parts.values())
        for field in fields(one)
    }


def part_from_tensors(kind: type[Part], name: str, tensors: Mapping[str, Array]) -> Part:
    """Rebuild one part, such as `trees0`; ValueError if an array is missing."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    if lacking := [one for one in names if f"{name}_{one}" not in tensors]:
        raise ValueError(f"no array {name}_{lacking[0]}")
    return kind(**{one: tensors[f"{name}_{one}"] for one in names})


def places_of(names: Sequence[str], specs: Sequence[ModelledColumn], what: str) -> list[int]:
    """Return the place of each named column among those that are modelled; ValueError if one is twice or not there."""
    places = {one.name: j for j, one in enumerate(specs)}
    if len(set(names)) < len(names) or not places.keys() >= set(names):
        raise ValueError(f"{what} of other columns than the modelled ones")
    return [places[name] for name in names]
