"""Follow and unfollow over HTTP, singly and in batches, and the resulting lists."""

from typing import Any

import pytest

from tests.stream_server import tokens
from tests.stream_server.web.world import World


async def test_following_twice_is_following_once(world: World) -> None:
    """200 each time, but one follow and one notification on the log; counters change once. Unfollowing likewise."""
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
async def test_nobody_follows_themselves_or_nobody(world: World, method: str) -> None:
    """400 for the caller's own id, 404 for an unknown user, 400 for an invalid id; nothing changes."""
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call(method, f"/v1/users/me/following/{ann}", ann)).error == (400, "invalid_parameter", "id")
    assert (await world.call(method, "/v1/users/me/following/404", ann)).error == (404, "not_found", "id")
    assert (await world.call(method, "/v1/users/me/following/me", ann)).error == (400, "invalid_parameter", "id")
    assert world.state() == before


async def test_an_idempotency_key_belongs_to_one_request(world: World) -> None:
    """The same key with another path or method is a conflict: 409, even without a body."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    key = {"Idempotency-Key": "k"}
    for _ in range(2):
        assert (await world.call("PUT", f"/v1/users/me/following/{bob}", ann, headers=key)).status == 200
    for method, target in (("PUT", eve), ("DELETE", bob)):
        answer = await world.call(method, f"/v1/users/me/following/{target}", ann, headers=key)
        assert answer.error[:2] == (409, "duplicate")
    assert world.kinds() == ["follow", "notification"]


async def test_a_batch_tells_each_outcome(world: World) -> None:
    """Each id of both lists has its own outcome, in order; a failure does not hide the others."""
    ann, bob, eve = [await world.user(login) for login in ("ann", "bob", "eve")]
    await world.call("PUT", f"/v1/users/me/following/{eve}", ann)
    body = {"follow": [bob, "404", ann], "unfollow": [eve]}
    answer = await world.call("POST", "/v1/users/me/following", ann, json=body)
    outcomes = [(result["id"], result["outcome"]) for result in answer.json["results"]]
    assert outcomes == [(bob, "followed"), ("404", "not_found"), (ann, "oneself"), (eve, "unfollowed")]
    assert (await world.call("GET", f"/v1/users/{ann}", ann)).json["following"] == 1


BAD: list[tuple[Any, int, str, str | None]] = [
    ({}, 400, "missing_parameter", "follow"),
    ({"follow": [], "unfollow": []}, 400, "missing_parameter", "follow"),
    ({"follow": ["1"], "unfollow": ["1"]}, 400, "conflicting_parameters", "unfollow"),
    ({"follow": ["1"] * 101, "unfollow": ["2"] * 100}, 413, "too_many", "follow"),
    ({"follow": "1"}, 400, "invalid_parameter", "follow"),
    ({"follow": [1]}, 400, "invalid_parameter", "follow[0]"),
    ({"follow": ["1", "x"]}, 400, "invalid_parameter", "follow[1]"),
    ({"followers": ["1"]}, 400, "unknown_parameter", "followers"),
]


@pytest.mark.parametrize(("body", "status", "code", "param"), BAD, ids=lambda value: str(value)[:24])
async def test_a_bad_batch_changes_nothing(world: World, body: Any, status: int, code: str, param: str | None) -> None:
    """Each is a 4xx that names the list."""
    ann = await world.user("ann")
    before = world.state()
    assert (await world.call("POST", "/v1/users/me/following", ann, json=body)).error == (status, code, param)
    assert world.state() == before


async def test_followers_are_paged_newest_first(world: World) -> None:
    """Both lists have `since` and page consistently in both directions."""
    ann = await world.user("ann")
    others = [await world.user(f"u{i}") for i in range(5)]
    for other in others:
        await world.call("PUT", f"/v1/users/me/following/{ann}", other)
    seen, cursor = [], ""
    while True:
        piece = (await world.call("GET", f"/v1/users/{ann}/followers?count=2{cursor}", ann)).json
        seen += [user["id"] for user in piece["users"]]
        assert all(user["since"] for user in piece["users"])
        if piece["next"] is None:
            break
        cursor = f"&before={piece['next']}"
    assert seen == others[::-1]
    back = (await world.call("GET", f"/v1/users/{ann}/followers?after={piece['prev']}", ann)).json
    assert [user["id"] for user in back["users"]] == others[:0:-1]
    mine = (await world.call("GET", f"/v1/users/{others[0]}/following", ann)).json
    assert [user["id"] for user in mine["users"]] == [ann]


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


async def test_a_bad_piece_is_refused(world: World, subtests: pytest.Subtests) -> None:
    """Invalid counts and cursors are errors."""
    ann = await world.user("ann")
    for query, code, param in A_BAD_PIECE_IS_REFUSED:
        with subtests.test(query=query):
            assert (await world.call("GET", f"/v1/users/{ann}/followers?{query}", ann)).error == (400, code, param)


async def test_an_admin_makes_users_in_one_call(world: World) -> None:
    """Each login gets an id and `created`; the second time all users exist."""
    root = await world.user("root")
    headers = {"Authorization": f"Bearer {tokens.fresh(root, 'admin')}"}
    users = [{"login": f"u{i}", "name": f"User {i}"} for i in range(250)] + [{"login": "ROOT", "name": "x"}]
    first = (await world.call("POST", "/v1/admin/users", json={"users": users}, headers=headers)).json["users"]
    assert [user["login"] for user in first] == [user["login"] for user in users]
    assert [user["created"] for user in first] == [True] * 250 + [False]
    assert first[-1]["id"] == root
    again = (await world.call("POST", "/v1/admin/users", json={"users": users}, headers=headers)).json["users"]
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
async def test_a_bad_admin_batch_makes_nobody(world: World, body: Any, refusal: tuple[int, str, str]) -> None:
    """One invalid user refuses the batch; only administrators may create users."""
    root = await world.user("root")
    before = world.state()
    headers = {"Authorization": f"Bearer {tokens.fresh(root, 'admin')}"}
    assert (await world.call("POST", "/v1/admin/users", json=body, headers=headers)).error == refusal
    refused = await world.call("POST", "/v1/admin/users", root, json=body)
    assert refused.error == (403, "insufficient_scope", None)
    assert world.state() == before
