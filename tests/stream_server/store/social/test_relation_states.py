"""The states between two users, and what each action makes of each: one table."""

import itertools
import json
from collections.abc import Awaitable, Callable

import pytest
import redis

from stream_server.errors import ApiError, BadRequest, NotFound
from stream_server.events.position import Position
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint, new_key

Action = Callable[[Store, str, str], Awaitable[object]]

ACTIONS: dict[str, Action] = {
    "follow": lambda s, a, b: s.follows.follow(a, b, new_key()),
    "unfollow": lambda s, a, b: s.follows.unfollow(a, b, new_key()),
    "approve": lambda s, a, b: s.follow_requests.approve(b, a, new_key()),
    "refuse": lambda s, a, b: s.follow_requests.refuse(b, a, new_key()),
    "block": lambda s, a, b: s.blocks.block(a, b, new_key()),
    "unblock": lambda s, a, b: s.blocks.unblock(a, b, new_key()),
    "blocked": lambda s, a, b: s.blocks.block(b, a, new_key()),
    "unblocked": lambda s, a, b: s.blocks.unblock(b, a, new_key()),
    "mute": lambda s, a, b: s.mutes.mute(a, b, new_key()),
    "unmute": lambda s, a, b: s.mutes.unmute(a, b, new_key()),
}
"""Actions of Ann towards Bob. Bob approves, refuses and blocks back."""

STATES = ("none", "requested", "following", "blocking", "blocked")
"""What Ann is to Bob."""

TABLE = {
    # action          none              |requested               |following               |blocking      |blocked
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
"""By action (``follow*`` while Bob is protected) and state: the next state and the log entries, or the refusal."""


@pytest.mark.parametrize("action", ACTIONS)
async def test_each_action_in_each_state(store: Store, people: People, raw: "redis.Redis", action: str) -> None:
    for i, (state, protected) in enumerate(itertools.product(STATES, (False, True))):
        ann, bob = await people.user(f"ann{i}"), await people.user(f"bob{i}")
        await _bring_about(store, state, ann, bob)
        await store.users.update(bob, {"protected": protected}, new_key())
        assert await _state(store, raw, ann, bob) == state
        row = TABLE["follow*" if action == "follow" and protected else action].split("|")
        expected = row[STATES.index(state)].strip()
        assert await _outcome(store, raw, action, ann, bob) == expected, (state, protected)


async def _outcome(store: Store, raw: "redis.Redis", action: str, ann: str, bob: str) -> str:
    """The outcome in the words of the table. A refusal names the parameter and changes nothing."""
    head, before = await store.log.head(), footprint(raw)
    try:
        await ACTIONS[action](store, ann, bob)
    except ApiError as refusal:
        refused = f"{refusal.status} {refusal.param}"
    else:
        kinds = await _kinds_since(store, head)
        return f"{await _state(store, raw, ann, bob)}: {' '.join(kinds)}".rstrip()
    assert footprint(raw) == before
    return refused.removesuffix(" id")


async def _bring_about(store: Store, state: str, ann: str, bob: str) -> None:
    if state == "requested":
        await store.users.update(bob, {"protected": True}, new_key())
    if state in {"requested", "following"}:
        await store.follows.follow(ann, bob, new_key())
    if state == "blocking":
        await store.blocks.block(ann, bob, new_key())
    if state == "blocked":
        await store.blocks.block(bob, ann, new_key())


async def _state(store: Store, raw: "redis.Redis", ann: str, bob: str) -> str:
    """The one state that the keys and counters of both users have."""
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


@pytest.mark.parametrize("name", ["follow", "unfollow", "block", "unblock", "mute", "unmute"])
async def test_oneself_and_unknown_users_are_refused(
    store: Store, people: People, raw: "redis.Redis", name: str
) -> None:
    ann = await people.user("Ann")
    before = footprint(raw)
    for source, target, error, param in (
        (ann, ann, BadRequest, "id"),
        (ann, "1", NotFound, "id"),
        ("1", ann, NotFound, None),
    ):
        with pytest.raises(error) as refusal:
            await ACTIONS[name](store, source, target)
        assert refusal.value.param == param
    assert footprint(raw) == before
