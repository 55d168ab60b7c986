"""For a user who may not see a status, list, group or user, it does not exist on any route."""

from typing import Any

import pytest

from tests.stream_server.web.world import World

ASKED: list[tuple[str, str, Any]] = [
    ("GET", "/v1/statuses/{id}", None),
    ("DELETE", "/v1/statuses/{id}", None),
    ("GET", "/v1/statuses/{id}/likes", None),
    ("GET", "/v1/statuses/{id}/comments", None),
    ("GET", "/v1/statuses/{id}/reposts", None),
    ("GET", "/v1/statuses/{id}/replies", None),
    ("GET", "/v1/statuses/{id}/conversation", None),
    ("POST", "/v1/statuses/{id}/comments", {"message": "x"}),
    ("PUT", "/v1/users/me/likes/{id}", None),
    ("DELETE", "/v1/users/me/likes/{id}", None),
    ("GET", "/v1/users/me/likes/{id}", None),
    ("PUT", "/v1/users/me/favorites/{id}", None),
    ("DELETE", "/v1/users/me/favorites/{id}", None),
    ("GET", "/v1/users/me/favorites/{id}", None),
    ("POST", "/v1/statuses", {"message": "x", "in_reply_to": "{id}"}),
    ("POST", "/v1/statuses", {"message": "x", "origin": "{id}"}),
    ("POST", "/v1/statuses", {"origin": "{id}"}),
]


async def hide(world: World, kind: str, author: str, viewer: str) -> tuple[str, str]:
    """Return a status that the viewer may not see, for the given reason, and a comment on it."""
    more = {}
    if "group" in kind:
        new = {"name": "closed", "kind": "private" if kind == "private group" else "public"}
        more["group"] = (await world.call("POST", "/v1/groups", author, json=new)).json["id"]
    status = await world.status(author, **more)
    if kind == "original":
        status = await world.status(await world.user("eve"), "", origin=status)
    commenter = author if more else viewer
    made = await world.call("POST", f"/v1/statuses/{status}/comments", commenter, json={"message": "x"})
    if kind == "protected":
        await world.call("PATCH", "/v1/users/me", author, json={"protected": True})
    elif kind in {"blocking", "original"}:
        await world.call("PUT", f"/v1/users/me/blocks/{viewer}", author)
    elif kind == "deleted group":
        await world.call("DELETE", f"/v1/groups/{more['group']}", author)
    elif kind == "blocked":
        await world.call("PUT", f"/v1/users/me/blocks/{author}", viewer)
    elif kind == "suspended":
        await world.call("PUT", f"/v1/admin/suspensions/{author}", viewer, scope="admin")
    elif kind == "deleted":
        await world.call("DELETE", f"/v1/statuses/{status}", author)
    return status, made.json["id"]


@pytest.mark.parametrize(
    "kind", ["protected", "blocking", "blocked", "suspended", "private group", "deleted group", "original", "deleted"]
)
async def test_a_hidden_status_is_answered_as_an_unknown_one(world: World, kind: str) -> None:
    author, viewer = await world.user("ann"), await world.user("bob")
    status, comment = await hide(world, kind, author, viewer)
    before = world.state()
    for method, path, body in ASKED:
        answers = []
        for asked in (status, "1"):
            sent = None if body is None else {name: value.replace("{id}", asked) for name, value in body.items()}
            answers.append(await world.call(method, path.replace("{id}", asked), viewer, json=sent))
        assert (answers[0].status, answers[0].body) == (404, answers[1].body), (method, path)
    of_comments = [await world.call("GET", f"/v1/comments/{asked}", viewer) for asked in (comment, "1")]
    assert (of_comments[0].status, of_comments[0].body) == (404, of_comments[1].body)
    listed = await world.call("GET", f"/v1/statuses?ids={status}", viewer)
    assert listed.json == {"statuses": []}
    assert world.state() == before


