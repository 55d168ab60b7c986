"""Invalid and unusable cursors over HTTP: the server refuses them by name, or sends a gap and then all that follows."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from stream_server.store import keys
from tests.end_to_end.api import Answer, Api, mint
from tests.end_to_end.consumer import Consumer, Message
from tests.end_to_end.server import Server
from tests.waiting import eventually

DOORS = ("/v1/stream", "/v1/stream/user", "/v1/events")
WAYS = ("since", "Last-Event-ID", "lastEventId")
HOUR_MS = 3_600_000


class Place(NamedTuple):
    ms: int
    seq: int
    n: int

    @classmethod
    def of(cls, cursor: str) -> "Place":
        entry, n = cursor.split(".")
        ms, seq = entry.split("-")
        return cls(int(ms), int(seq), int(n))


MALFORMED: dict[str, str] = {
    "a word": "garbage",
    "a dash": "-",
    "half": "1795197600000-",
    "three parts": "1795197600000-0-0",
    "a letter behind": "1795197600000-0.1x",
    "a blank inside": "1795197600000- 0.1",
    "an exponent": "1e12-0.1",
    "hexadecimal": "0x1a2-0.1",
    "digits of another script": "\u0661\u0667\u0669-\u0660.\u0661",
    "negative": "-1-0.1",
    "a negative sequence": "1795197600000--1.1",
    "a negative number": "1795197600000-0.-1",
    "sixteen digits": "9999999999999999-0.1",
    "four hundred digits": f"{'9' * 400}-0.1",
    "a number beyond 64 bits": f"1795197600000-0.{2**64}",
    "JSON": '{"ms":1}',
    "Kafka's": '[{"topic":"x","partition":0,"offset":1}]',
    "a path": "../../etc/passwd",
    "no number behind the point": "1795197600000-0.",
    "full-width digits": "\uff11\uff12-0.1",
}

NOWHERE: dict[str, Callable[[Place], str]] = {
    "the next sequence": lambda head: f"{head.ms}-{head.seq + 1}.{head.n + 1}",
    "the next sequence without a number": lambda head: f"{head.ms}-{head.seq + 1}",
    "the next millisecond": lambda head: f"{head.ms + 1}-0.{head.n + 1}",
    "an hour ahead": lambda head: f"{head.ms + HOUR_MS}-0.{head.n + 1}",
    "an hour ahead, with a number of the past": lambda head: f"{head.ms + HOUR_MS}-0.1",
    "the greatest that can be written": lambda _: "999999999999999-999999.999999999999999",
    "before the first day": lambda _: "1-1.1",
    "in seconds": lambda head: f"{head.ms // 1000}-{head.seq}.{head.n}",
}
"""Well-formed cursors above the head, or before the epoch of the log."""

ASTRAY: dict[str, Callable[[Place], str]] = {
    "right place, higher number": lambda place: f"{place.ms}-{place.seq}.{place.n + 7}",
    "right place, lower number": lambda place: f"{place.ms}-{place.seq}.{place.n - 1}",
    "right place, huge number": lambda place: f"{place.ms}-{place.seq}.999999999999999",
    "between two entries": lambda place: f"{place.ms}-{place.seq + 77}.{place.n}",
    "between two entries without a number": lambda place: f"{place.ms}-{place.seq + 77}",
}
"""Cursors between the first and the last entry that name no entry. The client gets a gap and what follows."""


@asynccontextmanager
async def asked(
    api: Api, door: str, value: str, way: str, uid: str, **more: str
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield the response to a request with this cursor. The body of a stream is not read yet."""
    params = {"follow": uid} if door != "/v1/stream/user" else {}
    params |= {"wait": "20"} if door == "/v1/events" else {}
    headers = {"Authorization": f"Bearer {mint(uid)}", "Accept": "*/*"}
    if way in {"since", "lastEventId"}:
        params[way] = value
    else:
        headers[way] = value
    async with api.session.get(door, params=params | more, headers=headers) as response:
        yield response


async def refusal(api: Api, door: str, value: str, way: str, uid: str) -> tuple[int, str, str | None]:
    """Send a request with this cursor, which must be refused. Returns (status, code, param)."""
    async with asked(api, door, value, way, uid) as response:
        assert response.status != 200, (door, way, value)
        answer = Answer(response.status, response.headers, await response.read())
        assert value not in answer.body.decode() or len(value) < 40, "the refusal repeats a long input"
        return answer.error


async def heard(api: Api, door: str, value: str, way: str, uid: str) -> list[Message]:
    """Return all that a client with this cursor receives, up to a post that is written once the client is connected."""
    if door == "/v1/events":
        return await polled(api, value, way, uid)
    async with asked(api, door, value, way, uid) as response:
        assert response.status == 200, (door, way, value, await response.text())
        async with Consumer(response, "ndjson") as consumer:
            await consumer.until(lambda c: c.messages)
            last = await api.post(uid, "afterwards")
            await consumer.until(lambda c: ("post", last["id"]) in c.received)
            return [m for m in consumer.messages if m["kind"] in {"post", "gap"}]


async def polled(api: Api, value: str, way: str, uid: str) -> list[Message]:
    """Return the same by long polls. Each poll sends the cursor of the answer before."""
    messages: list[Message] = []
    last: dict[str, Any] = {}

    async def once(cursor: str, by: str) -> str:
        async with asked(api, "/v1/events", cursor, by, uid, wait="0") as response:
            assert response.status == 200, (by, cursor, await response.text())
            page = await response.json()
            messages.extend(m for m in page["events"] if m["kind"] in {"post", "gap"})
            return str(page["cursor"])

    cursor = await once(value, way)
    last = await api.post(uid, "afterwards")

    async def there() -> bool:
        nonlocal cursor
        cursor = await once(cursor, "since")
        return any(m["kind"] == "post" and m["status"]["id"] == last["id"] for m in messages)

    await eventually(there, what="the poll after the first answer")
    return messages


