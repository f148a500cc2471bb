"""Other rows of a unit as inputs: against a search row by row, without leaks, for rows of fit and for new ones."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from evenly import EvenlyWarning, Imputer, TableError, Training, infer_schema
from evenly._support.files import read_tensors, write_tensors
from evenly.evaluation.hidden_cells import HiddenCells
from evenly.imputation.binding import bind
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.panel_keys import encode_units, find_time, guess_key
from evenly.imputation.panels import NO_ROW, Panel
from evenly.imputation.settings import resolve
from evenly.imputation.streaming import Source
from evenly.models import ALWAYS
from evenly.scaling.scaler import LipschitzScaler
from evenly.tables import Column
from evenly.tables.frames import open_table

pytestmark = pytest.mark.filterwarnings("ignore:passed_through")

TINY = Training(epochs=3, n_networks=1, sizes={"hidden_size": 8})


def panel_table(n_people: int = 40, n_years: int = 6, seed: int = 0, *, shuffled: bool = True) -> pd.DataFrame:
    """The wage and the trade depend on the person, noise on nothing; some cells are missing, some keys, too."""
    rng = np.random.default_rng(seed)
    person = np.repeat(rng.permutation(9_000)[:n_people] + 1_000, n_years)
    level = np.repeat(rng.normal(size=n_people), n_years)
    table = pd.DataFrame(
        {
            "person": person,
            "year": np.tile(np.arange(2000, 2000 + n_years), n_people),
            "wage": (level + 0.3 * rng.normal(size=len(level))).round(3),
            "trade": np.repeat(rng.choice(["baker", "joiner", "smith"], n_people), n_years),
            "noise": rng.normal(size=len(level)).round(3),
        }
    )
    for name in ("wage", "trade", "noise"):
        table.loc[rng.random(len(table)) < 0.1, name] = np.nan
    return table.sample(frac=1.0, random_state=seed, ignore_index=True) if shuffled else table


def read(table: pd.DataFrame, key: str = "person", **kinds: str) -> tuple[Panel, list, list]:
    """Return the panel of a table, the specs of its modelled columns and their values."""
    columns = LipschitzScaler("lip-none", kinds=kinds, passthrough="keep", random_state=0).fit(table).columns_
    cells = {one.column.name: own for one, own in zip(columns, open_table(table).columns, strict=True)}
    modelled = [one for one in columns if one.features]
    values = [one.encode(cells[one.column.name])[0] for one in modelled]
    specs = [describe(one, own, binned=True) for one, own in zip(modelled, values, strict=True)]
    column = next(one.column for one in columns if one.column.name == key)
    return Panel.of(column, cells[key], specs, values), specs, values


def encoded(panel: Panel, values: list) -> EncodedTable:
    columns = tuple(map(EncodedColumn, panel.specs, values))
    return EncodedTable(columns, lay_out(panel.specs, panel.plan), None, panel, panel.inputs_of_fit())


def test_each_row_sees_the_cells_before_and_after_it_in_its_unit():
    table = panel_table()
    panel, specs, values = read(table)
    names = [one.name for one in specs]
    assert names == ["year", "wage", "trade", "noise"]
    assert panel.plan.time == 0
    wage = specs[1].inputs(values[1], None)[:, 0].clip(-5.0, 5.0)
    known = ~table["wage"].isna().to_numpy()
    at = panel.plan.n_means + panel.plan.beside.index(1)
    found = panel.inputs_of_fit()[:, [at, at + panel.plan.n_beside]]
    expected = np.zeros((len(table), 2))
    for row in range(len(table)):
        unit = np.flatnonzero((table["person"] == table["person"][row]) & known)
        unit = unit[np.argsort(table["year"][unit])]
        before, after = (unit[side(table["year"][unit], table["year"][row])] for side in (np.less, np.greater))
        if len(before) or len(after):
            sides = wage[before[-1] if len(before) else after[0]], wage[after[0] if len(after) else before[-1]]
            expected[row] = np.array(sides) - wage[known].mean()
    seen = np.abs(expected[:, 0]) > 1e-9
    factor = found[seen, 0] / expected[seen, 0]  # 1, less a little, as evidence is limited
    np.testing.assert_allclose(factor, factor[0], rtol=1e-4)
    assert 0.8 < factor[0] < 1.0
    np.testing.assert_allclose(found, factor[0] * expected, atol=1e-5)


def test_what_says_nothing_counts_as_nothing():
    panel, _, _ = read(panel_table())
    inputs = panel.inputs_of_fit()
    noise, wage = panel.plan.averaged.index(3), panel.plan.averaged.index(1)
    beside = [panel.plan.n_means + k * panel.plan.n_beside + panel.plan.beside.index(3) for k in (0, 1)]
    assert not inputs[:, [noise, *beside]].any()
    assert inputs[:, wage].std() > 0.5


@pytest.mark.parametrize("kind", ["ignore", "categorical"])
def test_held_cells_feed_no_input_of_any_row(kind):
    table = panel_table(12, 20)
    panel, _, values = read(table, person=kind)
    assert (panel.plan.key is None) == (kind == "ignore")
    rng = np.random.default_rng(1)
    held = (rng.random((len(table), len(values))) < 0.15) & ~np.isnan(np.column_stack(values))
    changed = [
        np.where(gone, np.nanmax(own) - own + np.nanmin(own), own) for own, gone in zip(values, held.T, strict=True)
    ]
    other = Panel(panel.key, panel.plan, panel.codes, panel.specs, tuple(changed))
    if panel.plan.key is not None:  # a held key is another one
        codes = np.where(held[:, panel.plan.key], len(panel.key.classes) - 1 - panel.codes, panel.codes)
        other = Panel(panel.key, panel.plan, codes, panel.specs, tuple(changed))
    found = []
    for one, own in ((panel, values), (other, changed)):
        at = encoded(one, own)
        found.append(at.learn_from(at.data(seed=0), held).inputs[:, -panel.plan.width :])
    np.testing.assert_array_equal(*found)
    assert (found[0] != 0.0).any(0).sum() > 5


def test_the_own_cells_of_a_row_feed_none_of_its_inputs():
    table = panel_table()
    panel, _, values = read(table)
    row = int(np.flatnonzero(~table["wage"].isna())[7])
    moved = [own.copy() for own in values]
    moved[1][row] += 0.01  # so little that shrinkage and evidence hardly move
    before, after = panel.inputs_of_fit(), panel.showing(moved).inputs_of_fit()
    assert np.abs(after[row] - before[row]).max() < 2e-4
    mates = np.flatnonzero((table["person"] == table["person"][row]) & (np.arange(len(table)) != row))
    assert (np.abs(after[mates] - before[mates]).max(1) > 5e-4).all()
    others = np.flatnonzero(table["person"] != table["person"][row])
    assert np.abs(after[others] - before[others]).max() < 2e-4


def test_what_tells_the_time_or_the_unit_is_hidden_with_it():
    """Else a row's place among the others would tell a network the year that it has to predict."""
    panel, specs, _ = read(panel_table())
    n = panel.plan.n_means
    owners = [owner for owner, _ in panel.plan.owners]
    assert owners == [ALWAYS] * n + [panel.plan.time] * (panel.plan.width - n)
    assert panel.plan.time not in panel.plan.beside
    keyed, _, _ = read(panel_table(12, 20), person="categorical")
    assert {owner for owner, _ in keyed.plan.owners} == {keyed.plan.key} == {0}
    layout = lay_out(specs, panel.plan)
    assert layout.inputs[-panel.plan.width :] == tuple(owners)


