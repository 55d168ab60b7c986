"""The token of a client: renewed before it ends, once for all who wait, and never at the price of the session."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from stream_server.client import Client, LogIn, RequestRefused, SavedSession, SessionLost, Unreachable
from stream_server.client.tokens import FixedToken, Grant, RenewedToken, fetch_from, grant_of
from tests.stream_server.client.scripted_server import (
    TIME,
    Answer,
    Asked,
    RecordedBackoff,
    Scripted,
    error,
    post,
    scripted,
    sse,
    status,
)
from tests.waiting import eventually

POSTED = Answer([msgspec.json.encode(status(1, "hi"))], 201)
USER = {"id": "7", "login": "ada", "name": "Ada", "signup": TIME}


def session(n: int, expires_in: int = 3600) -> Answer:
    grant = {"token": f"t{n}", "token_type": "Bearer", "expires_in": expires_in, "refresh_token": f"r{n}"}
    return Answer([msgspec.json.encode({**grant, "user": USER})], 201)


def sent(asked: Asked) -> Any:
    return msgspec.json.decode(asked.body) if asked.body else asked.headers["Authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def logged_in(*answers: Answer, credentials: LogIn | SavedSession | None = None) -> AsyncIterator[
    tuple[Scripted, Client]
]:  # fmt: skip
    token = credentials or LogIn("ada", "secret words")
    async with scripted(*answers) as script, Client(script.url, token, backoff=RecordedBackoff()) as client:
        yield script, client


async def test_a_client_logs_in_once_and_logs_out() -> None:
    """Calls at the same time wait for one log-in. The end of the client ends the session."""
    async with logged_in(session(1), POSTED, POSTED, POSTED) as (script, client):
        await asyncio.gather(*(client.post("hi") for _ in range(3)))
    assert sent(script.asked[0]) == {"login": "ada", "password": "secret words"}
    assert [asked.headers["Authorization"] for asked in script.asked[1:]] == ["Bearer t1"] * 4
    assert (script.asked[-1].method, script.asked[-1].path) == ("DELETE", "/v1/sessions")
    assert "secret" not in repr(LogIn("ada", "secret words"))


async def test_a_client_that_is_opened_again_logs_in_again() -> None:
    async with scripted(session(1), POSTED, Answer(status=204), session(2), POSTED) as script:
        client = Client(script.url, LogIn("ada", "secret words"))
        for _ in range(2):
            async with client:
                await client.post("hi")
    asked = [(each.method, each.path, each.headers.get("Authorization")) for each in script.asked]
    assert asked[3:5] == [("POST", "/v1/sessions", None), ("POST", "/v1/statuses", "Bearer t2")]


async def test_a_token_is_renewed_by_the_newest_refresh_token() -> None:
    """A token with one second to live is due at 0.8 s; here it is refused at once, and the call is made again."""
    expired = Answer([error("token_expired")], 401)
    answers = (session(1), expired, session(2), POSTED, expired, session(3), POSTED)
    async with logged_in(*answers) as (script, client):
        await client.post("hi")
        await client.post("hi")
    bodies = [sent(asked) for asked in script.asked if asked.path == "/v1/sessions" and asked.method == "POST"]
    assert bodies[1:] == [{"refresh_token": "r1"}, {"refresh_token": "r2"}]
    keys = [asked.headers["Idempotency-Key"] for asked in script.asked if asked.path == "/v1/statuses"]
    assert keys[0] == keys[1] != keys[2] == keys[3]


async def test_a_stream_does_not_return_with_the_token_that_the_server_called_expired() -> None:
    """By the clock of the client it is good for another hour."""
    goodbye = sse("goodbye", 1, code="token_expired", reason="expired", retry_after=None)
    answers = (session(1), Answer([sse("hello", 0), goodbye]), session(2), Answer([sse("hello", 1), post(2)]))
    async with logged_in(*answers) as (script, client):
        assert (await anext(aiter(client.stream(track="hi")))).kind == "post"
    tokens = [sent(asked) for asked in script.asked if asked.path == "/v1/stream"]
    assert tokens == ["t1", "t2"]


async def test_a_refresh_token_is_never_sent_again_if_it_may_have_arrived() -> None:
    """Its second use would end the session. So the client logs in anew."""
    expired = Answer([error("token_expired")], 401)
    answers = (session(1), expired, Answer([b"{"], cut=True), session(2), POSTED)
    async with logged_in(*answers) as (script, client):
        await client.post("hi")
    bodies = [sent(asked) for asked in script.asked if asked.path == "/v1/sessions" and asked.method == "POST"]
    assert [next(iter(body)) for body in bodies] == ["login", "refresh_token", "login"]


async def test_a_refresh_that_surely_did_not_happen_is_repeated() -> None:
    expired, busy = Answer([error("token_expired")], 401), Answer([error("unavailable")], 503)
    answers = (session(1), expired, busy, Answer([error("rate_limited")], 429), session(2), POSTED)
    async with logged_in(*answers) as (script, client):
        await client.post("hi")
    bodies = [sent(asked) for asked in script.asked if asked.path == "/v1/sessions" and asked.method == "POST"]
    assert bodies[1:] == [{"refresh_token": "r1"}] * 3


async def test_a_saved_session_keeps_each_refresh_token_and_is_not_logged_out() -> None:
    kept: list[str] = []
    async with logged_in(session(2), POSTED, credentials=SavedSession("r1", kept.append)) as (script, client):
        await client.post("hi")
    assert kept == ["r2"]
    assert [asked.method for asked in script.asked] == ["POST", "POST"]


async def test_a_saved_session_whose_answer_was_lost_is_told() -> None:
    saved = SavedSession("r1", lambda _: None)
    async with logged_in(Answer([b"{"], cut=True), credentials=saved) as (script, client):
        for _ in range(2):
            with pytest.raises(SessionLost, match="log in again"):
                await client.post("hi")
    assert len(script.asked) == 1


async def test_a_wrong_password_is_a_refusal() -> None:
    async with logged_in(Answer([error("wrong_password")], 403)) as (_, client):
        with pytest.raises(RequestRefused, match="wrong_password"):
            await client.post("hi")


async def test_a_lost_log_in_is_no_unknown_outcome_of_the_call_that_needs_it() -> None:
    """The call was not sent, and its caller must not look for its effect by the key of the log-in."""
    async with logged_in(*[Answer([b"{"], cut=True)] * 6) as (script, client):
        with pytest.raises(Unreachable):
            await client.post("hi")
    assert {asked.path for asked in script.asked} == {"/v1/sessions"}
    assert len(script.asked) == 6


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_is_renewed_at_80_percent_and_kept_if_that_fails() -> None:
    clock, calls = Clock(), 0

    async def fetch() -> Grant:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("away")
        return Grant(f"t{calls}", 80.0, 100.0)

    source = RenewedToken(fetch, clock)
    assert [await source.get(), source.seconds_to_renewal()] == ["t1", 80.0]
    clock.now += 79
    assert [await source.get(), source.seconds_to_renewal()] == ["t1", 1.0]
    clock.now += 1
    assert await source.get() == "t1", "the renewal failed, but the token is valid"
    assert calls == 2
    clock.now += 5
    assert await source.get() == "t3"


async def test_a_failed_renewal_of_an_expired_token_is_raised() -> None:
    clock = Clock()

    async def fetch() -> Grant:
        if clock.now > 100:
            raise OSError("away")
        return Grant("t1", 80.0, 100.0)

    source = RenewedToken(fetch, clock)
    await source.get()
    clock.now += 100
    with pytest.raises(OSError, match="away"):
        await source.get()


async def test_a_cancelled_caller_does_not_cancel_the_renewal() -> None:
    """Its refresh token may have been used by then, so the answer must not be lost."""
    go, calls = asyncio.Event(), 0

    async def fetch() -> Grant:
        nonlocal calls
        calls += 1
        await go.wait()
        return Grant("t", 80.0, 100.0)

    source = RenewedToken(fetch)
    waiting = [asyncio.create_task(source.get()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    go.set()
    await asyncio.wait(waiting)
    assert [task.cancelled() or task.result() for task in waiting] == [True, "t", "t"]
    assert (await source.get(), calls) == ("t", 1)


async def test_a_cancelled_end_closes_the_connections() -> None:
    client = Client("http://127.0.0.1:9", lambda: asyncio.Event().wait())  # type: ignore[arg-type]  # no token comes
    await client.__aenter__()
    call = asyncio.create_task(client.me())
    await asyncio.sleep(0)
    end = asyncio.create_task(client.__aexit__())
    await asyncio.sleep(0)
    end.cancel()
    await asyncio.wait([end])
    with pytest.raises(RuntimeError, match="open the client"):
        client.stream(track="x")._transport.stream_session  # noqa: B018 - is it closed?
    call.cancel()
    await asyncio.wait([call])


def jwt(**claims: float) -> str:
    payload = base64.urlsafe_b64encode(msgspec.json.encode(claims)).decode().rstrip("=")
    return f"e30.{payload}.sig"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (jwt(iat=1000, exp=1100), (70.0, 90.0)),
        (jwt(iat=900, exp=1020), (0.0, 10.0)),
        (jwt(iat=1, exp=2), (0.0, 0.0)),
        ("opaque", (0.0, 0.0)),
        ("a.b.c", (0.0, 0.0)),
        (jwt(exp=1100), (0.0, 0.0)),
    ],
)
def test_the_lifetime_of_a_jwt_is_read_from_its_claims(token: str, expected: tuple[float, float]) -> None:
    grant = grant_of(token, 1010.0)
    assert grant.token == token
    assert (grant.renew_in, grant.expires_in) == pytest.approx(expected)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_may_give_the_token(*, is_async: bool) -> None:
    """The function is called for each request if the token does not tell its lifetime."""
    tokens = iter(["a", "b"])

    async def later() -> str:
        return next(tokens)

    async with scripted(POSTED, POSTED) as script, Client(script.url, later if is_async else tokens.__next__) as client:
        await client.post("hi")
        await client.post("hi")
    assert [sent(asked) if not asked.body else asked.headers["Authorization"] for asked in script.asked] == [
        "Bearer a", "Bearer b"
    ]  # fmt: skip


async def test_open_streams_go_on_with_the_renewed_token() -> None:
    """At 80 % of the lifetime the new token is put into the open stream: the connection stays."""
    prolonged = Answer([b'{"expires":"2026-01-31T12:00:00.000Z"}'])
    async with logged_in(session(1, 1), Answer([sse("hello", 3), post(4)]), session(2), prolonged) as (script, client):
        script.hold_path = "/v1/stream"
        stream = client.stream(track="x")
        await anext(stream)
        await script.until(4)
        assert (stream.connections, stream.connection) == (1, "c3")
        await eventually(lambda: stream.token == "t2", what="the new token")
    asked = script.asked[3]
    assert (asked.method, asked.path, asked.headers["Authorization"]) == ("POST", "/v1/streams/c3/token", "Bearer t2")


@pytest.mark.parametrize("text", ["\ufeffabc", "abc\n", "abc \r\n", " abc"])
async def test_a_token_loses_what_a_file_has_around_it(text: str) -> None:
    assert await FixedToken(text).get() == "abc"
    assert (await fetch_from(lambda: text)()).token == "abc"
