"""Words in an order that everybody knows: their classes are in that order, whatever their case and language."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import Imputer, LipschitzScaler, Schema, infer_schema, inspect_table
from evenly.tables import profile_column
from evenly.tables.columns import TableColumn
from evenly.tables.word_scales import MONTHS, ORDERED, WEEKDAYS, YES_NO, find_order, read_scales

YES = {
    "English": "no yes", "letters": "N Y", "booleans": "FALSE TRUE", "short booleans": "f t", "switches": "Off On",
    "German": "Nein Ja", "French": "non oui", "Spanish": "no sí", "Spanish without accents": "No Si",
    "Portuguese": "não sim", "Italian": "no sì", "Russian": "нет да", "Japanese": "いいえ はい", "Chinese": "否 是",
    "Korean": "아니요 예", "Finnish": "ei kyllä", "Polish": "nie tak", "Turkish": "hayır evet", "Dutch": "nee ja",
    "Swedish": "nej ja", "Czech": "ne ano", "Hungarian": "nem igen", "Greek": "όχι ναι", "Arabic": "لا نعم",
    "Hindi": "नहीं हाँ",
}  # fmt: skip
ORDINAL = {
    "low to high": ["Low", "Medium", "High"],
    "agreement": ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
    "underscores": ["strongly_disagree", "neutral", "strongly_agree"],
    "hyphens": ["very-low", "low", "very-high"],
    "frequency": ["never", "rarely", "sometimes", "often", "always"],
    "quality": ["Poor", "Fair", "Good", "Very good", "Excellent"],
    "cuts": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "clothes": ["XS", "S", "M", "L", "XL", "XXL"],
    "grades": ["F", "D", "C-", "C", "B+", "A", "A+"],
    "severity": ["none", "mild", "moderate", "severe"],
    "sizes": ["small", "medium", "large"],
    "education": ["Primary", "High school", "Bachelor's degree", "Master's degree", "PhD"],
    "German": ["niedrig", "mittel", "hoch"],
    "French": ["jamais", "parfois", "souvent", "toujours"],
    "Spanish": ["nunca", "a veces", "siempre"],
    "ages": ["<18", "18-24", "25-34", "35-64", "65+"],
    "ages in words": ["under 18", "18 to 64", "65 and over"],
    "incomes": ["0-10k", "10k-20k", "20k-100k", "100k+"],
    "dollars": ["less than $10,000", "$10,000 - $19,999", "$20,000 - $99,999", "$100,000 or more"],
    "intervals": ["(0, 9]", "(9, 10]", "(10, 100]"],
    "numbers and ranges": ["0", "1-3", "4-9", "10+"],
    "typographic": ["0–9", "10–99", "≥100"],
}
CALENDAR = {
    "months": ["January", "April", "August", "December"],
    "short months": ["JAN", "FEB", "MAR", "NOV"],
    "German months": ["Januar", "März", "Mai", "Dezember"],
    "French months": ["janvier", "avril", "août"],
    "days": ["Monday", "Tuesday", "Sunday"],
    "short days": ["Mon", "Tue", "Sun"],
    "German days": ["Mo", "Di", "Fr", "So"],
    "Spanish days": ["lunes", "martes", "domingo"],
}
NONE = {
    "colours": ["red", "green", "blue"],
    "letters": ["A", "B", "C"],
    "sexes": ["M", "F"],
    "directions": ["N", "S"],
    "telephone numbers": ["555-1234", "555-9876"],
    "results": ["2-1", "0-3", "1-1"],
    "overlapping ranges": ["10-20", "15-30", "18-19"],
    "a dash": ["\u2014", "low"],
    "two scales": ["low", "often"],
    "emoji": ["\U0001f600", "low"],
    "products": ["MX-5", "CX-30"],
}  # fmt: skip


def table_of(classes: list[str], n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": [*classes, *rng.choice(classes, n - len(classes) - 4), *[None] * 4], "x": rng.normal(size=n)}
    )


@pytest.mark.parametrize("language", YES)
def test_no_comes_before_yes_in_any_language_and_case(language):
    classes = YES[language].split()
    for spelled in (classes, [one.upper() for one in classes], [one.capitalize() for one in classes]):
        column = infer_schema(table_of(spelled[::-1]))["a"]
        assert (column.kind, column.classes, column.note) == ("binary", spelled, "no or yes")


@pytest.mark.parametrize("name", ORDINAL)
def test_ordered_words_are_ordinal_in_their_order(name):
    classes = ORDINAL[name]
    column = infer_schema(table_of(classes[::-1]))["a"]
    assert (column.kind, column.classes) == ("ordinal", classes)
    assert column.note in ("ordered words", "grades", "bands of numbers")
    column = infer_schema(table_of([one.upper() for one in classes]))["a"]
    assert (column.kind, column.classes) == ("ordinal", [one.upper() for one in classes])


@pytest.mark.parametrize("name", CALENDAR)
def test_months_and_days_of_the_week_are_in_the_order_of_the_calendar(name):
    column = infer_schema(table_of(sorted(CALENDAR[name])))["a"]
    assert (column.kind, column.classes) == ("categorical", CALENDAR[name])


@pytest.mark.parametrize("name", NONE)
def test_other_texts_have_no_order(name):
    assert find_order(NONE[name]) is None
    assert infer_schema(table_of(NONE[name]))["a"].classes == sorted(NONE[name])


@given(st.data())
def test_any_part_of_a_scale_in_any_case_keeps_its_order(data):
    places = data.draw(
        st.sampled_from([one for many in (YES_NO, ORDERED, MONTHS, WEEKDAYS) for one in read_scales(many)])
    )
    levels = {place: word for word, place in reversed(places.items())}
    chosen = [one for _, one in sorted(levels.items()) if len(one) > 2 and data.draw(st.booleans())]
    cases = [data.draw(st.sampled_from([str.title, str.upper, str.lower]))(one) for one in chosen]
    found = find_order(cases)
    if len(chosen) > 1:
        assert found is not None
        assert sorted(cases, key=found.places.__getitem__) == cases


@given(st.lists(st.text(max_size=10), min_size=2, max_size=5))
def test_any_texts_are_ordered_or_not(texts):
    found = find_order(texts)
    assert found is None or set(found.places) == set(texts)


def test_two_words_of_a_scale_are_binary_in_its_order():
    column = infer_schema(table_of(["low", "high"]))["a"]
    assert (column.kind, column.classes) == ("binary", ["low", "high"])


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_mixed_cases_are_one_class_and_cells_keep_theirs(container, tmp_path):
    cells = ["Yes", "no", "YES", None, "Yes", "y", "No", "no"] * 5
    table = container({"smoker": cells})
    column = infer_schema(table)["smoker"]
    assert (column.kind, column.classes) == ("binary", ["no", "Yes"])
    assert column.same == {"YES": "Yes", "y": "Yes", "No": "no"}
    assert inspect_table(table)["smoker"].warnings == ()
    assert infer_schema(table, merge_classes=True)["smoker"] == column
    imputer = Imputer("marginal").fit(table)
    imputer.save(tmp_path)
    full = Imputer.load(tmp_path).transform(table)["smoker"]
    assert [*full] == ["Yes" if cell is None else cell for cell in cells]
    parts = [LipschitzScaler("lip-none").fit(table[:20]), LipschitzScaler("lip-none").fit(table[20:])]
    merged = sum(parts).schema_["smoker"]
    assert (merged.classes, merged.same) == (column.classes, column.same)


def test_declared_ordinal_words_are_ordered_and_a_schema_keeps_its_own_order(tmp_path):
    table = table_of(["low", "medium", "high"])
    assert infer_schema(table, kinds={"a": "ordinal"})["a"].classes == ["low", "medium", "high"]
    assert infer_schema(table, kinds={"a": "categorical"})["a"].classes == ["low", "medium", "high"]
    own = Schema.model_validate({"columns": [{"name": "a", "kind": "ordinal", "classes": ["high", "medium", "low"]}]})
    assert LipschitzScaler("lip-none", schema=own).fit(table).schema_["a"].classes == ["high", "medium", "low"]
    bare = Schema.model_validate({"columns": [{"name": "a", "kind": "ordinal"}]})
    assert LipschitzScaler("lip-none", schema=bare).fit(table).schema_["a"].classes == ["low", "medium", "high"]


def test_types_that_declare_classes_keep_their_order():
    table = pd.DataFrame({"a": pd.Categorical(["low", "high", "medium"] * 20)})
    column = infer_schema(table)["a"]
    assert (column.kind, column.classes) == ("categorical", ["high", "low", "medium"])


def test_lazy_frames_order_words_too():
    table = pl.from_pandas(table_of(["Low", "medium", "HIGH", "high"]))
    eager, lazy = (LipschitzScaler("lip-none").fit(one) for one in (table, table.lazy()))
    assert lazy.schema_ == eager.schema_
    assert len(lazy.schema_["a"].classes) == 3
    assert lazy.transform(table.lazy()).collect().equals(eager.transform(table))


def test_months_of_every_row_are_no_identifier():
    cells = TableColumn("month", np.array(CALENDAR["months"] * 3, object))
    assert profile_column(cells).n == 12
    table = pd.DataFrame(
        {"month": [*["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]]}
    )
    assert infer_schema(table)["month"].kind == "categorical"
