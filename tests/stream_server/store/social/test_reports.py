"""Reports: who may report what, and what an administrator's decision does in one step."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Conflict, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.pagination import PageRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.store.social.sessions import TokenId
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import items_of


async def report(
    store: Store, uid: str, reason: str = "spam", note: str = "", *, user: str | None = None, status: str | None = None
) -> dict[str, Any]:
    made, _ = await store.reports.create(uid, reason, user, status, note, new_key())
    decoded: dict[str, Any] = json.loads(made)
    return decoded


async def decide(store: Store, admin: str, report_id: str, outcome: ReportOutcome, remark: str = "") -> dict[str, Any]:
    decided = await store.reports.decide(admin, report_id, outcome, remark, new_key())
    decoded: dict[str, Any] = json.loads(decided)
    return decoded


async def reports(store: Store, state: str) -> list[dict[str, Any]]:
    return [json.loads(item) for item in items_of(await store.reports.list_reports(PageRequest(), state))]


async def test_a_repeated_report_is_the_open_one(store: Store, people: People) -> None:
    root, ann, bob, cyd = await people.users(4)
    status = (await people.status(bob))["id"]
    first = await report(store, ann, user=bob)
    assert await report(store, ann, "other", "again", user=bob) == first
    others = [await report(store, cyd, user=bob), await report(store, ann, status=status)]
    assert len({first["id"], *(one["id"] for one in others)}) == 3
    await decide(store, root, first["id"], ReportOutcome.DISMISSED)
    assert (await report(store, ann, user=bob))["id"] not in {first["id"], *(one["id"] for one in others)}


async def test_twenty_concurrent_reports_make_one(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    made = await asyncio.gather(*(report(store, ann, user=bob) for _ in range(20)))
    assert len({one["id"] for one in made}) == len(await reports(store, "open")) == 1


async def test_hidden_subjects_and_oneself_cannot_be_reported(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob, cyd, dan = await people.users(5)
    mine, gone, hidden = [(await people.status(uid))["id"] for uid in (ann, bob, bob)]
    await store.statuses.delete(bob, gone, new_key())
    await store.users.update(bob, {"protected": True}, new_key())
    raw.zadd(f"{{core}}:blockers:{ann}", {cyd: 1})
    await store.suspensions.suspend(root, dan, new_key())
    before = footprint(raw)
    refused: list[tuple[dict[str, str], type[ApiError]]] = [
        ({"user": "1"}, NotFound),
        ({"user": cyd}, NotFound),
        ({"user": dan}, NotFound),
        ({"status": "1"}, NotFound),
        ({"status": gone}, NotFound),
        ({"status": hidden}, NotFound),
        ({"user": ann}, BadRequest),
        ({"status": mine}, BadRequest),
    ]
    for what, kind in refused:
        with pytest.raises(kind) as refusal:
            await report(store, ann, **what)
        assert refusal.value.param == next(iter(what))
    assert footprint(raw) == before


async def test_an_administrator_sees_the_reported_user_and_status(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    root, ann, bob = await people.users(3)
    original = (await people.status(ann, "first"))["id"]
    quote = (await people.status(bob, "bad", origin=original))["id"]
    await report(store, ann, status=quote)
    await store.users.update(bob, {"protected": True}, new_key())
    raw.zadd(f"{{core}}:blockers:{root}", {bob: 1})
    (case,) = await reports(store, "open")
    assert case["reported"]["user"]["id"] == bob
    assert case["reported"]["status"]["message"] == "bad"
    assert case["reported"]["status"]["original"]["message"] == "first"
    assert (case["decided_by"], case["remark"]) == (None, "")
    await store.statuses.delete(bob, quote, new_key())
    (case,) = await reports(store, "open")
    assert case["reported"]["status"] is None


async def test_a_dismissal_only_closes_the_report(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    length = raw.xlen("{core}:log")
    decided = await decide(store, root, made["id"], ReportOutcome.DISMISSED, "it is a joke")
    assert (decided["outcome"], decided["decided_by"], decided["remark"]) == ("dismissed", root, "it is a joke")
    assert decided["decided"] >= decided["posted"]
    assert await reports(store, "open") == []
    assert await reports(store, "decided") == [decided]
    assert raw.xlen("{core}:log") == length
    assert await store.statuses.get_many(ann, [status])
    assert raw.hlen("{core}:filed") == 0


async def test_a_removal_equals_a_delete_by_the_author(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob = await people.users(3)
    ids = [(await people.status(bob, "@u1 same words"))["id"] for _ in range(2)]
    made = await report(store, ann, status=ids[1])
    await store.statuses.delete(bob, ids[0], new_key())
    await decide(store, root, made["id"], ReportOutcome.REMOVED)
    by_author, by_admin = [entry for entry in await store.log.read(LOG_START, 20) if entry.kind == "delete"]
    assert by_admin.audience == by_author.audience == "public"
    assert json.loads(by_admin.body)["wire"] == {"status": {"id": ids[1], "uid": bob, "deleted": True}}
    facts = [set(json.loads(entry.body)["facts"]["status"]) for entry in (by_author, by_admin)]
    assert facts[0] == facts[1]
    assert await store.statuses.get_many(bob, ids) == []
    assert (await people.me(bob))["posts"] == 0
    assert raw.exists(*(f"{{core}}:status:{one}" for one in ids)) == 0
    assert raw.zcard(f"{{core}}:mentions:{ann}") == 0
    (case,) = await reports(store, "decided")
    assert (case["outcome"], case["reported"]["status"]) == ("removed", None)


async def test_removing_a_deleted_status_closes_the_report(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    await store.statuses.delete(bob, status, new_key())
    length = raw.xlen("{core}:log")
    assert (await decide(store, root, made["id"], ReportOutcome.REMOVED))["outcome"] == "removed"
    assert raw.xlen("{core}:log") == length


@pytest.mark.parametrize("of", ["user", "status"])
async def test_a_suspension_applies_to_the_user_or_the_author(store: Store, people: People, of: str) -> None:
    root, ann, bob, cyd = await people.users(4)
    what = {of: bob if of == "user" else (await people.status(bob))["id"]}
    made = [await report(store, uid, **what) for uid in (ann, cyd)]
    for one in made:
        assert (await decide(store, root, one["id"], ReportOutcome.SUSPENDED))["outcome"] == "suspended"
    assert (await store.sessions.get_token_validity(TokenId(bob, "j"))).suspended
    assert [entry.kind for entry in await store.log.read(LOG_START, 10)].count("suspend") == 1
    assert [json.loads(item)["id"] for item in items_of(await store.suspensions.list_suspended(PageRequest()))] == [bob]


async def test_the_first_decision_stands(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob, cyd = await people.users(4)
    made = await report(store, ann, user=bob)
    outcomes = [ReportOutcome.DISMISSED, ReportOutcome.SUSPENDED] * 5
    tasks = [decide(store, root, made["id"], outcome) for outcome in outcomes]
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    decided = [one for one in answers if isinstance(one, dict)]
    refused = [one for one in answers if isinstance(one, Conflict)]
    assert len(decided) == len(refused) == 5
    assert all(one == decided[0] for one in decided)
    assert all(one.error_code == "duplicate" for one in refused)
    suspended = (await store.sessions.get_token_validity(TokenId(bob, "j"))).suspended
    assert suspended is (decided[0]["outcome"] == "suspended")
    before = footprint(raw)
    assert await decide(store, cyd, made["id"], ReportOutcome(decided[0]["outcome"]), "late") == decided[0]
    assert footprint(raw)[1] == before[1]


async def test_refused_decisions_change_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    root, ann, bob = await people.users(3)
    of_bob, of_root = [await report(store, ann, user=uid) for uid in (bob, root)]
    before = footprint(raw)
    refusals: list[tuple[str, ReportOutcome, type[ApiError], str]] = [
        ("1", ReportOutcome.DISMISSED, NotFound, "id"),
        (of_bob["id"], ReportOutcome.REMOVED, BadRequest, "outcome"),
        (of_root["id"], ReportOutcome.SUSPENDED, BadRequest, "outcome"),
    ]
    for report_id, outcome, kind, param in refusals:
        with pytest.raises(kind) as refusal:
            await decide(store, root, report_id, outcome)
        assert refusal.value.param == param
    assert footprint(raw) == before
    assert len(await reports(store, "open")) == 2
