"""What each write appends to the log, and what its user is charged for it, compared with the tables of the docs."""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import requests
from aiohttp import web

from stream_server.store import keys
from stream_server.store.social.open_streams import OpenStream
from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.http import app_keys
from stream_server.web.http.request_limits import ENTRY_BYTES, LIMITS, RequestLimits
from stream_server.web.limits.rate_limits import BYTE_LIMITS, LOG_BYTES, RATE_LIMITS, WRITE_BYTES, RateLimit
from stream_server.web.route import NO_TOKEN, Route
from tests.contracts.populated import Body, Populated
from tests.end_to_end.api import mint
from tests.end_to_end.server import SECRET
from tests.stream_server.web.test_round_trips import paths_of
from tests.stream_server.web.world import World

MAX_BYTES = 10**12
"""The limits of bytes here, so that no write is refused."""

PAGE = Path(__file__).parents[3] / "docs" / "capacity.md"

FREE = ("admin", "ingest")
"""Scopes of tokens whose writes are not limited, because only the operator gives them."""

WITHOUT_USER = {"POST /v1/users", "POST /v1/sessions"}
"""Writes without a token. The limits of sign-ups and log-ins bound them."""

WRITES = [
    row for row in routes.ROUTE_TABLE if row.method != "GET" and not (row.is_streaming and row.scope == "stream")
]  # fmt: skip
"""All routes but those that read. A new one must get a row in the table of the docs."""

ENDINGS = {
    "/v1/users/me/blocks/{id}", "/v1/users/me/mutes/{id}", "/v1/users/me/likes/{id}", "/v1/users/me/favorites/{id}",
    "/v1/admin/suspensions/{id}", "/v1/groups/{id}/members/{uid}",
}  # fmt: skip
"""Paths of which a DELETE ends what a PUT has begun."""

HOUR_MS = 3_600_000

STREAM = "abc"
"""The id of a stream that another process has."""

INGEST_LINES = (
    {"op": "user", "user": {"foreign_id": "f1", "login": "fay"}},
    {"op": "user", "user": {"foreign_id": "f2", "login": "gus"}},
    {"op": "post", "status": {"foreign_id": "s1", "author": "f1", "message": "hello @gus"}},
    {"op": "follow", "source": "f2", "target": "f1"},
    {"op": "delete", "status": "s1"},
    {"op": "block", "source": "f2", "target": "f1"},
    {"op": "suspend", "user": "f1"},
)


class Charge(NamedTuple):
    """The bytes of one write: of its request's body, of the entries that it appended to the log, and the charged ones.

    ``kept`` are charged as `WRITE_BYTES`, ``logged`` as `LOG_BYTES`.
    """

    sent: int
    appended: int
    kept: int
    logged: int


@pytest.fixture
def settings() -> dict[str, Any]:
    numbers = (f"{limit.name}={MAX_BYTES if limit in BYTE_LIMITS else 0}" for limit in RATE_LIMITS)
    return {"jwt_secret": SECRET, "limits": " ".join(numbers), "log_max_bytes": 0}


class Meter:
    """Sends writes to a server, and measures them."""

    def __init__(self, url: str, session: requests.Session, app: web.Application, raw: Any) -> None:
        self.url, self.session, self.raw = url, session, raw
        self._limiter = app[LIMITS]._limiter

    def left(self, uid: str, limit: RateLimit) -> int:
        """The bytes that a user has left."""
        known = self._limiter.use_known(limit, uid, MAX_BYTES, 0)
        assert known is not None
        return known.remaining

    def measure(self, uid: str, scope: str, method: str, path: str, **more: Any) -> Charge | None:
        """Send one write. Return its charge, or None if it was refused."""
        newest = self.raw.xrevrange(keys.LOG, count=1)
        kept, logged = self.left(uid, WRITE_BYTES), self.left(uid, LOG_BYTES)
        headers = {"Authorization": f"Bearer {mint(uid, scope)}", **more.pop("headers", {})}
        answer = self.session.request(method, self.url + path, headers=headers, **more)
        if not answer.ok:
            return None
        after = self.raw.xrange(keys.LOG, b"(" + newest[0][0] if newest else "-")
        appended = sum(len(entry) + 1 + sum(map(len, fields.values())) for entry, fields in after)
        sent = int(answer.request.headers.get("Content-Length", 0))
        charge = Charge(sent, appended, kept - self.left(uid, WRITE_BYTES), logged - self.left(uid, LOG_BYTES))
        if charge.kept and "RateLimit-Remaining" in answer.headers:
            least = min(self.left(uid, limit) for limit in BYTE_LIMITS)
            assert int(answer.headers["RateLimit-Remaining"]) == least, "the answer tells what is left"
        return charge

    def largest(self, row: Route, world: Populated) -> Charge:
        """Return the charge of the one that appends most of a route's possible writes."""
        scope = row.scope if row.scope in FREE else "read write stream"
        found = [self.measure(world.uid, scope, row.method, path, **sent) for path, sent in _requests(world, row)]
        charges = [charge for charge in found if charge is not None]
        assert charges, f"{row.method} {row.path} never succeeded: add values to tests/contracts/populated.py"
        return max(charges, key=lambda charge: charge.appended)