def ids(messages: list[Message]) -> list[str]:
    return [m["status"]["id"] for m in messages if m["kind"] == "post"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_malformed_cursor_is_refused_by_name(api: Api, door: str, way: str) -> None:
    """Each malformed cursor gets 400, and the error names the parameter or header that had it."""
    uid = await api.user()
    for name, value in MALFORMED.items():
        assert await refusal(api, door, value, way, uid) == (400, "invalid_cursor", way), name


@pytest.mark.extended
@pytest.mark.parametrize("door", DOORS)
async def test_a_cursor_above_the_head_or_before_the_epoch_is_refused(api: Api, door: str) -> None:
    """A cursor just above the head, far above it or in other units is refused: the wait for it could last forever."""
    uid = await api.user()
    await api.post(uid, "the head")
    head = Place.of(await api.head())
    asked = [(name, made(head), way) for (name, made), way in product(NOWHERE.items(), WAYS)]
    answers = await asyncio.gather(*(refusal(api, door, value, way, uid) for _, value, way in asked))
    assert answers == [(400, "invalid_cursor", way) for _, _, way in asked], asked


@pytest.mark.parametrize("door", DOORS)
async def test_a_cursor_that_names_no_entry_of_the_log_gets_a_gap_and_what_follows(api: Api, door: str) -> None:
    """The client gets a gap, then all later events once. It does not get earlier events."""
    uid = await api.user()
    before = await api.post(uid, "before")
    place = Place.of(await api.head())
    known = [(await api.post(uid, f"number {n}"))["id"] for n in range(3)]
    for (name, made), way in product(ASTRAY.items(), WAYS):
        messages = await heard(api, door, made(place), way, uid)
        gap = messages[0]
        assert (gap["kind"], gap["reason"], gap["from"]) == ("gap", "unknown_position", made(place)), (name, messages)
        got = ids(messages)
        assert [one for one in got if one != before["id"]][: len(known)] == known, name
        assert len(set(got)) == len(got), name
        known.append(got[-1])


@pytest.mark.parametrize("door", DOORS)
async def test_a_cursor_without_its_number_is_valid(api: Api, door: str) -> None:
    """Time and sequence alone are enough if the entry is on the log: no gap, nothing twice, nothing left out."""
    uid = await api.user()
    await api.post(uid, "before")
    cursor = await api.head()
    known = [(await api.post(uid, f"number {n}"))["id"] for n in range(3)]
    for value in (cursor, cursor.partition(".")[0]):
        for way in WAYS:
            messages = await heard(api, door, value, way, uid)
            assert not [m for m in messages if m["kind"] == "gap"]
            assert ids(messages)[: len(known)] == known
            known.append(ids(messages)[-1])


async def test_an_invalid_cursor_parameter_of_a_poll_is_refused_by_name(api: Api) -> None:
    """`cursor` is another name of `since` for polls. The error names the one that was sent."""
    uid = await api.user()
    params = {"follow": uid, "cursor": "garbage"}
    answer = await api.call("GET", "/v1/events", token=mint(uid), params=params)
    assert answer.error == (400, "invalid_cursor", "cursor")


@pytest.mark.parametrize("door", DOORS)
async def test_a_cursor_of_another_user_shows_nothing_hidden(api: Api, door: str) -> None:
    """A cursor gives no permission. A protected post and a message after it reach only the users who may see them."""
    author, friend, stranger = [await api.user() for _ in range(3)]
    await api.follow(friend, author)
    await api.done("PATCH", "/v1/users/me", token=mint(author), json={"protected": True})
    async with await api.stream({}, uid=friend, path="/v1/stream/user") as theirs:
        start = theirs.cursor
        secrets = [(await api.post(author, f"a secret {n}"))["id"] for n in range(2)]
        await theirs.until(lambda c: len(c.events) >= len(secrets))
        cursors = [start, theirs.cursor, theirs.events[0]["cursor"]]
    for cursor, way in product(cursors, WAYS):
        messages = await heard(api, door, cursor, way, stranger)
        text = json.dumps(messages)
        assert "secret" not in text
        assert not set(secrets) & set(ids(messages))
    own = await heard(api, "/v1/stream/user", start, "since", friend)
    assert ids(own)[: len(secrets)] == secrets, "the control failed: a follower must receive the posts"


async def test_an_expired_cursor_gets_a_gap_with_its_count(own_folder: Path) -> None:
    """The cursor's part of the log was trimmed.

    A gap gives the number of missing entries; then all entries from the floor on follow.
    """
    flags = ("--heartbeat-seconds", "0.2", "--ring-bytes", "0")
    async with Server(own_folder, *flags) as server, Api(server) as api:
        uid = await api.user()
        await api.post(uid, "first")
        cursor = await api.head()
        posted = [(await api.post(uid, f"number {n}"))["id"] for n in range(6)]
        with server.redis_client() as client:
            rows: Any = client.xrange(keys.LOG)
            client.xtrim(keys.LOG, minid=rows[-3][0], approximate=False)
        for door in DOORS:
            messages = await heard(api, door, cursor, "since", uid)
            gap = messages[0]
            assert (gap["kind"], gap["reason"], gap["count"]) == ("gap", "trimmed", 3), gap
            assert ids(messages)[:3] == posted[3:]
            without = await heard(api, door, cursor.partition(".")[0], "since", uid)
            assert (without[0]["reason"], without[0]["count"]) == ("trimmed", None)
