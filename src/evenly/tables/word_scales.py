"""Words in an order that everybody knows: no and yes, low to high, months, bands of age; each class at its place.

A scale is a line of `SCALES`: its levels from the lowest to the highest, in lower case, with other words for a level
after a bar, and goes on in lines that begin with spaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

ScaleKind = Literal["binary", "ordinal", "categorical"]
LONGEST = 80
"""Characters of a text that is looked up, at most."""
MOST_LEVELS = 200
"""Classes, at most, that are looked up."""


class Scale(NamedTuple):
    """Words and their places on a scale."""

    note: str
    kind: ScaleKind
    places: dict[str, int]


class Ordered(NamedTuple):
    """The classes of a column in their order."""

    kind: ScaleKind
    note: str
    places: dict[str, float]
    """The place of each text; texts at the same place are one class."""


YES_NO = """
no|n < yes|y
false|f < true|t
off < on
nein|n < ja|j
non|n < oui|o
no|n < sí|si|s
no|n < sì|si|s
não|nao|n < sim|s
nee|n < ja|j
nei < ja
nej|n < ja|j
ei|e < kyllä|k
nie|n < tak|t
ne < ano
ne < da
nu < da
nem|n < igen|i
hayır|hayir|h < evet|e
нет|н < да|д
ні < так
не < да
όχι|οχι < ναι
لا < نعم
לא < כן
नहीं < हाँ|हां
いいえ < はい
否 < 是
아니요|아니오 < 예|네
không < có
tidak < ya
ไม่ใช่ < ใช่
falsch < wahr
faux < vrai
falso < verdadero
falso < verdadeiro
falso < vero
absent < present
negative|neg|neg. < positive|pos|pos.
fail|failed < pass|passed
inactive < active
disabled < enabled
"""
ORDERED = """
very low|lowest < low|lo < medium low|low medium < medium|med|mid|moderate|average|normal < medium high|high
    medium < high|hi < very high|highest
sehr niedrig|sehr gering < niedrig|gering < mittel < hoch < sehr hoch
très faible < faible|bas < moyen|moyenne < élevé|élevée|haut|fort < très élevé
muy bajo < bajo|baja < medio|media < alto|alta < muy alto
muito baixo < baixo|baixa < médio|média < alto|alta < muito alto
strongly disagree|completely disagree|totally disagree < disagree < somewhat disagree|slightly disagree <
    neutral|neither agree nor disagree|neither|undecided < somewhat agree|slightly agree < agree < strongly
    agree|completely agree|totally agree
stimme überhaupt nicht zu|trifft überhaupt nicht zu|trifft gar nicht zu < stimme nicht zu|trifft nicht zu <
    stimme eher nicht zu|trifft eher nicht zu < neutral|teils teils|weder noch < stimme eher zu|trifft eher zu <
    stimme zu|trifft zu < stimme voll zu|stimme voll und ganz zu|trifft voll zu|trifft voll und ganz zu
pas du tout d'accord < pas d'accord|plutôt pas d'accord < neutre|ni d'accord ni pas d'accord < d'accord|plutôt
    d'accord < tout à fait d'accord
muy en desacuerdo|totalmente en desacuerdo < en desacuerdo < neutral|ni de acuerdo ni en desacuerdo < de acuerdo
    < muy de acuerdo|totalmente de acuerdo
very dissatisfied|completely dissatisfied < dissatisfied < somewhat dissatisfied < neutral|neither satisfied nor
    dissatisfied < somewhat satisfied < satisfied < very satisfied|completely satisfied
very unlikely|extremely unlikely < unlikely < somewhat unlikely < neutral < somewhat likely < likely < very
    likely|extremely likely
strongly oppose < oppose < neutral < favor|support < strongly favor|strongly support
not at all important|unimportant < slightly important < moderately important < important < very important <
    extremely important
not at all < a little|slightly|a little bit < somewhat|moderately < quite a bit|very < extremely|very much
never < almost never|hardly ever|very rarely < rarely|seldom < occasionally < sometimes <
    frequently|often|usually|most of the time < very often|almost always < always
nie|niemals < sehr selten < selten < gelegentlich < manchmal < oft|häufig < sehr oft|meistens < immer
jamais < rarement < parfois|quelquefois < souvent < toujours
nunca < raramente|rara vez < a veces|algunas veces < a menudo|frecuentemente < siempre
never < yearly|annually < quarterly < monthly < weekly < daily < hourly
very poor|terrible|awful < poor|bad < fair|below average|acceptable|needs improvement < average|ok|okay <
    good|above average|satisfactory < very good|great < excellent|outstanding|exceptional
