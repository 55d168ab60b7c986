"""Random changes of every kind of bytes that come from outside: each is refused or understood, and nothing breaks."""

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.frames import Opcode

from stream_server.errors import ApiError
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import ALL_KINDS, PUBLIC_AUDIENCE, Entry, parse_published
from stream_server.events.position import EPOCH_MS
from stream_server.security.tokens import TokenAuthority
from stream_server.web.websocket.frame_reader import FrameFault, FrameReader, Received
from tests.attacks.mutation import mutated
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.stream_server.tokens import NOW, config, payload, token
from tests.stream_server.web.websocket.client_frames import close, deflated, frame
from tests.waiting import PATIENCE

TOKEN = token(payload())
STATUS = {"id": "4096", "uid": "1", "login": "ann", "message": "tea", "entities": {}, "lang": "en"}
BODIES = (
    {"wire": {"status": STATUS}, "facts": {"author": {"id": "1", "login": "ann"}}},
    {"wire": {"status": {"id": "4096", "uid": "1", "deleted": True}}, "facts": {"status": STATUS}},
    {"wire": {"source": {"id": "1", "login": "ann"}, "target": {"id": "2", "login": "bob"}}},
    {"wire": {"uid": "1", "added": [{"id": "1", "rule": "tea", "tag": ""}], "removed": []}},
    {"wire": {"uid": "1", "jti": "x"}},
    {"wire": {"from": {"id": f"{EPOCH_MS}-0", "n": 1}, "to": {"id": f"{EPOCH_MS}-5", "n": 6}}},
)
PUBLISHED = [
    f"{EPOCH_MS + 9}-0 7 {kind} {PUBLIC_AUDIENCE} ".encode() + json.dumps(body).encode()
    for kind in ALL_KINDS
    for body in BODIES
]
QUERIES = [
    urllib.parse.urlencode(query).encode()
    for query in (
        {"track": "tea,green tea", "language": "en"},
        {"follow": "1,2,@me", "kinds": "post,like"},
        {"locations": "-1,50,1.5,52", "explain": "true"},
        {"rule": 'tag:"green tea"~2 -is:reply (from:ann OR #tea)', "since": "-5m"},
        {"sample": "1.5", "since": "2026-11-20T18:00:00.000Z"},
        {"firehose": "true", "partition": "1/4", "since": "1795197600000-0.48211"},
    )
]
FRAMES = [
    frame(1, b'{"op":"ping"}') + frame(9, b"x") + frame(1, b"a" * 130),
    frame(1, b"a", 0) + frame(0, "\N{SNOWMAN}".encode()[:1], 0) + frame(0, "\N{SNOWMAN}".encode()[1:]) + close(1000),
    frame(1, deflated(b"abc" * 40), 0xC0) + frame(2, deflated(b"xyz"), 0x40) + frame(0, b"\x00"),
]
REQUESTS = [
    b"GET /v1/users/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
    b'POST /v1/users HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"login":"a"}',
    b"POST /v1/sessions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}  \r\n0\r\n\r\n",
    b"GET /v1/stream?track=tea HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nLast-Event-ID: 1-0.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nConnection: keep-alive\r\n\r\n",
]

slow = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@given(mutated([TOKEN.encode()]))
def test_a_changed_token_is_refused_or_means_the_same(changed: bytes) -> None:
    """The last characters of a signature have bits that mean nothing, so a changed text can be the same token."""
    authority = TokenAuthority(config())
    with contextlib.suppress(ApiError):
        assert authority.verify(changed.decode("latin-1"), NOW) == authority.verify(TOKEN, NOW)


@given(mutated(PUBLISHED))
def test_a_changed_published_message_is_an_entry_or_malformed(changed: bytes) -> None:
    with contextlib.suppress(MalformedEntry):
        _use(parse_published(changed))


@given(mutated(FRAMES))
def test_changed_frames_are_understood_or_a_fault_in_one_way(changed: bytes) -> None:
    """The cuts between reads of the socket change nothing, and the parser never holds more than a message."""
    assert _read_frames(changed) == _read_frames(*(changed[n : n + 3] for n in range(0, len(changed), 3)))


def _read_frames(*chunks: bytes) -> tuple[list[Received], int]:
    """Return what a parser found, without the parts of messages, and the close code of a fault or 0."""
    reader, found = FrameReader(compresses=True), []
    try:
        for chunk in chunks:
            reader.feed(chunk)
            while (received := reader.read()) is not None:
                found.append(received)
                if received.opcode is Opcode.CLOSE:
                    return [one for one in found if one.opcode], 0
    except FrameFault as fault:
        return [one for one in found if one.opcode], int(fault.code)
    return [one for one in found if one.opcode], 0


def test_the_valid_published_messages_are_understood() -> None:
    """Else the fuzzing would only see refusals of the first bytes."""
    entries = []
    for message in PUBLISHED:
        with contextlib.suppress(MalformedEntry):
            entries.append(parse_published(message))
    assert {entry.kind for entry in entries} >= {"post", "delete", "follow", "rules", "revoke", "rollback"}


def _use(entry: Entry) -> None:
    """Read what the server reads of an entry."""
    assert b"\n" not in entry.wire
    _ = entry.actors, entry.quoted_author, entry.subject_id, entry.shown_ids, entry.event.index_keys, entry.facts
    _ = entry.audience_owner, entry.audience_group, entry.audience_users, entry.message_json()
    for read in (entry.revocation, entry.rules_change, entry.lost_range):
        with contextlib.suppress(MalformedEntry):
            read()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module. Its end checks that the log has no traceback."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.mark.extended
@slow
@given(st.lists(mutated(QUERIES), min_size=20, max_size=20))
async def test_changed_parameters_are_used_or_refused(server: Server, queries: list[bytes]) -> None:
    async with Api(server) as api:
        reader = mint(api.admin)
        for query in queries:
            text = urllib.parse.quote(query, safe="=&+%,:@-_.~*()\"'#")
            answer = await api.call("GET", f"/v1/events?{text}&wait=0".replace("#", "%23"), token=reader)
            assert answer.status in {200, 400, 403, 413}, (query, answer)
            if answer.status != 200:
                assert answer.error[1] != "internal"


@pytest.mark.extended
@slow
@given(st.lists(mutated(REQUESTS), min_size=20, max_size=20))
async def test_changed_requests_do_not_end_the_server(server: Server, requests: list[bytes]) -> None:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    for request in requests:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert not answer.startswith(b"HTTP/1.1 5"), (request, answer)
        writer.close()
    async with Api(server) as api:
        assert (await api.call("GET", "/healthz")).status == 200


@pytest.mark.extended
@settings(slow, max_examples=3)
@given(st.lists(mutated(PUBLISHED), min_size=100, max_size=100))
async def test_changed_messages_on_the_bus_do_not_stop_the_feed(tmp_path: Path, messages: list[bytes]) -> None:
    async with Server(tmp_path / "own") as server, Api(server) as api:
        client: redis.Redis = server.redis_client()
        for nth, message in enumerate(messages):
            client.publish(f"events:{ALL_KINDS[nth % len(ALL_KINDS)]}", message)
        client.close()
        async with await api.stream({"follow": api.admin}) as consumer:
            posted = await api.post(api.admin, "still here")
            await consumer.until(lambda c: posted["id"] in [event["status"]["id"] for event in c.of("post")])
