"""Webhooks in Redis: one process holds each, only this one acknowledges, and a change takes it away."""

import asyncio
from typing import Any

import pytest

from stream_server.errors import BadRequest, NotFound, TooLarge
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.social.parts import Membership
from stream_server.store.social.subscriptions import NewWebhook
from stream_server.store.social.webhook_state import DeliveryOutcome, Standing, Webhook, WebhookState
from stream_server.store.social.webhooks import (
    MAX_REPORTS_PER_CALL,
    WAITING_MS,
    ClaimedWebhook,
    Report,
    Step,
    make_secret,
)
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import logged
from tests.waiting import eventually

LEASE_MS = 60_000
TEA = {"track": "tea"}


def webhook(url: str = "https://a.example/", most: int = 10) -> NewWebhook:
    return NewWebhook(Webhook(url, 100, frozenset({"firehose"})), make_secret(), most)


async def claim(store: Store, holder: str = "one", lease_ms: int = LEASE_MS, most: int = 10) -> list[ClaimedWebhook]:
    return (await store.webhooks.claim(holder, lease_ms, most)).claimed


def report(held: ClaimedWebhook, cursor: Position, step: Step = Step.HOLD, **more: Any) -> Report:
    ms, standing = more.pop("ms", LEASE_MS), more.pop("standing", Standing())
    return Report(held, cursor, step, ms, standing, more.pop("outcomes", ()))


async def say(store: Store, *reports: Report) -> list[Position | None]:
    return [one and one.cursor for one in await store.webhooks.report(reports)]


async def put(store: Store, uid: str, name: str = "work", new: NewWebhook | None = None) -> None:
    await store.subscriptions.put(uid, name, TEA, None, new_key(), new=new or webhook())


