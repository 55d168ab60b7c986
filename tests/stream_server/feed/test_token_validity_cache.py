"""A process remembers which tokens are valid, and believes its memory only as far as it has heard the log."""

import asyncio
import math
from collections.abc import Callable

import msgspec
import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.feed import token_validity_cache
from stream_server.feed.link_health import HeardLog
from stream_server.feed.token_validity_cache import MAX_KNOWN_SECONDS, MAX_TOKENS_OF_USER, MAX_USERS, TokenValidityCache
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.script_settings import SizeLimits, load_scripts
from stream_server.store.social.sessions import RefreshSecrets, TokenId, TokenValidity
from tests.stream_server.feed.conftest import NEVER
from tests.stream_server.feed.node import LogWriter, Node
from tests.waiting import eventually

VALID = TokenValidity(user_exists=True, revoked=False, suspended=False)
ANN, BOB = TokenId("1", "a", "", 10.0), TokenId("2", "b", "", 10.0)
BOUND = 2.0


class Redis:
    """The answer of Redis for every token. ``asked`` are the questions. An answer comes when ``may_answer`` is set."""

    def __init__(self) -> None:
        self.says: TokenValidity | Exception = VALID
        self.asked: list[TokenId] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def get_token_validity(self, token: TokenId, *, shared: bool = False) -> TokenValidity:
        self.asked.append(token)
        says = self.says
        await self.may_answer.wait()
        if isinstance(says, Exception):
            raise says
        return says


class Memory:
    """A memory of tokens with a clock. The process has heard the log up to ``heard``."""

    def __init__(self) -> None:
        self.redis = Redis()
        self.now = self.heard = 100.0
        self.statuses = TokenValidityCache(self.redis, lambda: self.heard, BOUND, lambda: self.now)

    async def asks(self, token: TokenId = ANN) -> bool:
        """Get the status of a token, and return whether Redis was asked for it."""
        before = len(self.redis.asked)
        await self.statuses.get(token)
        return len(self.redis.asked) > before


@pytest.fixture
def memory() -> Memory:
    return Memory()


async def test_a_valid_token_is_asked_for_once(memory: Memory) -> None:
    assert [await memory.asks() for _ in range(3)] == [True, False, False]
    assert await memory.asks(BOB)
    assert await memory.asks(ANN._replace(jti="other"))


@pytest.mark.parametrize(
    "says",
    [VALID._replace(user_exists=False), VALID._replace(revoked=True), VALID._replace(suspended=True), Unavailable("x")],
)
async def test_only_valid_tokens_are_remembered(memory: Memory, says: TokenValidity | Exception) -> None:
    memory.redis.says = says
    for _ in range(2):
        with pytest.raises(Unavailable) if isinstance(says, Exception) else pytest.MonkeyPatch.context():
            assert await memory.statuses.get(ANN) == says
    assert len(memory.redis.asked) == 2
    memory.redis.says = VALID
    assert await memory.statuses.get(ANN) == VALID


async def test_a_change_of_a_user_or_of_all_is_followed_by_a_question(memory: Memory) -> None:
    await memory.asks(ANN)
    await memory.asks(BOB)
    memory.statuses.forget(ANN.uid)
    assert [await memory.asks(ANN), await memory.asks(BOB)] == [True, False]
    memory.statuses.forget(None)
    assert [await memory.asks(ANN), await memory.asks(BOB)] == [True, True]


@pytest.mark.parametrize("changed", [ANN.uid, None])
async def test_an_answer_that_a_change_overtook_is_not_remembered(memory: Memory, changed: str | None) -> None:
    """Redis answered "valid" before the revocation, which the log tells before that answer arrives."""
    memory.redis.may_answer.clear()
    question = asyncio.create_task(memory.statuses.get(ANN))
    await eventually(lambda: memory.redis.asked)
    memory.statuses.forget(changed)
    memory.redis.may_answer.set()
    assert await question == VALID  # as if the request had come before the revocation
    assert await memory.asks()


async def test_a_process_that_does_not_hear_the_log_asks_each_time(memory: Memory) -> None:
    await memory.asks()
    memory.now = memory.heard + BOUND
    assert not await memory.asks()
    memory.now += 0.001
    assert await memory.asks()
    assert await memory.asks()
    memory.heard = -math.inf
    assert await memory.asks()
    memory.heard = memory.now
    assert not await memory.asks()


async def test_an_answer_after_a_lost_link_is_not_believed_for_what_was_heard_before_it(memory: Memory) -> None:
    assert [await memory.asks() for _ in range(2)] == [True, False]
    memory.heard = -math.inf
    memory.statuses.forget(None)
    assert [await memory.asks() for _ in range(2)] == [True, True]


