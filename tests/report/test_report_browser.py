"""The report in a real browser: it opens from a file, draws, sorts, searches, and runs nothing of the table."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import INSTALLED, NOT_INSTALLED, chromium, requested, show, until
from report_parts import HOSTILE, make_diagnosis, make_table, make_trial
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import evenly
from evenly.tables import infer_schema

if not INSTALLED:
    pytest.skip(NOT_INSTALLED, allow_module_level=True)

pytestmark = pytest.mark.more


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    given, filled = make_table()
    kinds = {column.name: column.kind for column in infer_schema(given).columns}
    path: Path = tmp_path_factory.mktemp("report") / "a report.html"
    trials = [make_trial(kinds), replace(make_trial(kinds, 1), model="<b>masked</b>")]
    evenly.write_report(
        path,
        given,
        filled=filled,
        draws=[filled],
        trial=trials[0],
        diagnosis=make_diagnosis(kinds),
        comparison=trials,
        title=HOSTILE[0],
        command="evenly impute '<script>' --seed 7",
    )
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser, report) -> Any:
    """The report, freshly opened in a window of a usual size, light and on the screen."""
    browser.get_log("browser")
    browser.get_log("performance")
    show(browser, 1280)
    browser.get(report.as_uri())
    until(browser, "return typeof window.Plotly === 'object'")
    return browser


def draw_all(browser: Any) -> None:
    """Scroll until every chart came into view once, and wait until it is drawn as wide as its place."""
    for i in range(browser.execute_script("return document.querySelectorAll('.plot').length")):
        place = f"document.querySelectorAll('.plot')[{i}]"
        browser.execute_script(f"{place}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        until(browser, f"return {place}.querySelector('.main-svg')?.clientWidth === Math.floor({place}.clientWidth)")


def click(browser: Any, element: Any) -> None:
    """Click an element where it is, instead of while the page still scrolls to it."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def names(browser: Any) -> list[str]:
    """The columns in the order of the table, those that the search hides left out."""
    script = "return [...document.querySelectorAll('#overview tbody tr')].filter(row => !row.hidden)"
    found: list[str] = browser.execute_script(f"{script}.map(row => row.cells[0].dataset.value)")
    return found


def cards(browser: Any) -> list[str]:
    script = "return [...document.querySelectorAll('.card')].filter(card => !card.hidden)"
    found: list[str] = browser.execute_script(f"{script}.map(card => card.querySelector('.name').textContent)")
    return found


def picture(browser: Any, path: Path) -> None:
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))


def test_it_opens_without_errors_and_without_the_network(page, report):
    draw_all(page)
    assert page.get_log("browser") == []
    assert requested(page) == [report.as_uri()]
    assert not page.find_element(By.ID, "no-charts").is_displayed()


def test_every_chart_draws_its_traces(page):
    draw_all(page)
    drawn = page.execute_script(
        "return [...document.querySelectorAll('.plot')].map(p => [p.dataset.chart,"
        " p.querySelectorAll('.trace, .hm').length, p.querySelectorAll('.trace path, .hm image').length])"
    )
    charts = json.loads(page.execute_script("return document.getElementById('data').textContent"))
    assert len(drawn) == len(charts) > 20
    for (place, n_traces, n_paths), chart in zip(drawn, charts, strict=True):
        least = {"smoothness": 4, "numbers": 3, "curves": 3, "intervals": 3, "bars": 1, "heat": 1}.get(chart["type"], 2)
        assert (n_traces >= least, n_paths > 0) == (True, True), (place, chart["type"], n_traces, n_paths)


def test_charts_out_of_view_are_not_drawn_yet(page):
    until(page, "return document.querySelectorAll('.plot').length > 20")
    assert page.execute_script("return document.querySelectorAll('.plot .main-svg').length") < 20


def test_a_click_sorts_the_table_and_the_cards(page):
    before = names(page)
    button = page.find_element(By.CSS_SELECTOR, "#overview th:nth-child(3) button")
    errors = (
        "return [...document.querySelectorAll('#overview tbody tr')].map(row => Number(row.cells[2].dataset.value))"
    )
    click(page, button)
    found = page.execute_script(errors)
    assert found == sorted(found)
    assert names(page) != before
    assert cards(page) == [name if name.strip() else "(no name)" for name in names(page)]
    click(page, button)
    found = page.execute_script(errors)
    assert found == sorted(found, reverse=True)
    header = page.find_element(By.CSS_SELECTOR, "#overview th:nth-child(3)")
    assert header.get_attribute("aria-sort") == "descending"


def test_the_keyboard_sorts_searches_and_follows_links(page):
    page.execute_script("document.getElementById('search').focus()")
    search = page.switch_to.active_element
    search.send_keys("POSITIVE")
    assert names(page) == ["income"]
    assert cards(page) == ["income"]
    assert page.find_element(By.ID, "found").text == "1 of 14 columns"
    search.send_keys(Keys.CONTROL, "a")
    search.send_keys(Keys.BACKSPACE)
    assert len(names(page)) == len(cards(page)) == 14
    search.send_keys(Keys.TAB)  # the table, which scrolls by itself
    page.switch_to.active_element.send_keys(Keys.TAB)
    button = page.switch_to.active_element
    assert (button.tag_name, button.text.strip()) == ("button", "Column")
    assert page.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    button.send_keys(Keys.ENTER)
    assert page.find_element(By.CSS_SELECTOR, "#overview th").get_attribute("aria-sort") == "ascending"
    assert names(page).index("age") < names(page).index("income") < names(page).index("town")
    link = page.find_element(By.LINK_TEXT, "income")
    link.send_keys(Keys.ENTER)
    until(page, "return document.querySelector(':target').textContent.startsWith('income')")


