"""The search of people by name, and the suggestions whom to follow."""

import pytest

from stream_server.web.api import discovery
from tests.stream_server.web.world import World

BAD = [
    ("search", "missing_parameter", "q"), ("search?q=", "invalid_parameter", "q"),
    (f"search?q={'x' * 51}", "invalid_parameter", "q"), ("search?q=a&count=0", "invalid_parameter", "count"),
    ("search?q=a&count=51", "invalid_parameter", "count"), ("search?q=a&before=1", "unknown_parameter", "before"),
    ("suggested?count=51", "invalid_parameter", "count"), ("suggested?q=a", "unknown_parameter", "q"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "param"), BAD)
async def test_a_wrong_query_is_refused(world: World, query: str, code: str, param: str) -> None:
    ann = await world.user("ann")
    assert (await world.call("GET", f"/v1/users/{query}", ann)).error == (400, code, param)


async def test_people_are_found_and_suggested(world: World) -> None:
    """The answers are the profiles as everybody reads them. Without a token there are none."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bobby", "bob")]
    for uid in (bob, eve):
        await world.call("POST", "/v1/statuses", uid, json={"message": "hello"})
    await world.call("PUT", f"/v1/users/me/following/{bob}", eve)
    profiles = {uid: (await world.call("GET", f"/v1/users/{uid}", ann)).json for uid in (bob, eve)}
    for query in ("search?q=%40BOB", "search?q=bob&count=2"):
        assert (await world.call("GET", f"/v1/users/{query}", ann)).json == {"users": [profiles[eve], profiles[bob]]}
    assert (await world.call("GET", "/v1/users/suggested", ann)).json == {"users": [profiles[bob], profiles[eve]]}
    assert (await world.call("GET", "/v1/users/suggested?count=1", ann)).json == {"users": [profiles[bob]]}
    for path in ("search?q=bob", "suggested"):
        assert (await world.call("GET", f"/v1/users/{path}")).status == 401
        assert (await world.call("GET", f"/v1/users/{path}", ann, scope="stream")).status == 403


async def test_the_log_is_not_read_for_suggestions_that_memory_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest entries are in memory already, and may take megabytes. The server of this test has none there."""
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    await world.call("POST", "/v1/statuses", bob, json={"message": "hello"})
    for entries, found in ((1, ["bob"]), (0, [])):
        monkeypatch.setattr(discovery, "RECENT_ENTRIES", entries)
        answer = await world.call("GET", "/v1/users/suggested", ann)
        assert [user["login"] for user in answer.json["users"]] == found
