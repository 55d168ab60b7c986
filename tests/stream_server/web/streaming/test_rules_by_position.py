"""Where a stream with saved rules begins: at the position of the rules that it has."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.streaming.stream_plan import bind_filters
from stream_server.web.websocket import operations
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import new_key
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

SAVED = {"rules": "saved"}
Message = dict[str, Any]


class Scene:
    """A server, its user, and what the user does. ``rules`` has the ids of the rules by their words."""

    def __init__(self, server: RunningServer, redis_server: RedisProcess) -> None:
        self.server = server
        self.store = server.app[STORE]
        self.rules: dict[str, str] = {}
        self._redis_server = redis_server

    async def add(self, *words: str) -> None:
        for outcome in await self.store.rules.add(self.server.uid, [(word, "") for word in words], new_key()):
            assert outcome.saved is not None
            self.rules[outcome.saved.rule] = outcome.saved.id

    async def remove(self, word: str) -> Position:
        """Remove a rule. Return the position of the removal."""
        await self.store.rules.remove(self.server.uid, [self.rules[word]], new_key())
        return await self.store.log.head()

    async def post(self, text: str) -> Position:
        status, _, _ = await self.server.request("POST", "/v1/statuses", json={"message": text})
        assert status == 201
        return await self.store.log.head()

    async def forget(self, word: str) -> Position:
        """Remove a rule, trim the log behind the removal, and remove the rule `old`. The ring still has all entries.

        Return the position of the first removal, which is the first one that has all its rules known.
        """
        removal = await self.remove(word)
        last = await self.post("tea and milk")
        await eventually(lambda: self.server.app[HUB].head == last, what="the ring has all")
        with self._redis_server.client() as client:
            client.xtrim(keys.LOG, minid=(await self.store.log.head()).entry_id, approximate=False)
        await self.remove("old")
        return removal

    async def listen(self, until: str, **query: str) -> list[Message]:
        """Return the messages of a stream up to the first of the kind ``until``, which may have come before."""
        messages: list[Message] = []
        async with self.server.session.get(
            "/v1/stream", params=SAVED | query, headers=self.server.authorization
        ) as response:
            while not messages or messages[-1]["kind"] != until:
                messages += [json.loads(await response.content.readline())]
        return messages

    async def poll(self, **query: str) -> list[Message]:
        params = {**SAVED, "wait": "0", **query}
        async with self.server.session.get("/v1/events", params=params, headers=self.server.authorization) as response:
            events: list[Message] = (await response.json())["events"]
            return events


@pytest.fixture
async def scene(redis_url: str, redis_server: RedisProcess) -> AsyncIterator[Scene]:
    async with running_server(redis_url, {"shutdown_seconds": 1.0}) as server:
        yield Scene(server, redis_server)


async def test_a_stream_begins_where_its_rules_were_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before the reading met older rules, and what comes after it is judged after each change."""
    await scene.add("tea")
    read = scene.store.rules.get_all

    async def read_between(uid: str) -> Any:
        await scene.post("milk, when its rule was not saved yet")
        await scene.add("milk")
        found = await read(uid)
        await scene.post("milk")
        await scene.remove("tea")
        await scene.post("tea, when its rule was removed")
        await scene.add("end")
        return found

    monkeypatch.setattr(scene.store.rules, "get_all", read_between)
    messages = await scene.listen("effective")
    assert [message["kind"] for message in messages] == ["hello", "post", "effective"]
    assert messages[1]["status"]["message"] == "milk"
    assert messages[2]["removed"] == [scene.rules["tea"]]


async def test_a_start_before_the_known_rules_gets_a_gap(scene: Scene) -> None:
    """The entries that cannot be judged are told, in a stream and in a poll. From the end of the gap, all is known."""
    await scene.add("tea", "milk", "old")
    start = await scene.post("tea, which nobody can judge")
    known = await scene.forget("tea")
    for messages in ((await scene.listen("effective", since=start.cursor))[1:], await scene.poll(since=start.cursor)):
        gap, post, effective = messages
        told = tuple(gap[name] for name in ("kind", "cursor", "from", "to", "reason", "count"))
        assert told == ("gap", known.cursor, start.cursor, known.cursor, "rules_forgotten", known.n - start.n)
        assert [mark["id"] for mark in post["matched"]] == [scene.rules["milk"]]
        assert effective["removed"] == [scene.rules["old"]]
    assert [message["kind"] for message in await scene.poll(since=known.cursor)] == ["post", "effective"]


async def test_an_update_at_a_place_before_the_known_rules_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old filters go on. The next update is at a place of which the rules are known."""
    await scene.add("tea", "old")
    bind_now = asyncio.Event()

    async def bind_late(*arguments: Any) -> Any:
        if not bind_now.is_set():
            await scene.forget("tea")
            bind_now.set()
        return await bind_filters(*arguments)

    monkeypatch.setattr(operations, "bind_filters", bind_late)
    async with scene.server.session.ws_connect("/v1/stream?track=milk", headers=scene.server.authorization) as socket:
        assert (await socket.receive_json())["kind"] == "hello"
        await socket.send_json({"op": "update", "parameters": SAVED})
        refused = await socket.receive_json()
        assert (refused["kind"], refused["error"]["code"]) == ("error", "unavailable")
        assert (await socket.receive_json())["status"]["message"] == "tea and milk"
        await socket.send_json({"op": "update", "parameters": SAVED})
        assert (await socket.receive_json())["kind"] == "effective"
