"""The largest writes: how many entries they append, and what their user is charged."""

import asyncio
import socket
import struct
from typing import Any

import pytest
from aiohttp import web

from stream_server.store import keys
from stream_server.store.redis.pipelined_connection import Call, PipelinedConnection
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.redis.timeout_budget import bound_appended
from stream_server.web.http import app_keys
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.rate_limits import LOG_BYTES
from tests.stream_server import tokens
from tests.stream_server.web.test_write_charges import largest_like
from tests.stream_server.web.world import World
from tests.waiting import eventually

MAX_BYTES = 10**12
"""The limit of the bytes of the log here, so that no write is refused."""

PEOPLE = [f"{letter}{digit}" for letter in "abcdefg" for digit in range(10)]
"""Logins of 70 users, whom one text can mention."""

CROWD = "".join(f"@{login} " for login in PEOPLE)[:279]
MAX_MENTIONED = 50


LINK = "http://example.com/"


@pytest.fixture(params=[280, 4000])
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    limits = f"write_bytes=0 log_bytes={MAX_BYTES} statuses=0"
    return {"limits": limits, "message_max_chars": request.param, "log_max_bytes": 0}


def _left(app: web.Application, uid: str) -> int:
    """The bytes of the log that a user has left."""
    known = app[LIMITS]._limiter.use_known(LOG_BYTES, uid, MAX_BYTES, 0)
    assert known is not None
    return known.remaining


def _largest(max_chars: int, kind: str) -> dict[str, Any]:
    """The body of a status that is about as large as one may be."""
    message = {
        "characters": "\u6f22" * max_chars, "links": "a.co " * (max_chars // 5), "tags": "#a " * (max_chars // 3),
        "mentions": (CROWD * (max_chars // 280))[:max_chars], "quotes": '"\n' * (max_chars // 2),
    }[kind]  # fmt: skip
    media = [{"url": LINK + "q" * (2048 - len(LINK)), "type": "image"}] * 4
    return {"message": message, "meta": {"filler": "x" * 4080}, "media": media}


async def _appended(world: World, app: web.Application, uid: str, method: str, path: str, body: Any = None) -> Any:
    """Send a write. Return its answer and its entries, after a look at its charge: it is what the log has got."""
    newest, left = world.redis.xrevrange(keys.LOG, count=1), _left(app, uid)
    answer = await world.call(method, path, uid, json=body)
    assert answer.status in {200, 201}, answer.body
    entries = world.redis.xrange(keys.LOG, b"(" + newest[0][0])
    appended = sum(len(entry) + 1 + sum(map(len, fields.values())) for entry, fields in entries)
    assert left - _left(app, uid) == appended
    return answer, [fields for _, fields in entries], appended


async def _crowd(world: World) -> tuple[str, str]:
    """Make all users whom a text mentions, and two more, who have large profiles."""
    ann, bob = await world.user("ann"), await world.user("bob")
    for uid in (ann, bob):
        profile = {"bio": "\u6f22" * 500, "url": LINK + "q" * (2048 - len(LINK)), "name": "\u6f22" * 50}
        assert (await world.call("PATCH", "/v1/users/me", uid, json=profile)).status == 200
    people = [{"login": login, "name": login} for login in PEOPLE]
    await world.call("POST", "/v1/admin/users", ann, scope="admin", json={"users": people})
    return ann, bob


async def test_a_text_with_many_mentions_makes_one_entry_for_all(world: World, app: web.Application) -> None:
    ann, bob = await _crowd(world)
    body = _largest(280, "characters")
    status = (await world.call("POST", "/v1/statuses", bob, json=body)).json["id"]
    comments, quoting = f"/v1/statuses/{status}/comments", {"in_reply_to": status, "origin": status}
    for path, more, kinds in (
        (comments, {}, ["comment", "notification", "notification"]),  # Bob is told of a comment
        ("/v1/statuses", quoting, ["post", "notification", "notification", "notification"]),  # answered and quoted
    ):
        answer, entries, _ = await _appended(world, app, ann, "POST", path, {"message": CROWD, **more})
        assert [fields[b"k"].decode() for fields in entries] == kinds
        told = [fields[b"a"].partition(b":")[2].split(b",") for fields in entries[1:]]
        assert sorted(map(len, told)) == [1] * (len(told) - 1) + [MAX_MENTIONED]
        mentions = answer.json["entities"]["mentions"]
        assert ["id" in mention for mention in mentions] == [at < MAX_MENTIONED for at in range(len(PEOPLE))]


@pytest.mark.parametrize("kind", ["characters", "links", "tags", "mentions", "quotes"])
async def test_no_write_appends_more_than_a_client_that_leaves_is_charged_for(
    world: World, app: web.Application, kind: str
) -> None:
    ann, bob = await _crowd(world)
    max_chars = SizeLimits.of_settings(app[app_keys.CONFIG]).message_max_chars
    body = _largest(max_chars, kind)
    status = (await world.call("POST", "/v1/statuses", bob, json=body)).json["id"]
    quoting = body | {"in_reply_to": status, "origin": status}
    if kind != "mentions":
        quoting["message"] = "@a0 " + quoting["message"][: max_chars - 4]  # one more entry
    answer, _, appended = await _appended(world, app, ann, "POST", "/v1/statuses", quoting)
    _, _, of_comment = await _appended(
        world, app, ann, "POST", f"/v1/statuses/{answer.json['id']}/comments", {"message": quoting["message"]}
    )
    _, _, of_like = await _appended(world, app, bob, "PUT", f"/v1/users/me/likes/{answer.json['id']}")
    assert max(appended, of_comment, of_like) < bound_appended(max_chars, 1) < 16 * appended
    if max_chars == 280:
        assert of_like < largest_like() * 1.1


async def _leave(world: World, address: tuple[str, int], uid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a post whose answer Redis holds back, and reset the connection once the server has sent it to Redis."""
    submit, calls = PipelinedConnection.submit, list[Call]()

    def note(self: PipelinedConnection, call: Call) -> None:
        calls.extend([call] if b'"tea"' in call.packed else [])
        submit(self, call)

    monkeypatch.setattr(PipelinedConnection, "submit", note)
    world.redis.client_pause(60_000, all=False)
    _, writer = await asyncio.open_connection(*address)
    writer.write(
        f"POST /v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {tokens.fresh(uid)}\r\n"
        "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n"
        '{"message":"tea"}'.encode()
    )
    await eventually(lambda: calls and not calls[-1].packed)
    client = writer.get_extra_info("socket")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset: it waits for no answer
    writer.close()


async def test_a_write_whose_client_leaves_is_charged_as_a_large_one(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a client that leaves at once would write for nothing."""
    ann = await world.user("ann")
    try:
        await _leave(world, address, ann, monkeypatch)
        sizes = app[app_keys.STORE]._scripts.size_limits  # of a store without the settings
        charged = bound_appended(sizes.message_max_chars, 1)
        await eventually(lambda: _left(app, ann) <= MAX_BYTES - charged)
    finally:
        world.redis.client_unpause()
