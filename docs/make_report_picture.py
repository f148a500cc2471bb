"""Take a screenshot of a report into `docs/pictures/report.png`, by Chromium: the demo's, or a named file."""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PICTURE = Path(__file__).parent / "pictures" / "report.png"
WIDTH, HEIGHT = 1280, 1600
"""Large enough for the summary and the table of columns."""
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def write_demo(folder: Path) -> Path:
    """Run the demo and return the report that it wrote."""
    subprocess.run(
        [sys.executable, "-c", "from evenly.cli import main; main()", "demo", "--out", str(folder)], check=True
    )
    return next(folder.glob("*.html"))


def photograph(report: Path, profile: Path) -> bytes:
    """Return the top of a report as a PNG."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    with webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver")) as browser:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(report.resolve().as_uri())
        time.sleep(5.0)  # until the charts in view are drawn
        return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


def main() -> None:
    """Take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(sys.argv[1]) if len(sys.argv) > 1 else write_demo(Path(folder) / "demo")
        PICTURE.write_bytes(photograph(report, Path(folder) / "profile"))
    print(PICTURE)


if __name__ == "__main__":
    main()