very bad < bad < ok|okay < good < very good
poor < fair < good < very good < premium < ideal
ungenügend < mangelhaft < ausreichend < befriedigend < gut < sehr gut
mauvais < passable < moyen < bon < très bon < excellent
xxxs|3xs < xxs|2xs < xs|extra small|x small < s|small < m|medium < l|large < xl|extra large|x large < xxl|2xl <
    xxxl|3xl < xxxxl|4xl < 5xl
tiny < small < medium|mid size|midsize < large|big < huge|very large|extra large
klein < mittel|mittelgroß < groß|gross < sehr groß
petit < moyen < grand
none|absent|no < minimal|trace|very mild < mild|slight|low < moderate|medium < severe|high|marked < very
    severe|extreme|critical|profound
keine|kein < leicht|mild < mittel|mäßig|mittelschwer < schwer < sehr schwer
low risk < medium risk|moderate risk|intermediate risk < high risk
easy < medium|intermediate < hard|difficult < very hard|expert
beginner|novice < elementary < intermediate < advanced < expert|proficient
trainee|intern|entry|entry level < junior < mid|mid level|intermediate < senior < lead|principal|staff <
    executive|director
bronze < silver < gold < platinum < diamond
cold < cool < mild < warm < hot
first|1st < second|2nd < third|3rd < fourth|4th < fifth|5th < sixth|6th < seventh|7th < eighth|8th < ninth|9th <
    tenth|10th < 11th < 12th
first class|1st class < second class|2nd class < third class|3rd class
i < ii < iii < iv < v < vi < vii < viii < ix < x
grade i < grade ii < grade iii < grade iv
stage i < stage ii < stage iii < stage iv
ia < ib < iia < iib < iiia < iiib < iiic < iv
slow < moderate|medium < fast
light < moderate|medium < heavy < very heavy
weak < moderate|medium < strong < very strong
thin < average|medium < thick
young < middle aged|middle age|adult < old|elderly|senior
infant|baby < toddler < child < teen|teenager|adolescent < young adult < adult < middle aged < senior|elderly
underweight < normal|normal weight|healthy < overweight < obese
low income < lower middle income < middle income < upper middle income < high income
lower class < working class < middle class < upper class
no education|none|no schooling|no formal education < preschool|kindergarten < primary|primary
    school|elementary|elementary school < middle school|lower secondary|some high school|lower secondary school
    < secondary|secondary school|high school|high school graduate|upper secondary|hs grad < some college <
    associate|associate degree|associate's degree|associates < bachelor|bachelors|bachelor's|bachelor's
    degree|college|college graduate|university|tertiary|undergraduate|graduate <
    master|masters|master's|master's degree|postgraduate < doctorate|phd|ph.d.|ph.d|doctoral|doctor
near < middle|medium < far
past < present < future
before < during < after
morning < noon|midday < afternoon < evening < night
spring < summer < autumn|fall < winter
"""
FREQUENT_GRADES = ("f", "e", "d-", "d", "d+", "c-", "c", "c+", "b-", "b", "b+", "a-", "a", "a+")
"""Grades of schools, from the worst."""
MONTHS = """
january|jan < february|feb < march|mar < april|apr < may < june|jun < july|jul < august|aug < september|sep|sept
    < october|oct < november|nov < december|dec
januar|jan|jänner < februar|feb < märz|mär|mrz < april|apr < mai < juni|jun < juli|jul < august|aug <
    september|sep|sept < oktober|okt < november|nov < dezember|dez
janvier|janv < février|févr|fév < mars < avril|avr < mai < juin < juillet|juil < août < septembre|sept <
    octobre|oct < novembre|nov < décembre|déc
enero|ene < febrero|feb < marzo|mar < abril|abr < mayo|may < junio|jun < julio|jul < agosto|ago <
    septiembre|sep|setiembre < octubre|oct < noviembre|nov < diciembre|dic
janeiro|jan < fevereiro|fev < março|mar < abril|abr < maio|mai < junho|jun < julho|jul < agosto|ago <
    setembro|set < outubro|out < novembro|nov < dezembro|dez
gennaio|gen < febbraio|feb < marzo|mar < aprile|apr < maggio|mag < giugno|giu < luglio|lug < agosto|ago <
    settembre|set < ottobre|ott < novembre|nov < dicembre|dic
