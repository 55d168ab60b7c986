"""The registry of all clients: open streams are counted by their framing, and obey commands of other processes."""

import asyncio

import pytest

from stream_server.events.internal import CommandToken, Revocation, StreamCommand
from stream_server.hub.client import StreamToken
from stream_server.hub.client_registry import POLL
from stream_server.hub.disconnect import (
    CLOSED_BY_USER,
    TAKEN_OVER,
    TOKEN_REVOKED,
    TOO_MANY_STREAMS,
    DisconnectReason,
)
from stream_server.hub.stream_session import StreamSession
from stream_server.web.streaming.framing import NDJSON, SSE, select_framing
from stream_server.web.websocket.framing import WEBSOCKET
from stream_server.web.websocket.framing import select_framing as select_websocket_framing
from tests.stream_server.hub.world import Socket, World
from tests.waiting import eventually


class Silent(Socket):
    """A socket that keeps nothing of what it gets."""

    def write(self, data: bytes) -> None:
        pass


async def test_open_streams_are_counted_by_framing(world: World) -> None:
    framings = [
        select_framing(NDJSON, chunked=True), select_framing(SSE, chunked=True), select_framing(SSE, chunked=False),
        select_websocket_framing(compresses=True), select_websocket_framing(compresses=False),
    ]  # fmt: skip
    streams = []
    for framing in framings:
        request = world.request(track="tea")._replace(framing=framing)
        streams.append(StreamSession(world.hub, request, Silent()))
        streams[-1].start()
    poll = asyncio.create_task(world.poll(world.request(track="tea")).run(5))
    count = world.hub.registry.open_by_framing
    await eventually(lambda: count[POLL] == 1, what="the poll")
    assert count == {NDJSON: 1, SSE: 2, WEBSOCKET: 2, POLL: 1}
    world.post("tea")
    await poll
    for stream in streams:
        stream.connection_lost()
        stream.connection_lost()
    assert not any(count.values())


REVOCATIONS = [
    (Revocation("1", jti="a"), {"a"}),
    (Revocation("1", sessions=["s", "x"]), {"in s"}),
    (Revocation("1", before=100), {"a", "b"}),
    (Revocation("1", sessions=["t"], before=100), {"a", "b", "in t"}),
    (Revocation("2", jti="a", sessions=["s"], before=200), set()),
]


@pytest.mark.parametrize(("revoked", "ended"), REVOCATIONS)
async def test_a_revocation_ends_streams_by_token_session_or_time_also_those_that_open_later(
    world: World, revoked: Revocation, ended: set[str]
) -> None:
    """An end of all tokens spares those of sessions, which are named, and those that were issued since."""
    tokens = [
        StreamToken("a", issued_at=99), StreamToken("b", issued_at=100), StreamToken("later", issued_at=101),
        StreamToken("in s", "s", issued_at=99), StreamToken("in t", "t", issued_at=99),
    ]  # fmt: skip

    def open_all() -> list[StreamSession]:
        requests = [world.request(track="tea")._replace(token=token) for token in tokens]
        sessions = [StreamSession(world.hub, request, Silent()) for request in requests]
        for session in sessions:
            session.start()
        return sessions

    before = open_all()
    world.hub.registry.revoke(revoked)
    for session in (*before, *open_all()):
        reason = session.disconnect_reason
        assert (reason is TOKEN_REVOKED) == (session.token.jti in ended), session.token
        assert reason in {None, TOKEN_REVOKED}


@pytest.mark.parametrize("reason", [TAKEN_OVER, CLOSED_BY_USER, TOO_MANY_STREAMS])
async def test_a_stream_that_is_closed_while_it_opens_ends_at_once(world: World, reason: DisconnectReason) -> None:
    """Another connection may take its subscription over before the hub knows the stream."""
    request = world.request(track="tea")
    early = StreamSession(world.hub, request, Silent())
    world.hub.registry.obey(StreamCommand(request.user_id, early.connection_id, "close", reason.code))
    early.start()
    assert early.disconnect_reason is reason
    other = StreamSession(world.hub, world.request(track="tea"), Silent())
    other.start()
    assert other.disconnect_reason is None
    world.hub.registry.obey(StreamCommand(request.user_id, other.connection_id, "close", reason.code))
    assert other.disconnect_reason is reason


async def test_few_early_commands_are_remembered(world: World) -> None:
    for at in range(10_100):
        world.hub.registry.obey(StreamCommand("1", f"c{at}", "close"))
    assert len(world.hub.registry._closed_early) == 10_000


async def test_a_token_from_another_process_must_have_the_scopes_of_the_present_filters(world: World) -> None:
    """The other process may have read the scopes of the filters before an update."""
    stream, _ = world.open(firehose="true")
    token = CommandToken("new", "", 0, 2_000_000_000)

    def prolong(*scopes: str) -> str:
        command = StreamCommand(stream.user_id, stream.connection_id, "prolong", token=token, scopes=list(scopes))
        world.hub.registry.obey(command)
        return stream.token.jti

    assert prolong("read", "stream") != "new"
    assert prolong("firehose", "stream") == "new"
