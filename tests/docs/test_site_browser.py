"""The site in a real browser: no error, no request to elsewhere, search, phones, dark mode, keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from browser import INSTALLED, NOT_INSTALLED, chromium, requested, show, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

if not INSTALLED:
    pytest.skip(NOT_INSTALLED, allow_module_level=True)
pytest.importorskip("material", reason="the site is built by the group of dependencies `docs`")
pytestmark = pytest.mark.more

PAGES = ("index.html", "start/five_minutes.html", "schema.html", "results/peers.html", "reference/api/imputation.html")
READY = "return document.documentElement.classList.contains('js') && document.readyState === 'complete'"


class Silent(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Leave the request unsaid."""


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def browser(started) -> Any:
    """The browser, with empty logs and a window of a usual size."""
    started.get("about:blank")
    started.get_log("browser")
    started.get_log("performance")
    show(started, 1280)
    return started


def go(browser: Any, url: str) -> None:
    browser.get(url)
    until(browser, READY)


def search(browser: Any, words: str) -> list[str]:
    """Type words into the search, and return the titles of what it finds."""
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys(words)
    until(browser, "return document.querySelectorAll('.md-search-result__item').length > 0")
    found = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item h1, .md-search-result__item h2")
    return [one.get_attribute("textContent") for one in found]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_errors_and_without_other_hosts(browser, address, page):
    go(browser, address + page)
    assert [one for one in browser.get_log("browser") if "favicon.ico" not in one["message"]] == []
    asked = requested(browser)
    assert asked
    assert [url for url in asked if not url.startswith(address)] == []


def test_search_finds_a_public_name_and_a_guide(browser, address):
    go(browser, address + "index.html")
    assert any("delta_sensitivity" in one for one in search(browser, "delta_sensitivity"))
    assert browser.get_log("browser") == []


def test_search_works_in_a_site_that_is_opened_from_its_folder(browser, site):
    go(browser, (Path(site) / "index.html").as_uri())
    assert any("Multiple imputation" in one for one in search(browser, "multiple imputation"))
    assert [url for url in requested(browser) if not url.startswith("file:")] == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_shows_a_page_without_scrolling_sideways(browser, address, page):
    show(browser, 390)
    go(browser, address + page)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_the_page_follows_dark_mode(browser, address):
    colours = []
    for scheme in ("light", "dark"):
        show(browser, 1280, scheme=scheme)
        go(browser, address + "index.html")
        colours.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    light, dark = (sum(map(int, one.strip("rgb()").split(","))) for one in colours)
    assert light > 600 > 300 > dark


def test_the_keyboard_reaches_content_and_search(browser, address):
    go(browser, address + "schema.html")
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert "md-skip" in browser.switch_to.active_element.get_attribute("class")
    body.send_keys("/")
    until(browser, "return document.activeElement.matches('input.md-search__input')")
    browser.switch_to.active_element.send_keys("outcomes and errors")
    until(browser, "return document.querySelectorAll('.md-search-result__item').length > 0")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    until(browser, "return !location.pathname.endsWith('schema.html')")


def test_a_link_into_a_folded_section_opens_it(browser, address):
    go(browser, address + "results/peers.html")
    folded = "document.querySelector('#time-and-memory').closest('details')"
    assert browser.execute_script(f"return {folded}.open") is False
    go(browser, address + "results/peers.html#time-and-memory")
    browser.refresh()
    until(browser, f"return {folded}.open")
