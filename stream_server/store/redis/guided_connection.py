"""A redis-py connection whose server a guide names: Sentinels, or the table of a cluster.

A connection goes to the server named last. If the guide then names another, an old connection is closed before its next
use. So no command is sent to a former primary, which would confirm a write and lose it.
"""

from typing import Any, Protocol

from redis.asyncio import Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from stream_server.store.redis.address import RedisGroup

HostPort = tuple[str, int]

CONNECTION_OPTIONS: dict[str, Any] = {
    "socket_timeout": None, "retry": Retry(NoBackoff(), 0), "protocol": 2, "driver_info": None
}  # fmt: skip
"""Options of every redis-py connection: no retries, and no timeout of its own."""


class Guide(Protocol):
    """Knows the host and port of the server that connections go to."""

    @property
    def address(self) -> HostPort | None:
        """Host and port that :meth:`resolve` found last. None before that, and while no server may be used."""

    async def resolve(self) -> HostPort:
        """Return the host and port to connect to now. Raises redis-py's ConnectionError if no server is known.

        From now on the guide keeps ``address`` current, if it can change.
        """


class GuidedConnection(Connection):
    """A redis-py connection to the server that a guide names."""

    def __init__(self, *, guide: Guide, **arguments: Any) -> None:
        self._guide = guide
        super().__init__(**arguments)

    async def connect(self) -> None:
        """Connect, or reconnect if the guide names another server now. redis-py calls this before each use."""
        if self.is_connected and (self.host, self.port) != self._guide.address:
            await self.disconnect(nowait=True)
        await super().connect()  # type: ignore[no-untyped-call]  # redis-py

    async def _connect(self) -> None:
        self.host, self.port = await self._guide.resolve()
        await super()._connect()  # type: ignore[no-untyped-call]  # redis-py


class GuidedTlsConnection(GuidedConnection, SSLConnection):
    """A redis-py connection with TLS to the server that a guide names."""


def guided_pool_arguments(guide: Guide, group: RedisGroup) -> dict[str, Any]:
    """Return the arguments of a redis-py connection pool whose connections follow ``guide``."""
    return {
        "connection_class": GuidedTlsConnection if group.use_tls else GuidedConnection,
        "guide": guide,
        "db": group.db,
        **group.credentials,
        **group.tls_options,
    }
