"""Parquet files that are read piece by piece: spelled numbers and words are read, and filled as they are spelled."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from evenly import EvenlyWarning, Imputer
from evenly.io import parquet
from evenly.tables.formats import get_format

N = 600
PATTERNS = {"price": "$#,##0.00", "rate": "0,0 %", "weight": "0 kg"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    for name, rows in {"MOST_IN_MEMORY": 100, "SAMPLE": 400, "PIECE": 50, "BATCH": 200}.items():
        monkeypatch.setattr(parquet, name, rows)
    rng = np.random.default_rng(0)
    gone = np.arange(N) % 7 == 3
    columns = {
        name: [
            None if hidden else get_format(pattern).write(x)
            for hidden, x in zip(gone, 4e3 * rng.random(N), strict=True)
        ]
        for name, pattern in PATTERNS.items()
    }
    risk = rng.choice(["low", "Low", "medium", "high"], N)
    columns["risk"] = [None if hidden else one for hidden, one in zip(gone, risk, strict=True)]
    table = pl.DataFrame(columns).with_columns(
        x=rng.normal(size=N), seen=pl.date(2024, 1, 1) + pl.duration(days=pl.lit(rng.integers(0, 90, N)))
    )
    table.write_parquet(tmp_path / "table.parquet")
    return table, tmp_path


def test_streamed_files_keep_their_spelling(table):
    plain, folder = table
    with pytest.warns(EvenlyWarning, match="'seen' .dates or times, which a lazy frame does not read"):
        imputer = Imputer("marginal", random_state=0).fit(folder / "table.parquet")
    assert {name: imputer.schema_[name].format for name in PATTERNS} == PATTERNS
    assert (imputer.schema_["risk"].kind, len(imputer.schema_["risk"].classes)) == ("ordinal", 3)
    imputer.transform_file(folder / "table.parquet", folder / "full.parquet")
    full = pl.read_parquet(folder / "full.parquet")
    assert full.equals(imputer.transform(plain))
    for name, pattern in PATTERNS.items():
        form, gone = get_format(pattern), plain[name].is_null()
        assert full[name].filter(~gone).equals(plain[name].filter(~gone))
        assert all(form.write(form.read(cell)) == cell for cell in full[name].filter(gone))
    assert full["seen"].equals(plain["seen"])
