"""Counters are cardinalities, and events are the data, whatever happens at the same time."""

import asyncio
import json
import random
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError
from stream_server.events import START
from stream_server.store.draft import Draft
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.stream_server.store.people import People

ROUNDS = 60
WRITERS = 20


class Model:
    """What the log says happened, told again in plain Python."""

    def __init__(self) -> None:
        self.follows: set[tuple[str, str]] = set()
        self.statuses: dict[str, str] = {}

    def hear(self, kind: str, wire: dict[str, dict[str, str]]) -> None:
        """Apply one event; what it changes must not be so already."""
        if kind in {"follow", "unfollow"}:
            pair = wire["source"]["id"], wire["target"]["id"]
            assert (pair in self.follows) == (kind == "unfollow")
            self.follows ^= {pair}
        elif kind == "post":
            assert wire["status"]["id"] not in self.statuses
            self.statuses[wire["status"]["id"]] = wire["status"]["uid"]
        else:
            assert self.statuses.pop(wire["status"]["id"]) == wire["status"]["uid"]


async def _wander(store: Store, users: list[str], shared: list[str], source: random.Random) -> None:
    """One writer's random life: what is refused is refused, what is done counts."""
    for _ in range(ROUNDS):
        me, other = source.sample(users, 2)
        try:
            match source.choice(["post", "repost", "delete", "follow", "unfollow", "batch"]):
                case "post":
                    made = await store.statuses.create(me, Draft(message="x"), Request.fresh())
                    shared.append(json.loads(made)["id"])
                case "repost" if shared:
                    draft = Draft(message=source.choice(["", "quote"]), origin=source.choice(shared))
                    shared.append(json.loads(await store.statuses.create(me, draft, Request.fresh()))["id"])
                case "delete" if shared:
                    await store.statuses.delete(me, source.choice(shared), Request.fresh())
                case "follow":
                    await store.follows.follow(me, other, Request.fresh())
                case "unfollow":
                    await store.follows.unfollow(me, other, Request.fresh())
                case "batch":
                    await store.follows.many(me, source.sample(users, 3), source.sample(users, 2), Request.fresh())
        except ApiError as refusal:
            if refusal.status not in {403, 404}:
                raise


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_counters_equal_cardinalities(store: Store, people: People, raw: "redis.Redis", seed: int) -> None:
    """After twenty writers at once, counters, sets and the log tell one story."""
    users = await people.users(5)
    shared: list[str] = []
    await asyncio.gather(
        *(_wander(store, users, shared, random.Random(f"{seed} {writer}")) for writer in range(WRITERS))
    )
    model = Model()
    for entry in await store.log.read(START, 100_000):
        model.hear(entry.kind, json.loads(entry.body)["wire"])
    assert model.follows
    assert len(model.statuses) < len(shared)
    for uid in users:
        told = await people.me(uid)
        assert {t for s, t in model.follows if s == uid} == _members(raw, f"{{core}}:following:{uid}")
        assert {s for s, t in model.follows if t == uid} == _members(raw, f"{{core}}:followers:{uid}")
        assert {i for i, author in model.statuses.items() if author == uid} == _members(raw, f"{{core}}:profile:{uid}")
        assert told["following"] == raw.zcard(f"{{core}}:following:{uid}")
        assert told["followers"] == raw.zcard(f"{{core}}:followers:{uid}")
        assert told["posts"] == raw.zcard(f"{{core}}:profile:{uid}")
    await _check_reposts(store, users[0], model)


async def _check_reposts(store: Store, viewer: str, model: Model) -> None:
    """Each status counts the reposts that are there, and no key is left of one that is not."""
    statuses = {status["id"]: status for status in map(json.loads, await store.statuses.many(viewer, list(model.statuses)))}
    assert set(statuses) == set(model.statuses)
    for status_id, status in statuses.items():
        assert status["reposts"] == sum(other["origin"] == status_id for other in statuses.values())


def _members(raw: "redis.Redis", key: str) -> set[str]:
    members: Any = raw.zrange(key, 0, -1)
    return {member.decode() for member in members}
