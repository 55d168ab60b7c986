"""The documentation beside the console: absent until `make site` installs it, then read and searched in a browser."""

import asyncio
import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.async_api import Browser, expect

from stream_server.web.http.static_files import SITE_POLICY
from tests.browser import axe
from tests.browser.test_below_a_path import Below
from tests.browser.windows import DESKTOP, PHONE, Reachable, opened
from tests.end_to_end.nginx import Nginx, find_nginx, with_locations
from tests.end_to_end.server import Server
from tests.packages.built import build_once
from tests.program import ROOT
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended

SITE = "/docs/site"

LOOKS: tuple[dict[str, Any], ...] = (
    {"color_scheme": "light", "viewport": DESKTOP},
    {"color_scheme": "dark", "viewport": PHONE, "has_touch": True, "is_mobile": True},
)

WIDE = ("README", "docs/api", "docs/figures", "docs/guide/features", "docs/reference/settings")
"""Pages with wide tables, drawings, code or pictures."""

NOT_IN_CONTENTS = {"README.html", "index.html", "search.html"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Install the server into a folder of its own, without the documentation."""
    for name in ("filters", "stream_server"):
        shutil.copytree(ROOT / name, tmp_path / "lib" / name, ignore=shutil.ignore_patterns("__pycache__", "site"))
    return tmp_path / "lib"


def serve(package: Path, folder: Path) -> Server:
    """A server of this installation, which does not look into the folder of the project."""
    return Server(folder, variables={"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"})


def contents(readme: str) -> list[str]:
    """The pages that the first point of the README's list names, in their order."""
    point = readme.partition("## Documentation\n")[2].split("\n- ")[1]
    return [f"{path}.html" for path in re.findall(r"\]\((.*?)\.md\)", point)]


def pages(site: Path) -> set[str]:
    """The pages of the site, which the contents must list."""
    return {str(file.relative_to(site)) for file in site.rglob("*.html")} - NOT_IN_CONTENTS


def check_each_file(server: Server, site: Path) -> None:
    """Read each file of the site from the server."""
    with requests.Session() as session:
        for file in filter(Path.is_file, site.rglob("*")):
            answer = session.get(f"{server.address}{SITE}/{file.relative_to(site)}", timeout=PATIENCE)
            assert (answer.status_code, answer.content) == (200, file.read_bytes()), file
            assert answer.headers["Content-Security-Policy"] == SITE_POLICY


def check_absence(server: Server) -> None:
    assert "Guide" not in requests.get(f"{server.address}/docs", timeout=PATIENCE).text
    assert requests.get(f"{server.address}{SITE}/README.html", timeout=PATIENCE).json()["error"]["code"] == "not_found"


async def read(browser: Browser, server: Reachable, site: Path, look: dict[str, Any]) -> None:
    """Go from the console to the documentation, search it, and follow what is found: no error, no other host."""
    async with opened(server, browser, **look) as window:
        page = window.page
        await window.open("/docs")
        await page.get_by_role("link", name="Guide").click()
        await expect(page.locator("article h1")).to_have_text(re.compile("^stream-server"))
        background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)[:3]))
        assert brightness > 600 if look["color_scheme"] == "light" else brightness < 150
        links = await page.locator(".sidebar-tree a").evaluate_all("links => links.map(link => link.href)")
        paths = [link.removeprefix(f"{server.address}{SITE}/") for link in links]
        assert sorted(paths) == sorted(pages(site))
        in_order = contents((ROOT / "README.md").read_text(encoding="utf-8"))
        assert len(in_order) > 10
        assert paths[: len(in_order)] == in_order
        for name in WIDE:
            await page.goto(f"{server.address}{SITE}/{name}.html")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        await page.goto(f"{server.address}{SITE}/search.html?q=heartbeat")
        await page.locator("#search-results a", has_text="The wire").first.click()
        await expect(page.locator("article .highlighted").first).to_have_text(re.compile("heartbeat", re.IGNORECASE))
        assert window.failures == []


@pytest.mark.timeout(900)  # it may build the packages, and install Sphinx first
async def test_it_is_read_and_searched_where_it_is_installed(
    browser: Browser, package: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The pages of the site that a wheel brings need no other host, under a strict policy."""
    with serve(package, tmp_path / "without") as server:
        check_absence(server)
    site = package / "stream_server" / "site"
    shutil.copytree((await asyncio.to_thread(build_once, tmp_path_factory)).site, site)
    with serve(package, tmp_path / "with") as server, ExitStack() as stack:
        check_each_file(server, site)
        shown: list[Reachable] = [server, server]
        if find_nginx() is not None:  # then the second look is below a path of a proxy
            proxy = stack.enter_context(Nginx(with_locations({"/some/path/": (server.address, "")})))
            shown[1] = Below(f"{proxy.address}/some/path", server.redis_url)
        for place, look in zip(shown, LOOKS, strict=True):
            await read(browser, place, site, look)
        faults = []
        for look in LOOKS:
            async with opened(server, browser, bypass_csp=True, **look) as window:
                await window.page.add_init_script(axe.source())
                for name in ("README", "docs/guide/features"):
                    await window.page.goto(f"{server.address}{SITE}/{name}.html")
                    faults += [f"{name} {look['color_scheme']}: {fault}" for fault in await axe.faults(window.page)]
        assert not faults, "\n".join(faults)
