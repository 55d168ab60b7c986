"""Named subscriptions: what is kept, how their cursors rise, who reads them, and when they are forgotten."""

import random

import pytest
import redis

from stream_server.errors import BadRequest, NotFound, TooLarge
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.subscriptions import (
    MAX_ACKS_PER_CALL,
    MAX_SUBSCRIPTIONS_PER_USER,
    Ack,
    AckOutcome,
    NamedSubscription,
)
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import logged

TEA = {"track": "tea"}


async def put(store: Store, uid: str, name: str = "work", cursor: Position | None = None) -> NamedSubscription:
    await store.subscriptions.put(uid, name, TEA, cursor, new_key())
    return await store.subscriptions.get(uid, name)


async def ack(store: Store, uid: str, cursor: Position, name: str = "work") -> AckOutcome:
    (outcome,) = await store.subscriptions.ack([Ack(uid, name, cursor)])
    return outcome


async def positions(store: Store, people: People, uid: str, count: int) -> list[Position]:
    """Write statuses. Return the position of each."""
    found = []
    for _ in range(count):
        await people.status(uid)
        found.append(await store.log.head())
    return found


async def test_a_subscription_begins_at_the_head_and_is_kept_until_it_is_removed(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    (first, head) = await positions(store, people, ann, 2)
    assert (await store.subscriptions.put(ann, "work", TEA, None, new_key())).is_new
    made = await store.subscriptions.get(ann, "work")
    assert (made.name, made.parameters, made.cursor) == ("work", TEA, head)
    assert made.created_ms == made.used_ms >= head.ms
    old = await put(store, ann, "old", first)
    assert old.cursor == first
    assert await store.subscriptions.list_all(ann) == [old, made]
    assert await store.subscriptions.list_all(bob) == []
    with pytest.raises(NotFound):
        await store.subscriptions.get(bob, "work")
    await store.subscriptions.remove(ann, "work", new_key())
    assert await store.subscriptions.list_all(ann) == [old]
    for call in (store.subscriptions.get(ann, "work"), store.subscriptions.remove(ann, "work", new_key())):
        with pytest.raises(NotFound) as refused:
            await call
        assert refused.value.param == "subscription"


async def test_a_subscription_that_is_put_again_keeps_its_cursor(store: Store, people: People) -> None:
    ann = await people.user("ann")
    first, last = await positions(store, people, ann, 2)
    made = await put(store, ann, cursor=first)
    assert not (await store.subscriptions.put(ann, "work", {"track": "coffee"}, last, new_key())).is_new
    changed = await store.subscriptions.get(ann, "work")
    assert (changed.parameters, changed.cursor, changed.created_ms) == ({"track": "coffee"}, first, made.created_ms)


async def test_before_the_first_entry_a_subscription_begins_at_the_start(store: Store, raw: "redis.Redis") -> None:
    raw.hset(keys.key_for("user", "7"), mapping={"id": "7", "login": "ann"})
    assert (await put(store, "7")).cursor == LOG_START
    assert await ack(store, "7", LOG_START) is AckOutcome.ACKED


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a b", "a/b", "x" * 65, "é", "work parameters", "a\n"])
async def test_a_name_without_the_form_is_refused(store: Store, people: People, name: str) -> None:
    ann = await people.user("ann")
    for call in (
        store.subscriptions.put(ann, name, TEA, None, new_key()),
        store.subscriptions.get(ann, name),
        store.subscriptions.remove(ann, name, new_key()),
    ):
        with pytest.raises(BadRequest) as refused:
            await call
        assert refused.value.param == "subscription"


async def test_acks_in_any_order_leave_the_highest_cursor(store: Store, people: People, raw: "redis.Redis") -> None:
    """The cursor is compared as a position: by numbers, not by text, and whatever the number of digits."""
    ann = await people.user("ann")
    written = await positions(store, people, ann, 3)
    head = written[-1]
    raw.hset("{core}:meta", mapping={"ms": head.ms, "seq": 4095})
    cursors = [*written, *(Position(head.ms, seq, head.n) for seq in (9, 10, 100, 4095)), Position(999, 0, 1)]
    for seed in range(20):
        await store.subscriptions.remove(ann, "work", new_key()) if seed else None
        await put(store, ann, cursor=LOG_START)
        random.Random(seed).shuffle(cursors)
        highest = LOG_START
        for cursor in cursors:
            assert await ack(store, ann, cursor) is AckOutcome.ACKED
            highest = max(highest, cursor)
            assert (await store.subscriptions.get(ann, "work")).cursor == highest


async def test_an_ack_above_the_log_or_of_nothing_changes_nothing(store: Store, people: People) -> None:
    ann = await people.user("ann")
    (head,) = await positions(store, people, ann, 1)
    made = await put(store, ann)
    above_all = [(head.ms, head.seq + 1, head.n + 1), (head.ms + 1, 0, head.n + 1), (head.ms, head.seq, head.n + 1)]
    for above in map(Position._make, above_all):
        assert await ack(store, ann, above) is AckOutcome.AHEAD
    assert await ack(store, ann, head, "other") is AckOutcome.UNKNOWN
    assert await ack(store, "77", head) is AckOutcome.UNKNOWN
    assert (await store.subscriptions.list_all(ann)) == [made]


async def test_many_acks_have_outcomes_in_their_order(store: Store, people: People) -> None:
    ann = await people.user("ann")
    (head,) = await positions(store, people, ann, 1)
    for name in ("a", "b"):
        await put(store, ann, name, LOG_START)
    acks = [Ack(ann, "a" if at % 3 else "none", head) for at in range(MAX_ACKS_PER_CALL + 2)] + [Ack(ann, "b", head)]
    outcomes = await store.subscriptions.ack(acks)
    assert [one is AckOutcome.ACKED for one in outcomes] == [one.name != "none" for one in acks]
    assert [one.cursor for one in await store.subscriptions.list_all(ann)] == [head, head]


async def test_a_connection_takes_a_subscription_over_from_the_one_before(store: Store, people: People) -> None:
    ann = await people.user("ann")
    made = await put(store, ann)
    for connection in ("first", "first", "second"):
        assert (await store.subscriptions.take(ann, made, connection)).is_taken
    taken = {"uid": ann, "connection": "first", "action": "close", "code": "taken_over"}
    assert [one.wire for one in await logged(store, "stream")] == [taken]
    await store.subscriptions.remove(ann, "work", new_key())
    closed = {"uid": ann, "connection": "second", "action": "close", "code": "closed_by_user"}
    assert [one.wire for one in await logged(store, "stream")] == [taken, closed]
    with pytest.raises(NotFound):
        await store.subscriptions.take(ann, made, "third")


async def test_a_poll_that_goes_on_closes_a_stream_and_no_poll(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """The poll before it has ended. A stream has not: both would handle each event. Who closes pays for the entry."""
    ann = await people.user("ann")
    await people.status(ann)
    made = await put(store, ann)
    await store.subscriptions.take(ann, made, "stream")
    before = bytes_of_log(raw)
    steps = [("poll", True, True), ("next", True, True), ("other", True, False), ("again", True, True)]
    paid = [
        (await store.subscriptions.take(ann, made, name, is_poll=poll, goes_on=more)).appended_bytes
        for name, poll, more in steps
    ]
    assert [one.wire["connection"] for one in await logged(store, "stream")] == ["stream", "next"]
    assert [bool(cost) for cost in paid] == [True, False, True, False]
    assert sum(paid) == bytes_of_log(raw) - before
    await store.subscriptions.remove(ann, "work", new_key())
    assert (await logged(store, "stream"))[-1].wire["connection"] == "again"


def bytes_of_log(raw: "redis.Redis") -> int:
    kept = raw.hget("{core}:meta", "bytes")
    assert isinstance(kept, bytes)
    return int(kept)


async def test_an_ack_of_a_removed_subscription_does_not_move_its_successor(store: Store, people: People) -> None:
    """Acks wait for a second. Meanwhile a user may have put the same name again, to begin elsewhere."""
    ann = await people.user("ann")
    first, last = await positions(store, people, ann, 2)
    removed = await put(store, ann, cursor=first)
    made = removed
    while made.created_ms == removed.created_ms:  # it is told by its time in ms
        await store.subscriptions.remove(ann, "work", new_key())
        made = await put(store, ann, cursor=first)
    old, own = (Ack(ann, "work", last, one.created_ms) for one in (removed, made))
    assert await store.subscriptions.ack([old]) == [AckOutcome.UNKNOWN]
    assert (await store.subscriptions.get(ann, "work")).cursor == first
    assert await store.subscriptions.ack([own]) == [AckOutcome.ACKED]


async def test_a_subscription_is_taken_at_the_cursor_that_was_read(store: Store, people: People) -> None:
    """An ack between the read and the take would else be forgotten: the events up to it would come again."""
    ann = await people.user("ann")
    made = await put(store, ann)
    (head,) = await positions(store, people, ann, 1)
    await ack(store, ann, head)
    assert not (await store.subscriptions.take(ann, made, "first")).is_taken
    assert (await store.subscriptions.take(ann, made._replace(cursor=head), "first")).is_taken


async def test_a_user_has_a_bounded_number_and_size(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("ann")
    for at in range(MAX_SUBSCRIPTIONS_PER_USER):
        await put(store, ann, f"n{at}")
    kept = raw.hgetall(keys.key_for("subscriptions", ann))
    with pytest.raises(TooLarge):
        await put(store, ann, "more")
    assert raw.hgetall(keys.key_for("subscriptions", ann)) == kept
    await put(store, ann, "n7")
    bob = await people.user("bob")
    await store.subscriptions.put(bob, "long", {"track": "x" * 200_000}, None, new_key())
    with pytest.raises(TooLarge):
        await store.subscriptions.put(bob, "longer", {"track": "x" * 70_000}, None, new_key())
    assert not (await store.subscriptions.put(bob, "long", {"track": "y" * 250_000}, None, new_key())).is_new


async def test_one_that_is_not_used_is_forgotten_and_one_that_is_used_stays(
    store: Store, people: People, redis_server: RedisProcess, raw: "redis.Redis"
) -> None:
    """The times in Redis are set back, as if a month had passed."""
    ann = await people.user("ann")
    (head,) = await positions(store, people, ann, 1)
    key, month = keys.key_for("subscriptions", ann), SizeLimits().subscription_idle_ms
    names = {"put", "acked", "taken", "idle"}
    for name in names:
        await put(store, ann, name)
    for share, kept in ((0.9, names), (0.2, names - {"idle"})):
        for name in names:
            row = raw.hget(key, name)
            assert isinstance(row, bytes)
            cursor, created, used, reader = row.decode().split()
            raw.hset(key, name, f"{cursor} {created} {int(used) - month * share:.0f} {reader}")
        assert {one.name for one in await store.subscriptions.list_all(ann)} == kept
        await put(store, ann, "put")
        await ack(store, ann, head, "acked")
        await store.subscriptions.take(ann, await store.subscriptions.get(ann, "taken"), "c")
        assert month - 60_000 < raw.pttl(key) <= month
    idle = (await store.subscriptions.get(ann, "put"))._replace(name="idle")
    assert await ack(store, ann, head, "idle") is AckOutcome.UNKNOWN
    for call in (
        store.subscriptions.take(ann, idle, "c"),
        store.subscriptions.get(ann, "idle"),
        store.subscriptions.remove(ann, "idle", new_key()),
    ):
        with pytest.raises(NotFound):
            await call
    assert {b"idle", b"idle parameters"}.isdisjoint(raw.hkeys(key))
    assert raw.zscore(keys.UNACKED, f"{ann} idle") is None
    async with open_store(redis_server.url, size_limits=SizeLimits(subscription_idle_ms=0)) as patient:
        await put(patient, ann, "kept")
        await ack(patient, ann, head, "kept")
        assert raw.pttl(key) == -1


async def test_those_that_the_log_is_about_to_lose_are_counted(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("ann")
    (head,) = await positions(store, people, ann, 1)
    for name, age_ms in (("lost", 900), ("first", 800), ("near", 500), ("far", 100)):
        await put(store, ann, name, Position(head.ms - age_ms, 0, 1))
    assert await store.subscriptions.count_endangered(head.ms - 400) == 3
    await ack(store, ann, head, "near")
    assert await store.subscriptions.count_endangered(head.ms - 400) == 2
    assert await store.subscriptions.count_endangered(head.ms - 800) == 1
    for name in ("lost", "first", "near", "far"):
        await store.subscriptions.remove(ann, name, new_key())
    assert raw.zcard(keys.UNACKED) == 0


async def test_one_from_before_the_first_entry_is_counted_by_the_time_of_that_entry(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """Its cursor has no time. By the time 0, the next trimming would take it for one that has lost entries."""
    ann = await people.user("ann")
    await put(store, ann, "early")
    made = (await store.subscriptions.get(ann, "early")).created_ms
    assert raw.zscore(keys.UNACKED, f"{ann} early") == made
    first, head = await positions(store, people, ann, 2)
    await put(store, ann, "start", LOG_START)
    await store.retention.trim(RetentionLimits(7 * 86_400, 0))
    assert raw.zscore(keys.UNACKED, f"{ann} start") == first.ms
    assert await store.subscriptions.count_endangered(head.ms + 1) == 2


async def test_nothing_is_left_of_the_subscriptions_of_a_deleted_account(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    for uid in (ann, bob):
        await put(store, uid)
    await store.accounts.delete(bob, ann, new_key())
    assert await store.subscriptions.list_all(ann) == []
    assert raw.zrange(keys.UNACKED, 0, -1) == [f"{bob} work".encode()]
