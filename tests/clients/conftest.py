"""TLS before the server of the session."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.end_to_end.server import Server
from tests.tls import Authority, TlsProxy


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
async def tls(server: Server, authority: Authority) -> AsyncIterator[TlsProxy]:
    """Put TLS in front of the session's server."""
    where = urlsplit(server.address)
    async with TlsProxy((str(where.hostname), int(where.port or 0)), authority) as proxy:
        yield proxy
