"""Talks over HTTP: requests, permissions and answers."""

from typing import Any

import pytest

from tests.stream_server.web.world import Refusal, World

BAD_TALKS: list[Refusal] = [
    ({}, 400, "missing_parameter", "people"),
    ({"people": []}, 400, "invalid_parameter", "people"),
    ({"people": "1"}, 400, "invalid_parameter", "people"),
    ({"people": [1]}, 400, "invalid_parameter", "people[0]"),
    ({"people": ["me"]}, 400, "invalid_parameter", "people[0]"),
    ({"people": ["404"]}, 404, "not_found", "people"),
    ({"people": [str(uid) for uid in range(50)]}, 413, "too_many", "people"),
    ({"people": ["1"], "name": ""}, 400, "invalid_parameter", "name"),
    ({"people": ["1"], "name": "x" * 51}, 400, "invalid_parameter", "name"),
    ({"people": ["1"], "name": "a\nb"}, 400, "invalid_parameter", "name"),
    ({"people": ["1"], "message": "x"}, 400, "unknown_parameter", "message"),
]

BAD_MESSAGES: list[Refusal] = [
    ({}, 400, "missing_parameter", "message"),
    ({"message": ""}, 400, "invalid_parameter", "message"),
    ({"message": " \n"}, 400, "invalid_parameter", "message"),
    ({"message": "x" * 2001}, 400, "invalid_parameter", "message"),
    ({"message": "a\x00"}, 400, "invalid_parameter", "message"),
    ({"message": "a\u0080"}, 400, "invalid_parameter", "message"),
    ({"message": 1}, 400, "invalid_parameter", "message"),
    ({"message": "x", "talk": "1"}, 400, "unknown_parameter", "talk"),
]


BAD_READ_MARKS: list[Refusal] = [
    ({}, 400, "missing_parameter", "id"),
    ({"id": 1}, 400, "invalid_parameter", "id"),
    ({"id": "x"}, 400, "invalid_parameter", "id"),
    ({"id": "1"}, 404, "not_found", "id"),
]


async def open_talk(world: World, uid: str, *people: str) -> str:
    """Open a talk and return its path."""
    made = await world.call("POST", "/v1/talks", uid, json={"people": people})
    assert made.status in {200, 201}, made.body
    return f"/v1/talks/{made.json['id']}"


async def test_a_talk_of_two_is_opened_once(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    made = await world.call("POST", "/v1/talks", ann, json={"people": [bob]})
    path = made.headers["Location"]
    assert (made.status, path) == (201, f"/v1/talks/{made.json['id']}")
    again = await world.call("POST", "/v1/talks", bob, json={"people": [ann]})
    assert (again.status, again.body) == (200, made.body)
    sent = await world.call("POST", f"{path}/messages", ann, json={"message": "x" * 2000})
    assert (sent.status, sent.headers["Location"]) == (201, f"{path}/messages/{sent.json['id']}")
    assert (await world.call("GET", sent.headers["Location"], bob)).body == sent.body
    messages = (await world.call("GET", f"{path}/messages", bob)).json
    assert messages == {"messages": [sent.json], "next": None, "prev": None}
    expected = {**made.json, "last_message": sent.json, "unread": 1}
    assert (await world.call("GET", path, bob)).json == expected
    assert (await world.call("GET", "/v1/talks", bob)).json["talks"] == [expected]
    marked = await world.call("PUT", f"{path}/read", bob, json={"id": sent.json["id"]})
    assert (marked.status, marked.json) == (200, {"read": sent.json["id"], "unread": 0})


async def test_a_talk_of_fifty_is_new_each_time(world: World) -> None:
    people = [await world.user(f"u{i}") for i in range(50)]
    body = {"people": people[1:], "name": "x" * 50}
    first, second = [await world.call("POST", "/v1/talks", people[0], json=body) for _ in range(2)]
    assert (first.status, second.status, first.json["name"]) == (201, 201, "x" * 50)
    assert first.json["id"] != second.json["id"]
    assert (await world.call("GET", f"/v1/talks/{first.json['id']}", people[49])).json["people"] == people


async def test_a_talk_is_404_on_every_route_for_other_users(world: World) -> None:
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    path = await open_talk(world, ann, bob)
    sent = await world.call("POST", f"{path}/messages", ann, json={"message": "secret"})
    message = sent.json["id"]
    before = world.state()
    routes: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "", {}), ("GET", "/messages", {}), ("GET", f"/messages/{message}", {}),
        ("POST", "/messages", {"json": {"message": "x"}}), ("PUT", "/read", {"json": {"id": message}}),
    ]  # fmt: skip
    for method, suffix, more in routes:
        for base in (path, "/v1/talks/404"):
            refused = await world.call(method, base + suffix, eve, **more)
            assert refused.error == (404, "not_found", "id")
            assert b"secret" not in refused.body
    assert (await world.call("GET", "/v1/talks", eve)).json["talks"] == []
    for other in (f"/v1/statuses/{message}", f"/v1/comments/{message}"):
        assert (await world.call("GET", other, eve)).status == 404
    assert world.state() == before


async def test_an_invalid_talk_is_not_opened(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    oneself = ({"people": [ann]}, 400, "invalid_parameter", "people")
    await world.refuses(subtests, "POST", "/v1/talks", ann, [*BAD_TALKS, oneself])


async def test_an_invalid_message_and_read_mark_change_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    path = await open_talk(world, ann, bob)
    await world.refuses(subtests, "POST", f"{path}/messages", ann, BAD_MESSAGES)
    await world.refuses(subtests, "PUT", f"{path}/read", ann, BAD_READ_MARKS)
