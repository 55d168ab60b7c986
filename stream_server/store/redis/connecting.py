"""What redis-py does: it connects, with TLS, AUTH, the database, and the PING that shows that Redis answers.

A guide, Sentinels or the table of a cluster, names the server of a connection, which goes to the server named last. If
the guide then names another, an old connection is closed before its next use. So no command is sent to a former
primary, which would confirm a write and lose it.

redis-py reads replies one by one and in a task. :class:`PipelinedConnection` and :class:`Subscription` read all replies
of one read at once, on the transport of a connection that redis-py has opened. This module is the one place that takes
the transport from redis-py's private attributes.
"""

import asyncio
from typing import Any, Protocol

from hiredis import Reader
from redis.asyncio import Connection, ConnectionPool, SSLConnection
from redis.asyncio.connection import DefaultParser
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import InvalidResponse

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
    """A redis-py connection with TLS, to the server whose address a guide returns (such as that of a Sentinel)."""


def guided_pool_arguments(guide: Guide, group: RedisGroup) -> dict[str, Any]:
    """Return the arguments of a redis-py connection pool whose connections follow ``guide``."""
    return {
        "connection_class": GuidedTlsConnection if group.use_tls else GuidedConnection,
        "guide": guide,
        "db": group.db,
        **group.credentials,
        **group.tls_options,
    }


NOT_YET = object()
"""What a parser returns in the place of a reply that is not complete. Unlike the usual False, it equals no reply."""


class RedisTransport:
    """The open transport, on which no reply is outstanding.

    Attributes:
        address: Host and port of the server. They are empty for a unix socket.
        transport: The transport. redis-py neither reads from it nor closes it any more.
    """

    def __init__(self, connection: Any) -> None:
        """Take the transport of a redis-py connection that is connected."""
        self.address = (getattr(connection, "host", ""), getattr(connection, "port", 0))
        # A writer closes its transport when it is collected as garbage. So it must live here, and not in redis-py.
        self._writer: Any = connection._writer  # noqa: SLF001 - redis-py has no public way
        connection._writer = connection._reader = None  # noqa: SLF001 - see above
        self.transport: asyncio.Transport = self._writer.transport

    def attach(self, protocol: asyncio.Protocol) -> Reader:
        """Give all further bytes to ``protocol``. Return a parser for them.

        Error replies become exceptions. `NOT_YET` means that the next reply is not complete.
        """
        self.transport.set_protocol(protocol)
        return Reader(protocolError=InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=NOT_YET)


async def open_transport(pool: ConnectionPool, timeout_seconds: float) -> RedisTransport:
    """Open a connection as ``pool`` does. Return its transport. Raises redis-py's errors, OSError or TimeoutError.

    A Redis without TLS takes the client's first TLS message for a command without an end, and waits for the rest. So
    this looks like a frozen server, and the message of the TimeoutError names both. It comes a little before the
    callers stop waiting, who do not know how far the connection was.
    """
    connection: Any = pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py
    try:
        async with asyncio.timeout(timeout_seconds * (0.9 if isinstance(connection, SSLConnection) else 1)):
            await connection.connect()
    except TimeoutError as error:
        await connection.disconnect(nowait=True)
        if isinstance(connection, SSLConnection):
            raise TimeoutError("no answer to TLS in time (frozen, or a port without TLS)") from error
        raise
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return RedisTransport(connection)
