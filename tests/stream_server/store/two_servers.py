"""A store whose derived data are in another database than its truth, as if it were another server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stream_server.errors import ApiError, Unavailable
from stream_server.store import store
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.connecting import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.store import Store
from tests.stream_server.store.people import open_store
from tests.waiting import PATIENCE

DERIVED_DATABASE = 1


class DerivedServer(RedisClient):
    """The other server. Commands for its ``silent`` keys are refused, as if they were on a third one that is away."""

    def __init__(self, core: RedisClient, url: str) -> None:
        super().__init__(f"{url}?db={DERIVED_DATABASE}", PATIENCE)
        self._core = core
        self.silent: set[str] = set()
        self.returned = 0
        self.refused = 0

    @property
    def primaries(self) -> Sequence[RedisClient]:
        return [self._core, self]

    @property
    def unreachable_nodes(self) -> Sequence[HostPort]:
        return [("127.0.0.1", 1)] if self.silent else []

    @property
    def nodes_returned(self) -> int:
        return self.returned

    def come_back(self) -> None:
        self.silent.clear()
        self.returned += 1

    async def execute_each(self, *commands: Command) -> list[Any]:
        heard = [command for command in commands if not self.silent.intersection(command[1:2])]
        self.refused += len(commands) - len(heard)
        replies = iter(await super().execute_each(*heard) if heard else [])
        return [
            Unavailable("away") if self.silent.intersection(command[1:2]) else next(replies) for command in commands
        ]

    async def execute(self, *commands: Command, **_: Any) -> list[Any]:
        replies = await self.execute_each(*commands)
        for reply in replies:
            if isinstance(reply, ApiError):
                raise reply
        return replies


@asynccontextmanager
async def open_split(url: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> AsyncIterator[Store]:
    monkeypatch.setattr(store, "route_derived", DerivedServer)
    async with open_store(url, **options) as made:
        yield made


def derived_of(made: Store) -> DerivedServer:
    assert isinstance(made._derived, DerivedServer)
    return made._derived
