"""Shared subscriptions: who holds which parts, what an ack raises, and what becomes of the parts of those who leave."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, NotFound, TooLarge
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.social.parts import (
    MAX_PARTS,
    MAX_PER_CALL,
    Membership,
    RenewalOutcome,
    Share,
)
from stream_server.store.social.subscriptions import Ack, AckOutcome
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import logged

TEA = {"track": "tea"}
LEASE_MS = 10_000


class Shared:
    """A shared subscription of Ann, and its members as their connections see them."""

    def __init__(self, store: Store, raw: "redis.Redis", uid: str) -> None:
        self.store, self.raw, self.uid = store, raw, uid

    async def put(self, parts: int | None = 8) -> bool:
        put = await self.store.subscriptions.put(self.uid, "work", TEA, LOG_START, new_key(), parts=parts)
        return put.is_new

    def as_member(self, member: str, connection: str | None = None) -> Membership:
        return Membership(self.uid, "work", member, connection or f"of-{member}")

    async def join(self, member: str, connection: str | None = None, **more: Any) -> Share:
        membership, share = self.as_member(member, connection), None
        for _ in range(2):  # an offer, and its acceptance
            joining = await self.store.shared_subscriptions.join(membership, LEASE_MS, share, **more)
            share = joining.share
        assert joining.is_taken
        return joining.share

    async def renew(self, member: str, connection: str | None = None, lease_ms: int = LEASE_MS) -> RenewalOutcome:
        lease = self.as_member(member, connection), lease_ms
        (outcome,) = await self.store.shared_subscriptions.renew([lease])
        return outcome

    async def leave(self, member: str, connection: str | None = None) -> None:
        await self.renew(member, connection, 0)

    async def ack(self, connection: str, cursor: Position) -> AckOutcome:
        (outcome,) = await self.store.subscriptions.ack([Ack(self.uid, "work", cursor, 0, connection)])
        return outcome

    async def holders(self) -> list[str | None]:
        return [part.member for part in (await self.store.subscriptions.get(self.uid, "work")).parts]

    async def cursors(self) -> list[Position]:
        return [part.cursor for part in (await self.store.subscriptions.get(self.uid, "work")).parts]

    async def counts(self) -> list[int]:
        """How many parts each present member holds, the largest number first."""
        holders = await self.holders()
        return sorted((holders.count(one) for one in {*holders} - {None}), reverse=True)

    def pass_time(self, ms: int) -> None:
        """Set the ends of all leases back, as if this time had passed."""
        key = keys.key_for("subscriptions", self.uid)
        kept = self.raw.hget(key, "work parts")
        assert isinstance(kept, bytes)
        parts, members = kept.decode().split("\n")
        moved = re.sub(r"(?<=:)\d{13}(?=:[01])", lambda ends: str(int(ends[0]) - ms), members)
        self.raw.hset(key, "work parts", f"{parts}\n{moved}")


@pytest.fixture
async def shared(store: Store, people: People, raw: "redis.Redis") -> Shared:
    made = Shared(store, raw, await people.user("ann"))
    assert await made.put()
    return made


async def closed(store: Store) -> list[tuple[str, str]]:
    return [(one.wire["connection"], one.wire["code"]) for one in await logged(store, "stream")]


async def positions(shared: Shared, people: People, count: int) -> list[Position]:
    found = []
    for _ in range(count):
        await people.status(shared.uid)
        found.append(await shared.store.log.head())
    return found


async def test_each_who_comes_gets_a_fair_share_and_only_those_who_lose_parts_are_closed(shared: Shared) -> None:
    """The shares of eight parts: 8, then 4 and 4, 3 3 2, 2 2 2 2."""
    expected = [[8], [4, 4], [3, 3, 2], [2, 2, 2, 2], [2, 2, 2, 1, 1]]
    for at, counts in enumerate(expected):
        before = await shared.holders()
        told = len(await closed(shared.store))
        await shared.join(f"w{at}", f"c{at}")
        after = await shared.holders()
        assert await shared.counts() == counts
        losers = {one for one, other in zip(before, after, strict=True) if one != other and one is not None}
        now_told = (await closed(shared.store))[told:]
        assert sorted(now_told) == [(f"c{one[1:]}", "rebalanced") for one in sorted(losers)]


async def test_the_parts_of_a_member_that_left_are_free_at_once_and_others_grow_after_a_while(shared: Shared) -> None:
    """Those who are there do not grow at once: a worker that restarts takes its parts again."""
    for name in ("a", "b", "c"):
        await shared.join(name)
    await shared.leave("c")
    assert await shared.counts() == [3, 3]
    assert [await shared.renew(one) for one in "ab"] == [RenewalOutcome.HELD] * 2
    again = await shared.join("d")
    assert len(again.cursors) == 2
    await shared.leave("d")
    shared.pass_time(4000)
    assert [await shared.renew(one) for one in "ab"] == [RenewalOutcome.GROWS] * 2
    assert [len((await shared.join(one, f"c-{one}")).cursors) for one in "ab"] == [4, 4]
    assert [await shared.renew(one, f"c-{one}") for one in "ab"] == [RenewalOutcome.HELD] * 2


async def test_the_parts_of_a_dead_member_move_after_its_lease(shared: Shared) -> None:
    await shared.join("a", "c1")
    await shared.join("b", "c2")
    assert await shared.renew("a", "c1") is RenewalOutcome.HELD
    shared.pass_time(LEASE_MS + 3001)
    assert await shared.counts() == []
    assert await shared.renew("a", "c1") is RenewalOutcome.GROWS
    assert len((await shared.join("a", "c3")).cursors) == 8
    assert (await closed(shared.store))[-2:] == [("c2", "rebalanced"), ("c1", "taken_over")]
    assert await shared.renew("b", "c2") is RenewalOutcome.LOST


async def test_a_worker_with_a_name_keeps_its_parts_and_takes_its_former_connection_over(shared: Shared) -> None:
    await shared.join("a", "c1")
    await shared.join("b", "c2")
    before = await shared.holders()
    await shared.join("b", "c3")
    assert await shared.holders() == before
    assert (await closed(shared.store))[-1] == ("c2", "taken_over")
    assert await shared.renew("b", "c2") is RenewalOutcome.HELD, "the log has told that connection of its end"
    await shared.leave("b", "c2")
    assert await shared.holders() == before, "that connection does not end the lease of its successor"


async def test_a_member_without_a_name_has_left_when_it_is_closed(shared: Shared, people: People) -> None:
    """It comes back as another one, so nobody's share counts it meanwhile. Its last acks count until then."""
    (head,) = await positions(shared, people, 1)
    await shared.join("c1", "c1")
    await shared.join("c2", "c2")
    assert await shared.counts() == [4]
    assert await shared.ack("c1", head) is AckOutcome.ACKED
    assert (await shared.cursors()).count(head) == 4
    assert await shared.renew("c2", "c2") is RenewalOutcome.HELD, "the one that was closed may be back"
    assert (await shared.join("c3", "c3")).start == head
    assert await shared.counts() == [4, 4]
    assert await closed(shared.store) == [("c1", "rebalanced")]


