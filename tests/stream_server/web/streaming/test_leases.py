"""The leases of one process: how they are renewed, and what becomes of streams that should come back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.hub.disconnect import REBALANCED, DisconnectReason
from stream_server.store.social.parts import Membership, RenewalOutcome
from stream_server.web.streaming import leases
from stream_server.web.streaming.leases import Lease, Leases
from tests.waiting import eventually


class Kept:
    """The part of the store that renews: it notes each call, and answers by the names of the members."""

    def __init__(self) -> None:
        self.calls: list[dict[str, int]] = []
        self.is_away = False

    async def renew(self, sent: Sequence[tuple[Membership, int]]) -> list[RenewalOutcome]:
        self.calls.append({membership.member: lease_ms for membership, lease_ms in sent})
        if self.is_away:
            raise Unavailable("away")
        words = {"grown": RenewalOutcome.GROWS, "lost": RenewalOutcome.LOST}
        return [words.get(membership.member, RenewalOutcome.HELD) for membership, _ in sent]


class Stream:
    """The part of a client that leases use."""

    reason: DisconnectReason | None = None

    def disconnect(self, reason: DisconnectReason) -> None:
        self.reason = reason


def hold(made: Leases, member: str) -> tuple[Any, Any]:
    """Open a stream of a member. Return it, and the function to call at its end."""
    lease, stream = Lease(made, Membership("1", "work", member, "c")), Stream()
    end = lease.end_with(lambda: None)
    lease.begin(stream)  # type: ignore[arg-type]  # it has what leases use
    return stream, end


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
async def made(kept: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Leases]:
    monkeypatch.setattr(leases, "JOIN_SECONDS", 0.01)
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    made = Leases(kept)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait({running})


async def test_all_leases_of_a_process_are_one_command(kept: Kept, made: Leases) -> None:
    for member in ("a", "b", "c"):
        hold(made, member)
    await eventually(lambda: len(kept.calls) > 2)
    assert kept.calls == [dict.fromkeys("abc", 10_000)] * len(kept.calls)


async def test_a_stream_that_may_have_more_or_has_lost_all_is_ended(kept: Kept, made: Leases) -> None:
    streams = {member: hold(made, member)[0] for member in ("held", "grown", "lost")}
    await eventually(lambda: kept.calls)
    reasons = {member: stream.reason for member, stream in streams.items()}
    assert reasons == {"held": None, "grown": REBALANCED, "lost": REBALANCED}


async def test_the_end_of_a_stream_is_told_once_also_after_an_outage(kept: Kept, made: Leases) -> None:
    _, end = hold(made, "a")
    hold(made, "b")
    await eventually(lambda: kept.calls)
    kept.is_away = True
    end()
    seen = len(kept.calls)
    await eventually(lambda: len(kept.calls) > seen + 1)
    assert kept.calls[-1] == {"a": 0, "b": 10_000}
    kept.is_away = False
    await eventually(lambda: kept.calls[-1] == {"b": 10_000})


async def test_a_process_without_such_streams_sends_nothing(kept: Any) -> None:
    made = Leases(kept)
    running = asyncio.create_task(made.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})
    assert kept.calls == []


async def test_a_process_that_stops_gives_its_leases_back(kept: Any) -> None:
    made = Leases(kept)
    running = asyncio.create_task(made.run())
    _, end = hold(made, "a")
    await eventually(lambda: kept.calls)
    running.cancel()
    await asyncio.wait({running})
    end()
    assert kept.calls == [{"a": 10_000}, {"a": 0}]
