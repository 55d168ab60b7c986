"""A proxy that forwards bytes between two parties until a test makes it cut, swallow, delay or refuse them."""

import asyncio
import contextlib
import ssl
import tempfile
from pathlib import Path
from typing import Self

from tests.listening import stop_listening

Target = str | Path | tuple[str, int]
"""The address of the server behind the proxy: the path of a unix socket, or (host, port)."""

CHUNK = 65_536

FLUSH_SECONDS = 5.0
"""The longest wait for a client to take what its target sent before it closed."""

HELD_BYTES = 65_536
"""The bytes that the proxy keeps for a party that does not read. Then it stops reading from the other party."""


class Proxy:
    """Forwards connections to a target. ``url`` is the proxy's URL for a Redis client, ``address`` its (host, port).

    The counters begin at the start. ``connections`` counts accepted connections, and ``refused`` those of them that
    were closed at once. ``cuts`` counts connections that a test cut. ``swallowed_bytes`` and ``delayed_bytes`` count
    bytes from the target to the client.
    """

    def __init__(self, target: Target, *, tcp: bool = False, tls: ssl.SSLContext | None = None) -> None:
        """With ``tls``, clients speak TLS to the proxy, over TCP. The target gets the plain bytes."""
        self._target = target
        self._tcp = tcp or tls is not None
        self._tls = tls
        self._folder = tempfile.TemporaryDirectory(prefix="ssp-")
        self._path = Path(self._folder.name) / "p.sock"
        self._server: asyncio.Server | None = None
        self._passing: dict[_Passage, asyncio.Task[None]] = {}
        self._accepted: list[asyncio.StreamWriter] = []
        self._refusing: bytes | None = None
        self._delay_seconds = 0.0
        self.connections = self.refused = self.cuts = 0
        self.swallowed_bytes = self.delayed_bytes = 0

    @property
    def url(self) -> str:
        return "redis://{}:{}".format(*self.address) if self._tcp else f"unix://{self._path}"

    @property
    def address(self) -> tuple[str, int]:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def open(self) -> int:
        return len(self._passing)

    async def cut(self) -> None:
        """Close all connections. New connections work."""
        await self._end(list(self._passing))

    def swallow(self, on: bool = True, *, of: bytes = b"") -> None:  # noqa: FBT001, FBT002 - a switch
        """From now on, send nothing to the clients of the open connections, without an error. New connections work.

        With ``of``, do this only on connections on which the client has sent these bytes. The connections stay silent
        until the client leaves, because a real link cannot lose bytes in between. False closes them.
        """
        for passage in list(self._passing):
            if on and of in passage.asked:
                passage.silent = True
            elif not on and passage.silent:
                self.cuts += passage.abort()

    def refuse(self, on: bool = True, *, of: bytes = b"") -> None:  # noqa: FBT001, FBT002 - a switch
        """Close new connections at once.

        With ``of``, close each connection, also an open one, when its client sends ``of``.
        """
        self._refusing = of if on else None

    def delay(self, seconds: float) -> None:
        """Delay all bytes to the clients by ``seconds``. Under load the delay may be up to twice as long."""
        self._delay_seconds = seconds

    async def __aenter__(self) -> Self:
        if self._tcp:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        else:
            self._server = await asyncio.start_unix_server(self._accept, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.refuse()
        await stop_listening(self._server)  # a connection that is just being accepted reaches _accept, which refuses it
        await self._end(list(self._passing))
        for writer in self._accepted:
            with contextlib.suppress(OSError):
                await writer.wait_closed()  # else its socket could outlive the event loop
        self._folder.cleanup()

    async def _end(self, passages: "list[_Passage]") -> None:
        tasks = [self._passing[passage] for passage in passages]
        for passage in passages:
            self.cuts += passage.abort()
        if tasks:
            await asyncio.wait(tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._accepted.append(writer)
        if self._refusing == b"":
            self.refused += 1
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        passage = _Passage(writer)
        self._passing[passage] = task
        try:
            await self._pass(passage, reader)
        finally:
            passage.abort()
            del self._passing[passage]

    async def _pass(self, passage: "_Passage", reader: asyncio.StreamReader) -> None:
        """Forward both ways until either party closes. If the target cannot be reached, the client is closed."""
        with contextlib.suppress(OSError):
            far_reader, far = await self._dial()
            passage.far = far
            if passage.cut:
                return
            ways = [
                asyncio.create_task(self._ask(passage, reader, far)),
                asyncio.create_task(self._answer(passage, far_reader)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await passage.flush()
            passage.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, tuple):
            return await asyncio.open_connection(*self._target)
        return await asyncio.open_unix_connection(self._target)

    async def _ask(self, passage: "_Passage", reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            passage.asked += data[: max(0, CHUNK - len(passage.asked))]
            if self._refusing and self._refusing in data:
                self.refused += 1
                return
            far.write(data)
            await far.drain()

    async def _answer(self, passage: "_Passage", reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            if self._delay_seconds and not passage.silent:
                self.delayed_bytes += len(data)
                await asyncio.sleep(self._delay_seconds)  # the fault itself
            if passage.silent:
                self.swallowed_bytes += len(data)
                continue
            passage.near.write(data)
            await passage.near.drain()


class _Passage:
    """One forwarded connection: both ends, the client's first bytes, and whether the proxy swallows the answers."""

    def __init__(self, near: asyncio.StreamWriter) -> None:
        near.transport.set_write_buffer_limits(HELD_BYTES)
        self.near = near
        self.far: asyncio.StreamWriter | None = None
        self.asked = b""
        self.silent = False
        self.cut = False

    async def flush(self) -> None:
        """Close the client's end when it has taken what the target sent, unless the connection was cut."""
        if not (self.cut or self.silent):
            self.near.close()
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self.near.wait_closed()

    def abort(self) -> int:
        """Close both ends. Returns 1 for the first time and 0 after that."""
        first = not self.cut
        self.cut = True
        if first:  # a TLS transport that is closed twice and then aborted raises in Python 3.11.2
            self.near.transport.abort()
        if self.far is not None:
            self.far.transport.abort()
        return int(first)
