"""A saved imputer: the same bytes when it is loaded, and a clear error for what is no such file."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from imputers import EACH, SMALL, TABLE, make_imputer, numbers_table, quick

from evenly import Imputer, LipschitzScaler, TableError

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


@pytest.mark.parametrize("model", ["marginal", "masked"])
def test_a_file_that_lacks_an_array_or_has_another_shape_is_refused(model, tmp_path):
    from evenly._support.files import read_tensors, write_tensors

    file = tmp_path / "imputer.safetensors"
    make_imputer(model, **SMALL).fit(TABLE).save(file)
    content, tensors = read_tensors(file, "Imputer")
    learned = sorted(name for name in tensors if name.startswith("network0/"))
    for name in (learned[0], learned[-1]):
        for some in ({}, {name: tensors[name][..., :-1]}):
            write_tensors(file, content, {other: tensors[other] for other in tensors if other != name} | some)
            with pytest.raises(TableError, match=rf"cannot read it: .*{name}"):
                Imputer.load(file)


def test_a_damaged_file_is_a_clear_error(tmp_path):
    from evenly._support.files import read_tensors, write_tensors

    quick().fit(numbers_table()).save(tmp_path)
    content, tensors = read_tensors(tmp_path / "imputer.safetensors", "Imputer")
    for name in ("settings", "model", "columns", "calibrations", "scaler", "baseline"):
        broken = {key: value for key, value in content.items() if key != name}
        write_tensors(tmp_path / "broken", broken, tensors)
        with pytest.raises(TableError, match="cannot read it"):
            Imputer.load(tmp_path / "broken")
    write_tensors(tmp_path / "broken", content, {"elbo": tensors["elbo"]})
    with pytest.raises(TableError, match="cannot read it"):
        Imputer.load(tmp_path / "broken")


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
