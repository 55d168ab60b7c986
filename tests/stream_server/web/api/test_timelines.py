"""Timelines, conversations, mentions and tags over HTTP: paging, errors and visibility."""

from typing import Any

import pytest

from tests.stream_server.web.world import World


async def _ids(world: World, path: str, uid: str, **query: Any) -> list[str]:
    answer = await world.call("GET", path, uid, params=query)
    assert answer.status == 200, answer
    assert set(answer.json) == {"statuses", "next", "prev"}
    return [status["id"] for status in answer.json["statuses"]]


async def _follow(world: World, source: str, target: str) -> None:
    assert (await world.call("PUT", f"/v1/users/me/following/{target}", source)).status == 200


async def test_the_home_timeline_by_cursor_and_by_number(world: World) -> None:
    ada, bob, carl = [await world.user(login) for login in ("ada", "bob", "carl")]
    await _follow(world, bob, ada)
    ids = [await world.status((ada, bob)[i % 2], f"{i}") for i in range(32)][::-1]
    await world.status(carl, "nobody's business")
    assert await _ids(world, "/v1/timelines/home", bob) == ids[:30]
    assert await _ids(world, "/v1/timelines/home", bob, count=5, page=2) == ids[5:10]
    first = (await world.call("GET", "/v1/timelines/home", bob, params={"count": 20})).json
    assert first["prev"] is None
    second = (await world.call("GET", "/v1/timelines/home", bob, params={"count": 20, "before": first["next"]})).json
    assert [one["id"] for one in second["statuses"]] == ids[20:]
    assert second["next"] is None
    assert await _ids(world, "/v1/timelines/home", bob, count=20, after=second["prev"]) == ids[:20]


async def test_the_home_timeline_in_order_of_importance(world: World) -> None:
    ada = await world.user("ada")
    ids = [await world.status(ada, f"{i}") for i in range(3)]
    await world.call("PUT", f"/v1/users/me/likes/{ids[0]}", await world.user("bob"))
    assert await _ids(world, "/v1/timelines/home", ada, order="importance") == [ids[0], ids[2], ids[1]]
    assert await _ids(world, "/v1/timelines/home", ada, order="time") == ids[::-1]
    cursor = (await world.call("GET", "/v1/timelines/home?count=1", ada)).json["next"]
    refused = await world.call("GET", "/v1/timelines/home", ada, params={"order": "importance", "before": cursor})
    assert refused.error == (400, "invalid_cursor", "before")


async def test_one_thread_appears_in_every_other_timeline(world: World) -> None:
    ada, bob = await world.user("ada"), await world.user("bob")
    root = await world.status(ada, "the #Root")
    reply = await world.status(bob, "@ada #root indeed", in_reply_to=root)
    quote = await world.status(bob, "look", origin=root)
    assert (await world.call("PUT", f"/v1/users/me/likes/{root}", bob)).status == 200
    assert (await world.call("PUT", f"/v1/users/me/favorites/{root}", bob)).status == 200
    assert await _ids(world, f"/v1/users/{bob}/statuses", ada) == [quote, reply]
    assert await _ids(world, f"/v1/users/{bob}/likes", ada) == [root]
    assert await _ids(world, f"/v1/statuses/{root}/reposts", ada) == [quote]
    assert await _ids(world, f"/v1/statuses/{root}/replies", ada) == [reply]
    assert await _ids(world, f"/v1/statuses/{reply}/conversation", ada) == [root, reply]
    assert await _ids(world, "/v1/users/me/mentions", ada) == [reply]
    assert await _ids(world, "/v1/users/me/favorites", bob) == [root]
    assert await _ids(world, "/v1/users/me/favorites", ada) == []
    assert await _ids(world, "/v1/tags/ROOT/statuses", ada) == [reply, root]
    assert await _ids(world, "/v1/tags/%23root/statuses", ada) == [reply, root]


async def test_the_timeline_of_a_list(world: World) -> None:
    ada, bob = await world.user("ada"), await world.user("bob")
    status = await world.status(ada, "hello")
    for private, seen in ((False, 200), (True, 404)):
        made = await world.call("POST", "/v1/lists", bob, json={"name": "friends", "private": private})
        path = f"/v1/lists/{made.json['id']}"
        assert (await world.call("PUT", f"{path}/members/{ada}", bob)).status == 200
        assert await _ids(world, f"{path}/statuses", bob) == [status]
        assert (await world.call("GET", f"{path}/statuses", ada)).status == seen


WHAT_IS_REFUSED: list[Any] = [
    ("/v1/timelines/home?order=fame", (400, "invalid_parameter", "order")),
    ("/v1/timelines/home?count=0", (400, "invalid_parameter", "count")),
    ("/v1/timelines/home?count=201", (400, "invalid_parameter", "count")),
    ("/v1/timelines/home?page=0", (400, "invalid_parameter", "page")),
    ("/v1/timelines/home?page=2&before=x", (400, "conflicting_parameters", "page")),
    ("/v1/timelines/home?before=x&after=y", (400, "conflicting_parameters", "after")),
    ("/v1/timelines/home?after=nonsense", (400, "invalid_cursor", "after")),
    ("/v1/timelines/home?since=1", (400, "unknown_parameter", "since")),
    ("/v1/users/1/statuses", (404, "not_found", None)),
    ("/v1/users/1/likes", (404, "not_found", None)),
    ("/v1/users/x/statuses", (400, "invalid_parameter", "id")),
    ("/v1/statuses/1/replies", (404, "not_found", None)),
    ("/v1/statuses/1/reposts", (404, "not_found", None)),
    ("/v1/statuses/1/conversation", (404, "not_found", None)),
    ("/v1/tags/123/statuses", (400, "invalid_parameter", "tag")),
    ("/v1/tags/a-b/statuses", (400, "invalid_parameter", "tag")),
    *((f"/v1/tags/{tag}/statuses", (400, "invalid_parameter", "tag")) for tag in ("%20", "%23", "a%20b", "a%0Ab")),
    ("/v1/lists/1/statuses", (404, "not_found", "id")),
    ("/v1/groups/1/statuses", (404, "not_found", None)),
]


async def test_invalid_pages_and_unknown_ids_are_refused(world: World, subtests: pytest.Subtests) -> None:
    ada = await world.user("ada")
    for path, refusal in WHAT_IS_REFUSED:
        with subtests.test(path=path):
            code, word, param = (await world.call("GET", path, ada)).error
            assert (code, word) == refusal[:2]
            assert param in {refusal[2], "id"} if code == 404 else param == refusal[2]


@pytest.mark.parametrize("page", [2**20, 999_999_999])
async def test_a_page_far_behind_the_end_is_empty(world: World, page: int) -> None:
    ada = await world.user("ada")
    await world.status(ada, "hello #tag")
    for path in ("/v1/timelines/home", f"/v1/users/{ada}/statuses", "/v1/tags/tag/statuses"):
        assert await _ids(world, path, ada, page=page, count=200) == []
    assert await _ids(world, "/v1/timelines/home", ada, page=page, count=200, order="importance") == []
