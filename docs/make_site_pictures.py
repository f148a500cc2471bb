"""Take screenshots of the built site into `docs/pictures`, by Chromium.

Run `make docs` first, then python docs/make_site_pictures.py.
"""

from __future__ import annotations

import base64
import tempfile
import time
from pathlib import Path
from typing import Any

from make_report_picture import FLAGS
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SITE = Path(__file__).parents[1] / "build" / "site"
PICTURES = Path(__file__).parent / "pictures"
SHOTS = (
    ("site_start", "index.html", 1280, 800, "light", ""),
    ("site_search", "the_maths.html", 1280, 800, "dark", "interval"),
    ("site_phone", "results/real_tables.html", 390, 800, "light", ""),
)
"""The picture's name, the page, width and height, the colour scheme, and what is searched for."""


def search(browser: Any, words: str) -> None:
    """Open the search and type words into it."""
    browser.execute_script("document.querySelector('input.md-search__input').focus()")
    browser.switch_to.active_element.send_keys(words)
    time.sleep(3.0)  # until the index is read


def photograph(profile: Path) -> None:
    """Take every picture."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    with webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver")) as browser:
        for name, page, width, height, scheme, words in SHOTS:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            browser.get((SITE / page).as_uri())
            time.sleep(1.0)
            if words:
                search(browser, words)
            taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
            (PICTURES / f"{name}.png").write_bytes(base64.b64decode(taken))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        photograph(Path(folder))
