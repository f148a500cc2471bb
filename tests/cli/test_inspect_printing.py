"""What `evenly inspect` prints on terminals of several widths."""

import pytest
from commands import run


@pytest.mark.parametrize("width", [60, 80, 150])
def test_names_of_columns_are_whole_however_narrow_the_terminal(width, tmp_path):
    names = ["income_before_tax", "answers"]
    rows = [f"{20 + i % 50},{i * 1000.5},{'strongly ' * (i % 2)}agree" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["age in full years," + ",".join(names), *rows]))
    printed = run("inspect", tmp_path / "a.csv", environment={"COLUMNS": str(width)}).stdout
    assert all(name in printed for name in names)
    assert "years" in printed
    assert ("likelihood" in printed) == (width == 150)
    assert "answers: ordered words" in printed or (width == 150 and "ordered words" in printed)
