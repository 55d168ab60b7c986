"""The numbers of the log are consecutive after any history of writes and ingested lines, read with a plain client."""

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count, pairwise
from typing import Any, get_args

import pytest
import redis

from stream_server.errors import ApiError
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.ingest import Ingest, IngestWrite
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from stream_server.web.api import ingest_lines
from tests.stream_server.store.people import new_key
from tests.stream_server.store.writes import ELSEWHERE, WRITES, Scene
from tests.tiers import seeds

LOG, META = "{core}:log", "{core}:meta"
STEPS = 300

Act = Callable[[Store, Scene], Awaitable[Any]]
MORE: Mapping[str, Act] = {
    "batch_claim_key": lambda s, x: s.follows.change_many(
        x.ann, [x.carl, x.bob], [x.dora], IdempotencyKey.from_client(x.ann, new_key().value, b"")
    ),
    "stream_command": lambda s, x: s.open_streams.send_command(
        x.ann, {"connection": "c1", "action": "close"}, new_key()
    ),
    "talk_answer": lambda s, x: s.talks.accept(x.bob, x.talk, new_key()),
}
"""The writes that have no row in `WRITES` and are no lines of an ingest."""


class Site:
    """Another site: makes random lines about a few users and statuses, some of which exist already."""

    def __init__(self, ingest: Ingest, source: random.Random, admin: str) -> None:
        self._ingest, self._source, self._admin = ingest, source, admin
        self._ids = count(1)

    def line(self, op: str) -> IngestWrite:
        """Return a line that does ``op``."""
        if op == "user":
            return self._ingest.user(self._user(), self._source.choice(["", "tom"]), self._profile(), self._change())
        if op == "post":
            return self._ingest.post(self._status(), self._user(), self._draft(), self._source.choice([None, 10**12]))
        if op == "delete":
            return self._ingest.delete(self._status())
        if op == "delete_user":
            return self._ingest.delete_user(self._user(), self._change(), self._admin)
        if op in ("suspend", "reinstate"):
            return self._ingest.change_suspension(op, self._user(), self._change(), self._admin)
        one, other = self._source.sample(USERS, 2)
        return self._ingest.change_relation(op, one, other, self._change())

    def _user(self) -> str:
        return self._source.choice(USERS)

    def _status(self) -> str:
        return f"s{self._source.randrange(30)}"

    def _change(self) -> str | None:
        return self._source.choice([None, f"change {next(self._ids)}"])

    def _profile(self) -> dict[str, str | bool | None]:
        is_protected = self._source.random() < 0.5
        given: dict[str, str | bool | None] = {"bio": f"bio {next(self._ids)}", "protected": is_protected}
        return {name: value for name, value in given.items() if self._source.random() < 0.6}

    def _draft(self) -> StatusDraft:
        answered, original = [self._source.choice([None, None, self._status()]) for _ in range(2)]
        return StatusDraft(message=f"@{self._user()} @u0 well", in_reply_to=answered, origin=original)


USERS = [f"user{number}" for number in range(6)]
OPS = tuple(str(line.__struct_config__.tag) for line in get_args(ingest_lines.AnyLine))
WEIGHTS = [1 if op == "delete_user" else 10 for op in OPS]
"""How often each line comes. With many deletions there would soon be nothing to write about."""


async def live_through(store: Store, source: random.Random) -> set[str]:
    """Do random writes and lines, of which many are refused. Return the names of those that were made."""
    scene, done = Scene(), set()
    await scene.settle(store)
    site = Site(store.ingest, source, scene.root)
    writes = [*WRITES, *MORE, *source.choices([*WRITES, *MORE], k=STEPS - len(WRITES) - len(MORE))]
    source.shuffle(writes)
    for name in writes:
        with suppress(ApiError):
            await (MORE[name](store, scene) if name in MORE else WRITES[name].do(store, scene, new_key()))
            done.add(name)
        ops = source.choices(OPS, WEIGHTS, k=source.randrange(4))
        results, following = await store.ingest.write([site.line(op) for op in ops])
        await following
        done |= {op for op, result in zip(ops, results, strict=True) if not isinstance(result, ApiError)}
    return done


def numbers_of(raw: "redis.Redis") -> list[int]:
    """Return the numbers on the log, in its order."""
    rows: Any = raw.xrange(LOG)
    return [int(fields[b"n"]) for _, fields in rows]


def assert_consecutive(raw: "redis.Redis") -> None:
    numbers = numbers_of(raw)
    holes = [(one, next_one) for one, next_one in pairwise([0, *numbers]) if next_one != one + 1]
    assert holes == []
    assert int(raw.hget(META, "n") or 0) == len(numbers)


def test_every_writing_script_is_in_the_histories() -> None:
    made_by_lines = {name for name in ELSEWHERE if name.startswith("ingest_")}
    assert MORE.keys() | made_by_lines == ELSEWHERE


@pytest.mark.every_redis
@pytest.mark.parametrize("seed", seeds(20, first_tier=2, second_tier=6))
async def test_numbers_are_consecutive_after_any_history(store: Store, raw: "redis.Redis", seed: int) -> None:
    done = await live_through(store, random.Random(seed))
    assert len(numbers_of(raw)) > STEPS / 3
    assert done >= {*OPS}
    # In some histories an account is deleted early, and what it would have done is refused.
    assert len(done) > len(OPS) + len(WRITES) * 0.4, "most writes were refused, so the test checked little"
    assert_consecutive(raw)


@pytest.mark.every_redis
async def test_numbers_are_consecutive_when_each_write_is_made_alone(store: Store, raw: "redis.Redis") -> None:
    """As a random history seldom makes some writes possible: that of a session that has ended, say."""
    for write in WRITES.values():
        raw.flushall()
        scene = Scene()
        await scene.settle(store)
        await write.do(store, scene, new_key())
        assert_consecutive(raw)