def cells_of(table: pd.DataFrame, name: str = "person"):
    return next(one for one in open_table(table).columns if one.name == name)


def test_rows_of_fit_have_the_inputs_of_training_in_any_order_and_company():
    table = panel_table()
    panel, _, values = read(table)
    some = np.random.default_rng(3).permutation(len(table))[:50]
    found = panel.inputs(cells_of(table.loc[some]), [own[some] for own in values])
    np.testing.assert_array_equal(found, panel.inputs_of_fit()[some])


def test_a_new_row_sees_all_rows_of_its_unit_and_an_unknown_unit_nothing():
    table = panel_table(shuffled=False)
    panel, _, values = read(table)
    row = next(i for i in range(8, 20) if table.loc[i].notna().all())  # with another noise it is none of fit
    new = [own[[row, row]].copy() for own in values]
    new[3] += 0.5
    people = table.loc[[row, row], ["person"]].assign(person=[table["person"][row], 77])
    assert (panel._find(panel.codes[[row, row]], new) == NO_ROW).all()
    known, unknown = panel.inputs(cells_of(people), new)
    assert not unknown.any()
    at = panel.plan.averaged.index(1)
    wage, usual = panel.specs[1].inputs(values[1], None)[:, 0], panel.inputs_of_fit()[row, at]
    away = wage[row] - wage[~np.isnan(values[1])].mean() - usual
    assert 0.0 < (known[at] - usual) / away < 1.0 / 3.0  # its own cell of fit now counts, one of at least four
    text = pd.DataFrame({"person": [str(table["person"][row]), None]})
    np.testing.assert_array_equal(panel.inputs(cells_of(text), new)[0], known)


