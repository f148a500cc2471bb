"""Numbers with thousands separators, decimal commas, and a sign of percent, a currency or a unit."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw

from evenly.tables.formats.base import LONGEST, Format

SPACES = " \u00a0\u202f\u2009"
QUOTES = "'\u2019"
MINUS = "\u2212"
"""The typographic minus; in texts, a hyphen is the usual one."""
SEPARATORS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("'", ","), ("", "."), ("", ","))
"""Thousands and decimal separators, the first that suit all texts: 1,234 is a thousand, 1,23 is not."""
CURRENCIES = frozenset(
    str.split(
        "$ € £ ¥ ₹ ₩ ₽ ₺ ₪ ₫ ฿ ₴ ₦ ₱ ₡ ₲ ₵ ₸ ₼ ₾ ¢ US$ A$ C$ R$ NZ$ HK$ S$ zł Kč kr kr. Ft lei Fr. SFr. руб. р. Rs "
        "Rs. R Rp RM 元 円 원 USD EUR GBP JPY CNY CHF CAD AUD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH INR IDR "
        "MYR THB VND PHP KRW HKD SGD TWD BRL MXN ARS CLP COP PEN ZAR EGP NGN KES MAD ILS SAR AED QAR KWD BTC Euro "
        "euro euros dollars"
    )
)
PERCENTS = frozenset({"%", "\u2030", "\u066a", "percent", "pct", "Prozent"})
UNITS = frozenset(
    str.split(
        "kg g mg µg μg ng t lb lbs oz st km m cm mm µm μm nm mi ft in yd l L ml mL cl dl hl gal s sec ms min h hr "
        "hrs d yr yrs y mo mph kph km/h m/s kn Hz kHz MHz GHz W kW MW GW kWh MWh V mV A mA J kJ MJ cal kcal Pa hPa "
        "kPa MPa bar psi °C °F ° K m² m2 km² km2 m³ m3 cm² cm3 ha ac ft² sqft kB KB MB GB TB bit B px pt x × k M "
        "mol mmol mmol/l mg/dl mg/dL g/dl g/dL g/l bpm mmHg IU U dB mAh cc hp PS kVA"
    )
)
"""Units that may follow a number without a space."""
_WORD_UNIT = re.compile(r"[^\W\d_][^\W\d_./²³°µ-]*(?:[ /.][^\W\d_²³]+[²³]?)?[²³.]?")
MOST_CODE_DIGITS = 7
"""Grouped whole numbers that all have as many digits, and at least so many, are telephone or registration numbers."""

_PARTS = re.compile(
    r"\s*(?P<open>\(?)\s*(?P<sign>[+\-\u2212]?)(?P<prefix>[^\d+\-\u2212()]*)(?P<inner>[+\-\u2212]?)"
    r"(?P<body>[0-9](?:[0-9.,'\u2019 \u00a0\u202f\u2009]*[0-9])?)"
    r"(?P<suffix>[^\d()+\-\u2212]*?[²³]?)(?P<last>-?)(?P<close>\)?)\s*"
)
_PATTERN = re.compile(
    r"(?P<plus>\+?)(?P<prefix>[^#0-9;|+()\u2212-]*)(?:#(?P<group>[^#0])##0|0)(?:(?P<decimal>[.,])(?P<fixed>0*)(?P<free>#*))?"
    r"(?P<suffix>[^#0-9;|+()\u2212-]*[²³]?)(?:\|1(?P<one>[^#0-9;|+()\u2212-]*[²³]?))?(?:;(?P<negative>.+))?"
)
_NEGATIVES = ("-{0}", "{1}-{2}", "({0})", "{0}-", MINUS + "{0}", "{1}" + MINUS + "{2}")
"""How a negative number is spelled: {0} is the positive one, {1} its prefix, {2} the rest."""


@dataclass(frozen=True)
class NumberFormat(Format):
    """Numbers between a prefix and a suffix, such as `$#,##0.00` or `0 %`.

    The pattern is that of spreadsheets: `#,##0` groups thousands, `.00` has two decimals, `.0#` one or two; the
    spelling of negative numbers follows a semicolon, if it is not a hyphen in front: `$#,##0;($#,##0)`. The suffix of
    the number 1 may differ: `0 years|1 year`.

    Examples
    --------
    >>> euros = NumberFormat.recognize(["1.200,50 EUR", "15,00 EUR", "-3,20 EUR"])
    >>> euros.pattern, euros.read("1.200,50 EUR"), euros.write(-1234567.891)
    ('#.##0,00 EUR', 1200.5, '-1.234.567,89 EUR')
    >>> NumberFormat.recognize(["02139", "94103"]) is None  # a postal code
    True
    """

    prefix: str = ""
    suffix: str = ""
    group: str = ""
    decimal: str = "."
    fewest: int = 0
    """The fewest decimals that a number has."""
    most: int = 0
    """The most decimals that a number has."""
    negative: str = _NEGATIVES[0]
    plus: bool = False
    """Whether positive numbers have a plus."""
    one: str | None = None
    """The suffix of the number 1, if it is another one."""

    # --- pattern ----------------------------------------------------------------------------------------------

    @property
    def pattern(self) -> str:
        digits = f"#{self.group}##0" if self.group else "0"
        if self.most:
            digits += self.decimal + "0" * self.fewest + "#" * (self.most - self.fewest)
        shown = f"{self.prefix}{digits}{self.suffix}"
        one = "" if self.one is None else f"|1{self.one}"
        negative = "" if self.negative == _NEGATIVES[0] else ";" + self._signed(self.prefix, digits + self.suffix)
        return "+" * self.plus + shown + one + negative

    @classmethod
    def parse(cls, pattern: str) -> NumberFormat | None:
        found = _PATTERN.fullmatch(pattern)
        if found is None or (found["decimal"] and not (found["fixed"] or found["free"])):
            return None
        group, decimal = found["group"] or "", found["decimal"] or ("," if found["group"] == "." else ".")
        fixed, free = found["fixed"] or "", found["free"] or ""
        made = cls(
            *(found["prefix"], found["suffix"], group, decimal, len(fixed), len(fixed) + len(free)),
            plus=bool(found["plus"]),
            one=found["one"],
        )
        if group == decimal or (group and group not in f",.{SPACES}{QUOTES}") or not _is_printable(pattern):
            return None
        styles = (cls(**{**vars_of(made), "negative": style}) for style in _NEGATIVES)
        return next((one for one in styles if one.pattern == pattern), None)

    @property
    def note(self) -> str:
        around = {self.prefix.strip(), self.suffix.strip()}
        if around & PERCENTS:
            return "percentages"
        if around & CURRENCIES:
            return "amounts of money"
        if self.suffix:
            return f"numbers of {self.suffix.strip()}"
        return f"numbers spelled as {self.pattern}"

    @property
    def is_quantity(self) -> bool:
        return bool(self.prefix or self.suffix)

    # --- texts and numbers ------------------------------------------------------------------------------------

    @cached_property
    def _readable(self) -> re.Pattern[str]:
        return re.compile(self._expression_of(possessive=True))

    def _expression_of(self, *, possessive: bool = False) -> str:
        """Return the regular expression of texts in this format; without lookaround, for engines."""
        group = _either(self.group)
        grouped = f"|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+" if group else ""
        body = f"(?:0|[1-9][0-9]*{grouped})(?:{re.escape(self.decimal)}[0-9]+)?"
        prefix = _spaced(self.prefix)
        suffixes = [self.suffix] if self.one is None else [self.suffix, self.one]
        suffix = "(?:" + "|".join(map(_spaced, suffixes)) + ")"
        sign = f"[+{MINUS}-]?"
        plain = f"{sign}{prefix}{sign}{body}{suffix}-?"
        return rf"^\s*(?:{plain}|\({prefix}{body}{suffix}\))\s*$" if possessive else rf"^\s*(?:{plain})\s*$"

    def read(self, text: str) -> float | None:
        if len(text) > LONGEST or not self._readable.match(text):
            return None
        body = text
        for one in (self.prefix.strip(), *sorted((self.suffix.strip(), (self.one or "").strip()), key=len)[::-1]):
            body = body.replace(one, "", 1) if one else body
        digits = re.sub(rf"[^0-9{re.escape(self.decimal)}]", "", body).replace(self.decimal, ".")
        number = float(digits)
        signs = sum(text.count(mark) for mark in ("-", MINUS, "("))
        return None if math.isinf(number) or signs > 1 else -number if signs else number

    def write(self, number: float) -> str:
        text = f"{abs(number):.{self.most}f}"
        whole, _, fraction = text.partition(".")
        fraction = fraction[: self.fewest] + fraction[self.fewest :].rstrip("0")
        if self.group:
            first = len(whole) % 3
            parts = [whole[:first]] * bool(first) + [whole[at : at + 3] for at in range(first, len(whole), 3)]
            whole = self.group.join(parts)
        body = whole + self.decimal * bool(fraction) + fraction
        suffix = self.suffix if self.one is None or float(text) != 1.0 else self.one
        if number < 0.0 and float(text) != 0.0:
            return self._signed(self.prefix, body + suffix)
        return "+" * (self.plus and float(text) != 0.0) + self.prefix + body + suffix

    def _signed(self, prefix: str, rest: str) -> str:
        return self.negative.format(prefix + rest, prefix, rest)

    def expression(self, texts: Any) -> Any:
        if self.negative == _NEGATIVES[2]:  # parentheses would need another pass
            return None
        bare = texts
        for one in sorted({self.prefix, self.suffix, self.one or ""} - {""}, key=len)[::-1]:
            bare = bare.str.replace_all(one.strip(), "", literal=True)
        bare = bare.str.replace_all(MINUS, "-", literal=True)
        for one in _same_separators(self.group):
            bare = bare.str.replace_all(one, "", literal=True)
        bare = bare.str.replace_all(" ", "", literal=True).str.replace_all("\u00a0", "", literal=True)
        if self.decimal == ",":
            bare = bare.str.replace_all(",", ".", literal=True)
        # Only signs in front are read: engines cast no others.
        sound = texts.str.contains(self._expression_of()) & bare.str.contains(r"^[+-]?[0-9]+(?:\.[0-9]+)?$")
        return nw.when(sound).then(bare).otherwise(nw.lit("NaN"))

    # --- recognition ------------------------------------------------------------------------------------------

    @classmethod
    def recognize(cls, texts: Sequence[str]) -> NumberFormat | None:
        found = []
        for text in texts:
            parts = _PARTS.fullmatch(text)
            if parts is None or bool(parts["open"]) != bool(parts["close"]) or (parts["sign"] and parts["inner"]):
                return None
            found.append(parts)
        prefix = _common([parts["prefix"] for parts in found], CURRENCIES)
        suffix, one = _suffixes(found)
        if prefix is None or suffix is None or (prefix.strip() and suffix.strip()):
            return None
        bodies = [parts["body"] for parts in found]
        money = bool({prefix.strip(), suffix.strip()} & CURRENCIES)
        separators = _separators(bodies, money=money)
        if separators is None:
            return None
        group, decimal = separators
        if not prefix and not suffix and (_are_codes(bodies) or not (group or decimal != "." or _has_signs(found))):
            return None
        fractions = [len(body.rpartition(decimal)[2]) if decimal in body else 0 for body in bodies]
        if not max(fractions):
            decimal = "," if group == "." else "."
        style = Counter(map(_style, found))
        signed = [key for key, _ in style.most_common() if key is not None]
        positive = [
            parts["sign"] == "+" for parts in found if _style(parts) is None and re.search("[1-9]", parts["body"])
        ]
        made = cls(
            *(prefix, suffix, group, decimal, min(fractions), max(fractions)),
            negative=signed[0] if signed else _NEGATIVES[0],
            plus=bool(positive) and all(positive),
            one=one,
        )
        readable = cls.parse(made.pattern) == made and all(made.read(text) is not None for text in texts)
        return made if readable else None


def _is_printable(pattern: str) -> bool:
    return all(mark.isprintable() or mark in SPACES for mark in pattern)


def vars_of(made: NumberFormat) -> dict[str, Any]:
    """Return the fields of a format."""
    return {name: getattr(made, name) for name in NumberFormat.__dataclass_fields__}


def _style(parts: re.Match[str]) -> str | None:
    """Return how a negative number is spelled; None for a number without a minus."""
    if parts["open"]:
        return _NEGATIVES[2]
    if parts["last"]:
        return _NEGATIVES[3]
    at_front, inside = parts["sign"] or "+", parts["inner"] or "+"
    if at_front != "+":
        return _NEGATIVES[4 if at_front == MINUS else 0]
    if inside == "+":
        return None
    if parts["prefix"].strip():
        return _NEGATIVES[5 if inside == MINUS else 1]
    return _NEGATIVES[4 if inside == MINUS else 0]


def _has_signs(found: Sequence[re.Match[str]]) -> bool:
    """Whether some numbers are negative in a way that plain numbers are not."""
    return any(_style(parts) not in (None, _NEGATIVES[0]) for parts in found)


def _common(affixes: Sequence[str], known: frozenset[str]) -> str | None:
    """Return the affix that all texts share, up to spaces, in its most frequent spelling; None if they share none."""
    if len({affix.strip() for affix in affixes}) > 1 or affixes[0].strip() not in {"", *known}:
        return None
    return Counter(affixes).most_common(1)[0][0] if affixes[0].strip() else ""


def _suffixes(found: Sequence[re.Match[str]]) -> tuple[str | None, str | None]:
    """Return the suffix of all texts, and that of the number 1 if it is another one: `years`, `year`."""
    by_text: dict[str, list[re.Match[str]]] = {}
    for parts in found:
        by_text.setdefault(parts["suffix"].strip(), []).append(parts)
    single = None
    if len(by_text) == 2:
        ones = [text for text, own in by_text.items() if text and {parts["body"] for parts in own} == {"1"}]
        if len(ones) != 1:
            return None, None
        single = by_text.pop(ones[0])[0]["suffix"]
    if len(by_text) != 1:
        return None, None
    ((text, own),) = by_text.items()
    most = Counter(parts["suffix"] for parts in own).most_common(1)[0][0] if text else ""
    sound = (
        not text or text in CURRENCIES | PERCENTS | UNITS or (most[0] in SPACES and len(text) <= 15 and _is_unit(text))
    )
    return (most, single) if sound and (single is None or text) else (None, None)


def _is_unit(text: str) -> bool:
    return _WORD_UNIT.fullmatch(text) is not None


def _separators(bodies: Sequence[str], *, money: bool) -> tuple[str, str] | None:
    """Return the thousands and the decimal separator of numbers; the former is empty if none is used.

    Money has no three decimals: `€ 1.200` is more than a thousand.
    """
    marks = {mark for body in bodies for mark in body if not mark.isdigit()}
    for group, decimal in SEPARATORS:
        of_group = set(_same_separators(group))
        if marks - of_group - {decimal}:
            continue
        pattern = re.compile(
            f"(?:0|[1-9][0-9]*|[1-9][0-9]{{0,2}}(?:{_either(group) or '(?!)'}[0-9]{{3}})+)"
            f"(?:{re.escape(decimal)}[0-9]+)?"
        )
        if all(pattern.fullmatch(body) for body in bodies):
            fractions = {len(body.rpartition(decimal)[2]) for body in bodies if decimal in body}
            if money and fractions == {3}:
                continue
            used = Counter(mark for body in bodies for mark in body if mark in of_group).most_common(1)
            return (used[0][0] if used else ""), decimal
    return None


def _are_codes(bodies: Sequence[str]) -> bool:
    """Whether grouped numbers are telephone or registration numbers: long, and all of the same length."""
    lengths = {sum(mark.isdigit() for mark in body) for body in bodies}
    return len(lengths) == 1 and min(lengths) >= MOST_CODE_DIGITS and len(bodies) > 1


def _same_separators(group: str) -> str:
    """Return the characters that are read as a thousands separator."""
    return next((many for many in (SPACES, QUOTES) if group and group in many), group)


def _either(group: str) -> str:
    return f"[{re.escape(_same_separators(group))}]" if group else ""


def _spaced(affix: str) -> str:
    """Return the expression of an affix with or without spaces around it."""
    return rf"[{SPACES}]*{re.escape(affix.strip())}[{SPACES}]*" if affix.strip() else ""
