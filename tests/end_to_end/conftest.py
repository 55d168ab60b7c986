"""A server for a session, and an API session for a test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.api import Api
from tests.end_to_end.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server, whose heartbeats come often; at the end it must stop cleanly, without a traceback."""
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    """A session with that server."""
    async with Api(server) as session:
        yield session


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder for a server that a test starts, kills and starts again itself."""
    return tmp_path / "own"
