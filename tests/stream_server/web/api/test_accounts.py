"""Deleting accounts over HTTP: the password, permissions, repetitions, and what the account's tokens get afterwards."""

from typing import Any

import pytest

from tests.stream_server.web.api.test_reports import as_admin
from tests.stream_server.web.world import PASSWORD, Refusal, World


async def delete(world: World, uid: str, body: Any, **more: Any) -> Any:
    return await world.call("DELETE", "/v1/users/me", uid, json=body, **more)


async def test_a_user_deletes_the_own_account_with_the_password(world: World) -> None:
    ann, bob = [await world.user(login) for login in ("ann", "bob")]
    status = await world.status(ann)
    session = (await world.call("POST", "/v1/sessions", json={"login": "ann", "password": PASSWORD})).json
    ticket = (await world.call("POST", "/v1/streams/ticket", ann)).json["ticket"]
    answer = await delete(world, ann, {"password": PASSWORD})
    assert (answer.status, answer.body) == (204, b"")
    gone = (401, "account_deleted", None)
    assert (await delete(world, ann, {"password": PASSWORD})).error == gone
    for path in ("/v1/users/me", "/v1/events", "/v1/stream"):
        assert (await world.call("GET", path, ann)).error == gone
    assert (await world.call("POST", "/v1/statuses", ann, json={"message": "x"})).error == gone
    by_session = {"Authorization": f"Bearer {session['token']}"}
    assert (await world.call("GET", "/v1/users/me", headers=by_session)).error == gone
    assert (await world.call("GET", f"/v1/stream?track=tea&ticket={ticket}")).error == gone
    for body in ({"refresh_token": session["refresh_token"]}, {"login": "ann", "password": PASSWORD}):
        assert (await world.call("POST", "/v1/sessions", json=body)).error == (401, "invalid_token", None)
    for path in (f"/v1/users/{ann}", "/v1/users/by-login/ann", f"/v1/statuses/{status}"):
        assert (await world.call("GET", path, bob)).error[:2] == (404, "not_found")
    new = {"login": "Ann", "name": "Ann", "email": "ann@example.org", "password": PASSWORD}
    assert (await world.call("POST", "/v1/users", json=new)).error == (409, "login_taken", "login")
    assert (await world.call("POST", "/v1/users", json={**new, "login": "anna"})).status == 201


async def test_a_wrong_deletion_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    refusals: list[Refusal] = [
        ({}, 400, "missing_parameter", "password"),
        ({"password": None}, 400, "missing_parameter", "password"),
        ({"password": "x"}, 403, "wrong_password", "password"),
        ({"password": 7}, 400, "invalid_parameter", "password"),
        ({"password": "x" * 257}, 400, "invalid_parameter", "password"),
        ({"pass": PASSWORD}, 400, "unknown_parameter", "pass"),
        ([], 400, "malformed_body", None),
    ]
    await world.refuses(subtests, "DELETE", "/v1/users/me", ann, refusals)
    assert (await world.call("DELETE", "/v1/users/me", ann)).status in {400, 415}
    read_only = await delete(world, ann, {"password": PASSWORD}, scope="read")
    assert read_only.error == (403, "insufficient_scope", None)
    assert (await world.call("GET", "/v1/users/me", ann)).status == 200


async def test_an_account_without_password_needs_none(world: World) -> None:
    root = await world.user("root")
    body = {"users": [{"login": "bot", "name": "B"}]}
    (made,) = (await as_admin(world, "POST", "/v1/admin/users", root, json=body)).json["users"]
    assert (await delete(world, made["id"], {"password": "guess"})).error == (403, "wrong_password", "password")
    assert (await delete(world, made["id"], {})).status == 204
    again = await as_admin(world, "POST", "/v1/admin/users", root, json=body)
    assert again.error == (409, "login_taken", "login")


async def test_an_administrator_deletes_accounts(world: World) -> None:
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    before = world.state()
    assert (await world.call("DELETE", f"/v1/users/{ann}", bob)).error == (403, "insufficient_scope", None)
    for who, refusal in ((root, (400, "invalid_parameter", "id")), ("7", (404, "not_found", "id"))):
        assert (await as_admin(world, "DELETE", f"/v1/users/{who}", root)).error == refusal
    assert world.state() == before
    for _ in range(2):
        assert (await as_admin(world, "DELETE", f"/v1/users/{ann}", root)).status == 204
    assert world.kinds().count("user_delete") == 1
    (deed,) = (await as_admin(world, "GET", "/v1/admin/audit", root)).json["deeds"]
    assert (deed["by"], deed["deed"], deed["on"]) == (root, "delete_user", ann)
    assert (await as_admin(world, "PUT", f"/v1/admin/suspensions/{ann}", root)).error == (404, "not_found", "id")
    assert (await as_admin(world, "DELETE", f"/v1/admin/suspensions/{ann}", root)).error == (404, "not_found", "id")
    assert (await as_admin(world, "GET", "/v1/admin/suspensions", root)).json["users"] == []