def guessed(table: pd.DataFrame) -> int | None:
    fitted = LipschitzScaler(passthrough="keep").fit(table).columns_
    return guess_key([one.column for one in fitted], open_table(table).columns)


def test_keys_and_times_are_found_by_what_they_are():
    table = panel_table()
    assert infer_schema(table)["person"].groups
    assert guessed(table) == 0
    assert guessed(table.drop(columns="person")) is None
    texts = pd.DataFrame({"name": [f"p{i // 2}" for i in range(600)], "x": np.arange(600) % 7.5})
    assert guessed(texts) == 0
    assert guessed(texts.assign(name=[f"p{i}" for i in range(600)])) is None  # each once
    _, specs, values = read(table.assign(year=2000 + table.index % 2))
    assert find_time(specs, np.zeros(len(table)), values) is None


def tiny(**settings) -> Imputer:
    return Imputer(training=TINY, random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted() -> Imputer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvenlyWarning)
        return tiny().fit(panel_table())


def test_a_fitted_imputer_uses_the_inputs_of_training(fitted):
    table = panel_table()
    assert fitted.ensemble_.panel.key == Column(
        name="person", kind="categorical", classes=sorted(table["person"].unique().tolist())
    )
    opened = fitted._open_quietly(table)
    np.testing.assert_array_equal(opened.encoded.unit_inputs, fitted.ensemble_.panel.inputs_of_fit())
    full = fitted.transform(table)
    assert full.notna().all().all()
    assert full["person"].tolist() == table["person"].tolist()
    half = fitted.transform(table[100:])
    pd.testing.assert_frame_equal(half, full[100:], check_exact=False, rtol=1e-5)
    unknown = fitted.transform(table.assign(person=5).head(20))
    assert unknown.notna().all().all()


def test_a_saved_imputer_knows_the_units(fitted, tmp_path):
    table = panel_table()
    fitted.save(tmp_path)
    again = Imputer.load(tmp_path)
    new = table.head(30).assign(wage=np.nan, noise=np.nan)
    for one in (table, new):
        pd.testing.assert_frame_equal(again.transform(one), fitted.transform(one), check_exact=True)
        pd.testing.assert_frame_equal(again.sample(one, 1)[0], fitted.sample(one, 1)[0], check_exact=True)


def test_a_file_with_another_panel_is_refused(fitted, tmp_path):
    file = tmp_path / "imputer.safetensors"
    fitted.save(file)
    content, tensors = read_tensors(file, "Imputer")
    codes, values = tensors["panel_codes"], tensors["panel_values"]
    broken = [{"panel_codes": codes + one} for one in (0.5, 1.0, -1.0)] + [{"panel_codes": codes[:-1]}]
    broken += [{"panel_values": one} for one in (values[:, :-1], values[:-1], values + 1.0, values.astype(np.float32))]
    for some in broken:
        edited = tensors | some
        shapes = {name: list(one.shape) for name, one in edited.items()}
        write_tensors(file, content | {"shapes": shapes}, edited)
        with pytest.raises(TableError, match="cannot read it: panel_"):
            Imputer.load(file)
    for plain in ({"time": 9}, {"time": "year"}, {"key": "nobody"}, {"units": []}, {"units": [1]}, {"units": [1] * 40}):
        write_tensors(file, content | {"panel": content["panel"] | plain}, tensors)
        with pytest.raises(TableError, match="cannot read it"):
            Imputer.load(file)


@pytest.mark.more
def test_the_same_seed_gives_the_same_bytes_and_without_a_key_nothing_changes(fitted):
    table = panel_table()
    again = tiny(groups="person").fit_transform(table)
    pd.testing.assert_frame_equal(again, fitted.transform(table), check_exact=True)
    plain = table.drop(columns="person")
    none, auto = (tiny(groups=one).fit(plain) for one in (None, "auto"))
    assert auto.ensemble_.panel is None
    pd.testing.assert_frame_equal(none.transform(plain), auto.transform(plain), check_exact=True)
    off = tiny(groups=None).fit(table)
    assert off.ensemble_.panel is None
    pd.testing.assert_frame_equal(off.transform(table).drop(columns="person"), none.transform(plain), check_exact=True)


