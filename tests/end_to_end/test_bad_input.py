"""Bad input gets a 4xx that names the parameter, before the server sends or writes anything."""

import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest

from stream_server.store import keys
from tests.end_to_end.api import SCOPES, Answer, Api, mint, sign
from tests.end_to_end.server import SECRET, Server

EXAMPLE_BOX = "13,52,14,53"

PARTITIONS = ("0/4", "5/4", "1/65")
CURSORS = ("yesterday", "", "9999999999999-0.9", "1-2-3")
UNKNOWN = ("trak", "access_token", "filter", "location", "identifier", "percent")

# The parameters, and the (status, code, param) of the refusal.
INVALID = {
    "sample": (
        *("0", "101", "100.1", "1000", "-1", "nan", "inf", "1e1", "1e400", "0x5", " 5", "5%", "abc", "0.0000001", ""),
        "\u0661",
    ),
    "firehose": ("yes please",),
    "locations": (
        *("nan,52,14,53", "13,52,inf,53", "13,53,14,52", "13,52,14,52", "13,52,13,53", "13,52,14", "13,52,181,53"),
        *("13,-91,14,53", "x,52,14,53", ""),
    ),
    "track": ("", "a,,b", "x" * 61, "é" * 31),
    "follow": ("anna", "-1", "1,,2", "1" * 40),
}
"""Values of base filters that are refused as ``invalid_parameter``."""

REFUSED: list[tuple[dict[str, str], int, str, str | None]] = [
    *(({name: value}, 400, "invalid_parameter", name) for name, values in INVALID.items() for value in values),
    ({"track": "a", "sample": "5"}, 400, "conflicting_parameters", "sample"),
    ({"firehose": "true", "sample": "5"}, 400, "conflicting_parameters", None),
    ({"firehose": "true", "follow": "1"}, 400, "conflicting_parameters", None),
    *(({"firehose": "true", "partition": value}, 400, "invalid_parameter", "partition") for value in PARTITIONS),
    *(({"track": "a", "kinds": value}, 400, "invalid_parameter", "kinds") for value in ("posts", "")),
    *(({"track": "a", "language": value}, 400, "invalid_parameter", "language") for value in ("", "e n")),
    *(({"track": "a", name: "x"}, 400, "unknown_parameter", name) for name in UNKNOWN),
    *(({"track": "a", "since": value}, 400, "invalid_cursor", "since") for value in CURSORS),
    ({"track": "a", "since": "2199-01-01T00:00:00Z"}, 400, "invalid_parameter", "since"),
    ({"track": ",".join(f"w{n}" for n in range(401))}, 413, "too_many", "track"),
    ({"locations": ",".join([EXAMPLE_BOX] * 26)}, 413, "too_many", "locations"),
]

POLL_REFUSED: list[tuple[dict[str, str], int, str, str | None]] = [
    ({"track": "a", "wait": "61"}, 400, "invalid_parameter", "wait"),
    ({"track": "a", "wait": "-1"}, 400, "invalid_parameter", "wait"),
    ({"track": "a", "wait": "nan"}, 400, "invalid_parameter", "wait"),
    ({"track": "a", "limit": "0"}, 400, "invalid_parameter", "limit"),
    ({"track": "a", "limit": "1001"}, 400, "invalid_parameter", "limit"),
    ({"track": "a", "limit": "1.5"}, 400, "invalid_parameter", "limit"),
    ({"track": "a", "since": "-1m", "cursor": "0-0.0"}, 400, "conflicting_parameters", "cursor"),
]

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

# The content type, the body, and the (status, code) of the refusal of a POST to a stream.
BODIES: list[tuple[str, bytes, int, str]] = [
    (JSON, b'{"track": "a"', 400, "malformed_body"),
    (JSON, b"", 400, "missing_parameter"),
    (JSON, b'["track"]', 400, "malformed_body"),
    (JSON, b"[" * 50_000, 400, "malformed_body"),
    (JSON, b'{"track":' * 5_000 + b"1" + b"}" * 5_000, 400, "malformed_body"),
    (JSON, b'{"track": "\xff\xfe"}', 400, "malformed_body"),
    (JSON, b'{"sample": NaN}', 400, "malformed_body"),
    (JSON, b'{"track": {"a": 1}}', 400, "invalid_parameter"),
    (JSON, b'{"track": "\\ud800"}', 400, "malformed_body"),
    (JSON, b'{"track": "' + b"a," * 200_000 + b'"}', 413, "too_large"),
    (FORM, b"track=" + b"a," * 200_000, 413, "too_large"),
    (FORM, b"track=%ff%fe", 400, "malformed_body"),
    (FORM, b"track=\xff", 400, "malformed_body"),
    (FORM, b"track=a&track=b", 400, "conflicting_parameters"),
    ("text/plain", b"track=a", 415, "unsupported_media_type"),
]