januari|jan < februari|feb < maart|mrt < april|apr < mei < juni|jun < juli|jul < augustus|aug < september|sep <
    oktober|okt < november|nov < december|dec
styczeń < luty < marzec < kwiecień < maj < czerwiec < lipiec < sierpień < wrzesień < październik < listopad <
    grudzień
январь|янв < февраль|фев < март|мар < апрель|апр < май < июнь|июн < июль|июл < август|авг < сентябрь|сен <
    октябрь|окт < ноябрь|ноя < декабрь|дек
"""
WEEKDAYS = """
monday|mon|mo < tuesday|tue|tues|tu < wednesday|wed|we < thursday|thu|thur|thurs|th < friday|fri|fr <
    saturday|sat|sa < sunday|sun|su
montag|mo < dienstag|di < mittwoch|mi < donnerstag|do < freitag|fr < samstag|sonnabend|sa < sonntag|so
lundi|lun < mardi|mar < mercredi|mer < jeudi|jeu < vendredi|ven < samedi|sam < dimanche|dim
lunes|lun < martes|mar < miércoles|mié|mie < jueves|jue < viernes|vie < sábado|sáb|sab < domingo|dom
segunda|segunda feira|seg < terça|terça feira|ter < quarta|quarta feira|qua < quinta|quinta feira|qui <
    sexta|sexta feira|sex < sábado|sáb < domingo|dom
