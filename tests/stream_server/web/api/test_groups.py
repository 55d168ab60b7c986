"""Groups over HTTP: requests, permissions and answers."""

from typing import Any

import pytest

from tests.stream_server.web.world import Refusal, World

BAD: list[Refusal] = [
    ({"kind": "public"}, 400, "missing_parameter", "name"),
    ({"name": "a"}, 400, "missing_parameter", "kind"),
    ({"name": "a", "kind": "secret"}, 400, "invalid_parameter", "kind"),
    ({"name": " ", "kind": "public"}, 400, "invalid_parameter", "name"),
    ({"name": "x" * 51, "kind": "public"}, 400, "invalid_parameter", "name"),
    ({"name": "a\x7f", "kind": "public"}, 400, "invalid_parameter", "name"),
    ({"name": "a", "kind": "public", "description": "x" * 201}, 400, "invalid_parameter", "description"),
    ({"name": "a", "kind": "public", "description": "\v"}, 400, "invalid_parameter", "description"),
    ({"name": "a", "kind": "public", "members": 3}, 400, "unknown_parameter", "members"),
]

CHANGES: list[Refusal] = [
    ({"kind": "private"}, 400, "unknown_parameter", "kind"),
    ({"name": ""}, 400, "invalid_parameter", "name"),
    ({"name": "\n"}, 400, "invalid_parameter", "name"),
    ({"description": None}, 400, "invalid_parameter", "description"),
    ({"description": "x" * 201}, 400, "invalid_parameter", "description"),
]


async def create_group(world: World, uid: str, kind: str) -> str:
    """Create a group and return its path."""
    made = await world.call("POST", "/v1/groups", uid, json={"name": "club", "kind": kind})
    assert made.status == 201, made.body
    return f"/v1/groups/{made.json['id']}"


async def test_a_group_is_created_joined_left_and_deleted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    body = {"name": "club", "kind": "public", "description": "of it"}
    made = await world.call("POST", "/v1/groups", ann, json=body)
    path = made.headers["Location"]
    assert (made.status, path) == (201, f"/v1/groups/{made.json['id']}")
    assert (await world.call("GET", path, bob)).body == made.body
    changed = await world.call("PATCH", path, ann, json={"name": "other"})
    assert changed.json == {**made.json, "name": "other"}
    for name in ("me", bob):
        joined = await world.call("PUT", f"{path}/members/{name}", bob)
        assert (joined.status, joined.json) == (200, {**changed.json, "members": 2})
    members = (await world.call("GET", f"{path}/members", bob)).json["users"]
    assert [(member["id"], bool(member["since"])) for member in members] == [(bob, True), (ann, True)]
    assert (await world.call("GET", "/v1/users/me/groups", bob)).json["groups"] == [joined.json]
    status = await world.status(bob, "hello", group=made.json["id"])
    listed = (await world.call("GET", f"{path}/statuses", ann)).json["statuses"]
    assert [(one["id"], one["group"]) for one in listed] == [(status, made.json["id"])]
    for name in ("me", bob):
        left = await world.call("DELETE", f"{path}/members/{name}", bob)
        assert (left.status, left.json["members"]) == (200, 1)
    assert (await world.call("DELETE", path, ann)).status == 204
    assert (await world.call("GET", path, ann)).error == (404, "not_found", "id")


async def test_an_invalid_group_is_not_created(world: World, subtests: pytest.Subtests) -> None:
    await world.refuses(subtests, "POST", "/v1/groups", await world.user("ann"), BAD)


async def test_an_invalid_change_of_a_group_is_refused(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    await world.refuses(subtests, "PATCH", await create_group(world, ann, "public"), ann, CHANGES)


async def test_a_private_group_is_404_on_every_route_for_other_users(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    path = await create_group(world, ann, "private")
    await world.call("PUT", f"{path}/members/{bob}", ann)
    status = await world.status(bob, "secret", group=path.rpartition("/")[2])
    await world.call("PUT", f"{path}/members/{eve}", ann)
    assert (await world.call("GET", f"/v1/statuses/{status}", eve)).status == 200
    assert (await world.call("DELETE", f"{path}/members/me", eve)).status == 200
    before = world.state()
    for method, suffix, more in (
        ("GET", "", {}), ("GET", "/members", {}), ("GET", "/statuses", {}), ("PUT", "/members/me", {}),
        ("DELETE", "/members/me", {}), ("PUT", f"/members/{ann}", {}), ("DELETE", f"/members/{bob}", {}),
        ("PATCH", "", {"json": {"name": "x"}}), ("DELETE", "", {}),
    ):  # fmt: skip
        assert (await world.call(method, path + suffix, eve, **more)).error == (404, "not_found", "id"), suffix
        gone = await world.call(method, "/v1/groups/404" + suffix, eve, **more)
        assert gone.error == (404, "not_found", "id")
    assert (await world.call("GET", f"/v1/statuses/{status}", eve)).status == 404
    body = {"message": "x", "group": path.rpartition("/")[2]}
    assert (await world.call("POST", "/v1/statuses", eve, json=body)).error == (404, "not_found", "group")
    assert world.state() == before


async def test_only_the_owner_changes_a_group(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    path = await create_group(world, ann, "announcement")
    await world.call("PUT", f"{path}/members/me", bob)
    before = world.state()
    expected: list[tuple[str, str, str, dict[str, Any], tuple[int, str, str | None]]] = [
        (bob, "PATCH", "", {"json": {"name": "x"}}, (403, "not_yours", "id")),
        (bob, "DELETE", "", {}, (403, "not_yours", "id")),
        (bob, "PUT", f"/members/{eve}", {}, (403, "not_yours", "id")),
        (bob, "DELETE", f"/members/{ann}", {}, (403, "not_yours", "id")),
        (ann, "PUT", f"/members/{eve}", {}, (400, "invalid_parameter", "uid")),
        (ann, "DELETE", "/members/me", {}, (400, "invalid_parameter", "uid")),
        (ann, "DELETE", "/members/404", {}, (404, "not_found", "uid")),
        (ann, "PUT", "/members/x", {}, (400, "invalid_parameter", "uid")),
    ]
    for uid, method, suffix, more, refusal in expected:
        assert (await world.call(method, path + suffix, uid, **more)).error == refusal
    assert world.state() == before


async def test_members_and_groups_are_limited(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    path = await create_group(world, ann, "public")
    world.redis.zadd(f"{{core}}:joined:{path.rpartition('/')[2]}", {str(uid): 1 for uid in range(1, 5001)})
    world.redis.zadd(f"{{core}}:groups:{ann}", {str(number): 1 for number in range(1, 1001)})
    before = world.state()
    assert (await world.call("PUT", f"{path}/members/me", bob)).error == (413, "too_many", "id")
    refused = await world.call("POST", "/v1/groups", ann, json={"name": "a", "kind": "public"})
    assert refused.error == (413, "too_many", None)
    assert world.state() == before
