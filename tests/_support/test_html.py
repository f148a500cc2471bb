"""Tables in HTML: escaped, cut, and with bars of the right length."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from evenly import LipschitzScaler, Trial, diagnose, infer_schema
from evenly._support import Bar, bars, html_table
from evenly.evaluation.trial_results import ColumnTrial

HOSTILE = "<script>alert('x')</script>"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def tags(text):
    parser = Tags()
    parser.feed(text)
    return parser.found


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({HOSTILE: rng.choice(["<b>", "&amp;"], 60), "b": rng.normal(size=60)})


def test_what_comes_from_data_is_escaped_everywhere(table):
    trial = Trial((ColumnTrial(HOSTILE, "binary", "error rate", 5, 0.5, 0.4, 0.6, 0.5, None, ()),), 0.1, "m", "n", 0.0)
    scaler = LipschitzScaler("lip-gamma").fit(table)
    shown = [
        html_table(HOSTILE, [HOSTILE], [[HOSTILE], [Bar(HOSTILE, 0.5)]]),
        infer_schema(table)._repr_html_(),
        scaler._repr_mimebundle_()["text/html"],
        trial._repr_html_(),
        diagnose(table, train=False)._repr_html_(),
    ]
    for text in shown:
        assert HOSTILE not in text
        assert "&lt;script&gt;" in text


def test_rows_beyond_the_first_are_counted():
    text = html_table("", ["n"], [[str(k)] for k in range(100)])
    assert tags(text).count("tr") == 61
    assert "and 40 more rows" in text


@pytest.mark.parametrize("share", [-1.0, 0.25, 7.0, float("nan")])
def test_bars_stay_inside_of_their_cell(share):
    (width,) = re.findall(r"height:0.6em;width:(-?[\d.]+)em", html_table("", ["n"], [[Bar("1", share)]]))
    assert 0.0 <= float(width) <= 6.0


def test_numbers_below_0_have_no_bar():
    assert [one.share for one in bars([-1.0, 4.0, float("inf")])] == [0.0, 1.0, 0.0]


def test_doubtful_columns_are_shown_first(table):
    schema = infer_schema(table)
    schema.columns[1].confidence = "doubtful"
    text = schema._repr_html_()
    assert text.index(">b<") < text.index("&lt;script&gt;")
