"""Sessions: revoked tokens, refresh tokens, and tickets."""

import asyncio
import json

import pytest
import redis

from stream_server.errors import Forbidden, NotFound, OutcomeUnknown
from stream_server.events.position import LOG_START
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, footprint, new_key

FAR_MS = 4_000_000_000_000


async def test_token_status_of_known_and_unknown_users(store: Store, people: People) -> None:
    uid = await people.user("Ann")
    assert await store.sessions.get_token_status(uid, "j") == (True, False, False)
    assert await store.sessions.get_token_status("1", "j") == (False, False, False)


async def test_a_revocation_is_an_internal_log_entry(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    await store.sessions.revoke(ann, 'j"1', FAR_MS, new_key())
    assert await store.sessions.get_token_status(ann, 'j"1') == (True, True, False)
    assert await store.sessions.get_token_status(bob, 'j"1') == (True, False, False)
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("revoke", "-")
    assert json.loads(entry.body) == {"wire": {"uid": ann, "jti": 'j"1'}}


async def test_a_repeated_revocation_is_logged_once(store: Store, people: People, raw: "redis.Redis") -> None:
    uid = await people.user("Ann")
    for _ in range(2):
        await store.sessions.revoke(uid, "j", FAR_MS, new_key())
    assert raw.xlen("{core}:log") == 1


async def test_a_revocation_ends_with_its_token(store: Store, people: People, raw: "redis.Redis") -> None:
    uid = await people.user("Ann")
    await store.sessions.revoke(uid, "j", FAR_MS, new_key())
    left = raw.pttl(f"{{core}}:revoked:{uid}:j")
    assert isinstance(left, int)
    assert left > 10**12
    before = footprint(raw)
    await store.sessions.revoke(uid, "old", 1, new_key())
    assert await store.sessions.get_token_status(uid, "old") == (True, False, False)
    assert footprint(raw) == (before[0] + 1, before[1] + 1)  # the answer under its key, and the entry


async def test_a_refresh_token_is_used_once(store: Store, people: People) -> None:
    uid = await people.user("ann")
    user = json.loads(await store.sessions.store_refresh_token("d1", uid, 60))
    assert user == json.loads(await store.users.get_own(uid))
    shown = await asyncio.gather(*(store.sessions.use_refresh_token("d1", "jti", new_key()) for _ in range(20)))
    assert [one for one in shown if one is not None] == [(uid, False)]


async def test_a_refresh_token_outlives_a_suspension(store: Store, people: People) -> None:
    root, uid = await people.user("root"), await people.user("ann")
    for digest in ("d1", "d2"):
        await store.sessions.store_refresh_token(digest, uid, 60)
    await store.suspensions.suspend(root, uid, new_key())
    with pytest.raises(Forbidden) as refusal:
        await store.sessions.use_refresh_token("d1", "jti", new_key())
    assert refusal.value.error_code == "suspended"
    await store.suspensions.reinstate(root, uid, new_key())
    request = new_key()
    assert await store.sessions.use_refresh_token("d1", "jti", request) == (uid, False)
    assert await store.sessions.use_refresh_token("d1", "jti", request) == (
        uid,
        False,
    )  # a lost answer, asked for again
    assert await store.sessions.use_refresh_token("d1", "jti", new_key()) is None
    await store.sessions.revoke(uid, "ended", 4_000_000_000_000, new_key())
    assert await store.sessions.use_refresh_token("d2", "ended", new_key()) == (uid, True)


async def test_an_unknown_user_gets_no_refresh_token(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.sessions.store_refresh_token("d2", "7", 60)


async def test_a_ticket_is_used_once(store: Store) -> None:
    await store.tickets.store("d1", b"claims", 60)
    shown = await asyncio.gather(*(store.tickets.redeem("d1") for _ in range(20)))
    assert [one for one in shown if one is not None] == [b"claims"]
    assert await store.tickets.redeem("d2") is None


async def test_a_ticket_expires(store: Store, raw: "redis.Redis") -> None:
    await store.tickets.store("d1", b"claims", 30)
    left = raw.pttl("{core}:ticket:d1")
    assert isinstance(left, int)
    assert 0 < left <= 30_000
    raw.pexpire("{core}:ticket:d1", 0)
    assert await store.tickets.redeem("d1") is None


async def test_a_ticket_with_a_lost_answer_has_an_unknown_outcome(store: Store, redis_server: RedisProcess) -> None:
    await store.tickets.store("d1", b"claims", 60)
    redis_server.pause()
    try:
        store._redis.timeout_seconds = 0.2
        with pytest.raises(OutcomeUnknown):
            await store.tickets.redeem("d1")
    finally:
        redis_server.resume()
