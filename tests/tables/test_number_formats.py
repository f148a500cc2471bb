"""Texts that are numbers: percentages, money, separators, units. Each is read, modelled, and spelled as it was."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import (
    EvenlyWarning,
    Imputer,
    LipschitzScaler,
    Schema,
    TableError,
    choose_likelihoods,
    infer_schema,
    inspect_table,
)
from evenly.tables.formats import FORMATS, find_format, get_format
from evenly.tables.word_scales import find_order

RNG = np.random.default_rng(0)


class Case(NamedTuple):
    """Texts of a column, the numbers that they are, the pattern, and how another number is spelled."""

    texts: list[str]
    numbers: list[float]
    pattern: str
    number: float
    spelled: str


CASES = {
    "percent": Case(["12 %", "7 %"], [12, 7], "0 %", 33.0, "33 %"),
    "percent without a space": Case(["12.5%", "7.0%"], [12.5, 7], "0.0%", -33, "-33.0%"),
    "percent with decimal commas": Case(["12,5 %", "7 %"], [12.5, 7], "0,# %", 3.25, "3,2 %"),
    "percent with signs": Case(["+2.5 %", "-1.0 %", "0.0 %"], [2.5, -1, 0], "+0.0 %", 3.1, "+3.1 %"),
    "dollars": Case(["$1,200", "$80"], [1200, 80], "$#,##0", 1234567, "$1,234,567"),
    "dollars and cents": Case(["$1,200.50", "-$0.99"], [1200.5, -0.99], "$#,##0.00", -12, "-$12.00"),
    "accounting": Case(["$1,200", "($80)"], [1200, -80], "$#,##0;($#,##0)", -5000, "($5,000)"),
    "minus after the sign": Case(["$-5", "$10"], [-5, 10], "$0;$-0", -7, "$-7"),
    "euros": Case(["1.200,50 EUR", "15,00 EUR"], [1200.5, 15], "#.##0,00 EUR", 9876543.21, "9.876.543,21 EUR"),
    "euros in front": Case(["\u20ac 5", "\u20ac 1.200"], [5, 1200], "\u20ac #.##0", 1000, "\u20ac 1.000"),
    "code in front": Case(["USD 12.50", "USD 3.00"], [12.5, 3], "USD 0.00", 0.5, "USD 0.50"),
    "kronor": Case(["1 200 kr", "15 kr"], [1200, 15], "# ##0 kr", 1e6, "1 000 000 kr"),
    "narrow spaces": Case(
        ["1\u202f200,5 \u20ac", "3,0 \u20ac"], [1200.5, 3], "#\u202f##0,0 \u20ac", 1e4, "10\u202f000,0 \u20ac"
    ),
    "decimal commas": Case(["1,5", "22,25"], [1.5, 22.25], "0,0#", 3, "3,0"),
    "German": Case(["1.234,5", "2,5"], [1234.5, 2.5], "#.##0,0", 1e6, "1.000.000,0"),
    "English": Case(["1,234.5", "2.5"], [1234.5, 2.5], "#,##0.0", 1e6, "1,000,000.0"),
    "thousands": Case(["1,234", "987"], [1234, 987], "#,##0", 1000, "1,000"),
    "Swiss": Case(["1'234", "12"], [1234, 12], "#'##0", 1e6, "1'000'000"),
    "typographic minus": Case(["\u22125,2 %", "3,1 %"], [-5.2, 3.1], "0,0 %;\u22120,0 %", -1, "\u22121,0 %"),
    "unit": Case(["12 kg", "5.5 kg"], [12, 5.5], "0.# kg", 7, "7 kg"),
    "unit without a space": Case(["12kg", "5kg"], [12, 5], "0kg", 7, "7kg"),
    "a word as unit": Case(["3 years", "1 year"], [3, 1], "0 years|1 year", 2, "2 years"),
    "a unit of two words": Case(["3 sq ft", "1 sq ft"], [3, 1], "0 sq ft", 1, "1 sq ft"),
}  # fmt: skip
NONE = {
    "postal codes": ["02139", "94103"],
    "telephone numbers": ["555 123 456", "123 456 789"],
    "several units": ["12 kg", "3 lb"],
    "addresses": ["12 Main Street", "3 Oak Road"],
    "numbers of houses": ["12a", "13b"],
    "mixed separators": ["1,5", "2.5"],
    "two signs": ["12 % %"],
    "an exponent": ["1e300 %"],
    "beyond double precision": ["9" * 400 + " %"],
    "a dash": ["\u2014"],
    "an emoji": ["\U0001f600", "\U0001f600 5"],
    "nothing": [""],
    "a range": ["10 - 20 %"],
    "addresses of machines": ["192.168.0.1", "10.0.0.12"],
    "open parenthesis": ["($5", "$6"],
    "both ends": ["$5 EUR", "$6 EUR"],
    "digits of Arabic": ["\u0661\u0662 %"],
    "a line": ["5 %\n6 %"],
}


@pytest.mark.parametrize("name", CASES)
def test_a_format_reads_and_spells(name):
    case = CASES[name]
    found = find_format(case.texts)
    assert found is not None
    assert found.pattern == case.pattern
    assert [found.read(text) for text in case.texts] == case.numbers
    assert [found.write(number) for number in case.numbers] == case.texts
    assert found.write(case.number) == case.spelled
    assert get_format(found.pattern) == found


@pytest.mark.parametrize("name", NONE)
def test_other_texts_have_no_format(name):
    assert find_format(NONE[name]) is None


@given(st.data())
def test_what_a_format_spells_it_reads(data):
    found = get_format(data.draw(st.sampled_from([case.pattern for case in CASES.values()])))
    cents = data.draw(st.integers(-(10**11), 10**11))
    number = cents / 10.0**found.most
    text = found.write(number)
    assert found.read(text) == number
    assert found.write(found.read(text)) == text


@given(st.text(max_size=20), st.sampled_from([case.pattern for case in CASES.values()]))
def test_any_text_is_read_or_refused(text, pattern):
    read = get_format(pattern).read(text)
    assert read is None or np.isfinite(read)
    find_format([text])


@given(st.text(alphabet="$%#0,.;|() -+1k", max_size=12))
def test_a_pattern_is_exact_or_refused(pattern):
    found = [one for form in FORMATS if (one := form.parse(pattern)) is not None]
    assert all(one.pattern == pattern for one in found)
    if not found:
        with pytest.raises(ValueError, match="is no pattern"):
            get_format(pattern)


def column_of(case: Case, n: int = 40) -> list[str | None]:
    form, (low, high) = get_format(case.pattern), (min(case.numbers), max(case.numbers))
    numbers = np.round(RNG.uniform(low, high, n), form.most)
    return [None if i % 5 == 4 else form.write(float(one)) for i, one in enumerate(numbers)]


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def listed(table: object, name: str) -> list[object]:
    column = table[name]
    cells = column.to_pylist() if isinstance(table, pa.Table) else list(column)
    return [None if cell is None or cell != cell else cell for cell in cells]


@pytest.mark.parametrize("container", FRAMES)
def test_every_format_comes_back_as_it_was_spelled(container, tmp_path):
    columns = {name: column_of(case) for name, case in CASES.items()}
    table = FRAMES[container](columns)
    imputer = Imputer("marginal", random_state=0).fit(table)
    assert {one.name: one.format for one in imputer.schema_.columns} == {
        n: find_format([*filter(None, columns[n])]).pattern for n in CASES
    }
    assert all(not one.has_classes and one.kind != "ignore" for one in imputer.schema_.columns)
    imputer.save(tmp_path / "imputer")
    for full in (imputer.transform(table), Imputer.load(tmp_path / "imputer").transform(table)):
        for name, cells in columns.items():
            form = get_format(imputer.schema_[name].format)
            for cell, before in zip(listed(full, name), cells, strict=True):
                assert cell == before or (before is None and form.write(form.read(cell)) == cell)


@pytest.mark.parametrize("container", FRAMES)
def test_the_scaler_takes_formats_there_and_back(container, tmp_path):
    columns = {name: column_of(case) for name, case in CASES.items()}
    table = FRAMES[container](columns)
    scaler = LipschitzScaler(random_state=0).fit(table)
    scaler.save(tmp_path / "scaler.json")
    for one in (scaler, LipschitzScaler.load(tmp_path / "scaler.json")):
        back = one.inverse_transform(one.transform(table))
        for name, cells in columns.items():
            assert listed(back, name) == cells
    halves = [columns_part(columns, slice(0, 20)), columns_part(columns, slice(20, 40))]
    parts = LipschitzScaler(random_state=0, schema=scaler.schema_).partial_fit(FRAMES[container](halves[0]))
    parts.partial_fit(FRAMES[container](halves[1]))
    np.testing.assert_allclose(parts.summary_["scale"], scaler.summary_["scale"], rtol=1e-9)


def columns_part(columns: dict[str, list[str | None]], rows: slice) -> dict[str, list[str | None]]:
    return {name: cells[rows] for name, cells in columns.items()}


def test_lazy_frames_read_formats_too():
    columns = {name: column_of(case) for name, case in CASES.items() if name != "accounting"}
    table = pl.DataFrame(columns)
    eager, lazy = (LipschitzScaler("lip-none").fit(one) for one in (table, table.lazy()))
    assert lazy.schema_ == eager.schema_
    pd.testing.assert_frame_equal(
        lazy.transform(table.lazy()).collect().to_pandas(), eager.transform(table).to_pandas(), rtol=1e-9
    )
    # Parentheses cannot be read in an expression: such a column is what it was, texts.
    brackets = pl.DataFrame({"a": ["$1,200", "($80)", "$15"] * 8})
    assert infer_schema(brackets)["a"].kind == "real"
    column = LipschitzScaler("lip-none").fit(brackets.lazy()).schema_["a"]
    assert (column.kind, column.note) == ("categorical", "amounts of money, which a lazy frame does not read")


def test_a_schema_says_the_format_and_is_checked(tmp_path):
    table = pd.DataFrame({"rate": ["12 %", "15 %", "7 %", "3 %"], "x": [1.5, 2.5, 3.5, 9.25]})
    schema = infer_schema(table)
    assert str(schema).splitlines()[1].split() == ["rate", "positive", "log-normal", "format:", "0", "%", "percentages"]
    schema.save(tmp_path / "schema.json")
    assert '"format": "0 %"' in (tmp_path / "schema.json").read_text()
    assert Schema.load(tmp_path / "schema.json") == schema
    # A schema that leaves it out gets it from the table.
    plain = Schema.model_validate({"columns": [{"name": "rate", "kind": "real"}]})
    assert LipschitzScaler(schema=plain).fit(table).schema_["rate"].format == "0 %"
    text = (tmp_path / "schema.json").read_text()
    (tmp_path / "schema.json").write_text(text.replace("0 %", "in percent"))
    with pytest.raises(TableError, match=r"Column 'rate'.*the format 'in percent' is no pattern of numbers"):
        Schema.load(tmp_path / "schema.json")
    # Classes are texts, as they are.
    assert infer_schema(table, kinds={"rate": "categorical"})["rate"].classes == ["12 %", "15 %", "3 %", "7 %"]


def test_unknown_spellings_in_new_rows_are_missing_with_a_warning():
    table = pd.DataFrame({"rate": [f"{i} %" for i in range(1, 30)], "x": np.arange(1.5, 30.5)})
    imputer = Imputer("marginal").fit(table)
    new = pd.DataFrame({"rate": ["12 %", "13 kg", "\u2014", None, "\U0001f600"], "x": [1.5] * 5})
    with pytest.warns(EvenlyWarning, match="column 'rate': 3 cells with no number, treated as missing: '13 kg'"):
        full = imputer.transform(new)
    assert full["rate"].tolist()[:3] + full["rate"].tolist()[4:] == ["12 %", "13 kg", "\u2014", "\U0001f600"]
    assert full["rate"][3] == "15 %"
    with pytest.raises(TableError, match="Column 'rate': got the text '13 kg'"):
        imputer.set_params(strict=True).transform(new)


def test_few_strays_among_formatted_numbers_are_named():
    table = pd.DataFrame({"price": [f"${i:,}" for i in range(950, 1000)] + ["call us"]})
    found = inspect_table(table)["price"]
    assert found.kind == "ignore"
    assert (
        "amounts of money, except for 'call us' (1 cell), so taken for texts: if it means missing" in found.warnings[-1]
    )
    found = inspect_table(table, missing=["call us"])["price"]
    assert (found.kind, found.range, found.n_missing) == ("positive", (950.0, 999.0), 1)


def test_telephone_numbers_with_a_plus_are_no_quantities():
    numbers = [f"+49170{i:07}" for i in RNG.integers(0, 10**7, 40)]
    for table in (pd.DataFrame({"phone": numbers}), pl.DataFrame({"phone": numbers})):
        assert infer_schema(table)["phone"].kind == "ignore"


def test_likelihoods_are_chosen_among_formatted_numbers():
    wait = [f"{value:.2f} min" for value in np.random.default_rng(0).gamma(1.5, 2.0, 400)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        assert choose_likelihoods(pd.DataFrame({"wait": wait})).likelihoods == {"wait": "gamma"}


def test_long_texts_are_refused_at_once():
    for text in (" " * 200_000 + "%", "1" * 200_000, "1 " * 100_000 + "EUR", "1-" * 100_000, "(" * 200_000):
        assert find_format([text]) is None
        assert find_order([text, "1-2"]) is None
        assert all(get_format(case.pattern).read(text) is None for case in CASES.values())
