"""Mentions and hashtags over HTTP."""

import pytest

from tests.stream_server.web.world import World


async def test_ones_mentions_are_read_in_pieces_and_go_with_the_status(world: World) -> None:
    """Newest first; users see only their own."""
    ann, bob = await world.user("ann"), await world.user("bob")
    made = [await world.status(ann, f"{i} @BOB") for i in range(3)]
    piece = (await world.call("GET", "/v1/users/me/mentions?count=2", bob)).json
    rest = (await world.call("GET", f"/v1/users/me/mentions?before={piece['next']}", bob)).json
    assert [one["id"] for one in piece["statuses"] + rest["statuses"]] == made[::-1]
    assert (await world.call("GET", "/v1/users/me/mentions", ann)).json["statuses"] == []
    await world.call("DELETE", f"/v1/statuses/{made[1]}", ann)
    left = (await world.call("GET", "/v1/users/me/mentions", bob)).json["statuses"]
    assert [one["id"] for one in left] == [made[2], made[0]]


@pytest.mark.parametrize("asked", ["strasse", "STRASSE", "Straße", "%23stra%C3%9Fe"])
async def test_a_tag_is_found_however_it_is_written(world: World, asked: str) -> None:
    """Case-folded as in the filters, with or without the sign."""
    ann, bob = await world.user("ann"), await world.user("bob")
    made = await world.status(ann, "in der #Straße")
    found = (await world.call("GET", f"/v1/tags/{asked}/statuses", bob)).json["statuses"]
    assert [one["id"] for one in found] == [made]


@pytest.mark.parametrize("asked", ["%23", "a%20b", "2026", "a-b", "a%0Ab"])
async def test_what_is_no_tag_is_refused(world: World, asked: str) -> None:
    """The error names the parameter, because no status could ever have such a tag."""
    ann = await world.user("ann")
    answer = await world.call("GET", f"/v1/tags/{asked}/statuses", ann)
    assert answer.error[:2] == (400, "invalid_parameter")


async def test_a_protected_post_is_in_the_tag_for_followers_only(world: World) -> None:
    """Protection also hides earlier posts."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    made = await world.status(ann, "#tag")
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    await world.call("PATCH", "/v1/users/me", ann, json={"protected": True})
    for uid, expected in ((ann, [made]), (bob, [made]), (eve, [])):
        found = (await world.call("GET", "/v1/tags/tag/statuses", uid)).json["statuses"]
        assert [one["id"] for one in found] == expected
