"""The round trips to Redis of each successful route, compared with its row in the table."""

import asyncio
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from aiohttp import web

from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.http import app_keys
from stream_server.web.route import NO_TOKEN, Route
from tests.contracts.populated import ALL, Body, Populated
from tests.end_to_end.api import mint
from tests.end_to_end.server import SECRET

COUNTED = [row for row in routes.ROUTE_TABLE if row.has_round_trip_limit]

FOR_TOKEN = 1
"""The check of the token, which every row that needs one has before its own."""


@pytest.fixture
def settings() -> dict[str, Any]:
    """The secret with which the world signs its tokens."""
    return {"jwt_secret": SECRET}


@pytest.fixture
def url(address: tuple[str, int]) -> str:
    """The address of the server."""
    return f"http://{address[0]}:{address[1]}"


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """Connections that stay open."""
    with requests.Session() as kept:
        yield kept


class Counter:
    """Counts the round trips of a store; no feed and no job worker uses its Redis here."""

    def __init__(self, store: Store) -> None:
        self._exchange = store._redis.run_pipeline
        self.count = 0
        store._redis.run_pipeline = self.exchange  # type: ignore[method-assign]  # what the test is for

    async def exchange(self, commands: Any, timeout_seconds: float) -> list[Any]:
        """One round trip."""
        self.count += 1
        return await self._exchange(commands, timeout_seconds)


def _most(counter: Counter, world: Populated, row: Route, url: str, session: requests.Session) -> int:
    """Return the most round trips of one request."""
    found = []
    bodies: list[Body | None] = [*world.bodies(row.method)]
    for path, query, body in itertools.product(_paths(world, row), world.queries(row.method), bodies or [None]):
        asked = {name: ",".join(one) if isinstance(one, list) else one for name, one in query.items()}
        headers = world.headers()
        before = counter.count
        answer = session.request(row.method, url + path, params=asked, json=body, headers=headers)
        if answer.ok:
            found.append(counter.count - before)
    return max(found)


def _paths(world: Populated, row: Route) -> list[str]:
    """Yield the path with each known id in place of its parameters."""
    names = re.findall(r"{(\w+)}", row.path)
    ids = [world.real(name) for name in names]
    return [row.path.format(**dict(zip(names, one, strict=True))) for one in itertools.product(*ids)]


async def test_a_route_takes_as_many_round_trips_as_its_row_says(
    app: web.Application, url: str, session: requests.Session
) -> None:
    """More would be slower, fewer would make the documentation wrong. Each route has its own world."""
    counter = Counter(app[app_keys.STORE])
    wrong = {}
    for row in COUNTED:
        world = await asyncio.to_thread(Populated, url, session, row.path)
        measured = (
            await asyncio.to_thread(_most, counter, world, row, url, session) - (row.scope != NO_TOKEN) * FOR_TOKEN
        )
        if measured != row.round_trips.limit:
            wrong[f"{row.method} {row.path}"] = measured
    assert wrong == {}


async def test_the_check_of_a_token_is_one_round_trip(
    app: web.Application, url: str, session: requests.Session
) -> None:
    """A request refused right after the check makes no other."""
    world = await asyncio.to_thread(Populated, url, session, "/v1/users/me")
    counter = Counter(app[app_keys.STORE])
    headers = {"Authorization": f"Bearer {mint(world.uid, ALL)}"}
    answer = await asyncio.to_thread(session.get, url + "/v1/notifications?count=0", headers=headers)
    assert (answer.status_code, counter.count) == (400, FOR_TOKEN)


def test_a_row_of_more_than_one_says_why() -> None:
    """The documentation shows the reason; a row with one round trip needs none."""
    assert [row.path for row in COUNTED if bool(row.round_trips.reason) != (row.round_trips.limit > 1)] == []
