"""A server, the example's page on the same origin, and a tab of a browser."""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.browser.chromium import chromium
from tests.browser.windows import Windows
from tests.command_line import ROOT, clean_environment, running
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

_ADDRESS = re.compile(r"Running on (\S+)")


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


@pytest.fixture
async def tab() -> AsyncIterator[Page]:
    """Open an empty tab. The test fails if a script in it fails."""
    failures: list[str] = []
    async with chromium() as browser:
        page = await browser.new_page()
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.set_default_timeout(20_000)
        yield page
    assert failures == []


@pytest.fixture(scope="session")
def site_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start one server for all tests of the views People and Operations and of the page of the API."""
    with Server(tmp_path_factory.mktemp("people"), variables={"STREAM_SERVER_LIMITS": "off"}) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def all_windows(site_server: Server) -> AsyncIterator[Windows]:
    async with chromium() as browser:
        yield Windows(browser, site_server)


@pytest_asyncio.fixture(loop_scope="session")
async def windows(all_windows: Windows) -> AsyncIterator[Windows]:
    """Open windows of the console. None of them may have failed at the end of the test."""
    yield all_windows
    await all_windows.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site_api(site_server: Server) -> AsyncIterator[Api]:
    async with Api(site_server) as api:
        yield api
