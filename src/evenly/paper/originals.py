"""The originals of the paper's data sets in the UCI repository: where they are, how they are read and coded."""

from __future__ import annotations

import csv
import hashlib
import io
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenly._support import TableError, require
from evenly.tables import Floats, Kind

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
TOP_CODE = 99999
"""Larger capital gains were recorded as this: a code, not an amount."""
LEAST_CITRIC_ACID = 0.001
"""Replaces 0 (in 151 wines), so that the column is positive."""


# --- texts to numbers ---------------------------------------------------------------------------------------------


def lines_of(content: bytes, file: str, delimiter: str = ",") -> list[list[str]]:
    """Cut a text into rows of cells; empty lines are left out."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise TableError(f"{file} that is no text", "expected a table as text") from None
    return [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True) if row]


def numbers_of(rows: Sequence[Sequence[Any]], columns: Sequence[str], file: str, missing: str = "?") -> Floats:
    """Turn rows of cells into an array; missing cells are the given text or already NaN."""
    values = np.empty((len(rows), len(columns)))
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise TableError(f"{len(row)} cells in row {i + 1} of {file}", f"expected {len(columns)}")
        try:
            values[i] = [np.nan if cell == missing else cell for cell in row]
        except ValueError:
            column, cell = next((c, x) for c, x in zip(columns, row, strict=True) if x != missing and not _is_number(x))
            raise TableError(f"{cell!r} in row {i + 1} of {file}", "expected a number", column=column) from None
    if not len(rows) or np.isinf(values).any():
        raise TableError(f"{'infinite cells' if len(rows) else 'no rows'} in {file}", "expected finite numbers")
    return values


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- from the original files --------------------------------------------------------------------------------------


def code_original(name: str, content: Mapping[str, bytes]) -> Floats:
    """Turn the original files into the values, after checking that they are the known ones."""
    origin = ORIGINS[name]
    for file, sha256 in origin.files.items():
        if (found := hashlib.sha256(content[file]).hexdigest()) != sha256:
            hint = "take the file from the UCI repository, unchanged"
            raise TableError(f"{file} with the SHA-256 {found}", f"expected {sha256}", hint)
    values = origin.code(content)
    if values.shape != (origin.n_rows, len(origin.columns)):
        raise TableError(f"a table of {values.shape}", f"expected {(origin.n_rows, len(origin.columns))}")
    return values


def _five_digits(values: Floats) -> Floats:
    """Round to five significant digits, a tie to the even digit: adult, spam and wine were once written so."""
    text = np.char.mod("%.5g", values)
    return text.astype(np.float64)


def _adult(content: Mapping[str, bytes]) -> Floats:
    # Codes in the order of the original's description (adult.names), but for sex, which is the other way round.
    # "Never-worked" (7 rows) has no code, so it is missing, and so is each "?".
    codes = {
        "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay",
        "marital_status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
        "Married-AF-spouse",
        "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
        "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
        "Protective-serv, Armed-Forces",
        "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
        "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
        "sex": "Male, Female",
    }
    table = {c: {word: i for i, word in enumerate(words.split(", "), 1)} for c, words in codes.items()}
    columns = list(_ADULT)
    rows = []
    for row in lines_of(content["adult.data"], "adult.data"):
        # education says the same as education_num; native-country and income are left out.
        cells = [cell.strip() for cell in row[:3] + row[4:13]]
        cells = ["?" if cell == "Never-worked" else cell for cell in cells]
        rows.append([table.get(c, {}).get(cell, cell) for c, cell in zip(columns, cells, strict=False)])
    values = numbers_of(rows, columns, "adult.data")
    gain = columns.index("capital_gain")
    values[values[:, gain] == TOP_CODE, gain] = np.nan
    return _five_digits(values)


def _breast(content: Mapping[str, bytes]) -> Floats:
    rows = lines_of(content["breast-cancer-wisconsin.data"], "breast-cancer-wisconsin.data")
    values = numbers_of([row[1:] for row in rows], list(_BREAST), "breast-cancer-wisconsin.data")
    values[:, -1] /= 2.0  # benign 2 -> 1, malignant 4 -> 2
    return values


def _credit(content: Mapping[str, bytes]) -> Floats:
    file = "default of credit card clients.xls"
    rows = _xls_rows(content[file])
    # The first row has other names, X1 to Y; the first column is an identifier.
    names = [str(cell).lower() for cell in rows[1][1:]] if len(rows) > 1 else []
    if names != [*list(_CREDIT)[:-1], "default payment next month"]:
        raise TableError(f"another header in {file}", f"expected {', '.join(_CREDIT)}")
    return numbers_of([row[1:] for row in rows[2:]], list(_CREDIT), file)


def _xls_rows(content: bytes) -> list[list[Any]]:
    xlrd = require("xlrd", "tool")
    sheet = xlrd.open_workbook(file_contents=content).sheet_by_index(0)
    return [sheet.row_values(i) for i in range(sheet.nrows)]


def _letter(content: Mapping[str, bytes]) -> Floats:
    codes = {letter: i for i, letter in enumerate(string.ascii_uppercase, 1)}
    rows = lines_of(content["letter-recognition.data"], "letter-recognition.data")
    return numbers_of([[codes.get(row[0], row[0]), *row[1:]] for row in rows], list(_LETTER), "letter-recognition.data")


def _spam(content: Mapping[str, bytes]) -> Floats:
    return _five_digits(numbers_of(lines_of(content["spambase.data"], "spambase.data"), list(_SPAM), "spambase.data"))


def _wine(content: Mapping[str, bytes]) -> Floats:
    rows = []
    for file, color in (("winequality-white.csv", 2), ("winequality-red.csv", 1)):
        header, *wines = lines_of(content[file], file, ";") or [[]]
        if [cell.lower().replace(" ", "_") for cell in header] != list(_WINE)[:-1]:
            raise TableError(f"another header in {file}", f"expected {', '.join(list(_WINE)[:-1])}")
        rows += [[*wine, color] for wine in wines]
    values = numbers_of(rows, list(_WINE), "the wines")
    citric_acid = list(_WINE).index("citric_acid")
    values[values[:, citric_acid] == 0.0, citric_acid] = LEAST_CITRIC_ACID
    return _five_digits(values)


def declared_kinds(columns: Mapping[str, str]) -> tuple[dict[str, Kind], dict[str, int]]:
    """Return the kind of each declared column, and how many classes those with classes have."""
    kinds: dict[str, Any] = {column: declared.partition(" ")[0] for column, declared in columns.items()}
    spans = {c: declared.partition(" ")[2].split("..") for c, declared in columns.items() if " " in declared}
    return kinds, {column: int(last) - int(first) + 1 for column, (first, last) in spans.items()}


def first_code(declared: str) -> int:
    """Return the code of the first class of a declared column; 0 if it has no classes."""
    return int(declared.partition(" ")[2].partition("..")[0] or 0)


# --- what is declared ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """What is known of the original of a data set: where it is, its SHA-256, its size, and how it is coded.

    A column is declared by its kind, and by its first and last code if it has classes.
    """

    folder: str
    files: dict[str, str]
    n_rows: int
    columns: dict[str, str]
    code: Callable[[Mapping[str, bytes]], Floats]


def _each(names: str, declared: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), declared)


_ADULT = {
    "age": "count",
    "workclass": "categorical 1..7",
    "fnlwgt": "positive",
    "education_num": "ordinal 1..16",
    "marital_status": "categorical 1..7",
    "occupation": "categorical 1..14",
    "relationship": "categorical 1..6",
    "race": "categorical 1..5",
    "sex": "binary 1..2",
    "capital_gain": "positive",
    "capital_loss": "positive",
    "hours_per_week": "count",
}
_BREAST = _each(
    """clump_thickness cell_size_uniformity cell_shape_uniformity marginal_adhesion single_epithelial_cell_size
    bare_nuclei bland_chromatin normal_nucleoli mitoses""",
    "count",
) | {"class": "binary 1..2"}
# Education and marriage have the undocumented code 0, and so it is declared for sex too, where it does not occur.
_CREDIT = {
    "limit_bal": "positive",
    "sex": "categorical 0..2",
    "education": "categorical 0..6",
    "marriage": "categorical 0..3",
    "age": "count",
    **_each("pay_0 pay_2 pay_3 pay_4 pay_5 pay_6", "ordinal -2..8"),
    **_each("bill_amt1 bill_amt2 bill_amt3 bill_amt4 bill_amt5 bill_amt6", "real"),
    **_each("pay_amt1 pay_amt2 pay_amt3 pay_amt4 pay_amt5 pay_amt6", "positive"),
    "default": "binary 0..1",
}
_LETTER = {"letter": "categorical 1..26"} | _each(
    "x_box y_box width high onpix x_bar y_bar x2bar y2bar xybar x2ybr xy2br x_ege xegvy y_ege yegvx", "count"
)
_WORDS = """make address all 3d our over remove internet order mail receive will people report addresses free business
    email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm
    direct cs meeting original project re edu table conference"""
_SPAM = dict.fromkeys(
    [f"word_freq_{word}" for word in _WORDS.split()]
    + [f"char_freq_{character}" for character in ";([!$#"]
    + [f"capital_run_length_{what}" for what in ("average", "longest", "total")],
    "positive",
) | {"spam": "binary 0..1"}
_WINE = _each(
    """fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide total_sulfur_dioxide
    density ph sulphates alcohol""",
    "positive",
) | {"quality": "count", "color": "binary 1..2"}

ORIGINS: dict[str, Origin] = {
    "adult": Origin(
        "adult",
        {"adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"},
        32561,
        _ADULT,
        _adult,
    ),
    "breast": Origin(
        "breast-cancer-wisconsin",
        {"breast-cancer-wisconsin.data": "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"},
        699,
        _BREAST,
        _breast,
    ),
    "credit": Origin(
        "00350",
        {"default of credit card clients.xls": "30c6be3abd8dcfd3e6096c828bad8c2f011238620f5369220bd60cfc82700933"},
        30000,
        _CREDIT,
        _credit,
    ),
    "letter": Origin(
        "letter-recognition",
        {"letter-recognition.data": "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"},
        20000,
        _LETTER,
        _letter,
    ),
    "spam": Origin(
        "spambase",
        {"spambase.data": "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"},
        4601,
        _SPAM,
        _spam,
    ),
    "wine": Origin(
        "wine-quality",
        {
            "winequality-white.csv": "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
            "winequality-red.csv": "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
        },
        6497,
        _WINE,
        _wine,
    ),
}
