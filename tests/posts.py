"""Posting from a test that is no coroutine: the programs under test are processes of their own."""

import asyncio

from stream_server.client import ApiClient
from tests.end_to_end.server import Server


def post(server: Server, jwt: str, *messages: str) -> None:
    async def posting() -> None:
        async with ApiClient(server.address, jwt) as api:
            for message in messages:
                await api.post(message)

    asyncio.run(posting())
