"""Reports: who may make one, of what, and what an administrator's decision does in one step."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, Conflict, NotFound
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, footprint
from tests.waiting import PATIENCE


async def report(store: Store, uid: str, reason: str = "spam", note: str = "", **what: Any) -> dict[str, Any]:
    """Report something; the report, decoded."""
    made, _ = await store.reports.create(
        uid, **what, reason=reason, note=note, idempotency_key=IdempotencyKey.generate()
    )
    decoded: dict[str, Any] = json.loads(made)
    return decoded


async def decide(store: Store, admin: str, report_id: str, outcome: ReportOutcome, remark: str = "") -> dict[str, Any]:
    """Decide a report; the report, decoded."""
    decided = await store.reports.decide(admin, report_id, outcome, remark, IdempotencyKey.generate())
    decoded: dict[str, Any] = json.loads(decided)
    return decoded


async def cases(store: Store, state: str) -> list[dict[str, Any]]:
    """The open or the decided reports, decoded, newest first."""
    return [json.loads(item) for item in (await store.reports.list_reports(PageRequest(), state)).items]


async def test_a_report_says_what_was_said(store: Store, people: People, raw: "redis.Redis") -> None:
    """Who, whom or what, why; it is open, and no entry of the log tells of it."""
    ann, bob = await people.users(2)
    status = (await people.status(bob))["id"]
    length = raw.xlen("{core}:log")
    of_user = await report(store, ann, "harassment", 'he said "x"\n☕', user=bob)
    of_status = await report(store, ann, status=status)
    assert of_user == {
        "id": of_user["id"], "uid": ann, "user": bob, "status": None, "reason": "harassment",
        "note": 'he said "x"\n☕', "posted": of_user["posted"], "outcome": None, "decided": None,
    }  # fmt: skip
    assert (of_status["user"], of_status["status"]) == (bob, status)
    assert int(of_status["id"]) > int(of_user["id"])
    assert raw.xlen("{core}:log") == length


async def test_the_same_again_is_the_same_report_while_it_is_open(store: Store, people: People) -> None:
    """By the same person of the same thing; another's, of another thing, or after the decision is a new one."""
    root, ann, bob, cyd = await people.users(4)
    status = (await people.status(bob))["id"]
    first = await report(store, ann, user=bob)
    assert await report(store, ann, "other", "again", user=bob) == first
    others = [await report(store, cyd, user=bob), await report(store, ann, status=status)]
    assert len({first["id"], *(one["id"] for one in others)}) == 3
    await decide(store, root, first["id"], ReportOutcome.DISMISSED)
    assert (await report(store, ann, user=bob))["id"] not in {first["id"], *(one["id"] for one in others)}


async def test_the_same_request_gets_the_same_answer(store: Store, people: People) -> None:
    """Also when the report was there before it."""
    ann, bob = await people.users(2)
    for expected in (True, False):
        request = IdempotencyKey.generate()
        asked: dict[str, Any] = {"user": bob, "reason": "spam", "note": "n", "idempotency_key": request}
        answers = [await store.reports.create(ann, **asked) for _ in range(2)]
        assert answers[0] == answers[1]
        assert answers[0][1] is expected


async def test_a_reporter_hears_what_became_of_it(store: Store, people: People) -> None:
    """And nobody else does; the remark is for administrators."""
    root, ann, bob = await people.users(3)
    made = await report(store, ann, user=bob)
    assert json.loads(await store.reports.get(ann, made["id"])) == made
    decided = await decide(store, root, made["id"], ReportOutcome.DISMISSED, "between us")
    now = json.loads(await store.reports.get(ann, made["id"]))
    assert now == made | {"outcome": "dismissed", "decided": decided["decided"]}
    for uid, report_id in ((bob, made["id"]), (root, made["id"]), (ann, "1")):
        with pytest.raises(NotFound):
            await store.reports.get(uid, report_id)


