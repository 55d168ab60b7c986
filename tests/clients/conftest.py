"""TLS before the server of the session."""

from collections.abc import AsyncIterator

import pytest

from tests.end_to_end.server import Server
from tests.tls import Authority, TlsProxy


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
async def tls(server: Server, authority: Authority) -> AsyncIterator[TlsProxy]:
    """Put TLS in front of the session's server."""
    async with TlsProxy(server.address, authority) as proxy:
        yield proxy
