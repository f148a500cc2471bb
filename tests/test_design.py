"""The page for contributors says what the code is: its folders, its picture, and where things are."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

import evenly

SOURCE = Path(evenly.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "design.md").read_text(encoding="utf-8")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("make_design_picture")


def test_the_page_names_every_folder(script):
    folders = {one.parent.name for one in SOURCE.glob("*/__init__.py")}
    assert {one.name for one in script.read_folders()} == folders
    assert all(f"[`{name}/`]" in PAGE for name in folders)


def test_the_list_of_folders_is_made_from_the_sources(script):
    assert script.page(PAGE, script.read_folders()) == PAGE


def test_the_picture_says_what_the_sources_say(script):
    """Order, purposes and JAX are kept in the file beside the pixels."""
    with Image.open(script.PICTURE) as picture:
        assert json.loads(picture.text["Description"]) == json.loads(script.described(script.read_folders()))


def test_folders_come_in_the_order_of_the_data(script):
    folders = script.read_folders()
    names = [one.name for one in folders]
    assert names[0] == "_support"
    assert names[-1] == "cli"
    assert [one.name for one in folders if one.has_jax] == ["models"]
    assert set(names) >= script.WAY
    passed = [names.index(name) for name in script.PASSED]
    assert passed == sorted(passed)


def test_the_picture_can_be_drawn(script):
    drawn = {text.get_text().replace("\n", " ") for text in script.draw(script.read_folders()).axes[0].texts}
    for one in script.read_folders():
        assert {one.name, one.purpose.replace("`", "")} <= drawn


def table_of_changes() -> list[tuple[str, str]]:
    """What to change, and where, as the page says."""
    section = PAGE.partition("## Where do I change ...?")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [(what.strip(), where) for what, where in rows[2:]]


def test_ten_questions_are_answered():
    assert len(table_of_changes()) == 10


@pytest.mark.parametrize(("what", "where"), table_of_changes(), ids=[what for what, _ in table_of_changes()])
def test_what_is_to_be_changed_is_where_the_page_says(what, where):
    """Every path is there, and every name stands in one of the files before it."""
    paths: list[Path] = []
    for named in re.findall(r"`([^`]+)`", where):
        if "/" in named:
            assert (SOURCE / named).exists()
            paths.append(SOURCE / named)
        else:
            assert any(re.search(rf"\b{named}\b", path.read_text()) for path in paths)
    assert paths
