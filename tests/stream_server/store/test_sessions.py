"""Sessions: tokens that were taken back, refresh tokens that were used."""

import asyncio
import json

import pytest
import redis

from stream_server.errors import Forbidden, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint

FAR_MS = 4_000_000_000_000


async def test_standing_of_known_and_unknown(store: Store, people: People) -> None:
    """A token stands while its user exists and nobody took it back."""
    uid = await people.user("Ann")
    assert await store.sessions.get_token_status(uid, "j") == (True, False, False)
    assert await store.sessions.get_token_status("1", "j") == (False, False, False)


async def test_revoking_is_an_entry_of_the_log(store: Store, people: People) -> None:
    """Taking a token back ends its streams by an entry, which concerns no client; others' tokens stay."""
    ann, bob = await people.users(2)
    await store.sessions.revoke(ann, 'j"1', FAR_MS, IdempotencyKey.generate())
    assert await store.sessions.get_token_status(ann, 'j"1') == (True, True, False)
    assert await store.sessions.get_token_status(bob, 'j"1') == (True, False, False)
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("revoke", "-")
    assert json.loads(entry.body) == {"wire": {"uid": ann, "jti": 'j"1'}}


async def test_revoking_twice_is_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """The second time puts nothing on the log."""
    uid = await people.user("Ann")
    for _ in range(2):
        await store.sessions.revoke(uid, "j", FAR_MS, IdempotencyKey.generate())
    assert raw.xlen("{core}:log") == 1


async def test_a_revocation_ends_with_its_token(store: Store, people: People, raw: "redis.Redis") -> None:
    """It is kept until the token would have ended, no longer."""
    uid = await people.user("Ann")
    await store.sessions.revoke(uid, "j", FAR_MS, IdempotencyKey.generate())
    left = raw.pttl(f"{{core}}:revoked:{uid}:j")
    assert isinstance(left, int)
    assert left > 10**12
    before = footprint(raw)
    await store.sessions.revoke(uid, "old", 1, IdempotencyKey.generate())
    assert await store.sessions.get_token_status(uid, "old") == (True, False, False)
    assert footprint(raw) == (before[0] + 1, before[1] + 1)  # the answer under its key, and the entry


async def test_a_refresh_token_is_used_once(store: Store, people: People) -> None:
    """Of many who show it at once, one gets the user."""
    uid = await people.user("ann")
    user = json.loads(await store.sessions.store_refresh_token("d1", uid, 60))
    assert user == json.loads(await store.users.get_own(uid))
    shown = await asyncio.gather(
        *(store.sessions.use_refresh_token("d1", "jti", IdempotencyKey.generate()) for _ in range(20))
    )
    assert [one for one in shown if one is not None] == [(uid, False)]


async def test_a_refresh_token_outlives_a_suspension(store: Store, people: People) -> None:
    """It is refused while that lasts, and good for one use afterwards; that of an ended session says so."""
    root, uid = await people.user("root"), await people.user("ann")
    for digest in ("d1", "d2"):
        await store.sessions.store_refresh_token(digest, uid, 60)
    await store.suspensions.suspend(root, uid, IdempotencyKey.generate())
    with pytest.raises(Forbidden) as refusal:
        await store.sessions.use_refresh_token("d1", "jti", IdempotencyKey.generate())
    assert refusal.value.error_code == "suspended"
    await store.suspensions.reinstate(root, uid, IdempotencyKey.generate())
    request = IdempotencyKey.generate()
    assert await store.sessions.use_refresh_token("d1", "jti", request) == (uid, False)
    assert await store.sessions.use_refresh_token("d1", "jti", request) == (
        uid,
        False,
    )  # a lost answer, asked for again
    assert await store.sessions.use_refresh_token("d1", "jti", IdempotencyKey.generate()) is None
    await store.sessions.revoke(uid, "ended", 4_000_000_000_000, IdempotencyKey.generate())
    assert await store.sessions.use_refresh_token("d2", "ended", IdempotencyKey.generate()) == (uid, True)


async def test_nobody_has_no_session(store: Store) -> None:
    """A user who is not there is told apart before a token is given."""
    with pytest.raises(NotFound):
        await store.sessions.store_refresh_token("d2", "7", 60)
