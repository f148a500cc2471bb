"""Rules as text, read by a small grammar of their own: nothing in them is ever run as code.

    rule        = NAME "=" sum | comparison | NAME "only if" condition ["else" VALUE]
    condition   = all {"or" all};  all = one {"and" one};  one = "not" one | comparison
    comparison  = sum {("<=" | "<" | ">=" | ">" | "==" | "!=") sum} | sum ["not"] "in" "(" VALUE {"," VALUE} ")"
    sum         = product {("+" | "-") product};  product = signed {("*" | "/") signed}
    signed      = "-" signed | power;  power = atom ["**" signed]
    atom        = NUMBER | TEXT | NAME | FUNCTION "(" sum {"," sum} ")" | "(" condition ")"

A name with spaces, or one that is a word of this grammar, stands in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from evenly._support import TableError
from evenly.imputation.rules.expressions import (
    CONDITIONS,
    FUNCTIONS,
    Among,
    Both,
    Call,
    Comparison,
    Expression,
    Name,
    Negative,
    Not,
    Number,
    Operation,
    Text,
)

LONGEST, MOST_WORDS, DEEPEST = 4_000, 400, 50
"""Characters of a rule, its words and signs, and how deep its brackets may be nested."""
WORDS = ("only", "if", "else", "and", "or", "not", "in")
ORDERS = ("<=", "<", ">=", ">")
EXAMPLES = '"bmi = weight / height**2", "start <= end" or "pregnancies only if sex == \'female\'"'
TOKEN = re.compile(
    r"""(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)
    |`(?P<quoted>[^`]+)`
    |(?P<text>'[^']*'|"[^"]*")
    |(?P<sign>\*\*|<=|>=|==|!=|[-+*/()<>=,])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A word, a sign, a number, a name or a text of a rule."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Rule:
    """What holds in every row, as read: one of `Formula`, `Order` and `SkipPattern`."""

    text: str


@dataclass(frozen=True)
class Formula(Rule):
    """A column that is computed from others."""

    target: Name
    formula: Expression


@dataclass(frozen=True)
class Order(Rule):
    """An expression that is no larger than another one, or smaller."""

    smaller: Expression
    larger: Expression
    strict: bool
    at: int


@dataclass(frozen=True)
class SkipPattern(Rule):
    """A column that is filled in some rows only, and what it holds in the others."""

    target: Name
    condition: Expression
    otherwise: Number | Text | None


def parse_rule(text: str) -> tuple[Rule, ...]:
    """Read a rule; a chain such as `a <= b <= c` is several.

    Examples
    --------
    >>> parse_rule("total = a + `the rest`")[0].formula.names
    ('a', 'the rest')
    >>> parse_rule("start <= <= end")
    Traceback (most recent call last):
    evenly.TableError: got the rule 'start <= <= end', but at '<= end' (character 10) expected a column, a number ...
    """
    if not isinstance(text, str):
        raise TableError(f"the rule {text!r}", "expected a text", EXAMPLES)
    if len(text) > LONGEST:
        raise TableError(f"a rule of {len(text)} characters", f"expected at most {LONGEST}")
    return _Parser(text.strip()).rule()


class _Parser:
    """Reads one rule, from its first token to its last."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.tokens = list(self._split())

    def _split(self) -> Sequence[Token]:
        found, at = [], 0
        while at < len(self.text):
            if self.text[at].isspace():
                at += 1
                continue
            hit = TOKEN.match(self.text, at)
            if hit is None:
                if self.text[at] in "'\"`":
                    raise self.wrong(f"a closing {self.text[at]}", at)
                raise self.wrong("a column, a number, a text in quotes or a sign", at)
            kind, text = str(hit.lastgroup), hit[str(hit.lastgroup)]
            if kind == "name" and text in WORDS:
                kind = "word"
            kind = "name" if kind == "quoted" else kind
            found.append(Token(kind, text[1:-1] if kind == "text" else text, at))
            at = hit.end()
        if len(found) > MOST_WORDS:
            raise TableError(f"a rule of {len(found)} words and signs", f"expected at most {MOST_WORDS}")
        return [*found, Token("end", "", len(self.text))]

    def wrong(self, expected: str, at: int | None = None, hint: str = "") -> TableError:
        """Return an error that points at a place in the rule, by default the next token."""
        at = self.now.at if at is None else at
        rest = self.text[at : at + 20]
        where = f"at {rest!r} (character {at + 1})" if rest else "at its end"
        return TableError(f"the rule {self.text!r}", f"{where} expected {expected}", hint or f"write {EXAMPLES}")

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def take(self, *texts: str) -> Token | None:
        """Go past the next token if it is one of some words or signs."""
        one = self.now
        if one.kind in ("word", "sign") and one.text in texts:
            self.place += 1
            return one
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            raise self.wrong(repr(text))

    # --- rules ----------------------------------------------------------------------------------------------------

    def rule(self) -> tuple[Rule, ...]:
        first, then = self.now, self.tokens[min(1, len(self.tokens) - 1)]
        if first.kind == "name" and then.text in ("=", "only") and then.kind in ("sign", "word"):
            self.place += 2
            target = Name(first.text, first.at)
            found: tuple[Rule, ...] = (self.skip_pattern(target) if then.text == "only" else self.formula(target),)
        else:
            found = self.orders()
        if self.now.kind != "end":
            raise self.wrong("a sign such as + or <=, or the end")
        return found

    def formula(self, target: Name) -> Formula:
        at = self.now.at
        formula = self.sum()
        if isinstance(formula, CONDITIONS):
            raise self.wrong("a number, not a condition", at)
        return Formula(self.text, target, formula)

    def orders(self) -> tuple[Order, ...]:
        sides, signs = [self.sum()], list[Token]()
        while (sign := self.take(*ORDERS)) is not None:
            signs.append(sign)
            sides.append(self.sum())
        if not signs:
            if self.now.text in ("==", "!=", "="):
                raise self.wrong("=, <=, <, >= or >", hint="a column is computed by `column = formula`")
            raise self.wrong("=, <=, <, >=, > or `only if`")
        found = []
        for sign, left, right in zip(signs, sides, sides[1:], strict=False):
            smaller, larger = (left, right) if sign.text.startswith("<") else (right, left)
            found.append(Order(self.text, smaller, larger, len(sign.text) == 1, sign.at))
        return tuple(found)

    def skip_pattern(self, target: Name) -> SkipPattern:
        self.need("if")
        at = self.now.at
        condition, otherwise = self.condition(), None
        if not isinstance(condition, CONDITIONS):
            raise self.wrong("a condition such as sex == 'female'", at)
        if self.take("else"):
            otherwise = self.literal()
        return SkipPattern(self.text, target, condition, otherwise)

    # --- conditions and expressions -------------------------------------------------------------------------------

    def condition(self) -> Expression:
        return self.chained("or", lambda: self.chained("and", self.denied))

    def chained(self, word: str, inner: Callable[[], Expression]) -> Expression:
        found = inner()
        while (at := self.now.at, self.take(word))[1]:
            other = inner()
            if not (isinstance(found, CONDITIONS) and isinstance(other, CONDITIONS)):
                raise self.wrong(f"conditions on both sides of {word!r}", at)
            found = Both(found, other, either=word == "or")
        return found

    def denied(self) -> Expression:
        at = self.now.at
        if self.take("not") is None:
            return self.comparison()
        self.deeper()
        inner = self.denied()
        self.depth -= 1
        if not isinstance(inner, CONDITIONS):
            raise self.wrong("a condition after 'not'", at)
        return Not(inner)

    def comparison(self) -> Expression:
        first = self.sum()
        denied = self.now.text == "not" and self.tokens[self.place + 1].text == "in" and self.take("not")
        if self.take("in"):
            return Not(self.among(first)) if denied else self.among(first)
        sides, found = [first], list[Expression]()
        while (sign := self.take(*ORDERS, "==", "!=")) is not None:
            sides.append(self.sum())
            if any(isinstance(one, CONDITIONS) for one in sides):
                raise self.wrong("numbers or columns on both sides, not conditions", sign.at)
            found.append(Comparison(sign.text, sides[-2], sides[-1], sign.at))
        if not found and self.now.text == "=" and self.now.kind == "sign":
            raise self.wrong("==", hint="one = computes a column, two compare")
        return reduce(Both, found) if found else first

    def among(self, first: Expression) -> Expression:
        if not isinstance(first, Name):
            raise self.wrong("a column before 'in'")
        self.need("(")
        values: list[Expression] = [self.literal()]
        while self.take(","):
            values.append(self.literal())
        self.need(")")
        return Among(first, tuple(values))

    def literal(self) -> Number | Text:
        negative, one = self.take("-"), self.now
        if one.kind == "number":
            self.place += 1
            return Number(-float(one.text) if negative else float(one.text))
        if one.kind == "text" and not negative:
            self.place += 1
            return Text(one.text, one.at)
        raise self.wrong("a number, or a text in quotes")

    def sum(self) -> Expression:
        return self.series(("+", "-"), lambda: self.series(("*", "/"), self.signed))

    def series(self, signs: tuple[str, ...], inner: Callable[[], Expression]) -> Expression:
        found = inner()
        while (sign := self.take(*signs)) is not None:
            found = Operation(sign.text, self.plain(found, sign), self.plain(inner(), sign), sign.at)
        return found

    def signed(self) -> Expression:
        sign = self.take("-", "+")
        if sign is None:
            return self.power()
        self.deeper()
        inner = self.plain(self.signed(), sign)
        self.depth -= 1
        if sign.text == "+":
            return inner
        return Number(-inner.number) if isinstance(inner, Number) else Negative(inner)

    def power(self) -> Expression:
        base = self.atom()
        sign = self.take("**")
        if sign is None:
            return base
        self.deeper()
        found = Operation("**", self.plain(base, sign), self.plain(self.signed(), sign), sign.at)
        self.depth -= 1
        return found

    def plain(self, one: Expression, sign: Token) -> Expression:
        """Refuse a condition where a number is expected."""
        if isinstance(one, CONDITIONS):
            raise self.wrong(f"numbers or columns on both sides of {sign.text}, not conditions", sign.at)
        return one

    def atom(self) -> Expression:
        one = self.now
        if one.kind in ("number", "text"):
            return self.literal()
        if one.kind == "name":
            self.place += 1
            if self.now.kind == "sign" and self.now.text == "(" and self.text[one.at] != "`":
                return self.call(one)
            return Name(one.text, one.at)
        if self.take("("):
            self.deeper()
            inner = self.condition()
            self.need(")")
            self.depth -= 1
            return inner
        raise self.wrong("a column, a number or a bracket")

    def call(self, function: Token) -> Expression:
        if function.text not in FUNCTIONS:
            raise self.wrong(f"one of the functions {', '.join(FUNCTIONS)}", function.at)
        sign = self.now
        self.need("(")
        self.deeper()
        arguments = [self.plain(self.sum(), sign)]
        while self.take(","):
            arguments.append(self.plain(self.sum(), sign))
        self.need(")")
        self.depth -= 1
        several = function.text in ("min", "max")
        if several != (len(arguments) > 1):
            raise self.wrong("two arguments or more" if several else "one argument", function.at)
        return Call(function.text, tuple(arguments))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.wrong(f"at most {DEEPEST} brackets and signs inside each other")
