"""Follow requests, blocks, mutes and relationships over HTTP."""

from typing import Any

import pytest

from tests.stream_server.web.world import Answer, World


async def protect(world: World, uid: str) -> None:
    assert (await world.call("PATCH", "/v1/users/me", uid, json={"protected": True})).status == 200


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"users", "next", "prev"}
    return [user["id"] for user in answer.json["users"]]


async def test_follow_requests_are_approved_refused_and_withdrawn(world: World) -> None:
    ann, bob, eve, dan = [await world.user(login) for login in ("ann", "bob", "eve", "dan")]
    await protect(world, bob)
    for uid in (ann, eve, dan):
        answer = await world.call("PUT", f"/v1/users/me/following/{bob}", uid)
        assert (answer.status, answer.json) == (200, {"following": False, "requested": True})
    assert ids(await world.call("GET", "/v1/users/me/requests", bob)) == [dan, eve, ann]
    assert ids(await world.call("GET", "/v1/users/me/requests/sent", ann)) == [bob]
    approved = await world.call("PUT", f"/v1/users/me/requests/{ann}", bob)
    assert (approved.status, approved.json) == (200, {"followed_by": True, "requested_by": False})
    refused = await world.call("DELETE", f"/v1/users/me/requests/{eve}", bob)
    assert (refused.status, refused.json) == (200, {"followed_by": False, "requested_by": False})
    withdrawn = await world.call("DELETE", f"/v1/users/me/following/{bob}", dan)
    assert (withdrawn.status, withdrawn.json) == (200, {"following": False, "requested": False})
    assert ids(await world.call("GET", "/v1/users/me/requests", bob)) == []
    assert ids(await world.call("GET", f"/v1/users/{bob}/followers", bob)) == [ann]
    before = world.state()
    for method in ("PUT", "DELETE"):
        for uid in (ann, eve, "404"):
            assert (await world.call(method, f"/v1/users/me/requests/{uid}", bob)).error == (404, "not_found", "id")
    assert world.state() == before