async def test_an_ack_raises_the_parts_of_its_connection_only(shared: Shared, people: People) -> None:
    """Not those that it lost, nor those that its member got since by another connection."""
    first, second, third = await positions(shared, people, 3)
    await shared.join("a", "c1")
    assert await shared.ack("c1", first) is AckOutcome.ACKED
    assert await shared.cursors() == [first] * 8
    await shared.join("b", "c2")
    assert await shared.ack("c1", second) is AckOutcome.ACKED
    assert await shared.cursors() == [second] * 4 + [first] * 4
    await shared.leave("b", "c2")
    assert await shared.ack("c2", first) is AckOutcome.ACKED, "what it handled before it left"
    grown = await shared.join("a", "c3")
    assert grown.cursors == dict(enumerate([second] * 4 + [first] * 4))
    assert grown.start == first
    assert [await shared.ack(one, third) for one in ("c1", "c2", "none", "")] == [
        AckOutcome.LOST, AckOutcome.LOST, AckOutcome.LOST, AckOutcome.UNNAMED,
    ]  # fmt: skip
    assert await shared.cursors() == [second] * 4 + [first] * 4
    assert await shared.ack("c3", second) is AckOutcome.ACKED
    assert await shared.ack("c3", first) is AckOutcome.ACKED
    assert await shared.cursors() == [second] * 8
    assert (await shared.store.subscriptions.get(shared.uid, "work")).cursor == second