def _requests(world: Populated, row: Route) -> Iterator[tuple[str, dict[str, Any]]]:
    """The possible requests of a route: paths, and what is sent there."""
    if row.path == "/v1/ingest":
        lines = "".join(f"{json.dumps(line)}\n" for line in INGEST_LINES)
        yield row.path, {"data": lines, "headers": {"Content-Type": "application/x-ndjson"}}
    elif row.dialect is not None:
        yield row.path, {"json": {"add": [{"value": "tea milk", "tag": "a"}]}}
    elif "{connection}" in row.path:
        yield row.path.format(connection=STREAM), {}
    else:
        bodies: list[Body | None] = [*world.bodies(row.method)]
        for path, body in itertools.product(paths_of(world, row), bodies or [None]):
            if row.method == "DELETE" and row.path in ENDINGS:
                world.done("PUT", path)
            yield path, {} if body is None else {"json": body}


async def _find_stream(_connection: str) -> Any:
    """What the other process answers to an administrator who ends its stream."""
    return SimpleNamespace(uid="1")


async def _measure(meter: Meter, row: Route, store: Store) -> Charge:
    """Return the charge of a route's largest write, by a user of whom another process has a stream."""
    world = await asyncio.to_thread(Populated, meter.url, meter.session, row.path)
    await store.open_streams.record([OpenStream(world.uid, STREAM, "other", 1.0)], [])
    return await asyncio.to_thread(meter.largest, row, world)


def _name(row: Route) -> str:
    return f"{row.method} {row.path}"


def largest_like() -> int:
    """The bytes that a like of the largest quote appends, as the docs say."""
    (found,) = re.findall(r"largest quote appends\s+([\d,]+) bytes", PAGE.read_text("utf-8"))
    return int(found.replace(",", ""))


def _documented(names: str) -> dict[str, tuple[int, ...]]:
    """The rows of a table in the docs, whose names match a pattern, with their two numbers."""
    number = r" *([\d,]+) *\|"
    rows = re.findall(rf"^\| ({names}) \|{number}{number}$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name.strip("`"): tuple(int(value.replace(",", "")) for value in values) for name, *values in rows}


async def test_each_write_is_charged_for_what_it_appends(
    url: str, session: requests.Session, world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(url, session, app, world.redis)
    monkeypatch.setattr(app[app_keys.STREAMS].census, "find", _find_stream)
    await app[app_keys.STORE].open_streams.renew_lease("other", app[app_keys.HUB].now_ms() + HOUR_MS)
    found = {_name(row): await _measure(meter, row, app[app_keys.STORE]) for row in WRITES}
    free = {_name(row) for row in WRITES if row.scope in FREE or _name(row) in WITHOUT_USER}
    wrong = {}
    for row in WRITES:
        sent, appended, *charged = found[_name(row)]
        kept = appended if _name(row) == "PATCH /v1/statuses/{id}" else 0  # the replaced version
        due = [ENTRY_BYTES + sent + kept if WRITE_BYTES in row.rate_limits else 0, appended]
        if charged != ([0, 0] if _name(row) in free else due) or (_name(row) in WITHOUT_USER and appended):
            wrong[_name(row)] = found[_name(row)]
    table = "\n".join(f"| `{name}` | {c.sent:,} | {c.appended:,} |" for name, c in found.items())
    assert wrong == {}, table
    documented = _documented(r"`[A-Z]+ /\S+`")
    assert documented.keys() == found.keys(), f"the table of {PAGE.name} must be\n{table}"
    for name, charge in found.items():
        for now, before in zip(charge, documented[name], strict=False):
            assert abs(now - before) <= 64 + before / 10, f"{name}: {charge} is {documented[name]} in {PAGE.name}"


def test_each_write_needs_a_token_but_for_sign_ups_and_log_ins() -> None:
    assert {_name(row) for row in WRITES if row.scope == NO_TOKEN} == WITHOUT_USER


async def test_the_writes_of_an_hour_are_documented(app: web.Application) -> None:
    """So many of each pass before the first 429, on a Redis with much memory and on one with 256 MiB."""
    sizes, counters = _documented(r"`[A-Z]+ /\S+`"), app[app_keys.STORE].rate_counters
    config = replace(app[app_keys.CONFIG], limits="on", log_max_bytes=2**30)
    servers = [RequestLimits(config, counters, partial(int, memory)) for memory in (2**32, 2**28)]
    sizes = {
        "small likes": sizes["PUT /v1/users/me/likes/{id}"],
        "small posts": sizes["POST /v1/statuses"],
        "likes of the largest quote": (0, largest_like()),
    }
    found = {
        name: tuple(
            min(limits.maxima()[WRITE_BYTES.name] // (ENTRY_BYTES + sent), limits.maxima()[LOG_BYTES.name] // appended)
            for limits in servers
        )
        for name, (sent, appended) in sizes.items()
    }
    table = "\n".join(f"| {name} | {usual:,} | {small:,} |" for name, (usual, small) in found.items())
    assert _documented("|".join(found)) == found, table


def test_what_undoes_a_protection_is_refused() -> None:
    """Else a block and its end, again and again, would fill the log beyond all limits of bytes."""
    waived = {_name(row) for row in WRITES if row.is_for_safety}
    assert {_name(row) for row in WRITES if row.method == "DELETE"} - waived == {
        "DELETE /v1/users/me/blocks/{id}", "DELETE /v1/users/me/mutes/{id}"
    }  # fmt: skip
    assert {name for name in waived if not name.startswith("DELETE")} == {
        "PATCH /v1/users/me", "POST /v1/users/me/following", "PUT /v1/users/me/blocks/{id}",
        "PUT /v1/users/me/mutes/{id}", "PUT /v1/users/me/password", "POST /v1/reports", "POST /v1/rules/delete",
    }  # fmt: skip
