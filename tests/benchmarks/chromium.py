"""A headless Chromium that opens a report, and what it noticed."""

from __future__ import annotations

import json
import logging
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from local_site import PATIENCE
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
_READY = "return document.documentElement.dataset.ready === 'true'"
# It runs in containers, as root, on machines without a display and without sound.
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run", "--mute-audio"),
)


class Browser:
    """A window of Chromium, driven by Selenium."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, path: Path, *, seconds: float = PATIENCE) -> None:
        """Open the report at *path* and wait until it is all there."""
        self.driver.get(path.absolute().as_uri())
        self.wait(_READY, seconds=seconds)

    def run(self, script: str, *arguments: object) -> Any:
        """Return what the JavaScript *script* returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: object, seconds: float = PATIENCE) -> None:
        """Return once *script* returns something true."""
        self.wait_for(lambda: self.run(script, *arguments), seconds=seconds)

    def wait_for(self, is_true: Callable[[], object], *, seconds: float = PATIENCE) -> None:
        """Return once *is_true* returns something true."""
        WebDriverWait(self.driver, seconds, 0.02).until(lambda _: is_true())

    def emulate(self, *, width: int = 1280, height: int = 900, scale: float = 1, scheme: str = "light") -> None:
        """Have a screen of this size, in CSS pixels, of a user who likes this colour *scheme*."""
        screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def console(self) -> list[str]:
        """Return what the console has said since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the URLs that were requested since this was last asked."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@contextmanager
def chromium(*, language: str = "en") -> Iterator[Browser]:
    """Start a browser in *language*, for as long as the block runs."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for option in (*_OPTIONS, f"--lang={language}", f"--accept-lang={language}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = _started(options)
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def _started(options: webdriver.ChromeOptions) -> webdriver.Chrome:
    """Start a browser. A second time if that fails: drivers allow a fixed time, which is short on a busy machine."""
    try:
        return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    except WebDriverException as error:
        logging.getLogger(__name__).warning("Chromium is started a second time: %s", error)
        return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
