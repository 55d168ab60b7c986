"""The audit log: each action of an administrator is recorded in the same step."""

from typing import Any

import pytest

from tests.stream_server.web.world import World


async def deeds(world: World, root: str) -> list[dict[str, Any]]:
    answer = await world.call("GET", "/v1/admin/audit", root, scope="admin")
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["deeds"]
    return found


async def test_each_deed_of_an_administrator_is_recorded_once(world: World) -> None:
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    for method in ("PUT", "PUT", "DELETE"):
        await world.call(method, f"/v1/admin/suspensions/{ann}", root, scope="admin")
    body = {"users": [{"login": "cid", "name": "Cid"}, {"login": "dan", "name": "Dan"}]}
    await world.call("POST", "/v1/admin/users", root, scope="admin", json=body)
    report = (await world.call("POST", "/v1/reports", ann, json={"reason": "spam", "user": bob})).json["id"]
    await world.call("PATCH", f"/v1/admin/reports/{report}", root, scope="admin", json={"outcome": "dismissed"})
    rows = await deeds(world, root)
    found = [(one["deed"], one["by"], one["on"], one["details"]) for one in rows]
    assert [one["user"] and one["user"]["login"] for one in rows] == ["bob", None, "ann", "ann"]
    assert found == [
        ("decide", root, report, "dismissed"), ("create_users", root, "2", ""), ("reinstate", root, ann, ""),
        ("suspend", root, ann, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("note", ["", 'sells "fakes" \\ é'])
async def test_the_note_of_a_suspension_is_in_the_audit_log(world: World, note: str) -> None:
    root, ann = await world.user("root"), await world.user("ann")
    for method in ("PUT", "DELETE"):
        answer = await world.call(
            method, f"/v1/admin/suspensions/{ann}", root, scope="admin", params={"note": note} if note else {}
        )
        assert answer.status == 200
    assert [(one["details"], one["note"]) for one in await deeds(world, root)] == [(note, note)] * 2


async def test_a_decision_tells_of_whom_and_why_also_after_a_suspension(world: World) -> None:
    """The report says it, and a suspended user is named all the same. Of a deleted account the id is left."""
    root, ann, bob = [await world.user(login) for login in ("root", "ann", "bob")]
    report = (await world.call("POST", "/v1/reports", ann, json={"reason": "spam", "user": bob})).json["id"]
    decision = {"outcome": "suspended", "note": 'sells "fakes"'}
    await world.call("PATCH", f"/v1/admin/reports/{report}", root, scope="admin", json=decision)
    (deed,) = await deeds(world, root)
    assert (deed["on"], deed["details"], deed["note"]) == (report, "suspended", decision["note"])
    assert deed["user"] == {"id": bob, "login": "bob"}
    await world.call("DELETE", f"/v1/users/{bob}", root, scope="admin")
    assert [one["user"] for one in await deeds(world, root)] == [{"id": bob, "login": None}] * 2


async def test_a_note_with_control_characters_or_too_long_is_refused(world: World) -> None:
    root, ann = await world.user("root"), await world.user("ann")
    before = world.state()
    for note in ("a\nb", "\x00", "n" * 201):
        answer = await world.call("PUT", f"/v1/admin/suspensions/{ann}", root, scope="admin", params={"note": note})
        assert answer.error == (400, "invalid_parameter", "note")
    assert world.state() == before


async def test_only_administrators_read_the_audit_log(world: World) -> None:
    ann = await world.user("ann")
    assert (await world.call("GET", "/v1/admin/audit", ann)).error == (403, "insufficient_scope", None)


@pytest.mark.parametrize("count", [1, 3])
async def test_the_audit_log_is_paged(world: World, count: int) -> None:
    root, ann = await world.user("root"), await world.user("ann")
    for _ in range(2):
        for method in ("PUT", "DELETE"):
            await world.call(method, f"/v1/admin/suspensions/{ann}", root, scope="admin")
    seen, query = [], f"?count={count}"
    while query:
        page = (await world.call("GET", f"/v1/admin/audit{query}", root, scope="admin")).json
        seen += [one["deed"] for one in page["deeds"]]
        query = f"?count={count}&before={page['next']}" if page["next"] else ""
    assert seen == ["reinstate", "suspend"] * 2
