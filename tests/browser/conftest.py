"""A server, the example's page before it as one origin, and a tab of a browser."""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.browser.chromium import chromium
from tests.command_line import ROOT, clean_environment, running
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

_ADDRESS = re.compile(r"Running on (\S+)")


@contextmanager
def served(server: Server, folder: Path) -> Iterator[str]:
    """The address of the example's page, which passes on what it asks of that server."""
    command = (sys.executable, "-u", ROOT / "examples" / "browser" / "serve.py", server.address, "0")
    with running(*command, folder=folder, env=clean_environment()) as program:
        program.until(lambda: _ADDRESS.search(program.out))
        yield _ADDRESS.search(program.out)[1]  # type: ignore[index]  # it was waited for
        assert program.interrupt() == 0
        assert program.err == ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server, whose heartbeats come often and whose clients come back soon."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2", "--retry-ms", "100") as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    """A session with that server, beside the browser."""
    async with Api(server) as session:
        yield session


@pytest.fixture(scope="module")
def site(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the example's page is, before that server."""
    with served(server, tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest.fixture
async def tab() -> AsyncIterator[Page]:
    """An empty tab, in which no script may fail."""
    failures: list[str] = []
    async with chromium() as browser:
        page = await browser.new_page()
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.set_default_timeout(20_000)
        yield page
    assert failures == []
