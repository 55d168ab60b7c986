"""Favorites over HTTP."""

import pytest

from tests.stream_server.web.world import World


async def test_keeping_is_idempotent_and_private(world: World) -> None:
    """Repeating gives the same answer, no event, and other users cannot read it."""
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


async def test_what_is_gone_is_not_shown_and_can_be_dropped(world: World) -> None:
    """A deleted status is 404, absent from the list, and can be removed with 200."""
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    path = f"/v1/users/me/favorites/{status}"
    await world.call("PUT", path, bob)
    await world.call("DELETE", f"/v1/statuses/{status}", ann)
    assert (await world.call("GET", path, bob)).error == (404, "not_found", None)
    assert (await world.call("GET", "/v1/users/me/favorites", bob)).json["statuses"] == []
    assert (await world.call("DELETE", path, bob)).json == {"favorite": False}
    assert (await world.call("DELETE", path, bob)).status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET"])
async def test_what_is_not_there_is_not_kept(world: World, method: str) -> None:
    """404 for an unknown id, 400 for an invalid one; nothing changes."""
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, "/v1/users/me/favorites/1", ann)).error == (404, "not_found", None)
    assert (await world.call(method, "/v1/users/me/favorites/x", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before
