"""Reposts and quotes over HTTP."""

import pytest

from tests.stream_server.web.world import World


async def test_reposts_are_of_the_root(world: World) -> None:
    """A repost of a repost counts for the root; a quote has its own text beside the original."""
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann, "root")
    repost = await world.status(bob, "", origin=root)
    again = await world.status(ann, "", origin=repost)
    quote = await world.status(bob, "so true", origin=again)
    found = (await world.call("GET", f"/v1/statuses/{root}/reposts", ann)).json["statuses"]
    assert [one["id"] for one in found] == [quote, again, repost]
    assert {(one["origin"], one["original"]["message"]) for one in found} == {(root, "root")}
    assert (await world.call("GET", f"/v1/statuses/{root}", ann)).json["reposts"] == 3
    assert (await world.call("GET", f"/v1/statuses/{repost}/reposts", ann)).json["statuses"] == []


async def test_a_repost_is_liked_and_commented_itself(world: World) -> None:
    """Its original is unaffected."""
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann)
    repost = await world.status(bob, "", origin=root)
    assert (await world.call("PUT", f"/v1/users/me/likes/{repost}", ann)).json["likes"] == 1
    assert (await world.call("POST", f"/v1/statuses/{repost}/comments", ann, json={"message": "x"})).status == 201
    shown = (await world.call("GET", f"/v1/statuses/{repost}", bob)).json
    assert [(one["likes"], one["comments"]) for one in (shown, shown["original"])] == [(1, 1), (0, 0)]


@pytest.mark.parametrize("message", ["", "so true"])
async def test_the_original_gone_is_null(world: World, message: str) -> None:
    """The repost stays."""
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann)
    made = await world.status(bob, message, origin=root)
    await world.call("DELETE", f"/v1/statuses/{root}", ann)
    shown = (await world.call("GET", f"/v1/statuses/{made}", ann)).json
    assert (shown["message"], shown["origin"], shown["original"]) == (message, root, None)
    assert (await world.call("GET", f"/v1/statuses/{root}/reposts", ann)).status == 404


async def test_what_is_protected_is_not_passed_on(world: World) -> None:
    """A follower gets the reason of the refusal; other users get 404."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    await world.call("PATCH", "/v1/users/me", ann, json={"protected": True})
    made = await world.status(ann)
    before = world.state()
    for uid, error in ((bob, (400, "invalid_parameter", "origin")), (eve, (404, "not_found", "origin"))):
        answer = await world.call("POST", "/v1/statuses", uid, json={"message": "look", "origin": made})
        assert answer.error == error
    assert world.state() == before
