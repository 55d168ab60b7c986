"""A server in place of Redis that a test stops and starts: it reads, answers, and splits its answers as told."""

import asyncio

from hiredis import Reader

from tests.stream_server.store.redis.scripted_redis import UnixServer


class PuppetRedis(UnixServer):
    """Answers PING and CLIENT at once, and ECHO by its argument while it ``speaks``. Other commands get +OK.

    Attributes:
        reads: Cleared, the server reads nothing more.
        speaks: Cleared, the server reads commands and answers nothing but PING.
        splits: Whether each byte of an answer is sent alone.
        seen: The arguments of all commands but PING, in the order in which they came.
        left: Number of connections that the client has closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.speaks = asyncio.Event(), asyncio.Event()
        self.reads.set()
        self.speaks.set()
        self.splits = False
        self.seen: list[list[bytes]] = []
        self.left = 0

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = Reader()
        while True:
            await self.reads.wait()
            if not (data := await reader.read(65_536)):
                break
            parser.feed(data)
            while (command := parser.gets()) is not False:
                await self._answer(command, writer)
        self.left += 1

    async def _answer(self, command: list[bytes], writer: asyncio.StreamWriter) -> None:
        if command[0] == b"PING":
            writer.write(b"+PONG\r\n")
            return
        self.seen.append(command)
        await self.speaks.wait()
        answer = b"$%d\r\n%b\r\n" % (len(command[1]), command[1]) if command[0] == b"ECHO" else b"+OK\r\n"
        for piece in (answer[i : i + 1] for i in range(len(answer))) if self.splits else (answer,):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
