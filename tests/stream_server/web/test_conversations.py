"""Threads over HTTP: replies and conversations."""

from tests.stream_server.web.world import World


async def test_a_thread_is_read_from_any_of_its_statuses(world: World) -> None:
    """Conversations are oldest first, replies newest first; both are paged, and 404 for unknown statuses."""
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann)
    first = await world.status(bob, in_reply_to=root)
    second = await world.status(ann, in_reply_to=first)
    for asked in (root, first, second):
        found = (await world.call("GET", f"/v1/statuses/{asked}/conversation", bob)).json["statuses"]
        assert [one["id"] for one in found] == [root, first, second]
        assert {one["conversation"] for one in found} == {root}
    piece = (await world.call("GET", f"/v1/statuses/{root}/conversation?count=2", bob)).json
    rest = (await world.call("GET", f"/v1/statuses/{root}/conversation?before={piece['next']}", bob)).json
    assert [one["id"] for one in rest["statuses"]] == [second]
    replies = (await world.call("GET", f"/v1/statuses/{root}/replies", bob)).json["statuses"]
    assert [one["id"] for one in replies] == [first]
    for part in ("conversation", "replies"):
        assert (await world.call("GET", f"/v1/statuses/1/{part}", bob)).error == (404, "not_found", None)


async def test_a_thread_outlives_its_root(world: World) -> None:
    """The replies to a deleted root stay, but the root cannot be answered any more."""
    ann, bob = await world.user("ann"), await world.user("bob")
    root = await world.status(ann)
    first = await world.status(bob, in_reply_to=root)
    await world.call("DELETE", f"/v1/statuses/{root}", ann)
    second = await world.status(ann, in_reply_to=first)
    found = (await world.call("GET", f"/v1/statuses/{second}/conversation", bob)).json["statuses"]
    assert [one["id"] for one in found] == [first, second]
    before = world.state()
    answer = await world.call("POST", "/v1/statuses", bob, json={"message": "x", "in_reply_to": root})
    assert answer.error == (404, "not_found", "in_reply_to")
    assert world.state() == before
