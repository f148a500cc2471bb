"""The built site: every link leads somewhere, nothing is loaded from elsewhere, and what is public has its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from built_site import Page, read_pages
from commands import run

import evenly
from evenly.scaling import Outcome

pytest.importorskip("material", reason="the site is built by the group of dependencies `docs`")
pytestmark = pytest.mark.more


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return read_pages(site)


def leads_somewhere(link: str, page: Page, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme:
        return True
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if target not in pages:
        return target.is_file()
    place = unquote(parts.fragment)
    return not place or place.startswith("__") or place in pages[target].places


def test_every_link_leads_to_a_page_and_a_place_in_it(pages):
    own = [page for path, page in pages.items() if path.name != "404.html"]  # that one is served at any depth
    assert not [(one.path.name, link) for one in own for link in one.links if not leads_somewhere(link, one, pages)]


def test_no_page_loads_anything_from_elsewhere(pages, site):
    loaded = {(path.name, one) for path, page in pages.items() for one in page.loads}
    assert loaded
    assert not [one for one in loaded if urlsplit(one[1]).netloc]
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_whatever_a_page_loads_is_there(pages):
    gone = [
        (path.name, one)
        for path, page in pages.items()
        for one in page.loads
        if path.name != "404.html" and not (path.parent / unquote(urlsplit(one).path)).is_file()
    ]
    assert not gone


def test_no_file_of_records_or_python_is_part_of_the_site(site):
    assert not [*site.rglob("*.py"), *site.rglob("*.jsonl"), *site.rglob("*.md")]


def test_search_finds_guides_the_api_and_commands(site):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {one["location"] for one in index}
    assert {"imputer.html", "reference/api/imputation.html#evenly.Imputer"} <= places
    assert any(place.startswith("reference/commands.html#evenly-impute") for place in places)
    assert any("no_spread" in one["text"] for one in index)


def test_every_public_name_is_in_the_reference(pages, site):
    places = {place for path, page in pages.items() if path.parent == site / "reference/api" for place in page.places}
    assert {f"evenly.{name}" for name in evenly.__all__ if not name.startswith("__")} <= places


def test_every_command_and_its_options_are_in_the_reference(site):
    text = (site / "reference/commands.html").read_text(encoding="utf-8")
    commands = re.findall(r"^│ (\w+) ", run("--help", environment={"COLUMNS": "80"}).stdout, re.MULTILINE)
    assert {"impute", "scale", "inspect", "diagnose"} <= {*commands}
    for command in commands:
        assert f"evenly {command}" in text
        for option in set(re.findall(r"--[a-z][a-z-]+", run(command, "--help").stdout)):
            assert option in text, (command, option)


def test_every_outcome_is_in_the_reference_with_its_remedy(site):
    text = (site / "reference/outcomes.html").read_text(encoding="utf-8")
    for outcome in Outcome:
        assert f"<code>{outcome.value}</code>" in text
        assert outcome.remedy.split("`")[0][1:] in text


def test_parts_of_other_pages_are_shown(site):
    text = (site / "results/index.html").read_text(encoding="utf-8")
    assert "tables evenly has less error than any other imputer" in text
    assert "<strong>Does not hold</strong>" in text
