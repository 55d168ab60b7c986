"""One stream over many connections: no event lost, none twice, and an end where the server ends it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stream_server.client import (
    Backoff,
    Client,
    Event,
    Malformed,
    Post,
    RequestRefused,
    Stream,
    StreamEnded,
    Unreachable,
)
from stream_server.client import stream as stream_of_client
from tests.stream_server.client.scripted_server import (
    Answer,
    RecordedBackoff,
    Scripted,
    error,
    post,
    scripted,
    sse,
)


@asynccontextmanager
async def streaming(
    *answers: Answer, token: str | Callable[[], str] = "jwt", **options: Any
) -> AsyncIterator[tuple[Scripted, Stream]]:
    """Open a stream on a server with this script."""
    options = {"backoff": RecordedBackoff(), "track": "x", **options}
    async with scripted(*answers) as script, Client(script.url, token) as client:
        yield script, client.stream(**options)


async def read(client: Stream) -> list[Event]:
    """Return all messages that the stream yields until the script has ended."""
    received: list[Event] = []
    try:
        async for one in client:
            received.append(one)  # noqa: PERF401 - what came before the refusal must be kept
    except RequestRefused as end:
        assert end.status == 410, "the script was played to its end"  # noqa: PT017 - the way a script ends
    return received


def texts(received: list[Event]) -> list[str]:
    return [one.status.message for one in received if isinstance(one, Post)]


async def test_an_unknown_framing_is_refused() -> None:
    async with streaming(Answer([sse("hello", 0), post(1)]), framing="xml") as (script, client):
        with pytest.raises(KeyError, match="xml"):
            await anext(client)
    assert script.asked == []


async def test_a_reconnect_resumes_from_the_cursor_and_drops_repeated_events() -> None:
    first = Answer([sse("hello", 0), post(1), post(2)], cut=True)
    second = Answer([sse("hello", 2), post(2), post(3)])
    async with streaming(first, second) as (script, client):
        assert texts(await read(client)) == ["post 1", "post 2", "post 3"]
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.2", "1700000000000-0.3"]
    assert {asked.headers["Authorization"] for asked in script.asked} == {"Bearer jwt"}
    assert {asked.query["track"] for asked in script.asked} == {"x"}


async def test_a_heartbeat_moves_the_cursor() -> None:
    answers = (Answer([sse("hello", 0), sse("heartbeat", 7)]), Answer([sse("hello", 7), b"id: bare\n\n"]))
    async with streaming(*answers) as (script, client):
        assert await read(client) == []
        assert client.cursor == "bare"
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.7", "bare"]


async def test_gaps_are_always_yielded_and_other_control_messages_on_request() -> None:
    answer = Answer([sse("hello", 0), sse("gap", 5, reason="trimmed", count=5), sse("heartbeat", 5), post(6)])
    async with streaming(answer) as (_, client):
        assert [one.kind for one in await read(client)] == ["gap", "post"]
    answer.chunks = list(answer.chunks)
    async with streaming(answer, control=True) as (_, client):
        assert [one.kind for one in await read(client)] == ["hello", "gap", "heartbeat", "post"]


async def test_a_reconnect_waits_for_the_delay_of_the_goodbye() -> None:
    goodbye = sse("goodbye", 1, code="shutdown", reason="stopping", retry_after=3.5)
    noted = RecordedBackoff()
    first, second = Answer([sse("hello", 0, retry=2000), post(1), goodbye]), Answer([sse("hello", 1, retry=2000)])
    async with streaming(first, second, backoff=noted) as (_, client):
        await read(client)
    assert noted.waits == [(0, 3.5), (1, 2.0)]


async def test_a_goodbye_without_a_delay_ends_the_stream() -> None:
    goodbye = sse("goodbye", 1, code="token_revoked", reason="The token was revoked.", retry_after=None)
    async with streaming(Answer([sse("hello", 0), goodbye]), token=lambda: "jwt") as (script, client):
        with pytest.raises(StreamEnded, match="revoked") as end:
            await anext(aiter(client))
    assert end.value.code == "token_revoked"
    assert len(script.asked) == 1


async def test_an_expired_token_is_replaced_by_the_token_function() -> None:
    goodbye = sse("goodbye", 1, code="token_expired", reason="expired", retry_after=None)
    tokens = iter(["first", "second", "third", "fourth"])
    expired, refused = Answer([sse("hello", 0), goodbye]), Answer([error("token_expired")], 401)
    last = Answer([sse("hello", 1), post(2)])
    async with streaming(expired, refused, last, token=lambda: next(tokens)) as (script, client):
        assert texts(await read(client)) == ["post 2"]
    sent = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in script.asked]
    assert sent == ["first", "second", "third", "fourth"]


async def test_a_retry_after_a_503_waits_as_long_as_retry_after() -> None:
    noted = RecordedBackoff()
    busy = Answer([error("unavailable")], 503, {"Retry-After": "7"})
    answers = (Answer([sse("hello", 0), post(1)]), busy, Answer([post(2)]))
    async with streaming(*answers, backoff=noted) as (_, client):
        assert texts(await read(client)) == ["post 1", "post 2"]
    assert noted.waits[:2] == [(0, None), (1, 7.0)]


@pytest.mark.parametrize(("steady_seconds", "expected"), [(30.0, [0, 1, 2, 3]), (0.0, [0, 0, 0, 0])])
async def test_the_delay_grows_until_a_connection_was_steady(
    monkeypatch: pytest.MonkeyPatch, steady_seconds: float, expected: list[int]
) -> None:
    """Also if each connection brings an event before it ends."""
    monkeypatch.setattr(stream_of_client, "STEADY_SECONDS", steady_seconds)
    noted = RecordedBackoff()
    answers = [Answer([sse("hello", 0)])] * 2 + [Answer([sse("hello", 0), post(n)]) for n in (1, 2)]
    async with streaming(*answers, backoff=noted) as (_, client):
        assert texts(await read(client)) == ["post 1", "post 2"]
    assert [failures for failures, _ in noted.waits] == expected


async def test_an_unreachable_server_fails_the_first_connection() -> None:
    async with scripted() as script:
        url = script.url
    async with Client(url, "jwt") as client:
        stream = client.stream(track="x")
        for _ in range(2):  # also when it is iterated again
            with pytest.raises(Unreachable, match="cannot be reached"):
                await anext(stream)


async def test_a_silent_connection_is_replaced() -> None:
    changes: list[str] = []

    answers = (Answer([sse("hello", 0), post(1)]), Answer([sse("hello", 1)]))
    async with streaming(*answers, silence_seconds=0.5, on_connection_change=changes.append) as (script, client):
        script.hold = 1  # the first connection stays open after its answer
        assert texts(await read(client)) == ["post 1"]
    assert "imeout" in changes[0]
    assert changes[1] == "reconnected"


async def test_a_redirect_is_not_followed() -> None:
    async with streaming(Answer([], 302, {"Location": "/elsewhere"})) as (script, client):
        with pytest.raises(RequestRefused, match="302"):
            await anext(aiter(client))
    assert [asked.path for asked in script.asked] == ["/v1/stream"]


async def test_long_parameters_are_sent_in_a_form() -> None:
    words = ",".join(f"word{n}" for n in range(400))
    async with streaming(Answer([post(1)]), track=words, since="-1m") as (script, client):
        await read(client)
    assert script.asked[0].method == "POST"
    assert script.asked[0].query == {}
    assert script.asked[0].body.startswith(b"track=word0%2Cword1")
    assert script.asked[0].body.endswith(b"&since=-1m")


async def test_the_length_of_parameters_is_that_of_the_encoded_url() -> None:
    """A character of most scripts takes nine bytes there, and a server reads at most eight thousand."""
    async with streaming(Answer([post(1)]), track="日本語" * 500) as (script, client):
        assert texts(await read(client)) == ["post 1"]
    assert script.asked[0].method == "POST"


async def test_a_stream_of_another_program_is_malformed() -> None:
    async with streaming(Answer([b'data: {"hello": "world"}\n\n'])) as (_, client):
        with pytest.raises(Malformed):
            await anext(aiter(client))


async def test_closing_the_client_closes_the_connection() -> None:
    async with scripted(Answer([sse("hello", 0), post(1), post(2)])) as script:
        script.hold = 1
        async with Client(script.url, "jwt") as client:
            assert texts([await anext(client.stream(track="x"))]) == ["post 1"]
        await script.left()


async def test_a_stream_is_closed_by_its_own_block() -> None:
    async with streaming(Answer([sse("hello", 0), post(1)])) as (script, stream):
        script.hold = 1
        async with stream:
            async for _ in stream:
                break
        await script.left()
        assert stream.connection is None


async def test_a_stream_that_ended_can_be_iterated_again() -> None:
    """The next iteration connects again and continues after the cursor; it does not end without a word."""
    goodbye = sse("goodbye", 1, code="closed_by_user", reason="closed", retry_after=None)
    answers = (Answer([sse("hello", 0), post(1), goodbye]), Answer([sse("hello", 1), post(1), post(2)]))
    async with streaming(*answers) as (script, stream):
        first = await anext(stream)
        with pytest.raises(StreamEnded):
            await anext(stream)
        assert texts([first, await anext(stream)]) == ["post 1", "post 2"]
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.1"]


async def test_a_cancelled_wait_loses_nothing() -> None:
    answers = (Answer([sse("hello", 0), post(1), post(2)]), Answer([sse("hello", 2), post(3)]))
    async with streaming(*answers) as (script, stream):
        script.hold = 1
        assert texts([await anext(stream), await anext(stream)]) == ["post 1", "post 2"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.01)
        await script.left()
        assert texts([await anext(stream)]) == ["post 3"]
    assert script.asked[1].query["since"] == "1700000000000-0.2"


async def test_a_cancelled_wait_does_not_shorten_the_delay_before_a_reconnect() -> None:
    """A program that waits with a timeout does not ask a server again and again that is away."""
    first = Answer([sse("hello", 0), post(1)], cut=True)
    async with streaming(first, Answer([post(2)]), backoff=Backoff(initial_seconds=3600, max_seconds=3600)) as (
        script, stream
    ):  # fmt: skip
        assert texts([await anext(stream)]) == ["post 1"]
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
    assert len(script.asked) == 1


async def test_a_second_task_that_waits_is_refused_and_the_first_goes_on() -> None:
    async with streaming(Answer([sse("hello", 0), post(1)])) as (script, stream):
        script.hold = 1
        await anext(stream)
        first = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task waits"):
            await anext(stream)
        assert not first.done()
        first.cancel()
        await script.left()
        assert texts(await read(stream)) == []
    assert script.asked[1].query["since"] == "1700000000000-0.1"


async def test_after_a_rollback_nothing_counts_as_repeated() -> None:
    """The entries after it may have the cursors of those that were lost."""
    answer = Answer([sse("hello", 0), post(1), sse("gap", 0, reason="rolled_back"), post(1), post(1)])
    async with streaming(answer) as (_, stream):
        assert [one.kind for one in await read(stream)] == ["post", "gap", "post"]


async def test_the_cursor_is_that_of_the_last_yielded_event() -> None:
    """Also when more events have arrived with it, so that a program may store it after each event."""
    async with streaming(Answer([sse("hello", 0) + post(1) + post(2) + sse("heartbeat", 5)])) as (_, stream):
        cursors = [(await anext(stream)).cursor == stream.cursor for _ in range(2)]
        with pytest.raises(RequestRefused):
            await anext(stream)
        assert stream.cursor == "1700000000000-0.5"
    assert cursors == [True, True]


async def test_a_batch_holds_what_arrived_together() -> None:
    async with streaming(Answer([sse("hello", 0) + post(1) + sse("heartbeat", 1) + post(2)])) as (_, stream):
        assert texts(await stream.next_batch()) == ["post 1", "post 2"]


async def test_events_before_a_malformed_one_are_yielded() -> None:
    async with streaming(Answer([sse("hello", 0) + post(1) + b"data: {]\n\n"])) as (_, stream):
        assert texts([await anext(stream)]) == ["post 1"]
        with pytest.raises(Malformed):
            await anext(stream)