async def test_the_subscription_is_as_far_behind_as_its_last_part(shared: Shared, people: People) -> None:
    """So the metric for those that will soon lose entries counts it by that part."""
    first, second = await positions(shared, people, 2)
    await shared.join("a", "c1")
    await shared.ack("c1", first)
    await shared.join("b", "c2")
    await shared.ack("c1", second)
    assert (await shared.store.subscriptions.get(shared.uid, "work")).cursor == first
    assert await shared.store.subscriptions.count_endangered(first.ms + 1) == 1
    await shared.ack("c2", second)
    assert await shared.store.subscriptions.count_endangered(first.ms + 1) == int(first.ms == second.ms)


async def test_an_offer_holds_only_while_the_share_is_the_same(shared: Shared, people: People) -> None:
    (head,) = await positions(shared, people, 1)
    await shared.join("a", "c1")
    membership = shared.as_member("b", "c2")
    offer = await shared.store.shared_subscriptions.join(membership, LEASE_MS, None)
    assert (offer.is_taken, len(offer.share.cursors), await shared.counts()) == (False, 4, [8])
    await shared.ack("c1", head)
    other = await shared.store.shared_subscriptions.join(membership, LEASE_MS, offer.share)
    assert (other.is_taken, other.share.start, await shared.counts()) == (False, head, [8])
    assert (await shared.store.shared_subscriptions.join(membership, LEASE_MS, other.share)).is_taken


async def test_more_members_than_parts_wait_for_a_part(store: Store, people: People, raw: "redis.Redis") -> None:
    shared = Shared(store, raw, await people.user("ann"))
    await shared.put(1)
    assert len((await shared.join("a")).cursors) == 1
    standby = await shared.join("b")
    assert (standby.cursors, standby.start) == ({}, None)
    assert await shared.renew("b") is RenewalOutcome.HELD
    await shared.leave("a")
    shared.pass_time(4000)
    assert await shared.renew("b") is RenewalOutcome.GROWS
    assert len((await shared.join("b2")).cursors) == 1


async def test_a_poll_that_goes_on_closes_none_and_another_one_does(shared: Shared) -> None:
    await shared.join("a", "p1", is_poll=True)
    await shared.join("a", "p2", is_poll=True, goes_on=True)
    assert await closed(shared.store) == []
    await shared.join("a", "p3", is_poll=True)
    await shared.join("a", "stream")
    await shared.join("a", "p4", is_poll=True, goes_on=True)
    assert await closed(shared.store) == [(one, "taken_over") for one in ("p2", "p3", "stream")]


async def test_the_number_of_parts_is_fixed(shared: Shared) -> None:
    assert not await shared.put(8)
    assert not await shared.put(None)
    with pytest.raises(BadRequest) as refused:
        await shared.put(9)
    assert refused.value.param == "parts"
    await shared.store.subscriptions.put(shared.uid, "sole", TEA, None, new_key())
    with pytest.raises(BadRequest):
        await shared.store.subscriptions.put(shared.uid, "sole", {"track": "other"}, None, new_key(), parts=8)
    assert (await shared.store.subscriptions.get(shared.uid, "sole")).parameters == TEA


async def test_nothing_is_left_of_a_shared_subscription_and_its_readers_are_closed(
    shared: Shared, raw: "redis.Redis"
) -> None:
    for name in ("a", "b"):
        await shared.join(name)
    told = len(await closed(shared.store))
    await shared.store.subscriptions.remove(shared.uid, "work", new_key())
    assert sorted((await closed(shared.store))[told:]) == [(f"of-{one}", "closed_by_user") for one in ("a", "b")]
    assert raw.hgetall(keys.key_for("subscriptions", shared.uid)) == {}
    assert await shared.renew("a") is RenewalOutcome.LOST
    with pytest.raises(NotFound):
        await shared.join("a")
    await shared.store.subscriptions.put(shared.uid, "work", TEA, None, new_key())
    with pytest.raises(NotFound):
        await shared.join("a")


