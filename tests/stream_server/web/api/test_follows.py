"""Follow and unfollow over HTTP, singly and in batches, and the resulting lists."""

from typing import Any

import pytest

from tests.stream_server.web.world import Refusal, World


async def test_following_is_idempotent(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    for _ in range(2):
        answer = await world.call("PUT", f"/v1/users/me/following/{bob}", ann)
        assert (answer.status, answer.json) == (200, {"following": True, "requested": False})
    assert (await world.call("GET", f"/v1/users/{bob}", ann)).json["followers"] == 1
    for _ in range(2):
        answer = await world.call("DELETE", f"/v1/users/me/following/{bob}", ann)
        assert (answer.status, answer.json) == (200, {"following": False, "requested": False})
    assert (await world.call("GET", f"/v1/users/{ann}", ann)).json["following"] == 0
    assert world.kinds() == ["follow", "notification", "unfollow"]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_following_oneself_or_an_unknown_user_is_refused(world: World, method: str) -> None:
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, f"/v1/users/me/following/{ann}", ann)).error == (400, "invalid_parameter", "id")
    assert (await world.call(method, "/v1/users/me/following/404", ann)).error == (404, "not_found", "id")
    assert (await world.call(method, "/v1/users/me/following/me", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before


async def test_a_batch_reports_each_outcome(world: World) -> None:
    """In the order of the request; a failure does not hide the others."""
    ann, bob, eve, dan, joe = [await world.user(login) for login in ("ann", "bob", "eve", "dan", "joe")]
    await world.call("PUT", f"/v1/users/me/following/{eve}", ann)
    await world.call("PATCH", "/v1/users/me", dan, json={"protected": True})
    await world.call("PUT", f"/v1/users/me/blocks/{joe}", ann)
    body = {"follow": [bob, dan, joe, "404", ann], "unfollow": [eve]}
    answer = await world.call("POST", "/v1/users/me/following", ann, json=body)
    outcomes = ["followed", "requested", "blocked", "not_found", "oneself", "unfollowed"]
    ids = [*body["follow"], *body["unfollow"]]
    assert answer.json["results"] == [{"id": one, "outcome": what} for one, what in zip(ids, outcomes, strict=True)]
    assert (await world.call("GET", f"/v1/users/{ann}", ann)).json["following"] == 1


BAD: list[Refusal] = [
    ({}, 400, "missing_parameter", "follow"),
    ({"follow": [], "unfollow": []}, 400, "missing_parameter", "follow"),
    ({"follow": ["1"], "unfollow": ["1"]}, 400, "conflicting_parameters", "unfollow"),
    ({"follow": ["1"] * 101, "unfollow": ["2"] * 100}, 413, "too_many", "follow"),
    ({"follow": "1"}, 400, "invalid_parameter", "follow"),
    ({"follow": [1]}, 400, "invalid_parameter", "follow[0]"),
    ({"follow": ["1", "x"]}, 400, "invalid_parameter", "follow[1]"),
    ({"followers": ["1"]}, 400, "unknown_parameter", "followers"),
]


async def test_an_invalid_batch_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    await world.refuses(subtests, "POST", "/v1/users/me/following", await world.user("ann"), BAD)


A_BAD_PIECE_IS_REFUSED: list[Any] = [
    ("count=0", "invalid_parameter", "count"),
    ("count=201", "invalid_parameter", "count"),
    ("count=-1", "invalid_parameter", "count"),
    ("count=1e2", "invalid_parameter", "count"),
    ("count=", "invalid_parameter", "count"),
    ("before=x", "invalid_cursor", "before"),
    ("after=1", "invalid_cursor", "after"),
    ("before=1-1&after=1-1", "conflicting_parameters", "after"),
    ("page=1", "unknown_parameter", "page"),
]


async def test_invalid_pages_are_refused(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    for query, code, param in A_BAD_PIECE_IS_REFUSED:
        with subtests.test(query=query):
            assert (await world.call("GET", f"/v1/users/{ann}/followers?{query}", ann)).error == (400, code, param)


async def test_an_administrator_creates_users_in_one_request(world: World) -> None:
    root = await world.user("root")
    users = [{"login": f"u{i}", "name": f"User {i}"} for i in range(250)] + [{"login": "ROOT", "name": "x"}]
    first = (await world.call("POST", "/v1/admin/users", root, scope="admin", json={"users": users})).json["users"]
    assert [user["login"] for user in first] == [user["login"] for user in users]
    assert [user["created"] for user in first] == [True] * 250 + [False]
    assert first[-1]["id"] == root
    again = (await world.call("POST", "/v1/admin/users", root, scope="admin", json={"users": users})).json["users"]
    assert [user["id"] for user in again] == [user["id"] for user in first]
    assert not any(user["created"] for user in again)
    assert (await world.call("GET", "/v1/users/by-login/u7", root)).json["name"] == "User 7"


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, (400, "missing_parameter", "users")),
        ({"users": []}, (400, "invalid_parameter", "users")),
        ({"users": [{"login": "a", "name": "a"}, {"login": "!"}]}, (400, "invalid_parameter", "users[1].login")),
        ({"users": [{"login": "a", "name": "\x00"}]}, (400, "invalid_parameter", "users[0].name")),
        ({"users": [{"login": "a"}]}, (400, "missing_parameter", "users[0].name")),
        ({"users": [{"login": "a", "name": "a", "id": "1"}]}, (400, "unknown_parameter", "users[0].id")),
        ({"users": [{"login": "a", "name": "a"}] * 1001}, (413, "too_many", "users")),
    ],
)
async def test_an_invalid_batch_of_users_creates_none(world: World, body: Any, refusal: tuple[int, str, str]) -> None:
    root = await world.user("root")
    before = world.state()
    assert (await world.call("POST", "/v1/admin/users", root, scope="admin", json=body)).error == refusal
    refused = await world.call("POST", "/v1/admin/users", root, json=body)
    assert refused.error == (403, "insufficient_scope", None)
    assert world.state() == before
