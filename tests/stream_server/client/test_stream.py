"""One stream over many connections: no event lost, none twice, and an end where the server ends it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stream_server.client import Malformed, RequestRefused, StreamClient, StreamEnded, StreamMessage, Unreachable
from tests.stream_server.client.scripted_server import (
    Answer,
    RecordedBackoff,
    Scripted,
    error,
    message,
    post,
    scripted,
    sse,
)


@asynccontextmanager
async def streaming(
    *answers: Answer, token: str | Callable[[], str] = "jwt", **options: Any
) -> AsyncIterator[tuple[Scripted, StreamClient]]:
    """Open a stream on a server with this script."""
    options = {"backoff": RecordedBackoff(), **options}
    async with scripted(*answers) as script, StreamClient(script.url, token, {"track": "x"}, **options) as client:
        yield script, client


async def read(client: StreamClient) -> list[StreamMessage]:
    """Return all messages that the stream yields until the script has ended."""
    received: list[StreamMessage] = []
    try:
        async for one in client:
            received.append(one)  # noqa: PERF401 - what came before the refusal must be kept
    except RequestRefused as end:
        assert end.status == 410, "the script was played to its end"  # noqa: PT017 - the way a script ends
    return received


def texts(received: list[StreamMessage]) -> list[str]:
    return [one.status["message"] for one in received if one.kind == "post"]


async def test_a_reconnect_resumes_from_the_cursor_and_drops_repeated_events() -> None:
    first = Answer([sse("hello", 0), post(1), post(2)], cut=True)
    second = Answer([sse("hello", 2), post(2), post(3)])
    async with streaming(first, second) as (script, client):
        assert texts(await read(client)) == ["post 1", "post 2", "post 3"]
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.2", "1700000000000-0.3"]
    assert {asked.headers["Authorization"] for asked in script.asked} == {"Bearer jwt"}
    assert {asked.query["track"] for asked in script.asked} == {"x"}


async def test_ndjson_gives_the_same_messages() -> None:
    lines = b"".join(message("post", n, status={"message": f"post {n}"}) + b"\n" for n in (1, 2))
    async with (
        scripted(Answer([message("hello", 0) + b"\n" + lines[:50], lines[50:]])) as script,
        StreamClient(script.url, "jwt", {"sample": "1"}, framing="ndjson", backoff=RecordedBackoff()) as client,
    ):
        assert texts(await read(client)) == ["post 1", "post 2"]
    assert script.asked[0].headers["Accept"] == "application/x-ndjson"


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
    async with streaming(answer, include_control=True) as (_, client):
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


async def test_the_delay_grows_while_connections_end_after_hello() -> None:
    noted = RecordedBackoff()
    answers = [Answer([sse("hello", 0)])] * 3 + [Answer([sse("hello", 0), post(1)])]
    async with streaming(*answers, backoff=noted) as (_, client):
        await read(client)
    assert [failures for failures, _ in noted.waits] == [0, 1, 2, 0]


async def test_a_refusal_names_the_parameter() -> None:
    answer = Answer([error("invalid_parameter", "0 < p", param="sample")], 400)
    async with scripted(answer) as script, StreamClient(script.url, "jwt", {"sample": "0"}) as client:
        with pytest.raises(RequestRefused, match="0 < p") as refused:
            await anext(aiter(client))
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "invalid_parameter", "sample")
    assert len(script.asked) == 1


async def test_an_unreachable_server_fails_the_first_connection() -> None:
    async with scripted() as script:
        url = script.url
    async with StreamClient(url, "jwt", {"track": "x"}) as client:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await anext(aiter(client))


async def test_a_silent_connection_is_replaced() -> None:
    changes: list[str] = []

    async with scripted(Answer([sse("hello", 0), post(1)]), Answer([sse("hello", 1)])) as script:
        client = StreamClient(
            script.url,
            "jwt",
            {"track": "x"},
            silence_seconds=0.05,
            backoff=RecordedBackoff(),
            on_connection_change=changes.append,
        )
        script.hold = 1  # the first connection stays open after its answer
        async with client:
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
    async with (
        scripted(Answer([post(1)])) as script,
        StreamClient(script.url, "jwt", {"track": words}, since="-1m", backoff=RecordedBackoff()) as client,
    ):
        await read(client)
    assert script.asked[0].method == "POST"
    assert script.asked[0].query == {}
    assert script.asked[0].body.startswith(b"track=word0%2Cword1")
    assert script.asked[0].body.endswith(b"&since=-1m")


async def test_a_stream_of_another_program_is_malformed() -> None:
    async with streaming(Answer([b'data: {"hello": "world"}\n\n'])) as (_, client):
        with pytest.raises(Malformed):
            await anext(aiter(client))


async def test_closing_the_client_closes_the_connection() -> None:
    async with scripted(Answer([sse("hello", 0), post(1), post(2)])) as script:
        script.hold = 1
        async with StreamClient(script.url, "jwt", {"track": "x"}) as client:
            assert texts([await anext(aiter(client))]) == ["post 1"]
        await script.left()
