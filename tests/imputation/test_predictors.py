"""A column with predictors of its own is predicted from them alone: by networks, by experts, and in samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer

from evenly import Imputer, TableError, imputation_error, try_imputer

N = 240
PREDICTORS = {"copy": ["x"], "sign": ["x"]}


def repeated_table() -> pd.DataFrame:
    """`copy` and `sign` follow from `source`, and a little from `x`; half of the rows are near-duplicates of others."""
    rng = np.random.default_rng(0)
    half = N // 2
    x, source = rng.normal(size=(2, half))
    source = source + 0.5 * x
    table = pd.DataFrame({"x": x, "source": source, "copy": source + 0.05 * rng.normal(size=half)})
    table["other"] = x - source + 0.2 * rng.normal(size=half)
    table["sign"] = np.where(source > 0.0, "plus", "minus")
    return pd.concat([table, table], ignore_index=True)


HIDDEN = np.random.default_rng(1).random((N, 5)) < np.array([0.05, 0.05, 0.25, 0.1, 0.25])
HOLED = repeated_table().mask(HIDDEN)


def small(**settings: object) -> Imputer:
    return make_imputer(epochs=15, hidden_size=16, n_networks=1, random_state=0, **settings)


@pytest.fixture(scope="module")
def free() -> Imputer:
    return small().fit(HOLED)


@pytest.fixture(scope="module")
def chosen() -> Imputer:
    return small(predictors=PREDICTORS).fit(HOLED)


def outputs(imputer: Imputer, table: pd.DataFrame) -> list[pd.DataFrame]:
    ends = imputer.interval(table, 0.8)
    shares = pd.DataFrame({"copy": imputer.distribution(table)["copy"].mean()})
    return [imputer.transform(table), *imputer.sample(table, 2), *ends, shares]


def test_cells_of_other_columns_change_nothing(chosen):
    """Neither the network nor the joint normal nor near-duplicates look at them."""
    assert chosen.ensemble_.gaussian is not None
    other = HOLED.assign(source=-HOLED["source"], other=HOLED["other"] ** 2)
    for before, after in zip(outputs(chosen, HOLED), outputs(chosen, other), strict=True):
        for name in set(PREDICTORS) & set(before):
            # Samples draw x first in some rows, and it may be predicted from everything.
            rows = HOLED["x"].notna()
            if name == "sign":
                assert before.loc[rows, name].equals(after.loc[rows, name])
            else:
                np.testing.assert_array_equal(before.loc[rows, name], after.loc[rows, name])


def test_cells_of_the_predictors_do_change_it(chosen):
    other = HOLED.assign(x=-HOLED["x"])
    assert not chosen.transform(HOLED)["copy"].equals(chosen.transform(other)["copy"])


def test_near_duplicates_are_compared_in_the_predictors_alone(free, chosen):
    assert free.ensemble_.neighbours is not None
    full = repeated_table()
    errors = [imputation_error(full, one.transform(HOLED), HIDDEN).set_index("column") for one in (free, chosen)]
    assert errors[0].loc["copy", "normalized"] < 0.4
    assert 0.7 < errors[1].loc["copy", "normalized"] < 1.2


def test_other_columns_are_predicted_as_without(free, chosen):
    for name in ("x", "source", "other"):
        np.testing.assert_array_equal(free.transform(HOLED)[name], chosen.transform(HOLED)[name])


def test_weights_of_the_experts_are_chosen_for_the_predictors(free, chosen):
    mine, theirs = (one.ensemble_.calibrations for one in (chosen, free))
    assert mine["copy"] != theirs["copy"]
    assert mine["other"] == theirs["other"]


def test_predictors_are_saved_and_loaded(chosen, tmp_path):
    chosen.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.predictors == PREDICTORS
    for before, after in zip(outputs(chosen, HOLED), outputs(again, HOLED), strict=True):
        pd.testing.assert_frame_equal(before, after)


def test_a_column_without_any_predictor_gets_the_same_everywhere():
    imputer = make_imputer(epochs=2, hidden_size=16, n_networks=1, random_state=0, predictors={"copy": []}).fit(HOLED)
    imputed = imputer.transform(HOLED)["copy"][HOLED["copy"].isna()]
    assert imputed.nunique() == 1


def test_trials_and_arrays_use_them_too():
    numbers = HOLED.drop(columns="sign").to_numpy()
    imputer = make_imputer(epochs=2, hidden_size=16, n_networks=1, random_state=0, predictors={2: [0]})
    assert len(try_imputer(imputer, numbers).columns) == 4
    changed = numbers.copy()
    changed[:, 1] = 0.5
    fitted = imputer.fit(numbers)
    known = ~np.isnan(numbers[:, 0])
    np.testing.assert_array_equal(fitted.transform(numbers)[known, 2], fitted.transform(changed)[known, 2])


@pytest.mark.parametrize(
    ("predictors", "says"),
    [
        (["x"], "predictors = \\['x'\\], but expected a mapping by column"),
        ({"nobody": ["x"]}, "Column 'nobody': got it as a column with predictors"),
        ({"copy": ["nobody"]}, "Column 'nobody': got it as a predictor of 'copy'"),
        ({"copy": ["copy"]}, "Column 'copy': got it as its own predictor"),
        ({"copy": "x"}, "Column 'copy': got predictors 'x', but expected a list of columns"),
        ({"copy": ["when"]}, "Column 'when': got it as a predictor of 'copy', but it is passed through"),
        ({"copy": [["x"]]}, "expected one of"),
    ],
)
def test_predictors_that_mean_nothing_are_refused(predictors, says):
    table = HOLED.assign(when=pd.date_range("2020-01-01", periods=N))
    with pytest.raises(TableError, match=says):
        Imputer("marginal", kinds={"when": "ignore"}, predictors=predictors).fit(table)


def test_models_with_latent_variables_refuse_predictors():
    with pytest.raises(TableError, match=r"predictors with model = 'vae', but it explains all cells .* 'masked'"):
        Imputer("vae", predictors=PREDICTORS).fit(HOLED)
