"""What an imputer shows in a notebook, and its pictures."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from evenly import Imputer, TableError, plot_missing

HOSTILE = "<img src=x onerror=alert(1)>"
KINDS = {"seen": "date", "same": "ignore"}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "$x$": rng.normal(50.0, 9.0, 80),
            HOSTILE: rng.choice(["a", "<b>"], 80),
            "seen": pd.date_range("2024-01-01", periods=80),
            "same": 1.5,
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


@pytest.fixture
def imputer(table):
    return Imputer("marginal", kinds=KINDS, random_state=0).fit(table)


def test_a_notebook_shows_every_column_and_escapes_names(imputer):
    shown = imputer._repr_mimebundle_()["text/html"]
    assert HOSTILE not in shown
    assert "&lt;img src=x" in shown
    assert all(name in shown for name in ("$x$", "seen", "same"))
    assert "Fitted to 80 rows of 4 columns" in shown
    unfitted = Imputer()._repr_mimebundle_()["text/html"]
    assert "Fitted to" not in unfitted
    assert "Imputer" in unfitted


def test_observed_and_imputed_cells_are_counted_by_bin(imputer, table):
    ax = imputer.plot_imputed("$x$")
    observed, imputed = (patch.get_data() for patch in ax.patches)
    for found in (observed, imputed):
        assert np.sum(found.values * np.diff(found.edges)) == pytest.approx(1.0)  # densities
    n = int(table["$x$"].isna().sum())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"{80 - n} observed",
        f"{n} imputed, drawn at random",
    ]
    assert not ax.title.get_parse_math() or "$" not in ax.title.get_text()


def test_shares_of_classes_are_those_of_the_table(imputer, table):
    ax = imputer.plot_imputed(HOSTILE)
    expected = table[HOSTILE].value_counts(normalize=True).sort_index()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["<b>", "a"]
    assert [bar.get_width() for bar in ax.containers[0]] == pytest.approx(expected[["<b>", "a"]].tolist())


def test_intervals_are_those_of_the_imputer(imputer, table):
    ax = imputer.plot_intervals("$x$", level=0.5)
    low, high = imputer.interval(table, 0.5)
    missing = table["$x$"].isna()
    drawn = np.array([line[:, 1] for line in ax.collections[0].get_segments()])
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(low["$x$"][missing]), abs=1e-5)
    assert sorted(drawn[:, 1]) == pytest.approx(sorted(high["$x$"][missing]), abs=1e-5)


def test_dates_are_on_an_axis_of_dates(imputer):
    for ax in (imputer.plot_imputed("seen"), imputer.plot_intervals("seen")):
        ax.figure.canvas.draw()
        texts = [text.get_text() for text in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        assert any("2024" in text for text in texts)


@pytest.mark.parametrize(
    ("column", "problem"),
    [("income", "expected one of"), ("same", "expected one of"), (HOSTILE, "expected numbers or dates")],
)
def test_a_column_that_cannot_be_drawn_is_named(imputer, column, problem):
    with pytest.raises(TableError, match=problem):
        imputer.plot_intervals(column)


def test_the_table_of_fit_is_remembered_only_while_it_is_there(table):
    imputer = Imputer("marginal", kinds=KINDS).fit(table)
    again = pickle.loads(pickle.dumps(imputer))
    with pytest.raises(TableError, match="give it"):
        again.plot_imputed("$x$")
    assert again.plot_imputed("$x$", table).lines is not None
    assert clone(imputer)._table is None
    own = pd.DataFrame({"a": [1.5, 2.5, np.nan]})
    imputer = Imputer("marginal").fit(own)
    assert imputer.plot_imputed("a") is not None
    del own
    gc.collect()
    with pytest.raises(TableError, match="give it"):
        imputer.plot_imputed("a")


def test_pictures_are_drawn_on_given_axes(imputer, table):
    from matplotlib.figure import Figure

    given = Figure().subplots()
    assert imputer.plot_convergence(ax=given) is given
    assert plot_missing(table, ax=given) is given


def test_patterns_of_missing_cells_are_counted(table):
    ax = plot_missing(table)
    counts = table.isna().value_counts()
    assert [int(text.get_text()) for text in ax.get_yticklabels()] == counts.tolist()[:10]
    cells = ax.collections[0].get_array().reshape(-1, 4)
    for row, text in zip(cells, ax.get_yticklabels(), strict=True):
        assert (table.isna() == row.astype(bool)).all(axis=1).sum() == int(text.get_text())


def test_a_complete_table_has_no_patterns():
    with pytest.raises(TableError, match="without missing cells"):
        plot_missing(pd.DataFrame({"a": [1.5, 2.5]}))
