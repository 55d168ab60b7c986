"""The console, the page of the API and the guide below a path of a proxy, which the server need not know."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin

import pytest
from playwright.async_api import Browser, Page, Response, expect

from tests.browser.windows import opened, sign_in_link
from tests.end_to_end.api import Api, mint
from tests.end_to_end.nginx import Nginx, find_nginx, with_locations
from tests.end_to_end.server import Server

pytestmark = [pytest.mark.extended, pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")]

PASSED_ON = (
    "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; "
    "proxy_set_header Host $http_host; proxy_buffering off; proxy_set_header X-Forwarded-Prefix /elsewhere;"
)
"""What a proxy passes on for WebSockets, and a header that names another path: nobody may believe it."""

LOCATIONS = {"/some/path/": PASSED_ON, "/plain/": ""}
"""The second is what a person writes first: without WebSockets, and with the proxy's own name as the host."""


LOADED = """() => [
  performance.getEntriesByType("resource").map(entry => entry.name).filter(name => name.endsWith(".js")).sort(),
  [...document.querySelectorAll("link[rel=modulepreload], script")].map(({ href, src }) => href ?? src).sort(),
]"""
"""Returns the addresses of the scripts that were loaded, and of those that the page names."""


@dataclass(frozen=True)
class Below:
    """A server as its clients reach it. A window holds everything outside of ``address`` for foreign."""

    address: str
    redis_url: str


@pytest.fixture(scope="module")
def proxy(site_server: Server) -> Iterator[Nginx]:
    with Nginx(with_locations({path: (site_server.address, more) for path, more in LOCATIONS.items()})) as nginx:
        yield nginx


def below(proxy: Nginx, server: Server, path: str) -> Below:
    return Below(proxy.address + path.rstrip("/"), server.redis_url)


def note_failures(page: Page) -> list[str]:
    failed: list[str] = []

    def see(response: Response) -> None:
        if response.status >= 400:
            failed.append(f"{response.status} {response.url}")

    page.on("response", see)
    return failed


DRAWINGS = "performance.getEntriesByName(new URL('console/icons.json', location).href).map(one => one.initiatorType)"


async def test_all_pages_work(browser: Browser, proxy: Nginx, site_server: Server, site_api: Api) -> None:
    """Sign-in, a column over a WebSocket, People, Operations, and a request that the page of the API sends."""
    uid = await site_api.user()
    server = below(proxy, site_server, "/some/path/")
    async with opened(server, browser) as window:
        page = window.page
        failed, sockets = note_failures(page), list[str]()
        page.on("websocket", lambda socket: sockets.append(socket.url))
        await window.follow(await sign_in_link(server, uid))
        loaded, named = await page.evaluate(LOADED)
        assert loaded == named  # so no round trip is lost to a module that only another module names
        await expect(page.locator(".tools .icon path").first).to_have_attribute("d", re.compile("M"))
        assert await page.evaluate(DRAWINGS) == ["link"]  # they are asked for before the modules, and once
        column = await window.add_column("stollen")
        await site_api.post(uid, "stollen below a path")
        await expect(column.locator(".post")).to_contain_text("below a path")
        assert sockets
        assert {socket.partition("?")[0] for socket in sockets} == {f"{server.address}/v1/stream".replace("http", "ws")}
        await window.go("#/people", "stollen below a path")
        await window.go("#/operations", "Workers")
        await page.get_by_role("link", name="API", exact=True).click()
        await expect(page.locator(".views a", has_text="Operations")).to_have_attribute("href", "./#/operations")
        loaded, named = await page.evaluate(LOADED)
        assert loaded == named
        await page.evaluate("location.hash = '#server_liveness'")
        form = page.get_by_role("form", name="Try GET /healthz")
        await expect(form.locator(".docs-curl")).to_have_text(f"curl -sS '{server.address}/healthz'")
        await form.get_by_role("button", name="Send GET").click()
        await expect(form.locator(".docs-answer")).to_contain_text('"alive": true')
        await page.get_by_role("link", name="stream-server").click()
        await expect(page.locator(".column-head", has_text="stollen")).to_have_count(1)  # it is kept, as the session is
        assert page.url.startswith(f"{server.address}/")
        kept = await page.evaluate("Object.keys(localStorage).filter(key => !key.endsWith('/some/path'))")
        assert not {"stream-server.session", "stream-server.columns"}.intersection(kept)  # another path has its own
        assert (failed, window.failures) == ([], [])


async def test_a_proxy_without_web_sockets_is_enough(
    browser: Browser, proxy: Nginx, site_server: Server, site_api: Api
) -> None:
    uid = await site_api.user()
    server = below(proxy, site_server, "/plain/")
    async with opened(server, browser) as window:
        window.expects_refusals = True
        await window.follow(await sign_in_link(server, uid))
        await expect(window.page.locator(".column .state").first).to_have_text(re.compile("live"))
        assert window.failures == []


async def test_addresses_that_the_server_gives_hold_there(proxy: Nginx, site_server: Server, site_api: Api) -> None:
    """The document names its server relative to itself, and redirects are relative too."""
    address = below(proxy, site_server, "/some/path/").address
    document = (await site_api.call("GET", f"{address}/openapi.json")).json
    assert urljoin(f"{address}/openapi.json", document["servers"][0]["url"] + "/healthz") == f"{address}/healthz"
    for path, page in {"/docs/": "/docs", "/docs/guide": "/docs", "/console/": "/", "/console/index.html": "/"}.items():
        answer = await site_api.call("GET", address + path, allow_redirects=False)
        assert urljoin(address + path, answer.headers["Location"]) == address + page, path


async def test_a_setting_names_the_path(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Then new objects are named below it, and the page may open a WebSocket although the proxy hides the host."""
    folder = tmp_path_factory.mktemp("named")
    hides_host = PASSED_ON.replace("Host $http_host", "Host upstream.invalid")
    with Server(folder) as server, Nginx(with_locations({"/s/": (server.address, hides_host)})) as nginx:
        address = f"{nginx.address}/s"
        server.stop()
        server.flags = ("--public-url", f"{address}/", "--port", server.address.rpartition(":")[2])
        server.start()
        async with Api(server) as api:
            uid = await api.user()
            made = await api.call("POST", f"{address}/v1/statuses", token=mint(uid), json={"message": "x"})
            assert made.headers["Location"] == f"/s/v1/statuses/{made.json['id']}"
            document = (await api.call("GET", f"{address}/openapi.json")).json
            assert document["servers"] == [{"url": address}]
        async with opened(Below(address, server.redis_url), browser) as window:
            await window.follow(await sign_in_link(window.server, uid))
            await expect(window.page.locator(".column .state").first).to_have_text(re.compile("live"))
            assert window.failures == []  # such as one of a refused WebSocket
