"""A saved imputer: the same bytes when it is loaded, and a clear error for what is no such file."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from imputers import EACH, SMALL, TABLE, make_imputer, numbers_table, quick

from evenly import Imputer, LipschitzScaler, TableError
from evenly._support.files import read_tensors, write_tensors

pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.mark.parametrize("name", ["", "some.file"])
def test_a_loaded_imputer_gives_the_same_bytes(fitted, name, tmp_path):
    fitted.save(tmp_path / name)
    file = tmp_path / (name or "imputer.safetensors")
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    again = Imputer.load(tmp_path / name)
    pd.testing.assert_frame_equal(again.transform(TABLE), fitted.transform(TABLE), check_exact=True)
    for one, other in zip(again.sample(TABLE, 2), fitted.sample(TABLE, 2), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    expected = fitted.distribution(TABLE)
    for column, cells in again.distribution(TABLE).items():
        usual, wanted = cells.parameters, expected[column].parameters
        assert usual.keys() == wanted.keys()
        assert all(np.array_equal(usual[each], wanted[each]) for each in usual)
    for one in (again, fitted):
        one.settings = {**one.get_params(deep=False), "training": one.training.get_params()}
    assert again.settings == fitted.settings
    assert again.baseline_ == fitted.baseline_
    assert again.history_["elbo"].tolist() == fitted.history_["elbo"].tolist()
    assert {k: v.tolist() for k, v in again.history_["log_likelihood"].items()} == {
        k: v.tolist() for k, v in fitted.history_["log_likelihood"].items()
    }


def test_a_saved_file_holds_arrays_and_a_text_only(fitted, tmp_path):
    from safetensors import safe_open

    fitted.save(tmp_path)
    with safe_open(tmp_path / "imputer.safetensors", framework="np") as file:
        assert file.metadata().keys() == {"evenly"}
        kinds = {file.get_tensor(name).dtype.kind for name in file.keys()}  # noqa: SIM118  (not a mapping)
    assert kinds <= {"f", "i"}
    with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, IndexError)):  # by the first byte
        pickle.loads((tmp_path / "imputer.safetensors").read_bytes())


def test_a_file_that_is_no_saved_imputer_is_a_clear_error(tmp_path):
    quick().fit(numbers_table()).save(tmp_path)
    whole = (tmp_path / "imputer.safetensors").read_bytes()
    LipschitzScaler().fit(numbers_table()).save(tmp_path / "scaler.json")
    file = tmp_path / "some"
    for content in (b"", b"garbage", 100 * b"{}", whole[:-50], whole[:500], (tmp_path / "scaler.json").read_bytes()):
        file.write_bytes(content)
        with pytest.raises(TableError, match=r"expected a file that Imputer\.save wrote"):
            Imputer.load(file)
    with pytest.raises(TableError, match=r"expected a file that LipschitzScaler\.save wrote"):
        LipschitzScaler.load(tmp_path / "imputer.safetensors")


def test_a_file_that_lacks_an_array_or_has_another_one_is_refused(fitted, tmp_path):
    """Whether the file notes its shapes as they were, or as they are."""
    file = tmp_path / "imputer.safetensors"
    fitted.save(file)
    content, tensors = read_tensors(file, "Imputer")
    learned = sorted(name for name in tensors if name.startswith("network0/"))
    for name in (learned[0], learned[-1]):
        one, others = tensors[name], {other: tensors[other] for other in tensors if other != name}
        broken = [{name: one[..., :-1]}, {name: np.stack([one, one])}, {name: one.astype(np.uint8)}]
        broken += [{}] if one.dtype.kind == "i" else [{}, {name: np.full_like(one, np.nan)}]
        for edited in (others | some for some in broken):
            for shapes in (content["shapes"], {each: list(array.shape) for each, array in edited.items()}):
                write_tensors(file, content | {"shapes": shapes}, edited)
                with pytest.raises(TableError, match=rf"cannot read it: .*({name.split('/')[1]}|network0)"):
                    Imputer.load(file)


@pytest.fixture(scope="module")
def marginal(tmp_path_factory):
    """The content and the arrays of a saved imputer."""
    file = tmp_path_factory.mktemp("marginal") / "imputer.safetensors"
    make_imputer("marginal", n_draws=2).fit(TABLE).save(file)
    return read_tensors(file, "Imputer")


def test_every_part_of_the_content_is_needed(marginal, tmp_path):
    content, tensors = marginal
    for name in content:
        if name not in ("saved", "evenly"):
            write_tensors(tmp_path / "broken", {key: one for key, one in content.items() if key != name}, tensors)
            with pytest.raises(TableError, match="cannot read it"):
                Imputer.load(tmp_path / "broken")
    write_tensors(tmp_path / "broken", content, {"elbo": tensors["elbo"]})
    with pytest.raises(TableError, match="cannot read it"):
        Imputer.load(tmp_path / "broken")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("n_networks", 10**9, "n_networks = 1000000000"),
        ("n_networks", 2, "no arrays of network1"),
        ("n_networks", 0, "an array of more than 0 networks"),
        ("n_rows", 0, "n_rows = 0"),
        ("n_rows", 10**5, "raw"),
        ("model/name", "transformer", "the model 'transformer'"),
        ("model/n_clusters", 3, "the field 'n_clusters'"),
        ("settings/estimate", "best", "estimate = 'best'"),
        ("settings/modle", "vae", "'modle'"),
        ("settings/training/n_draws", 10**9, "n_draws = 1000000000"),
        ("settings/training/sizes", 3, "sizes = 3"),
        ("scaler/seed", "1", "seed = '1'"),
        ("scaler/settings/method", "best", "best"),
        ("columns/0/kind", "unknown", "a column of the kind 'unknown'"),
        ("columns/0/kind", "by_likelihood", "no field|the field"),
        ("columns/0/extent", [1.0], "extent"),
        ("columns/0/centers", [1.0, 2.0], "2 centers"),
        ("columns/0/spreads", [0.0], "spreads"),
        ("columns/0/std", "1", "std = '1'"),
        ("columns/0/std", 0.0, "standard deviation"),
        ("columns/0/bins/low", [], "bins with"),
        ("columns/0/bins/share", [0.5, 0.5], "bins with"),
        ("baseline", {}, "baselines"),
        ("calibrations", {"more": {}}, "calibrations"),
        ("columns", [], "argument"),
    ],
)
def test_nonsense_with_the_right_checksum_is_refused_in_one_sentence(marginal, path, value, message, tmp_path):
    content, tensors = marginal
    edited = part = copy.deepcopy(content)
    *keys, last = (int(key) if key.isdigit() else key for key in path.split("/"))
    for key in keys:
        part = part[key]
    part[last] = value
    write_tensors(tmp_path / "a", edited, tensors)
    with pytest.raises(TableError, match=f"a, saved by .* cannot read it: .*({message})") as caught:
        Imputer.load(tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_experts_that_are_none_are_refused(tmp_path):
    """A matrix that cannot be inverted, bins in another order, an index of other columns."""
    table = np.repeat(np.random.default_rng(0).normal(size=(30, 3)), 2, axis=0)
    table[::7, 0] = np.nan
    file = tmp_path / "a"
    quick().fit(table).save(file)
    content, tensors = read_tensors(file, "Imputer")
    size = len(content["columns"])
    gaussian = {"gaussian_mean": np.zeros(size), "gaussian_precision": np.eye(size)}
    index = {"neighbours": table}

    def load(**arrays):
        some = tensors | gaussian | index | arrays
        write_tensors(file, content | {"shapes": {name: list(one.shape) for name, one in some.items()}}, some)
        return Imputer.load(file)

    load().transform(table)
    singular = np.ones((size, size))
    for name, wrong in (
        ("gaussian_precision", singular),
        ("gaussian_precision", -np.eye(size)),
        ("gaussian_precision", np.eye(size + 1)),
        ("gaussian_precision", np.eye(size, dtype=np.float32)),
        ("gaussian_mean", np.full(size, np.nan)),
        ("neighbours", table[:, :2]),
        ("neighbours", table[:, 0]),
    ):
        with pytest.raises(TableError, match=f"cannot read it: .*{name}"):
            load(**{name: wrong})


def test_a_likelihood_of_ones_own_must_be_given_again(pareto, tmp_path):
    table = numbers_table().assign(b=lambda t: 1.0 + t["b"] ** 2)
    imputer = quick(likelihoods={"b": pareto}).fit(table)
    full = imputer.transform(table)
    assert not full.isna().any(axis=None)
    imputer.save(tmp_path)
    with pytest.raises(TableError, match="the likelihood 'pareto' of your own"):
        Imputer.load(tmp_path)
    again = Imputer.load(tmp_path, likelihoods=[pareto])
    pd.testing.assert_frame_equal(again.transform(table), full, check_exact=True)
    assert again.likelihoods == {"b": pareto}


def test_classes_that_json_cannot_hold(tmp_path):
    table = pd.DataFrame({"c": pd.cut(np.linspace(0.0, 1.0, 30), 3), "v": np.random.default_rng(0).normal(size=30)})
    table.loc[:4, "c"] = np.nan
    imputer = quick().fit(table)
    full = imputer.transform(table)
    assert full["c"].dtype == table["c"].dtype
    assert not full["c"].isna().any()
    imputer.save(tmp_path)
    pd.testing.assert_frame_equal(Imputer.load(tmp_path).transform(table), full, check_exact=True)


@pytest.mark.parametrize("model", EACH)
def test_a_likelihood_of_ones_own_is_learned_saved_and_loaded_by_every_model(model, pareto, tmp_path):
    rng = np.random.default_rng(0)
    table = np.column_stack([1.0 + rng.pareto(3.0, 60), rng.normal(size=60)])
    table[:4, 0] = np.nan
    imputer = make_imputer(model, likelihoods={"x0": pareto}, n_networks=1, **SMALL).fit(table)
    full = imputer.transform(table)
    assert np.isfinite(full).all()
    assert (full[:4, 0] >= 1.0).all()
    imputer.save(tmp_path / "own")
    again = Imputer.load(tmp_path / "own", likelihoods=[pareto])
    np.testing.assert_array_equal(again.transform(table), full)
