"""A program that does nothing but own an embedded Redis, for tests that kill it.

Arguments: data folder (``-`` for a temporary one), binary. On SIGINT it shows that Redis still answers.
"""

import asyncio
import signal
import sys
from pathlib import Path

import redis.asyncio

from stream_server.runtime.embedded_redis import EmbeddedRedis
from tests.program import say


async def main(data_dir: Path | None, binary: Path) -> None:
    interrupted = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
    embedded = await EmbeddedRedis.start(data_dir, binary=binary)
    say(
        redis=embedded.redis_pid, watcher=embedded.watcher_pid, socket=str(embedded.socket),
        folder=str(embedded.folder), url=embedded.url,
    )  # fmt: skip
    await interrupted.wait()
    async with redis.asyncio.from_url(embedded.url) as client:
        say(goodbye=await client.ping())
    await embedded.stop()


if __name__ == "__main__":
    asyncio.run(main(None if sys.argv[1] == "-" else Path(sys.argv[1]), Path(sys.argv[2])))
