"""Likes over HTTP."""

import pytest

from tests.stream_server.web.world import World


async def test_liking_is_idempotent(world: World) -> None:
    """PUT and DELETE answer the state and the count, at the first and the second request."""
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    path = f"/v1/users/me/likes/{status}"
    assert (await world.call("GET", path, bob)).json == {"liked": False}
    for _ in range(2):
        answer = await world.call("PUT", path, bob)
        assert (answer.status, answer.json) == (200, {"liked": True, "likes": 1})
    assert (await world.call("PUT", path, ann)).json == {"liked": True, "likes": 2}
    assert (await world.call("GET", path, bob)).json == {"liked": True}
    assert (await world.call("GET", f"/v1/statuses/{status}", bob)).json["likes"] == 2
    for _ in range(2):
        answer = await world.call("DELETE", path, bob)
        assert (answer.status, answer.json) == (200, {"liked": False, "likes": 1})
    assert world.kinds() == ["post", "like", "notification", "like", "unlike"]


async def test_who_likes_is_paged(world: World) -> None:
    """Newest first, with `since`; errors for invalid pages name the parameter."""
    ann, *others = [await world.user(login) for login in ("ann", "bob", "eve", "sue")]
    status = await world.status(ann)
    for uid in others:
        await world.call("PUT", f"/v1/users/me/likes/{status}", uid)
    first = (await world.call("GET", f"/v1/statuses/{status}/likes?count=2", ann)).json
    rest = (await world.call("GET", f"/v1/statuses/{status}/likes?before={first['next']}", ann)).json
    assert [user["id"] for user in first["users"] + rest["users"]] == others[::-1]
    assert all(user["since"] for user in first["users"])
    assert (first["prev"], rest["next"]) == (None, None)
    for query, error in (
        ("count=0", (400, "invalid_parameter", "count")),
        ("before=x", (400, "invalid_cursor", "before")),
        ("page=1", (400, "unknown_parameter", "page")),
    ):
        assert (await world.call("GET", f"/v1/statuses/{status}/likes?{query}", ann)).error == error


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
async def test_what_is_not_there_is_not_liked(world: World, method: str) -> None:
    """404 for an unknown id, 400 for an invalid one; nothing changes."""
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, "/v1/users/me/likes/1", ann)).error == (404, "not_found", None)
    assert (await world.call(method, "/v1/users/me/likes/x", ann)).error == (400, "invalid_parameter", "id")
    assert (await world.call(method, "/v1/users/me/likes/1")).status == 401
    assert world.state() == before


async def test_a_key_gets_the_same_bytes(world: World) -> None:
    """Even if the count has changed since; for another status the key is a conflict."""
    ann, bob = await world.user("ann"), await world.user("bob")
    status, other = await world.status(ann), await world.status(ann)
    key = {"Idempotency-Key": "k"}
    first = await world.call("PUT", f"/v1/users/me/likes/{status}", bob, headers=key)
    await world.call("PUT", f"/v1/users/me/likes/{status}", ann)
    assert (await world.call("PUT", f"/v1/users/me/likes/{status}", bob, headers=key)).body == first.body
    refused = await world.call("PUT", f"/v1/users/me/likes/{other}", bob, headers=key)
    assert refused.error[:2] == (409, "duplicate")
