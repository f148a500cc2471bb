"""Dates, with or without times, in the usual spellings; their numbers are days since 1970-01-01."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from evenly.tables.formats.base import LONGEST, Format

EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST, LAST = datetime.date.min.toordinal(), datetime.date.max.toordinal()
SECONDS = 86_400
CENTURY = 69
"""Years of two digits from this one on are of the twentieth century, as POSIX has it."""
NAMES = str.split("January February March April May June July August September October November December")
_MONTHS = {name.casefold(): place for place, name in enumerate(NAMES, 1)}
_MONTHS |= {name[:3].casefold(): place for place, name in enumerate(NAMES, 1)} | {"sept": 9}
_NAME = r"[A-Za-z]{3,9}"

DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})", "q": r"(?P<q>[1-4])",
    "b": rf"(?P<b>{_NAME})", "B": rf"(?P<b>{_NAME})", "H": r"(?P<H>\d{1,2})", "I": r"(?P<I>\d{1,2})",
    "M": r"(?P<M>\d{2})", "S": r"(?P<S>\d{2})", "f": r"(?P<f>\d{1,9})", "p": r"(?P<p>[AaPp]\.?[Mm]\.?)",
}  # fmt: skip
"""What each directive reads: those of `strftime`, and `%q`, a quarter."""
NEEDS = [
    *(("d", "mb"), ("m", "y"), ("b", "y"), ("q", "y"), ("H", "d"), ("I", "p"), ("p", "I"), ("I", "d")),
    *(("M", "HI"), ("S", "M"), ("f", "S")),
]
"""Directives that mean nothing without one of some others."""
_TOKEN = re.compile(r"%(?P<flag>[-^1-9]?)(?P<code>.)|(?P<literal>[^%]+)", re.S)
_DAYS_AND_MONTHS = [f"%{a}{mark}%{b}{mark}%{year}" for mark in "./-" for year in "Yy" for a, b in ("dm", "md")]
_SLASHES = [one for one in _DAYS_AND_MONTHS if "/" in one]
DATES = [
    *(f"%Y{mark}%m{mark}%d" for mark in "-/."),
    *(one for one in _DAYS_AND_MONTHS if "/" not in one),
    *sorted(_SLASHES, key=lambda one: not one.startswith("%m")),  # of Americans, who use slashes most
    *("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y", "%d/%b/%Y"),
    *("%d. %B %Y", "%d. %b %Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%Y-%m", "%Y/%m", "%m/%Y"),
    *("%Y-Q%q", "%YQ%q", "%Y Q%q", "Q%q %Y", "%Y %b %d", "%Y-%b-%d"),
]
TIMES = ["%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p"]
_SPLIT = re.compile(
    r"(?P<date>.*?)(?:(?P<mark>[T ]|, )(?P<time>\d{1,2}:\d{2}.*?)(?P<zone>Z| ?UTC|[+-]\d{2}:?\d{2})?)?", re.S
)


@dataclass(frozen=True)
class DateFormat(Format):
    """Dates by a pattern of `strftime`, such as `%d.%m.%Y`; `%-d` is a day without a leading zero, `%3f` milliseconds.

    Examples
    --------
    >>> found = DateFormat.recognize(["31.12.2024", "01.02.2025"])
    >>> found.pattern, found.read("02.01.1970"), found.write(59.2)
    ('%d.%m.%Y', 1.0, '01.03.1970')
    >>> DateFormat.recognize(["31.02.2024"]) is None
    True
    """

    reads_dates = True
    text: str = "%Y-%m-%d"
    ambiguous: bool = False
    """Whether days and months could be exchanged in all of the texts that it was recognized from."""

    @property
    def pattern(self) -> str:
        return self.text

    @property
    def note(self) -> str:
        if not self.ambiguous:
            return "dates"
        other = self.text.replace("m", "*").replace("d", "m").replace("*", "d")
        return f"dates: {self.text}, or {other}, which would be read as well; declare the format to choose"

    @classmethod
    def parse(cls, pattern: str) -> DateFormat | None:
        codes = [found["code"] for found in _TOKEN.finditer(pattern) if found["code"]]
        sound = "".join(found[0] for found in _TOKEN.finditer(pattern)) == pattern and set(codes) <= DIRECTIVES.keys()
        has = {code.lower() if code in "YB" else code for code in codes}
        whole = all(code not in has or has & set(others) for code, others in NEEDS)
        if not sound or len(has) < len(codes) or "y" not in has or not whole or ("q" in has and has & {"m", "b"}):
            return None
        wrong = [one for one in _TOKEN.finditer(pattern) if not _is_flagged(one)]
        return None if wrong or not pattern.isprintable() or len(has & {"m", "b"}) > 1 else cls(pattern)

    @cached_property
    def _tokens(self) -> list[re.Match[str]]:
        return [*_TOKEN.finditer(self.text)]

    @cached_property
    def _codes(self) -> set[str]:
        return {found["code"] for found in self._tokens if found["code"]}

    @cached_property
    def _readable(self) -> re.Pattern[str]:
        parts = (re.escape(one["literal"]) if one["literal"] else DIRECTIVES[one["code"]] for one in self._tokens)
        return re.compile("".join(parts), re.A)

    @property
    def decimals(self) -> int | None:
        """The decimals of a second; None without seconds."""
        fraction = [int(one["flag"] or 6) for one in self._tokens if one["code"] == "f"]
        return (fraction or [0])[0] if "S" in self._codes else None

    def read(self, text: str) -> float | None:
        found = self._readable.fullmatch(text.strip()) if len(text) <= LONGEST else None
        if found is None:
            return None
        parts = found.groupdict()
        year = int(parts["Y"]) if parts.get("Y") else int(parts["y"])
        if not parts.get("Y"):
            year += 1900 if year >= CENTURY else 2000
        month = _MONTHS.get(parts["b"].casefold(), 0) if parts.get("b") else int(parts.get("m") or 1)
        if parts.get("q"):
            month = 3 * int(parts["q"]) - 2
        try:
            day = datetime.date(year, month, int(parts.get("d") or 1)).toordinal() - EPOCH
        except ValueError:
            return None
        seconds = _seconds(parts)
        return None if seconds is None else day + seconds / SECONDS

    def write(self, number: float) -> str:
        unit = 10 ** (self.decimals or 0)
        per_day = SECONDS * unit if self.decimals is not None else 1440 if "M" in self._codes else 24
        if not self._codes & {"H", "I"}:
            per_day = 1
        days, ticks = divmod(round(number * per_day), per_day)
        date = datetime.date.fromordinal(min(max(days + EPOCH, FIRST), LAST))
        if "d" not in self._codes:
            date = nearest_start(date, 3 if "q" in self._codes else 1 if self._codes & {"m", "b", "B"} else 12)
        seconds, fraction = divmod(ticks * (SECONDS * unit // per_day), unit)
        hour = seconds // 3600
        found = {
            **{"Y": f"{date.year:04}", "y": f"{date.year % 100:02}", "m": f"{date.month:02}", "d": f"{date.day:02}"},
            **{"b": NAMES[date.month - 1][:3], "B": NAMES[date.month - 1], "q": str((date.month + 2) // 3)},
            **{"H": f"{hour:02}", "I": f"{(hour - 1) % 12 + 1:02}", "M": f"{seconds // 60 % 60:02}"},
            **{"S": f"{seconds % 60:02}", "f": f"{fraction:0{self.decimals or 1}}", "p": "PM" if hour >= 12 else "AM"},
        }
        return "".join(one["literal"] or _flagged(one["flag"], found[one["code"]]) for one in self._tokens)

    @classmethod
    def recognize(cls, texts: Sequence[str]) -> DateFormat | None:
        first = texts[0].strip()
        if len(first) < 6 or not any(map(str.isdigit, first)):
            return None
        fitting: list[DateFormat] = []
        for pattern in _candidates(first):
            form = _compiled(pattern)
            if all(form.read(text) is not None for text in texts):
                fitting.append(form)
        if not fitting:
            return None
        best = fitting[0]
        exchanged = len(fitting) > 1 and any(best.read(text) != fitting[1].read(text) for text in texts)
        return replace(cls(best._in_detail(texts)), ambiguous=exchanged)

    def _in_detail(self, texts: Sequence[str]) -> str:
        """Return the pattern with what the texts have: leading zeros or none, capitals, decimals of seconds."""
        found = [parts for text in texts if (parts := self._readable.fullmatch(text.strip()))]
        text = self.text
        for codes in ("md", "H", "I"):
            own = {code: {parts[code] for parts in found} for code in codes if f"%{code}" in text}
            if any(len(one) == 1 for ones in own.values() for one in ones):
                # One of the two may have no number below 10: it is spelled like the other, unless it has a zero.
                for code, ones in own.items():
                    if any(len(one) == 1 for one in ones) or not any(one.startswith("0") for one in ones):
                        text = text.replace(f"%{code}", f"%-{code}")
        for code in "bB":
            if f"%{code}" in text and all(parts["b"].isupper() for parts in found):
                text = text.replace(f"%{code}", f"%^{code}")
        if "%f" in text and (digits := max(len(parts["f"]) for parts in found)) != 6:
            text = text.replace("%f", f"%{digits}f")
        return text


def nearest_start(date: datetime.date, months: int) -> datetime.date:
    """Return the first day of a period of some months that is nearest to a date.

    Examples
    --------
    >>> nearest_start(datetime.date(2024, 2, 20), 1), nearest_start(datetime.date(2024, 2, 10), 12)
    (datetime.date(2024, 3, 1), datetime.date(2024, 1, 1))
    """
    low = datetime.date(date.year, (date.month - 1) // months * months + 1, 1)
    months_after = low.month - 1 + months
    if low.year + months_after // 12 > datetime.MAXYEAR:
        return low
    high = datetime.date(low.year + months_after // 12, months_after % 12 + 1, 1)
    return low if date - low < high - date else high


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> DateFormat:
    return DateFormat(pattern)


def _candidates(text: str) -> Iterator[str]:
    """List the patterns that one text is spelled in."""
    split = _SPLIT.fullmatch(text)
    if split is None:
        return
    tails = [""]
    if split["time"]:
        zone = split["zone"] or ""
        times = [one for one in TIMES if _matches_time(one, split["time"])]
        tails = [f"{split['mark']}{one}{zone}" for one in times]
    for pattern in DATES:
        form = _compiled(pattern)
        if form.read(split["date"]) is not None and form.text.count("%B") + form.text.count("%b") == _names(form, text):
            yield from (pattern + tail for tail in tails)


def _names(form: DateFormat, text: str) -> int:
    """Return 1 if a text has a name of a month as the pattern has it, whole or abbreviated; 0 without one."""
    words = [word.casefold() for word in re.findall(_NAME, text) if word.casefold() in _MONTHS]
    if not words:
        return 0
    whole = words[0] in {name.casefold() for name in NAMES} and len(words[0]) > 3
    return int("%B" in form.text if whole else "%b" in form.text)


def _matches_time(pattern: str, text: str) -> bool:
    parts = (
        re.escape(one["literal"]) if one["literal"] else DIRECTIVES[one["code"]] for one in _TOKEN.finditer(pattern)
    )
    found = re.fullmatch("".join(parts), text, re.A)
    return found is not None and _seconds(found.groupdict()) is not None


def _seconds(parts: dict[str, str | None]) -> float | None:
    """Return the seconds since midnight; None if there is no such time."""
    hour, minute, second = (int(parts.get(code) or 0) for code in "HMS")
    if parts.get("I"):
        half = int(parts["I"] or 0)
        if not 1 <= half <= 12:
            return None
        hour = half % 12 + 12 * ((parts.get("p") or "a")[0] in "pP")
    if hour > 23 or minute > 59 or second > 59:
        return None
    return 3600 * hour + 60 * minute + second + float(f"0.{parts.get('f') or 0}")


def _is_flagged(token: re.Match[str]) -> bool:
    """Whether the flag of a directive is one that it may have."""
    flag, code = token["flag"], token["code"]
    allowed = {"-": "mdHI", "^": "bB"}.get(flag or "", "f" if flag else DIRECTIVES)
    return token["literal"] is not None or code in allowed


def _flagged(flag: str, text: str) -> str:
    return text.lstrip("0") or "0" if flag == "-" else text.upper() if flag == "^" else text
