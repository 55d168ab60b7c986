"""One stream over many connections: no event lost, none twice, and an end where the server ends it."""

import pytest

from stream_server.client import Malformed, RequestRefused, StreamClient, StreamEnded, StreamMessage, Unreachable
from tests.stream_server.client.scripted import Answer, Noted, error, message, post, scripted, sse


async def read(client: StreamClient) -> list[StreamMessage]:
    """Return all messages that the stream yields until the script refuses to continue."""
    heard: list[StreamMessage] = []
    try:
        async for one in client:
            heard.append(one)  # noqa: PERF401 - what came before the refusal must be kept
    except RequestRefused as end:
        assert end.status == 410, "the script was played to its end"  # noqa: PT017 - the way a script ends
    return heard


def texts(heard: list[StreamMessage]) -> list[str]:
    """Return the messages that are posts."""
    return [one.status["message"] for one in heard if one.kind == "post"]


async def test_resumes_behind_what_it_has_and_drops_what_comes_twice() -> None:
    """After a broken connection the client resumes from its cursor, and drops a repeated event."""
    first = Answer([sse("hello", 0), post(1), post(2)], cut=True)
    second = Answer([sse("hello", 2), post(2), post(3)])
    async with (
        scripted(first, second) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, backoff=Noted()) as client,
    ):
        assert texts(await read(client)) == ["post 1", "post 2", "post 3"]
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.2", "1700000000000-0.3"]
    assert {asked.headers["Authorization"] for asked in script.asked} == {"Bearer jwt"}
    assert {asked.query["track"] for asked in script.asked} == {"x"}


async def test_reads_ndjson_alike() -> None:
    """The JSON-lines framing yields the same messages, and the client sends its media type."""
    lines = b"".join(message("post", n, status={"message": f"post {n}"}) + b"\n" for n in (1, 2))
    async with (
        scripted(Answer([message("hello", 0) + b"\n" + lines[:50], lines[50:]])) as script,
        StreamClient(script.url, "jwt", {"sample": "1"}, framing="ndjson", backoff=Noted()) as client,
    ):
        assert texts(await read(client)) == ["post 1", "post 2"]
    assert script.asked[0].headers["Accept"] == "application/x-ndjson"


async def test_a_heartbeat_moves_the_cursor() -> None:
    """A stream on which nothing matched resumes from its last heartbeat, or from a bare id, not from its start."""
    async with (
        scripted(Answer([sse("hello", 0), sse("heartbeat", 7)]), Answer([sse("hello", 7), b"id: bare\n\n"])) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, backoff=Noted()) as client,
    ):
        assert await read(client) == []
        assert client.cursor == "bare"
    assert [asked.query.get("since") for asked in script.asked] == [None, "1700000000000-0.7", "bare"]


async def test_a_gap_is_passed_on() -> None:
    """What the server could not deliver is told to the reader; other words about the stream only on request."""
    answer = Answer([sse("hello", 0), sse("gap", 5, reason="trimmed", count=5), sse("heartbeat", 5), post(6)])
    async with scripted(answer) as script, StreamClient(script.url, "jwt", {"track": "x"}, backoff=Noted()) as client:
        assert [one.kind for one in await read(client)] == ["gap", "post"]
    answer.chunks = list(answer.chunks)
    async with (
        scripted(answer) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, include_control=True, backoff=Noted()) as client,
    ):
        assert [one.kind for one in await read(client)] == ["hello", "gap", "heartbeat", "post"]


async def test_comes_back_when_the_goodbye_says() -> None:
    """The delay that a goodbye names is kept, and before that the `retry:` of the stream."""
    goodbye = sse("goodbye", 1, code="shutdown", reason="stopping", retry_after=3.5)
    noted = Noted()
    async with (
        scripted(
            Answer([sse("hello", 0, retry=2000), post(1), goodbye]), Answer([sse("hello", 1, retry=2000)])
        ) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, backoff=noted) as client,
    ):
        await read(client)
    assert noted.waits == [(0, 3.5), (1, 2.0)]


async def test_ends_where_the_goodbye_says_not_to_come_back() -> None:
    """A goodbye without a delay ends the stream, with its code."""
    goodbye = sse("goodbye", 1, code="token_revoked", reason="The token was revoked.", retry_after=None)
    async with (
        scripted(Answer([sse("hello", 0), goodbye])) as script,
        StreamClient(script.url, lambda: "jwt", {"track": "x"}, backoff=Noted()) as client,
    ):
        with pytest.raises(StreamEnded, match="revoked") as end:
            await anext(aiter(client))
    assert end.value.code == "token_revoked"
    assert len(script.asked) == 1


