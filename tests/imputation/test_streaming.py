"""Tables larger than memory: an imputer learns from Parquet files piece by piece, and fills them piece by piece."""

from __future__ import annotations

import sys
from contextlib import closing
from copy import copy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import polars as pl
import polars.testing
import pytest
from imputers import make_imputer

from evenly import EvenlyWarning, Imputer, LipschitzScaler, TableError, Trial, read_table, write_table
from evenly.cli import main
from evenly.imputation import streaming
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.level_means import fit_means
from evenly.imputation.streaming import BatchStream, ahead, draw_sample
from evenly.io import parquet, write_parts
from evenly.io.parquet import Parquet, Piece, is_dataset, open_parquet
from evenly.models import Plan, Stream, Watchers
from evenly.models.fitting import fit_model
from evenly.models.vae import VAE
from evenly.tables.frames import open_table

N = 6_000
SMALL = {"hidden_size": 32, "n_networks": 1, "kinds": {"note": "ignore"}, "random_state": 0}
TINY = {"model": "vae", "method": "std-none", "hidden_size": 4, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def small_limits():
    """Tables of some thousand rows are streamed, in several pools."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("POOL", 1_500), ("N_STEPS", 4)):
            patch.setattr(streaming, name, value)
        reading = {"MOST_IN_MEMORY": 1_000, "SAMPLE": 4_000, "PIECE": 200, "BATCH": 900, "SIDE_BY_SIDE": 3}
        for name, value in reading.items():
            patch.setattr(parquet, name, value)
        patch.setattr("evenly.imputation.ensemble.CHUNK", 256)
        patch.setattr("evenly.imputation.ensemble.SMALL_CHUNK", 256)
        yield


def mixed_table(n: int = N, seed: int = 0) -> pl.DataFrame:
    """Columns that go together, of every kind, without a missing cell; sorted, as tables often are."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=n))
    return pl.DataFrame(
        {
            "real": 3.0 + 2.0 * x + 0.1 * rng.normal(size=n),
            "positive": np.exp(0.5 * x + 0.1 * rng.normal(size=n)),
            "count": rng.poisson(np.exp(1.0 + 0.5 * x)),
            "binary": x + 0.3 * rng.normal(size=n) > 0.0,
            "class": np.array(["a", "b", "c"])[np.digitize(x, [-0.5, 0.5])],
            "note": [f"row {i} says something else each time, at some length" for i in range(n)],
        }
    )


def with_gaps(table: pl.DataFrame, share: float = 0.2, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return table.with_columns(
        pl.when(pl.Series(rng.random(len(table)) >= share)).then(pl.col(name)).alias(name)
        for name in table.columns
        if name != "note"
    )


def write_files(table: pl.DataFrame, folder: Path, n_files: int = 3, group: int = 450) -> str:
    size = -(-len(table) // n_files)
    for k in range(n_files):
        table[k * size : (k + 1) * size].write_parquet(folder / f"part{k}.parquet", row_group_size=group)
    return str(folder / "*.parquet")


TABLE = mixed_table()
GAPPY = with_gaps(TABLE)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> str:
    return write_files(GAPPY, tmp_path_factory.mktemp("table"))


def errors(full: pl.DataFrame) -> dict[str, float]:
    """Root mean square error over standard deviation of numbers, error rate of classes, where cells were missing."""
    found = {}
    for name in TABLE.columns[:-1]:
        gone = GAPPY[name].is_null()
        true, guess = TABLE[name].filter(gone), full[name].filter(gone)
        if TABLE[name].dtype.is_numeric():
            found[name] = float(((true - guess) ** 2).mean() ** 0.5 / TABLE[name].std())
        else:
            found[name] = float((true != guess).mean())
    return found


@pytest.fixture(scope="module")
def learned(files) -> Imputer:
    return make_imputer(epochs=12, **SMALL).fit(files)


# --- learning -------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_it_learns_from_files_as_it_does_from_a_table_in_memory(learned):
    in_memory = errors(make_imputer(epochs=12, **SMALL).fit_transform(GAPPY))
    streamed = errors(learned.transform(GAPPY))
    alone = errors(
        TABLE.with_columns(
            pl.lit(GAPPY[name].mean() if GAPPY[name].dtype.is_numeric() else GAPPY[name].mode()[0]).alias(name)
            for name in TABLE.columns[:-1]
        )
    )
    for name, error in streamed.items():
        assert error < (0.9 if name == "count" else 0.6) * alone[name]
    # Some 1,200 cells of a column: a mean over five columns is good to a few hundredths.
    assert np.mean([*streamed.values()]) < 1.1 * np.mean([*in_memory.values()])


@pytest.mark.more
def test_towns_are_learned_from_files(tmp_path):
    rng = np.random.default_rng(0)
    town = rng.permutation(5_000) % 200
    effect = rng.normal(size=200)
    truth = effect[town] + 0.3 * rng.normal(size=5_000)
    gone = rng.random(5_000) < 0.2
    names = pl.Series([f"town {code}" for code in town])
    table = pl.DataFrame({"town": names, "income": truth, "x": rng.normal(size=5_000)})
    table = table.with_columns(pl.when(pl.Series(~gone)).then("income").alias("income"))
    imputer = make_imputer(epochs=15, **{**SMALL, "kinds": None}).fit(write_files(table, tmp_path))
    full = imputer.transform(table)
    assert np.sqrt(((full["income"].to_numpy() - truth)[gone] ** 2).mean()) < 0.6 * truth.std()


def test_means_by_class_are_those_of_the_sample_without_held_out_cells():
    table = pl.DataFrame({"town": [f"town {i % 150}" for i in range(900)], "x": np.arange(900.0) % 150})
    columns = LipschitzScaler("lip-none", random_state=0).fit(table).columns_
    values = [one.encode(cells)[0] for one, cells in zip(columns, open_table(table).columns, strict=True)]
    specs = tuple(describe(one, own) for one, own in zip(columns, values, strict=True))
    ensemble = Ensemble(VAE(2, 8), specs, 900)
    encoded = ensemble.encode(values)
    encoded = replace(encoded, levels=fit_means(encoded.specs, encoded.values))
    held = np.zeros((900, 2), bool)
    held[::150, 1] = True  # all numbers of one town
    seen = []

    class Files:
        n_rows = 900

        def shuffled(self, names, rng):
            yield Piece(0, table)

    stream = BatchStream(Files(), ensemble, np.arange(900), 225, 0, 7, encoded)
    for cells in (None, held):
        with stream(0, cells) as opened:
            seen.append(next(opened.parts))
    at = len(encoded.layout.inputs) - 1
    different = [len(np.unique(one.inputs[:, at].round(3))) for one in seen]
    # All towns differ. Without the held-out numbers, the first has the mean of all, which is that of the 76th.
    assert different == [150, 149]


def test_the_history_is_by_epoch_and_of_all_rows(learned):
    history, columns = learned.history_, TABLE.columns[:-1]
    assert len(history["elbo"]) == 12
    assert history["elbo"][-1] > history["elbo"][0]
    assert {name: len(one) for name, one in history["log_likelihood"].items()} == dict.fromkeys(columns, 12)
    in_memory = make_imputer(epochs=0, **SMALL).fit(GAPPY)
    for name in columns:
        assert learned.baseline_[name] == pytest.approx(in_memory.baseline_[name], abs=0.1)
        assert history["log_likelihood"][name][-1] > learned.baseline_[name]


@pytest.fixture(scope="module")
def plain() -> pl.DataFrame:
    """Two columns of numbers, which compile fastest."""
    x = np.random.default_rng(0).normal(size=N)
    return pl.DataFrame({"x": x, "y": np.where(np.arange(N) % 7, 2.0 * x, np.nan)}).fill_nan(None)


@pytest.fixture(scope="module")
def plain_files(plain, tmp_path_factory) -> str:
    return write_files(plain, tmp_path_factory.mktemp("plain"))


@pytest.mark.more
def test_the_same_seed_gives_the_same_bytes(learned, files):
    again = make_imputer(epochs=12, **SMALL).fit(files)
    assert again.transform(GAPPY[:999]).equals(learned.transform(GAPPY[:999]))
    assert again.history_["elbo"].tolist() == learned.history_["elbo"].tolist()
    parts = [together(replace(make_stream(files), seed=seed), 1) for seed in (0, 0, 1)]
    assert np.array_equal(parts[0].targets, parts[1].targets)
    assert not np.array_equal(parts[0].targets, parts[2].targets)


@pytest.mark.more
def test_a_vae_learns_from_files_too(plain_files, plain):
    imputer = make_imputer(epochs=20, **TINY).fit(plain_files)
    assert (imputer.history_["elbo"][-5:] > imputer.history_["elbo"][0]).all()
    assert not imputer.transform(plain)["y"].has_nulls()


def test_a_table_of_few_rows_is_read(plain, tmp_path):
    plain[:500].write_parquet(tmp_path / "few.parquet")
    from_file = make_imputer(epochs=0, **TINY).fit(tmp_path / "few.parquet")
    from_table = make_imputer(epochs=0, **TINY).fit(plain[:500])
    assert from_file.transform(plain[:900]).equals(from_table.transform(plain[:900]))


@pytest.mark.parametrize("model", ["mixture", "factorization"])
def test_models_with_variables_of_rows_need_them_in_memory(files, model):
    with pytest.raises(
        TableError, match=f"got model = '{model}' for 6000 rows of Parquet.* choose 'hivae', 'masked' or 'vae'"
    ):
        Imputer(model).fit(files)


@pytest.mark.more
def test_an_interrupt_keeps_what_was_learned(plain_files, plain, monkeypatch):
    """The interrupt may come while training waits for the next pool."""
    whole, read = Parquet.shuffled, []

    def shuffled(self, names, rng):
        read.append(len(read))
        if len(read) > 3:
            raise KeyboardInterrupt
        return whole(self, names, rng)

    monkeypatch.setattr(Parquet, "shuffled", shuffled)
    with pytest.warns(EvenlyWarning, match=r"interrupted: training ended after \d+ of \d+ parts"):
        imputer = make_imputer(epochs=50, **TINY).fit(plain_files)
    assert len(imputer.history_["elbo"]) == 3
    assert not imputer.transform(plain)["y"].has_nulls()


def test_a_file_that_disappears_while_it_is_read_is_named(plain, tmp_path, monkeypatch):
    write_files(plain, tmp_path)
    monkeypatch.setattr(
        "evenly.imputation.streaming.draw_sample", lambda *args: (_remove(tmp_path), draw_sample(*args))[1]
    )
    with pytest.raises(TableError, match=r"part1\.parquet': .*No such file"):
        make_imputer(epochs=1, **TINY).fit(tmp_path)


def _remove(folder: Path) -> None:
    (folder / "part1.parquet").unlink()


@pytest.mark.more
def test_progress_is_shown(plain_files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("evenly._support.displays.SHORT", 0.0)
    imputer = make_imputer(epochs=1, verbose=2, **TINY).fit(plain_files)
    imputer.transform_file(plain_files, tmp_path / "full.parquet")
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("evenly: training (") for line in lines)
    assert any(line.startswith("evenly: filling ") for line in lines)


# --- rows -----------------------------------------------------------------------------------------------------


def make_stream(files: str, batch_size: int = 128, method: str = "std-none") -> BatchStream:
    source = open_parquet(files)
    kinds = SMALL["kinds"] if "note" in source.names else None
    columns = LipschitzScaler(method, kinds=kinds, random_state=0).fit(source.scan()).columns_
    sample = draw_sample(source, columns, np.random.default_rng(0))
    specs = tuple(describe(one, own) for one, own in zip(columns, sample.values, strict=True))
    return BatchStream(source, Ensemble(VAE(2, 8), specs, source.n_rows), sample.rows, batch_size, 0, 7)


def fitted_columns(batches: BatchStream):
    return [one.fitted for one in batches.ensemble.specs]


def in_order(data) -> np.ndarray:
    rows = np.column_stack([data.inputs, data.targets, data.mask])
    return rows[np.lexsort(rows.T)]


def together(batches: BatchStream, n_parts: int, held=None, skip: int = 0):
    with batches(0, held) as stream:
        parts = list(islice(stream.parts, skip, skip + n_parts))
    assert {len(part.mask) for part in parts} == {batches.batch_size * batches.n_steps}
    return streaming._join(parts)


@pytest.mark.parametrize("method", ["std-none", "lip-gamma"])
def test_an_epoch_is_every_row_once_and_the_last_part_is_filled_up(files, method):
    batches = make_stream(files, method=method)
    values = streaming.encode_piece(fitted_columns(batches), GAPPY.drop("note"))
    expected = batches.ensemble.encode(values).data(seed=7, keys=np.arange(N))
    n_parts = -(-N // 512)
    first, second = (together(batches, n_parts, skip=skip) for skip in (0, n_parts))
    for epoch in (first, second):
        np.testing.assert_array_equal(in_order(epoch.rows(slice(0, N))), in_order(expected))
        np.testing.assert_array_equal(epoch.rows(slice(N, None)).targets, epoch.targets[: n_parts * 512 - N])
    assert not np.array_equal(first.targets, second.targets)
    assert not np.array_equal(first.targets[:N], expected.targets)


def test_row_groups_come_in_random_order_and_take_turns(files):
    source = open_parquet(files)
    first, other = (
        [piece.first for piece in source.shuffled(["real"], np.random.default_rng(seed))] for seed in (0, 1)
    )
    assert sorted(first) == sorted(other) == [piece.first for piece in source.pieces(["real"])]
    assert first != other
    starts = np.array([group.first for group in source.groups])
    owners = np.searchsorted(starts, first, side="right")
    assert all(len(set(owners[at : at + 3])) == 3 for at in range(len(owners) - 6))


def test_held_out_cells_are_not_shown(files):
    batches = make_stream(files)
    held = np.random.default_rng(1).random((len(batches.sampled), batches.ensemble.layout.n_columns)) < 0.3
    n_parts = -(-N // 512)
    shown, all_of_it = (together(batches, n_parts, one).mask[:N, : held.shape[1]].sum(0) for one in (held, None))
    values = streaming.encode_piece(fitted_columns(batches), GAPPY.drop("note"))
    seen = ~np.isnan(np.column_stack([one for one in values if one is not None]))[batches.sampled]
    np.testing.assert_array_equal(all_of_it - shown, (seen & held).sum(0))


def test_no_more_than_two_pools_are_in_memory(files, monkeypatch):
    read, whole = [0], Parquet._pieces_of

    def counted(self, group, names):
        for piece in whole(self, group, names):
            read[0] += len(piece.frame)
            yield piece

    monkeypatch.setattr(Parquet, "_pieces_of", counted)
    batches = make_stream(files, batch_size=32)
    read[0], size = 0, 32 * batches.n_steps
    with batches(0, None) as stream:
        for number, part in enumerate(islice(stream.parts, 3 * stream.n_parts)):
            assert len(part.mask) == size
            # A pool holds what is left of the last one, and the piece that made it full.
            assert read[0] - number * size < 2 * (streaming.POOL + parquet.PIECE + size)
    assert read[0] > 2 * N


def test_the_thread_that_reads_ahead_ends_with_its_reader():
    made = []

    def items():
        for i in range(100):
            made.append(i)
            yield i

    with closing(ahead(items())) as numbers:
        assert list(islice(numbers, 3)) == [0, 1, 2]
    assert len(made) <= 4

    def broken():
        yield 1
        raise TableError("nothing", "expected more")

    with pytest.raises(TableError, match="expected more"):
        list(ahead(broken()))


def test_a_sample_knows_the_extremes_and_every_class(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SAMPLE", 50)
    n = 3_000
    rng = np.random.default_rng(0)
    rare = pl.DataFrame(
        {
            "x": rng.normal(size=n),
            "whole": rng.integers(0, 5_000, n).astype(float),
            "class": ["a"] * 1_700 + ["b"] * 2 + ["a"] * (n - 1_702),
            "seldom": [None] * 1_000 + [2.5, 3.5, 9.75] + [None] * (n - 1_003),
        }
    ).with_columns(pl.when(pl.int_range(n) == 2_222).then(0.5).otherwise("whole").alias("whole"))
    source = open_parquet(write_files(rare, tmp_path))
    columns = LipschitzScaler("std-none", kinds={"class": "categorical"}).fit(source.scan()).columns_
    sample = draw_sample(source, columns, np.random.default_rng(0))
    assert 50 <= len(sample.rows) < 120
    assert (np.diff(sample.rows) > 0).all()
    x, whole, classes, seldom = sample.values
    assert (x.min(), x.max()) == (rare["x"].min(), rare["x"].max())
    assert 0.5 in whole
    assert set(classes) == {0.0, 1.0}
    assert {np.nanmin(seldom), np.nanmax(seldom)} == {2.5, 9.75}
    np.testing.assert_array_equal(x, rare["x"].to_numpy()[sample.rows])
    specs = [describe(one, own, binned=True) for one, own in zip(columns, sample.values, strict=True)]
    assert [spec.modelled for spec in specs] == [True] * 4
    assert not specs[1].whole


def test_a_stream_of_the_whole_table_is_training_in_memory():
    rng = np.random.default_rng(0)
    scaler = LipschitzScaler("std-none").fit(rng.normal(size=(256, 3)))
    values = list(rng.normal(size=(3, 256)))
    specs = [describe(one, own) for one, own in zip(scaler.columns_, values, strict=True)]
    layout = lay_out(specs)
    data = EncodedTable(tuple(map(EncodedColumn, specs, values)), layout).data(seed=None)
    plan, watchers = Plan(1e-3, 4, 64), Watchers(lambda shared: 0.0)
    shared, history, *_ = fit_model(VAE(2, 8), layout, data, 0, plan, watchers)
    stream = Stream(iter([data] * 4), 1, 4)
    same, again, *_ = fit_model(VAE(2, 8), layout, data, 0, plan, watchers, stream)
    np.testing.assert_array_equal(history.elbo, again.elbo)
    np.testing.assert_array_equal(shared["mean"]["0"]["weight"], same["mean"]["0"]["weight"])
    # The same visits, two an epoch: what is reported of an epoch is their mean.
    halves = Stream(iter([data] * 4), 2, 4)
    seen = []
    watchers = Watchers(lambda shared: 0.0, lambda epoch, info: seen.append(epoch + 1.0))
    _, by_two, *_ = fit_model(VAE(2, 8), layout, data, 0, Plan(1e-3, 2, 64), watchers, halves)
    np.testing.assert_allclose(by_two.elbo, history.elbo.reshape(2, 2).mean(1), rtol=1e-6)
    assert seen == [0.5, 1.0, 1.5, 2.0]


# --- filling --------------------------------------------------------------------------------------------------


def test_files_are_filled_as_the_table_in_memory_is(learned, files, tmp_path):
    learned.save(tmp_path / "saved")
    Imputer.load(tmp_path / "saved").transform_file(files, tmp_path / "full.parquet")
    again = pl.read_parquet(tmp_path / "full.parquet")
    polars.testing.assert_frame_equal(again, learned.transform(GAPPY), check_exact=True)
    assert again.schema == GAPPY.schema
    assert sorted(one.name for one in tmp_path.iterdir()) == ["full.parquet", "saved"]


def test_a_failure_in_the_middle_leaves_the_old_file(learned, tmp_path):
    odd = GAPPY.with_columns(pl.when(pl.int_range(N) == N - 1).then(np.inf).otherwise("real").alias("real"))
    source = write_files(odd, tmp_path)
    out = tmp_path / "out" / "full.parquet"
    out.parent.mkdir()
    out.write_text("the old one")
    learned = copy(learned).set_params(strict=True)
    with pytest.raises(TableError, match="Column 'real': got infinite values"):
        learned.transform_file(source, out)
    assert [one.name for one in out.parent.iterdir()] == ["full.parquet"]
    assert out.read_text() == "the old one"


def test_columns_are_found_by_name_and_others_left_out(learned, tmp_path):
    more = GAPPY.with_columns(pl.lit(1).alias("new")).select("new", *reversed(GAPPY.columns))
    source = write_files(more, tmp_path)
    with pytest.warns(EvenlyWarning, match=r"left out: \['new'\]"):
        learned.transform_file(source, tmp_path / "full.csv")
    assert pl.read_csv(tmp_path / "full.csv").columns == GAPPY.columns
    with pytest.raises(TableError, match=r"Column 'count': got no such column among \["):
        learned.transform_file(write_files(GAPPY.drop("count"), tmp_path), tmp_path / "full.csv")


@pytest.mark.parametrize("out", ["-", "full.xlsx"])
def test_formats_that_cannot_be_written_part_by_part_are_refused(learned, files, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=r"(standard output|the format 'xlsx') for a table part by part"):
        learned.transform_file(files, out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv.gz", "csv.zst", "jsonl", "arrow", "arrows"])
def test_parts_are_written_as_the_whole_is(form, tmp_path):
    write_parts((GAPPY[k : k + 700] for k in range(0, N, 700)), tmp_path / f"parts.{form}")
    write_table(GAPPY, tmp_path / f"whole.{form}")
    parts, whole = (read_table(tmp_path / f"{name}.{form}") for name in ("parts", "whole"))
    polars.testing.assert_frame_equal(parts, whole, check_exact=True)


# --- files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (TABLE.drop("count"), r"Column 'count': got Int64 in part0\.parquet and no such column in part1\.parquet"),
        (TABLE.with_columns(new=1), r"Column 'new': got no such column in part0\.parquet and Int32 in part1\.parquet"),
        (TABLE.with_columns(pl.col("count").cast(pl.Float64)), r"Column 'count': got Int64 in .* and Float64 in part1"),
        (TABLE.select(reversed(TABLE.columns)), r"got another order in part1\.parquet"),
    ],
)
def test_files_of_other_columns_are_named(second, message, tmp_path):
    TABLE.write_parquet(tmp_path / "part0.parquet")
    second.write_parquet(tmp_path / "part1.parquet")
    with pytest.raises(TableError, match=message):
        Imputer().fit(tmp_path)


def test_anything_but_a_table_is_a_clear_error(tmp_path):
    for path, message in (
        (tmp_path, "the folder .*, which has no file"),
        (tmp_path / "*.parquet", r"the pattern .*\*\.parquet', which matches no file"),
        (tmp_path / "absent.parquet", r"no file .*absent\.parquet"),
    ):
        with pytest.raises(TableError, match=message):
            Imputer().fit(path)
    (tmp_path / "some.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"some\.csv', but expected Parquet, .* write it as Parquet first"):
        Imputer().fit(str(tmp_path / "some.csv"))
    (tmp_path / "cut.parquet").write_text("PAR1 and no more")
    with pytest.raises(TableError, match=r"cut\.parquet': .*expected a whole Parquet file"):
        Imputer().fit(tmp_path / "cut.parquet")
    TABLE[:0].write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(TableError, match=r"empty\.parquet with 0 rows and 6 columns"):
        Imputer().fit(tmp_path / "empty.parquet")


def test_folders_patterns_and_large_files_are_read_piece_by_piece(files, plain, tmp_path):
    (tmp_path / "broken.parquet").write_text("PAR1 and no more")
    plain[:500].write_parquet(tmp_path / "few.parquet")
    plain.write_parquet(tmp_path / "many.parquet")
    plain.write_csv(tmp_path / "many.csv")
    large = [is_dataset(one) for one in (tmp_path, files, tmp_path / "many.parquet")]
    others = [is_dataset(tmp_path / one) for one in ("few.parquet", "broken.parquet", "many.csv", "absent.parquet")]
    assert (large, others) == ([True] * 3, [False] * 4)


def test_an_empty_file_among_others_changes_nothing(tmp_path):
    TABLE[:0].write_parquet(tmp_path / "none.parquet")
    TABLE.write_parquet(tmp_path / "some.pq")
    (tmp_path / "notes.txt").write_text("not a table")
    found = open_parquet(tmp_path)
    assert [path.name for path in found.files] == ["none.parquet", "some.pq"]
    assert pl.concat(found.batches(found.names)).equals(TABLE)
    assert pl.concat([piece.frame for piece in found.shuffled(found.names, np.random.default_rng(0))]).height == N


# --- the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def evenly(monkeypatch, capsys):
    """The command, in this process: what was compiled serves again."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["evenly", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_the_command_fills_files_and_a_saved_imputer_does_the_same(evenly, plain_files, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SAMPLE", 300)
    tried = []

    class Scored:
        """A trial that is not made."""

        @classmethod
        def choose(cls, imputer, table, share, random_state):
            tried.append(table)
            return cls()

        def fit(self, imputer):
            return SimpleNamespace(ensemble_=SimpleNamespace(interrupted=False)), 0.0

        def score(self, imputer, fitted):
            return Trial((), 0.1, "vae", "std-none", 0.0)

    monkeypatch.setattr("evenly.evaluation.assessment.HiddenCells", Scored)
    vae = ("--model", "vae", "--method", "std-none", "--epochs", 1)
    code, out, err = evenly("impute", plain_files, "-o", tmp_path / "full.parquet", "--save", tmp_path / "saved", *vae)
    assert (code, "warning" in err) == (0, False)
    assert "Held-out error on the 10% of known cells" in " ".join(out.split())
    assert [table.n_rows for table in tried] == [300]
    assert tried[0].native.join(plain, on=plain.columns, how="anti", nulls_equal=True).is_empty()
    full = pl.read_parquet(tmp_path / "full.parquet")
    assert full.equals(Imputer.load(tmp_path / "saved").transform(plain))
    assert not full["y"].has_nulls()
    folder = Path(plain_files).parent
    assert evenly("impute", folder, "-o", tmp_path / "again.parquet", "--load", tmp_path / "saved", "-q") == (0, "", "")
    assert pl.read_parquet(tmp_path / "again.parquet").equals(full)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "-"), "got -o - for Parquet files that are read piece by piece"),
        (("-o", "full.csv", "--samples", 2), "got --samples for Parquet files"),
        (("-o", "full.csv", "--report", "report.html"), "got --report for Parquet files"),
        (("-o", "full.csv", "--model", "mixture", "--share", 0), "choose 'hivae', 'masked' or 'vae'"),
    ],
)
def test_options_that_files_do_not_allow_are_refused_in_one_line(
    evenly, plain_files, options, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = evenly("impute", plain_files, *options)
    errors = [line for line in err.splitlines() if "done, about" not in line]  # without progress
    assert (code, out, len(errors)) == (2, "", 1)
    assert message in err
    assert not list(tmp_path.iterdir())


# --- clusters -------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_networks_are_trained_on_a_dask_cluster_to_the_same_bytes(plain):
    distributed = pytest.importorskip("distributed")
    settings = {"epochs": 1, "hidden_size": 4, "n_networks": 2, "random_state": 0}
    here = make_imputer(**settings).fit(plain[:300])
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        there = make_imputer(**settings).fit(plain[:300])
        busy = client.run(lambda: "evenly.models.bbvi" in sys.modules)
    assert list(busy.values()) == [True]
    assert there.transform(plain[:300]).equals(here.transform(plain[:300]))
    assert there.history_["elbo"].tolist() == here.history_["elbo"].tolist()
