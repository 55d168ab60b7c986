"""Suspensions over HTTP: tokens, passwords and refresh tokens of a suspended user stop working."""

from typing import Any

import pytest

from tests.stream_server.web.api.test_reports import as_admin
from tests.stream_server.web.world import PASSWORD, World


async def log_in(world: World, login: str, password: str = PASSWORD) -> Any:
    return await world.call("POST", "/v1/sessions", json={"login": login, "password": password})


async def suspend(world: World, root: str, uid: str) -> None:
    answer = await as_admin(world, "PUT", f"/v1/admin/suspensions/{uid}", root)
    assert (answer.status, answer.json) == (200, {"suspended": True})


async def test_every_request_of_a_suspended_user_is_403(world: World) -> None:
    root, ann = [await world.user(login) for login in ("root", "ann")]
    status = await world.status(ann)
    await suspend(world, root, ann)
    before = world.state()
    for method, path, more in (
        ("GET", "/v1/users/me", {}),
        ("GET", f"/v1/statuses/{status}", {}),
        ("POST", "/v1/statuses", {"json": {"message": "still here"}}),
        ("DELETE", f"/v1/statuses/{status}", {}),
        ("GET", "/v1/notifications", {}),
        ("DELETE", "/v1/sessions", {}),
    ):
        assert (await world.call(method, path, ann, **more)).error == (403, "suspended", None)
    assert (await as_admin(world, "PUT", f"/v1/admin/suspensions/{root}", ann)).error == (403, "suspended", None)
    assert world.state() == before
    back = await as_admin(world, "DELETE", f"/v1/admin/suspensions/{ann}", root)
    assert (back.status, back.json) == (200, {"suspended": False})
    assert (await world.call("GET", f"/v1/statuses/{status}", root)).status == 200
    assert (await world.call("GET", "/v1/users/me", ann)).status == 200


async def test_a_suspended_user_cannot_log_in(world: World) -> None:
    root, ann = [await world.user(login) for login in ("root", "ann")]
    session = (await log_in(world, "ann")).json
    await suspend(world, root, ann)
    assert (await log_in(world, "ann")).error == (403, "suspended", None)
    wrong, unknown = await log_in(world, "ann", "not the password"), await log_in(world, "nobody", "not the password")
    assert wrong.error == unknown.error == (401, "invalid_token", None)
    told = await world.call("GET", "/v1/users/me", headers={"Authorization": f"Bearer {session['token']}"})
    assert told.error == (401, "token_revoked", None)  # as of each session that has ended; its refresh token tells why
    refreshed = await world.call("POST", "/v1/sessions", json={"refresh_token": session["refresh_token"]})
    assert refreshed.error == (403, "suspended", None)
    await as_admin(world, "DELETE", f"/v1/admin/suspensions/{ann}", root)
    assert (await log_in(world, "ann")).status == 201


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_invalid_suspensions_change_nothing(world: World, method: str) -> None:
    root = await world.user("root")
    before = world.state()
    assert (await as_admin(world, method, "/v1/admin/suspensions/1", root)).error == (404, "not_found", "id")
    assert (await as_admin(world, method, "/v1/admin/suspensions/me", root)).error == (400, "invalid_parameter", "id")
    oneself = await as_admin(world, "PUT", f"/v1/admin/suspensions/{root}", root)
    assert oneself.error == (400, "invalid_parameter", "id")
    assert world.state() == before


async def test_a_suspension_says_who_did_it_and_why_while_it_lasts(world: World) -> None:
    """By request and by the decision of a report. A repetition keeps the first reason, and the end forgets it."""
    root, ben, ann, cid = [await world.user(login) for login in ("root", "ben", "ann", "cid")]
    first, later = 'sells "fakes" \\ é', "another reason"
    for admin, note in ((root, first), (ben, later)):
        await as_admin(world, "PUT", f"/v1/admin/suspensions/{ann}", admin, params={"note": note})
    report = (await world.call("POST", "/v1/reports", ben, json={"reason": "spam", "user": cid})).json["id"]
    decision = {"outcome": "suspended", "note": first}
    await as_admin(world, "PATCH", f"/v1/admin/reports/{report}", ben, json=decision)
    suspended = (await as_admin(world, "GET", "/v1/admin/suspensions", root)).json["users"]
    assert [(one["login"], one["suspension"]) for one in suspended] == [
        ("cid", {"by": ben, "note": first}), ("ann", {"by": root, "note": first}),
    ]  # fmt: skip
    for method in ("DELETE", "PUT"):
        await as_admin(world, method, f"/v1/admin/suspensions/{ann}", ben)
    suspended = (await as_admin(world, "GET", "/v1/admin/suspensions", root)).json["users"]
    assert suspended[0]["suspension"] == {"by": ben, "note": ""}