async def test_a_status_is_asked_for_again_in_time(memory: Memory) -> None:
    await memory.asks()
    memory.now = memory.heard = memory.now + MAX_KNOWN_SECONDS
    assert await memory.asks()
    memory.redis.says = VALID._replace(forgotten_in_seconds=3.0)
    memory.statuses.forget(None)
    await memory.asks()
    memory.now = memory.heard = memory.now + 2.9
    assert not await memory.asks()
    memory.now = memory.heard = memory.now + 0.2
    assert await memory.asks()


async def test_the_memory_is_bounded_and_the_users_who_send_requests_stay(memory: Memory) -> None:
    await memory.asks()
    for number in range(MAX_USERS):
        if number % (MAX_USERS // 10) == 0:
            await memory.asks()
        await memory.statuses.get(TokenId(f"u{number}", "j"))
    assert len(memory.statuses) == MAX_USERS
    assert not await memory.asks()
    assert await memory.asks(TokenId("u0", "j"))
    for number in range(MAX_TOKENS_OF_USER):
        await memory.statuses.get(ANN._replace(jti=f"j{number}"))
    assert await memory.asks()


def test_a_check_counts_when_its_head_has_arrived() -> None:
    head = LOG_START
    heard = HeardLog(lambda: head)
    assert heard.until() == -math.inf
    heard.record_check(1.0, LOG_START)
    assert heard.until() == 1.0
    heard.record_check(2.0, Position(5, 0, 3))
    assert heard.until() == 1.0
    heard.record_check(3.0, Position(9, 0, 4))
    head = Position(5, 0, 3)
    assert heard.until() == 1.0
    head = Position(9, 0, 4)
    assert heard.until() == 3.0
    heard.forget()
    assert heard.until() == -math.inf


def test_every_script_that_takes_rights_is_known() -> None:
    """A script that can end sessions, suspend, delete, revoke or change scopes tells this process and the log."""
    taking = {
        name
        for name, script in load_scripts(SizeLimits()).items()
        if any(
            word in script.text
            for word in (
                "function end_sessions",
                "function change_suspension",
                "function delete_account",
                "'scopes', scopes",
            )
        )
        or keys.lua_key_names()["KEY.revoked"] in script.text
    }
    assert taking == {name for name, script in load_scripts(SizeLimits()).items() if script.declared.rights}


def remembering(node: Node, clock: Callable[[], float] | None = None) -> TokenValidityCache:
    """Wire a memory of tokens to a node as the server does, with a bound that a busy machine does not reach."""
    more = () if clock is None else (clock,)
    statuses = TokenValidityCache(node.store.sessions, node.feed.heard_log.until, 2 * NEVER, *more)
    node.hub.on_rights_change = statuses.forget
    node.store.watch_rights(statuses.forget)
    return statuses


async def new_user(node: Node, login: str = "ann") -> str:
    user = await node.store.users.create(login, login, f"{login}@example.org", "hash", IdempotencyKey.generate())
    uid: str = msgspec.json.decode(user)["id"]
    return uid


def key() -> IdempotencyKey:
    return IdempotencyKey.generate()


async def test_each_change_of_rights_holds_at_once_where_it_was_written(node: Node) -> None:
    """Without a word of the log, so the answer that the writer gets is never older than its change."""
    statuses, sessions = remembering(node), node.store.sessions
    node.hub.on_rights_change = lambda user_id: None
    admin, uid = await new_user(node, "boss"), await new_user(node)
    secrets = RefreshSecrets("ab", "cd")
    await sessions.start(uid, "s1", secrets, 60, "", key())
    of_session, alone = TokenId(uid, "j1", "s1", 1.0), TokenId(uid, "j2", "", 1.0)

    async def is_valid(token: TokenId) -> bool:
        first = await statuses.get(token)
        assert not first.is_valid or statuses.get_known(token) == first
        return first.is_valid

    assert await is_valid(of_session)
    assert await is_valid(alone)
    await sessions.revoke(uid, "j2", 4_000_000_000_000, key())
    assert not await is_valid(alone)
    await sessions.end(uid, "s1", key())
    assert not await is_valid(of_session)
    await sessions.start(uid, "s1", secrets, 60, "", key())
    assert await is_valid(of_session)
    assert (await sessions.refresh(uid, "s1", RefreshSecrets("ab", "ef"), "gh", 60, key()))[0] == "reused"
    assert not await is_valid(of_session)
    other = TokenId(uid, "j3", "", 1.0)
    assert await is_valid(other)
    await sessions.end_all(uid, key())
    assert not await is_valid(other)
    later = other._replace(issued_at=math.inf)
    assert await is_valid(later)
    await node.store.users.grant_scopes(admin, uid, "admin", key())
    assert (await statuses.get(later)).granted == {"admin"}
    await node.store.users.grant_scopes(admin, uid, "", key())
    assert not (await statuses.get(later)).granted
    await node.store.suspensions.suspend(admin, uid, key())
    assert not await is_valid(later)
    await node.store.suspensions.reinstate(admin, uid, key())
    assert await is_valid(later)


async def test_each_change_of_rights_holds_elsewhere_when_the_log_tells_it(node: Node, redis_url: str) -> None:
    statuses = remembering(node)
    other = Node(redis_url)
    await other.open()
    admin, uid = await new_user(other, "boss"), await new_user(other)
    await other.store.sessions.start(uid, "s1", RefreshSecrets("ab", "cd"), 60, "", key())
    token = TokenId(uid, "j", "", 1.0)

    async def is_forgotten() -> None:
        await eventually(lambda: statuses.get_known(token) is None)

    await statuses.get(token)
    for change in (
        lambda: other.store.sessions.revoke(uid, "x", 4_000_000_000_000, key()),
        lambda: other.store.sessions.end(uid, "s1", key()),
        lambda: other.store.users.grant_scopes(admin, uid, "admin", key()),
        lambda: other.store.suspensions.suspend(admin, uid, key()),
        lambda: other.store.suspensions.reinstate(admin, uid, key()),
    ):
        await change()
        await is_forgotten()
        await statuses.get(token)
    await other.close()


async def test_a_revocation_whose_message_is_lost_holds_after_the_canary(node: Node, writer: LogWriter) -> None:
    """On another worker a revocation holds within two intervals of the canary, even if no message tells it."""
    statuses = remembering(node)
    uid = await new_user(node)
    token = TokenId(uid, "j", "", 1.0)
    assert (await statuses.get(token)).is_valid
    writer.client.set(keys.key_for("revoked", uid, "j"), "1")
    body = msgspec.json.encode({"wire": {"uid": uid, "jti": "j"}})
    writer.write(body, kind="revoke", published=False)
    await eventually(lambda: statuses.get_known(token) is None)
    assert (await statuses.get(token)).revoked


async def test_a_server_whose_link_is_silent_asks_redis_after_two_canary_intervals(
    without_canary: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canary never looks here, so the memory is believed for two of its intervals after the last look."""
    monkeypatch.setattr(token_validity_cache, "MAX_KNOWN_SECONDS", math.inf)  # or the memory would end before
    ahead = 0.0
    statuses = remembering(without_canary, lambda: asyncio.get_running_loop().time() + ahead)
    uid = await new_user(without_canary)
    token = TokenId(uid, "j", "", 1.0)
    await statuses.get(token)
    writer.client.set(keys.key_for("revoked", uid, "j"), "1")
    assert statuses.get_known(token)
    ahead = 2 * NEVER
    assert statuses.get_known(token) is None
    assert (await statuses.get(token)).revoked


@pytest.mark.parametrize("lost", [True, False], ids=["rollback", "lost link"])
async def test_after_a_rollback_or_a_lost_link_every_user_is_asked_for(
    node: Node, writer: LogWriter, *, lost: bool
) -> None:
    statuses = remembering(node)
    uid = await new_user(node)
    await node.expect_received([writer.write()])
    token = TokenId(uid, "j", "", 1.0)
    await statuses.get(token)
    if lost:
        writer.lose(1, links=False)
    else:
        writer.client.client_kill_filter(_type="pubsub")
    await eventually(lambda: statuses.get_known(token) is None)
    await eventually(lambda: node.feed.is_ready and node.feed.reconnects > 0)
    assert (await statuses.get(token)).is_valid
    await eventually(lambda: statuses.get_known(token))


async def test_a_session_is_remembered_no_longer_than_redis_keeps_it(node: Node) -> None:
    uid = await new_user(node)
    await node.store.sessions.start(uid, "s1", RefreshSecrets("ab", "cd"), 60, "", key())
    status = await node.store.sessions.get_token_validity(TokenId(uid, "j", "s1"))
    assert 0 < status.forgotten_in_seconds <= 60
    assert (await node.store.sessions.get_token_validity(TokenId(uid, "j"))).forgotten_in_seconds == math.inf
