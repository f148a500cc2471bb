"""The six data sets of the paper: read from a folder, or downloaded and coded in the same way; which cells to hide."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import string
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenly._support import TableError, require
from evenly.files import write_text
from evenly.schema import CLASS_KINDS, Kind, Schema, infer_schema
from evenly.tables import Floats, build_table

Booleans = npt.NDArray[np.bool_]
Name = Literal["adult", "breast", "credit", "letter", "spam", "wine"]
NAMES: tuple[Name, ...] = get_args(Name)

PERCENTS = (10, 20, 50)
"""The shares of hidden cells in the paper."""
N_GENERATED = 10
"""Runs of the paper for each share; as many masks are generated where none are given."""
TOP_CODE = 99999
"""Capital gains above it were recorded as it: a code, not an amount."""
LEAST_CITRIC_ACID = 0.001
"""What stands for 0 in the wines (151 of them), so that the column is positive."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table of numbers, what is declared of its columns, and which cells to hide.

    Attributes
    ----------
    values : array of rows x columns
        Classes by their codes; NaN is really missing.
    kinds : mapping of column to kind
        Of every column.
    classes : mapping of column to number
        How many classes are declared; a declared class need not occur.
    first_codes : mapping of column to number
        The code of the first class; the codes are whole numbers from there on.
    masks : mapping of percent to array of run x row x column
        True = known, and hidden to score on; empty where none were given.
    source : str
        Where it came from.
    published_ranges : mapping of column to (lowest, highest)
        By what the published error of a column divides, where that is not the range of its known cells.
    """

    name: str
    columns: list[str]
    values: Floats
    kinds: dict[str, Kind]
    classes: dict[str, int]
    first_codes: dict[str, int]
    masks: dict[int, Booleans] = field(default_factory=dict)
    source: str = ""
    published_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def known(self) -> Booleans:
        """Which cells are not really missing."""
        return np.isfinite(self.values)


# --- what is hidden -----------------------------------------------------------------------------------------------


def n_masks(data: DataSet, percent: int) -> int:
    """Return how many masks are given for a share of hidden cells; ten where they are generated."""
    return len(data.masks[percent]) if percent in data.masks else N_GENERATED


def hidden_mask(data: DataSet, percent: int, run: int, seed: int = 0) -> Booleans:
    """Return which cells to hide in a run: as given with the data set, otherwise completely at random.

    A generated mask hides, in each column, that share of its known cells, rounded to a whole number; so every column
    is scored on as many cells in every run. The given masks drew each cell by itself, and differ in this.

    Parameters
    ----------
    percent : int
        Share of the known cells, more than 0 and less than 100.
    run : int
        From 1; a run beyond the given masks is generated.
    seed : int
        Of the generator, with the data set's name, the percent and the run; a given mask does not depend on it.

    Examples
    --------
    >>> data = synthetic()
    >>> hidden = hidden_mask(data, 20, run=1)
    >>> hidden.sum(axis=0)[:3], bool((hidden & ~data.known).any())
    (array([140, 140, 140]), False)
    """
    if not 0 < percent < 100:
        raise TableError(f"percent = {percent}", "expected more than 0 and less than 100")
    if run < 1:
        raise TableError(f"run = {run}", "expected 1 or more")
    if percent in data.masks and run <= len(data.masks[percent]):
        return np.array(data.masks[percent][run - 1])
    rng = np.random.default_rng([seed, zlib.crc32(data.name.encode()), percent, run])
    known = data.known
    hidden = np.zeros(known.shape, bool)
    for j in range(known.shape[1]):
        rows = np.flatnonzero(known[:, j])
        hidden[rng.choice(rows, round(percent / 100 * len(rows)), replace=False), j] = True
    return hidden


# --- as a table with a schema -------------------------------------------------------------------------------------


def schema(data: DataSet, *, hidden: Booleans | None = None, zeros: Literal["shift", "clip"] = "shift") -> Schema:
    """Return the declared kinds and classes as a schema, for `LipschitzScaler(schema=...)` and `as_table`.

    Only the shift of a positive column with zeros is taken from the cells: from those that are not hidden.

    Examples
    --------
    >>> print(schema(synthetic()))
    column     kind         likelihood   details            note
    real_1     real         normal                          declared
    real_2     real         normal                          declared
    real_3     real         normal                          declared
    amount_1   positive     log-normal                      declared
    amount_2   positive     log-normal                      declared
    amount_3   positive     log-normal                      declared
    count_1    count        poisson                         declared
    count_2    count        poisson                         declared
    answer     binary       bernoulli    0 | 1              declared
    group      categorical  categorical  1 | 2 | 3 | 4      declared
    """
    by_place = {f"x{j}": data.kinds[column] for j, column in enumerate(data.columns)}
    inferred = infer_schema(_visible(data, hidden), kinds=by_place, zeros=zeros).columns
    for column, name in zip(inferred, data.columns, strict=True):
        column.name = name
        if name in data.classes:
            first = data.first_codes[name]
            column.classes = list(range(first, first + data.classes[name]))
    return Schema(columns=inferred)


def as_table(data: DataSet, *, hidden: Booleans | None = None) -> Any:
    """Return the data set as a Polars frame with its column names; hidden and missing cells are null."""
    require("polars", "tool")
    values = _visible(data, hidden)
    return build_table({column: values[:, j] for j, column in enumerate(data.columns)}, "polars")


def _visible(data: DataSet, hidden: Booleans | None) -> Floats:
    return data.values if hidden is None else np.where(hidden, np.nan, data.values)


# --- reading --------------------------------------------------------------------------------------------------


def load_dataset(name: str, folder: str | Path | None = None) -> DataSet:
    """Load one of the paper's data sets: adult, breast, credit, letter, spam or wine.

    It is looked for in `folder`, in the folder that the environment variable EVENLY_DATA names, and in the user's
    cache; otherwise the original is downloaded from the UCI repository, coded, and kept in the cache. In a folder, it
    is in the subfolder of its name: `data.csv` and `kinds.csv`, and `masks.npz` if there are masks; or else the files
    of the UCI repository as they are.

    Examples
    --------
    >>> load_dataset("iris")
    Traceback (most recent call last):
    evenly._support.TableError: got the data set 'iris', but expected one of adult, breast, credit, letter, spam, wine.
    """
    if name not in ORIGINS:
        raise TableError(f"the data set {str(name)!r}", f"expected one of {', '.join(NAMES)}")
    for place in (folder, os.environ.get("EVENLY_DATA") or None):
        if place is None:
            continue
        if not Path(place).is_dir():
            raise TableError(f"the folder {place}", "there is none", f"name the folder that has {name}/data.csv")
        if (Path(place) / name).is_dir():
            found = _read_folder(name, Path(place) / name)
            if found is None:
                raise TableError(
                    f"the folder {Path(place) / name} without all its files",
                    f"expected data.csv and kinds.csv, or {' and '.join(ORIGINS[name].files)}",
                    "add them, or remove the folder to use the cache",
                )
            return found
    cached = _cache() / name
    if (cached / "data.csv").is_file() and (found := _read_folder(name, cached)):
        return found
    values = _code(name, _fetch(name, cached))
    # The kinds first: a folder with data.csv but without kinds.csv is incomplete, whoever reads it meanwhile.
    write_text(cached / "kinds.csv", _kinds_text(ORIGINS[name].columns))
    write_text(cached / "data.csv", _data_text(ORIGINS[name].columns, values))
    found = _read_folder(name, cached)
    assert found is not None
    return found


def _cache() -> Path:
    return Path(require("pooch", "tool").os_cache("evenly"))


def _fetch(name: str, folder: Path) -> dict[str, bytes]:
    """Download the original files of a data set into a folder; those that are there already are kept."""
    origin, content = ORIGINS[name], {}
    for file, sha256 in origin.files.items():
        url = f"{UCI}/{origin.folder}/{file.replace(' ', '%20')}"
        try:
            path = require("pooch", "tool").retrieve(url, known_hash=f"sha256:{sha256}", fname=file, path=folder)
        except (OSError, ValueError) as error:  # no network, or another content; both by pooch's own words
            raise TableError(
                f"no {file} from {url} ({type(error).__name__}: {error})",
                f"the data set {name} is neither in a folder nor in the cache",
                f"set EVENLY_DATA to the folder that has {name}/data.csv, or put {file} into {folder}",
            ) from error
        content[file] = Path(path).read_bytes()
    return content


def _read_folder(name: str, folder: Path) -> DataSet | None:
    """Read a data set from its own folder; None if files are not there."""
    origin = ORIGINS[name]
    if (folder / "data.csv").is_file() and (folder / "kinds.csv").is_file():
        kinds, classes = _read_kinds(folder / "kinds.csv", list(origin.columns))
        values = _read_data(folder / "data.csv", list(origin.columns))
    elif all((folder / file).is_file() for file in origin.files):
        kinds, classes = _declared(origin.columns)
        values = _code(name, {file: (folder / file).read_bytes() for file in origin.files})
    else:
        return None
    first_codes = {column: _first_code(origin.columns[column]) for column in classes}
    for column, n in classes.items():
        codes = values[:, list(origin.columns).index(column)]
        first, last = first_codes[column], first_codes[column] + n - 1
        wrong = codes[~np.isnan(codes) & ~np.isin(codes, np.arange(first, last + 1))]
        if len(wrong):
            raise TableError(
                f"the code {wrong[0]:g} in {folder}", f"expected {n} classes, {first} to {last}", column=column
            )
    masks = _read_masks(folder / "masks.npz", ~np.isnan(values)) if (folder / "masks.npz").is_file() else {}
    ranges = {"capital_gain": (0.0, float(TOP_CODE))} if name == "adult" else {}
    return DataSet(name, list(origin.columns), values, kinds, classes, first_codes, masks, str(folder), ranges)


def _read_data(path: Path, columns: Sequence[str]) -> Floats:
    header, *rows = _lines(path.read_bytes(), path.name) or [[]]
    if header != list(columns):
        different = next((c for c, h in zip(columns, header, strict=False) if c != h), None)
        raise TableError(f"another header in {path}", f"expected {', '.join(columns)}", column=different)
    return _numbers(rows, columns, path.name, missing="")


def _read_kinds(path: Path, columns: Sequence[str]) -> tuple[dict[str, Kind], dict[str, int]]:
    header, *rows = _lines(path.read_bytes(), path.name) or [[]]
    if header != ["column", "kind", "classes"] or [row[0] for row in rows] != list(columns):
        raise TableError(
            f"other columns in {path}", f"expected column,kind,classes and a row each of {', '.join(columns)}"
        )
    kinds: dict[str, Kind] = {}
    classes: dict[str, int] = {}
    for column, kind, n in rows:
        if kind not in get_args(Kind) or (kind in CLASS_KINDS) != n.isdecimal():
            raise TableError(
                f"the kind {kind!r} with {n or 'no'} classes in {path}",
                f"expected a kind, and a number of classes with {', '.join(CLASS_KINDS)} only",
                column=column,
            )
        kinds[column] = kind  # type: ignore[assignment]  # checked above
        if n:
            classes[column] = int(n)
    return kinds, classes


def _read_masks(path: Path, known: Booleans) -> dict[int, Booleans]:
    """Read the masks of each percent. Some of them also mark cells that are really missing: nothing to score on."""
    try:
        with np.load(path, allow_pickle=False) as content:
            masks: dict[int, Booleans] = {percent: content[f"missing_{percent}"] for percent in PERCENTS}
    except (KeyError, OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        expected = f"expected the arrays {', '.join(f'missing_{percent}' for percent in PERCENTS)}"
        raise TableError(f"{path} ({type(error).__name__})", expected) from None
    for percent, mask in masks.items():
        if mask.dtype != bool or mask.ndim != 3 or mask.shape[1:] != known.shape:
            raise TableError(
                f"missing_{percent} of {mask.dtype} and the shape {mask.shape} in {path}",
                f"expected booleans, run x {known.shape[0]} rows x {known.shape[1]} columns",
            )
    return {percent: mask & known for percent, mask in masks.items()}


def _lines(content: bytes, file: str, delimiter: str = ",") -> list[list[str]]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise TableError(f"{file} that is no text", "expected a table as text") from None
    return [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True) if row]


def _numbers(rows: Sequence[Sequence[Any]], columns: Sequence[str], file: str, missing: str = "?") -> Floats:
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


# --- from the original files ----------------------------------------------------------------------------------


def _code(name: str, content: Mapping[str, bytes]) -> Floats:
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
    for row in _lines(content["adult.data"], "adult.data"):
        # education says the same as education_num; native-country and income are left out.
        cells = [cell.strip() for cell in row[:3] + row[4:13]]
        cells = ["?" if cell == "Never-worked" else cell for cell in cells]
        rows.append([table.get(c, {}).get(cell, cell) for c, cell in zip(columns, cells, strict=False)])
    values = _numbers(rows, columns, "adult.data")
    gain = columns.index("capital_gain")
    values[values[:, gain] == TOP_CODE, gain] = np.nan
    return _five_digits(values)


def _breast(content: Mapping[str, bytes]) -> Floats:
    rows = _lines(content["breast-cancer-wisconsin.data"], "breast-cancer-wisconsin.data")
    values = _numbers([row[1:] for row in rows], list(_BREAST), "breast-cancer-wisconsin.data")
    values[:, -1] /= 2.0  # benign 2 -> 1, malignant 4 -> 2
    return values


def _credit(content: Mapping[str, bytes]) -> Floats:
    file = "default of credit card clients.xls"
    rows = _xls_rows(content[file])
    # The first row has other names, X1 to Y; the first column is an identifier.
    names = [str(cell).lower() for cell in rows[1][1:]] if len(rows) > 1 else []
    if names != [*list(_CREDIT)[:-1], "default payment next month"]:
        raise TableError(f"another header in {file}", f"expected {', '.join(_CREDIT)}")
    return _numbers([row[1:] for row in rows[2:]], list(_CREDIT), file)


def _xls_rows(content: bytes) -> list[list[Any]]:
    xlrd = require("xlrd", "tool")
    sheet = xlrd.open_workbook(file_contents=content).sheet_by_index(0)
    return [sheet.row_values(i) for i in range(sheet.nrows)]


def _letter(content: Mapping[str, bytes]) -> Floats:
    codes = {letter: i for i, letter in enumerate(string.ascii_uppercase, 1)}
    rows = _lines(content["letter-recognition.data"], "letter-recognition.data")
    return _numbers([[codes.get(row[0], row[0]), *row[1:]] for row in rows], list(_LETTER), "letter-recognition.data")


def _spam(content: Mapping[str, bytes]) -> Floats:
    return _five_digits(_numbers(_lines(content["spambase.data"], "spambase.data"), list(_SPAM), "spambase.data"))


def _wine(content: Mapping[str, bytes]) -> Floats:
    rows = []
    for file, color in (("winequality-white.csv", 2), ("winequality-red.csv", 1)):
        header, *wines = _lines(content[file], file, ";") or [[]]
        if [cell.lower().replace(" ", "_") for cell in header] != list(_WINE)[:-1]:
            raise TableError(f"another header in {file}", f"expected {', '.join(list(_WINE)[:-1])}")
        rows += [[*wine, color] for wine in wines]
    values = _numbers(rows, list(_WINE), "the wines")
    citric_acid = list(_WINE).index("citric_acid")
    values[values[:, citric_acid] == 0.0, citric_acid] = LEAST_CITRIC_ACID
    return _five_digits(values)


def _declared(columns: Mapping[str, str]) -> tuple[dict[str, Kind], dict[str, int]]:
    kinds: dict[str, Any] = {column: declared.partition(" ")[0] for column, declared in columns.items()}
    spans = {c: declared.partition(" ")[2].split("..") for c, declared in columns.items() if " " in declared}
    return kinds, {column: int(last) - int(first) + 1 for column, (first, last) in spans.items()}


def _first_code(declared: str) -> int:
    return int(declared.partition(" ")[2].partition("..")[0] or 0)


def _kinds_text(columns: Mapping[str, str]) -> str:
    kinds, classes = _declared(columns)
    return "column,kind,classes\n" + "".join(f"{c},{kind},{classes.get(c, '')}\n" for c, kind in kinds.items())


def _data_text(columns: Iterable[str], values: Floats) -> str:
    """Write the values so that they come back to the last bit."""
    lines = (",".join("" if v != v else f"{v:.0f}" if v == int(v) else repr(v) for v in row) for row in values.tolist())
    return "\n".join([",".join(columns), *lines]) + "\n"


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


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


# --- without any file -----------------------------------------------------------------------------------------


def synthetic(n_rows: int = 700, seed: int = 0) -> DataSet:
    """Return a made-up table of the size of breast, with columns of several kinds that can be told from each other.

    Two hidden factors decide each row, up to noise. One cell in fifty of `amount_3` is really missing.

    Examples
    --------
    >>> synthetic().values.shape
    (700, 10)
    >>> bool(np.corrcoef(synthetic().values[:, :2].T)[0, 1] > 0.8)
    True
    """
    if n_rows < 1:
        raise TableError(f"n_rows = {n_rows}", "expected 1 or more")
    rng = np.random.default_rng([seed, zlib.crc32(b"synthetic")])
    one, two = rng.normal(size=(2, n_rows))
    noise = rng.normal(size=(6, n_rows))
    scores = 3.0 * np.stack([one, -one, two, -two]) + rng.gumbel(size=(4, n_rows))
    columns = {
        "real_1": 10.0 * one + 3.0 * noise[0],
        "real_2": 0.5 * one + 0.2 * noise[1] - 4.0,
        "real_3": 100.0 * (one - two) + 30.0 * noise[2],
        "amount_1": np.exp(one + 0.3 * noise[3]),
        "amount_2": 1000.0 * np.exp(0.5 * two + 0.2 * noise[4]),
        "amount_3": 0.01 * np.exp(0.7 * (one + two) + 0.3 * noise[5]),
        "count_1": rng.poisson(np.exp(1.0 + 0.6 * one)),
        "count_2": rng.poisson(np.exp(3.0 + 0.4 * two)),
        "answer": rng.random(n_rows) < 1.0 / (1.0 + np.exp(-4.0 * two)),
        "group": 1 + scores.argmax(axis=0),
    }
    columns["amount_3"] = np.where(rng.random(n_rows) < 0.02, np.nan, columns["amount_3"])
    kinds = dict(zip(columns, ["real"] * 3 + ["positive"] * 3 + ["count"] * 2, strict=False))
    declared = kinds | {"answer": "binary 0..1", "group": "categorical 1..4"}
    values = np.column_stack(list(columns.values())).astype(np.float64)
    first_codes = {"answer": 0, "group": 1}
    return DataSet(
        "synthetic", list(columns), values, *_declared(declared), first_codes, source=f"made up, seed {seed}"
    )