@pytest.mark.parametrize(("noun", "member"), [("blocks", "blocking"), ("mutes", "muting")])
async def test_blocks_and_mutes_are_idempotent_and_listed(world: World, noun: str, member: str) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    for target in (bob, eve, eve):
        answer = await world.call("PUT", f"/v1/users/me/{noun}/{target}", ann)
        assert (answer.status, answer.json) == (200, {member: True})
    assert ids(await world.call("GET", f"/v1/users/me/{noun}", ann)) == [eve, bob]
    assert ids(await world.call("GET", f"/v1/users/me/{noun}?count=1", ann)) == [eve]
    relation = (await world.call("GET", f"/v1/users/{ann}/relationship/{bob}", ann)).json
    assert relation[member] is True
    for _ in range(2):
        answer = await world.call("DELETE", f"/v1/users/me/{noun}/{eve}", ann)
        assert (answer.status, answer.json) == (200, {member: False})
    assert ids(await world.call("GET", f"/v1/users/me/{noun}", ann)) == [bob]
    singular = noun[:-1]
    assert world.kinds() == [singular, singular, f"un{singular}"]
    before = world.state()
    for method in ("PUT", "DELETE"):
        path = f"/v1/users/me/{noun}"
        assert (await world.call(method, f"{path}/{ann}", ann)).error == (400, "invalid_parameter", "id")
        assert (await world.call(method, f"{path}/404", ann)).error == (404, "not_found", "id")
        assert (await world.call(method, f"{path}/bob", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before


async def test_a_blocked_user_finds_the_blocker_nowhere(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(ann)
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    await world.call("PUT", f"/v1/users/me/blocks/{bob}", ann)
    for path in ("/v1/users/{}", "/v1/users/{}/followers", "/v1/users/{}/following", "/v1/users/{}/relationship/404"):
        hidden = await world.call("GET", path.format(ann), bob)
        never = await world.call("GET", path.format("7"), bob)
        assert hidden.error[:2] == (404, "not_found")
        assert hidden.body == never.body
    for method, path in (("PUT", "following"), ("DELETE", "following"), ("PUT", "blocks"), ("PUT", "mutes")):
        hidden = await world.call(method, f"/v1/users/me/{path}/{ann}", bob)
        never = await world.call(method, f"/v1/users/me/{path}/7", bob)
        assert hidden.error == (404, "not_found", "id")
        assert hidden.body == never.body
    assert (await world.call("GET", "/v1/users/by-login/ann", bob)).error[:2] == (404, "not_found")
    assert (await world.call("GET", f"/v1/statuses/{status}", bob)).error[:2] == (404, "not_found")
    assert (await world.call("GET", f"/v1/users?ids={ann}", bob)).json == {"users": []}
    again = await world.call("PUT", f"/v1/users/me/following/{bob}", ann)
    assert again.error == (400, "invalid_parameter", "id")
    assert (await world.call("GET", "/v1/users/me", bob)).json["following"] == 0


async def test_a_relationship_shows_private_parts_to_its_users_only(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    await world.call("PUT", f"/v1/users/me/following/{bob}", ann)
    await protect(world, ann)
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    follows = {"following": True, "followed_by": False, "mutual": False}
    own = {"blocking": False, "muting": False}
    path = f"/v1/users/{ann}/relationship/{bob}"
    assert (await world.call("GET", path, ann)).json == follows | own | {"requested": False, "requested_by": True}
    assert (await world.call("GET", path, bob)).json == follows | own | {"requested": False, "requested_by": True}
    assert (await world.call("GET", path, eve)).json == follows
    await world.call("PUT", f"/v1/users/me/requests/{bob}", ann)
    assert (await world.call("GET", path, eve)).json == {"following": True, "followed_by": True, "mutual": True}


@pytest.mark.parametrize("noun", ["relationship", "common-following", "common-followers"])
async def test_relations_of_invalid_and_unknown_users_are_refused(world: World, noun: str) -> None:
    ann = await world.user("ann")
    for one, other, refusal in (
        (ann, ann, (400, "invalid_parameter", "other")),
        (ann, "404", (404, "not_found", "other")),
        ("404", ann, (404, "not_found", "id")),
        ("x", ann, (400, "invalid_parameter", "id")),
        (ann, "x", (400, "invalid_parameter", "other")),
    ):
        assert (await world.call("GET", f"/v1/users/{one}/{noun}/{other}", ann)).error == refusal


async def test_following_and_unfollowing_can_change_a_list(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    await protect(world, eve)
    lists: dict[str, Any] = {}
    for uid, private in ((ann, False), (bob, False), (eve, True)):
        made = await world.call("POST", "/v1/lists", uid, json={"name": "friends", "private": private})
        lists[uid] = made.json["id"]
    for target, requested in ((bob, False), (eve, True)):
        answer = await world.call("PUT", f"/v1/users/me/following/{target}?list={lists[ann]}", ann)
        assert answer.json == {"following": not requested, "requested": requested}
    assert ids(await world.call("GET", f"/v1/lists/{lists[ann]}/members", ann)) == [eve, bob]
    await world.call("DELETE", f"/v1/users/me/following/{bob}", ann)
    assert ids(await world.call("GET", f"/v1/lists/{lists[ann]}/members", ann)) == [eve, bob]
    await world.call("DELETE", f"/v1/users/me/following/{bob}?list={lists[ann]}", ann)
    assert ids(await world.call("GET", f"/v1/lists/{lists[ann]}/members", ann)) == [eve]
    before = world.state()
    for method in ("PUT", "DELETE"):
        for list_id, refusal in (
            (lists[bob], (403, "not_yours", "list")),
            (lists[eve], (404, "not_found", "list")),
            ("404", (404, "not_found", "list")),
            ("x", (400, "invalid_parameter", "list")),
        ):
            answer = await world.call(method, f"/v1/users/me/following/{bob}?list={list_id}", ann)
            assert answer.error == refusal
    assert world.state() == before
