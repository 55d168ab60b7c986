"""Reports and decisions over HTTP, and their permissions."""

from typing import Any

import pytest

from stream_server.web.api.moderation import AdminReportPage, Report
from stream_server.web.http.validation import decode_body
from tests.stream_server.web.world import Answer, Refusal, World


async def as_admin(world: World, method: str, path: str, uid: str, **more: Any) -> Answer:
    return await world.call(method, path, uid, scope="admin", **more)


async def report(world: World, uid: str, **what: Any) -> Answer:
    return await world.call("POST", "/v1/reports", uid, json={"reason": "spam", **what})


async def test_a_report_is_created_and_decided(world: World) -> None:
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    status = await world.status(bob, "buy now")
    made = await report(world, ann, status=status, note="again and again")
    assert made.status == 201
    decode_body(Report, made.body)
    assert made.headers["Location"] == f"/v1/reports/{made.json['id']}"
    again = await report(world, ann, status=status)
    assert (again.status, again.json) == (200, made.json)
    page = await as_admin(world, "GET", "/v1/admin/reports", root)
    decode_body(AdminReportPage, page.body)
    (case,) = page.json["reports"]
    assert (case["note"], case["reported"]["status"]["message"]) == ("again and again", "buy now")
    path = f"/v1/admin/reports/{case['id']}"
    decided = await as_admin(world, "PATCH", path, root, json={"outcome": "removed", "note": "spam"})
    assert (decided.status, decided.json["outcome"], decided.json["decided_by"]) == (200, "removed", root)
    assert (await world.call("GET", f"/v1/statuses/{status}", bob)).status == 404
    assert (await as_admin(world, "GET", "/v1/admin/reports?state=open", root)).json["reports"] == []
    assert (await as_admin(world, "GET", "/v1/admin/reports?state=decided", root)).json["reports"] == [decided.json]
    mine = await world.call("GET", made.headers["Location"], ann)
    assert mine.json["outcome"] == "removed"
    assert (await world.call("GET", made.headers["Location"], bob)).error == (404, "not_found", "id")
    other = await as_admin(world, "PATCH", path, root, json={"outcome": "dismissed"})
    assert other.error == (409, "duplicate", None)


async def test_a_decision_can_suspend_the_author(world: World) -> None:
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    made = await report(world, ann, user=bob)
    path = f"/v1/admin/reports/{made.json['id']}"
    assert (await as_admin(world, "PATCH", path, root, json={"outcome": "suspended"})).status == 200
    assert (await world.call("GET", "/v1/users/me", bob)).error == (403, "suspended", None)
    assert (await world.call("GET", f"/v1/users/{bob}", ann)).status == 404


BAD: list[Refusal] = [
    ({"reason": "spam"}, 400, "missing_parameter", "user"),
    ({"reason": "spam", "user": "1", "status": "1"}, 400, "conflicting_parameters", "status"),
    ({"user": "1"}, 400, "missing_parameter", "reason"),
    ({"reason": "boring", "user": "1"}, 400, "invalid_parameter", "reason"),
    ({"reason": "spam", "user": "1"}, 404, "not_found", "user"),
    ({"reason": "spam", "status": "1"}, 404, "not_found", "status"),
    ({"reason": "spam", "user": "x"}, 400, "invalid_parameter", "user"),
    ({"reason": "spam", "user": "1", "note": "x" * 501}, 400, "invalid_parameter", "note"),
    ({"reason": "spam", "user": "1", "note": "\x00"}, 400, "invalid_parameter", "note"),
    ({"reason": "spam", "user": "1", "why": ""}, 400, "unknown_parameter", "why"),
]


async def test_an_invalid_report_is_not_created(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    oneself = ({"reason": "spam", "user": ann}, 400, "invalid_parameter", "user")
    await world.refuses(subtests, "POST", "/v1/reports", ann, [*BAD, oneself])


async def test_invalid_decisions_change_nothing(world: World) -> None:
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    made = await report(world, ann, user=bob)
    path = f"/v1/admin/reports/{made.json['id']}"
    before = world.state()
    refusals: list[tuple[str, Any, tuple[int, str, str | None]]] = [
        ("/v1/admin/reports/1", {"outcome": "dismissed"}, (404, "not_found", "id")),
        ("/v1/admin/reports/x", {"outcome": "dismissed"}, (400, "invalid_parameter", "id")),
        (path, {"outcome": "burned"}, (400, "invalid_parameter", "outcome")),
        (path, {}, (400, "missing_parameter", "outcome")),
        (path, {"outcome": "removed"}, (400, "invalid_parameter", "outcome")),
        (path, {"outcome": "dismissed", "note": "\x1b"}, (400, "invalid_parameter", "note")),
    ]
    for where, body, refusal in refusals:
        assert (await as_admin(world, "PATCH", where, root, json=body)).error == refusal
    asked = await as_admin(world, "GET", "/v1/admin/reports?state=all", root)
    assert asked.error == (400, "invalid_parameter", "state")
    assert world.state() == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/admin/reports"),
        ("PATCH", "/v1/admin/reports/1"),
        ("GET", "/v1/admin/suspensions"),
        ("PUT", "/v1/admin/suspensions/1"),
        ("DELETE", "/v1/admin/suspensions/1"),
    ],
)
async def test_moderation_needs_the_scope_admin(world: World, method: str, path: str) -> None:
    ann = await world.user("ann")
    more = {"json": {"outcome": "dismissed"}} if method == "PATCH" else {}
    assert (await world.call(method, path, ann, **more)).error == (403, "insufficient_scope", None)