async def test_twenty_at_once_make_one(store: Store, people: People) -> None:
    """A double click is no second case."""
    ann, bob = await people.users(2)
    made = await asyncio.gather(*(report(store, ann, user=bob) for _ in range(20)))
    assert len({one["id"] for one in made}) == len(await cases(store, "open")) == 1


async def test_what_one_may_not_see_cannot_be_reported(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown, the deleted, the protected, who blocks one, the suspended: 404; oneself: 400. Nothing is kept."""
    root, ann, bob, cyd, dan = await people.users(5)
    mine, gone, hidden = [(await people.status(uid))["id"] for uid in (ann, bob, bob)]
    await store.statuses.delete(bob, gone, IdempotencyKey.generate())
    await store.users.update(bob, {"protected": True}, IdempotencyKey.generate())
    raw.zadd(f"{{core}}:blockers:{ann}", {cyd: 1})
    await store.suspensions.suspend(root, dan, IdempotencyKey.generate())
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


async def test_an_administrator_sees_what_was_reported(store: Store, people: People, raw: "redis.Redis") -> None:
    """User and status as they are now, also where the administrator is no follower, and null when it is gone."""
    root, ann, bob = await people.users(3)
    original = (await people.status(ann, "first"))["id"]
    quote = (await people.status(bob, "bad", origin=original))["id"]
    await report(store, ann, status=quote)
    await store.users.update(bob, {"protected": True}, IdempotencyKey.generate())
    raw.zadd(f"{{core}}:blockers:{root}", {bob: 1})
    (case,) = await cases(store, "open")
    assert case["reported"]["user"]["id"] == bob
    assert case["reported"]["status"]["message"] == "bad"
    assert case["reported"]["status"]["original"]["message"] == "first"
    assert (case["decided_by"], case["remark"]) == (None, "")
    await store.statuses.delete(bob, quote, IdempotencyKey.generate())
    (case,) = await cases(store, "open")
    assert case["reported"]["status"] is None


async def test_a_dismissal_only_closes(store: Store, people: People, raw: "redis.Redis") -> None:
    """The report moves from the open to the decided, with who decided, when, and why; nothing else happens."""
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    length = raw.xlen("{core}:log")
    decided = await decide(store, root, made["id"], ReportOutcome.DISMISSED, "it is a joke")
    assert (decided["outcome"], decided["decided_by"], decided["remark"]) == ("dismissed", root, "it is a joke")
    assert decided["decided"] >= decided["posted"]
    assert await cases(store, "open") == []
    assert await cases(store, "decided") == [decided]
    assert raw.xlen("{core}:log") == length
    assert await store.statuses.get_many(ann, [status])
    assert raw.hlen("{core}:filed") == 0


async def test_a_removal_is_a_delete_like_its_authors(store: Store, people: People, raw: "redis.Redis") -> None:
    """The same entry with the same audience, the same counters, the same job for what must follow."""
    root, ann, bob = await people.users(3)
    ids = [(await people.status(bob, "@u1 same words"))["id"] for _ in range(2)]
    made = await report(store, ann, status=ids[1])
    await store.statuses.delete(bob, ids[0], IdempotencyKey.generate())
    await decide(store, root, made["id"], ReportOutcome.REMOVED)
    by_author, by_admin = [entry for entry in await store.log.read(LOG_START, 20) if entry.kind == "delete"]
    assert by_admin.audience == by_author.audience == "public"
    assert json.loads(by_admin.body)["wire"] == {"status": {"id": ids[1], "uid": bob, "deleted": True}}
    told = [set(json.loads(entry.body)["facts"]["status"]) for entry in (by_author, by_admin)]
    assert told[0] == told[1]
    assert await store.statuses.get_many(bob, ids) == []
    assert (await people.me(bob))["posts"] == 0
    assert raw.exists(*(f"{{core}}:status:{one}" for one in ids)) == 0
    assert raw.zcard(f"{{core}}:mentions:{ann}") == 0
    (case,) = await cases(store, "decided")
    assert (case["outcome"], case["reported"]["status"]) == ("removed", None)


async def test_a_removal_empties_the_timelines(store: Store, people: People, raw: "redis.Redis") -> None:
    """In the same call, as a delete by the author does: followers, the author, and lists."""
    root, ann, bob = await people.users(3)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    kept = json.loads(await store.lists.create(ann, "l", "", private=False, idempotency_key=IdempotencyKey.generate()))[
        "id"
    ]
    await store.lists.add_member(ann, kept, bob, IdempotencyKey.generate())
    status = (await people.status(bob))["id"]
    timelines = [keys.home_timeline(ann), keys.home_timeline(bob), keys.list_timeline(kept)]
    assert [raw.zscore(key, status) for key in timelines] == [float(status)] * 3
    made = await report(store, ann, status=status)
    await decide(store, root, made["id"], ReportOutcome.REMOVED)
    assert [raw.zscore(key, status) for key in timelines] == [None] * 3


async def test_the_removal_of_what_is_gone_is_one(store: Store, people: People, raw: "redis.Redis") -> None:
    """Its author, or another report, was faster: the report is closed, and no second delete is told."""
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    await store.statuses.delete(bob, status, IdempotencyKey.generate())
    length = raw.xlen("{core}:log")
    assert (await decide(store, root, made["id"], ReportOutcome.REMOVED))["outcome"] == "removed"
    assert raw.xlen("{core}:log") == length


@pytest.mark.parametrize("of", ["user", "status"])
async def test_a_suspension_is_the_users_or_the_authors(store: Store, people: People, of: str) -> None:
    """Who was reported, or who wrote what was reported; told on the log once."""
    root, ann, bob, cyd = await people.users(4)
    what = {of: bob if of == "user" else (await people.status(bob))["id"]}
    made = [await report(store, uid, **what) for uid in (ann, cyd)]
    for one in made:
        assert (await decide(store, root, one["id"], ReportOutcome.SUSPENDED))["outcome"] == "suspended"
    assert (await store.sessions.get_token_status(bob, "j")).suspended
    assert [entry.kind for entry in await store.log.read(LOG_START, 10)][-1:] == ["suspend"]
    assert [json.loads(item)["id"] for item in (await store.suspensions.list_suspended(PageRequest())).items] == [bob]


async def test_the_first_decision_stands(store: Store, people: People, raw: "redis.Redis") -> None:
    """The same again is the same answer; another is refused, whoever asks; of many at once one is made."""
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
    suspended = (await store.sessions.get_token_status(bob, "j")).suspended
    assert suspended is (decided[0]["outcome"] == "suspended")
    before = footprint(raw)
    assert await decide(store, cyd, made["id"], ReportOutcome(decided[0]["outcome"]), "late") == decided[0]
    assert footprint(raw)[1] == before[1]


async def test_refused_decisions_change_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """An unknown report, the removal of a user, the suspension of oneself."""
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
    assert len(await cases(store, "open")) == 2


async def test_a_repeated_decision_is_answered_alike(store: Store, people: People) -> None:
    """By the request's key, as every write."""
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    request = IdempotencyKey.generate()
    answers = [await store.reports.decide(root, made["id"], ReportOutcome.REMOVED, "r", request) for _ in range(2)]
    assert answers[0] == answers[1]


async def test_nothing_of_a_decision_is_done_when_redis_is_full(redis_server: RedisProcess, redis_url: str) -> None:
    """The entry is the first write: neither is the status gone nor the report decided."""
    store = Store(redis_url, timeout_seconds=PATIENCE)
    await store.open()
    people = People(store)
    root, ann, bob = await people.users(3)
    status = (await people.status(bob))["id"]
    made = await report(store, ann, status=status)
    with redis_server.client() as client:
        before = footprint(client)
        client.config_set("maxmemory", 1)
        try:
            for outcome in ReportOutcome:
                with pytest.raises(Exception, match="accepts no writes"):
                    await decide(store, root, made["id"], outcome)
        finally:
            client.config_set("maxmemory", 0)
        assert footprint(client) == before
    assert len(await cases(store, "open")) == 1
    await store.close()
