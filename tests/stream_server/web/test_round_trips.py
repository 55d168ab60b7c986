"""The round trips to Redis of each successful route, compared with its row in the table."""

import asyncio
import itertools
import re
from typing import Any

import pytest
import requests
from aiohttp import web

from stream_server.store.redis.scripts import load_scripts
from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.api.statuses import StatusPage
from stream_server.web.http import app_keys
from stream_server.web.route import NO_TOKEN, Route
from tests.contracts.populated import ALL, Body, Populated
from tests.end_to_end.api import mint
from tests.end_to_end.server import SECRET

COUNTED = [
    row for row in routes.ROUTE_TABLE
    if row.path.startswith("/v1/") and not row.is_streaming and "{connection}" not in row.path
]  # fmt: skip
"""The rows that are measured. A stream has round trips only if another process holds it, and here is one process."""

FOR_TOKEN = 1
"""The check of the token, which every row that needs one has before its own."""


@pytest.fixture
def settings() -> dict[str, Any]:
    """The secret of the tokens."""
    return {"jwt_secret": SECRET}


class RoundTrips:
    """Counts the round trips of a store. No feed and no job worker uses its Redis here."""

    def __init__(self, store: Store) -> None:
        self._exchange = store._redis.run_pipeline
        self.count = 0
        store._redis.run_pipeline = self.run_pipeline  # type: ignore[method-assign]  # what the test is for

    async def run_pipeline(self, commands: Any, timeout_seconds: float) -> list[Any]:
        self.count += 1
        return await self._exchange(commands, timeout_seconds)


def _max_round_trips(counter: RoundTrips, world: Populated, row: Route, url: str, session: requests.Session) -> int:
    found, refused = [], []
    bodies: list[Body | None] = [*world.bodies(row.method)]
    for path, query, body in itertools.product(paths_of(world, row), world.queries(row.method), bodies or [None]):
        asked = {name: ",".join(one) if isinstance(one, list) else one for name, one in query.items()}
        headers = world.headers()
        before = counter.count
        answer = session.request(row.method, url + path, params=asked, json=body, headers=headers)
        if answer.ok:
            found.append(counter.count - before)
        else:
            refused.append(f"{answer.status_code} {answer.text}")
    hint = "if the values are at fault, add better ones to tests/contracts/populated.py"
    assert found, f"{row.method} {row.path} never succeeded; {hint}: {refused}"
    return max(found)


def paths_of(world: Populated, row: Route) -> list[str]:
    """Return the path with each known id in place of its parameters."""
    names = re.findall(r"{(\w+)}", row.path)
    ids = [world.real(name) for name in names]
    return [row.path.format(**dict(zip(names, one, strict=True))) for one in itertools.product(*ids)]


def _fill_timelines(world: Populated) -> None:
    """Let the user have a quote and a repost among the favorite statuses, and another user like them."""
    for status in world.of("statuses"):
        world._done("PUT", f"/v1/users/me/favorites/{status}")
        world._done("PUT", f"/v1/users/me/likes/{status}", sub=world.of("users")[0])


async def _change_timelines_by_jobs(store: Store) -> None:
    """Let each write leave a job for its timelines, as if they were many, because that takes the most round trips."""
    scripts = store._scripts
    scripts._scripts = load_scripts(scripts.size_limits._replace(step_timelines=0))
    await scripts.install()


@pytest.mark.extended
async def test_each_route_makes_as_many_round_trips_as_its_row_says(
    app: web.Application, url: str, session: requests.Session
) -> None:
    await _change_timelines_by_jobs(app[app_keys.STORE])
    counter = RoundTrips(app[app_keys.STORE])
    wrong = {}
    for row in COUNTED:
        world = await asyncio.to_thread(Populated, url, session, row.path)
        if row.response is StatusPage:
            await asyncio.to_thread(_fill_timelines, world)
        measured = await asyncio.to_thread(_max_round_trips, counter, world, row, url, session)
        measured -= (row.scope != NO_TOKEN) * FOR_TOKEN
        if measured != row.round_trips.limit:
            wrong[f"{row.method} {row.path}"] = measured
    assert wrong == {}


async def test_a_token_check_is_one_round_trip(app: web.Application, url: str, session: requests.Session) -> None:
    world = await asyncio.to_thread(Populated, url, session, "/v1/users/me")
    counter = RoundTrips(app[app_keys.STORE])
    headers = {"Authorization": f"Bearer {mint(world.uid, ALL)}"}
    answer = await asyncio.to_thread(session.get, url + "/v1/notifications?count=0", headers=headers)
    assert (answer.status_code, counter.count) == (400, FOR_TOKEN)


def test_a_row_with_more_than_one_round_trip_has_a_reason() -> None:
    assert [row.path for row in COUNTED if bool(row.round_trips.reason) != (row.round_trips.limit > 1)] == []
