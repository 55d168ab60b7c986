"""A connection to Redis that redis-py has opened, and whose transport another protocol uses.

redis-py does the connecting: TLS, AUTH, the database, Sentinels, and the PING that shows that Redis answers. It reads
replies one by one and in a task. :class:`PipelinedConnection` and :class:`Subscription` read all replies of one read at
once. This module is the one place that takes the transport from redis-py's private attributes.
"""

import asyncio
from typing import Any

from hiredis import Reader
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import DefaultParser
from redis.exceptions import InvalidResponse

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
    """Open a connection as ``pool`` does. Return its transport. Raises redis-py's errors, OSError or TimeoutError."""
    connection: Any = pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py
    try:
        async with asyncio.timeout(timeout_seconds):
            await connection.connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return RedisTransport(connection)
