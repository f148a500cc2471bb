"""Rules are read by a grammar of their own: what it takes, what it refuses, and where its errors point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import TableError
from evenly.imputation.rules.grammar import Formula, Order, SkipPattern, parse_rule


class Rows:
    """One row of numbers."""

    def __init__(self, **cells: float) -> None:
        self.cells = cells

    def number(self, name):
        return np.array([self.cells[name]])

    code = number


def value(formula: str, **cells: float) -> float:
    return float(parse_rule(f"y = {formula}")[0].formula.value(Rows(**cells))[()].item())


@pytest.mark.parametrize(
    "formula",
    [
        "2 + 3 * 4 ** 2",
        "-3 ** 2",
        "2 ** -1",
        "2 ** 3 ** 2",
        "10 - 4 - 3",
        "24 / 4 / 3",
        "(2 + 3) * -(4 - 6)",
        "1.5e3 / .5",
        "--2",
        "+2 - -3",
        "abs(-3) + max(1, 2, 3) - min(4, 2)",
    ],
)
def test_signs_bind_as_in_python(formula):
    assert value(formula) == eval(formula)


def test_functions_and_names():
    assert value("log(exp(a)) + sqrt(b)", a=2.0, b=9.0) == pytest.approx(5.0)
    assert value("floor(a) + ceil(a) + round(a)", a=2.5) == 2 + 3 + 3
    assert parse_rule("`the sum` = `first name` + x.1 + größe")[0].formula.names == ("first name", "x.1", "größe")
    assert parse_rule("`if` = `log` + 1")[0].target.name == "if"


def test_a_chain_is_several_orders():
    found = parse_rule("0 < a <= b + 7")
    assert [type(one) for one in found] == [Order, Order]
    assert [one.strict for one in found] == [True, False]
    assert parse_rule("b > a")[0].smaller.names == ("a",)


def test_skip_patterns():
    (found,) = parse_rule("x only if not (sex == 'male' or age < 18) and job not in ('a', 'b') else -1")
    assert isinstance(found, SkipPattern)
    assert (found.target.name, found.otherwise.number) == ("x", -1.0)
    assert found.condition.names == ("sex", "age", "job")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bmi = weight / / 2", r"at '/ 2' \(character 16\) expected a column, a number or a bracket"),
        ("bmi = weight /", "at its end expected a column"),
        ("bmi = (a + b", r"at its end expected '\)'"),
        ("bmi weight", r"at 'weight' \(character 5\) expected =, <=, <, >=, > or `only if`"),
        ("a == b", r"at '== b' .* expected =, <=, <, >= or >"),
        ("a = 'x", r"at \"'x\" .* expected a closing '"),
        ("a = b $ c", r"at '\$ c' .* expected a column, a number, a text in quotes or a sign"),
        ("a = 3x", r"at '3x' .* expected"),
        ("a = b c", r"at 'c' .* expected a sign such as \+ or <=, or the end"),
        ("a only if b", r"at 'b' .* expected a condition such as sex == 'female'"),
        ("a only if b = 2", r"at '= 2' .* expected =="),
        ("a only sex == 'f'", r"at \"sex == 'f'\" .* expected 'if'"),
        ("a only if b == 1 else c", r"at 'c' .* expected a number, or a text in quotes"),
        ("a only if b and c == 1", r"at 'and c == 1' .* expected conditions on both sides"),
        ("a = (b < c) + 1", "not conditions"),
        ("a = b < c", r"at '< c' .* expected a sign"),
        ("a = min(b)", r"at 'min\(b\)' .* expected two arguments or more"),
        ("a = sinh(b)", r"at 'sinh\(b\)' .* expected one of the functions abs, "),
        ("", "at its end expected"),
        ("a = __import__('os')", "expected one of the functions"),
        ("a = b.__class__()", "expected one of the functions"),
        ("a = [b]", "expected a column"),
        ("a = " + "(" * 99 + "b" + ")" * 99, "at most 50 brackets"),
        ("a = " + "-" * 300 + "b", "at most 50 brackets"),
        ("a = " + " + ".join("b" * 300), "at most 400"),
        ("a" * 5000, "expected at most"),
    ],
)
def test_errors_point_at_the_place(text, message):
    with pytest.raises(TableError, match=message):
        parse_rule(text)


@given(st.text(alphabet="ab1. +-*/()<>=!'\"`,\tonlyifelsadrt_é", max_size=60))
def test_any_text_is_a_rule_or_a_table_error(text):
    try:
        found = parse_rule(text)
    except TableError:
        return
    assert found
    assert all(isinstance(one, (Formula, Order, SkipPattern)) for one in found)
