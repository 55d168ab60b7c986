"""The refusal of an unknown name suggests the nearest known one, wherever a request may name something."""

import asyncio
from typing import Any

import pytest

from tests.stream_server import tokens
from tests.stream_server.web.world import World


@pytest.mark.parametrize(
    ("method", "path", "more", "hint"),
    [
        ("GET", "/v1/timelines/home?limit=3", {}, "did you mean `count`?"),
        ("GET", "/v1/users?id=1", {}, "did you mean `ids`?"),
        ("GET", "/v1/users?zzz=1", {}, None),
        ("POST", "/v1/statuses", {"json": {"text": "tea"}}, "did you mean `message`?"),
        ("POST", "/v1/statuses", {"json": {"message": "tea", "language": "en"}}, "did you mean `lang`?"),
        ("POST", "/v1/statuses", {"json": {"message": "x", "place": {"title": "x"}}}, "did you mean `name`?"),
        ("POST", "/v1/rules", {"json": {"rules": [{"rule": "x", "tags": "x"}]}}, "did you mean `tag`?"),
        ("GET", "/v1/stream?lang=en&track=tea", {}, "did you mean `language`?"),
        ("GET", "/v1/stream?q=tea", {}, "did you mean `track`?"),
        ("GET", "/v1/events?folow=1", {}, "did you mean `follow`?"),
        ("GET", "/v1/stream?track=tea&kinds=likes", {}, "did you mean `like`?"),
        ("GET", "/v1/stream/user?kind=post", {}, "did you mean `kinds`?"),
        ("GET", "/v1/stream?rule=tea%20author:ada", {}, "did you mean `from:`?"),
        ("GET", "/v1/stream?rule=tea%20has:image", {}, "did you mean `images`?"),
        ("GET", "/v1/stream?track=#tea", {}, "a `#` is written as %23"),
        ("GET", "/v1/stream?track=tea,", {}, "a `#` is written as %23"),
    ],
)
async def test_an_unknown_name_gets_a_suggestion(
    world: World, method: str, path: str, more: dict[str, Any], hint: str | None
) -> None:
    answer = await world.call(method, path, await world.user("ann"), **more)
    assert answer.status == 400
    message = answer.json["error"]["message"]
    assert hint in message if hint else "did you mean" not in message


@pytest.mark.parametrize("target", ["/v1/stream?track=tea,#coffee", "/v1/stream?track=tea#coffee", "/v1/users/me#a"])
async def test_an_unescaped_hash_in_a_target_is_refused(world: World, address: tuple[str, int], target: str) -> None:
    """No client of HTTP may send it (RFC 9112 section 3.2), because it would begin a fragment."""
    token = tokens.fresh(await world.user("ann"), "read stream")
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    answer = await reader.readuntil(b"}")
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"%23" in answer
