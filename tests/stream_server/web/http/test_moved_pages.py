"""Addresses that people try lead to the page that they mean, also below a path prefix that only a proxy knows."""

import re
from urllib.parse import quote, urljoin

import pytest
from aiohttp import web

from stream_server.web.http import app_keys
from stream_server.web.http.static_files import StaticFile
from stream_server.web.route import NO_TOKEN
from stream_server.web.routes import ROUTE_TABLE
from tests.stream_server.web.world import World

PAGES = {row.path for row in ROUTE_TABLE if row.method == "GET" and row.scope == NO_TOKEN} - {
    "/", "/docs/site/{path}", "/console/{path}", "/v1/users/available",
}  # fmt: skip
"""The pages for people and programs beside the API."""

MEANT = {
    **{f"{page}/": page for page in PAGES},
    "/console": "/", "/console/": "/", "/docs%2F": "/docs", "/docs/guide": "/docs", "/docs/guide/": "/docs",
    "/docs/guide/start": "/docs", "/docs/anything/at/all.html": "/docs", "/docs/site": "/docs", "/docs/site/": "/docs",
    "/docs/a%2Fb": "/docs", "/docs/%C3%A4": "/docs", "/docs/?page=1": "/docs",
}  # fmt: skip

WITH_SITE = {
    "/docs/": "/docs", "/docs/guide": "/docs/site/README.html", "/docs/site": "/docs/site/README.html",
    "/docs/guide/start": "/docs/site/docs/guide/start.html", "/docs/guide/start/": "/docs/site/docs/guide/start.html",
    "/docs/guide/start.md": "/docs/site/docs/guide/start.html", "/docs/api.html": "/docs/site/docs/api.html",
    "/docs/%C3%A4": "/docs/site/README.html",
}  # fmt: skip
"""Where the documentation is installed."""


HTML = {"Accept": "text/html"}
LINK = re.compile('href="(.*?)"')


async def lead(world: World, meant: dict[str, str]) -> None:
    for path, page in meant.items():
        for method in ("GET", "HEAD"):
            answer = await world.call(method, path, headers=HTML, allow_redirects=False)
            assert (answer.status, answer.body) == (302, b""), (path, answer)
            for prefix in ("", "/some/prefix"):
                there = urljoin(f"https://example.org{prefix}{path}", answer.headers["Location"])
                assert there == f"https://example.org{prefix}{page}", path
        assert (await world.call("GET", page, headers=HTML)).status in {200, 401}


async def test_addresses_lead_to_their_pages(world: World) -> None:
    await lead(world, MEANT)


async def test_pages_of_an_installed_documentation_are_found(world: World, app: web.Application) -> None:
    files = app[app_keys.STATIC_FILES]
    assert isinstance(files, dict)
    names = ("README.html", "docs/guide/start.html", "docs/api.html")
    files |= {f"/docs/site/{name}": StaticFile(b"x", "text/html", "") for name in names}
    await lead(world, WITH_SITE)


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("POST", "/docs/", "no path of this server ends with a slash"),
        ("GET", "/v1/streams/", "no path of this server ends with a slash"),
        ("POST", "/v1/statuses/", "no path of this server ends with a slash"),
        ("GET", "/other/docs/", "no path of this server ends with a slash"),
        ("GET", "/docs//", "no path of this server ends with a slash"),
        ("GET", "/docs/site/absent.html", "there is no such file"),
        ("GET", "/console/absent.js", "there is no such file"),
        ("GET", "/nothing", "no resource at this path"),
    ],
)
async def test_all_other_paths_are_refused(world: World, method: str, path: str, message: str) -> None:
    answer = await world.call(method, path, allow_redirects=False)
    assert (answer.status, answer.json["error"]["message"]) == (404, message)


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1/streams/", "/a/b/c", "/console/absent.js", "/docs/site/absent.html", '/<b>&"']
)
async def test_a_browser_gets_a_page_with_links(world: World, path: str) -> None:
    """The links are relative, so they hold below a path of a proxy. A program gets JSON, see above."""
    for method in ("GET", "HEAD"):
        answer = await world.call(method, path, headers=HTML, allow_redirects=False)
        assert (answer.status, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert answer.headers["Vary"] == "Accept"
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    found = (await world.call("GET", path, headers=HTML)).body.decode()
    base = f"https://example.org/some/prefix{quote(path)}"
    links = {urljoin(base, link).removeprefix("https://example.org/some/prefix") for link in LINK.findall(found)}
    assert links == {"/", "/docs", "/openapi.json", "/console/icon.svg", "/console/tokens.css", "/console/app.css"}
    assert "<b>" not in found


def test_no_path_ends_with_a_slash() -> None:
    assert [row.path for row in ROUTE_TABLE if row.path.endswith("/")] == ["/"]
