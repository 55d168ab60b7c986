"""Sessions: revoked tokens, refresh tokens, and tickets."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import Forbidden, NotFound, OutcomeUnknown
from stream_server.events.position import LOG_START
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.social.sessions import RefreshSecrets, TokenId
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import PASSWORD_HASH, People, footprint, new_key

FAR_MS = 4_000_000_000_000


async def test_a_revocation_is_an_internal_log_entry(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    await store.sessions.revoke(ann, 'j"1', FAR_MS, new_key())
    assert (await store.sessions.get_token_validity(TokenId(ann, 'j"1')))[:3] == (True, True, False)
    assert (await store.sessions.get_token_validity(TokenId(bob, 'j"1')))[:3] == (True, False, False)
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
    assert (await store.sessions.get_token_validity(TokenId(uid, "old")))[:3] == (True, False, False)
    assert footprint(raw) == (before[0] + 1, before[1] + 1)  # the answer under its key, and the entry


SECRETS = RefreshSecrets("ab", "cd")
"""Two digests; the store does not care of what."""


async def start(store: Store, uid: str, session: str = "s1", secrets: RefreshSecrets = SECRETS) -> Any:
    return json.loads(await store.sessions.start(uid, session, secrets, 60, 'an "agent"', new_key()))


async def refresh(store: Store, uid: str, token: str, following: str, family: str = "ab") -> str:
    secrets = RefreshSecrets(family, token)
    return (await store.sessions.refresh(uid, "s1", secrets, following, 60, new_key()))[0]


def revocations(raw: "redis.Redis") -> list[Any]:
    rows: Any = raw.xrange("{core}:log")
    return [json.loads(entry[b"e"])["wire"] for _, entry in rows if entry[b"k"] == b"revoke"]


async def test_of_twenty_uses_at_once_one_succeeds_and_the_session_ends(store: Store, people: People) -> None:
    uid = await people.user("ann")
    await start(store, uid)
    outcomes = await asyncio.gather(*(refresh(store, uid, "cd", f"e{n}") for n in range(20)))
    assert sorted(outcomes) == ["refreshed", "reused"] + ["unknown"] * 18
    assert await store.sessions.list_sessions(uid, 0) == []


async def test_a_made_up_refresh_token_ends_nothing(store: Store, people: People) -> None:
    uid, other = await people.user("ann"), await people.user("bob")
    await start(store, uid)
    assert await refresh(store, uid, "cd", "e0", family="00") == "unknown"
    assert await refresh(store, other, "cd", "e0") == "unknown"
    with pytest.raises(NotFound):
        await refresh(store, "7", "cd", "e0")
    assert await refresh(store, uid, "cd", "e0") == "refreshed"


async def test_an_expired_session_is_unknown(store: Store, people: People) -> None:
    uid = await people.user("ann")
    await start(store, uid, "s2")  # else Redis forgets all sessions
    await store.sessions.start(uid, "s1", SECRETS, 0, "", new_key())
    assert await refresh(store, uid, "cd", "e0") == "unknown"
    assert await store.sessions.list_sessions(uid, 4_000_000_000_000) == []


async def test_of_two_who_change_a_password_at_once_one_is_refused(store: Store, people: People) -> None:
    """Both have proved the old password, perhaps because one of them has stolen it."""
    uid = await people.user("ann")
    changes = [store.sessions.change_password(uid, PASSWORD_HASH, f"new{n}", "", new_key()) for n in range(2)]
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    (refused,) = [one for one in outcomes if isinstance(one, Forbidden)]
    assert refused.error_code == "wrong_password"


async def test_a_user_has_at_most_a_hundred_sessions(store: Store, people: People, raw: "redis.Redis") -> None:
    uid = await people.user("ann")
    for number in range(100):
        await start(store, uid, f"s{number}")
    await refresh(store, uid, "e0", "e1", family="00")
    raw.hset(f"{{core}}:sessions:{uid}", "s7", '1 1 4000000000000 ab cd ""')
    await start(store, uid, "s100")
    ids = {session.id for session in await store.sessions.list_sessions(uid, 0)}
    assert ids == {f"s{number}" for number in range(101)} - {"s7"}
    assert revocations(raw) == [{"uid": uid, "sessions": ["s7"]}]


async def test_many_tokens_are_checked_together(store: Store, people: People) -> None:
    uid = await people.user("ann")
    await start(store, uid)
    asked = [TokenId(uid, "any", f"s{number % 2}") for number in range(250)]
    statuses = await store.sessions.get_token_validities(asked)
    assert [status.revoked for status in statuses] == [True, False] * 125


async def test_tokens_of_each_kind_are_checked_together(store: Store, people: People) -> None:
    """A token that is too old, a revoked one and one of a session hold no other back."""
    ann, bob = await people.users(2)
    await store.sessions.end_all(ann, new_key())
    await store.sessions.revoke(bob, "revoked", FAR_MS, new_key())
    await start(store, bob)
    old, revoked, of_session = TokenId(ann, "old", issued_at=1), TokenId(bob, "revoked"), TokenId(bob, "any", "s1")
    validities = await store.sessions.get_token_validities([old, revoked, of_session, TokenId(bob, "good"), old])
    assert [each.revoked for each in validities] == [True, True, False, False, True]


async def test_the_sessions_of_a_user_may_expire_between_the_questions_about_one(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = await people.user("ann")
    await start(store, uid)
    execute = RedisClient.execute

    async def expire_before_the_last(self: RedisClient, *commands: Command) -> list[Any]:
        replies = await execute(self, *commands[:-1])
        raw.delete(f"{{core}}:sessions:{uid}")
        return replies + await execute(self, commands[-1])

    monkeypatch.setattr(RedisClient, "execute", expire_before_the_last)
    assert (await store.sessions.get_token_validity(TokenId(uid, "any", "s1"))).revoked


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
