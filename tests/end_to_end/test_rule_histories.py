"""Whatever the way of reading, saved rules judge each entry of the log as they were at its position.

A plain model reads the log as Redis has it. It shares no code with the server. While rules change and posts come,
random readers open streams in each format, at the head and at old cursors, leave and return, poll, end at a time, and
change the filters of a WebSocket. Each must get exactly the messages that the model expects.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer, Message
from tests.end_to_end.server import Server
from tests.end_to_end.socket_consumer import SocketConsumer, open_socket
from tests.stream_server.web.dialects.line_listener import Listener
from tests.tiers import quick, seeds

WORDS = ("tea", "milk", "rum", "ice", "lime")
LAST = "farewell"
"""The word of the last post. Its rule is added last, so that every reader gets the post."""

FRAMINGS = ("ndjson", "sse", "websocket")
SAVED = {"rules": "saved"}
SEARCH = "/2/tweets/search/stream"

Received = tuple[object, ...]
"""What a message says: kind, cursor and the ids of the matching rules, or what `effective` says about the rules."""


class Text(NamedTuple):
    """A rule: one of ``words`` and none of ``without``."""

    words: tuple[str, ...]
    without: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        return f"({' OR '.join(self.words)})" + "".join(f" -{word}" for word in self.without)

    def matches(self, message: str) -> bool:
        said = message.split()
        return any(word in said for word in self.words) and not any(word in said for word in self.without)


class Expected(NamedTuple):
    """A message of the model. ``is_optional`` is whether a reader may have come when the post was deleted already."""

    n: int
    ms: int
    status: str
    says: Received
    is_optional: bool = False


class Model:
    """What the log says about a user: which entries the rules match that the user had then."""

    def __init__(self, rows: list[Any], uid: str, texts: dict[str, Text]) -> None:
        self.messages: list[Expected] = []
        self.cursors: list[str] = []
        self._texts = texts
        self._had: dict[str, Text] = {}
        said: dict[str, str] = {}
        bodies = [json.loads(fields[b"e"])["wire"] for _, fields in rows]
        deleted = {wire["status"]["id"] for wire, (_, row) in zip(bodies, rows, strict=True) if row[b"k"] == b"delete"}
        for wire, (entry_id, fields) in zip(bodies, rows, strict=True):
            kind, cursor = fields[b"k"].decode(), f"{entry_id.decode()}.{fields[b'n'].decode()}"
            self.cursors.append(cursor)
            place = int(fields[b"n"]), int(entry_id.partition(b"-")[0])
            if kind == "rules" and wire["uid"] == uid:
                self.messages.append(Expected(*place, "", self._change(wire, cursor)))
            elif kind in ("post", "delete"):
                status = wire["status"]["id"]
                said.setdefault(status, wire["status"].get("message", ""))
                matched = [rule_id for rule_id, text in self._had.items() if text.matches(said[status])]
                is_optional = kind == "post" and status in deleted
                if matched:
                    self.messages.append(Expected(*place, status, (kind, cursor, *matched), is_optional))

    def _change(self, wire: Any, cursor: str) -> Received:
        added = [rule["id"] for rule in wire["added"]]
        for rule_id in {*wire["removed"]} - {*added}:  # a rule with both was changed, and keeps its place
            del self._had[rule_id]
        self._had |= {rule["id"]: self._texts[rule["rule"]] for rule in wire["added"]}
        return "effective", cursor, tuple(added), tuple(wire["removed"]), len(self._had)

    def check(self, name: str, received: list[Received], expected: list[Expected]) -> None:
        """Fail unless a reader received the expected messages in their order, except for some optional ones."""
        rest = iter(received)
        following = next(rest, None)
        for message in expected:
            if following == message.says:
                following = next(rest, None)
            else:
                assert message.is_optional, f"{name}: {following} came, not {message.says}"
        assert following is None, f"{name}: {following} came, not the end"


def heard(messages: list[Message]) -> list[Received]:
    """Return what the messages of a reader say, without those about the connection."""
    found: list[Received] = []
    for message in messages:
        kind = message["kind"]
        if kind == "effective" and "parameters" not in message:
            change = tuple(message["added"]), tuple(message["removed"]), message["rules"]
            found.append((kind, message["cursor"], *change))
        elif kind in ("post", "delete"):
            found.append((kind, message["cursor"], *(mark["id"] for mark in message["matched"])))
        else:
            assert kind in ("hello", "heartbeat", "effective"), message
    return found


class Reader:
    """A reader of the native API. It begins after the cursor ``start``, which the first message tells if it is None."""

    def __init__(self, name: str, start: str | None) -> None:
        self.name, self.start = name, start
        self.messages: list[Message] = []

    async def step(self, history: "History") -> None:
        """Do what this reader does while things happen."""

    async def end(self, history: "History", last: str) -> None:
        """Read until the post with the id ``last``."""

    def check(self, model: Model) -> int:
        """Compare what came with the model. Return the number of messages that were expected."""
        assert self.start is not None
        start_n = int(self.start.rpartition(".")[2])
        expected = [message for message in model.messages if message.n > start_n]
        model.check(f"{self.name} from {self.start}", heard(self.messages), expected)
        return len(expected)


def _has(messages: list[Message], last: str) -> bool:
    return any(message.get("status", {}).get("id") == last for message in messages)


class StreamReader(Reader):
    """A stream in a format of `FRAMINGS`. If it is ``restless``, it leaves and returns with the last cursor."""

    def __init__(self, framing: str, start: str | None, *, is_restless: bool) -> None:
        super().__init__(f"{'restless ' if is_restless else ''}{framing}", start)
        self.framing, self.is_restless = framing, is_restless
        self.consumer: Consumer | None = None

    async def open(self, history: "History") -> None:
        cursor = self.messages[-1]["cursor"] if self.messages else self.start
        query = SAVED | ({} if cursor is None else {"since": cursor})
        if self.framing == "websocket":
            text = "&".join(f"{name}={value}" for name, value in query.items())
            self.consumer = await open_socket(history.api, text, uid=history.uid)
        else:
            self.consumer = await history.api.stream(query, uid=history.uid, framing=self.framing)
        self.start = self.start or self.consumer.messages[0]["cursor"]

    async def close(self) -> None:
        assert self.consumer is not None
        await self.consumer.close()
        self.messages += self.consumer.messages
        self.consumer = None

    async def step(self, history: "History") -> None:
        if self.consumer is None:
            await self.open(history)
        elif self.is_restless and history.chance.random() < 0.4:
            await self.close()

    async def end(self, history: "History", last: str) -> None:
        if self.consumer is None:
            await self.open(history)
        assert self.consumer is not None
        await self.consumer.until(lambda c: _has(c.messages, last))
        await self.close()


class UpdatedReader(Reader):
    """A WebSocket whose filters change to the saved rules. It begins at the cursor of the answer."""

    consumer: SocketConsumer

    async def step(self, history: "History") -> None:
        if self.start is None:
            self.consumer = await open_socket(history.api, "track=nobody+says+this", uid=history.uid)
            answer = await self.consumer.ask("update", parameters=SAVED)
            self.start = answer["cursor"]

    async def end(self, history: "History", last: str) -> None:
        await self.step(history)
        await self.consumer.until(lambda c: _has(c.messages, last))
        await self.consumer.close()
        self.messages = self.consumer.messages


class Poller(Reader):
    """A client that polls again and again for few events."""

    async def step(self, history: "History") -> None:
        query = {**SAVED, "limit": str(history.chance.choice((1, 2, 5)))}
        cursor = self.messages[-1]["cursor"] if self.messages else self.start
        page = await history.api.poll(query | ({} if cursor is None else {"since": cursor}), uid=history.uid, wait=0.05)
        if self.start is None:
            self.start = _before(page["events"][0]["cursor"]) if page["events"] else page["cursor"]
        self.messages += [*page["events"], {"kind": "heartbeat", "cursor": page["cursor"]}]

    async def end(self, history: "History", last: str) -> None:
        while not _has(self.messages, last):
            await self.step(history)


def _before(cursor: str) -> str:
    """Return a cursor with the number before: a poll without a cursor does not tell where it began."""
    entry_id, _, n = cursor.rpartition(".")
    return f"{entry_id}.{int(n) - 1}"


class SearchReader(Reader):
    """A v2 search stream from one time of the log to another, or without an end. Its messages have no cursor."""

    def __init__(self, start_ms: int, end_ms: int | None) -> None:
        super().__init__(f"v2 to {end_ms}", "")
        self.start_ms, self.end_ms = start_ms, end_ms
        self.listener: Listener | None = None

    async def step(self, history: "History") -> None:
        if self.listener is None:
            times = {"start_time": _iso(self.start_ms)} | (
                {} if self.end_ms is None else {"end_time": _iso(self.end_ms)}
            )
            headers = {"Authorization": f"Bearer {mint(history.uid)}"}
            response = await history.api.session.get(SEARCH, params=times, headers=headers)
            assert response.status == 200, await response.text()
            self.listener = Listener(response)

    async def end(self, history: "History", last: str) -> None:
        await self.step(history)
        assert self.listener is not None
        if self.end_ms is None:
            await self.listener.until(lambda one: any(tweet["data"]["id"] == last for tweet in one.tweets))
        else:
            await self.listener.until_end()
        await self.listener.close()

    def check(self, model: Model) -> int:
        assert self.listener is not None
        found: list[Received] = [
            (tweet["data"]["id"], *(mark["id"] for mark in tweet["matching_rules"])) for tweet in self.listener.tweets
        ]
        expected = [
            message._replace(says=(message.status, *message.says[2:]))
            for message in model.messages
            if self.start_ms <= message.ms < (self.end_ms or message.ms + 1) and message.says[0] == "post"
        ]
        model.check(f"{self.name} from {self.start_ms}", found, expected)
        return len(expected)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class History:
    """What happens: a user saves, changes and removes rules, others too, and an author posts and deletes."""

    def __init__(self, api: Api, seed: int, users: list[str]) -> None:
        self.api, self.chance = api, random.Random(seed)
        self.uid, self.other, self.author = users
        self.texts: dict[str, Text] = {}
        self.had: list[str] = []
        self.posts: list[str] = []
        self.readers: list[Reader] = []

    def read_log(self) -> list[Any]:
        client = self.api.server.redis_client()
        try:
            rows: list[Any] = client.xrange("{core}:log")
            return rows
        finally:
            client.close()

    async def save(self, *texts: Text, uid: str | None = None) -> None:
        body = {"rules": [{"rule": text.written, "tag": f"{self.chance.random()}"} for text in texts]}
        made = (await self.api.done("POST", "/v1/rules", token=mint(uid or self.uid), json=body))["rules"]
        if uid is None:
            self.texts |= {rule["rule"]: text for rule, text in zip(made, texts, strict=True)}
            self.had += [rule["id"] for rule in made]

    async def change(self, text: Text) -> None:
        """Change a rule. Another task may have removed it at the same time."""
        path, tag = f"/v1/rules/{self.chance.choice(self.had)}", f"{self.chance.random()}"
        answer = await self.api.call("PUT", path, token=mint(self.uid), json={"rule": text.written, "tag": tag})
        assert answer.status in (200, 404), answer
        if answer.status == 200:
            self.texts[answer.json["rule"]] = text

    async def remove(self) -> None:
        removable = self.had[1:]  # who has no rules gets no v2 stream
        ids = self.chance.sample(removable, min(len(removable), self.chance.randint(1, 3)))
        self.had = [rule_id for rule_id in self.had if rule_id not in ids]
        if ids:
            await self.api.done("POST", "/v1/rules/delete", token=mint(self.uid), json={"ids": ids})

    async def post(self) -> None:
        words = self.chance.sample(WORDS, self.chance.randint(1, 3))
        self.posts.append((await self.api.post(self.author, " ".join(words)))["id"])

    async def delete(self) -> None:
        if self.posts:
            await self.api.delete(self.author, self.posts.pop(self.chance.randrange(len(self.posts))))

    def _act(self) -> Coroutine[Any, Any, None]:
        drawn = self.chance.random()
        if drawn < 0.2:
            texts = [self._text() for _ in range(self.chance.randint(1, 3))]
            return self.save(*texts, uid=self.other if drawn < 0.03 else None)
        if drawn < 0.35:
            return self.remove()
        if drawn < 0.48:
            return self.change(self._text())
        return self.delete() if drawn < 0.55 else self.post()

    def _text(self) -> Text:
        words = self.chance.sample(WORDS, 3)
        return Text(tuple(words[: self.chance.randint(1, 2)]), tuple(words[2 : self.chance.randint(2, 3)]))

    def _come(self) -> None:
        """Let another reader come: at the head, or at an old place of the log."""
        rows = self.read_log()
        old_id, fields = self.chance.choice(rows)
        start = self.chance.choice((None, f"{old_id.decode()}.{fields[b'n'].decode()}"))
        drawn, framing = self.chance.random(), self.chance.choice(FRAMINGS)
        if drawn < 0.5:
            self.readers.append(StreamReader(framing, start, is_restless=self.chance.random() < 0.5))
        elif drawn < 0.7:
            self.readers.append(Poller("polls", start))
        elif drawn < 0.85:
            self.readers.append(UpdatedReader("updated websocket", None))
        else:
            times = sorted(int(row_id.partition(b"-")[0]) for row_id, _ in self.chance.choices(rows, k=2))
            self.readers.append(SearchReader(times[0], self.chance.choice((None, times[1]))))

    async def step(self) -> None:
        """Let some things happen at the same time, while readers open, leave, return and poll."""
        acts = [self._act() for _ in range(self.chance.randint(1, 6))]
        reads = [reader.step(self) for reader in self.readers]
        await asyncio.gather(*acts, *reads)

    async def run(self, steps: int, readers: int) -> int:
        """Let a history happen, and compare all readers with the model. Return the number of expected messages."""
        await self.save(Text(("tea",)))
        await self.post()
        for nth in range(steps):
            while len(self.readers) * steps < readers * nth:
                self._come()
            await self.step()
        for _ in range(readers // 4):
            self._come()
        await asyncio.gather(self.save(Text((LAST,))), *(reader.step(self) for reader in self.readers))
        last = (await self.api.post(self.author, LAST))["id"]
        await asyncio.gather(*(reader.end(self, last) for reader in self.readers))
        model = Model(self.read_log(), self.uid, self.texts)
        return sum(reader.check(model) for reader in self.readers)


@pytest.fixture
async def two_workers(own_folder: Path) -> AsyncIterator[Api]:
    with Server(own_folder, "--workers", "2") as server:
        async with Api(server) as api:
            yield api


@pytest.mark.parametrize("seed", seeds(20, first_tier=1, second_tier=3))
async def test_saved_rules_apply_by_position_in_every_way(
    two_workers: Api,
    seed: int,
    full: bool,  # noqa: FBT001 - a fixture
) -> None:
    """The time that a history takes grows by the square of its length."""
    steps, readers, least = (25, 20, 200) if quick() else (100, 60, 5_000) if full else (50, 30, 1_000)
    history = History(two_workers, seed, [await two_workers.user() for _ in range(3)])
    assert await history.run(steps, readers) > least
