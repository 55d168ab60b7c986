"""The path of Chromium, and the options that start it without a screen and without network requests of its own."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from tests.needed import BROWSER, missing

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

LIGHT = "chromium-headless-shell"
"""Chromium's engine without its windows. The tests take a third less of the processors with it: 94 s and not 135 s of
three files. It keeps no pages for Back."""

ADVICE = "there is no Chromium on PATH: `apt-get install chromium`, or let CHROMIUM name the program"

QUIET = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""Options against further look-ups and downloads that Chromium makes at every start."""


def program(*, keeps_pages: bool) -> str:
    """Return the path of the browser. Skips the test if there is none, or fails it where a browser is required."""
    named = os.environ.get("CHROMIUM", "")
    found = named or next(filter(None, map(shutil.which, NAMES if keeps_pages else (LIGHT, *NAMES))), "")
    if not found:
        missing(ADVICE, BROWSER)
    return found


@asynccontextmanager
async def chromium(*, keeps_pages: bool = False) -> AsyncIterator[Browser]:
    """Start a browser; with ``keeps_pages`` one that keeps pages for Back, which Playwright turns off."""
    without = ["--disable-back-forward-cache"] if keeps_pages else []
    flags = [*QUIET, "--no-sandbox"] if os.geteuid() == 0 else [*QUIET]  # root's Chromium refuses its own sandbox
    path = program(keeps_pages=keeps_pages)  # before the driver, whose Node needs libraries that come with the browser
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=flags, ignore_default_args=without)
        try:
            yield browser
        finally:
            await browser.close()
