"""The release: the version is said in one place, and all who repeat it agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evenly

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
RELEASES = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", CHANGELOG, re.MULTILINE)
"""Versions and dates of the changelog, the newest first; above them may be what is not released yet."""


def test_the_version_is_that_of_the_newest_release_in_the_changelog():
    assert evenly.__version__ == RELEASES[0][0]


def test_every_heading_of_the_changelog_is_a_release_or_what_is_not_released():
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert [one for one in headings if one != "Unreleased"] == [f"{version} ({date})" for version, date in RELEASES]
    assert "Unreleased" not in headings[1:]


def test_releases_stand_in_their_order():
    ordered = [(tuple(map(int, version.split("."))), date) for version, date in RELEASES]
    assert ordered == sorted(ordered, reverse=True)


def test_what_is_cited_is_the_newest_release():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = [re.search(rf"^{key}: (.+)$", text, re.MULTILINE)[1] for key in ("version", "date-released")]
    assert tuple(cited) == RELEASES[0]


@pytest.mark.parametrize("page", ["README.md", "docs/start/install.md"])
def test_a_page_that_names_the_wheel_names_that_of_this_version(page):
    text = (ROOT / page).read_text("utf-8")
    assert set(re.findall(r"evenly-([\w.]+)-py3-none-any\.whl", text)) == {evenly.__version__}
    assert set(re.findall(r"Version (\d[\w.]*\w)", text)) == {evenly.__version__}


def test_the_project_takes_the_version_from_the_file():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in text
    assert 'path = "src/evenly/_version.py"' in text
