"""A proxy to Redis on a bad network: it delays, splits and swallows bytes, and cuts connections in the middle."""

import asyncio
import random
from pathlib import Path

from tests.stream_server.store.redis.scripted_redis import UnixServer

FAULTS = ("cut", "cut", "silence", "delay", "delay")

CALLS, ANSWERS = 0.1, 1.0
"""The share of the faults that meet the pieces of each direction."""


class FaultyProxy(UnixServer):
    """A proxy to the unix socket of Redis. Each piece of an answer meets a fault with the probability ``fault_share``.

    ``cut_answers`` is the number of answers so far in which the connection was cut.
    """

    def __init__(self, target: Path, chance: random.Random) -> None:
        super().__init__()
        self._target = target
        self._chance = chance
        self.fault_share = 0.0
        self.cut_answers = 0

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_unix_connection(self._target)
        pumps = [
            asyncio.create_task(self._pump(reader, redis_writer, CALLS)),
            asyncio.create_task(self._pump(redis_reader, writer, ANSWERS)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            redis_writer.close()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, share: float) -> None:
        """Pass bytes on until one side ends, or a fault ends both."""
        chance = self._chance
        while data := await reader.read(chance.choice((7, 500, 65_536))):
            fault = chance.choice(FAULTS) if chance.random() < share * self.fault_share else ""
            if fault == "cut":
                self.cut_answers += share == ANSWERS
                writer.write(data[: chance.randrange(len(data) + 1)])
                return
            if fault == "silence":
                await reader.read()
                return
            if fault == "delay":
                await asyncio.sleep(chance.random() * 0.4)  # the delay that the test asks for
            writer.write(data)
            await writer.drain()
