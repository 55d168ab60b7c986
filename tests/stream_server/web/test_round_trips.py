"""The round trips to Redis of each successful route, compared with this page's table."""

import asyncio
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
import requests
from aiohttp import web

from stream_server.store.redis.script_settings import SiteRules, load_scripts
from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.api.statuses import StatusPage
from stream_server.web.http import app_keys
from stream_server.web.http.paging import PageAnswer
from stream_server.web.route import NO_TOKEN, Route
from tests.contracts.populated import ALL, Body, Populated
from tests.end_to_end.api import mint
from tests.end_to_end.server import SECRET

COUNTED = [
    row for row in routes.ROUTE_TABLE
    if row.path.startswith("/v1/") and not row.is_streaming and "{connection}" not in row.path
]  # fmt: skip
"""The rows that are measured. A stream has round trips only if another process holds it, and here is one process."""

TRIPS = {
    0: (
        "GET /v1/trends", "GET /v1/admin/operations", "GET /v1/rules/operators",
    ),
    1: ("GET /v1/admin/operations/history",),
    2: (
        "POST /v1/users", "GET /v1/users/me/requests", "GET /v1/users/me/requests/sent", "GET /v1/users/me/blocks",
        "GET /v1/users/me/mutes", "GET /v1/users/search", "GET /v1/users/by-login/{login}",
        "GET /v1/users/{id}/followers",
        "GET /v1/users/{id}/following", "GET /v1/users/{id}/relationship/{other}", "PUT /v1/users/me/password",
        "POST /v1/statuses", "DELETE /v1/statuses/{id}", "GET /v1/groups/{id}", "POST /v1/reports",
        "DELETE /v1/users/me", "POST /v1/subscriptions/{subscription}/test",
    ),
    3: (
        "POST /v1/users/me/following", "PUT /v1/users/me/following/{id}", "DELETE /v1/users/me/following/{id}",
        "PUT /v1/users/me/requests/{id}", "PUT /v1/users/me/blocks/{id}", "POST /v1/sessions", "GET /v1/statuses",
        "GET /v1/statuses/{id}", "GET /v1/users/me/mentions", "GET /v1/users/{id}/statuses",
        "GET /v1/tags/{tag}/statuses", "PUT /v1/notifications/read", "GET /v1/users/{id}/lists",
        "GET /v1/users/{id}/listed", "GET /v1/lists/{id}/members", "PUT /v1/lists/{id}/members/{uid}",
        "DELETE /v1/lists/{id}/members/{uid}", "GET /v1/users/me/groups", "GET /v1/users/me/invitations",
        "GET /v1/talks/{id}/messages/{message}", "GET /v1/comments/{id}",
        "POST /v1/subscriptions/{subscription}/secret", "GET /v1/admin/suspensions",
    ),
    4: (
        "GET /v1/users/{id}/common-following/{other}", "GET /v1/users/{id}/common-followers/{other}",
        "GET /v1/users/me/favorites/{id}", "GET /v1/users/me/favorites", "GET /v1/users/suggested",
        "GET /v1/lists/{id}/statuses", "GET /v1/groups/{id}/members", "POST /v1/talks", "GET /v1/talks/{id}",
        "GET /v1/talks/{id}/messages", "GET /v1/admin/reports", "POST /v1/rules/explain", "GET /v1/users/me/likes/{id}",
        "PUT /v1/subscriptions/{subscription}", "GET /v1/admin/audit",
    ),
    5: (
        "GET /v1/statuses/{id}/comments", "GET /v1/timelines/home",
        "GET /v1/users/{id}/likes", "GET /v1/statuses/{id}/replies", "GET /v1/groups/{id}/statuses", "GET /v1/talks",
        "GET /v1/talks/requests", "PUT /v1/talks/{id}/read", "PATCH /v1/admin/reports/{id}",
    ),
    6: (
        "GET /v1/statuses/{id}/likes", "GET /v1/statuses/{id}/reposts", "GET /v1/notifications",
    ),
    7: (
        "GET /v1/statuses/{id}/conversation",
    ),
}  # fmt: skip
"""The operations that make another number of round trips than one.

A write reads what it made or changed afterwards, and more if it leaves jobs. A read asks for what a list belongs to,
for its ids, their rows, what these show, and who may see it: at most once each.
"""

LIMITS = {operation: number for number, operations in TRIPS.items() for operation in operations}

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
        if answer.ok and not _is_empty_page(row, answer):
            found.append(counter.count - before)
        else:
            refused.append(f"{answer.status_code} {answer.text}")
    hint = "if the values are at fault, add better ones to tests/contracts/populated.py"
    assert found, f"{row.method} {row.path} never succeeded; {hint}: {refused}"
    return max(found)


