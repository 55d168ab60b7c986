"""Likes and comments by twenty concurrent writers: counters, sets and the log agree."""

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

from stream_server.errors import ApiError
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key


def check(raw: Any) -> None:
    """Compare counters with the sizes of their sets, and each set with its counterpart."""
    for name in raw.keys(keys.key_for("status", "*")):
        status = name.decode().rpartition(":")[2]
        kept = raw.hmget(name, "likes", "comments", "reposts")
        there = [raw.zcard(keys.key_for(of, status)) for of in ("likes", "comments", "reposts")]
        assert [int(count) for count in kept] == there, status
        for uid in raw.zrange(keys.key_for("likes", status), 0, -1):
            assert raw.zscore(keys.key_for("liked", uid.decode()), status) is not None
        for comment in raw.zrange(keys.key_for("comments", status), 0, -1):
            assert raw.hget(keys.key_for("comment", comment.decode()), "status") == status.encode()


class Model:
    """The state that the log entries give, in plain Python. A deleted status takes its reactions with it."""

    def __init__(self) -> None:
        self.statuses: set[str] = set()
        self.likes: set[tuple[str, str]] = set()
        self.comments: dict[str, str] = {}

    def apply(self, kind: str, wire: dict[str, Any]) -> None:
        """Apply one event. It must change the state, and its counters are those after it."""
        status = wire["status"]["id"] if kind != "notification" else ""
        if kind == "post":
            self.statuses.add(status)
        elif kind == "delete":
            self.statuses.remove(status)
            self.likes = {pair for pair in self.likes if pair[0] != status}
            self.comments = {comment: of for comment, of in self.comments.items() if of != status}
        elif kind in {"like", "unlike"}:
            pair = (status, wire["source"]["id"])
            assert (pair in self.likes) == (kind == "unlike")
            self.likes ^= {pair}
        elif kind == "comment":
            self.comments[wire["comment"]["id"]] = status
        elif kind == "uncomment":
            assert self.comments.pop(wire["comment"]["id"]) == status
        if kind in {"like", "unlike", "comment", "uncomment"}:
            self.counted(wire["status"])

    def counted(self, status: dict[str, Any]) -> None:
        assert status["id"] in self.statuses
        assert status["likes"] == sum(liked == status["id"] for liked, _ in self.likes)
        assert status["comments"] == Counter(self.comments.values())[status["id"]]


class Crowd:
    """Users who like, comment and delete at random."""

    def __init__(self, store: Store, users: list[str]) -> None:
        self.store = store
        self.users = users
        self.statuses: list[str] = []
        self.comments: list[str] = []
        self.done = Counter[str]()

    async def act(self, chance: random.Random) -> None:
        """Do one random action. Another writer may have been faster, so a refusal is no error."""
        uid, status = chance.choice(self.users), chance.choice(self.statuses)
        verb = chance.choice(["like"] * 4 + ["unlike"] * 3 + ["comment"] * 3 + ["uncomment"] * 2 + ["delete", "repost"])
        try:
            await self.do(verb, uid, status, chance)
            self.done[verb] += 1
        except ApiError as error:
            if error.error_code not in {"not_found", "not_yours"}:
                raise

    async def do(self, verb: str, uid: str, status: str, chance: random.Random) -> None:
        store, request = self.store, new_key()
        if verb == "like":
            await store.likes.like(uid, status, request)
        elif verb == "unlike":
            await store.likes.unlike(uid, status, request)
        elif verb == "comment":
            made = await store.comments.create(uid, status, f"@u{chance.randrange(9)}", request)
            self.comments.append(json.loads(made)["id"])
        elif verb == "uncomment" and self.comments:
            await store.comments.delete(uid, chance.choice(self.comments), request)
        elif verb == "delete":
            await store.statuses.delete(uid, status, request)
        elif verb == "repost":
            self.statuses.append((await People(store).status(uid, "", origin=status))["id"])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_counters_equal_cardinalities_and_the_log(store: Store, people: People, raw: Any, seed: int) -> None:
    crowd = Crowd(store, await people.users(6))
    for uid in crowd.users:
        crowd.statuses += [(await people.status(uid))["id"] for _ in range(2)]

    async def writer(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for _ in range(40):
            await crowd.act(chance)

    await asyncio.gather(*(writer(i) for i in range(20)))
    assert set(crowd.done) == {"like", "unlike", "comment", "uncomment", "delete", "repost"}
    check(raw)
    model = Model()
    for entry in await store.log.read(LOG_START, 10_000):
        model.apply(entry.kind, json.loads(entry.wire))
    assert {name.decode().rpartition(":")[2] for name in raw.keys(keys.key_for("status", "*"))} == model.statuses
    for status in model.statuses:
        likers = {uid.decode() for uid in raw.zrange(keys.key_for("likes", status), 0, -1)}
        assert likers == {uid for liked, uid in model.likes if liked == status}
        there = {one.decode() for one in raw.zrange(keys.key_for("comments", status), 0, -1)}
        assert there == {comment for comment, of in model.comments.items() if of == status}
