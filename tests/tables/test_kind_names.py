"""Names are read as a person reads them: the head of a name decides, in any usual spelling."""

from __future__ import annotations

import pytest

from evenly.tables.kind_names import read_name, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("customerID", ["customer", "id"]),
        ("HTTPCode2", ["http", "code", "2"]),
        ("  Straße / Nr. ", ["strasse", "nr"]),
        ("größe", ["grosse"]),
        ("x", ["x"]),
        ("", []),
        ("年", []),
    ],
)
def test_words(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("id", "key"),
        ("hhid", "key"),
        ("paid", None),
        ("solid", None),
        ("patient", "unit"),
        ("patients", "quantity"),
        ("n_obs", "quantity"),
        ("pat.karno", None),
        ("cell_shape_uniformity", None),
        ("occupation_husb", "classes"),
        ("relig", "classes"),
        ("treatm", "classes"),
        ("companies", "quantity"),
        ("species", "classes"),
        ("tenure", "quantity"),
        ("order_no", "running"),
        ("n_orders", "quantity"),
        ("zip_code", "code"),
        ("postcode", "code"),
        ("distcod", "code"),
        ("state_population", "quantity"),
        ("region_of_birth", "place"),
        ("workclass", "classes"),
        ("ozone", None),
        ("age_group", "classes"),
        ("rate_marriage", "quantity"),
        ("hours_per_week", "quantity"),
        ("", None),
        ("年", None),
    ],
)
def test_meanings(name, meaning):
    assert read_name(name).meaning == meaning


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("birth_year", "year"),
        ("Année de naissance", "year"),
        ("months", None),
        ("dayofweek", "weekday"),
        ("Day of Week", "weekday"),
        ("YearBuilt", "year"),
        ("day", "day"),
    ],
)
def test_parts_of_dates(name, part):
    assert read_name(name).calendar == part
