"""Tokens of open streams are checked again after a gap of the log."""

import asyncio
from typing import Any

from stream_server.errors import Unavailable
from stream_server.feed import token_validity_cache
from stream_server.feed.token_validity_cache import TokenRecheck
from stream_server.hub import disconnect as reasons
from stream_server.hub.client import StreamToken
from stream_server.store.social.sessions import TokenId, TokenValidity
from tests.stream_server.hub.world import World
from tests.waiting import eventually

VALID = TokenValidity(user_exists=True, revoked=False, suspended=False)
STATUSES = {
    "2": VALID._replace(revoked=True),
    "3": VALID._replace(suspended=True),
    "4": VALID._replace(user_exists=False),
}


class Statuses:
    """The statuses of tokens by user. The first ``failures`` questions fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.asked: list[list[TokenId]] = []

    async def get_token_validities(self, tokens: list[TokenId]) -> list[TokenValidity]:
        self.asked.append(tokens)
        if self.failures >= len(self.asked):
            raise Unavailable("away")
        return [STATUSES.get(token.uid, VALID) for token in tokens]


def ended(world: World) -> dict[str, str]:
    clients = world.hub.registry.list_clients()
    return {c.user_id: c.disconnect_reason.code for c in clients if c.disconnect_reason is not None}


async def test_streams_of_ended_rights_end_after_a_gap(monkeypatch: Any) -> None:
    monkeypatch.setattr(token_validity_cache, "RETRY_SECONDS", 0.01)
    world, statuses = World(), Statuses(failures=2)
    for uid in ("1", "2", "3", "4"):
        world.open(user=uid, track="tea", viewer_independent=True)
    recheck = TokenRecheck(world.hub, statuses)  # type: ignore[arg-type] # a store would need Redis
    running = asyncio.create_task(recheck.run())
    await asyncio.sleep(0)
    assert statuses.asked == []
    world.hub.move_head(world.hub.head, "rolled_back")
    await eventually(lambda: recheck.ended_streams == 3)
    running.cancel()
    assert len(statuses.asked) == 3, "a check that failed is done again"
    assert ended(world) == {
        "2": reasons.TOKEN_REVOKED.code, "3": reasons.SUSPENDED.code, "4": reasons.TOKEN_REVOKED.code,
    }  # fmt: skip


async def test_many_streams_are_checked_in_batches() -> None:
    world, statuses = World(), Statuses()
    for number in range(250):
        world.open(user=str(1000 + number), track="tea")
    await TokenRecheck(world.hub, statuses).check_all()  # type: ignore[arg-type] # a store would need Redis
    assert [len(tokens) for tokens in statuses.asked] == [100, 100, 50]
    assert ended(world) == {}


async def test_a_token_that_was_revoked_meanwhile_prolongs_nothing() -> None:
    world = World()
    stream, _ = world.open(user="1", track="tea", viewer_independent=True)
    world.revoke("1", "j2")
    world.hub.registry.prolong(stream, StreamToken("j3"))
    assert ended(world) == {}
    world.hub.registry.prolong(stream, StreamToken("j2"))
    assert ended(world) == {"1": reasons.TOKEN_REVOKED.code}


async def test_a_stream_that_got_a_new_token_during_the_check_goes_on() -> None:
    world, statuses = World(), Statuses()
    stream, _ = world.open(user="2", track="tea", viewer_independent=True)
    ask = statuses.get_token_validities

    async def prolong_meanwhile(tokens: list[TokenId]) -> list[TokenValidity]:
        stream.token = StreamToken("new")
        return await ask(tokens)

    statuses.get_token_validities = prolong_meanwhile  # type: ignore[method-assign] # the race itself
    await TokenRecheck(world.hub, statuses).check_all()  # type: ignore[arg-type] # a store would need Redis
    assert ended(world) == {}
