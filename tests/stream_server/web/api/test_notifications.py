"""Notifications over HTTP: the page, its cursors, the read mark."""

import pytest

from stream_server.web.api.groups import NotificationPage
from stream_server.web.http.validation import decode_body
from tests.stream_server.web.world import Answer, Refusal, World


async def notification_page(world: World, uid: str, query: str = "") -> Answer:
    """Return a page, after checking its shape."""
    answer = await world.call("GET", f"/v1/notifications{query}", uid)
    assert answer.status == 200, answer.body
    decode_body(NotificationPage, answer.body)
    return answer


async def test_each_kind_of_notification_is_listed(world: World) -> None:
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    status = await world.status(ann, "mine")
    await world.status(bob, "hi @ann")
    await world.status(bob, "indeed", in_reply_to=status)
    await world.status(bob, "", origin=status)
    await world.status(bob, "look", origin=status)
    await world.call("PUT", f"/v1/users/me/following/{ann}", bob)
    await world.call("PUT", f"/v1/users/me/likes/{status}", bob)
    await world.call("POST", f"/v1/statuses/{status}/comments", bob, json={"message": "well"})
    page = (await notification_page(world, ann)).json
    kinds = [one["kind"] for one in page["notifications"]]
    assert kinds == ["comment", "like", "follow", "quote", "repost", "reply", "mention"]
    assert (page["unread"], page["next"], page["prev"]) == (7, None, None)
    assert (await notification_page(world, bob)).json == {"notifications": [], "next": None, "prev": None, "unread": 0}


async def test_the_read_mark_counts_the_unread(world: World) -> None:
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    for number in range(3):
        await world.status(bob, f"@ann {number}")
    ids = [one["id"] for one in (await notification_page(world, ann)).json["notifications"]]
    for asked, unread in ((ids[1], 1), (ids[2], 1), (ids[0], 0)):
        answer = await world.call("PUT", "/v1/notifications/read", ann, json={"id": asked})
        assert (answer.status, answer.json) == (200, {"unread": unread})
    page = (await notification_page(world, ann)).json
    assert [one["read"] for one in page["notifications"]] == [True] * 3
    assert page["unread"] == 0


async def test_reading_the_page_marks_nothing_as_read(world: World) -> None:
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    await world.status(bob, "@ann")
    (one,) = (await notification_page(world, ann)).json["notifications"]
    assert (await world.call("PUT", "/v1/notifications/read", bob, json={"id": one["id"]})).status == 200
    assert (await notification_page(world, ann)).json["unread"] == 1


BAD: list[Refusal] = [
    ({}, 400, "missing_parameter", "id"),
    ({"id": 1}, 400, "invalid_parameter", "id"),
    ({"id": "x"}, 400, "invalid_parameter", "id"),
    ({"id": "-1"}, 400, "invalid_parameter", "id"),
    ({"id": "1\n"}, 400, "invalid_parameter", "id"),
    ({"id": "9" * 20}, 404, "not_found", "id"),
    ({"id": "1", "read": True}, 400, "unknown_parameter", "read"),
]


async def test_an_invalid_mark_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    await world.status(bob, "@ann")
    await world.refuses(subtests, "PUT", "/v1/notifications/read", ann, BAD)
    assert (await notification_page(world, ann)).json["unread"] == 1


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("?count=0", "invalid_parameter", "count"),
        ("?before=x", "invalid_cursor", "before"),
        ("?after=1-follow:1:-00000000", "invalid_cursor", "after"),
        ("?page=1", "unknown_parameter", "page"),
    ],
)
async def test_invalid_pages_are_refused(world: World, query: str, code: str, param: str) -> None:
    ann = await world.user("ann")
    assert (await world.call("GET", f"/v1/notifications{query}", ann)).error == (400, code, param)
