"""Callbacks of a training, and the progress bar."""

from __future__ import annotations

from imputers import numbers_table, quick


def test_progress_names_the_column_that_learns_least(capsys):
    table = numbers_table().rename(columns={"a": "[bold]a[/bold]", "b": "[/b\\"})
    quick(epochs=3, verbose=1).fit(table)
    shown = "".join(capsys.readouterr().err.split())
    assert "3/3epochs" in shown
    assert "worstcolumn[bold]a[/bold](" in shown or "worstcolumn[/b\\(" in shown
    quick(epochs=3).fit(table)
    assert capsys.readouterr() == ("", "")
