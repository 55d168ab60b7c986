"""A server, the example's page on the same origin, and tabs of one browser.

The browser takes a second to start, so all tests of a process share it, and with it the event loop that it belongs to.
"""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.chromium import chromium
from tests.browser.windows import PATIENCE_MS, Windows
from tests.command_line import ROOT, clean_environment, running
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

FOLDER = Path(__file__).parent

expect.set_options(timeout=PATIENCE_MS)  # for each module, whichever are run: else five seconds

_ADDRESS = re.compile(r"Running on (\S+)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder in the event loop of the session."""
    for item in items:
        if item.path.is_relative_to(FOLDER) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@contextmanager
def served(server: Server, folder: Path) -> Iterator[str]:
    """Serve the example's page, which passes its requests on to ``server``, and yield its address."""
    command = (sys.executable, "-u", ROOT / "examples" / "browser" / "serve.py", server.address, "0")
    with running(*command, folder=folder, env=clean_environment()) as program:
        program.until(lambda: _ADDRESS.search(program.out))
        yield _ADDRESS.search(program.out)[1]  # type: ignore[index]  # it was waited for
        assert program.interrupt() == 0
        assert program.err == ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with frequent heartbeats and a short ``retry:``."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2", "--retry-ms", "100") as running:
        yield running


@pytest.fixture(scope="module")
def site(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(server, tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Start a browser for all tests of this process."""
    async with chromium() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: Server) -> AsyncIterator[Api]:
    async with Api(server) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser) -> AsyncIterator[Page]:
    """Open an empty tab with a storage of its own. The test fails if a script in it fails."""
    failures: list[str] = []
    page = await browser.new_page()
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.set_default_timeout(PATIENCE_MS)
    yield page
    await page.close()  # and its context, which is of this page alone
    assert failures == []


@pytest.fixture(scope="session")
def site_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start one server for all tests of the views People and Operations and of the page of the API."""
    variables = {"STREAM_SERVER_LIMITS": "off", "STREAM_SERVER_WEBHOOK_NETWORKS": "127.0.0.1"}
    with Server(tmp_path_factory.mktemp("people"), variables=variables) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def all_windows(browser: Browser, site_server: Server) -> Windows:
    return Windows(browser, site_server)


@pytest_asyncio.fixture(loop_scope="session")
async def windows(all_windows: Windows) -> AsyncIterator[Windows]:
    """Open windows of the console. None of them may have failed at the end of the test."""
    yield all_windows
    await all_windows.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site_api(site_server: Server) -> AsyncIterator[Api]:
    async with Api(site_server) as api:
        yield api