async def test_asks_for_a_new_token_when_the_old_one_has_expired() -> None:
    """An expired token ends a stream for good, unless a function can be asked for the next one."""
    goodbye = sse("goodbye", 1, code="token_expired", reason="expired", retry_after=None)
    tokens = iter(["first", "second", "third", "fourth"])
    answers = (
        Answer([sse("hello", 0), goodbye]),
        Answer([error("token_expired")], 401),
        Answer([sse("hello", 1), post(2)]),
    )
    async with (
        scripted(*answers) as script,
        StreamClient(script.url, lambda: next(tokens), {"track": "x"}, backoff=Noted()) as client,
    ):
        assert texts(await read(client)) == ["post 2"]
    sent = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in script.asked]
    assert sent == ["first", "second", "third", "fourth"]


async def test_waits_for_a_server_that_is_unwell() -> None:
    """A 503 in the middle of a stream's life is waited out, at least as long as `Retry-After` says."""
    noted = Noted()
    busy = Answer([error("unavailable")], 503, {"Retry-After": "7"})
    async with (
        scripted(Answer([sse("hello", 0), post(1)]), busy, Answer([post(2)])) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, backoff=noted) as client,
    ):
        assert texts(await read(client)) == ["post 1", "post 2"]
    assert noted.waits[:2] == [(0, None), (1, 7.0)]


async def test_a_server_that_only_greets_is_not_well() -> None:
    """The wait grows while connections end after their hello, and starts again after a message."""
    noted = Noted()
    greeting = Answer([sse("hello", 0)])
    async with (
        scripted(greeting, greeting, greeting, Answer([sse("hello", 0), post(1)])) as script,
        StreamClient(script.url, "jwt", {"track": "x"}, backoff=noted) as client,
    ):
        await read(client)
    assert [failures for failures, _ in noted.waits] == [0, 1, 2, 0]


async def test_a_refusal_names_the_parameter() -> None:
    """A parameter that the server will not have is the caller's error, and is not tried again."""
    answer = Answer([error("invalid_parameter", "0 < p", param="sample")], 400)
    async with scripted(answer) as script, StreamClient(script.url, "jwt", {"sample": "0"}) as client:
        with pytest.raises(RequestRefused, match="0 < p") as refused:
            await anext(aiter(client))
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "invalid_parameter", "sample")
    assert len(script.asked) == 1


async def test_nobody_there_is_unreachable() -> None:
    """The first connection is not tried for ever: where nobody listens is an error."""
    async with scripted() as script:
        url = script.url
    async with StreamClient(url, "jwt", {"track": "x"}) as client:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await anext(aiter(client))


async def test_silence_is_a_dead_connection() -> None:
    """A connection that says nothing, not even a heartbeat, is left for a new one."""
    told: list[str] = []

    async with scripted(Answer([sse("hello", 0), post(1)]), Answer([sse("hello", 1)])) as script:
        client = StreamClient(
            script.url, "jwt", {"track": "x"}, silence_seconds=0.05, backoff=Noted(), on_connection_change=told.append
        )
        script.hold = 1  # the first connection stays open after its answer
        async with client:
            assert texts(await read(client)) == ["post 1"]
    assert "imeout" in told[0]
    assert told[1] == "reconnected"


async def test_a_redirect_is_not_followed() -> None:
    """The token is not carried to wherever an answer points."""
    async with (
        scripted(Answer([], 302, {"Location": "/elsewhere"})) as script,
        StreamClient(script.url, "jwt", {"track": "x"}) as client,
    ):
        with pytest.raises(RequestRefused, match="302"):
            await anext(aiter(client))
    assert [asked.path for asked in script.asked] == ["/v1/stream"]


async def test_long_parameters_travel_in_a_form() -> None:
    """What would make too long a URL is posted, with all parameters and the cursor."""
    words = ",".join(f"word{n}" for n in range(400))
    async with (
        scripted(Answer([post(1)])) as script,
        StreamClient(script.url, "jwt", {"track": words}, since="-1m", backoff=Noted()) as client,
    ):
        await read(client)
    assert script.asked[0].method == "POST"
    assert script.asked[0].query == {}
    assert script.asked[0].body.startswith(b"track=word0%2Cword1")
    assert script.asked[0].body.endswith(b"&since=-1m")


async def test_something_else_is_malformed() -> None:
    """A server that answers 200 with a stream of something else is not read for ever."""
    async with (
        scripted(Answer([b'data: {"hello": "world"}\n\n'])) as script,
        StreamClient(script.url, "jwt", {"track": "x"}) as client,
    ):
        with pytest.raises(Malformed):
            await anext(aiter(client))


async def test_leaving_closes_the_connection() -> None:
    """A reader that leaves in the middle of a stream leaves no connection behind: none would be a warning here."""
    async with scripted(Answer([sse("hello", 0), post(1), post(2)])) as script:
        script.hold = 1
        async with StreamClient(script.url, "jwt", {"track": "x"}) as client:
            assert texts([await anext(aiter(client))]) == ["post 1"]
        await script.left()
