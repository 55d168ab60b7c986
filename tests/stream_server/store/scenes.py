"""What tests of likes, comments and the like set up and look at."""

import json
from collections.abc import Awaitable, Iterable
from typing import Any, NamedTuple

import pytest

from stream_server.errors import ApiError
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page
from stream_server.store.store import Store
from tests.stream_server.store.people import People


class Told(NamedTuple):
    """An entry of the log, decoded."""

    kind: str
    audience: str
    wire: dict[str, Any]


async def told(store: Store, *kinds: str) -> list[Told]:
    """The entries of these kinds, in log order."""
    entries = await store.log.read(LOG_START, 10_000)
    return [Told(e.kind, e.audience, json.loads(e.wire)) for e in entries if e.kind in kinds]


async def notices(store: Store, uid: str) -> list[tuple[str, str]]:
    """Of what a user was told: the kinds and the sources, in log order."""
    found = [one for one in await told(store, "notification") if one.audience == f"users:{uid}"]
    return [(one.wire["notification"]["kind"], one.wire["notification"]["source"]["id"]) for one in found]


def kept_notices(raw: Any, uid: str) -> set[str]:
    """The names of the notifications that a user has now."""
    return {name.decode() for name in raw.zrange(keys.key_for("notices", uid), 0, -1)}


def ids(page: Page | Iterable[bytes]) -> list[str]:
    """The ids of what is on a page."""
    items = page.items if isinstance(page, Page) else page
    return [json.loads(item)["id"] for item in items]


async def refusal(awaited: Awaitable[object]) -> tuple[int, str, str | None]:
    """Status, code and parameter of what must be refused."""
    with pytest.raises(ApiError) as caught:
        await awaited
    return caught.value.status, caught.value.error_code, caught.value.param


async def post(store: Store, uid: str, group: str | None, **more: Any) -> str:
    """The id of a new status with the tag ``club``, in a group, or None for the open."""
    return str((await People(store).status(uid, "hello #club", group=group, **more))["id"])


async def protect(store: Store, uid: str, *, on: bool = True) -> None:
    """A user writes for approved followers from now on, or for everyone."""
    await store.users.update(uid, {"protected": on}, IdempotencyKey.generate())


async def befriend(store: Store, source: str, target: str) -> None:
    """One user follows another, with consent where that is needed."""
    answer = await store.follows.follow(source, target, IdempotencyKey.generate())
    if json.loads(answer)["requested"]:
        await store.follow_requests.approve(target, source, IdempotencyKey.generate())


async def group(store: Store, kind: str, owner: str, *members: str) -> str:
    """The id of a new group of these people."""
    gid = str(json.loads(await store.groups.create(owner, "g", kind, "", IdempotencyKey.generate()))["id"])
    for uid in members:
        await store.groups.add_member(owner if kind == "private" else uid, gid, uid, IdempotencyKey.generate())
    return gid


async def suspend(store: Store, admin: str, uid: str) -> None:
    """A user has lost the good standing, by somebody else."""
    await store.suspensions.suspend(admin, uid, IdempotencyKey.generate())


class Unseen(NamedTuple):
    """Four users, and statuses that the second will not see: none, one gone, of the others, in a private group."""

    users: list[str]
    statuses: list[str]


async def soon_unseen(people: People) -> Unseen:
    """All of it is there, and all but the last may be seen by everybody until :func:`hide`."""
    ann, bob, eve, sue = users = await people.users(4)
    open_ones = [(await people.status(author))["id"] for author in (bob, ann, eve, sue)]
    closed = await group(people.store, "private", ann)
    return Unseen(users, ["1", *open_ones, (await people.status(ann, group=closed))["id"]])


async def hide(store: Store, unseen: Unseen) -> None:
    """The second deletes theirs; of the others one blocks them, one is protected now and one suspended."""
    ann, bob, eve, sue = unseen.users
    await store.statuses.delete(bob, unseen.statuses[1], IdempotencyKey.generate())
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await protect(store, eve)
    await suspend(store, ann, sue)


def whole(raw: Any) -> dict[bytes, Any]:
    """Everything in Redis but the answers kept for repetitions."""
    read = {
        b"hash": raw.hgetall,
        b"zset": lambda name: raw.zrange(name, 0, -1, withscores=True),
        b"set": raw.smembers,
        b"stream": raw.xlen,
        b"string": raw.get,
    }
    names = [name for name in raw.keys("*") if not name.startswith(b"{core}:request:")]
    return {name: read[raw.type(name)](name) for name in names}
