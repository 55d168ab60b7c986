"""Lists over HTTP: requests, permissions and answers."""

import pytest

from tests.stream_server.web.world import Refusal, World

BAD: list[Refusal] = [
    ({}, 400, "missing_parameter", "name"),
    ({"name": ""}, 400, "invalid_parameter", "name"),
    ({"name": " "}, 400, "invalid_parameter", "name"),
    ({"name": "x" * 51}, 400, "invalid_parameter", "name"),
    ({"name": "a\nb"}, 400, "invalid_parameter", "name"),
    ({"name": "a\u0085b"}, 400, "invalid_parameter", "name"),
    ({"name": 1}, 400, "invalid_parameter", "name"),
    ({"name": None}, 400, "invalid_parameter", "name"),
    ({"name": "a", "description": "x" * 201}, 400, "invalid_parameter", "description"),
    ({"name": "a", "description": "\x00"}, 400, "invalid_parameter", "description"),
    ({"name": "a", "private": "yes"}, 400, "invalid_parameter", "private"),
    ({"name": "a", "uid": "1"}, 400, "unknown_parameter", "uid"),
    ([], 400, "malformed_body", None),
]


async def test_a_list_is_created_changed_filled_and_deleted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    made = await world.call("POST", "/v1/lists", ann, json={"name": "x" * 50, "description": "y\n" * 100})
    path = made.headers["Location"]
    assert (made.status, path) == (201, f"/v1/lists/{made.json['id']}")
    assert (await world.call("GET", path, bob)).body == made.body
    changed = await world.call("PATCH", path, ann, json={"name": "n", "description": "", "private": True})
    assert changed.json == {**made.json, "name": "n", "description": "", "private": True}
    assert (await world.call("PATCH", path, ann, json={})).body == changed.body
    added = await world.call("PUT", f"{path}/members/{bob}", ann)
    assert (added.status, added.json["members"]) == (200, 1)
    (member,) = (await world.call("GET", f"{path}/members", ann)).json["users"]
    assert (member["id"], bool(member["since"])) == (bob, True)
    assert (await world.call("GET", f"/v1/users/{ann}/lists", ann)).json["lists"] == [added.json]
    assert (await world.call("GET", f"/v1/users/{bob}/listed", ann)).json["lists"] == [added.json]
    assert (await world.call("GET", f"/v1/users/{bob}/listed", bob)).json == {"lists": [], "next": None, "prev": None}
    removed = await world.call("DELETE", f"{path}/members/{bob}", ann)
    assert (removed.status, removed.json["members"]) == (200, 0)
    assert (await world.call("DELETE", path, ann)).status == 204
    assert (await world.call("GET", path, ann)).error == (404, "not_found", "id")


async def test_an_invalid_list_is_not_created_or_changed(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    path = f"/v1/lists/{(await world.call('POST', '/v1/lists', ann, json={'name': 'a'})).json['id']}"
    await world.refuses(subtests, "POST", "/v1/lists", ann, BAD)
    await world.refuses(subtests, "PATCH", path, ann, [row for row in BAD if row[0]])


async def test_the_list_of_another_user_cannot_be_changed_on_any_route(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    for private in (False, True):
        body = {"name": "a", "private": private}
        path = f"/v1/lists/{(await world.call('POST', '/v1/lists', ann, json=body)).json['id']}"
        await world.call("PUT", f"{path}/members/{bob}", ann)
        before = world.state()
        for suffix in ("", "/members", "/statuses"):
            assert (await world.call("GET", path + suffix, bob)).status == (404 if private else 200)
        for method, suffix, more in (
            ("PATCH", "", {"json": {"name": "b"}}), ("DELETE", "", {}), ("PUT", f"/members/{ann}", {}),
            ("DELETE", f"/members/{bob}", {}),
        ):  # fmt: skip
            refused = await world.call(method, path + suffix, bob, **more)
            assert refused.error == ((404, "not_found", "id") if private else (403, "not_yours", "id"))
        assert world.state() == before


async def test_invalid_and_unknown_ids_are_refused_by_name(world: World) -> None:
    ann = await world.user("ann")
    path = f"/v1/lists/{(await world.call('POST', '/v1/lists', ann, json={'name': 'a'})).json['id']}"
    for method in ("PUT", "DELETE"):
        assert (await world.call(method, f"{path}/members/me", ann)).error == (400, "invalid_parameter", "uid")
        assert (await world.call(method, f"{path}/members/404", ann)).error == (404, "not_found", "uid")
        assert (await world.call(method, f"/v1/lists/x/members/{ann}", ann)).error == (400, "invalid_parameter", "id")
        assert (await world.call(method, f"/v1/lists/404/members/{ann}", ann)).error == (404, "not_found", "id")
    assert (await world.call("GET", "/v1/users/404/lists", ann)).error == (404, "not_found", "id")
    assert (await world.call("GET", "/v1/users/404/listed", ann)).error == (404, "not_found", "id")


async def test_members_and_lists_are_limited(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    list_id = (await world.call("POST", "/v1/lists", ann, json={"name": "a"})).json["id"]
    world.redis.zadd(f"{{core}}:members:{list_id}", {str(uid): 1 for uid in range(1, 5001)})
    world.redis.zadd(f"{{core}}:lists:{ann}", {str(number): number for number in range(1, 1000)})
    before = world.state()
    assert (await world.call("PUT", f"/v1/lists/{list_id}/members/{bob}", ann)).error == (413, "too_many", "id")
    refused = await world.call("PUT", f"/v1/users/me/following/{bob}?list={list_id}", ann)
    assert refused.error == (413, "too_many", "list")
    assert (await world.call("POST", "/v1/lists", ann, json={"name": "a"})).error == (413, "too_many", None)
    assert world.state() == before
