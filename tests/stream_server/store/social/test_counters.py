"""Counters equal the sizes of their sets, and the log equals the data, under concurrent writes."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key

ROUNDS = 60
WRITERS = 20


class Model:
    """The state that the log entries give, in plain Python."""

    def __init__(self) -> None:
        self.seen_kinds: Counter[str] = Counter()
        self.follows: set[tuple[str, str]] = set()
        self.asks: set[tuple[str, str]] = set()
        self.blocks: set[tuple[str, str]] = set()
        self.mutes: set[tuple[str, str]] = set()
        self.protected: set[str] = set()
        self.statuses: dict[str, str] = {}

    def apply(self, kind: str, wire: dict[str, dict[str, str]]) -> None:
        """Apply one event. It must change the state."""
        self.seen_kinds[kind] += 1
        if kind == "post":
            assert wire["status"]["id"] not in self.statuses
            self.statuses[wire["status"]["id"]] = wire["status"]["uid"]
        elif kind == "delete":
            assert self.statuses.pop(wire["status"]["id"]) == wire["status"]["uid"]
        elif kind in {"protect", "unprotect"}:
            assert (wire["user"]["id"] in self.protected) == (kind == "unprotect")
            self.protected ^= {wire["user"]["id"]}
        elif kind != "notification":
            self._relate(kind, (wire["source"]["id"], wire["target"]["id"]))

    def _relate(self, kind: str, pair: tuple[str, str]) -> None:
        pairs = {"follow": self.follows, "request": self.asks, "block": self.blocks, "mute": self.mutes}
        changed = pairs[kind.removeprefix("un")]
        assert (pair in changed) == kind.startswith("un"), kind
        changed ^= {pair}
        if kind == "follow":
            self.asks.discard(pair)
        for blocker, blocked in self.blocks:
            assert not {(blocker, blocked), (blocked, blocker)} & (self.follows | self.asks)
        assert not self.follows & self.asks


VERBS = [
    "post", "post", "repost", "delete", "delete", "delete", "follow", "follow", "follow", "unfollow", "batch",
    "approve", "approve", "refuse", "block", "unblock", "unblock", "mute", "unmute", "protect",
]  # fmt: skip


async def _wander(store: Store, users: list[str], shared: list[str], source: random.Random) -> None:
    """One writer's random actions. Refusals are expected."""
    for _ in range(ROUNDS):
        me, other = source.sample(users, 2)
        verb = source.choice(VERBS)
        try:
            if verb in {"post", "repost", "delete"}:
                await _write(store, verb, me, shared, source)
            elif verb == "batch":
                await store.follows.change_many(me, source.sample(users, 3), source.sample(users, 2), new_key())
            elif verb == "protect":
                await store.users.update(me, {"protected": source.random() < 0.7}, new_key())
            else:
                await _relate(store, verb)(me, other, new_key())
        except ApiError as refusal:
            if refusal.status not in {403, 404} and refusal.param not in {"id", "origin"}:
                raise


async def _write(store: Store, verb: str, me: str, shared: list[str], source: random.Random) -> None:
    if verb == "post":
        shared.append(json.loads(await store.statuses.create(me, StatusDraft(message="x"), new_key()))["id"])
    elif shared and verb == "repost":
        draft = StatusDraft(message=source.choice(["", "quote"]), origin=source.choice(shared))
        shared.append(json.loads(await store.statuses.create(me, draft, new_key()))["id"])
    elif shared:
        await store.statuses.delete(me, source.choice(shared), new_key())


def _relate(store: Store, verb: str) -> Callable[[str, str, IdempotencyKey], Awaitable[object]]:
    nouns = {"follow": store.follows, "approve": store.follow_requests, "refuse": store.follow_requests}
    nouns |= {"block": store.blocks, "mute": store.mutes}
    verb_of_noun: Callable[[str, str, IdempotencyKey], Awaitable[object]] = getattr(
        nouns[verb.removeprefix("un")], verb
    )
    return verb_of_noun


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_counters_equal_cardinalities(store: Store, people: People, raw: "redis.Redis", seed: int) -> None:
    users = await people.users(6)
    shared: list[str] = []
    await asyncio.gather(
        *(_wander(store, users, shared, random.Random(f"{seed} {writer}")) for writer in range(WRITERS))
    )
    model = Model()
    for entry in await store.log.read(LOG_START, 100_000):
        model.apply(entry.kind, json.loads(entry.body)["wire"])
    # The last state may have none of them left.
    assert {"follow", "unfollow", "request", "block", "unblock"} <= model.seen_kinds.keys()
    assert len(model.statuses) < len(shared)
    protected: Any = raw.smembers("{core}:protected")
    assert {uid.decode() for uid in protected} == model.protected
    for uid in users:
        user = await people.me(uid)
        assert user["protected"] == (uid in model.protected)
        assert {t for s, t in model.mutes if s == uid} == _members(raw, f"{{core}}:mutes:{uid}")
        for pairs, forth, back in (
            (model.follows, "following", "followers"),
            (model.asks, "asked", "asks"),
            (model.blocks, "blocks", "blockers"),
        ):
            assert {t for s, t in pairs if s == uid} == _members(raw, f"{{core}}:{forth}:{uid}")
            assert {s for s, t in pairs if t == uid} == _members(raw, f"{{core}}:{back}:{uid}")
        assert {i for i, author in model.statuses.items() if author == uid} == _members(raw, f"{{core}}:profile:{uid}")
        assert user["following"] == raw.zcard(f"{{core}}:following:{uid}")
        assert user["followers"] == raw.zcard(f"{{core}}:followers:{uid}")
        assert user["posts"] == raw.zcard(f"{{core}}:profile:{uid}")
    _check_reposts(raw, model)


def _check_reposts(raw: "redis.Redis", model: Model) -> None:
    """Each status counts its existing reposts, and no key of a deleted one is left."""
    names = list(raw.scan_iter("{core}:status:*"))
    kept: list[Any] = [(name.rpartition(b":")[2], *raw.hmget(name, "origin", "reposts")) for name in names]
    assert {status_id.decode() for status_id, _, _ in kept} == set(model.statuses)
    for status_id, _, reposts in kept:
        assert int(reposts) == sum(origin == status_id for _, origin, _ in kept)


def _members(raw: "redis.Redis", key: str) -> set[str]:
    members: Any = raw.zrange(key, 0, -1)
    return {member.decode() for member in members}