async def test_parts_and_members_are_bounded(shared: Shared, raw: "redis.Redis") -> None:
    for at in range(64):
        await shared.join(f"m{at}")
    before = raw.hgetall(keys.key_for("subscriptions", shared.uid))
    with pytest.raises(TooLarge) as refused:
        await shared.join("more")
    assert refused.value.param == "worker"
    assert raw.hgetall(keys.key_for("subscriptions", shared.uid)) == before
    for at in range(15):  # a part counts as 256 bytes
        await shared.store.subscriptions.put(shared.uid, f"n{at}", TEA, None, new_key(), parts=MAX_PARTS)
    with pytest.raises(TooLarge):
        await shared.store.subscriptions.put(shared.uid, "last", TEA, None, new_key(), parts=MAX_PARTS)


async def test_many_renewals_and_acks_have_outcomes_in_their_order(shared: Shared) -> None:
    await shared.join("a")
    leases = [(shared.as_member("a" if at % 3 else "none"), LEASE_MS) for at in range(MAX_PER_CALL + 2)]
    outcomes = await shared.store.shared_subscriptions.renew(leases)
    assert [one is RenewalOutcome.HELD for one in outcomes] == [one.member == "a" for one, _ in leases]
    acks = [Ack(shared.uid, "work", LOG_START, 0, "of-a" if at % 3 else "none") for at in range(MAX_PER_CALL + 2)]
    told = await shared.store.subscriptions.ack(acks)
    assert [one is AckOutcome.ACKED for one in told] == [one.connection == "of-a" for one in acks]


@pytest.mark.parametrize("seed", range(4))
async def test_random_members_end_with_fair_shares_and_no_part_has_two(shared: Shared, seed: int) -> None:
    """Members come, go and die. Then all parts are held, by shares that differ by one at most."""
    chance = random.Random(seed)
    numbers = iter(range(1000))
    present: dict[str, str] = {}  # the connection of each member
    for _ in range(60):
        await _do_one(shared, chance, numbers, present)
        holders = await shared.holders()
        assert {one for one in holders if one} <= present.keys()
    while len(present) < 3:
        await _come(shared, numbers, present)
    for _ in range(12):
        shared.pass_time(3001)
        for member, connection in [*present.items()]:
            outcome = await shared.renew(member, connection)
            if outcome is not RenewalOutcome.HELD:
                del present[member]
                await _come(shared, numbers, present)
        await _obey(shared, present, numbers)
    counts = await shared.counts()
    assert sum(counts) == 8
    assert len(counts) == min(8, len(present))
    assert counts[0] - counts[-1] <= 1


async def _come(shared: Shared, numbers: Iterator[int], present: dict[str, str], member: str = "") -> None:
    connection = f"c{next(numbers)}"
    present[member or connection] = connection
    await shared.join(member or connection, connection)


async def _obey(shared: Shared, present: dict[str, str], numbers: Iterator[int]) -> None:
    """Let those come back whose connections were closed by the log."""
    for _ in range(9):
        ended = {connection for connection, code in await closed(shared.store) if code == "rebalanced"}
        back = [member for member, connection in present.items() if connection in ended]
        for member in back:
            is_named = present.pop(member) != member
            await _come(shared, numbers, present, member if is_named else "")
        if not back:
            return
    raise AssertionError("the members close each other without end")


async def _do_one(shared: Shared, chance: random.Random, numbers: Iterator[int], present: dict[str, str]) -> None:
    if len(present) < 2 or (chance.random() < 0.4 and len(present) < 6):
        await _come(shared, numbers, present, chance.choice(["", "w1", "w2", "w3"]))
    elif chance.random() < 0.5:
        member = chance.choice([*present])
        await shared.leave(member, present.pop(member))
    else:  # it dies, and its lease ends while the others renew theirs
        del present[chance.choice([*present])]
        shared.pass_time(LEASE_MS + 1)
        for one, connection in present.items():
            await shared.renew(one, connection)
    await _obey(shared, present, numbers)
