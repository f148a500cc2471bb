"""`unscale` takes parameters as models have them: rows, draws, natural or usual ones; and refuses what is none."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly import LipschitzScaler, TableError
from evenly.scaling.methods import METHODS

KINDS = {"real": "real", "positive": "positive", "count": "count", "over": "count", "rank": "ordinal"}


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "real": rng.normal(-3.0, 5.0, n),
            "positive": np.where(rng.random(n) < 0.1, 0.0, rng.lognormal(1.0, 0.7, n)),
            "wait": rng.exponential(3.0, n),
            "count": rng.poisson(6.0, n),
            "over": rng.negative_binomial(2, 0.3, n),
            "yes": rng.random(n) < 0.2,
            "rank": rng.integers(1, 4, n),
            "class": rng.choice(["red", "green", "blue", "grey"], n),
        }
    )


@cache
def fitted(method: str) -> LipschitzScaler:
    likelihoods = {"wait": "exponential", "over": "negative binomial"}
    return LipschitzScaler(method, kinds=KINDS, likelihoods=likelihoods).fit(table())


def likelihoods(scaler: LipschitzScaler) -> dict[str, Any]:
    return {one.name: one.likelihood for column in scaler.columns_ for one in column.features}


def varied(method: str, shape: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Usual parameters of every scaled feature, each leading index with others, as an array."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, family in likelihoods(fitted(method)).items():
        usual = np.asarray(family.to_usual(fitted(method).natural_[name]))
        if family.one_per_class:
            raw = usual * np.exp(0.3 * rng.standard_normal((*shape, len(usual))))
            found[name] = raw / raw.sum(-1, keepdims=True)
        elif family.name == "bernoulli":
            found[name] = rng.uniform(0.05, 0.95, (*shape, 1))
        else:
            found[name] = usual * np.exp(0.3 * rng.standard_normal((*shape, len(usual))))
    return found


def by_name(family: Any, usual: Any) -> dict[str, Any]:
    return (
        {"probabilities": usual}
        if family.one_per_class
        else dict(zip(family.usual_names, np.moveaxis(usual, -1, 0), strict=True))
    )


@given(st.sampled_from(sorted(METHODS)), st.lists(st.integers(1, 3), max_size=3), st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_unscaling_a_stack_is_stacking_what_is_unscaled(method, shape, seed):
    scaler, families = fitted(method), likelihoods(fitted(method))
    usual = varied(method, tuple(shape), seed)
    natural = {name: np.asarray(families[name].to_natural(one)) for name, one in usual.items()}
    whole = scaler.unscale(natural)
    named = scaler.unscale({name: by_name(families[name], one) for name, one in usual.items()})
    assert list(whole) == list(table().columns)
    for column, parameters in whole.items():
        for name, got in parameters.items():
            np.testing.assert_allclose(named[column][name], got, rtol=1e-9)
            if name == "shift":
                continue
            assert got.shape == (*shape, *((4,) if column == "class" else (3,) if column == "rank" else ())[: got.ndim])
            for at in np.ndindex(*shape):
                one = scaler.unscale({feature: array[at] for feature, array in natural.items()})
                np.testing.assert_allclose(got[at], one[column][name], rtol=1e-12)


@pytest.mark.parametrize(
    "method", ["lip-gamma", *(pytest.param(one, marks=pytest.mark.more) for one in ("lip-none", "lip-bern"))]
)
@pytest.mark.parametrize("library", ["jax.numpy", "torch"])
def test_arrays_of_other_libraries_stay_what_they_are(method, library):
    xp = pytest.importorskip(library)
    scaler, families = fitted(method), likelihoods(fitted(method))
    usual = varied(method, (2, 3), 0)
    natural = {name: np.asarray(families[name].to_natural(one)) for name, one in usual.items()}
    expected = scaler.unscale(natural)
    for given_as in (natural, {name: by_name(families[name], one) for name, one in usual.items()}):
        theirs = {
            name: {key: xp.asarray(array) for key, array in one.items()} if isinstance(one, dict) else xp.asarray(one)
            for name, one in given_as.items()
        }
        for column, parameters in scaler.unscale(theirs).items():
            for name, got in parameters.items():
                if name != "shift":
                    assert isinstance(got, type(xp.asarray(0.0)))
                    np.testing.assert_allclose(np.asarray(got), expected[column][name], rtol=1e-4)


def test_a_compiled_function_may_unscale():
    jax = pytest.importorskip("jax")
    scaler = fitted("lip-gamma")
    natural = {name: np.broadcast_to(one, (3, *one.shape)) for name, one in scaler.natural_.items()}
    got = jax.jit(lambda given: scaler.unscale(given)["class"]["probabilities"])(natural)
    np.testing.assert_allclose(got, scaler.unscale(natural)["class"]["probabilities"], rtol=1e-4)


def test_a_column_of_several_features_may_be_given_at_once():
    scaler = fitted("lip-gamma")
    names = [one for one in scaler.natural_ if one.startswith("class=")]
    each = {name: np.broadcast_to(scaler.natural_[name], (5, 2)) for name in names}
    expected = scaler.unscale(each)["class"]["probabilities"]
    assert expected.shape == (5, 4)
    together = np.stack(list(each.values()), axis=-2)
    np.testing.assert_array_equal(scaler.unscale({"class": together})["class"]["probabilities"], expected)
    shape, rate = together[..., 0] + 1.0, -together[..., 1]
    got = scaler.unscale({"class": {"shape": shape, "rate": rate}})["class"]["probabilities"]
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    with pytest.raises(TableError, match=r"'class': got parameters of it and of 'class=blue'"):
        scaler.unscale({"class": together, "class=blue": each["class=blue"]})
    with pytest.raises(TableError, match=r"shape of shape \(5, 3\), but expected its 4 features along the last axis"):
        scaler.unscale({"class": {"shape": shape[:, :3], "rate": rate}})
    with pytest.raises(TableError, match=r"natural parameters of shape \(4,\), but expected its 4 features along the"):
        scaler.unscale({"class": np.zeros(4)})


def test_a_parameter_that_all_rows_share_is_given_once():
    got = fitted("lip-none").unscale({"real": {"mean": np.zeros((4, 7)), "std": 1.0}})["real"]
    assert got["mean"].shape == got["std"].shape == (4, 7)


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        # Rows where parameters belong: the first row was taken for the parameter, silently.
        (
            "lip-none",
            {"yes": np.zeros(7)},
            r"'yes': got natural parameters of shape \(7,\), but the bernoulli.* 1 along",
        ),
        ("lip-none", {"yes": np.zeros(7)}, r"Hint: add an axis: array\[\.\.\., None\]"),
        ("lip-none", {"class": np.zeros((7, 3))}, r"'class': got natural .*\(7, 3\).* expects 4 along the last axis"),
        ("lip-gamma", {"count": np.zeros((2, 7))}, r"\(2, 7\), but the gamma .* expects 2.*by name: shape, rate"),
        ("lip-none", {"real": 3.0}, r"'real': got natural parameters of shape \(\)"),
        (
            "lip-none",
            {"real": {"mean": 0.0, "sd": 1.0}},
            r"'real': got the parameters mean, sd, but .*expects mean, std",
        ),
        ("lip-gamma", {"yes": {"probability": 0.3}}, r"the parameters probability.*gamma.*expects shape, rate"),
        ("lip-none", {"real": {}}, "got the parameters none"),
        (
            "lip-none",
            {"real": {"mean": np.zeros((4, 7)), "std": np.ones(5)}},
            r"'real': got mean of shape \(4, 7\), std of shape \(5,\), but expected leading axes of the same shape",
        ),
        ("lip-none", {"real": [[0.0, -1.0], [0.0]]}, "'real': got list that is no array of numbers"),
        ("lip-none", {"real": "0"}, "'real': got natural parameters of shape"),
        ("lip-none", {"real": np.array([0.0, 2.0])}, "got 2 as natural parameter 2, but the normal .*-inf and 0"),
        ("lip-none", {"real": {"mean": 0.0, "std": -2.0}}, "'real': got std = -2, but the normal .* has none such"),
        ("lip-none", {"yes": {"probability": [0.2, 1.5]}}, "'yes': got probability = 1.5"),
        ("lip-none", {"class": {"probabilities": [0.5, 0.2, 0.2, 0.5]}}, "expected probabilities that sum to 1"),
        ("lip-none", {"nope": np.zeros(2)}, "the feature 'nope'"),
    ],
)
def test_what_is_no_parameter_is_refused_with_what_it_was(method, given, says):
    with pytest.raises(TableError, match=says):
        fitted(method).unscale(given)


def test_shapes_that_differ_between_the_features_of_a_column_are_named():
    natural = {name: one for name, one in fitted("lip-gamma").natural_.items() if name.startswith("class=")}
    natural["class=blue"], natural["class=red"] = (np.tile(natural["class=blue"], (n, 1)) for n in (5, 6))
    with pytest.raises(TableError, match=r"'class': got class=blue of shape \(5,\), .*class=red of shape \(6,\), but"):
        fitted("lip-gamma").unscale(natural)


def test_missing_parameters_stay_missing():
    got = fitted("lip-none").unscale({"real": {"mean": [0.0, np.nan], "std": [1.0, 1.0]}})["real"]
    assert np.isnan(got["mean"]).tolist() == [False, True]
