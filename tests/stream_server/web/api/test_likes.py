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


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
@pytest.mark.parametrize("noun", ["likes", "favorites"])
async def test_an_unknown_status_cannot_be_a_like_or_favorite(world: World, noun: str, method: str) -> None:
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, f"/v1/users/me/{noun}/1", ann)).error == (404, "not_found", None)
    assert (await world.call(method, f"/v1/users/me/{noun}/x", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before


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