def _is_empty_page(row: Route, answer: requests.Response) -> bool:
    """Whether an answer is a page of a list without a row. Then it asked Redis less often than others."""
    if row.response is None or not issubclass(row.response, PageAnswer):
        return False
    (items,) = [value for value in answer.json().values() if isinstance(value, list)]
    return not items


def paths_of(world: Populated, row: Route) -> list[str]:
    """Return the path with each known id in place of its parameters."""
    names = re.findall(r"{(\w+)}", row.path)
    ids = [world.real(name) for name in names]
    return [row.path.format(**dict(zip(names, one, strict=True))) for one in itertools.product(*ids)]


def _like_all(world: Populated) -> None:
    """Let the user have a quote and a repost among the favorite statuses, and another user like them."""
    for status in world.of("statuses"):
        world.done("PUT", f"/v1/users/me/favorites/{status}")
        world.done("PUT", f"/v1/users/me/likes/{status}", sub=world.of("users")[0])


def _ask_to_follow(world: Populated) -> None:
    target = world.of("users")[1]
    world.done("PATCH", "/v1/users/me", {"protected": True}, sub=target)
    world.done("PUT", f"/v1/users/me/following/{target}")


def _be_invited(world: Populated) -> None:
    host = world.of("users")[1]
    group = world.done("POST", "/v1/groups", {"name": "guests", "kind": "private"}, sub=host)["id"]
    world.done("PUT", f"/v1/groups/{group}/members/{world.uid}", sub=host)


FILL: dict[str, Callable[[Populated], Any]] = {
    "/v1/users/me/requests": lambda w: w.of("users"),
    "/v1/users/me/requests/sent": _ask_to_follow,
    "/v1/users/me/blocks": lambda w: w.done("PUT", f"/v1/users/me/blocks/{w.of('users')[0]}"),
    "/v1/users/me/mutes": lambda w: w.done("PUT", f"/v1/users/me/mutes/{w.of('users')[0]}"),
    "/v1/users/{id}/common-followers/{other}": lambda w: w.done("PUT", f"/v1/users/me/following/{w.of('users')[1]}"),
    "/v1/users/{id}/listed": lambda w: w.of("lists"),
    "/v1/users/me/groups": lambda w: w.of("groups"),
    "/v1/users/me/invitations": _be_invited,
    "/v1/talks": lambda w: w.of("talks"),
    "/v1/talks/requests": lambda w: w.done("POST", "/v1/talks", {"people": [w.uid]}, sub=w.of("users")[1]),
    "/v1/statuses/{id}/comments": lambda w: w.of("comments"),
    "/v1/statuses/{id}/likes": _like_all,
    "/v1/admin/suspensions": lambda w: w.done("PUT", f"/v1/admin/suspensions/{w.of('users')[0]}"),
}
"""What must be done before a list has a row, where no id in the route's path needs it."""


async def _change_timelines_by_jobs(store: Store) -> None:
    """Let each write leave a job for its timelines, as if they were many, because that takes the most round trips.

    Users are asked before strangers add them to groups or talks, so that there are invitations and requests.
    """
    scripts = store._scripts
    scripts._scripts = load_scripts(scripts.size_limits._replace(step_timelines=0), SiteRules(ask_strangers=True))
    await scripts.install()


@pytest.mark.extended
async def test_each_route_makes_as_many_round_trips_as_the_table_says(
    app: web.Application, url: str, session: requests.Session
) -> None:
    await _change_timelines_by_jobs(app[app_keys.STORE])
    counter = RoundTrips(app[app_keys.STORE])
    wrong = {}
    for row in COUNTED:
        world = await asyncio.to_thread(Populated, url, session, row.path)
        if row.response is StatusPage:
            await asyncio.to_thread(_like_all, world)
        elif row.method == "GET" and row.path in FILL:
            await asyncio.to_thread(FILL[row.path], world)
        measured = await asyncio.to_thread(_max_round_trips, counter, world, row, url, session)
        measured -= (row.scope != NO_TOKEN) * FOR_TOKEN
        operation = f"{row.method} {row.path}"
        if measured != LIMITS.get(operation, 1):
            wrong[operation] = measured
    assert not wrong, wrong


async def test_a_token_check_is_one_round_trip(app: web.Application, url: str, session: requests.Session) -> None:
    world = await asyncio.to_thread(Populated, url, session, "/v1/users/me")
    counter = RoundTrips(app[app_keys.STORE])
    headers = {"Authorization": f"Bearer {mint(world.uid, ALL)}"}
    answer = await asyncio.to_thread(session.get, url + "/v1/notifications?count=0", headers=headers)
    assert (answer.status_code, counter.count) == (400, FOR_TOKEN)