async def test_one_process_claims_a_webhook_and_others_when_its_lease_is_over(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await put(store, ann)
    (held,) = await claim(store, lease_ms=1)
    assert held.subscription.webhook is not None
    assert (held.uid, held.subscription.parameters) == (ann, TEA)
    assert held.subscription.webhook.scopes == frozenset({"firehose"})
    (again,) = await eventually_claimed(store)
    assert again.reader != held.reader
    assert await claim(store, "third") == []
    head = await store.log.head()
    assert await say(store, report(held, head)) == [None], "it has lost it"
    assert await say(store, report(again, head)) == [head]


@pytest.mark.parametrize("parts", [None, 8])
async def test_many_reports_hold_redis_no_longer_than_a_few(
    store: Store, people: People, raw: Any, parts: int | None
) -> None:
    """Redis serves others between two calls. The answers have the order of the reports. Eight parts count as one."""
    ann = await people.user("ann")
    await store.subscriptions.put(ann, "work", TEA, None, new_key(), parts=parts, new=webhook())
    (held,) = await claim(store, most=1)
    head = await store.log.head()
    lost = report(held._replace(reader="nobody"), head)
    before = raw.info("commandstats")["cmdstat_evalsha"]["calls"]
    reports = [lost, *[report(held, head)] * MAX_REPORTS_PER_CALL, lost]
    found = [each and each.cursor for each in await store.webhooks.report(reports)]
    assert raw.info("commandstats")["cmdstat_evalsha"]["calls"] == before + (2 if parts is None else 3)
    assert found == [None, *[head] * MAX_REPORTS_PER_CALL, None]


async def eventually_claimed(store: Store) -> list[ClaimedWebhook]:
    found: list[ClaimedWebhook] = []

    async def is_claimed() -> bool:
        found.extend(await claim(store, "two"))
        return bool(found)

    await eventually(is_claimed)
    return found


async def test_only_its_holder_raises_the_cursor_and_never_beyond_the_log(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await put(store, ann)
    (held,) = await claim(store)
    start = held.cursor
    await people.status(ann)
    head = await store.log.head()
    beyond = head._replace(ms=head.ms + 1000)
    assert await say(store, report(held, beyond)) == [start]
    assert await say(store, report(held, head)) == [head]
    assert await say(store, report(held, start)) == [head], "it never falls"
    assert (await store.subscriptions.get(ann, "work")).cursor == head


async def test_what_a_process_reports_is_kept_with_the_last_twenty_outcomes(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await put(store, ann)
    (held,) = await claim(store)
    start = held.cursor
    for number in range(25):
        await say(store, report(held, start, outcomes=(DeliveryOutcome(number, 1, 1, 204),)))
    failing, outcomes = Standing(WebhookState.ACTIVE, 2, 99, 100, start), (DeliveryOutcome(99, 1, 1, 500),)
    await say(store, report(held, start, Step.WAIT, ms=LEASE_MS, standing=failing, outcomes=outcomes))
    kept = (await store.subscriptions.get(ann, "work")).webhook
    assert kept is not None
    assert kept.standings == (failing,)
    assert [one.time_ms for one in kept.outcomes] == [99, *range(24, 5, -1)]
    assert (await store.webhooks.claim("two", LEASE_MS, 10)) == ([], 1, 0), "it waits, and is counted as failing"


@pytest.mark.parametrize("step", [Step.STOP, Step.WAIT])
async def test_a_put_wakes_a_webhook_that_stands_still(store: Store, people: People, step: Step) -> None:
    ann = await people.user("ann")
    await put(store, ann)
    (held,) = await claim(store)
    secrets = await store.webhooks.get_secrets(ann, "work")
    state = WebhookState.PAUSED if step is Step.STOP else WebhookState.ACTIVE
    standing, outcomes = Standing(state, 5, 1, 0, None), (DeliveryOutcome(1, 1, 1, 500),)
    await say(store, report(held, held.cursor, step, standing=standing, outcomes=outcomes))
    assert await claim(store, "two") == []
    await put(store, ann)
    (again,) = await claim(store, "three")
    assert await store.webhooks.get_secrets(ann, "work") == secrets, "they stay"
    assert again.subscription.webhook is not None
    assert again.subscription.webhook.standing == Standing()
    assert again.subscription.webhook.outcomes == outcomes


async def test_a_change_takes_the_webhook_from_its_holder_and_ends_its_reading(store: Store, people: People) -> None:
    ann = await people.user("ann")
    for number, change in enumerate((webhook("https://b.example/"), None, "remove")):
        await put(store, ann)
        (held,) = await claim(store, f"holder{number}")
        before = len(await logged(store))
        if change == "remove":
            await store.subscriptions.remove(ann, "work", new_key())
        else:
            assert not isinstance(change, str)
            await store.subscriptions.put(ann, "work", TEA, None, new_key(), new=change)
        (entry,) = (await logged(store))[before:]
        assert held.reader in str(entry)
        assert await say(store, report(held, held.cursor)) == [None]
        assert len(await claim(store, f"next{number}")) == (number == 0)


async def test_a_connection_that_reads_ends_when_the_subscription_gets_a_webhook(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await store.subscriptions.put(ann, "work", TEA, None, new_key())
    await store.subscriptions.take(ann, await store.subscriptions.get(ann, "work"), "stream-1")
    before = len(await logged(store))
    await put(store, ann)
    (entry,) = (await logged(store))[before:]
    assert "stream-1" in str(entry)
    assert "taken_over" in str(entry)


async def test_a_secret_is_replaced_and_the_one_before_signs_for_a_day(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    new = webhook()
    made = await store.subscriptions.put(ann, "work", TEA, None, new_key(), new=new)
    assert made == (True, True)
    assert await store.subscriptions.put(ann, "work", TEA, None, new_key(), new=webhook()) == (False, False)
    assert await store.webhooks.get_secrets(ann, "work") == (new.secret,)
    await store.webhooks.replace_secret(ann, "work", "whsec_second", new_key())
    assert await store.webhooks.get_secrets(ann, "work") == ("whsec_second", new.secret)
    await store.webhooks.replace_secret(ann, "work", "whsec_third", new_key())
    assert await store.webhooks.get_secrets(ann, "work") == ("whsec_third", "whsec_second")
    (held,) = await claim(store)
    await store.webhooks.replace_secret(ann, "work", "whsec_fourth", new_key())
    assert await store.webhooks.get_holders_secrets(held) == ("whsec_fourth", "whsec_third"), "at once"
    await put(store, ann)
    assert await store.webhooks.get_holders_secrets(held) == (), "it has lost it"
    for uid, name in ((ann, "other"), (bob, "work")):
        with pytest.raises(NotFound):
            await store.webhooks.replace_secret(uid, name, "whsec_x", new_key())


async def put_parts(store: Store, uid: str, parts: int = 4) -> None:
    await store.subscriptions.put(uid, "work", TEA, None, new_key(), parts=parts, new=webhook())


async def test_each_part_is_claimed_and_acked_by_itself(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await put_parts(store, ann)
    first, second, *_ = held = await claim(store)
    assert [one.part for one in held] == [0, 1, 2, 3]
    await people.status(ann)
    head = await store.log.head()
    assert await say(store, report(second, head), report(first, first.cursor)) == [head, first.cursor]
    kept = await store.subscriptions.get(ann, "work")
    assert [part.cursor for part in kept.parts] == [first.cursor, head, first.cursor, first.cursor]
    assert (kept.cursor, kept.parts[1].member) == (first.cursor, second.reader)
    failing, outcomes = Standing(WebhookState.ACTIVE, 2, 99, 100, head), (DeliveryOutcome(99, 1, 1, 500, part=1),)
    await say(store, report(second, head, Step.WAIT, standing=failing, outcomes=outcomes))
    assert await say(store, report(second, head)) == [None], "it waits"
    assert await store.webhooks.get_holders_secrets(first)
    shown = (await store.subscriptions.get(ann, "work")).webhook
    assert shown is not None
    assert (shown.standing, shown.outcomes) == (failing, outcomes)
    assert await store.webhooks.claim("one", LEASE_MS, 10) == ([], 1, 0)
    stopped = Standing(WebhookState.DISABLED, 3, 99)
    await say(store, report(first, head, Step.STOP, standing=stopped))
    assert await say(store, report(held[2], head)) == [None], "all parts have stopped"
    assert await claim(store) == []
    await put_parts(store, ann)
    again = await claim(store)
    assert [one.cursor for one in again] == [head, head, first.cursor, first.cursor]
    assert await store.webhooks.get_holders_secrets(first) == ()


async def test_processes_share_the_parts_when_one_comes_and_when_one_dies(store: Store, people: People) -> None:
    """With four parts, two processes hold two each, and of three processes each holds one or two."""
    ann = await people.user("ann")
    await put_parts(store, ann)
    held = {"one": await claim(store, "one"), "two": await claim(store, "two"), "three": []}
    assert [len(each) for each in held.values()] == [4, 0, 0], "everything is held"
    for _ in range(8):
        for name, mine in held.items():
            held[name] = await keep_share(store, [*mine, *await claim(store, name)])
    assert sorted(len(each) for each in held.values()) == [1, 1, 2]
    assert {one.part for each in held.values() for one in each} == {0, 1, 2, 3}, "each part has one holder"
    dead = held.pop("one")
    await say(store, *(report(one, one.cursor, ms=1) for one in dead))

    async def are_taken() -> bool:
        for name, mine in held.items():
            mine.extend(await claim(store, name))
        return sum(map(len, held.values())) == 4

    await eventually(are_taken)
    assert await say(store, report(dead[0], dead[0].cursor)) == [None]


async def test_a_process_that_holds_too_many_parts_keeps_its_share(store: Store, people: People, raw: Any) -> None:
    """It says all of them in one call. A process that claimed while the clock was ahead has no share of them."""
    raw.zadd(keys.key_for("deliverers"), {"ahead": 4_000_000_000_000})
    await put_parts(store, await people.user("ann"))
    held = await claim(store, "one")
    assert len(held) == 4
    assert await claim(store, "two") == []
    replies = await store.webhooks.report([report(one, one.cursor) for one in held])
    assert [one and one.is_surplus for one in replies] == [False, False, True, True]
    assert await say(store, *(report(one, one.cursor, Step.WAIT, ms=0) for one in held[2:])) == [held[0].cursor] * 2
    replies = await store.webhooks.report([report(one, one.cursor) for one in held[:2]])
    assert [one and one.is_surplus for one in replies] == [False, False]


async def test_a_webhook_waits_while_some_of_its_parts_have_no_process(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("ann")
    await put_parts(store, ann)
    raw.zincrby(keys.key_for("webhooks"), -2 * WAITING_MS, f"{ann} work")
    (held,) = await claim(store, most=1)
    await say(store, report(held, held.cursor))
    kept = await store.subscriptions.list_all(ann)
    assert await store.webhooks.find_waiting(ann, kept) == {"work"}
    assert (await store.webhooks.claim("one", LEASE_MS, 0)).waiting == 1
    assert len(await claim(store)) == 3
    assert await store.webhooks.find_waiting(ann, kept) == frozenset()


async def keep_share(store: Store, held: list[ClaimedWebhook]) -> list[ClaimedWebhook]:
    """Report each part, and give back those that are too many. Return the others."""
    kept = []
    for one in held:
        (reply,) = await store.webhooks.report([report(one, one.cursor)])
        assert reply is not None
        if reply.is_surplus:
            assert await say(store, report(one, one.cursor, Step.WAIT, ms=0)) == [one.cursor]
        else:
            kept.append(one)
    return kept


async def test_a_shared_subscription_gets_a_webhook_instead_of_its_readers(store: Store, people: People) -> None:
    ann = await people.user("ann")
    await store.subscriptions.put(ann, "work", TEA, None, new_key(), parts=2)
    member = Membership(ann, "work", "worker", "stream-1")
    offer = (await store.shared_subscriptions.join(member, LEASE_MS, None)).share
    assert (await store.shared_subscriptions.join(member, LEASE_MS, offer)).is_taken
    before = len(await logged(store))
    await put(store, ann)
    (entry,) = (await logged(store))[before:]
    assert "stream-1" in str(entry)
    assert not (await store.shared_subscriptions.join(member, LEASE_MS, offer)).is_taken, "servers have the parts"
    held = await claim(store)
    assert [one.part for one in held] == [0, 1]
    await store.subscriptions.put(ann, "work", TEA, None, new_key())
    assert await say(store, *(report(one, one.cursor) for one in held)) == [None, None]
    assert (await store.shared_subscriptions.join(member, LEASE_MS, offer)).is_taken, "connections have them again"
    await put(store, ann, "sent")
    with pytest.raises(BadRequest, match="number of parts"):
        await store.subscriptions.put(ann, "sent", TEA, None, new_key(), parts=2)


async def test_a_user_has_a_limited_number_of_webhooks(store: Store, people: People) -> None:
    ann = await people.user("ann")
    for name in ("one", "two"):
        await put(store, ann, name, webhook(most=2))
    with pytest.raises(TooLarge, match="webhooks"):
        await put(store, ann, "three", webhook(most=2))
    await put(store, ann, "two", webhook("https://b.example/", most=2))
    await store.subscriptions.put(ann, "one", TEA, None, new_key())
    await put(store, ann, "three", webhook(most=2))
    assert [each.name for each in await store.subscriptions.list_all(ann) if each.webhook] == ["three", "two"]
    await store.subscriptions.put(ann, "four", TEA, None, new_key(), parts=2, new=webhook(most=4))
    with pytest.raises(TooLarge, match="webhooks"):
        await put(store, ann, "five", webhook(most=4))
    await store.subscriptions.put(ann, "four", TEA, None, new_key(), parts=2, new=webhook(most=4))


async def test_a_removed_webhook_leaves_nothing(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("ann")
    for name in ("one", "two"):
        await put(store, ann, name)
    held = await claim(store)
    failing = Standing(WebhookState.ACTIVE, 1, 5, 6, None)
    for one in held:
        await say(store, report(one, one.cursor, Step.WAIT, standing=failing))
    assert raw.zcard(keys.key_for("failing")) == 2
    await store.subscriptions.remove(ann, "one", new_key())
    await store.subscriptions.put(ann, "two", TEA, None, new_key())
    assert raw.zcard(keys.key_for("failing")) == raw.zcard(keys.key_for("webhooks")) == 0
    fields = set(raw.hkeys(keys.key_for("subscriptions", ann)))
    assert fields == {b"two", b"two parameters"}


async def test_processes_that_claim_at_the_same_time_get_each_webhook_once(store: Store, people: People) -> None:
    ann = await people.user("ann")
    for number in range(8):
        await put(store, ann, f"n{number}")
    found = await asyncio.gather(*(claim(store, f"p{number}", most=3) for number in range(4)))
    names = [one.subscription.name for each in found for one in each]
    assert sorted(names) == [f"n{number}" for number in range(8)]
    assert max(map(len, found)) == 3
