"""Posting from tests that are not coroutines, because the programs under test are other processes."""

import asyncio

from stream_server.client import Client
from tests.end_to_end.server import Server


def post(server: Server, jwt: str, *messages: str) -> None:
    async def posting() -> None:
        async with Client(server.address, jwt) as api:
            for message in messages:
                await api.post(message)

    asyncio.run(posting())