async def test_each_request_works_on_a_visible_status(world: World) -> None:
    """The control of the test above."""
    author, viewer = await world.user("ann"), await world.user("bob")
    status = await world.status(author)
    for method, path, body in ASKED:
        sent = None if body is None else {name: value.replace("{id}", status) for name, value in body.items()}
        answer = await world.call(method, path.replace("{id}", status), viewer, json=sent)
        refused = (method, path) == ("DELETE", "/v1/statuses/{id}")
        assert answer.status == 403 if refused else answer.status < 300, (method, path, answer.body)


UNJOINED: list[tuple[str, str, Any]] = [
    ("GET", "/v1/{noun}s/{id}", None),
    ("GET", "/v1/{noun}s/{id}/members", None),
    ("GET", "/v1/{noun}s/{id}/statuses", None),
    ("PATCH", "/v1/{noun}s/{id}", {"name": "x"}),
    ("DELETE", "/v1/{noun}s/{id}", None),
    ("PUT", "/v1/{noun}s/{id}/members/{viewer}", None),
]
"""What somebody who is not in a list or group may ask for. Only the last may succeed, and not for a list."""


@pytest.mark.parametrize("kind", ["visible", "private", "blocking", "suspended"])
@pytest.mark.parametrize("noun", ["list", "group"])
async def test_a_hidden_list_or_group_is_answered_as_an_unknown_one(world: World, noun: str, kind: str) -> None:
    owner, viewer = await world.user("ann"), await world.user("bob")
    is_private = kind == "private"
    trait = {"private": is_private} if noun == "list" else {"kind": "private" if is_private else "public"}
    made = await world.call("POST", f"/v1/{noun}s", owner, json={"name": "x", **trait})
    if kind == "blocking":
        await world.call("PUT", f"/v1/users/me/blocks/{viewer}", owner)
    elif kind == "suspended":
        await world.call("PUT", f"/v1/admin/suspensions/{owner}", viewer, scope="admin")
    before = world.state()
    for method, template, body in UNJOINED:
        paths = [template.format(noun=noun, id=each, viewer=viewer) for each in (made.json["id"], "1")]
        answers = [await world.call(method, path, viewer, json=body) for path in paths]
        if kind == "visible":
            may = method == "GET" or (method == "PUT" and noun == "group")
            assert answers[0].status == (200 if may else 403), (method, template)
        else:
            assert (answers[0].status, answers[0].body) == (404, answers[1].body), (method, template)
    assert kind == "visible" or world.state() == before


async def test_a_private_list_beside_a_public_one_is_listed_for_its_owner_alone(world: World) -> None:
    owner, viewer = await world.user("ann"), await world.user("bob")
    made = [
        (await world.call("POST", "/v1/lists", owner, json={"name": "x", "private": private})).json["id"]
        for private in (True, False, True)
    ]
    for list_id in made:
        await world.call("PUT", f"/v1/lists/{list_id}/members/{viewer}", owner)
    for path in (f"/v1/users/{owner}/lists", f"/v1/users/{viewer}/listed"):
        for reader, expected in ((owner, made[::-1]), (viewer, made[1:2])):
            listed = (await world.call("GET", path, reader)).json["lists"]
            assert [each["id"] for each in listed] == expected, (path, reader)


OF_USER = ["", "/followers", "/following", "/statuses", "/likes", "/lists", "/listed"]


@pytest.mark.parametrize("kind", ["visible", "blocking", "suspended"])
async def test_a_hidden_user_is_answered_as_an_unknown_one(world: World, kind: str) -> None:
    owner, viewer = await world.user("ann"), await world.user("bob")
    if kind == "blocking":
        await world.call("PUT", f"/v1/users/me/blocks/{viewer}", owner)
    elif kind == "suspended":
        await world.call("PUT", f"/v1/admin/suspensions/{owner}", viewer, scope="admin")
    for path in OF_USER:
        answers = [await world.call("GET", f"/v1/users/{each}{path}", viewer) for each in (owner, "1")]
        if kind == "visible":
            assert answers[0].status == 200, path
        else:
            assert (answers[0].status, answers[0].body) == (404, answers[1].body), path
