"""Likes and favorites over HTTP."""

import pytest

from tests.stream_server.web.world import World


async def test_liking_is_idempotent(world: World) -> None:
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


async def test_the_users_who_like_a_status_are_paged(world: World) -> None:
    ann, *others = [await world.user(login) for login in ("ann", "bob", "eve", "sue")]
    status = await world.status(ann)
    for uid in others:
        await world.call("PUT", f"/v1/users/me/likes/{status}", uid)
    first = (await world.call("GET", f"/v1/statuses/{status}/likes?count=2", ann)).json
    rest = (await world.call("GET", f"/v1/statuses/{status}/likes?before={first['next']}", ann)).json
    assert [user["id"] for user in first["users"] + rest["users"]] == others[::-1]
    assert all(user["since"] for user in first["users"])
    assert (first["prev"], rest["next"]) == (None, None)
    refused = await world.call("GET", f"/v1/statuses/{status}/likes?before=x", ann)
    assert refused.error == (400, "invalid_cursor", "before")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
@pytest.mark.parametrize("noun", ["likes", "favorites"])
async def test_an_unknown_status_cannot_be_a_like_or_favorite(world: World, noun: str, method: str) -> None:
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, f"/v1/users/me/{noun}/1", ann)).error == (404, "not_found", None)
    assert (await world.call(method, f"/v1/users/me/{noun}/x", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before


async def test_an_idempotency_key_repeats_the_first_answer(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status, other = await world.status(ann), await world.status(ann)
    key = {"Idempotency-Key": "k"}
    first = await world.call("PUT", f"/v1/users/me/likes/{status}", bob, headers=key)
    await world.call("PUT", f"/v1/users/me/likes/{status}", ann)
    assert (await world.call("PUT", f"/v1/users/me/likes/{status}", bob, headers=key)).body == first.body
    refused = await world.call("PUT", f"/v1/users/me/likes/{other}", bob, headers=key)
    assert refused.error[:2] == (409, "duplicate")


async def test_favorites_are_idempotent_and_private(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    path = f"/v1/users/me/favorites/{status}"
    for _ in range(2):
        answer = await world.call("PUT", path, bob)
        assert (answer.status, answer.json) == (200, {"favorite": True})
    assert (await world.call("GET", path, bob)).json == {"favorite": True}
    assert (await world.call("GET", path, ann)).json == {"favorite": False}
    assert (await world.call("GET", f"/v1/users/{bob}/favorites", ann)).status == 404
    kept = (await world.call("GET", "/v1/users/me/favorites", bob)).json
    assert [one["id"] for one in kept["statuses"]] == [status]
    for _ in range(2):
        answer = await world.call("DELETE", path, bob)
        assert (answer.status, answer.json) == (200, {"favorite": False})
    assert (await world.call("GET", "/v1/users/me/favorites", bob)).json["statuses"] == []
    assert world.kinds() == ["post"]


async def test_a_deleted_favorite_is_hidden_and_can_be_removed(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    path = f"/v1/users/me/favorites/{status}"
    await world.call("PUT", path, bob)
    await world.call("DELETE", f"/v1/statuses/{status}", ann)
    assert (await world.call("GET", path, bob)).error == (404, "not_found", None)
    assert (await world.call("GET", "/v1/users/me/favorites", bob)).json["statuses"] == []
    assert (await world.call("DELETE", path, bob)).json == {"favorite": False}
    assert (await world.call("DELETE", path, bob)).status == 404
