"""What two users can be to each other, and what each verb makes of it: one table."""

import itertools
import json
from collections.abc import Awaitable, Callable

import pytest
import redis

from stream_server.errors import ApiError
from stream_server.events.position import Position
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint

Verb = Callable[[Store, str, str], Awaitable[object]]

VERBS: dict[str, Verb] = {
    "follow": lambda s, a, b: s.follows.follow(a, b, IdempotencyKey.generate()),
    "unfollow": lambda s, a, b: s.follows.unfollow(a, b, IdempotencyKey.generate()),
    "approve": lambda s, a, b: s.follow_requests.approve(b, a, IdempotencyKey.generate()),
    "refuse": lambda s, a, b: s.follow_requests.refuse(b, a, IdempotencyKey.generate()),
    "block": lambda s, a, b: s.blocks.block(a, b, IdempotencyKey.generate()),
    "unblock": lambda s, a, b: s.blocks.unblock(a, b, IdempotencyKey.generate()),
    "blocked": lambda s, a, b: s.blocks.block(b, a, IdempotencyKey.generate()),
    "unblocked": lambda s, a, b: s.blocks.unblock(b, a, IdempotencyKey.generate()),
    "mute": lambda s, a, b: s.mutes.mute(a, b, IdempotencyKey.generate()),
    "unmute": lambda s, a, b: s.mutes.unmute(a, b, IdempotencyKey.generate()),
}
"""What Ann does to Bob; who approves, refuses and blocks back is Bob."""

STATES = ("none", "requested", "following", "blocking", "blocked")
"""What Ann is to Bob."""

TABLE = {
    # verb          none              |requested               |following               |blocking      |blocked
    "follow":      "following: follow |following: follow       |following:              |400           |404",
    "follow*":     "requested: request|requested:              |following:              |400           |404",
    "unfollow":    "none:             |none: unrequest         |none: unfollow          |blocking:     |404",
    "approve":     "404               |following: follow       |404                     |404           |404",
    "refuse":      "404               |none: unrequest         |404                     |404           |404",
    "block":       "blocking: block   |blocking: unrequest block|blocking: unfollow block|blocking:     |404",
    "unblock":     "none:             |requested:              |following:              |none: unblock |404",
    "blocked":     "blocked: block    |blocked: unrequest block|blocked: unfollow block |404           |blocked:",
    "unblocked":   "none:             |requested:              |following:              |404           |none: unblock",
    "mute":        "none: mute        |requested: mute         |following: mute         |blocking: mute|404",
    "unmute":      "none:             |requested:              |following:              |blocking:     |404",
}  # fmt: skip
"""By verb (``follow*`` where Bob is protected by then) and state: the next state and the entries, or the refusal."""


@pytest.mark.parametrize("verb", VERBS)
async def test_each_verb_in_each_state(store: Store, people: People, raw: "redis.Redis", verb: str) -> None:
    """The table holds, whether Bob is protected by then or not; a refusal changes nothing."""
    for i, (state, protected) in enumerate(itertools.product(STATES, (False, True))):
        ann, bob = await people.user(f"ann{i}"), await people.user(f"bob{i}")
        await _bring_about(store, state, ann, bob)
        await store.users.update(bob, {"protected": protected}, IdempotencyKey.generate())
        assert await _state(store, raw, ann, bob) == state
        row = TABLE["follow*" if verb == "follow" and protected else verb].split("|")
        expected = row[STATES.index(state)].strip()
        assert await _outcome(store, raw, verb, ann, bob) == expected, (state, protected)


async def _outcome(store: Store, raw: "redis.Redis", verb: str, ann: str, bob: str) -> str:
    """What became of it, as the table says it; whatever is refused names the id and leaves nothing."""
    head, before = await store.log.head(), footprint(raw)
    try:
        await VERBS[verb](store, ann, bob)
    except ApiError as refusal:
        told = f"{refusal.status} {refusal.param}"
    else:
        kinds = await _kinds_since(store, head)
        return f"{await _state(store, raw, ann, bob)}: {' '.join(kinds)}".rstrip()
    assert footprint(raw) == before
    return told.removesuffix(" id")


async def _bring_about(store: Store, state: str, ann: str, bob: str) -> None:
    if state == "requested":
        await store.users.update(bob, {"protected": True}, IdempotencyKey.generate())
    if state in {"requested", "following"}:
        await store.follows.follow(ann, bob, IdempotencyKey.generate())
    if state == "blocking":
        await store.blocks.block(ann, bob, IdempotencyKey.generate())
    if state == "blocked":
        await store.blocks.block(bob, ann, IdempotencyKey.generate())


async def _state(store: Store, raw: "redis.Redis", ann: str, bob: str) -> str:
    """The one state that both sides' keys and counters tell."""
    both = {
        "requested": (f"{{core}}:asked:{ann}", f"{{core}}:asks:{bob}"),
        "following": (f"{{core}}:following:{ann}", f"{{core}}:followers:{bob}"),
        "blocking": (f"{{core}}:blocks:{ann}", f"{{core}}:blockers:{bob}"),
        "blocked": (f"{{core}}:blockers:{ann}", f"{{core}}:blocks:{bob}"),
    }
    found = []
    for name, (mine, theirs) in both.items():
        is_so = raw.zscore(mine, bob) is not None
        assert is_so == (raw.zscore(theirs, ann) is not None)
        found += [name] if is_so else []
    assert len(found) <= 1, found
    following = json.loads(await store.users.get_own(ann))["following"]
    followers = json.loads(await store.users.get_own(bob))["followers"]
    assert following == followers == int(found == ["following"])
    return found[0] if found else "none"


async def _kinds_since(store: Store, head: Position) -> list[str]:
    entries = await store.log.read(head, 100)
    return [entry.kind for entry in entries if entry.kind != "notification"]
