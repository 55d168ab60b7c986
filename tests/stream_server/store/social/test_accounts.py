"""Accounts that are deleted: hidden at once, then removed to the last trace, except for what the page says."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.jobs import repair
from stream_server.store.jobs.queue import PassOutcome
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SiteRules, SizeLimits
from stream_server.store.social.reports import ReportOutcome
from stream_server.store.social.sessions import TokenId
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.account_world import SECRET, AccountWorld, contents
from tests.stream_server.store.job_queue import (
    Interruption,
    Killed,
    RedisDump,
    check_timelines,
    drain,
    job_workers,
    make_due,
    nothing,
)
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids, items_of, logged, refusal
from tests.tiers import quick

pytestmark = pytest.mark.every_redis

SMALL = SizeLimits(fanout_batch_size=2, step_timelines=0)
"""Jobs do all, in many passes."""

MOST = 400
"""Limit of round trips, so that a test without an end fails."""

STAYS = {
    "log": "entries until retention trims them",
    "gone": "the id, as long as the log may show the user",
    "request": "outcomes of writes, for a minute or a day",
    "status": "ids in what others wrote: what they answer, repost and mention",
    "comment": "ids of mentioned users in comments of others",
    "favorites": "ids of deleted posts",
    "ended": "that a follow of a protected user, or a membership, ended",
    "talk": "the id among the people of a talk",
    "talks": "the id of the last message, by which the talk is sorted",
    "thread": "the id of the first post of a conversation that goes on",
    "deeds": "deeds of administrators about the user",
    "report": "reports by and about the user",
    "filed": "open reports by and about the user",
}
"""What may hold an id of a deleted account or of what it wrote: rows of the table of keys."""


AUDIT = "{core}:audit"
"""Its ids are times of their own, so one may be equal to the id of a user."""


@pytest.fixture
async def world(store: Store, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AccountWorld:
    monkeypatch.setattr(repair, "RECHECK_SECONDS", 0.01)
    made = AccountWorld(store, redis_url)
    await made.fill()
    return made


async def test_each_status_that_goes_with_an_account_counts_for_pages_that_are_being_read(
    world: AccountWorld, raw: Any
) -> None:
    def statuses() -> int:
        return len(raw.keys(keys.key_for("status", "*")))

    def removed() -> int:
        return int(raw.hget(keys.META, "removed") or 0)

    await drain(world.store, raw)
    total = statuses() + removed()
    before = removed()
    await world.store.accounts.delete(world.admin, world.ada, new_key())
    await drain(world.store, raw)
    assert removed() > before + 2
    assert statuses() + removed() == total


@pytest.mark.parametrize("consent", [False, True], ids=["without consent", "with consent"])
async def test_no_key_has_a_trace_but_those_that_the_page_names(
    redis_url: str, raw: Any, monkeypatch: pytest.MonkeyPatch, *, consent: bool
) -> None:
    monkeypatch.setattr(repair, "RECHECK_SECONDS", 0.01)
    async with open_store(redis_url, rules=SiteRules(ask_strangers=consent)) as store:
        world = AccountWorld(store, redis_url)
        await world.fill()
        await _check_traces(world, raw)


async def _check_traces(world: AccountWorld, raw: Any) -> None:
    await drain(world.store, raw)
    traces = re.compile("|".join(f"(?<![0-9]){each}(?![0-9])" for each in (world.ada, *world.written)))
    before = {_row(name) for name, text in contents(raw) if traces.search(text)}
    assert len(before) > 40
    await world.store.accounts.delete(world.admin, world.ada, new_key())
    await drain(world.store, raw)
    found = {name: text for name, text in contents(raw) if traces.search(text) and name != AUDIT}
    assert {_row(name) for name in found} == set(STAYS), {
        name: text[:300] for name, text in found.items() if _row(name) not in STAYS
    }
    with_text = {_row(name) for name, text in contents(raw) if SECRET in text}
    assert with_text == {"log", "report"}
    with_login = [name for name, text in contents(raw) if "@example.org" in text.lower() or re.search(r"\bada\b", text)]
    assert {_row(name) for name in with_login} == {"log", "logins", "status", "comment"}
    assert await world.store.repair.run(fix=False) == []
    check_timelines(raw)


def _row(name: str) -> str:
    row, _ = keys.parse(name)
    return row or name.removeprefix("{core}:")


async def test_at_once_nobody_sees_anything(world: AccountWorld, raw: Any) -> None:
    store, bob, ada = world.store, world.bob, world.ada
    page = PageRequest(200)
    assert SECRET.encode() in (await store.timelines.read_home(bob, page)).body
    await world.delete()
    timelines, talks = store.timelines, store.talks
    pages = [
        await timelines.read_home(bob, page), await timelines.read_list(bob, world.list, page),
        await timelines.read_tag(bob, "tea", page), await timelines.read_mentions(bob, page),
        await timelines.read_group(bob, world.inherited, page), await timelines.read_replies(bob, world.other, page),
        await store.notifications.list_notifications(bob, page), await talks.list_messages(bob, world.talk, page),
        await store.comments.list_comments(bob, world.other, page), await talks.list_talks(bob, page),
        await store.likes.list_likers(bob, world.other, page), await store.follows.list_followers(bob, bob, page),
        await store.lists.list_members(bob, world.list, page), await store.groups.list_members(bob, world.joined, page),
        await store.reports.list_reports(page, "decided"),
    ]  # fmt: skip
    traces = (SECRET.encode(), f'"uid":"{ada}"'.encode(), f'"id":"{ada}","login":"ada","name"'.encode())
    assert [n for n, one in enumerate(pages) if any(trace in one.body for trace in traces)] == []
    for status in world.posts:
        assert (await refusal(store.statuses.get(bob, status)))[0] == 404
    for status in (world.quote, world.repost):
        shown = await store.statuses.get_many(bob, [status])
        assert all(SECRET.encode() not in one for one in shown)
    for call in (
        store.users.get(bob, ada),
        store.users.get_by_login(bob, "ada"),
        store.follows.follow(bob, ada, new_key()),
    ):
        assert (await refusal(call))[0] == 404
    assert (await refusal(store.statuses.create(ada, StatusDraft(message="x"), new_key())))[0] == 404
    token_validity = await store.sessions.get_token_validity(TokenId(ada, "", "session"))
    assert not token_validity.user_exists
    assert await store.sessions.is_gone(ada)
    assert await store.users.find_credentials("ada") is None
    assert await store.users.check_available("Ada", "ada@example.org") == {"login": False, "email": True}
    assert await refusal(store.users.create_many([("new", "New"), ("ADA", "A")], new_key())) == (
        409,
        "login_taken",
        "login",
    )
    assert await store.users.resolve_logins(["ada", "u0"]) == {"u0": bob}
    raw.delete("{core}:due")  # the job does not run


async def test_consumers_are_told_what_goes(world: AccountWorld, raw: Any) -> None:
    store = world.store
    await drain(store, raw)
    count = len(await logged(store))
    await world.delete()
    await drain(store, raw)
    new = (await logged(store))[count:]
    assert [(one.kind, one.wire) for one in new[:2]] == [
        ("suspend", {"uid": world.ada, "deleted": True}),
        ("user_delete", {"user": {"id": world.ada, "deleted": True}}),
    ]
    assert new[1].audience == "public"
    deletes = {one.wire["status"]["id"]: one.audience for one in new if one.kind == "delete"}
    assert deletes.keys() == set(world.posts)
    assert deletes[world.post] == deletes[world.hidden] == "public"  # the protection ended
    assert sorted(deletes.values()) == sorted(["public"] * 5 + [f"group:{g}" for g in _groups(world)])
    gone = [one.wire["comment"]["id"] for one in new if one.kind == "uncomment"]
    assert gone == [world.comment]
    assert {one.kind for one in new} == {
        "suspend",
        "user_delete",
        "delete",
        "uncomment",
        "group_update",
        "group_delete",
    }
    assert SECRET not in json.dumps([one.wire for one in new if one.kind != "group_update"])


def _groups(world: AccountWorld) -> list[str]:
    return [world.inherited, world.alone, world.joined, world.left]


async def test_every_relation_is_undone_at_its_other_end(world: AccountWorld, raw: Any) -> None:
    store, bob = world.store, world.bob
    await world.delete()
    await drain(store, raw)
    me = await world.people.me(bob)
    assert (me["followers"], me["following"]) == (1, 0)
    other = json.loads(await store.statuses.get(bob, world.other))
    assert (other["likes"], other["comments"], other["reposts"]) == (0, 1, 0)
    assert json.loads(await store.statuses.get(bob, world.quote))["original"] is None
    assert ids(await store.lists.list_members(bob, world.list, PageRequest())) == [world.carl]
    group = json.loads(await store.groups.get(bob, world.inherited))
    assert (group["uid"], group["members"]) == (bob, 2)  # who joined first is the owner now
    await store.groups.update(bob, world.inherited, {"name": "ours"}, new_key())
    assert (await refusal(store.groups.get(bob, world.alone)))[0] == 404
    talk = json.loads(await store.talks.get(bob, world.talk))
    assert talk["last_message"]["message"] == "an answer"
    assert (await refusal(store.talks.send_message(bob, world.talk, "there?", new_key())))[0] == 404
    told = [
        json.loads(one)["source"]["login"]
        for one in items_of(await store.notifications.list_notifications(bob, PageRequest(200)))
    ]
    assert told == ["u1"]
    decided = await store.reports.decide(world.admin, world.report, ReportOutcome.SUSPENDED, "", new_key())
    assert json.loads(decided)["reported"] == {"user": None, "status": None}


async def test_a_repetition_and_wrong_calls(world: AccountWorld) -> None:
    store, key = world.store, IdempotencyKey.from_client(world.admin, "a", b"payload")
    assert await refusal(store.accounts.delete(world.admin, world.admin, new_key())) == (400, "invalid_parameter", "id")
    assert await refusal(store.accounts.delete(world.admin, "77", new_key())) == (404, "not_found", "id")
    wrong = store.accounts.delete_own(world.ada, "another", new_key())
    assert (await refusal(wrong))[:2] == (403, "wrong_password")
    await store.accounts.delete(world.admin, world.ada, key)
    for again in (key, new_key()):
        await store.accounts.delete(world.admin, world.ada, again)
    assert len(await logged(store, "user_delete")) == 1
    deeds = [json.loads(one) for one in items_of(await store.audit.list_deeds(PageRequest()))]
    assert [(one["deed"], one["by"], one["on"]) for one in deeds[:1]] == [("delete_user", world.admin, world.ada)]
    (_, found) = await store.sessions.get_token_validities([TokenId(world.bob, "a"), TokenId(world.ada, "a")])
    assert not found.is_valid


async def test_a_worker_that_dies_between_any_two_commands(world: AccountWorld, raw: Any) -> None:
    await drain(world.store, raw)
    before = RedisDump(raw)
    wanted: list[Any] | None = None
    for k in range(0, MOST, 9 if quick() else 1):
        before.restore()
        await world.delete()
        make_due(raw)
        async with open_store(world.url, size_limits=SMALL) as store:
            interruption = Interruption(store, k, ("before", "after")[k % 2], nothing, dies=True)
            with suppress(Killed):
                await job_workers(store).run_until_empty()
        async with open_store(world.url, size_limits=SMALL) as store:
            await drain(store, raw)
            kinds = sorted((one.kind, one.wire.get("status", {}).get("id", "")) for one in await logged(store))
        wanted = wanted or kinds
        assert kinds == wanted, k
        assert {_row(name) for name, text in contents(raw) if world.ada in text and name != AUDIT} <= set(STAYS)
        check_timelines(raw)
        if not interruption.fired and k:
            return
    pytest.fail("the work never ends")


async def test_no_pass_takes_longer_for_a_larger_account(store: Store, people: People, raw: Any) -> None:
    most, passes = [], []
    for factor in (1, 5):
        raw.flushall()
        author, *readers = await people.users(60 * factor)
        for reader in readers:
            await store.follows.follow(reader, author, new_key())
        posts = [(await people.status(author))["id"] for _ in range(40 * factor)]
        for reader in readers[:50]:
            await store.likes.like(reader, posts[0], new_key())
            await people.status(reader, "a quote", origin=posts[0])
        await store.accounts.delete(readers[0], author, new_key())
        costs = []
        working = job_workers(store)
        while make_due(raw):
            (job,) = await store.job_queue.claim(1)
            outcome = PassOutcome.MORE
            while outcome is PassOutcome.MORE:
                begun = _commands(raw)
                outcome = await store.job_runner.run_pass(job)
                costs.append(_commands(raw) - begun)
        assert working.jobs_done == 0
        most.append(max(costs))
        passes.append(len(costs))
    assert most[1] < 1.5 * max(most[0], 1000) < 9000
    assert passes[1] > 1.5 * passes[0]


def _commands(raw: Any) -> int:
    """The number of commands that Redis ran so far, also by scripts."""
    return sum(int(row["calls"]) for row in raw.info("commandstats").values())


async def test_what_is_gone_is_known_as_long_as_the_log_shows_it(world: AccountWorld, raw: Any) -> None:
    store = world.store
    await world.delete()
    await drain(store, raw)
    accounts = await store.user_graphs.get_restricted_accounts()
    assert accounts.gone == accounts.suspended == {world.ada}
    raw.zadd("{core}:gone", {world.ada: 1_800_000_000_000 - 10**12})
    await store.retention.trim(RetentionLimits(3600, 0))
    assert not await store.sessions.is_gone(world.ada)


async def test_a_person_of_another_issuer_gets_a_new_account(store: Store, raw: Any) -> None:
    names = ("zoe", "zoe2"), "Zoe", "zoe@example.org"
    others = [await store.users.user_of_subject(f"other-{n}", [f"o{n}"], "O", "") for n in range(600)]
    first = await store.users.user_of_subject("subject", *names)
    assert await store.users.user_of_subject("subject", *names) == first
    await store.accounts.delete_own(first, "", new_key())
    await drain(store, raw)
    assert raw.hget("{core}:subjects", "subject") is None
    second = await store.users.user_of_subject("subject", *names)
    assert (await People(store).me(second))["login"] == "zoe2"
    assert (await People(store).me(second))["email"] == "zoe@example.org"
    assert await store.users.user_of_subject("other-599", ["x"], "X", "") == others[599]


async def test_accounts_that_go_together_are_swept_together(store: Store, people: People, raw: Any) -> None:
    uids = await people.users(6)
    statuses = {uid: (await people.status(uid))["id"] for uid in uids}
    for number, uid in enumerate(uids):
        other = uids[(number + 1) % len(uids)]
        await store.follows.follow(uid, other, new_key())
        await store.comments.create(uid, statuses[other], "by and to users who go", new_key())
        await store.mutes.mute(uid, other, new_key())
    for uid in uids[:5]:
        await store.accounts.delete_own(uid, "", new_key())
    await drain(store, raw)
    left = [name for name, text in contents(raw) if any(uid in text for uid in uids[:5])]
    assert {_row(name) for name in left} <= {"log", "gone", "request", "audit", "deeds"}
    me = await people.me(uids[5])
    assert (me["followers"], me["following"], me["posts"]) == (0, 0, 1)
    assert await store.repair.run(fix=False) == []


async def test_a_repair_in_the_middle_finds_nothing_to_do(world: AccountWorld, raw: Any) -> None:
    await drain(world.store, raw)
    await world.delete()
    assert await world.store.repair.run(fix=True) == []
    for _ in range(MOST):
        make_due(raw)
        for job in await world.store.job_queue.claim(4):
            await world.store.job_runner.run_pass(job)
        assert await world.store.repair.run(fix=True) == []
        if not make_due(raw):
            break
    assert not raw.exists(f"{{core}}:user:{world.ada}", f"home:{{{world.ada}}}")


async def test_the_deletes_of_protected_posts_reach_who_could_read_them(world: AccountWorld, raw: Any) -> None:
    """The end of the follow is kept for those followers, so that a later stream can tell."""
    store, carl = world.store, world.carl
    await world.delete()
    await drain(store, raw)
    graph = await store.user_graphs.get_graph(carl)
    assert [other for other, _ in graph.ended] == [world.ada]


async def test_the_text_of_an_earlier_deleted_post_goes_from_what_quotes_it(world: AccountWorld, raw: Any) -> None:
    """Its delete has left the quote as it was. So no set of the user names it, and the sweep must find it."""
    store = world.store
    lost = await world.status(world.ada, f"deleted before {SECRET}")
    quotes = [await world.status(uid, text, origin=lost) for uid, text in ((world.bob, "so"), (world.carl, ""))]
    await store.statuses.delete(world.ada, lost, new_key())
    await world.delete()
    await drain(store, raw)
    assert [raw.hget(f"{{core}}:status:{quote}", "original") for quote in quotes] == [None, None]
    assert {_row(name) for name, text in contents(raw) if SECRET in text} == {"log", "report"}


async def test_what_is_gone_is_known_as_long_as_an_entry_from_during_the_deletion_shows_it(
    world: AccountWorld, raw: Any
) -> None:
    """Bob likes a post of ada no more before a job has removed it. The entry has the post."""
    store = world.store
    await world.delete()
    entries = len(await logged(store))
    await store.likes.unlike(world.bob, world.post, new_key())
    (unlike,) = (await logged(store))[entries:]
    assert unlike.kind == "unlike"
    assert SECRET in str(unlike.wire)
    await drain(store, raw)
    (at,) = [at for at, fields in raw.xrange("{core}:log") if fields[b"k"] == b"unlike"]
    raw.xtrim("{core}:log", minid=at, approximate=False)
    await store.retention.trim(RetentionLimits(3600, 0))
    assert await store.sessions.is_gone(world.ada)
    assert world.ada in (await store.user_graphs.get_restricted_accounts()).suspended
