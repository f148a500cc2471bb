"""What the name of a column says about its numbers: an identifier, codes, a quantity, a part of a date, or nothing."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Literal

Meaning = Literal["key", "unit", "running", "code", "place", "classes", "levels", "quantity", "time"]
"""What a name says.

`key`: each number stands for one thing (`patient_id`). `unit`: a thing that may have several rows (`firm`). `running`:
a running number, or how many there are (`order_no`). `code`: digits without a size (`zip`). `place`: classes that may
be very many (`county`). `classes`: a choice (`race`). `levels`: a choice in order (`grade`). `quantity`: how much, or
how many (`age`). `time`: when (`week`).
"""
Calendar = Literal["year", "month", "quarter", "weekday", "season", "hour", "minute", "day"]

_WORDS: dict[str, str] = {
    "key": """id ids uid pid uuid guid identifier identification ssn rowid rowname rownames unnamed caseid identifiant
        identificador identificatore identificativo kennung schluessel""",
    "unit": """person subject subj patient pat individual indiv household hh firm company customer client user member
        participant respondent student pupil employee employer worker animal mouse rat chick cow litter family twin
        pair account contract school classroom teacher physician hospital clinic kunde patientin proband firma haushalt
        vertrag schule personne entreprise ecole cliente paciente persona empresa escuela azienda scuola dog bird fish
        monkey pig sheep horse plant tree seed plate wafer part coil tube sample vial pot farm""",
    "running": """nr no num number nummer numero numer nro key index idx serial case obs observation row seq sequence
        lfd""",
    "code": """code codes cod codigo codice kode kod zip zipcode zipcodes postal postcode postalcode plz postleitzahl
        cep phone telephone tel telefon telefono telefone mobile fax fips cusip sic naics isic isco isbn ean upc gtin
        sku iban bic icd atc""",
    "place": """region reg state county province prov district city town village commune municipality country nation
        continent territory ward precinct tract parish canton kanton bundesland stadt kreis gemeinde landkreis
        departement ville pays ciudad pais provincia comuna comune municipio regione regiao cidade bairro regio
        provincie estado station site location store shop branch airport lab laboratory machine operator rater judge
        interviewer plot lot tank cage center centre centro zentrum inst institution borough neighborhood
        neighbourhood""",
    "classes": """type typ tipo kind sorte soort group grp gruppe groupe grupo gruppo groep class classe clase klasse
        category cat categorie categoria kategorie cluster segment race ethnicity eth ethnic origin nationality
        religion relig language lang gender sex sexe sexo geschlecht geslacht sesso genero marital marriage married
        marstat civil familienstand relationship relation status stat occupation occup occ job profession beruf metier
        profesion ocupacion industry sector department dept division major species breed variety strain genotype
        treatment treat trt arm condition cond mode method brand marke model make colour color farbe couleur cor colore
        kleur shape material party batch block blk blood channel device browser platform role label target diagnosis
        diag dx cause reason purpose zone workclass employment housing vehicle fuel transmission item choice chosen
        letter flag indicator team league shift topic cultivar specimen tissue plan scheme program programme experiment
        expt div ind product produkt producto diet feed drug gene allele outcome result answer vote denomination denom
        residence dwelling zona ethn mstat""",
    "levels": """level levels lvl grade stage tier bracket band stufe niveau nivel livello decile quartile quintile
        degree severity""",
    "time": """time t date wave round step tick period epoch trend session week semaine woche semana settimana sweep
        cycle lap elapsed trial order""",
    "quantity": """age ages alter edad eta idade size sizes count counts total sum mean average avg median min max std
        sd var rate ratio share percent pct perc proportion prop fraction freq frequency prob probability amount price
        cost costs fee value worth wage wages salary income earnings revenue sales profit budget spending expenditure
        expense tax debt balance bal payment score scores points rating ratings rank votes weight wt height ht length
        len width depth thickness diameter radius distance dist altitude elevation area volume capacity density mass
        speed velocity temperature temp pressure power energy dose concentration hours days weeks months years yrs
        minutes mins seconds secs duration experience exper schooling kids children babies siblings persons people
        members adults households rooms bedrooms bathrooms visits calls trips deaths births cases events accidents
        crimes goals wins losses runs hits cylinders doors gears seats population pop gdp km miles mpg kg lbs mg cm mm
        usd eur quantity qty units latitude longitude lat lon lng pulse bp anzahl menge preis betrag groesse gewicht
        cantidad prix precio importo peso tenure""",
    "year": "year yr jahr annee ano anio anno jaar rok aar yyyy",
    "month": "month mon mth monat mois mes mese maand miesiac mnth mo",
    "quarter": "quarter qtr quartal trimestre kwartaal",
    "weekday": "weekday dow wday dayofweek wochentag joursemaine diasemana weekdag",
    "season": "season saison jahreszeit estacion stagione seizoen",
    "hour": "hour hr stunde heure hora ora uur",
    "minute": "minute second minuto seconde",
    "day": "day tag jour dia giorno dag mday yday dayofmonth dayofyear doy",
}
_MEANINGS = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
LEAST_CUT = 5
"""Letters that are left of a word that is cut off, at least: `relig`, `treatm`."""
_CALENDAR = ("year", "month", "quarter", "weekday", "season", "hour", "minute", "day")

_JOINED_KEY = re.compile(
    r"^(hh|hhold|pers|person|subj|subject|pat|patient|[prsu]|resp|case|cust|customer|user|stud|student|emp|firm|ind|indiv"
    r"|hosp|school|sch|fam|family|row|rec|obs|unit|dist|tract|store|prod|item|order)(id|nr)$"
)
"""Words that are a unit and `id` in one: `hhid`, `subjid`; not `paid` or `solid`."""
_JOINED = re.compile(r"(code|cod|fips?|type|group|grp|class|status|region|category|cluster)s?$")
"""What a word ends with that is a choice and its subject in one: `workclass`, `agegrp`, `distcod`."""
_JOINED_RUNNING = re.compile(r"^[a-z]{3,}(num|nr)$")
_COUNTING = ("n", "no", "nr", "num", "number", "count", "total", "sum", "anzahl", "nombre", "nb", "numero")
"""Words that count what stands after them: `n_rooms`, `number of rooms`."""
_MEASURING = (
    "rate",
    "rating",
    "score",
    "share",
    "percent",
    "pct",
    "ratio",
    "mean",
    "avg",
    "average",
    "median",
    "max",
    "min",
)
"""Words that measure what stands after them, unless it groups: `rate_marriage`, but `rate_class`."""
_GROUPING = ("group", "grp", "class", "category", "cat", "cluster", "segment", "type", "kind", "code", "id")
_OF = ("of", "de", "der", "des", "von", "van", "di", "du", "per", "in", "by", "at", "on", "for", "from", "since", "to")
_TAIL = re.compile(r"^([0-9]+|[a-z])$")


@dataclass(frozen=True)
class NameReading:
    """What a name says.

    Attributes
    ----------
    meaning : str or None
        What the last noun says, the head of an English name; where it says nothing, what another word says.
    calendar : str or None
        The part of a date that it names.
    part : str or None
        What a word before the head says: `region_id` is a key of regions.
    alone : bool
        Whether the name is one word.
    grouping : bool
        Whether the head groups whatever stands before it: `age_group`, `subclass`.
    """

    meaning: Meaning | None = None
    calendar: Calendar | None = None
    part: Meaning | None = None
    alone: bool = True
    grouping: bool = False


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents, in snake_case, camelCase or with spaces.

    Examples
    --------
    >>> words_of("patientID"), words_of("ph.karno"), words_of("Année de naissance"), words_of("HHSize76")
    (['patient', 'id'], ['ph', 'karno'], ['annee', 'de', 'naissance'], ['hh', 'size', '76'])
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    plain = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", plain)
    plain = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", plain)
    plain = re.sub(r"([A-Za-z])([0-9])", r"\1 \2", plain)
    return re.findall(r"[a-z]+|[0-9]+", plain.lower())


def read_name(name: str) -> NameReading:
    """Read what the name of a column says about its numbers.

    Examples
    --------
    >>> read_name("group_size").meaning, read_name("age_group").meaning, read_name("n_regions").meaning
    ('quantity', 'classes', 'quantity')
    >>> read_name("customerId").meaning, read_name("Sample Number").meaning, read_name("x1").meaning
    ('key', 'running', None)
    >>> read_name("birth_month").calendar, read_name("Codigo Postal").meaning
    ('month', 'code')
    """
    words = words_of(name)
    if len(words) > 1 and words[0] in _COUNTING:
        return NameReading("quantity", alone=False)
    if (whole := _MEANINGS.get("".join(words))) is None:  # `day of week` is one word
        if of := next((place for place, word in enumerate(words) if word in _OF and place), 0):
            words = words[:of]
        while len(words) > 1 and _TAIL.match(words[-1]):  # of a year, or of one of several alike
            words.pop()
    if not words:
        return NameReading()
    if len(words) > 1 and words[0] in _MEASURING and words[-1] not in _GROUPING:
        return NameReading("quantity", alone=False)
    whole = whole or _MEANINGS.get("".join(words))
    found = [whole] if whole else [_meaning(word) for word in words]
    known = [one for one in found if one is not None and one not in _CALENDAR]
    part_of_date = found[-1] if known else next((one for one in found if one), None)
    if part_of_date in _CALENDAR:
        return NameReading(calendar=part_of_date, alone=len(words) == 1)  # type: ignore[arg-type]
    if found[-1] is None and "quantity" in known:
        return NameReading("quantity", alone=False)
    # Without a noun that says something, the first word does (`occupation_husb`), unless it owns what comes next.
    meaning = found[-1] or (found[0] if found[0] in ("code", "classes", "levels", "quantity", "time") else None)
    part = next((one for one in known if one != meaning), None)
    grouping = words[-1] in _GROUPING or _JOINED.search(words[-1]) is not None
    alone = len(words) == 1 and not _JOINED_RUNNING.match(words[0])
    return NameReading(meaning, part=part, alone=alone, grouping=grouping)  # type: ignore[arg-type]


@cache
def _meaning(word: str) -> str | None:
    """Return what a word says: as it is, as two in one, as a plural (of things: how many) or cut off at its end."""
    if word in _MEANINGS:
        return _MEANINGS[word]
    if _JOINED_KEY.match(word):
        return "key"
    if joined := _JOINED.search(word):
        return "code" if joined[1].startswith(("cod", "fip")) else "place" if joined[1] == "region" else "classes"
    if _JOINED_RUNNING.match(word):
        return "running"
    singular = {word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y"} - {word}
    if word.endswith("s") and {_MEANINGS.get(one) for one in singular} & {"unit", "place", "classes"}:
        return "quantity"
    longer = {meaning for known, meaning in _MEANINGS.items() if len(word) >= LEAST_CUT and known.startswith(word)}
    return longer.pop() if len(longer) == 1 else None
