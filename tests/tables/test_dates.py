"""Dates: texts in the usual spellings and native types are read as days, and come back as they were."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import EvenlyWarning, Imputer, LipschitzScaler, Schema, TableError, infer_schema, inspect_table
from evenly.tables import days_of, make_dates
from evenly.tables.dates import read_days
from evenly.tables.formats import EPOCH, DateFormat, find_format, get_format, nearest_start

LEAP = 19_782.0
"""Days from 1970-01-01 to 2024-02-29: 54 years, 13 of them leap years, and 59 days."""
assert LEAP == 54 * 365 + 13 + 59
PATTERNS = {
    "%Y-%m-%d": ["2024-02-29", "1969-12-31"],
    "%Y/%m/%d": ["2024/02/29"],
    "%d.%m.%Y": ["29.02.2024"],
    "%-d.%-m.%Y": ["29.2.2024", "1.12.2024"],
    "%m/%d/%Y": ["02/29/2024", "12/31/2024"],
    "%d/%m/%Y": ["29/02/2024", "01/02/2024"],
    "%-m/%-d/%y": ["2/29/24", "12/31/99"],
    "%d-%m-%Y": ["29-02-2024"],
    "%b %-d, %Y": ["Feb 29, 2024", "Jan 5, 2024"],
    "%B %d, %Y": ["February 29, 2024", "January 05, 2024"],
    "%d %b %Y": ["29 Feb 2024"],
    "%d-%^b-%y": ["29-FEB-24", "05-JAN-70"],
    "%-d. %B %Y": ["29. February 2024", "5. May 2024"],
    "%Y-%m-%dT%H:%M:%SZ": ["2024-02-29T00:00:00Z"],
    "%Y-%m-%dT%H:%M:%S+01:00": ["2024-02-29T00:00:00+01:00"],
    "%Y-%m-%d %H:%M": ["2024-02-29 00:00", "2024-02-29 23:59"],
    "%Y-%m-%d %H:%M:%S.%3f": ["2024-02-29 00:00:00.000", "2024-02-29 12:34:56.789"],
    "%Y-%m-%d %H:%M:%S.%f": ["2024-02-29 00:00:00.000000"],
    "%m/%d/%Y %-I:%M %p": ["02/29/2024 12:00 AM", "12/31/2024 3:05 PM"],
}
OF_MONTHS = {"%Y-%m": "2024-03", "%m/%Y": "03/2024", "%b %Y": "Mar 2024", "%Y-Q%q": "2024-Q2", "Q%q %Y": "Q2 2024"}
HOSTILE = {
    "no such day": ["31.02.2024", "01.02.2024"],
    "no such leap day": ["2023-02-29"],
    "the year 0": ["0000-01-01"],
    "a far year": ["99999-01-01"],
    "before Christ": ["-0044-03-15"],
    "no such hour": ["2024-01-31 25:00"],
    "several zones": ["2024-01-31T12:00:00+01:00", "2024-06-01T12:00:00+02:00"],
    "several patterns": ["2024-01-31", "31.01.2024"],
    "with and without a time": ["2024-01-31 12:00", "2024-01-31"],
    "a time alone": ["12:30"],
    "a dash": ["\u2014"],
    "an emoji": ["\U0001f4c5 2024-01-31"],
    "nothing": [""],
    "digits of Arabic": ["\u0662\u0660\u0662\u0664-01-31"],
    "results": ["1-2-3"],
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_recognized_and_reads_and_spells(pattern):
    texts = PATTERNS[pattern]
    found = find_format(texts)
    assert isinstance(found, DateFormat)
    assert found.pattern == pattern
    assert found.read(texts[0]) == LEAP
    assert [found.write(found.read(text)) for text in texts] == texts
    assert get_format(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", OF_MONTHS)
def test_months_and_quarters_are_their_first_days_and_the_nearest_is_spelled(pattern):
    found = find_format([OF_MONTHS[pattern]])
    assert found.pattern == pattern
    first = found.read(OF_MONTHS[pattern])
    assert first == (LEAP + 1 if "q" not in pattern else LEAP + 32)
    assert found.write(first) == found.write(first - 13) == found.write(first + 13) == OF_MONTHS[pattern]
    assert found.write(first + 60) != OF_MONTHS[pattern]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_date_or_in_several_patterns_is_none(name):
    assert not isinstance(find_format(HOSTILE[name]), DateFormat)


def test_day_and_month_are_told_apart_by_the_whole_column():
    assert find_format(["01/02/2024", "12/31/2024"]).pattern == "%m/%d/%Y"
    assert find_format(["01/02/2024", "31/12/2024"]).pattern == "%d/%m/%Y"
    table = pd.DataFrame({"seen": ["01/02/2024", "03/04/2024"] * 4, "x": np.arange(8) + 0.5})
    column = infer_schema(table)["seen"]
    assert (column.kind, column.format) == ("date", "%m/%d/%Y")
    assert column.note.startswith("dates: %m/%d/%Y, or %d/%m/%Y, which would be read as well; declare")
    own = Schema.model_validate({"columns": [{"name": "seen", "kind": "date", "format": "%d/%m/%Y"}]})
    scaler = LipschitzScaler("lip-none", schema=own).fit(table)
    first = days_of("2024-02-01") - days_of(scaler.schema_["seen"].origin)
    assert scaler.columns_[0].statistics.minimum == first
    assert scaler.inverse_transform(scaler.transform(table))["seen"].tolist() == table["seen"].tolist()


@given(st.sampled_from([*PATTERNS]), st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2068, 12, 31)))
def test_what_a_pattern_spells_it_reads(pattern, moment):
    form = get_format(pattern)
    text = form.write(moment.toordinal() - EPOCH + (moment.hour * 3600 + moment.minute * 60) / 86_400)
    assert form.write(form.read(text)) == text
    # Python's own directives spell the same, where it has them.
    if "%3" not in pattern:
        plain = moment.replace(second=0, microsecond=0)
        assert text == (plain.strftime(pattern) if "%H" in pattern or "%-I" in pattern else text)


@given(st.integers(-700_000, 2_000_000), st.sampled_from([*PATTERNS]))
def test_every_day_of_the_calendar_is_spelled_as_python_does(day, pattern):
    date = datetime.date.fromordinal(min(max(day + EPOCH, 366), datetime.date.max.toordinal()))
    spelled = get_format("%Y-%m-%d").write(float(date.toordinal() - EPOCH))
    assert spelled == date.isoformat()
    get_format(pattern).write(float(day) * 1e3)


@given(st.text(max_size=25))
def test_any_text_is_read_or_refused(text):
    for pattern in PATTERNS:
        read = get_format(pattern).read(text)
        assert read is None or np.isfinite(read)
    found = DateFormat.recognize([text])
    assert found is None or found.read(text) is not None
    parsed = DateFormat.parse(text)
    assert parsed is None or parsed.pattern == text


@given(st.dates(datetime.date(2, 1, 1), datetime.date(9998, 1, 1)), st.sampled_from([1, 3, 12]))
def test_the_nearest_start_is_the_nearest(date, months):
    starts = [datetime.date(y, m, 1) for y in (date.year - 1, date.year, date.year + 1) for m in range(1, 13, months)]
    assert abs(nearest_start(date, months) - date) == min(abs(one - date) for one in starts)


def test_patterns_are_exact_or_refused():
    for wrong in ("%d", "%Y-%d", "%Y %Y", "%H:%M", "%Y-%m-%x", "%Y-%m-%d %M", "%Y%", "%-Y-%m", "%Y-%m-%b", "%Y %p"):
        assert DateFormat.parse(wrong) is None


# --- tables -----------------------------------------------------------------------------------------------------------

N = 60
RNG = np.random.default_rng(0)
DAYS = np.datetime64("2023-03-01") + RNG.integers(0, 700, N)
MOMENTS = DAYS + RNG.integers(0, 24, N).astype("timedelta64[h]")
GONE = np.arange(N) % 5 == 4
X = RNG.normal(size=N)


def pandas_of(cells: Any) -> pd.DataFrame:
    return pd.DataFrame({"seen": cells, "x": X})


def with_gaps(values: Any) -> pd.Series:
    return pd.Series(values).mask(GONE)


NATIVE = {
    "pandas": lambda: pandas_of(with_gaps(MOMENTS.astype("M8[ns]"))),
    "pandas seconds": lambda: pandas_of(with_gaps(MOMENTS.astype("M8[s]"))),
    "pandas zone": lambda: pandas_of(with_gaps(DAYS.astype("M8[ns]")).dt.tz_localize("Europe/Berlin")),
    "pandas on Arrow": lambda: pandas_of(with_gaps(DAYS.astype("M8[us]")).astype("date32[day][pyarrow]")),
    "pandas zone on Arrow": lambda: pandas_of(
        with_gaps(MOMENTS.astype("M8[us]")).dt.tz_localize("UTC").astype(pd.ArrowDtype(pa.timestamp("us", "UTC")))
    ),
    "polars": lambda: pl.from_pandas(NATIVE["pandas"]()),
    "polars dates": lambda: pl.from_pandas(NATIVE["pandas"]()).with_columns(pl.col("seen").cast(pl.Date)),
    "polars zone": lambda: pl.from_pandas(NATIVE["pandas zone"]()),
    "arrow": lambda: pa.Table.from_pandas(NATIVE["pandas"]()),
    "arrow dates": lambda: pa.Table.from_pandas(NATIVE["pandas"]()).set_column(
        0, "seen", pa.chunked_array([pa.array(DAYS, mask=GONE)])
    ),
    "arrow zone": lambda: pa.Table.from_pandas(NATIVE["pandas zone"]()),
}  # fmt: skip
NATIVE |= {
    f"texts {pattern}": lambda pattern=pattern: pandas_of(
        [
            None if gone else get_format(pattern).write(day)
            for gone, day in zip(GONE, MOMENTS.astype(float) / 24, strict=True)
        ]
    )
    for pattern in (*PATTERNS, *OF_MONTHS)
}


NATIVE |= {
    "objects of dates": lambda: pandas_of(with_gaps(pd.Series(DAYS.tolist(), dtype=object))),
    "objects of moments": lambda: pandas_of(pd.Series(MOMENTS.tolist(), dtype=object).mask(GONE, None)),
    "polars objects of dates": lambda: pl.DataFrame(
        {"seen": [None if gone else day for day, gone in zip(DAYS.tolist(), GONE, strict=True)], "x": X},
        schema={"seen": pl.Object, "x": pl.Float64},
    ),
}  # fmt: skip
"""As databases give them to pandas."""


def cells_of(table: Any) -> list[Any]:
    cells = table["seen"].to_pylist() if isinstance(table, pa.Table) else list(table["seen"])
    return [None if cell is None or cell is pd.NaT or cell is pd.NA or cell != cell else cell for cell in cells]


def type_of(table: Any) -> str:
    return str(table.schema.types[0] if isinstance(table, pa.Table) else table["seen"].dtype)


@pytest.mark.parametrize("name", NATIVE)
def test_dates_are_imputed_as_dates(name, tmp_path):
    table = NATIVE[name]()
    imputer = Imputer("marginal", random_state=0).fit(table)
    assert imputer.schema_["seen"].kind == "date"
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    before, seen = cells_of(table), [cell for cell in cells_of(table) if cell is not None]
    for full in (imputer.transform(table), again.transform(table), again.sample(table, 1)[0], *imputer.interval(table)):
        cells = cells_of(full)
        assert type_of(full) == type_of(table)
        assert [cell for cell, gone in zip(cells, GONE, strict=True) if not gone] == seen
        new = [cell for cell, old in zip(cells, before, strict=True) if old is None]
        assert None not in new
        if not name.startswith("texts"):
            assert min(seen) <= min(new) <= max(new) <= max(seen)
            assert all(getattr(cell, "minute", 0) == 0 for cell in new)
            assert all(isinstance(cell, datetime.datetime) == isinstance(seen[0], datetime.datetime) for cell in new)
            if "zone" in name and "on Arrow" not in name:  # days, in their time zone
                assert all(cell.hour == 0 for cell in new)
        else:
            form = get_format(name.removeprefix("texts "))
            assert all(form.write(form.read(cell)) == cell for cell in new)
            ends = sorted(map(form.read, seen))
            assert all(ends[0] <= form.read(cell) <= ends[-1] for cell in new)


@pytest.mark.parametrize("name", NATIVE)
def test_the_scaler_models_dates_if_it_is_told_to(name, tmp_path):
    table = NATIVE[name]()
    with pytest.warns(EvenlyWarning, match=r"passed_through: 'seen' \(dates or times\)"):
        plain = LipschitzScaler("lip-none").fit(table)
    assert list(plain.get_feature_names_out()) == ["x"]
    declared = LipschitzScaler("lip-none", kinds={"seen": "date"}).fit(table)
    declared.save(tmp_path / "scaler.json")
    for scaler in (
        declared,
        LipschitzScaler.load(tmp_path / "scaler.json"),
        LipschitzScaler("lip-none", dates="model").fit(table),
    ):
        scaled = scaler.transform(table)
        assert list(scaler.get_feature_names_out()) == ["seen", "x"]
        back = scaler.inverse_transform(scaled)
        assert cells_of(back) == cells_of(table)
        assert type_of(back) == type_of(table)
    assert all(outcome == "reached" for outcome in declared.summary_["outcome"])


def test_arrays_of_dates_are_dates():
    table = np.where(GONE, np.datetime64("NaT"), MOMENTS)[:, None]
    imputer = Imputer("marginal", random_state=0).fit(table)
    full = imputer.transform(table)
    assert full.dtype == table.dtype
    assert (full[~GONE] == table[~GONE]).all()
    assert not np.isnat(full).any()


def test_clocks_that_skip_or_repeat_an_hour_are_no_trouble():
    hours = pd.date_range("2024-03-30 22:00", periods=30, freq="h", tz="UTC")  # Berlin skips one at 01:00 UTC
    autumn = pd.date_range("2024-10-26 22:00", periods=30, freq="h", tz="UTC")  # and repeats one
    for index in (hours, autumn):
        seen = pd.Series(index.tz_convert("Europe/Berlin"))
        seen[::6] = pd.NaT
        for table in (pd.DataFrame({"seen": seen}), pl.from_pandas(pd.DataFrame({"seen": seen}))):
            imputer = Imputer("marginal", random_state=0).fit(table)
            for full in (imputer.transform(table), *imputer.sample(table, 2)):
                assert type_of(full) == type_of(table)
                assert None not in cells_of(full)


@pytest.mark.parametrize("unit", ["Q", "M", "W", "D", "Y", "h"])
def test_periods_are_dates_and_filled_by_the_nearest_one(unit):
    seen = pd.Series(pd.period_range("2015-01-01", periods=60, freq=unit))
    gone = np.arange(60) % 5 == 2
    table = pd.DataFrame({"seen": seen.mask(gone), "x": np.arange(60.0) + np.random.default_rng(0).normal(size=60)})
    assert (infer_schema(table)["seen"].kind, inspect_table(table).columns[0].n_missing) == ("date", 12)
    full = Imputer("marginal", random_state=0).fit_transform(table)
    assert full["seen"].dtype == seen.dtype
    assert full["seen"][~gone].equals(seen[~gone])
    # The mean of the first days, at most half a period away from that of the period.
    starts = seen[~gone].dt.to_timestamp()
    error = (full["seen"][gone].dt.to_timestamp() - starts.mean()).abs().max()
    assert error <= 0.5 * starts.diff().max() + pd.Timedelta("12h")
    scaler = LipschitzScaler("lip-none", dates="model").fit(table)
    assert scaler.inverse_transform(scaler.transform(table))["seen"].equals(table["seen"])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_dates_pass_through_or_are_classes(name):
    cells = [*HOSTILE[name] * 12, None]
    table = pd.DataFrame({"seen": cells, "x": np.arange(len(cells)) + 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        full = Imputer("marginal").fit_transform(table)
    assert full["seen"].tolist()[:-1] == cells[:-1]
    if name == "nothing":  # of which any kind may be declared
        return
    with pytest.raises(TableError, match=r"Column 'seen': got no dates, but date expects dates"):
        infer_schema(table, kinds={"seen": "date"})


def test_objects_of_dates_in_an_array_stay_dates_and_others_are_no_variable():
    table = np.array([[day, x] for day, x in zip(DAYS.tolist(), X.tolist(), strict=True)], object)
    table[GONE, 0] = None
    full = Imputer("marginal").fit_transform(table)
    assert {type(cell) for cell in full[:, 0]} == {datetime.date}
    assert (full[~GONE] == table[~GONE]).all()
    utc = datetime.UTC
    for odd in (datetime.time(12), datetime.datetime(2024, 1, 31, tzinfo=utc), b"2024-01-31", "2024-01-31"):
        cells = [*DAYS[:20].tolist(), odd]
        column = inspect_table(pd.DataFrame({"seen": pd.Series(cells, dtype=object), "x": X[:21]}))["seen"]
        assert (column.kind, column.note) == ("ignore", "neither numbers nor texts")


def test_far_dates_are_no_trouble():
    far = np.array(["-0044-03-15", "9999-12-31", "20000-01-01", "NaT"] * 5, "datetime64[D]")[:, None]
    full = Imputer("marginal").fit_transform(far)
    assert not np.isnat(full).any()
    assert infer_schema(far)["x0"].kind == "date"


def test_unreadable_dates_in_new_rows_are_missing_with_a_warning():
    table = pandas_of(pd.Series(DAYS).dt.strftime("%d.%m.%Y"))
    imputer = Imputer("marginal").fit(table)
    new = pd.DataFrame({"seen": ["31.02.2024", "soon", None, "01.02.2024"], "x": [0.0] * 4})
    with pytest.warns(
        EvenlyWarning, match="column 'seen': 2 cells with no number, treated as missing: '31.02.2024', 'soon'"
    ):
        full = imputer.transform(new)
    assert [*full["seen"]][:2] == ["31.02.2024", "soon"]
    # Dates of another type are dates.
    native = pd.DataFrame({"seen": pd.to_datetime(["2024-02-01", None]), "x": [0.0, 0.0]})
    assert imputer.transform(native)["seen"].notna().all()
    numbers = pd.DataFrame({"seen": [1.5, np.nan], "x": [0.0, 0.0]})  # days from the origin
    assert imputer.transform(numbers)["seen"].notna().all()


def test_a_schema_of_dates_is_saved_edited_and_checked(tmp_path):
    table = pandas_of(pd.Series(DAYS).dt.strftime("%d.%m.%Y"))
    schema = infer_schema(table)
    schema.save(tmp_path / "schema.json")
    text = (tmp_path / "schema.json").read_text()
    assert '"kind": "date"' in text
    assert '"origin": "202' in text
    assert Schema.load(tmp_path / "schema.json") == schema
    for old, new, message in (
        ('"origin": "2', '"origin": "x2', "Invalid isoformat"),
        ("%d.%m.%Y", "0 %", "the format '0 %' is none of dates"),
        ("%d.%m.%Y", "%d.%m", "is no pattern"),
    ):
        (tmp_path / "schema.json").write_text(text.replace(old, new))
        with pytest.raises(TableError, match=message):
            Schema.load(tmp_path / "schema.json")
    (tmp_path / "schema.json").write_text(text.replace('"kind": "date"', '"kind": "ignore"'))
    assert Schema.load(tmp_path / "schema.json")["seen"].format is None
    bare = Schema.model_validate({"columns": [{"name": "seen", "kind": "date"}]})
    fitted = LipschitzScaler("lip-none", schema=bare).fit(table).schema_["seen"]
    assert (fitted.format, fitted.origin) == (schema["seen"].format, schema["seen"].origin)
    with pytest.raises(TableError, match="bounds for a column of the kind 'date'"):
        infer_schema(table, bounds={"seen": (0, 1)})


def test_inspection_shows_the_first_and_the_last_date():
    table = NATIVE["pandas"]()
    found = inspect_table(table)["seen"]
    assert (found.kind, found.note, found.n_missing, found.warnings) == ("date", "dates", 12, ())
    first, last = (str(one)[:10] for one in (table["seen"].min(), table["seen"].max()))
    assert found.range[0].startswith(first)
    assert found.range[1].startswith(last)
    constant = pd.DataFrame({"seen": pd.to_datetime(["2024-01-31"] * 4), "x": [0.5, 1.5, 2.5, 3.5]})
    assert inspect_table(constant)["seen"].warnings[0].startswith("constant: every observed cell is 2024-01-31")


def test_declared_classes_of_dates_are_their_texts():
    table = pd.DataFrame({"wave": ["2024-01-31", "2024-06-30"] * 6})
    assert infer_schema(table, kinds={"wave": "categorical"})["wave"].classes == ["2024-01-31", "2024-06-30"]


@given(st.lists(st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1)), min_size=1, max_size=5))
def test_days_and_dates_go_there_and_back(moments):
    array = np.array(moments, "datetime64[us]")
    from evenly.tables.columns import as_column

    days = read_days(as_column("a", array))
    assert (np.abs(make_dates(days) - array) <= np.timedelta64(2, "us")).all()
    exact = [(one - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1) for one in moments]
    np.testing.assert_allclose(days, exact, rtol=0, atol=1e-10)


def test_lazy_frames_pass_dates_through_and_say_so():
    table = pl.DataFrame({"seen": DAYS, "text": [f"{one}" for one in DAYS], "x": X})
    with pytest.warns(EvenlyWarning, match=r"passed_through: 'seen' \(dates or times\)"):
        plain = LipschitzScaler("lip-none").fit(table.lazy())
    assert {one.name: one.kind for one in plain.schema_.columns} == {"seen": "ignore", "text": "ignore", "x": "real"}
    with pytest.warns(EvenlyWarning, match="dates or times, which a lazy frame does not read"):
        LipschitzScaler("lip-none", dates="model").fit(table.lazy())
    for name in ("seen", "text"):
        with pytest.raises(TableError, match=f"Column '{name}': got no dates"):
            LipschitzScaler("lip-none", kinds={name: "date"}).fit(table.lazy())
    in_memory = LipschitzScaler("lip-none", kinds={"seen": "date"}).fit(table.drop("text"))
    with pytest.raises(TableError, match="Column 'seen'"):
        in_memory.transform(table.drop("text").lazy())