lunedì|lun < martedì|mar < mercoledì|mer < giovedì|gio < venerdì|ven < sabato|sab < domenica|dom
maandag|ma < dinsdag|di < woensdag|wo < donderdag|do < vrijdag|vr < zaterdag|za < zondag|zo
poniedziałek < wtorek < środa < czwartek < piątek < sobota < niedziela
понедельник|пн < вторник|вт < среда|ср < четверг|чт < пятница|пт < суббота|сб < воскресенье|вс
"""


@cache
def _scales() -> list[Scale]:
    """List all scales, those of two words first."""
    grades = {grade: place for place, grade in enumerate(FREQUENT_GRADES)}
    return [
        *(Scale("no or yes", "binary", one) for one in read_scales(YES_NO)),
        *(Scale("months", "categorical", one) for one in read_scales(MONTHS)),
        *(Scale("days of the week", "categorical", one) for one in read_scales(WEEKDAYS)),
        *(Scale("ordered words", "ordinal", one) for one in read_scales(ORDERED)),
        Scale("grades", "ordinal", grades),
    ]


def read_scales(lines: str) -> list[dict[str, int]]:
    """Return the place of each word of each scale; a line that begins with spaces goes on with the one before."""
    return [
        {word.casefold(): place for place, level in enumerate(line.split(" < ")) for word in level.split("|")}
        for line in re.sub(r"\n +", " ", lines).strip().splitlines()
    ]


def find_order(texts: Sequence[object]) -> Ordered | None:
    """Return the order of a column's distinct texts, if they are all words of one scale, or bands of numbers.

    Examples
    --------
    >>> found = find_order(["High", "low", "LOW", "medium"])
    >>> found.kind, found.note, sorted(found.places, key=found.places.get)
    ('ordinal', 'ordered words', ['low', 'LOW', 'medium', 'High'])
    >>> find_order(["18-24", "65+", "<18", "25-64"]).places
    {'18-24': 18.0, '65+': 65.0, '<18': -inf, '25-64': 25.0}
    >>> find_order(["red", "blue"]) is None
    True
    """
    if not 2 <= len(texts) <= MOST_LEVELS or not all(isinstance(text, str) for text in texts):
        return None
    if any(len(str(text)) > LONGEST for text in texts):
        return None
    words = {str(text): _plain(str(text)) for text in texts}
    for scale in _scales():
        if all(word in scale.places for word in words.values()):
            places = {text: float(scale.places[word]) for text, word in words.items()}
            if len(found := set(places.values())) > 1 and _is_evident(scale, set(words.values())):
                return Ordered("binary" if len(found) == 2 else scale.kind, scale.note, places)
    return _find_bands([*words])


def _plain(text: str) -> str:
    """Return a text in lower case, without marks around it, and with single spaces between words."""
    lower = " ".join(re.sub(r"[\s_/]+|(?<=\w\w)-(?=\w)", " ", text.casefold()).split())
    return lower.rstrip(".!") if len(lower) > 2 else lower


def _is_evident(scale: Scale, words: set[str]) -> bool:
    """Whether words are those of a scale by more than chance: single letters may be anything."""
    if scale.note == "grades":  # A, B, C are more often names than grades
        return bool(words & {"f", "a+", "b+", "c+", "a-", "b-", "c-"}) and len(words) > 2
    if scale.kind == "ordinal" and all(len(word) == 1 for word in words):
        return words >= {"s", "m", "l"} or words >= {"i", "v"}
    if scale.note == "no or yes" and all(len(word) == 1 for word in words):
        return words in ({"n", "y"}, {"f", "t"}, {"j", "n"}, {"否", "是"}, {"예", "네"}, {"н", "д"})
    if scale.note == "days of the week" and len(words) < 3:
        return all(len(word) > 2 for word in words)
    return True


# --- bands of numbers -------------------------------------------------------------------------------------------------

_NUMBER = r"[$€£]?\s*(\d[\d.,' ]*)\s*([kKmM])?\s*[$€£%]?"
_UNIT = r"(?:\s*[^\W\d_]{1,12}\.?)?"
_CLOSED = re.compile(
    rf"\s*[\[(]?\s*{_NUMBER}{_UNIT}\s*(?:-|\u2013|\u2014|to|bis|\.\.|,|;)\s*{_NUMBER}{_UNIT}\s*[\])]?\s*"
)
_BELOW = re.compile(rf"\s*(?:<=?|\u2264|(?:less than|under|below|up to|at most|unter|bis))\s*{_NUMBER}{_UNIT}\s*", re.I)
_ABOVE = re.compile(rf"\s*(?:>=?|\u2265|(?:more than|over|above|at least|\u00fcber|ab))\s*{_NUMBER}{_UNIT}\s*", re.I)
_FROM = re.compile(
    rf"\s*{_NUMBER}{_UNIT}\s*(?:\+|(?:and|or) (?:over|more|older|above|up)|(?:und|oder) (?:mehr|\u00e4lter))\s*", re.I
)
_UNTIL = re.compile(rf"\s*{_NUMBER}{_UNIT}\s*(?:(?:and|or) (?:less|under|younger|below|fewer))\s*", re.I)
_ONE = re.compile(rf"\s*{_NUMBER}{_UNIT}\s*")


class _Band(NamedTuple):
    low: float
    high: float
    closed: bool = False


def _find_bands(texts: Sequence[str]) -> Ordered | None:
    """Return the order of ranges of numbers by their lower ends, if they do not overlap."""
    if not any(map(str.isdigit, texts[0])):
        return None
    bands = {text: _read_band(text) for text in texts}
    known = [band for band in bands.values() if band is not None]
    if len(known) < len(bands) or not any(band.closed for band in known):
        return None
    ordered = sorted(set(known))
    if any(one.high > other.low for one, other in pairwise(ordered)):
        return None
    # Of equal lower ends, `0` and `0-5`, the narrower comes first.
    ranks = {band: float(rank) for rank, band in enumerate(ordered)}
    lows = {text: band.low for text, band in bands.items() if band is not None}
    unique = len(set(lows.values())) == len(ordered)
    places = {text: band.low if unique else ranks[band] for text, band in bands.items() if band is not None}
    return Ordered("binary" if len(ordered) == 2 else "ordinal", "bands of numbers", places)


def _read_band(given: str) -> _Band | None:
    text = given.casefold()
    if found := _CLOSED.fullmatch(text):
        low, high = _amount(found[1], found[2] or (found[4] if found[4] else None)), _amount(found[3], found[4])
        plain = _amount(found[1], found[2])
        low = low if low < high else plain
        return _Band(low, high, closed=True) if low < high else None
    for pattern, has_low, has_high in (
        (_BELOW, False, True),
        (_UNTIL, False, True),
        (_ABOVE, True, False),
        (_FROM, True, False),
        (_ONE, True, True),
    ):
        if found := pattern.fullmatch(text):
            end = _amount(found[1], found[2])
            return _Band(end if has_low else float("-inf"), end if has_high else float("inf"))
    return None


def _amount(digits: str, factor: str | None) -> float:
    """Return the number of digits with separators: 10,000 is a thousand times 10, and 1.5 is 3/2."""
    plain = digits.strip()
    plain = re.sub(r"[ ']|[.,](?=\d{3}(?:\D|$))", "", plain).replace(",", ".").rstrip(".")
    try:
        return float(plain) * {"k": 1e3, "m": 1e6}.get((factor or "").lower(), 1.0)
    except ValueError:
        return float("nan")
