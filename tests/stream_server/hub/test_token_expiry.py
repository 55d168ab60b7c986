"""The end of streams whose tokens expire. They share timers."""

import math
import time

import pytest

from filters.subscription import Subscription
from stream_server.events.position import LOG_START
from stream_server.hub import client_registry
from stream_server.hub.client import Client, SocketlessClient, StreamToken, SubscribeRequest
from stream_server.hub.client_registry import TokenExpiry
from stream_server.hub.disconnect import TOKEN_EXPIRED
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.waiting import eventually

LATER = time.time() + 3600


def client_until(moment: float) -> Client:
    """Return a client whose token expires at ``moment``."""
    token = StreamToken("t", expires_at=moment)
    framing = select_framing(NDJSON, chunked=True)
    return SocketlessClient(SubscribeRequest("c", "1", token, Subscription([], []), framing, LOG_START))


@pytest.fixture
def expiry() -> TokenExpiry:
    return TokenExpiry()


async def test_clients_of_one_moment_share_a_timer_until_the_last_is_gone(expiry: TokenExpiry) -> None:
    clients = [client_until(LATER) for _ in range(3)]
    for client in clients:
        expiry.watch(client)
    ((group,),) = expiry._groups.values()
    for client in clients:
        assert not group.timer.cancelled()
        expiry.forget(client)
        expiry.forget(client)  # nothing is left to do
    assert group.timer.cancelled()
    assert expiry._groups == {}


async def test_a_token_without_an_end_has_no_timer(expiry: TokenExpiry) -> None:
    client = client_until(math.inf)
    expiry.watch(client)
    assert expiry._groups == {}
    expiry.forget(client)


async def test_only_the_clients_of_the_moment_end(expiry: TokenExpiry) -> None:
    soon = time.time() + 0.01
    ending, gone, staying = client_until(soon), client_until(soon), client_until(LATER)
    for client in (ending, gone, staying):
        expiry.watch(client)
    expiry.forget(gone)
    await eventually(lambda: ending.disconnect_reason is TOKEN_EXPIRED)
    assert time.time() >= soon
    assert (gone.disconnect_reason, staying.disconnect_reason) == (None, None)
    late = client_until(soon)  # it opened while its token expired
    expiry.watch(late)
    await eventually(lambda: late.disconnect_reason is TOKEN_EXPIRED)
    expiry.forget(staying)
    assert expiry._groups == {}


class Clock:
    """A clock that only goes on when it is set."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0
        self._now = time.time()

    def time(self) -> float:
        return self._now + self.ahead_seconds


async def test_a_clock_that_was_set_back_prolongs_no_token(
    expiry: TokenExpiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(client_registry, "time", clock)
    soon = clock.time() + 0.05
    before, after = client_until(soon), client_until(soon)
    expiry.watch(before)
    clock.ahead_seconds = -3600
    expiry.watch(after)
    assert len(expiry._groups[soon]) == 2
    await eventually(lambda: before.disconnect_reason is TOKEN_EXPIRED)
    assert after.disconnect_reason is None
    expiry.forget(after)
    assert expiry._groups == {}


async def test_a_clock_that_was_set_forward_ends_no_stream(
    expiry: TokenExpiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(client_registry, "time", clock)
    before, after = client_until(LATER), client_until(LATER)
    expiry.watch(before)
    clock.ahead_seconds = 7200
    expiry.watch(after)
    await eventually(lambda: after.disconnect_reason is TOKEN_EXPIRED)
    assert before.disconnect_reason is None
    expiry.forget(before)
    assert expiry._groups == {}