TEXT = {"message": "not to be"}


@pytest.fixture
async def untouched(api: Api) -> AsyncIterator[None]:
    """Check that the log did not change during the test."""
    before = await api.head()
    yield
    assert await api.head() == before


def check(answer: Answer, status: int, code: str, param: str | None) -> None:
    assert answer.error[:2] == (status, code), answer
    assert param is None or answer.error[2] == param, answer


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("path", ["/v1/stream", "/v1/events"])
async def test_bad_parameters_are_refused_by_name(api: Api, path: str) -> None:
    """Each wrong parameter of a stream gets a 4xx that names it, before the first byte of the stream."""
    for params, status, code, param in REFUSED + (POLL_REFUSED if path == "/v1/events" else []):
        check(await api.call("GET", path, token=mint(api.admin), params=params), status, code, param)


async def test_the_own_stream_refuses_filters_by_name(api: Api) -> None:
    """A user's own stream takes `kinds` and `since` only, and no kinds that are for servers."""
    for params, error in (
        ({"track": "a"}, (400, "unknown_parameter", "track")),
        ({"firehose": "true"}, (400, "unknown_parameter", "firehose")),
        ({"home": "1"}, (400, "unknown_parameter", "home")),
        ({"kinds": "post,revoke"}, (400, "invalid_parameter", "kinds")),
        ({"kinds": "suspend"}, (400, "invalid_parameter", "kinds")),
        ({"since": "nonsense"}, (400, "invalid_cursor", "since")),
    ):
        assert (await api.call("GET", "/v1/stream/user", token=mint(api.admin), params=params)).error == error


async def test_a_stream_without_a_base_filter_is_refused(api: Api) -> None:
    """A stream without a filter is refused, and the answer lists the filters to choose from."""
    for params in ({}, {"language": "en"}, {"kinds": "post"}):
        answer = await api.call("GET", "/v1/stream", token=mint(api.admin), params=params)
        check(answer, 400, "missing_parameter", None)
        assert "track" in answer.json["error"]["message"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("path", ["/v1/stream", "/v1/events"])
async def test_bad_bodies_of_streams_are_refused(api: Api, path: str) -> None:
    """A malformed, too deep, too large, non-UTF-8 or mistyped body is refused, and the connection does not hang."""
    for media, body, status, code in BODIES:
        answer = await api.call("POST", path, token=mint(api.admin), data=body, headers={"Content-Type": media})
        assert answer.error[:2] == (status, code), (media, body[:60], answer)


@pytest.mark.parametrize("accept", ["text/html", "application/json", "image/*", "text/event-stream;q=0"])
async def test_other_media_types_are_not_acceptable(api: Api, accept: str) -> None:
    """A media type other than those of SSE and NDJSON gets 406."""
    answer = await api.call(
        "GET", "/v1/stream", token=mint(api.admin), params={"track": "a"}, headers={"Accept": accept}
    )
    assert answer.error[:2] == (406, "not_acceptable")


def forged(sub: str) -> dict[str, tuple[str | None, str]]:
    """Return invalid tokens and their error codes, by what is wrong with them."""
    claims = jwt.decode(mint(sub), options={"verify_signature": False})
    good = mint(sub)
    head, body, signature = good.split(".")
    other = mint("12345").split(".")[1]
    return {
        "none at all": (None, "invalid_token"),
        "no token": ("junk", "invalid_token"),
        "of another key": (mint(sub, secret="another secret of more than 32 bytes!!"), "invalid_token"),
        "unsigned": (jwt.encode(claims, "", algorithm="none"), "invalid_token"),
        "of another algorithm": (jwt.encode(claims, SECRET * 2, algorithm="HS512"), "invalid_token"),
        "with another body": (f"{head}.{other}.{signature}", "invalid_token"),
        "without a signature": (f"{head}.{body}.", "invalid_token"),
        "expired": (mint(sub, ttl=-1), "token_expired"),
        "not yet valid": (mint(sub, nbf=int(time.time()) + 60), "invalid_token"),
        "for another audience": (mint(sub, aud="other"), "invalid_token"),
        "from another issuer": (mint(sub, iss="other"), "invalid_token"),
        "of nobody": (mint("4503599627370496"), "invalid_token"),
        **{f"without {name}": (sign({**claims, name: None}), "invalid_token") for name in claims},
    }


@pytest.mark.usefixtures("untouched")
async def test_forged_tokens_open_nothing(api: Api) -> None:
    """Each invalid token gets 401 with WWW-Authenticate, on streams, long polls and writes."""
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/v1/stream", {"params": {"track": "a"}}),
        ("GET", "/v1/events", {"params": {"track": "a"}}),
        ("POST", "/v1/statuses", {"json": TEXT}),
    ]
    for wrong, (token, code) in forged(api.admin).items():
        for method, path, more in calls:
            answer = await api.call(method, path, token=token, **more)
            assert answer.error[:2] == (401, code), (wrong, path, answer)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), wrong
            assert token is None or token not in f"{answer.headers}{answer.body!r}", wrong