@pytest.mark.more
def test_any_column_can_be_the_key(fitted):
    table = panel_table()
    array = np.column_stack([np.arange(60) // 3, np.arange(60.0) % 7])
    assert tiny(groups=0).fit(array).ensemble_.panel.key.name == "x0"
    imputer = tiny(groups="trade").fit(table)
    assert imputer.ensemble_.panel.plan.key is not None
    assert imputer.transform(table).notna().all().all()
    assert tiny(predictors={"wage": ["year"]}).fit(table).ensemble_.panel is None


def test_what_cannot_be_the_key_is_a_clear_error():
    table = panel_table()
    with pytest.raises(TableError, match=r"groups = 'persn'.*expected one of \['person', .*check the spelling"):
        tiny(groups="persn").fit(table)
    with pytest.raises(TableError, match="groups = 3"):
        tiny(groups=3).fit(table)
    with pytest.raises(TableError, match=r"groups = 'person' with model = 'vae'.*'masked'"):
        tiny(model="vae", groups="person").fit(table)
    with pytest.raises(TableError, match="groups = 'person' with predictors"):
        tiny(groups="person", predictors={"wage": ["year"]}).fit(table)


def test_large_files_leave_units_out_with_a_word():
    table = panel_table()
    columns = LipschitzScaler(passthrough="keep").fit(table).columns_
    streamed = Source(table, len(table), [], files=object())
    assert resolve(tiny()).find_key(columns, streamed) is None
    with pytest.warns(EvenlyWarning, match="groups = 'person': rows of large Parquet files"):
        assert resolve(tiny(groups="person")).find_key(columns, streamed) is None


def test_a_trial_has_the_units_of_the_table(fitted):
    table = panel_table().assign(person=lambda one: "person " + one["person"].astype(str))
    imputer = tiny(groups="person", kinds={"person": "ignore"})
    hidden = HiddenCells.choose(imputer, table, 0.1, seed=0)
    shown, groups = hidden.shown_to(imputer)
    assert groups == "person"
    codes = shown.columns[0].numbers
    people = table["person"].to_numpy()
    assert len(np.unique(codes)) == 40
    assert all(len(set(people[codes == code])) == 1 for code in range(40))
    assert np.isnan(hidden.shown.columns[0].numbers).all()
    panel, specs, _ = read(table)
    coded = Panel(encode_units(panel.key, shown.columns[0])[0], panel.plan, codes, panel.specs, panel.values)
    assert coded.bound(Column(name="person", kind="ignore"), cells_of(table), specs).key == panel.key


@pytest.mark.more
def test_an_imputer_of_a_trial_fills_the_table_by_its_own_units():
    table = panel_table().assign(person=lambda one: "person " + one["person"].astype(str))
    imputer = tiny(groups="person", kinds={"person": "ignore"})
    hidden = HiddenCells.choose(imputer, table, 0.1, seed=0)
    own, _ = hidden.fit(imputer)
    bound = bind(imputer, own, open_table(table))
    inputs = own._open_quietly(hidden.shown_to(imputer)[0]).encoded.unit_inputs
    masked = table.mask(hidden.hidden)
    np.testing.assert_array_equal(bound._open_quietly(masked).encoded.unit_inputs, inputs)
    assert inputs.any()


@pytest.mark.more
@pytest.mark.parametrize("shape", ["levels", "walks"])
def test_other_rows_of_a_unit_predict(shape):
    rng = np.random.default_rng(0)
    n_people, n_years = 200, 6
    steps = rng.normal(size=(n_people, n_years))
    level = (np.cumsum(steps, 1) if shape == "walks" else np.repeat(steps[:, :1], n_years, 1)).ravel()
    truth = pd.DataFrame(
        {
            "person": np.repeat(rng.permutation(9_000)[:n_people], n_years),
            "year": np.tile(np.arange(2000, 2000 + n_years), n_people),
            "wage": level + 0.3 * rng.normal(size=len(level)),
            "sex": np.repeat(rng.choice(["f", "m"], n_people), n_years),
        }
    ).sample(frac=1.0, random_state=0, ignore_index=True)
    hidden = rng.random(truth.shape) < 0.2
    hidden[:, :2] = False
    error, wrong = [], []
    for groups in ("auto", None):
        full = Imputer(groups=groups, random_state=0).fit_transform(truth.mask(hidden))
        error.append(np.sqrt(((full["wage"] - truth["wage"])[hidden[:, 2]] ** 2).mean()))
        wrong.append((full["sex"] != truth["sex"])[hidden[:, 3]].mean())
    assert error[0] < 0.7 * error[1]
    assert wrong[0] < 0.1 < wrong[1]
