"""A saved scaler whose content is nonsense is refused in one sentence, even if its checksum is right."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenly import LipschitzScaler, TableError
from evenly._support import write_json


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=40), "c": rng.choice(list("abc"), 40), "n": rng.poisson(3.0, 40)})
    scaler = LipschitzScaler("iqr-none", kinds={"n": "count"}, likelihoods={"x": "normal"}, random_state=0).fit(table)
    return json.loads(json.dumps(scaler.to_plain()))


def replace(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    found = part = copy.deepcopy(tree)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("settings", "metod"), "std-none", "metod"),
        (("settings", "method"), "standard", "standard"),
        (("settings", "learning_rate"), -1.0, "learning_rate = -1.0"),
        (("settings", "kinds"), [3], "kinds"),
        (("own_likelihoods",), 3, "own_likelihoods = 3"),
        (("schema", "columns", 0, "kind"), "float", "kind = 'float'"),
        (("schema", "columns", 0, "lower"), "1", "lower = '1'"),
        (("schema", "columns", 0, "likelihood"), "gauss", "gauss"),
        (("labels",), ["x", "c", "c"], "the name more than once"),
        (("labels",), ["x", "c", "m"], "labels that are not those of the schema's columns"),
        (("labels",), ["x", "c"], "labels"),
        (("container",), "spreadsheet", "container = 'spreadsheet'"),
        (("stored", 0), ["float64"], "stored"),
        (("seed",), -1, "seed = -1"),
        (("seed",), 2**70, "seed"),
        (("target",), 0.0, "target = 0"),
        (("scales", 0, 0), float("nan"), "scales"),
        (("scales", 0), [], "argument"),
        (("statistics", 0, "means"), [1.0], "means"),
        (("statistics", 0, "location", "means"), [1.0], "1 means in location, expected 2 of normal"),
        (("statistics", 0, "location"), None, "no means in location"),
        (("statistics", 0, "minimum"), 1e300, "above a maximum"),
        (("statistics", 1, "counts"), None, "counts that do not add up to 40"),
        (("statistics", 1, "counts"), [[0.0, 39], [7.0, 1]], "a count of 7, expected whole numbers from 0 below 3"),
        (("statistics", 2, "counts"), [[0.5, 40]], "a count of 0.5"),
        (("statistics", 2, "counts"), "many", "counts = 'many'"),
    ],
)
def test_nonsense_with_the_right_checksum_is_refused_in_one_sentence(plain, path, value, message, tmp_path):
    write_json(tmp_path / "scaler.json", replace(plain, path, value))
    with pytest.raises(TableError, match=rf"scaler\.json, saved by .* cannot read it: .*{message}") as caught:
        LipschitzScaler.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_setting_that_a_file_does_not_have_has_its_default(plain, tmp_path):
    """So that a new setting makes no file unreadable."""
    settings = {name: value for name, value in plain["settings"].items() if name != "zeros"}
    write_json(tmp_path / "scaler.json", plain | {"settings": settings})
    assert LipschitzScaler.load(tmp_path).get_params() == LipschitzScaler.from_plain(plain, (), tmp_path).get_params()


@pytest.mark.parametrize("dtype", ["float6", "datetime64[us]", "M", "object[3]"])
def test_a_type_that_cannot_be_stored_is_a_clear_error_in_use(plain, dtype, tmp_path):
    write_json(tmp_path / "scaler.json", replace(plain, ("stored", 1, 0), dtype))
    scaler = LipschitzScaler.load(tmp_path)
    table = pd.DataFrame({"x": [0.5], "c": ["a"], "n": [1]})
    with pytest.raises(TableError, match="the stored type"):
        scaler.inverse_transform(scaler.transform(table))