async def test_scopes_are_needed(api: Api) -> None:
    """Streams need the scope `stream`, the firehose also `firehose`, and posts `write`. A missing scope gets 403."""
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        ("read write stream", "GET", "/v1/stream", {"params": {"firehose": "true"}}),
        ("read write stream", "GET", "/v1/events", {"params": {"firehose": "true"}}),
        ("read write", "GET", "/v1/stream", {"params": {"track": "a"}}),
        ("read write", "GET", "/v1/stream/user", {}),
        ("read stream", "POST", "/v1/statuses", {"json": TEXT}),
        (SCOPES, "POST", "/v1/admin/users", {"json": {"users": []}}),
    ]
    for scope, method, path, more in rows:
        answer = await api.call(method, path, token=mint(api.admin, scope), **more)
        assert answer.error[:2] == (403, "insufficient_scope"), (scope, path, answer)


def junk(number: int) -> tuple[bytes, ...]:
    """Return messages that are not entries. Some of them claim ``number``, the number of the next entry."""
    following = b"4000000000000-0 %d " % number
    return (
        b"",
        b"junk",
        b"\xff\xfe\x00",
        b"1-0",
        following + b"post public",
        b"a-b c post public {}",
        following + b"post public {",
        following + b'nothing public {"wire":{"a":1}}',
        following + b"post public []",
        following + b'post public {"wire":{}}',
        following + b'post public {"wire":{"status":{"id":5}}}',
        following + b'p\nost public {"wire":{"status":{}}}',
        following + b"post public " + b"[" * 20_000,
        b"4000000000000-0 -1 post public {}",
        b"1-0 %d " % number + b'post public {"wire":{"status":{"id":"1","uid":"1"}}}',
        b"9" * 400 + b"-0 1 post public {}",
    )


UNSIGNED, INVALID_ROWS = "events_unsigned_total", "log_invalid_rows_total"

LIE = b'3800000000000-0 99999999 post public {"wire":{"status":{"id":"1","uid":"1"}}}'
"""A well-formed message with a number far above the head. The feed looks for it in the log and finds nothing."""


async def test_junk_on_the_redis_channel_is_counted_and_skipped(api: Api, server: Server) -> None:
    """Each message without a signature is counted. None of them reaches a client or disturbs later events."""
    uid = await api.user()
    async with (
        await api.stream({"firehose": "true"}) as everything,
        await api.stream({"track": "after"}, framing="sse") as tracking,
    ):
        counted = await api.metric(UNSIGNED)
        messages = junk(int((await api.head()).rpartition(".")[2]) + 1)
        with server.redis_client() as client:
            heard = [client.publish("events:post", message) for message in (*messages, LIE)]
        assert all(heard), "no server subscribes to the channel, so the fault did not happen"
        await api.until_metric(UNSIGNED, lambda count: count >= counted + len(messages))
        status = await api.post(uid, "after the junk")
        for consumer in (everything, tracking):
            await consumer.until(lambda c: c.events)
            assert consumer.received == [("post", status["id"])]
            assert not consumer.of("gap")


async def test_invalid_rows_on_the_log_are_counted_and_skipped(api: Api, server: Server) -> None:
    """The metric shows that another program writes to the log. The server's own entries still arrive."""
    uid = await api.user()
    async with await api.stream({"firehose": "true"}) as everything:
        counted = await api.metric(INVALID_ROWS)
        with server.redis_client() as client:
            for _ in range(3):
                client.xadd(keys.LOG, {"foo": "bar"})
            assert client.publish("events:post", LIE), "no server subscribes to the channel, so no server reads the log"
        await api.until_metric(INVALID_ROWS, lambda count: count >= counted + 3)
        status = await api.post(uid, "after the strangers")
        await everything.until(lambda c: c.events)
        assert everything.received == [("post", status["id"])]
        assert not everything.of("gap")
