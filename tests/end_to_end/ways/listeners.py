"""Readers of a history in all ways. Each has its model, and tells what it received."""

import asyncio
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

from tests.end_to_end.consumer import CONTROL, Consumer, Message
from tests.end_to_end.socket_consumer import open_socket
from tests.end_to_end.ways.history import KINDS, History
from tests.stream_server.hub.visibility.model import (
    HistoryEntry,
    Received,
    State,
    StreamModel,
    compare,
    held_texts,
    matches_anything,
    matches_followed,
    matches_home,
    matches_people,
    matches_room,
    matches_word,
    texts_of,
)

FRAMINGS = ("ndjson", "sse", "websocket")
"""The formats of a stream. In tests, the first is compressed by gzip and the last by its own extension."""

OWN = "/v1/stream/user"


@dataclass
class ScannedModel(StreamModel):
    """A reader that has read some entries later: ``scans`` has the head and the state when it read them."""

    scans: dict[int, tuple[int, State]] = field(default_factory=dict, repr=False)

    def scanned_n(self, h: HistoryEntry) -> int | None:
        """Return the head when it was read."""
        return self.scans[h.n][0] if h.n in self.scans else None

    def scanned(self, h: HistoryEntry) -> State:
        """Return the state when it was read."""
        return self.scans[h.n][1]


@dataclass
class Filters:
    """Parameters of a stream, and how a model knows what they match."""

    name: str
    parameters: dict[str, str]
    matches: Callable[[HistoryEntry, State], bool]
    path: str = "/v1/stream"

    def model(self, user: str, made: type[StreamModel], start_n: int, opened_n: int, today: State) -> Any:
        """Return the model of a reader with these filters."""
        return made(
            user, self.matches, start_n, opened_n, today, own=self.path == OWN,
            viewer_independent=self.name in ("firehose", "sample"), graph=self.name in ("own", "@me"),
            is_plain=self.name == "plain",
        )  # fmt: skip


def all_filters(history: History, user: str) -> list[Filters]:
    """The filters that a user's streams have."""
    ids = {*history.readers[:1], history.rogue}
    follow, kinds = ",".join([*sorted(ids), history.herald.uid]), {"kinds": KINDS}
    return [
        Filters("track", {"track": history.word, **kinds}, partial(matches_word, history.word)),
        Filters("follow", {"follow": follow, **kinds}, partial(matches_people, ids)),
        Filters("meta", {"rule": f"meta.room:{history.room}", **kinds}, partial(matches_room, history.room)),
        Filters("firehose", {"firehose": "true", **kinds}, matches_anything),
        Filters("@me", {"follow": "@me", "kinds": "post,edit,delete"}, partial(matches_followed, user)),
        Filters("plain", {"track": history.word}, partial(matches_word, history.word)),
        Filters("own", kinds, partial(matches_home, user), path=OWN),
    ]


class Reader:
    """A reader with its model. ``messages`` has what it received, without messages about the stream."""

    def __init__(self, history: History, name: str, model: StreamModel) -> None:
        self.history, self.name, self.model = history, name, model
        self.messages: list[Message] = []

    def check(self) -> int:
        """Compare what was received with the model. Returns the number of messages."""
        users = {*self.history.people}
        got = [made for message in self.messages if (made := named(message, users)) is not None]
        try:
            compare(got, self.model.expects(self.history.entries), self.model)
            if self.model.is_plain:
                return len(got)
            last = {post.about: post.version_at(len(self.history.entries)) for post in self.history.posts}
            held = {about: text for about, text in held_texts(self.messages).items() if about in last}
            assert held == {about: "" if last[about].is_wordless else last[about].text for about in held}
        except AssertionError as error:
            raise AssertionError(f"seed {self.history.seed}, {self.name}: {error}") from None
        return len(got)


class StreamReader(Reader):
    """A stream in one of `FRAMINGS`. It may be closed, and opened again from the cursor of its last message."""

    def __init__(self, history: History, user: str, filters: Filters, framing: str, model: StreamModel) -> None:
        super().__init__(history, f"{framing} {filters.name} of {user}", model)
        self.user, self.filters, self.framing = user, filters, framing
        self.consumer: Consumer | None = None
        self.cursor, self.left_n = "", 0

    async def open(self, since: str | None = None) -> None:
        given = self.filters.parameters | ({} if since is None else {"since": since})
        api, path = self.history.api, self.filters.path
        if self.framing == "websocket":
            self.consumer = await open_socket(api, urlencode(given), uid=self.user, path=path)
        else:
            self.consumer = await api.stream(given, uid=self.user, path=path, framing=self.framing)

    async def reach(self, mark: str) -> None:
        """Wait until the herald's post has come."""
        assert self.consumer is not None
        await self.consumer.until(lambda c: any(is_post(message, mark) for message in c.messages))

    async def close(self) -> None:
        """Close the stream. It must have reached the last of the herald's posts, so its cursor is known."""
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            self.messages += [message for message in consumer.messages if message["kind"] not in CONTROL]
            self.cursor = consumer.cursor
            await consumer.close()


class Poller(Reader):
    """A client that polls again and again. A poll waits while the next thing is done.

    An entry ends the wait if it is shown by the state before it. The answer then shows what is visible after it.
    """

    def __init__(self, history: History, user: str, filters: Filters, model: ScannedModel, cursor: str) -> None:
        super().__init__(history, f"polls {filters.name} of {user}", model)
        self.user, self.filters, self.scans = user, filters, model
        self.cursor = cursor
        self._poll = self._start()

    def _start(self) -> "asyncio.Task[dict[str, Any]]":
        parameters: Mapping[str, str] = self.filters.parameters | {"since": self.cursor}
        return asyncio.create_task(self.history.api.poll(parameters, uid=self.user, wait=30))

    async def reach(self, mark: str) -> None:
        """Poll until the herald's post comes, then begin to wait for the next thing."""
        has_come = False
        while not has_come:
            page = await self._poll
            self.messages += page["events"]
            self.cursor = page["cursor"]
            has_come = any(is_post(message, mark) for message in page["events"])
            self._poll = self._start()
        first, last = self.history.steps[-1]
        for n in range(first, last + 1):
            self.scans.scans[n] = last, self.history.states[last]
            if last > first:
                self.scans.unsure.add(n)

    async def close(self) -> None:
        self._poll.cancel()
        await asyncio.wait({self._poll})


def is_post(message: Message, status_id: str) -> bool:
    return (message["kind"], message.get("status", {}).get("id")) == ("post", status_id)


def named(message: Message, users: set[str]) -> Received | None:
    """Return kind and id of an event, and whether a part was left out. None for the herald's events."""
    kind = message["kind"]
    if kind in ("follow", "unfollow"):
        ids = [message[noun]["id"] for noun in ("source", "target")]
        return (kind, ">".join(ids), False, "") if users.issuperset(ids) else None
    if kind in ("protect", "unprotect") or "left" in message:
        shown = ("left", message["left"]) if kind == "edit" else (kind, message["user"])
        return shown[0], shown[1]["id"], False, ""
    status = message["status"]
    if kind == "like":
        return kind, f"{message['source']['id']}>{status['id']}", False, ""
    if kind in ("comment", "uncomment"):
        return kind, message["comment"]["id"], kind == "uncomment" and "message" not in status, ""
    if status["uid"] not in users:
        return None
    is_bare = kind in ("post", "edit") and "original" in status and status["original"] is None
    return kind, status["id"], is_bare, texts_of(kind, status)


def present(history: History) -> tuple[int, State]:
    """The number of the last entry, and the state after it."""
    return len(history.entries), deepcopy(history.state)
