"""A real Chromium for tests of pages: started, set to a width and a colour scheme, waited for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
INSTALLED = bool(CHROMIUM and DRIVER)
NOT_INSTALLED = "no Chromium: install the packages chromium and chromium-driver"
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 60.0
"""Seconds to wait for what should be there at once: machines of others may be busy."""


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Start a browser that keeps its logs, with a profile of its own, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def show(browser: Any, width: int, *, scheme: str = "light", media: str = "") -> None:
    """Set the window's width, the colour scheme and the medium."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def until(browser: Any, script: str) -> Any:
    """Wait for what a script returns to be true, and return it."""
    return WebDriverWait(browser, PATIENCE, 0.05).until(lambda driver: driver.execute_script(script), script)


def requested(browser: Any) -> list[str]:
    """Return the addresses that were asked for since the log was read last, but for the browser's own."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    own = ("data:", "blob:", "chrome:", "chrome-untrusted:")  # and the page that the browser starts with
    return [url for url in asked if not url.startswith(own)]
