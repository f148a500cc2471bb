"""What is done to pages on their way into the site: links, folded sections, parts of other pages, the navigation."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="the site is built by the group of dependencies `docs`")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("site_build")


@pytest.fixture
def read(script):
    def on_site(text: str, page: str = "heads.md") -> str:
        place = SimpleNamespace(file=SimpleNamespace(src_uri=page))
        out: str = script.on_page_markdown(text, place, SimpleNamespace(docs_dir=str(DOCS)), None)
        return out

    return on_site


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("heads.md", "[a VAE](../examples/torch_vae.py)", "[a VAE](examples/torch_vae.md)"),
        ("start/choose.md", "[how](../contributing.md)", "[how](../contributing.md)"),
        ("results/paper.md", "[why](../the_paper.md#departures-from-the-paper)", None),
        ("contributing.md", "[the design](docs/design.md)", "[the design](design.md)"),
        ("changelog.md", "[how](docs/results/peers.md#error)", "[how](results/peers.md#error)"),
        ("design.md", "[`tables/`](../src/evenly/tables)", "`tables/`"),
        ("design.md", "[back](../README.md)", "[back](index.md)"),
        ("index.md", "[out](https://doi.org/10.24432/C52P4X)", None),
    ],
)
def test_links_lead_within_the_site(read, page, link, shown):
    assert read(link, page) == (shown or link)


def test_code_is_left_as_it_is(read):
    block = "```python\nlinks = [a](../src/evenly)\n```\n"
    assert read(block) == block


def test_a_link_to_a_file_that_is_not_there_is_told(read, caplog):
    read("[gone](../examples/gone/nothing.txt)")
    assert "which is not there" in caplog.text


def test_sections_after_the_mark_are_folded(read):
    text = read("# Page\n\nThe answer.\n\n<!-- details -->\n\n## How `x` was measured\n\nSo.\n\n## More\n\nMore.\n")
    assert text.startswith("# Page\n\nThe answer.\n")
    assert text.count('<details class="section" markdown="1">') == 2
    assert "<summary>How <code>x</code> was measured</summary>\n\n## How `x` was measured\n\nSo.\n\n</details>" in text


def test_a_page_shows_a_part_of_another(read):
    text = read("<!-- from results/real_tables.md: answer -->\n")
    assert text.startswith("- On ")
    assert "<!--" not in text


def test_outcomes_are_filled_in(read):
    assert "| `no_spread` | The quartiles are equal" in read("<!-- outcomes -->")


def test_a_page_that_the_navigation_does_not_name_goes_to_its_section(script, tmp_path):
    for name in ("index.md", "results/new.md", "guide.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# New\n")
    titles = ("Start here", "Guides", "Results", "Reference")
    nav = [{title: [] for title in (one,)} for one in titles]
    sections = script.sections(nav)
    sections["Start here"].append("index.md")
    sections["Guides"].append({"Examples": []})
    sections["Reference"].append({"API": []})
    script.on_config(SimpleNamespace(nav=nav, extra={}, docs_dir=str(tmp_path)))
    assert sections["Results"] == ["results/new.md"]
    assert sections["Guides"][-1] == "guide.md"
    assert "Imputation" in [title for one in sections["Reference"][0]["API"] for title in one]


def test_readme_fits_on_two_screens():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 100


@pytest.mark.parametrize("name", ["site_start", "site_search", "site_phone"])
def test_pictures_of_the_site_are_small(name):
    assert 10_000 < (DOCS / f"pictures/{name}.png").stat().st_size < 250_000


def test_an_example_is_shown_without_repeating_what_it_says_of_itself(script):
    [page] = [one for one in script.make_example_pages(DOCS.parent) if one.path == "examples/torch_vae.md"]
    assert page.text.startswith("# A VAE of the heart table in PyTorch\n")
    assert page.text.count("beside heads that are written by hand") == 1
    assert "import argparse" in page.text