def test_the_skip_link_comes_first_and_shows_itself(page):
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    link = page.switch_to.active_element
    assert link.text == "Skip to the report"
    link.send_keys(Keys.ENTER)
    assert page.execute_script("return location.hash") == "#main"


def test_hostile_texts_are_shown_and_do_nothing(page):
    draw_all(page)
    with pytest.raises(NoAlertPresentException):
        _ = page.switch_to.alert
    assert page.title == HOSTILE[0]
    assert page.find_element(By.TAG_NAME, "h1").text == HOSTILE[0]
    shown = cards(page)
    assert {name.replace("\x00", "\ufffd") for name in HOSTILE if name.strip()} == {
        name for name in shown if name not in ("age", "income", "children", "smoker", "town", "(no name)")
    }
    assert page.find_elements(By.CSS_SELECTOR, "img, iframe, object, .plot a, main script, b") == []
    labels = page.execute_script("return [...document.querySelectorAll('.plot text')].map(text => text.textContent)")
    texts = {label.strip("\u2068\u2069") for label in labels}
    assert {"<script>alert(1)</script>", "<b>bold</b>", "</script>", "<b>masked</b> lip-none", "(no name)"} <= texts
    assert page.execute_script("return document.querySelectorAll('.plot tspan[style*=bold]').length") == 0


def test_text_that_became_markup_would_still_not_run(page):
    page.execute_script(
        "const div = document.createElement('div'); div.innerHTML = '<img src=x onerror=\"window.ran = 1\">';"
        "document.body.append(div); const script = document.createElement('script');"
        "script.textContent = 'window.ran = 2'; document.body.append(script);"
    )
    until(page, "return document.images.length === 1 && document.images[0].complete")
    assert page.execute_script("return window.ran") is None
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_never_scrolls_the_page_sideways(page, width, tmp_path):
    show(page, width)
    draw_all(page)
    wide, seen = page.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= seen <= width
    too_wide = (
        "return [...document.querySelectorAll('.plot svg.main-svg')].filter(s => s.clientWidth > innerWidth).length"
    )
    assert page.execute_script(too_wide) == 0
    # Nothing is wider than the window, unless it scrolls in a box of its own.
    cut = page.execute_script(
        "return [...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll, svg, .spoken, .plot') &&"
        " one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 200))"
    )
    assert cut == []
    page.execute_script("scrollTo({top: 0, behavior: 'instant'})")
    picture(page, tmp_path / "phone.png")


def test_charts_follow_the_width_of_the_window(page):
    draw_all(page)
    width = "return document.querySelector('.plot .main-svg').clientWidth"
    wide = page.execute_script(width)
    show(page, 500)
    draw_all(page)
    assert page.execute_script(width) <= 500 < wide


def test_dark_mode_changes_the_page_and_the_charts(page, tmp_path):
    page.execute_script("document.getElementById('diagnosis').scrollIntoView({behavior: 'instant'})")
    until(page, "return document.querySelector('.plot .main-svg') !== null")
    look = (
        "const plot = document.querySelector('.plot .main-svg'), style = getComputedStyle;"
        "return [style(document.body).backgroundColor, style(plot).backgroundColor,"
        " style(plot.querySelector('.ytick text')).fill]"
    )
    light = page.execute_script(look)
    picture(page, tmp_path / "light.png")
    show(page, 1280, scheme="dark")
    until(page, f"const now = (() => {{ {look} }})(); return now[1] !== {json.dumps(light[1])}")
    dark = page.execute_script(look)
    assert [one != other for one, other in zip(light, dark, strict=True)] == [True] * 3
    assert dark[0] == dark[1]
    picture(page, tmp_path / "dark.png")
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()


def test_on_paper_every_chart_is_there_in_light_colours(page):
    show(page, 1280, scheme="dark", media="print")
    until(page, "return [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('.main-svg'))")
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(paper) == "rgb(255, 255, 255)"
    hidden = "return ['nav', '.search'].map(one => getComputedStyle(document.querySelector(one)).display)"
    assert page.execute_script(hidden) == ["none", "none"]
    widest = "return Math.max(...[...document.querySelectorAll('.plot .main-svg')].map(svg => svg.clientWidth))"
    assert page.execute_script(widest) <= 680  # the width of a page of A4 or letter within its margins


def test_it_prints_more_than_one_page_with_charts(page, tmp_path):
    printed = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") + printed.count(b"/Type /Page/") > 5
    drawn = page.execute_script(
        "return [...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))"
    )
    assert drawn
    until(page, "return !document.documentElement.classList.contains('printing')")


def test_without_the_means_to_unpack_it_says_so_and_keeps_the_numbers(browser, report):
    source = "delete window.DecompressionStream"
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        browser.get(report.as_uri())
        until(browser, "return !document.getElementById('no-charts').hidden")
        assert "could not draw" in browser.find_element(By.ID, "no-charts").text
        assert browser.find_element(By.CSS_SELECTOR, "#diagnosis details").is_displayed()
        click(browser, browser.find_element(By.CSS_SELECTOR, "#overview th button"))
        assert browser.find_element(By.CSS_SELECTOR, "#overview th").get_attribute("aria-sort") == "ascending"
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def test_without_scripts_the_numbers_are_readable(browser, report):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(report.as_uri())
        assert "Scripts are switched off" in browser.find_element(By.TAG_NAME, "main").text
        assert browser.find_element(By.ID, "overview").is_displayed()
        assert not browser.find_element(By.CSS_SELECTOR, ".search").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
